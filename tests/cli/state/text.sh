#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lanes, timeline and counts as text, for a trace with every state and most reasons.
. "$TS_SOURCE/tests/cli/lib.sh"
. "$TS_SOURCE/tests/cli/state.sh"

state_json >t.json
t state t.json
# In block characters if the locale has them; of some lanes; of a time range.
LC_ALL=C.UTF-8 t state t.json --stream 7
t state t.json --device 0 --from 50us --to 100us
t state t.json --device 5
# A few nanoseconds in this century: times that a double cannot tell apart.
cat >short.json <<'JSON'
{"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 0.001, "dur": 0.002, "args": {"device": 0, "stream": 7}},
{"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 0.004, "dur": 0.001, "args": {"device": 0, "stream": 7}}]}
JSON
t state short.json
# The same as a trace, and twice as ranks, which nothing ties together.
quietly import t.json -o t.sbt
"$TRACESMITH" state t.json >a
"$TRACESMITH" state t.sbt >b
cmp a b
