#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One file, several, standard input, compressed files; messages on stderr and as JSON.
. "$TS_SOURCE/tests/cli/lib.sh"

kineto_json 0 >rank0.json
kineto_json 1 >rank1.json
t import rank0.json -o one.sbt | numbers
t verify one.sbt
t import rank0.json rank1.json -o two.sbt | numbers
"$TRACESMITH" info --json two.sbt | python3 -c '
import json, sys
info = json.load(sys.stdin)
print([(s["name"], s["rank"], s["world_size"]) for s in info["sources"]])
print(info["events"], info["processes"], info["devices"], info["streams"])'
echo "quiet:"
t import -q rank0.json -o quiet.sbt
"$TRACESMITH" import rank0.json rank1.json -o json.sbt --json 2>/dev/null >summary.json
python3 -m json.tool summary.json >/dev/null
python3 - <<'PY'
import json, os
s = json.load(open("summary.json"))
print(sorted(s), [sorted(f) for f in s["files"]])
assert s["bytes"] == os.path.getsize("json.sbt") and s["file"] == "json.sbt"
assert s["events"] == sum(f["events"] for f in s["files"]) == 16, s
assert s["input_bytes"] == s["text_bytes"] == sum(os.path.getsize("rank%d.json" % i) for i in (0, 1)), s
assert abs(s["bytes_per_event"] - s["bytes"] / s["events"]) < 1e-9 and s["seconds"] > 0
PY
"$TRACESMITH" import -q - -o stdin.sbt <rank0.json
cmp <("$TRACESMITH" view --json one.sbt) <("$TRACESMITH" view --json stdin.sbt) || fail "standard input"
for threads in 0 1 3; do
	"$TRACESMITH" import -q rank0.json -o threads.sbt --threads $threads --level 1
	cmp <("$TRACESMITH" view --json one.sbt) <("$TRACESMITH" view --json threads.sbt) || fail "threads"
done
# An existing output is replaced.
t import -q rank1.json -o one.sbt
"$TRACESMITH" view --json one.sbt | grep -c '"pid":101'
