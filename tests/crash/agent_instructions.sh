#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Single-steps a program while it emits. After each instruction, its live area is what a kill -9
# would leave: every event whose emit returned is there, none is torn. Then interrupts it every so
# many instructions with handlers that emit or fork: all events are stored or counted, and every
# child leaves the emit that it was forked in, and counts it.
set -euo pipefail
. "$TS_SOURCE/tests/lib/agent.sh"
is_sanitized && { echo "skip: stepping through a sanitizer takes too long; the agent itself is built without"; exit 77; }

stepper=$targets/agent_stepper
export TRACESMITH_BUDGET=98304
steps_budget() { # flight|stream|full
	case $1 in
	flight) export TRACESMITH_LIVE=1; unset TRACESMITH_AGENT ;;
	stream) export TRACESMITH_AGENT="session=5;budget=1310720" ;;
	full) export TRACESMITH_AGENT="session=5;budget=49152" ;; # no larger ring is possible: events are dropped
	esac
	mode=$1
	rm -rf "$TRACESMITH_LIVE_DIR"
}
# pid, instructions, returned, begun, children, failed children, copies
step() { # action, case, number
	timeout 120 "$stepper" "$@" >result || fail "$* in $mode mode: exit code $?"
	read -r pid steps returned begun children failed copies <result
}

for each in flight stream full; do
	for part in first lap; do
		steps_budget $each
		rm -rf copies && mkdir copies
		step look $part "$PWD/copies"
		[ "$copies" -gt 50 ] || fail "$part in $mode mode: only $copies of $steps instructions changed the area"
		read_areas --copies copies >/dev/null || fail "$part in $mode mode: a kill would have lost or torn events"
		rm -rf "$TRACESMITH_LIVE_DIR"
		step signal $part "$([ $part = first ] && echo 103 || echo 457)"
		# An event is lost if it interrupts an emit that itself interrupted one.
		holds "by_pid[$pid].total == $begun == $returned > 40 and ('$mode' == 'full' or by_pid[$pid].lost_nested < $begun // 4)"
		[ $each != full ] || continue
		steps_budget $each
		step fork $part "$([ $part = first ] && echo 503 || echo 1361)"
		holds "by_pid[$pid].total == $begun"
		[ "$children" -gt 5 ] || fail "fork in $mode mode: only $children children"
		[ "$failed" -eq 0 ] || fail "fork in $mode mode: $failed of $children children did not come back from the emit"
		# The emit that a child was forked in is one of its own, unless it was complete by then.
		# (In flight mode eight areas of dead processes are kept.)
		[ $each = stream ] || continue
		reports=$(tail -n +2 result | sed 's/\(.*\) \(.*\)/(\1, \2)/' | paste -sd,)
		holds "all(returned - 1 <= by_pid[pid].total <= returned for pid, returned in [$reports])"
		holds "any(by_pid[pid].lost_nested and by_pid[pid].total == returned for pid, returned in [$reports])"
	done
done

# And actually killed.
steps_budget flight
step signal first 1000000
for ((i = 1; i <= 8; i++)); do
	rm -rf "$TRACESMITH_LIVE_DIR"
	step kill first $((steps * i / 9))
	[ "$returned" -eq 0 ] && [ -z "$(find "$TRACESMITH_LIVE_DIR" -type f ! -name '*.new' 2>/dev/null)" ] && continue
	holds "$returned <= one.total <= $begun"
done
