#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Device activity reported by the stand-in for CUPTI (device_work.c) is in the trace: joined to the
# right calls, after a kill, and next to another CUPTI user.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda.sh"
unset NSYS_STAND_IN

# Four threads on one stream: the grid of a kernel gives its thread and number.
record t.sbt -- "$programs/device_work" threads
by_correlation='{call["correlation"]: call for call in api_call if call.get("correlation")}'
found=$(of_rows t.sbt 'len(gpu_op), len({row["correlation"] for row in gpu_op}), len({row["grid_x"] for row in gpu_op})' gpu_op)
[ "$found" = "(4000, 4000, 4000)" ] || fail "operations: $found"
found=$(of_rows t.sbt "(lambda calls: len({(calls[row['correlation']]['tid'], row['grid_x'] // 10000) for row in gpu_op}))($by_correlation)" api_call gpu_op)
[ "$found" = 4 ] || fail "pairs of a calling thread and a launching one: $found"
found=$(of_rows t.sbt "(lambda calls: all(calls[row['correlation']]['start'] <= row['start'] for row in gpu_op))($by_correlation)" api_call gpu_op)
[ "$found" = True ] || fail "a kernel starts before its launch"
found=$(of_rows t.sbt 'loss' loss)
[ "$found" = "[]" ] || fail "something is lost: $found"

# Killed: records that were read have their times, the rest is counted.
rm -f t.sbt*
timeout 300 "$TRACESMITH" record -q --backends cuda --no-symbols -o t.sbt "$programs/device_work" killed >printed 2>recorded.log </dev/null && fail "it was not killed"
found=$(of_rows t.sbt 'Counter(row["name"] for row in api_call)["cuLaunchKernel"], len(gpu_op), sum(row["count"] for row in loss if row["what"] == "gpu_op")' \
	api_call gpu_op loss)
[ "$found" = "(1000, 600, 400)" ] || fail "after a kill: $found"

# Another tool in the same program gets all its events; ours resume after it.
record t.sbt -- "$programs/device_work" profiler
grep -qx "theirs 20" printed || fail "the other tool: $(cat printed)"
found=$(of_rows t.sbt 'len(gpu_op), [(row["count"], row["reason"]) for row in loss]' gpu_op loss)
[ "$found" = "(20, [(20, 'another tool used CUPTI')])" ] || fail "beside another tool: $found"
record t.sbt -- "$programs/device_work" found
grep -qx "subscribed 0" printed || fail "a subscription found by dlsym(): $(cat printed)"

# At exit everything complete is there.
record t.sbt -- "$programs/device_work" exit
found=$(of_rows t.sbt 'len(gpu_op), sum(row["count"] for row in loss)' gpu_op loss)
[ "$found" = "(7, 3)" ] || fail "at exit: $found"

# Under Nsight the device side stays off, and says so; calls are recorded.
NSYS_PROFILING_SESSION_ID=1 record t.sbt -- "$programs/device_work" exit
found=$(of_rows t.sbt 'len(gpu_op), Counter(row["name"] for row in api_call)["cuLaunchKernel"], len(loss)' gpu_op api_call loss)
[ "$found" = "(0, 10, 0)" ] || fail "under Nsight: $found"
rows_of t.sbt meta | grep -q 'cuda_device_side.*off.*Nsight' || fail "the reason: $(rows_of t.sbt meta)"
