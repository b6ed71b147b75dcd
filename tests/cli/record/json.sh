#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An output that ends in .json is a plain array of Chrome events.
. "$TS_SOURCE/tests/cli/live.sh"

"$TRACESMITH" record -q --backends none -o t.json -- "$emit" instants:2 spans:3 track:7 counter:5
ls
python3 - <<'PY'
import json
events = json.load(open("t.json"))
assert isinstance(events, list)
for e in sorted(events, key=lambda e: (e["name"], e.get("args", {}).get("i", 0))):
    tid = e["tid"] if e["name"] == "layer" else e["tid"] == e["pid"]
    print(sorted(e), e["name"], e["cat"], e["ph"], e.get("s"), e.get("dur"), tid, e.get("args"))
ticks = [e["ts"] for e in events if e["name"] == "tick"]
assert ticks == sorted(ticks)
PY
