#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A disk that fills up during a recording: the trace stays valid, what did not fit is counted, and
# recording continues when there is space again.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

mkdir disk
mount -t tmpfs -o size=6m tmpfs disk 2>/dev/null || { echo "skip: this user may not mount a small file system"; exit 77; }
# Lazily: a recorder that has finished its files may not have exited yet.
trap 'clean_up; umount -l disk' EXIT

# Checksums do not compress: about 10 bytes per event, and 48 in the journal.
options=(--threads 2 --mode pair --seconds 0 --count 900000 --rate 600000)

record() { # option...
	fresh
	rm -rf disk/*
	"$TRACESMITH" record -q -o disk/t.sbt "$@" -- "$emitter" --oracle "$oracle" "${options[@]}" >log 2>&1 &
	recorder=$!
}

# Full until the end: there is no space for events, but there is for the loss rows.
record
await_gone $recorder
reap $recorder
[ $code -eq 0 ] || fail "record on a full disk: exit code $code: $(cat log)"
[ ! -e disk/t.sbt.journal ] || fail "the journal is left: $(ls -l disk)"
check "full" disk/t.sbt --all-done --some-stored --some-lost
# Rings that are not drained fill up, too, but larger ones would not help.
grep -q "the disk was full" log || fail "nothing says what to do: $(cat log)"
! grep -q "budget" log || fail "advice about buffers: $(cat log)"
[ "$(find disk -type f | wc -l)" -eq 1 ] || fail "other files are left: $(ls -l disk)"

# Full, and then there is space again: a filler file is removed.
fresh
rm -rf disk/*
head -c 5m /dev/zero >disk/filler
"$TRACESMITH" record -o disk/t.sbt --budget 192K -- "$emitter" --oracle "$oracle" --threads 2 --mode pair --seconds 600 --rate 50000 >log 2>&1 &
recorder=$!
wait_until 300 grep -q "no space left" log || fail "the disk does not become full: $(cat log)"
rm disk/filler
wait_until 300 grep -q "there is space again" log || fail "the free space is not noticed: $(cat log)"
# More events follow the gap.
wait_until 120 has_emitted $(($(oracle_returned) + 5000)) || fail "the program makes no progress"
kill_hard "$(oracle_pid)"
await_gone $recorder
reap $recorder
[ $code -eq 137 ] || fail "record: exit code $code: $(cat log)"
! grep -q "larger --budget" log || fail "larger buffers do not help on a full disk: $(cat log)"
check "full for a while" disk/t.sbt --some-stored --some-lost --gaps

# Killed while the disk is full.
options=(--threads 2 --mode pair --seconds 20 --rate 600000)
record
await_begin
sleep 1.2
kill_hard $recorder
await_gone $recorder
reap $recorder
kill_hard "$(oracle_pid)"
await_gone "$(oracle_pid)"
mkdir other
if [ -e disk/t.sbt.journal ]; then
	expect 0 recover -q disk/t.sbt -o other/t.sbt
	check "recorder killed on a full disk" other/t.sbt --some-stored
fi

# A recording that stops when the disk is full.
options=(--threads 2 --mode pair --seconds 0 --count 900000 --rate 600000)
record --on-full stop
await_gone $recorder
reap $recorder
[ $code -eq 0 ] || [ $code -eq 3 ] || fail "record --on-full stop: exit code $code: $(cat log)"
check "stopped when full" disk/t.sbt --windows 1 --some-stored

# Space for the trace, but not for its text: messages name both, and the trace is kept.
text_fails() { # name, command...
	fresh
	rm -rf disk/*
	code=0
	"${@:2}" "$emitter" --oracle "$oracle" --count 70000 --rate 100000 >log 2>&1 || code=$?
	wait_until 60 [ ! -e "disk/$1.sbt.journal" ] || fail "$1 is not finished: $(ls -l disk)"
	# A recorder that the program started tries once more when it ends.
	wait_until 60 [ ! -e "disk/$1" ] || fail "$1: $(ls -l disk; cat log)"
	[ -e "disk/$1.sbt" ] || fail "$1: $(ls -l disk; cat log)"
	[ "$(grep -c "'.*disk/$1': cannot write: No space left" log)" -eq 1 ] || fail "$1: $(cat log)"
	[ "$(grep -c "kept in '.*disk/$1.sbt'" log)" -eq 1 ] || fail "$1: $(cat log)"
}
text_fails c.json "$TRACESMITH" record -q -o disk/c.json --
[ $code -eq 3 ] || fail "record of a text on a full disk: exit code $code"
text_fails d.json env TRACESMITH_OUT="$PWD/disk/d.json"
[ $code -eq 0 ] || fail "a program with TRACESMITH_OUT on a full disk: exit code $code"

# No space at all: the program runs all the same.
rm -rf disk/*
head -c 6m /dev/zero >disk/filler 2>/dev/null || true
fresh
code=0
"$TRACESMITH" record -q -o disk/t.sbt -- "$emitter" --oracle "$oracle" --count 1000 >log 2>&1 || code=$?
[ $code -eq 3 ] || [ $code -eq 0 ] || fail "record on a full disk: exit code $code: $(cat log)"
if [ $code -eq 3 ]; then
	grep -q "disk/t.sbt" log && grep -qi "no space" log || fail "nothing says that the disk is full: $(cat log)"
fi
summary
