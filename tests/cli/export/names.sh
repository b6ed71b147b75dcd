#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Chrome JSON of a recording has the names of its processes and threads, in every form.
. "$TS_SOURCE/tests/cli/live.sh"

named() { # file
	python3 - "$1" <<'PY'
import json, sys
events = json.load(open(sys.argv[1]))
events = events["traceEvents"] if isinstance(events, dict) else events
names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and "name" in e["args"]}
spans = [e for e in events if e["ph"] == "X"]
assert spans
for e in spans:
    print(names["process_name", e["pid"], 0], names["thread_name", e["pid"], e["tid"]], e["name"])
PY
}
quietly record --backends none -o t.sbt -- "$emit" spans:2 track:7
quietly export t.sbt -o t.json
named t.json | sort -u | tee chrome.txt
quietly export t.sbt -f chrome-array -o array.json
named array.json | sort -u | diff chrome.txt -
quietly record --backends none -o r.json -- "$emit" spans:2 track:7
named r.json | sort -u | diff chrome.txt -
