#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Windows in the middle of a program, and what can prevent or end them.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda_replay.sh"

commands() { report 'r["commands"]'; }

record all.sbt --replayable -- "$work" all
replays "everything" all.sbt
whole=$(commands)
record steps.sbt --replayable --window steps:10-19 -- "$work" streams globals graph_captured steps
replays "steps" steps.sbt --check each
[ "$(commands)" -lt "$whole" ] || fail "a window of ten steps has all $whole commands"
# Contents from before the window.
record steps.sbt --replayable=checked --window steps:10-19 -- "$work" globals pinned steps
replays "steps, checked" steps.sbt --check each --repeat 3

# A range of the program, which opens one window after the other.
record nvtx.sbt --replayable --window nvtx:eight -- "$work" globals pinned steps
replays "a range" nvtx.sbt --check each
first=$(commands)
[ "$first" -ge 24 ] && [ "$first" -lt "$whole" ] || fail "a range of eight rounds has $first commands"
replays "a range, again" nvtx.sbt --window 2 --repeat 2

# By hand: a file, then commands, then by time.
rounds() { wc -l <running; }
has_rounds() { [ "$(rounds)" -ge "$1" ]; }
await_window() { wait_until 120 window_is "$1" || fail "the window is not $1: $(cat recorded.log)"; }
more_rounds() { wait_until 60 has_rounds $(($(rounds) + 3)) || fail "the program does not run: $(cat recorded.log)"; }
rm -f on stop running
touch running
"$TRACESMITH" record -q -o flag.sbt --replayable --window "flag:$PWD/on" -- "$work" endless >running 2>recorded.log </dev/null &
pid=$!
trap 'touch stop; kill -KILL $pid 2>/dev/null || true; rm -rf "$live"' EXIT
for _ in 1 2; do
	more_rounds
	touch on
	await_window true
	more_rounds
	rm on
	await_window false
done
more_rounds
touch stop
wait $pid || fail "record fails: $(cat recorded.log)"
replays "a file" flag.sbt --check each
replays "a file" flag.sbt --repeat 3
replays "a file, again" flag.sbt --window 2 --repeat 2

start_endless() { # trace, window
	rm -f stop
	: >running
	"$TRACESMITH" record -q -o "$1" --replayable --window "$2" -- "$work" endless >running 2>recorded.log </dev/null &
	pid=$!
	more_rounds
}
end_endless() {
	touch stop
	wait $pid || fail "record fails: $(cat recorded.log)"
}
start_endless command.sbt command
program=$(pgrep -P $pid replay_work) || fail "no program"
for _ in 1 2; do
	expect 0 window "$program" open
	more_rounds
	expect 0 window "$program" close
	more_rounds
done
end_endless
replays "a command" command.sbt --check each
replays "a command, again" command.sbt --window 2 --repeat 2

# Opened and closed by the time since the start. On a busy machine the program may come too late.
window_is_over() {
	if window_is true; then
		was_open=true
		return 1
	fi
	$was_open || [ $((SECONDS - begin)) -gt $((seconds + 20)) ]
}
for seconds in 1 5 30; do
	begin=$SECONDS was_open=false
	start_endless time.sbt time:${seconds}s-$((seconds + 1))s
	wait_until 120 window_is_over || fail "a window by time does not close: $(cat recorded.log)"
	more_rounds
	end_endless
	grep -q "nothing to replay" recorded.log || break
done
replays "a time" time.sbt --check each

# Too much memory.
record limit.sbt --replayable --snapshot-limit 1M --window steps:3-5 -- "$work" much_memory steps
cannot_replay "--snapshot-limit is 1048576: raise it" limit.sbt

# The copy that a snapshot makes on the device is not missed there.
export STAND_IN_MEMORY=4294967296 REPLAY_WORK_MIB=256
record info.sbt --replayable --window steps:3-30 -- "$work" free_memory
"$TRACESMITH" view info.sbt --table meta --json | grep -q '"shadow":true' || fail "no copy was made on the device"
replays "with a copy on the device" info.sbt
unset STAND_IN_MEMORY REPLAY_WORK_MIB

# The arena's places are taken.
STAND_IN_OCCUPIED=0x200000100000,0x400000100000,0x600000100000,0x100000100000 record occupied.sbt --replayable -- "$work" plain
cannot_replay "no fixed address range was free" occupied.sbt
STAND_IN_OCCUPIED=0x200000100000 record second.sbt --replayable -- "$work" plain globals pointers virtual_memory
replays "another base" second.sbt --repeat 2
STAND_IN_NO_VMM=1 record no_vmm.sbt --replayable -- "$work" plain
cannot_replay "no fixed address range was free" no_vmm.sbt

# Killed in the middle: what is complete can be replayed.
rm stop
: >running
"$TRACESMITH" record -q -o killed.sbt --replayable -- "$work" endless >running 2>recorded.log </dev/null &
pid=$!
more_rounds
program=$(pgrep -P $pid replay_work) || fail "no program"
kill -KILL "$program"
wait $pid 2>/dev/null || true
replay_json 0 killed.sbt
replay_json 0 killed.sbt --check each --repeat 2
echo "windows replay without difference"
