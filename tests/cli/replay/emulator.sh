#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The emulator on an imported trace: report, JSON, and an output trace with the same names and
# arguments.
. "$TS_SOURCE/tests/cli/lib.sh"

kineto_json 0 >k.json
"$TRACESMITH" replay k.json --target emulator --json -o again.sbt >report.json
"$TRACESMITH" replay k.json --target emulator -o twice.sbt >/dev/null
"$TRACESMITH" view again.sbt --json >again.json
"$TRACESMITH" view twice.sbt --json >twice.json
cmp again.json twice.json || fail "two runs differ"
"$TRACESMITH" verify again.sbt
"$TRACESMITH" info again.sbt | grep '^meta.*replay'
"$TRACESMITH" state again.sbt >/dev/null
"$TRACESMITH" analyze again.sbt kernels --all >/dev/null
"$TRACESMITH" diff k.json again.sbt >/dev/null || [ $? = 1 ]
python3 - <<'PY'
import json
report = json.load(open("report.json"))
assert report["verdict"] == "emulated" and report["target"] == "emulator", report
for key in ("equal", "commands", "runs", "span_ns", "recorded_span_ns", "span_error", "start_error_p95", "device", "trace"):
    assert key in report, key
assert report["commands"] == 2 and report["runs"] == 1, report
PY
ls ./*.part 2>/dev/null || true

# Large numbers have separators, as in all other reports.
python3 - >many.json <<'PY'
import json
events = [{"ph": "X", "cat": "kernel", "name": "step", "pid": 0, "tid": 7, "ts": 10 * i, "dur": 5, "args": {"device": 0, "stream": 7, "correlation": i + 1}} for i in range(1234)]
print(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU X"}], "traceEvents": events}))
PY
"$TRACESMITH" replay many.json --target emulator | grep 'commands on'
