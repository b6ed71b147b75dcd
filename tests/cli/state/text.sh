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
# The same as a trace, and twice as ranks, which nothing ties together.
quietly import t.json -o t.sbt
"$TRACESMITH" state t.json >a
"$TRACESMITH" state t.sbt >b
cmp a b
