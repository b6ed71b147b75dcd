#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Too little space for a snapshot or a stream: on the trace's disk, below its size limit, in shared
# memory. The program does not notice, the trace is valid, and it is said what to do.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda_replay.sh"

export REPLAY_WORK_MIB=48
window=(--replayable --window steps:3-5)

# A file system of its own on a folder, of so many MiB.
small() { mount -t tmpfs -o "size=$1m" tmpfs "$2" 2>/dev/null; }
mkdir disk
small 32 disk || { echo "skip: this user may not mount a small file system"; exit 77; }
trap 'umount -l disk memory 2>/dev/null || true; rm -rf "$live"' EXIT

# The snapshot does not fit: known before it is taken.
refuses_snapshot() { # what, trace
	grep -q "steps: done" printed || fail "$1: the program did not end: $(cat printed)"
	cannot_replay "its snapshot needs 5" "$2"
	cannot_replay "free space on its disk, raise its size limit, or write it elsewhere (-o)" "$2"
	[ "$(stat -c %s "$2")" -lt 1000000 ] || fail "$1: some of the snapshot was stored"
}
record disk/t.sbt "${window[@]}" -- "$work" much_memory steps
refuses_snapshot "disk" disk/t.sbt
record limited.sbt "${window[@]}" --max-size 20M -- "$work" much_memory steps
refuses_snapshot "limit" limited.sbt
REPLAY_WORK_MIB=4 record disk/t.sbt "${window[@]}" -- "$work" much_memory steps
replays "it fits" disk/t.sbt

# The stream does not fit.
rm -f disk/*
code=0
timeout 300 "$TRACESMITH" record -o disk/t.sbt --replayable -- "$work" much_memory steps >printed 2>recorded.log </dev/null || code=$?
[ $code -eq 0 ] || [ $code -eq 3 ] || fail "record on a full disk: exit code $code: $(cat recorded.log)"
grep -q "steps: done" printed || fail "full disk: the program did not end: $(cat printed recorded.log)"
grep -q "no space left" recorded.log || fail "no message about the full disk: $(cat recorded.log)"
expect 0 verify -q disk/t.sbt
# What comes at once is kept or not: if the recorder is late, that is all of the stream.
if grep -q "nothing to replay" recorded.log; then
	cannot_replay "nothing to replay" disk/t.sbt
	grep -q "the disk was full" recorded.log || fail "full disk: no reason: $(cat recorded.log)"
else
	cannot_replay "cannot be replayed" disk/t.sbt
	grep -q "disk was full\|could not store" stderr || fail "full disk: no reason: $(cat stderr)"
fi
rm -f disk/*

# Shared memory for some of it only, and for the area alone.
mkdir memory
for mib in 72 24; do
	small $mib memory || fail "cannot mount another small file system"
	chmod 700 memory
	TRACESMITH_LIVE_DIR=$PWD/memory record t.sbt "${window[@]}" -- "$work" much_memory steps
	replays "$mib MiB of shared memory" t.sbt
	umount memory
done

# In the middle of a program, with windows by hand.
begin() { # option...
	rm -f stop on t.sbt
	"$TRACESMITH" record -q -o t.sbt --replayable --window "flag:$PWD/on" -- "$work" much_memory endless >printed 2>recorded.log </dev/null &
	pid=$!
	wait_until 120 grep -q "round" printed || fail "the program does not run: $(cat recorded.log)"
}
end() {
	touch stop
	wait $pid || fail "record fails: $(cat recorded.log)"
	expect 0 verify -q t.sbt
}
trap 'touch stop; kill -KILL $pid 2>/dev/null || true; umount -l disk memory 2>/dev/null || true; rm -rf "$live"' EXIT
is_stored() { [ "$(stat -c %s t.sbt)" -gt $((REPLAY_WORK_MIB * $1 << 20)) ]; }
is_returned() { [ "$(du -sk "$TRACESMITH_LIVE_DIR" --exclude filler | cut -f1)" -lt $((REPLAY_WORK_MIB << 10)) ]; }

# Once the snapshot is in the trace its memory is free again, while the program runs. Then others
# use up what there is: the next snapshot is stored without.
small 600 memory || fail "cannot mount another small file system"
chmod 700 memory
TRACESMITH_LIVE_DIR=$PWD/memory begin
touch on
TRACESMITH_LIVE_DIR=$PWD/memory
wait_until 120 is_stored 1 || fail "the snapshot is not stored: $(cat recorded.log)"
wait_until 120 is_returned || fail "its memory is not returned: $(ls -ls memory)"
[ "$(find memory -name "*.16.spool" | wc -l)" -eq 1 ] || fail "the files for bulk are not there: $(ls -ls memory)"
rm on
wait_until 120 window_is false || fail "the window does not close: $(cat recorded.log)"
rounds=$(wc -l <printed)
goes_on() { [ "$(wc -l <printed)" -gt $((rounds + 2)) ]; }
wait_until 120 goes_on || fail "the program stands still"
head -c 600m /dev/zero >memory/filler 2>/dev/null || true
touch on
wait_until 120 window_is true || fail "the window does not open: $(cat recorded.log)"
rounds=$(wc -l <printed)
wait_until 120 goes_on || fail "the program stands still without shared memory: $(cat recorded.log)"
end
replays "what was returned" t.sbt
replays "a snapshot without shared memory" t.sbt --window 2
umount memory
echo "all of it is said"
