#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The pipeline example on one device and on two: recorded without changing its result, and replayed
# without difference: in full, each stream, parts, and windows in the middle of a run.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

streams_of() { rows_of "$1" object | python3 -c '
import json, sys
print(*sorted({row["number"] for row in map(json.loads, sys.stdin) if row["kind"] == "stream"}))'; }

# A member of the only program.
emitted_bytes() { "$TRACESMITH" ps --json 2>/dev/null | sed -n 's/.*"emitted_bytes":\([0-9]*\).*/\1/p'; }
has_emitted() { [ "$(emitted_bytes)" -ge "$1" ]; } 2>/dev/null
# Of what is written so far. The window of events opens first; that of commands at a call.
has_windows() { # trace, count
	mkdir -p copy
	cp "$1" "$1.journal" copy 2>/dev/null && "$TRACESMITH" recover -q "copy/$1" -o copy/good.sbt 2>/dev/null || return 1
	[ "$(rows_of copy/good.sbt command | grep -c '"open"')" -ge "$2" ]
}

for devices in 1 2; do
	[ $devices -eq 1 ] || export POCL_DEVICES="pthread pthread"
	"$pipeline" --steps 6 --work 20 --size 4096 >alone
	if ! grep -q "on $devices device" alone; then
		echo "left out: $devices devices (this driver shows another number)"
		continue
	fi

	record whole-run.sbt --replayable -- "$pipeline" --steps 6 --work 20 --size 4096
	cmp alone printed || fail "recorded, its result differs"
	# A step: map, unmap, write, five in the kernel queue, read; before: one fill per device and
	# one more; after: map, unmap.
	[ "$(count_of whole-run.sbt gpu_op)" -eq $((6 * 9 + devices + 1 + 2)) ] || fail "$(count_of whole-run.sbt gpu_op) commands are recorded"
	# Also a map that discards what was there, and an unmap after a read, name their memory.
	"$TRACESMITH" replay whole-run.sbt --list -q >list
	[ "$(grep -c 'clEnqueue\(MapBuffer\|UnmapMemObject\)(.*memory[ =][0-9]' list)" -eq 14 ] || fail "maps: $(grep 'Map' list)"
	replays "$devices devices, whole" whole-run.sbt --check each --repeat 3
	replays "$devices devices, final" whole-run.sbt
	replays "$devices devices, original pace" whole-run.sbt --pace original
	for stream in $(streams_of whole-run.sbt); do
		agrees "$devices devices, stream $stream" whole-run.sbt --check each --stream "$stream" --repeat 2
	done
	kernels="blend total"
	[ -z "${TS_LONG:-}" ] || kernels="prepare blend smooth total"
	for kernel in $kernels; do
		agrees "$devices devices, kernel $kernel" whole-run.sbt --check each --kernel $kernel --repeat 2
	done

	# Small, and with a hash after every command.
	record checked.sbt --replayable=checked -- "$pipeline" --steps 2 --work 4 --size 1024
	replays "$devices devices, checked" checked.sbt --check each -o again.sbt
	# A replay is a trace, too.
	expect 0 verify -q again.sbt
	[ "$(count_of again.sbt gpu_op)" -gt 0 ] || fail "a replay that was written has no commands"
	for stream in $(streams_of checked.sbt); do
		replays "$devices devices, checked, stream $stream" checked.sbt --check each --stream "$stream"
	done
	# Parts; TS_LONG=1: on two devices as well.
	if [ $devices -eq 1 ] || [ -n "${TS_LONG:-}" ]; then
		cuts=$(python3 "$TS_SOURCE/tests/opencl/cuts.py" "$TRACESMITH" checked.sbt) || fail "$devices devices: a part differs"
		echo "$devices devices: $cuts"
	fi

	# Checks of 4096 bytes, which do not all fit.
	record kept.sbt --replayable --keep-contents 6K -- "$pipeline" --steps 3 --work 4 --size 1024
	replays "$devices devices, contents" kept.sbt
	kept=$(rows_of kept.sbt command | grep '"check"' | grep -c '"blob"')
	[ "$(report 'r["checks_with_contents"], r["checks"] > r["checks_with_contents"]')" = "$kept True" ] ||
		fail "contents of checks: $(cat replay.json)"

	# Windows in the middle of a run contain what ran in them.
	record window.sbt --replayable --window steps:2-3 -- "$pipeline" --steps 6 --work 20 --size 4096
	cmp alone printed || fail "recorded in a window, its result differs"
	replays "$devices devices, steps 2 to 3" window.sbt --check each --repeat 2
	kernels=$(rows_of window.sbt command | grep -c '"launch"')
	[ "$kernels" -ge 8 ] && [ "$kernels" -le 12 ] || fail "$kernels launches in a window of 2 steps"

	# Opened and closed from outside, twice, each time until commands have run in it; then the
	# program is killed.
	rm -f flag
	"$TRACESMITH" record -q -o flag.sbt --replayable --window flag:flag -- "$pipeline" --steps 1000000 --work 200 --size 4096 >printed 2>log &
	recorder=$!
	for number in 1 2; do
		wait_until 120 window_is false || fail "the window does not close: $(cat log)"
		touch flag
		wait_until 120 window_is true || fail "a flag opens no window: $(cat log)"
		wait_until 120 has_windows flag.sbt $number || fail "commands have no window: $(cat log)"
		before=$(emitted_bytes)
		wait_until 120 has_emitted $((before + 100000)) || fail "nothing runs in the window: $(cat log)"
		rm flag
	done
	wait_until 120 window_is false || fail "the window does not close: $(cat log)"
	kill -KILL "$(awk '{ print $1 }' "/proc/$recorder/task/$recorder/children")"
	code=0
	wait $recorder || code=$?
	[ $code -eq 137 ] || fail "record with a flag: exit code $code: $(cat log)"
	windows=$(rows_of flag.sbt command | grep -c '"open"') || true
	[ "$windows" -eq 2 ] || fail "a flag opened $windows windows, not 2"
	replays "$devices devices, a flag" flag.sbt --check each
done
echo "$checks other replays without difference"
