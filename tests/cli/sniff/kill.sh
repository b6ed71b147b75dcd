#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Saves leave a complete file, a kill leaves everything recoverable, Ctrl-C ends cleanly.
. "$TS_SOURCE/tests/cli/python.sh"

begin the_main
echo "== saved while it runs"
setsid "$TRACESMITH" sniff -q -p $program -i 0.01 --autosave-interval 0.3 --autosave-snapshot-interval 0.7 -o t.json &
sniffer=$!
await [ -e t.json ]
await python3 -c 'import json; assert any(e["ph"] == "B" and e["name"].startswith("the_main") for e in json.load(open("t.json"))["traceEvents"])'
await compgen -G 't-*.json'
python3 -c 'import glob, json; json.load(open(glob.glob("t-*.json")[0]))'
echo "== killed"
kill -9 $sniffer
wait $sniffer 2>/dev/null || true
python3 -c 'import json; json.load(open("t.json"))'
quietly recover t.json.sbt -o good.sbt
"$TRACESMITH" verify good.sbt
stacks good.sbt | grep -o 'the_main;run;wait_inside$' | sort -u
quietly export good.sbt -f timeline -o good.json
python3 - <<'PY'
import json
span = lambda path: [e["ts"] for e in json.load(open(path))["traceEvents"] if e["ph"] in "BE"]
saved, whole = span("t.json"), span("good.json")
assert max(whole) - min(whole) >= max(saved) - min(saved)
PY

echo "== Ctrl-C"
"$TRACESMITH" sniff -p $program -i 0.01 -o c.json 2>err.txt &
sniffer=$!
await sampled c.json.sbt wait_inside
kill -INT $sniffer
wait $sniffer
numbers <err.txt
python3 -c 'import json; print(any(e["ph"] == "B" for e in json.load(open("c.json"))["traceEvents"]))'
ls c.*
touch the_main.over
wait $program
