#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Windows on command: with and without a recorder.
. "$TS_SOURCE/tests/cli/live.sh"

"$TRACESMITH" record -q --window command -o t.sbt -- "$emit" make:a await:b instants:10 make:c await:d instants:20 make:e await:f instants:40 &
recorder=$!
await [ -e a ]
touch b
await [ -e c ]
program=$(pgrep -P $recorder)
await has_recorder "$program"
# pids PROGRAM: prints the pids of this test as words.
pids() { sed -E -e "s/$program/PID/g" -e "s/$recorder/RECORDER/g"; }
t window "$program" open | pids
touch d
await [ -e e ]
t window "$program" close | pids
t window "$program" close | pids
touch f
wait $recorder
"$TRACESMITH" verify t.sbt
rows t.sbt -n tick
"$TRACESMITH" view t.sbt --table window --json | python3 -c '
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    print(row["opened_by"], row["closed_by"])'

rm -f a b c
TRACESMITH_LIVE=1 "$emit" instants:10 make:a await:b instants:20 make:c await:d instants:5 make:e await:f &
program=$!
rm -f d e f
await [ -e a ]
t window $program close | pids
touch b
await [ -e c ]
t window $program open | pids
touch d
await [ -e e ]
quietly recover $program -o f.sbt
rows f.sbt -n tick
touch f
wait $program

# A recorder that does not answer.
rm -f a b
"$TRACESMITH" record -q -o t.sbt -- "$emit" make:a instants:1 await:b &
recorder=$!
await [ -e a ]
program=$(pgrep -P $recorder)
await has_recorder "$program"
kill -STOP $recorder
t window "$program" close | pids
kill -CONT $recorder
touch b
wait $recorder
t window 1 | sed "s/ (see.*//"
t window x open | sed "s/ (see.*//"
t window 1 ajar | sed "s/ (see.*//"
t window 999999999 open
