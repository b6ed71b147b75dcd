#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A replay on another device says what differs before anything runs.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda_replay.sh"

record t.sbt --replayable -- "$work" plain globals
STAND_IN_NAME="Another GPU" cannot_replay "recorded on 'Stand-in H1'" t.sbt
STAND_IN_NAME="Another GPU" "$TRACESMITH" replay t.sbt --device 0 >stdout 2>stderr </dev/null || fail "another GPU of the same kind: $(cat stdout stderr)"
# PTX only: compiled here.
STAND_IN_COMPUTE=80 "$TRACESMITH" replay t.sbt --device 0 >stdout 2>stderr </dev/null || fail "an older GPU: $(cat stdout stderr)"
grep -q "recorded with compute capability 9.0" stdout || fail "another GPU: $(cat stdout stderr)"
# Said before anything runs, too.
grep -q "warning: recorded with compute capability 9.0" stderr || fail "another GPU: $(cat stdout stderr)"
STAND_IN_COMPUTE=70 cannot_replay "code" t.sbt --device 0
record compressed.sbt --replayable -- "$work" modules
STAND_IN_COMPUTE=100 cannot_replay "code" compressed.sbt --device 0
STAND_IN_MEMORY=1000000 cannot_replay "memory" t.sbt
STAND_IN_OCCUPIED=0x200000100000 cannot_replay "0x2" t.sbt
STAND_IN_NO_VMM=1 cannot_replay "virtual memory" t.sbt
code=0
STAND_IN_MEMORY=1000000 "$TRACESMITH" replay t.sbt >stdout 2>stderr </dev/null || code=$?
[ $code -eq 4 ] || fail "too little memory: exit code $code: $(cat stderr)"
cannot_replay "target 'opencl' cannot run this trace, 'cuda' can" t.sbt --target opencl
STAND_IN_DEVICES=0 cannot_replay "NO_DEVICE" t.sbt
LD_LIBRARY_PATH='' cannot_replay "libcuda.so.1" t.sbt
STAND_IN_DRIVER=12080 "$TRACESMITH" replay t.sbt >stdout 2>stderr </dev/null || fail "another driver: $(cat stdout stderr)"
# Another release of the driver for the same version of CUDA: named after its library.
release() { # number
	mkdir "$1"
	cp "$programs/driver/libcuda.so.1" "$1/libcuda.so.$1"
	ln -s "libcuda.so.$1" "$1/libcuda.so.1"
}
release 580.65.06
release 570.1
LD_LIBRARY_PATH=$PWD/580.65.06 record release.sbt --replayable -- "$work" plain
LD_LIBRARY_PATH=$PWD/580.65.06 replays "the same driver" release.sbt
! grep -q "recorded with" replay.json || fail "the same driver: $(cat replay.json)"
LD_LIBRARY_PATH=$PWD/570.1 "$TRACESMITH" replay release.sbt >stdout 2>stderr </dev/null || fail "another driver: $(cat stdout stderr)"
grep -q "warning: recorded with driver 580.65.06, replayed with 570.1" stderr || fail "another driver: $(cat stdout stderr)"
LD_LIBRARY_PATH=$PWD/570.1 "$TRACESMITH" replay t.sbt >stdout 2>stderr </dev/null || fail "a driver that is not known: $(cat stdout stderr)"
! grep -q "recorded with" stderr || fail "a driver that is not known: $(cat stderr)"
echo "other machines are described"
