#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Host memory that is gone, reused or mapped for ever (tests/targets/opencl_host_memory.c): recorded,
# the program runs as it does alone; windows open; replays equal the recording; what is missing is
# named.
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
for mode in --replayable --replayable=checked; do
	# Gone or reused at exit, after the last wait: nothing is missing.
	try "unmapped protected stack${images:+ image_unmapped image_stack}" $mode
	replays "gone, $mode" t.sbt --check each
	[ -z "$named" ] || fail "gone, $mode: lost: $named"
done
# The program has not waited for the kernel that wrote it.
try polled --replayable
replay_json 0 t.sbt --check each
names polled "$gone"
# Gone and back again all the time; and a map that is never unmapped.
try "thread kept" --replayable
replays thread t.sbt --check each
names kept "$mapped"
# Gone before the window, which opens nevertheless.
try lost --replayable --window steps:3-6
replays lost t.sbt --check each
names lost "$gone"
# Mapped for ever, before the window or inside it.
for what in pinned parts reading svm; do
	try $what --replayable --window steps:3-6 || continue
	replays "$what, a window" t.sbt --check each
	[ "$(report 'r["commands"]')" -ge 9 ] || fail "$what: only $(report 'r["commands"]') commands"
done
try "pinned parts reading" --replayable
replays "mapped for ever" t.sbt --check each
echo "$checks replays"
