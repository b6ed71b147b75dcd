#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that starts recording itself, twice, when it uses CUDA already: the backend comes late, and
# CUPTI (here its stand-in) still shows what the device does, and the calls that launched it.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda.sh"
unset NSYS_STAND_IN
export TRACESMITH_RECORDER=$TRACESMITH

"$programs/late_work" "$TS_BUILD/libtracesmith-backend-cuda.so" first.sbt second.sbt >printed || fail "exit code $?: $(cat printed)"
[ "$(cat printed)" = $'first.sbt: 0\nsecond.sbt: 0' ] || fail "printed: $(cat printed)"
for trace in first:101:10 second:301:20; do
	IFS=: read -r name from count <<<"$trace"
	expect 0 verify -q "$name.sbt"
	found=$(of_rows "$name.sbt" "len(gpu_op), sorted(row['grid_x'] for row in gpu_op) == [*range($from, $from + $count)], {row['name'] for row in gpu_op}, {row['correlation'] for row in gpu_op} == {row['correlation'] for row in api_call}, len(api_call), len(loss)" \
		gpu_op api_call loss)
	[ "$found" = "($count, True, {'work(int)'}, True, $count, 0)" ] || fail "$name: $found"
	rows_of "$name.sbt" device | grep -q '"number":0' || fail "$name: the device is not described: $(rows_of "$name.sbt" device)"
	rows_of "$name.sbt" meta | grep -q 'late.*true' || fail "$name: $(rows_of "$name.sbt" meta)"
done
