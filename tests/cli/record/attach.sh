#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Attaching to a running program: its buffered events, new events, and windows on command.
. "$TS_SOURCE/tests/cli/live.sh"

TRACESMITH_LIVE=1 "$emit" instants:100 make:ready await:a instants:10 make:b await:c instants:20 make:d await:e instants:40 &
program=$!
await [ -e ready ]
"$TRACESMITH" record -o t.sbt -p $program 2>err.txt &
recorder=$!
await has_recorder $program
[ "$(recorder_of $program)" = "$recorder" ] || fail "who records it?"
touch a
await [ -e b ]
t window $program close | sed -E "s/$program|$recorder/PID/g"
touch c
await [ -e d ]
t window $program close | sed -E "s/$program|$recorder/PID/g"
t window $program open | sed -E "s/$program|$recorder/PID/g"
touch e
wait $program
wait $recorder
summary <err.txt
"$TRACESMITH" verify t.sbt
rows t.sbt -n tick
