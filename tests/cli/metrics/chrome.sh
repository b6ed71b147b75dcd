#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Metrics in Chrome's format: counters that its viewers draw; and re-imported.
. "$TS_SOURCE/tests/cli/metrics.sh"

record -q -o t.sbt --backends host -- "$load" cpu:700 await:over &
recorder=$!
await holds t.sbt 'trace.of("tasks") and trace.pids() and trace.of("cpu_percent", *trace.pids())'
: >over
wait $recorder || fail "recording ends with $?"
quietly export t.sbt -o t.json
python3 - <<'PY'
import json
from metrics import Trace
trace = Trace("t.sbt")
events = json.load(open("t.json"))
events = events["traceEvents"] if isinstance(events, dict) else events
counters = [event for event in events if event["ph"] == "C"]
assert len(counters) == len(trace.rows), (len(counters), len(trace.rows))
(pid,) = trace.pids()
own = [event for event in counters if event["name"] == "cpu_percent" and event["pid"] == pid]
assert len(own) == len(trace.of("cpu_percent", pid)) and all("all" in event["args"] for event in own)
# The machine's counters have their own process, which has a name.
system = {event["pid"] for event in counters if event["name"] == "tasks"}
assert len(system) == 1 and pid not in system, system
assert [event for event in events if event["ph"] == "M" and event["name"] == "process_name" and event["pid"] in system]
PY
quietly import t.json -o again.sbt
"$TRACESMITH" view t.sbt --table counter --json >first
"$TRACESMITH" view again.sbt --table counter --json >second
python3 - <<'PY'
import json
def read(path):
    return sorted((row["start"], row["name"], row.get("pid"), json.dumps(row["args"], sort_keys=True)) for row in map(json.loads, open(path)))
first, second = read("first"), read("second")
assert first == second, [pair for pair in zip(first, second) if pair[0] != pair[1]][:3]
PY
