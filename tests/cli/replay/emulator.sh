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
