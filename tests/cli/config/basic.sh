#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Settings of a running program: shown, changed, and applied.
. "$TS_SOURCE/tests/cli/live.sh"

TRACESMITH_LIVE=1 "$emit" instants:10 make:a await:b instants:10 make:c await:d instants:5 make:e await:f &
program=$!
await [ -e a ]
"$TRACESMITH" config $program | awk '{ print $1 }'
"$TRACESMITH" config $program | grep -E 'budget|rings|enabled' | sed -E 's/ +[0-9.]+( [KM]iB)? +/ N\1 /'
"$TRACESMITH" config $program --json | python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["enabled"], r["mode"], r["step"])'
t config $program enabled=off | sed "s/$program/PID/"
t config $program sample_rate=10ms redact=off | sed "s/$program/PID/"
touch b
await [ -e c ]
"$TRACESMITH" config $program enabled=on max_steps=3 --json | python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["enabled"], r["max_steps"])'
touch d
await [ -e e ]
quietly recover $program -o t.sbt
rows t.sbt -n tick
t config $program enable=1 | sed "s/$program/PID/"
# An error changes nothing.
t config $program enabled=off mode=7 | sed "s/$program/PID/"
"$TRACESMITH" config $program --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["enabled"])'
t config $program budget=1 | sed "s/$program/PID/"
touch f
wait $program
t config
t config x
t config 999999999
t config $$ | sed "s/$$/PID/"
