#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A window by cuProfilerStart and Stop has exactly the calls between them; each pair is a window.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda.sh"

launches='Counter(row["name"] for row in api_call)["cuLaunchKernel"]'
causes='sorted((row["opened_by"], row["closed_by"]) for row in window)'
pair="('cuda-profiler-api', 'cuda-profiler-api')"

record t.sbt -- "$programs/call_profiler"
[ "$(of_rows t.sbt "$launches" api_call)" = 20 ] || fail "without a window: $(of_rows t.sbt "$launches" api_call) launches"

for how in "" nested; do
	# shellcheck disable=SC2086 # no word where there is none
	record t.sbt --window cuda-profiler-api -- "$programs/call_profiler" $how
	found=$(of_rows t.sbt "$launches" api_call)
	[ "$found" = 9 ] || fail "$how: $found launches"
	found=$(of_rows t.sbt "$causes" window)
	[ "$found" = "[$pair, $pair]" ] || fail "$how: windows $found"
	[ "$(of_rows t.sbt 'len(loss)' loss)" = 0 ] || fail "$how: losses: $(rows_of t.sbt loss)"
done

# Requested, and never opened: a warning, and an empty trace.
record t.sbt --window cuda-profiler-api -- "$programs/call_and_work"
grep -q "window 'cuda-profiler-api' never opened" recorded.log || fail "no message: $(cat recorded.log)"
[ "$(of_rows t.sbt 'len(api_call)' api_call)" = 0 ] || fail "calls are there without a window"

# The summary says what was recorded of CUDA, and why there is no device activity.
"$TRACESMITH" record --backends cuda --no-symbols --json -o t.sbt -- "$programs/call_profiler" >json 2>said
grep -q '  CUDA: [0-9]* calls, [0-9]* with a stack; 0 device operations' said || fail "summary: $(cat said)"
grep -q '  no device activity was recorded: .*tracesmith doctor' said || fail "summary: $(cat said)"
python3 - <<'PYTHON' || fail "summary: $(cat json)"
import json
said = json.load(open("json"))
assert said["api_calls"] >= 20 and said["gpu_ops"] == 0 and said["no_device_side"], said
assert "no_instruction_samples" not in said, said
PYTHON

# With -q these are warnings, and so are missing instruction samples and an unexpected program.
record t.sbt -- "$programs/call_profiler"
grep -q "warning: no device activity was recorded: .*'tracesmith doctor cuda'" recorded.log || fail "with -q: $(cat recorded.log)"
record t.sbt --pc-sampling --json -- "$programs/call_profiler"
grep -q "warning: no instruction samples: .*'tracesmith doctor cuda'" recorded.log || fail "no samples: $(cat recorded.log)"
grep -q '"no_instruction_samples":"' printed || fail "no samples, in JSON: $(cat printed)"
record t.sbt --pc-sampling -- true
grep -q "warning: no instruction samples: no program used CUDA" recorded.log || fail "no CUDA: $(cat recorded.log)"
"$TRACESMITH" record --backends cuda -o t.sbt -- true 2>said
grep -q '^  no program used CUDA$' said || fail "no CUDA, by name: $(cat said)"
"$TRACESMITH" record -q -o t.sbt -- true 2>said
[ ! -s said ] || fail "CUDA was not requested: $(cat said)"
echo "windows by cuProfilerStart are what lies between"
