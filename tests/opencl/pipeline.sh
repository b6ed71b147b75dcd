#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The pipeline example on one device and on two: recorded without changing its result, and replayed without difference: whole,
# each stream, every part of it, and windows in the middle of a run.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

streams_of() { rows_of "$1" object | python3 -c '
import json, sys
print(*sorted({row["details"]["number"] for row in map(json.loads, sys.stdin) if row["kind"] == "stream"}))'; }

for devices in 1 2; do
	[ $devices -eq 1 ] || export POCL_DEVICES="pthread pthread"
	"$pipeline" --steps 6 --work 20 --size 4096 >alone
	if ! grep -q "on $devices device" alone; then
		echo "left out: $devices devices (this driver shows another number)"
		continue
	fi

	record whole-run.sbt --replayable -- "$pipeline" --steps 6 --work 20 --size 4096
	cmp alone printed || fail "recorded, it gives another result"
	# A step: map, unmap, write, five in the queue of kernels, read; before: a fill a device and one; behind: map, unmap.
	[ "$(count_of whole-run.sbt gpu_op)" -eq $((6 * 9 + devices + 1 + 2)) ] || fail "$(count_of whole-run.sbt gpu_op) commands are recorded"
	replays "$devices devices, whole" whole-run.sbt --check each --repeat 3
	replays "$devices devices, final" whole-run.sbt
	replays "$devices devices, original pace" whole-run.sbt --pace original
	for stream in $(streams_of whole-run.sbt); do
		agrees "$devices devices, stream $stream" whole-run.sbt --check each --stream "$stream" --repeat 2
	done
	for kernel in prepare blend smooth total; do
		agrees "$devices devices, kernel $kernel" whole-run.sbt --check each --kernel $kernel --repeat 2
	done

	# Small, and with a hash behind every command.
	record checked.sbt --replayable=checked -- "$pipeline" --steps 2 --work 4 --size 1024
	replays "$devices devices, checked" checked.sbt --check each -o again.sbt
	# A replay is a trace, too.
	expect 0 verify -q again.sbt
	[ "$(count_of again.sbt gpu_op)" -gt 0 ] || fail "a replay that was written has no commands"
	for stream in $(streams_of checked.sbt); do
		replays "$devices devices, checked, stream $stream" checked.sbt --check each --stream "$stream"
	done
	cuts=$(python3 "$TS_SOURCE/tests/opencl/cuts.py" "$TRACESMITH" checked.sbt) || fail "$devices devices: a part differs"
	echo "$devices devices: $cuts"

	# Windows in the middle of a run: what is there is what ran in them.
	record window.sbt --replayable --window steps:2-3 -- "$pipeline" --steps 6 --work 20 --size 4096
	cmp alone printed || fail "recorded in a window, it gives another result"
	replays "$devices devices, steps 2 to 3" window.sbt --check each --repeat 2
	kernels=$(rows_of window.sbt command | grep -c '"launch"')
	[ "$kernels" -ge 8 ] && [ "$kernels" -le 12 ] || fail "$kernels launches in a window of 2 steps"

	# Opened and closed from outside, twice.
	rm -f flag
	"$TRACESMITH" record -q -o flag.sbt --replayable --window flag:flag -- "$pipeline" --steps 400 --work 200 --size 4096 >printed 2>log &
	recorder=$!
	for _ in 1 2; do
		sleep 0.3
		touch flag
		sleep 0.2
		rm flag
	done
	wait $recorder || fail "record with a flag: exit code $?: $(cat log)"
	windows=$(rows_of flag.sbt command | grep -c '"open"') || true
	[ "$windows" -ge 1 ] || fail "a flag opened no window"
	replays "$devices devices, a flag" flag.sbt --check each
done
echo "$checks other replays without difference"
