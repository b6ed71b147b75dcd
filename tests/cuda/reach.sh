#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every function of cuda_calls.def is intercepted by name, by dlsym() and by cuGetProcAddress.
# Arguments and results pass through unchanged, recorded or not; each call is one row, or is counted.
# Functions without a wrapper are counted. Programs without CUDA see none.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda.sh"

count=$(grep -c '^CUDA_CALL' "$TS_SOURCE/src/backends/cuda/calls/cuda_calls.def")
all="$count of $count wrapped, 0 failures"
# Those of class COUNTED, at the end, are wrapped for replays only.
count=$((count - $(grep -c '^CUDA_CALL.* COUNTED, ' "$TS_SOURCE/src/backends/cuda/calls/cuda_calls.def")))
names='Counter(Counter(row["name"] for row in api_call).values())'

for way in call_by_name "call_by_handle dlsym" "call_by_handle ask"; do
	# shellcheck disable=SC2086
	record t.sbt -- "$programs"/$way
	grep -qFx "$all" printed || fail "$way: $(head printed)"
	found=$(of_rows t.sbt "$names" api_call)
	[ "$found" = "Counter({1: $count})" ] || fail "$way: calls by how often a name is there: $found"
	found=$(of_rows t.sbt 'sorted(row["result"] for row in api_call)' api_call)
	[ "$found" = "$(python3 -c "print(list(range(1000, 1000 + $count)))")" ] || fail "$way: results $found"
done
rows_of t.sbt meta | grep -q 'cuda_other_calls' && fail "counted without cuInit"

# Four threads concurrently.
record t.sbt -- "$programs/call_by_name" 4 25
grep -qFx "$all" printed || fail "threads: $(head printed)"
found=$(of_rows t.sbt "$names" api_call)
[ "$found" = "Counter({100: $count})" ] || fail "threads: $found"

# While no window is open nothing is stored, and all calls pass through.
record t.sbt --window flag:never -- "$programs/call_by_name"
grep -qFx "$all" printed || fail "no window: $(head printed)"
[ "$(of_rows t.sbt 'len(api_call)' api_call)" = 0 ] || fail "calls are there without a window"

record t.sbt -- "$programs/call_by_handle" none
[ "$(of_rows t.sbt 'len(api_call), [row for row in meta if "cuda" in json.dumps(row)]' api_call meta)" = "(0, [])" ] ||
	fail "a program without CUDA: $(rows_of t.sbt meta)"

# A missing function is reported as without us: Python passes on the message of dlerror().
if ! is_sanitized; then
	found=$(LD_PRELOAD="$TS_BUILD/libtracesmith-agent.so $TS_BUILD/libtracesmith-backend-cuda.so" \
		python3 -c 'import ctypes; print([hasattr(ctypes.CDLL(None), name) for name in ("cuInit", "ncclAllReduce", "cuptiSubscribe")])') ||
		fail "Python asks for functions that are missing"
	[ "$found" = "[False, False, False]" ] || fail "functions are there without their libraries: $found"
fi
LD_LIBRARY_PATH=$programs:$programs/cupti/lib64 record t.sbt -- "$programs/call_by_handle" cupti

# A user's own library is preloaded after ours, and gets its calls.
LD_PRELOAD=$programs/libcuda_behind.so record t.sbt -- "$programs/call_and_work" behind
grep -q '^behind: 3 launches' printed || fail "behind: $(cat printed)"
[ "$(of_rows t.sbt 'Counter(row["name"] for row in api_call)["cuLaunchKernel"]' api_call)" = 3 ] || fail "launches of a library preloaded after ours"
