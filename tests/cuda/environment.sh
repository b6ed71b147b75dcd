#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that `record` did not start loads the backend from its environment and starts its own
# recorder.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda.sh"

preload=$TS_BUILD/libtracesmith-agent.so:$TS_BUILD/libtracesmith-backend-cuda.so
# The recorder is not a child of this shell, and resolves frames when the trace is finished: it is
# done when its process has exited.
printf '%s\n' "$PWD/t.sbt" >output
recorder_runs() { grep -qzsxF -f output /proc/[0-9]*/cmdline; }
finished() { [ -e t.sbt ] && [ ! -e t.sbt.journal ] && ! recorder_runs; }

TRACESMITH_RECORDER=$TRACESMITH TRACESMITH_OUT=$PWD/t.sbt TRACESMITH_BACKENDS=host,cuda LD_PRELOAD=$preload "$programs/call_profiler"
for ((left = 3000; left > 0; left--)); do
	! finished || break
	sleep 0.1
done
finished || fail "the recording has no end"
expect 0 verify -q t.sbt
found=$(of_rows t.sbt 'Counter(row["name"] for row in api_call)["cuLaunchKernel"], sum("stack" in row for row in api_call if row["name"] == "cuLaunchKernel")' api_call)
[ "$found" = "(20, 20)" ] || fail "launches, and those with a stack: $found"

# The library does nothing unless requested.
rm t.sbt
TRACESMITH_RECORDER=$TRACESMITH TRACESMITH_OUT=$PWD/t.sbt TRACESMITH_BACKENDS=host LD_PRELOAD=$preload "$programs/call_profiler"
[ ! -e t.sbt ] || fail "a program without events has started a recorder"
echo "by the environment alone"
