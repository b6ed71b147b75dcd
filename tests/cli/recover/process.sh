#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recovers what a killed or running program holds in shared memory.
. "$TS_SOURCE/tests/cli/live.sh"

TRACESMITH_LIVE=1 "$emit" instants:100 threads:3 make:ready sleep:100000 &
program=$!
await [ -e ready ]
# A copy of a running one; the program's buffers are not consumed.
t recover $program -o live.sbt | sed "s/$program/PID/"
"$TRACESMITH" verify live.sbt
rows live.sbt -n tick
kill -9 $program
wait $program 2>/dev/null || true
t recover $program -o dead.sbt | sed "s/$program/PID/"
"$TRACESMITH" info dead.sbt | grep "^source.*tracesmith"
"$TRACESMITH" verify dead.sbt
rows dead.sbt -n tick
# By the file of its area, even in another directory.
mkdir elsewhere
cp live/* elsewhere/
area=$(basename live/*)
t recover elsewhere/"$area" -o copy.sbt | sed "s/$area/AREA/"
rows copy.sbt -n tick
t recover "$area" -o name.sbt | sed "s/$area/AREA/"
"$TRACESMITH" recover $program -o json.sbt --json -q | python3 -c 'import json, sys; print(json.load(sys.stdin))'
# Damaged and hostile areas give an error, or the intact part.
head -c 3000 elsewhere/"$area" >elsewhere/cut
t recover elsewhere/cut -o out.sbt
quietly ps --clean
t recover $program -o out.sbt | sed "s/$program/PID/g"
[ ! -e out.sbt ] || fail "an output was made"
[ -z "$(find . -name '*.journal')" ] || fail "a journal remains"
# Counts as `info` does: a begin and its end are one event.
TRACESMITH_LIVE=1 "$TS_BUILD/examples/emit_spans" --threads 1 --seconds 600 --rate 500 >/dev/null &
program=$!
spans() { "$TRACESMITH" recover $program -o spans.sbt --json 2>/dev/null | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["events"] < 100)' 2>/dev/null; }
await spans
kill -9 $program
wait $program 2>/dev/null || true
"$TRACESMITH" recover $program -o spans.sbt --json -q >recovered.json
"$TRACESMITH" info --json spans.sbt >info.json
python3 -c '
import json
recovered, info = (json.load(open(name))["events"] for name in ("recovered.json", "info.json"))
print("as many events as info says:", recovered == info, recovered if recovered != info else "")'
