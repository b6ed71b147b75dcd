#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that starts recording itself, three times, before it uses CUDA or later: the backend comes
# late, and CUPTI (here its stand-in) still shows what the device does, and the calls that launched
# it. Another tool that uses CUPTI meanwhile, or afterwards, has its own records.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda.sh"
unset NSYS_STAND_IN
export TRACESMITH_RECORDER=$TRACESMITH

for when in used early subscribed; do
	"$programs/late_work" "$TS_BUILD/libtracesmith-backend-cuda.so" "$programs/liblate_tool.so" $when first.sbt second.sbt third.sbt >printed || fail "$when: exit code $?: $(cat printed)"
	[ "$(cat printed)" = $'first.sbt: 0\nsecond.sbt: 0\n7 of 7\nthird.sbt: 0\n6 of 6' ] || fail "$when printed: $(cat printed)"
	for trace in first:101-110::10 second:301-320::20 third:401-403,601-604:7:14; do
		IFS=: read -r name grids lost calls <<<"$trace"
		# Without the subscription nothing is known of calls, nor how many commands are missing.
		[ $when != subscribed ] || calls=0 lost=${lost:+None}
		expect 0 verify -q "$name.sbt"
		of_rows "$name.sbt" "'%s %s %s %s %d %s %s' % (
			','.join(str(row['grid_x']) for row in sorted(gpu_op, key=lambda row: row['grid_x'])), [row.get('count') for row in loss],
			{row['name'] for row in gpu_op}, {row['correlation'] for row in gpu_op} <= {row.get('correlation') for row in api_call} or not api_call, len(api_call),
			{row['method'] for row in clock_sync if row['clock'] > 2}, all(row.get('device') for row in stream) and len(stream))" \
			gpu_op api_call loss clock_sync stream >found
		IFS=- read -r from to <<<"${grids%%,*}"
		expected=$(seq -s, "$from" "$to")
		[ "$grids" = "${grids#*,}" ] || { IFS=- read -r from to <<<"${grids#*,}"; expected+=,$(seq -s, "$from" "$to"); }
		[ "$(cat found)" = "$expected [$lost] {'work(int)'} True $calls {'cupti timestamp callback'} 1" ] || fail "$when, $name: $(cat found)"
		rows_of "$name.sbt" device | grep -q '"number":0' || fail "$when, $name: the device is not described: $(rows_of "$name.sbt" device)"
		rows_of "$name.sbt" meta | grep -q 'late.*true' || fail "$when, $name: $(rows_of "$name.sbt" meta)"
	done
done
