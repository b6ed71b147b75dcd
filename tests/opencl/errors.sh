#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Errors name their subject: damaged, incomplete or other users' traces, kernels that do not build,
# missing devices; windows that cannot be opened; a full disk, a killed program and a killed
# recorder inside a window.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"
hold=$targets/opencl_hold

# Changes the last byte of the first chunk of a table (26: blob; 24: command).
damage() { # trace, table
	python3 - "$1" "$2" <<'PY'
import sys
path, table = sys.argv[1], int(sys.argv[2])
data = bytearray(open(path, "rb").read())
size = lambda at: int.from_bytes(data[at + 16:at + 24], "little")
at = 64
while int.from_bytes(data[at + 32:at + 34], "little") != table:
    at += size(at)
data[at + size(at) - 1] ^= 1
open(path, "wb").write(data)
PY
}

record good.sbt --replayable -- "$pipeline" --steps 2 --work 4 --size 1024
replays "the trace to be damaged" good.sbt

# ---- traces ----

for table in 26 24 25; do
	cp good.sbt damaged.sbt
	damage damaged.sbt $table
	expect 3 replay damaged.sbt
	says damaged.sbt chunk checksum
done
# `recover` leaves a valid trace, without the bytes that its commands refer to.
cp good.sbt damaged.sbt
damage damaged.sbt 26
expect 0 recover -q damaged.sbt -o missing.sbt
expect 0 verify -q missing.sbt
expect 3 replay missing.sbt
says missing.sbt blob
# Trailing bytes, or a truncated file, never run.
head -c $(($(stat -c %s good.sbt) * 2 / 3)) good.sbt >cut.sbt
expect 3 replay cut.sbt
says cut.sbt
expect 3 replay nothing-here.sbt
says nothing-here.sbt
expect 3 replay "$0"

if [ "$(id -u)" -eq 0 ]; then
	cp good.sbt other.sbt
	chown 65534 other.sbt
	expect 3 replay other.sbt
	says other.sbt --yes
	replays "a trace of another user" other.sbt --yes
fi

# ---- devices, kernels, parts ----

expect 4 replay good.sbt --device 99
says 99
expect 4 replay good.sbt --device no-such-device
says no-such-device
# Some loaders ignore the variable for root.
if ! OCL_ICD_VENDORS=/nonexistent "$pipeline" --steps 0 >/dev/null 2>&1; then
	code=0
	OCL_ICD_VENDORS=/nonexistent timeout 300 "$TRACESMITH" replay good.sbt >stdout 2>stderr || code=$?
	[ $code -eq 4 ] || fail "replay without a device: exit code $code: $(cat stderr)"
	says driver
else
	echo "left out: no device at all (this loader ignores OCL_ICD_VENDORS)"
fi

# PoCL's other device: the same results from sources.
export POCL_DEVICES=basic
if "$pipeline" --steps 0 >/dev/null 2>&1; then
	replays "on PoCL's basic device" good.sbt --check each
fi
unset POCL_DEVICES

# All messages of the compiler.
echo 'kernel void blend(global float *a) { a[0] = one; a[1] = two; a[2] = three; a[3] = four; a[4] = five; a[5] = six; }' >broken.cl
expect 3 replay good.sbt --replace-kernel blend=broken.cl
says broken.cl blend "'one'" "'two'" "'three'" "'four'" "'five'" "'six'"
expect 3 replay good.sbt --replace-kernel blend=no-such-file.cl
says no-such-file.cl
expect 3 replay good.sbt --replace-kernel no_such_kernel=broken.cl
says no_such_kernel "kernels of this window are " "'blend'"
echo 'kernel void blend(global float *a) { }' >fewer.cl
expect 3 replay good.sbt --replace-kernel blend=fewer.cl
says "'fewer.cl': kernel 'blend' has 1 parameter, the recorded one has 4"
cat >other.cl <<'CL'
kernel void blend(global const float *scratch, global const float *history, global float *output, uint work)
{ output[get_global_id(0)] = 1; }
kernel void prepare(global const float *input, constant float *coefficients, global float *scratch) { }
kernel void smooth(global float *tail, global const float *scratch) { }
kernel void total(global const uint *output, uint count, global uint *totals) { }
CL
replay_json 1 good.sbt --check each --replace-kernel blend=other.cl
[ "$(report 'r["verdict"]')" = "differs from recording" ] || fail "another kernel: verdict '$(report 'r["verdict"]')'"

expect 3 replay good.sbt --from 100000 --to 100001
expect 3 replay good.sbt --kernel no_such_kernel
says no_such_kernel
expect 2 replay good.sbt --check sometimes
expect 2 replay good.sbt --repeat 0
expect 2 replay good.sbt --target toaster

# ---- windows that cannot be opened: the program does not notice, and the trace says why ----

# The program succeeds; nothing of it can be replayed, for this reason.
refused() { # what it must say, record's option..., --, program...
	local why=$1
	shift
	record refused.sbt --replayable "$@"
	! grep -q wrong printed || fail "'$*': a result is wrong"
	expect 3 replay refused.sbt
	says "$why"
	rows_of refused.sbt command | grep -q "$why" || fail "the trace does not say '$why'"
}

refused "limit" --window steps:3-5 --snapshot-limit 1M -- "$hold" --steps 8 --bytes 4000000
refused "user event" --window steps:3-6 --window-timeout 300ms -- "$hold" --steps 9 --pause 150 --hold user --hold-from 1 --hold-until 8
# Held before the window and in it, but not when it opens.
record held.sbt --replayable --window steps:3-6 -- "$hold" --steps 8 --hold user --hold-from 1 --hold-until 2
replays "held before the window" held.sbt --check each
for what in user map; do
	record held.sbt --replayable --window steps:2-6 -- "$hold" --steps 8 --hold $what --hold-from 3 --hold-until 5
	replays "a $what held inside the window" held.sbt --check each
done

# ---- deaths inside a window ----

at_step() { grep -q "^step $1\$" printed 2>/dev/null; }
child_of() { awk '{print $1}' "/proc/$1/task/$1/children"; }
start() { # record's option..., --, program...
	rm -f t.sbt t.sbt.* printed
	"$TRACESMITH" record -q -o t.sbt --replayable "$@" >printed 2>log &
	recorder=$!
}
reap() { code=0; wait "$1" 2>/dev/null || code=$?; }

# The program is killed: it can be replayed up to there.
start -- "$hold" --steps 1000000 --pause 5
wait_until 120 at_step 20 || fail "the program does not run: $(cat log printed)"
kill -KILL "$(child_of $recorder)"
reap $recorder
[ $code -eq 137 ] || fail "record: exit code $code: $(cat log)"
expect 0 verify -q t.sbt
replays "a killed program" t.sbt --check each
[ "$(report 'r["commands"]')" -ge 60 ] || fail "only $(report 'r["commands"]') commands of 20 steps"

# The recorder is killed, and another resumes: nothing is missing.
for _ in 1 2 3 4 5; do # again if the recording was complete before the kill
	start -- "$hold" --steps 300 --pause 5 --bytes 4096
	wait_until 120 at_step 20 || fail "the program does not run: $(cat log printed)"
	kill -KILL $recorder
	reap $recorder
	[ ! -e t.sbt.journal ] || break
done
sleep 0.5
limit_seconds=120 expect 0 record -q --resume t.sbt
wait_until 120 at_step 299 || fail "the program does not end: $(tail -n 1 printed)"
replays "a killed recorder, and a successor" t.sbt
[ "$(report 'r["commands"]')" -ge 900 ] || fail "only $(report 'r["commands"]') commands of 300 steps"

# The recorder is killed, and none resumes: the program still finishes, and the trace says what is
# missing.
start -- "$hold" --steps 400 --bytes 262144
wait_until 120 at_step 20 || fail "the program does not run: $(cat log printed)"
kill -KILL $recorder
reap $recorder
wait_until 120 at_step 399 || fail "the program hangs without its recorder: $(tail -n 1 printed)"
sleep 0.2
expect 0 recover -q t.sbt -o recovered.sbt
expect 0 verify -q recovered.sbt
code=0
"$TRACESMITH" replay recovered.sbt >stdout 2>stderr </dev/null || code=$?
[ $code -eq 0 ] || [ $code -eq 3 ] || fail "replay of what was recovered: exit code $code: $(cat stdout stderr)"

# The disk is full inside a window; with large blobs, in the middle of one, which the encoder then
# holds.
mkdir disk
on_full_disk() { # steps, bytes of each buffer
	rm -f printed
	code=0
	timeout 120 "$TRACESMITH" record -o disk/t.sbt --replayable -- "$hold" --steps "$1" --bytes "$2" >printed 2>log || code=$?
	at_step $(($1 - 1)) || fail "the program did not end on a full disk: $(tail -n 1 printed)"
	! grep -q wrong printed || fail "a result is wrong on a full disk"
	[ $code -eq 0 ] || [ $code -eq 3 ] || fail "record on a full disk: exit code $code: $(cat log)"
	grep -q "no space left" log || fail "no message about the full disk: $(cat log)"
	"$TRACESMITH" verify disk/t.sbt >verified 2>&1 || fail "a trace on a full disk: $(cat verified log; ls -l disk)"
	code=0
	"$TRACESMITH" replay disk/t.sbt >stdout 2>stderr </dev/null || code=$?
	[ $code -eq 3 ] || fail "replay of a window that a full disk ended: exit code $code: $(cat stdout stderr)"
	grep -q "disk was full\|could not store" stderr || fail "a window that a full disk ended: $(cat stderr)"
}
for work in "300 262144" "60 1500000"; do
	if mount -t tmpfs -o size=8m tmpfs disk 2>/dev/null; then
		# shellcheck disable=SC2086 # two words
		on_full_disk $work
		umount disk
	else
		echo "left out: a full disk (no right to mount a small one)"
	fi
done
echo "all of it is said"
