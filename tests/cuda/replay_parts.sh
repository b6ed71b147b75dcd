#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Parts of a recording: steps, streams, one launch of a kernel; memory in the middle.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda_replay.sh"

record t.sbt --replayable=checked -- "$work" plain streams steps graph_captured
"$TRACESMITH" record --backends cuda -o said.sbt --replayable=checked -- "$work" plain >said 2>&1 </dev/null || fail "record: $(cat said)"
grep -q "ran one at a time" said || fail "record does not say that =checked changes the order: $(cat said)"
replays "steps" t.sbt --step 10-12 --check each --repeat 2
replays "a part" t.sbt --from 40 --to 80 --check each
replay_json 0 t.sbt --kernel 'mix#3' --repeat 5
replay_json 0 t.sbt --kernel 'add'
"$TRACESMITH" replay t.sbt --kernel 'mix#3' --repeat 5 >stdout 2>stderr </dev/null || fail "$(cat stdout stderr)"
grep -q "mix" stdout || fail "one kernel: $(cat stdout)"

CUDA_LAUNCH_BLOCKING=1 limit_seconds=100 replay_json 0 t.sbt --kernel 'add' --repeat 3 --time-limit 30

"$TRACESMITH" replay t.sbt --list -q >list 2>stderr || fail "--list: $(cat stderr)"
stream=$(sed -n 's/.*create stream \([0-9]*\).*/\1/p' list | sed -n 2p)
replay_json 0 t.sbt --stream "$stream"

# plain: fill(b, 7), then add.
fill=$(sed -n 's|^ *\([0-9]*\).*launch(kernel=fill.*|\1|p' list | head -n 1)
[ -n "$fill" ] || fail "no launch of 'fill' in the list: $(head list)"
"$TRACESMITH" replay t.sbt -q --at "$fill" --dump arg0:16 --as u32 >dump 2>stderr </dev/null || fail "--dump: $(cat stderr)"
for value in 7 8 9 10; do
	grep -qw $value dump || fail "--dump arg0: $(cat dump)"
done
# A dump does not change the order of commands, and is not compared.
"$TRACESMITH" replay t.sbt --at "$fill" --dump arg0:16 --repeat 2 >dump 2>stderr </dev/null || fail "--dump: $(cat stderr)"
grep -q "all memory compared between runs at the end" stderr || fail "--dump counts as compared: $(cat stderr)"
cannot_replay "'--png' needs '--dump', the number of an image" t.sbt --at "$fill" --dump arg0:16 --png picture.png
# Of a graph, memory is shown when all nodes have run. Here the last one is a copy.
graph=$(sed -n 's|^ *\([0-9]*\).*copy(graph=.*|\1|p' list | head -n 1)
[ -n "$graph" ] || fail "no launch of a graph in the list: $(head list)"
cannot_replay "the last node of a graph, which has no arguments ('--dump 0xADDRESS:BYTES' shows memory)" t.sbt --at "$graph" --dump arg0
# The arena has a number, too, and terabytes. It is not offered.
arena=$(sed -n 's/.*create memory \([0-9]*\) (device.*/\1/p' list)
cannot_replay "memory $arena is an address space: '--dump 0xADDRESS:BYTES' shows a part" t.sbt --at "$fill" --dump "$arena"
cannot_replay "there is no memory 999999 after command $fill; existing memory: " t.sbt --at "$fill" --dump 999999
grep -q "; '--dump 0xADDRESS' shows other memory" stderr || fail "addresses are not offered: $(cat stderr)"
! grep -qE "(: |, )${arena}[,;]" stderr || fail "the arena is offered: $(cat stderr)"
code=0
"$TRACESMITH" replay t.sbt --kernel 'nothing*' >stdout 2>stderr </dev/null || code=$?
[ $code -ne 0 ] || fail "a kernel that is not there: $(cat stdout)"
"$TRACESMITH" replay t.sbt --check each >stdout 2>stderr </dev/null || fail "--check each: $(cat stdout stderr)"
grep -q "run one at a time" stdout || fail "--check each does not say that it changes the order: $(cat stdout)"
"$TRACESMITH" info t.sbt >info 2>&1 || fail "info: $(cat info)"
echo "parts replay"
