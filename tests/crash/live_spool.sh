#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Bulk data of a command stream, in a spool of a few MiB: the recorder dies at each point of
# docs/live.md, section 8.2, and at random instants; the program dies; both do; another recorder
# takes over; the disk is full. Every command whose call returned is in the trace, with its content.
# What is removed from shared memory is counted.
# TS_LONG=1 kills 60 times.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

emitter=$TS_BUILD/tests/targets/bulk_stream
[ -x "$emitter" ] || fail "there is no '$emitter'; build it first"
crash_tool=$TS_BUILD/tracesmith-crash
kills=2 count=60 points=(R5:9 R6:2 R9:30 R10:1 R12:1)
[ -z "${TS_LONG:-}" ] || kills=60 count=200 points+=(R2:4 R3:4 R4:4 R6:1 R8:1 R9:1 R10:30)

# Half of the budget: a spool of 4 MiB, which a checkpoint empties every MiB.
record() { # tool, copies, [trace]
	rm -f "$oracle" t.sbt* r.sbt*
	"$1" record --replayable --backends opencl --budget 8M -o "${3:-t.sbt}" -- "$emitter" write "$oracle" "$2" >log 2>&1 &
	recorder=$!
}

returned() { oracle_word 0 8; }
program() { oracle_word 16 8; }
has_returned() { # copies
	local copies
	copies=$(returned)
	[ "${copies:-0}" -ge "$1" ]
}
is_written() { [ "$(oracle_word 8 8)" = 1 ]; }
has_started() { local pid; pid=$(program); [ "${pid:-0}" -gt 0 ]; }

# Checks the trace; `lost` is the number of copies without content that it may have.
holds() { # what, trace, [lost]
	local text
	text=$("$emitter" check "$oracle" "$2" 2>check.log) || fail "$1: $2: $(cat check.log)"
	"$TRACESMITH" verify -q "$2" >check.log 2>&1 || fail "$1: $2: $(cat check.log)"
	case $text in
	*" missing 0 lost 0") [ "${3:-0}" = 0 ] || fail "$1: $2: nothing is lost: $text" ;;
	*) [ "${3:-0}" != 0 ] || fail "$1: $2: $text: $(cat check.log)" ;;
	esac
}

leaves_nothing() { # what
	local left
	left=$(ls "$TRACESMITH_LIVE_DIR")
	[ -z "$left" ] || fail "$1: left in the live directory: $left"
}

resume() { # what, [trace]
	local trace=${2:-t.sbt}
	[ ! -e "$trace.journal" ] || expect 0 record -q --resume "$trace"
	wait_until 60 is_written || fail "$1: the program does not end: $(cat log)"
	holds "$1, resumed" "$trace"
}

# ---- undisturbed ----
record "$TRACESMITH" $count
reap $recorder
[ $code -eq 0 ] || fail "record: exit code $code: $(cat log)"
holds undisturbed t.sbt
leaves_nothing undisturbed
[ "$("$emitter" check "$oracle" t.sbt)" = "copies $count missing 0 lost 0" ] || fail "not all copies"

# ---- the recorder dies at each point ----
for point in "${points[@]}"; do
	TRACESMITH_CRASH_AT=$point record "$crash_tool" $count
	reap $recorder
	[ $code -eq 137 ] || fail "$point: exit code $code: $(cat log)"
	resume "$point"
	# After R12 there is nothing to resume, and nobody knows that the area is not wanted any more.
	[ $point != R12:1 ] || rm -f "$TRACESMITH_LIVE_DIR"/*
	leaves_nothing "$point"
done

# ---- at random instants; recover reads the same, and changes nothing ----
for ((i = 0; i < kills; i++)); do
	record "$TRACESMITH" $count
	wait_until 60 has_returned $((1 + $(random $count))) || fail "no progress: $(cat log)"
	kill_hard $recorder
	reap $recorder
	if [ -e t.sbt.journal ]; then
		expect 0 recover -q t.sbt -o r.sbt
		"$TRACESMITH" verify -q r.sbt
		resume "killed"
		leaves_nothing killed
	else
		rm -f "$TRACESMITH_LIVE_DIR"/*
	fi
done

# ---- the program dies, then both ----
for ((i = 0; i < kills; i++)); do
	record "$TRACESMITH" 60000
	wait_until 60 has_returned $((1 + $(random $count))) || fail "no progress: $(cat log)"
	[ $((i % 2)) -eq 0 ] || kill_hard $recorder
	kill_hard "$(program)"
	reap $recorder
	await_gone "$(program)"
	if [ -e t.sbt.journal ]; then
		expect 0 recover -q t.sbt -o r.sbt
		holds "both killed, recovered" r.sbt
		expect 0 record -q --resume t.sbt
	fi
	holds "program killed" t.sbt
	leaves_nothing "program killed"
done

# ---- the spool is gone, as after a crash of the machine: what it had is counted ----
TRACESMITH_CRASH_AT=R9:30 record "$crash_tool" 60000
reap $recorder
kill_hard "$(program)"
await_gone "$(program)"
rm "$TRACESMITH_LIVE_DIR"/*.spool
expect 0 recover -q t.sbt -o r.sbt
holds "without a spool" r.sbt some
"$TRACESMITH" view r.sbt --table loss >view.log
grep -q "the bytes of blob [0-9]* in shared memory are gone" view.log || fail "no reason: $(cat view.log)"
expect 0 record -q --resume t.sbt
holds "without a spool, resumed" t.sbt some
leaves_nothing "without a spool"

# ---- another recording: what the first one took and did not commit does not hold up the program ----
record "$TRACESMITH" $count
wait_until 60 has_returned 20 || fail "no progress: $(cat log)"
kill_hard $recorder
reap $recorder
expect 0 record -q -p "$(program)" -o u.sbt
is_written || fail "another recording: the program was held up: $(cat log)"
expect 0 verify -q u.sbt
expect 0 recover -q t.sbt -o r.sbt
expect 0 verify -q r.sbt
leaves_nothing "another recording"

# ---- the disk is full until a file is removed; the recorder survives that, or is resumed ----
mkdir disk
mount -t tmpfs -o size=64m tmpfs disk 2>/dev/null || { echo "no full disk: this user may not mount a small file system"; exit 0; }
# Lazily: a recorder that has finished its files may not have exited yet.
trap 'clean_up; umount -l disk' EXIT
for killed in "" "while the disk was full"; do
	rm -rf disk/*
	head -c 54m /dev/zero >disk/filler
	record "$TRACESMITH" 60 disk/t.sbt
	wait_until 60 grep -q "no space left" log || fail "the disk does not become full: $(cat log)"
	[ -z "$killed" ] || kill_hard $recorder
	rm disk/filler
	reap $recorder
	resume "full disk $killed" disk/t.sbt
	[ "$("$emitter" check "$oracle" disk/t.sbt)" = "copies 60 missing 0 lost 0" ] || fail "full disk $killed: not all copies"
	leaves_nothing "full disk $killed"
done
