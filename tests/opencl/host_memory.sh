#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Host memory that is gone, reused or mapped for ever (tests/targets/opencl_host_memory.c): recorded,
# the program runs as it does alone; windows open; replays equal the recording; what is missing is
# named. TS_LONG=1: more cases with a window.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"
program=$targets/opencl_host_memory
gone="USE_HOST_PTR): its host memory is gone"
mapped="it is still mapped for writing"

# Records cases; they print what they print alone. $named: what is lost.
try() { # cases, record's option...
	local code=0
	# shellcheck disable=SC2086
	"$program" $1 >alone || code=$?
	[ $code -ne 77 ] || { echo "left out: $1: $(tail -n 1 alone)"; return 1; }
	# shellcheck disable=SC2086
	record t.sbt "${@:2}" -- "$program" $1
	diff alone printed || fail "$*: recorded, it prints something else"
	named=$(rows_of t.sbt loss | grep -o '"reason":"[^"]*"' || true)
}

names() { # what it is about, text
	grep -qF "$2" <<<"$named" || fail "$1: no loss row says '$2': '$named'"
}

images=yes
"$program" image_stack >alone || images=
[ -n "$images" ] || echo "left out: images: $(tail -n 1 alone)"
for way in "" read copy; do
	export TRACESMITH_OPENCL_CHECKS=$way
	mode=--replayable${way:+=checked}
	# Gone or reused at exit, after the last wait, or written in part: nothing is missing.
	try "unmapped protected stack stays turns overtaken released${images:+ image_unmapped image_stack}" $mode
	replays "gone, $mode $way" t.sbt --check each
	[ -z "$named" ] || fail "gone, $mode $way: lost: $named"
done
# The host cannot read it; a copy can, behind a command that waits for the program.
for way in read copy; do
	export TRACESMITH_OPENCL_CHECKS=$way
	try hidden --replayable=checked
	replays "hidden, $way" t.sbt --check each
	[ $way = copy ] || names hidden "commands may wait for the program"
done
[ -z "$named" ] || fail "hidden: copied, but lost: $named"
unset TRACESMITH_OPENCL_CHECKS
# Gone and back again all the time; a map that is never unmapped; at last, so that nothing else gets
# its address, memory that is gone before the program has waited for the kernel that wrote it.
try "thread kept polled" --replayable
replays "thread, kept, polled" t.sbt --check each
names kept "$mapped"
names polled "$gone"
# Gone before the window, which opens nevertheless.
try lost --replayable --window steps:3-6
replays lost t.sbt --check each
names lost "$gone"
# Mapped for ever, before the window or inside it.
cases="pinned svm"
[ -z "${TS_LONG:-}" ] || cases="pinned svm parts reading"
for what in $cases; do
	try $what --replayable --window steps:3-6 || continue
	replays "$what, a window" t.sbt --check each
	[ "$(report 'r["commands"]')" -ge 9 ] || fail "$what: only $(report 'r["commands"]') commands"
done
try "pinned parts reading" --replayable
replays "mapped for ever" t.sbt --check each
echo "$checks replays"
