#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What scripts/demo shows of CUDA: a window of examples/cuda_pipeline.c replays, one of its kernels
# is timed, and without an event between its streams there is a race.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda_replay.sh"

pipeline=$TS_BUILD/examples/cuda_pipeline
[ -x "$pipeline" ] || { echo "skip: the examples were not built"; exit 77; }
"$pipeline" >first 2>stderr || fail "the program fails: $(cat stderr)"
"$pipeline" --steps 20 >second 2>stderr || fail "the program fails: $(cat stderr)"
cmp first second || fail "its result differs"
record t.sbt --replayable --window steps:10-14 -- "$pipeline"
cmp first printed || fail "its result differs when it is recorded: $(cat printed)"
replays "five steps" t.sbt --check each --repeat 3
replays "five steps" t.sbt --repeat 3
replay_json 0 t.sbt --kernel 'mix#2' --repeat 5
report 'r["timed"]["warm_ns"] > 0' | grep -q True || fail "the kernel was not timed: $(cat replay.json)"

record race.sbt --replayable --window steps:10-14 -- "$pipeline" --race
replay_json 1 race.sbt --check each --repeat 8
[ "$(report 'r["verdict"]')" = nondeterministic ] || fail "a race: $(cat replay.json)"
case $(report 'r["kernel"]') in prepare | mix) ;; *) fail "a race: $(cat replay.json)" ;; esac
echo "the demo's program replays"
