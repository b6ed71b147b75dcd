#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# view, info, export, analyze and state of what is recorded of a process up to now: with a recorder,
# without one, and after its end.
. "$TS_SOURCE/tests/cli/live.sh"
names() { sed -E -e "s/\b($first|$second|$recorder)\b/PID/g" | sed -E 's/[0-9]+\.[0-9]+ [mu]?s/TIME/'; }
live_rows() { # argument of view...
	"$TRACESMITH" view "$@" --json | wc -l
}
has_rows() { [ "$(live_rows -p "$1" -n tick)" = "$2" ]; }

# Two processes in one recording.
export TRACESMITH_BACKENDS=host
"$TRACESMITH" record -q -o t.sbt -- sh -c '
	"$0" instants:100 make:first sleep:100000 & echo $! >first.pid
	"$0" instants:50 make:second sleep:100000 & echo $! >second.pid; wait' "$emit" 2>log &
recorder=$!
await [ -e first ]
await [ -e second ]
first=$(cat first.pid) second=$(cat second.pid)
await has_rows "$first" 100
await has_rows "$second" 50
echo "of one process: $(live_rows -p "$first" -n tick), of the other $(live_rows -p "$second" -n tick), of the recorder: $(live_rows -p $recorder -n tick)"
t view -p "$first" --name tick --limit 1 --columns category,name | names
"$TRACESMITH" info -p "$second" | sed -n '/^trace/p; s/^\(format  *SBT [0-9.]*, a snapshot\).*/\1/p' | names
"$TRACESMITH" info --json -p "$second" | python3 -c '
import json, sys
info = json.load(sys.stdin)
print(info["file"].split()[0], info["finished"], info["damaged_bytes"])'
# Counters of the process alone.
has_counters() { "$TRACESMITH" info -p "$first" --counters --json 2>/dev/null | grep -q '"memory'; }
await has_counters
"$TRACESMITH" info -p "$first" --counters --json | python3 -c '
import json, sys
pids = {counter.get("pid") for counter in json.load(sys.stdin)["counters"]}
print("counters of one process only:", pids == {int(sys.argv[1])})' "$first"
# An export has everything.
t export -p "$first" -f csv -t mark -o marks.csv | names | numbers
echo "marks exported: $(grep -c tick marks.csv)"
"$TRACESMITH" export -p "$recorder" -o now.json -q
echo "marks exported of the recorder: $(grep -c '"tick"' now.json)"
# It did not disturb anything.
kill "$first" "$second"
wait $recorder
"$TRACESMITH" verify -q t.sbt
echo "recorded: $(rows t.sbt -n tick)"

# Usage.
t state -p "$recorder" -p "$recorder" | names
t view
t view -p "$first" -p "$second" | names
t view -p emit
t info
t info -n x -p "$first" | names
t export -p "$first" t.sbt -o x.json | names
t export -p "$first" | names
t export -p 0 -o x.json

# Without a recorder, then after its end.
TRACESMITH_LIVE=1 "$emit" instants:100 spans:4 make:ready sleep:100000 &
first=$!
await [ -e ready ]
echo "without a recorder: $(live_rows -p $first -n tick)"
echo "analyzed: $("$TRACESMITH" analyze -p $first operators --json | grep -o '"calls": [0-9]*')"
quietly state -p $first
kill -9 $first
wait $first 2>/dev/null || true
echo "after its end: $(live_rows -p $first -n tick)"
t view -p $first --name nothing 2>&1 | names
quietly ps --clean
t view -p $first | names
sleep 100 &
first=$!
t info -p $first | names
kill $first
