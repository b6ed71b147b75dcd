#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recordings that end before the program, and options that reach the agent.
. "$TS_SOURCE/tests/cli/live.sh"

# The time limit ends the recording; the program continues, and the tool waits for its exit code.
# On a busy machine it may be over before the program starts.
for duration in 300ms 5s 60s; do
	rm -f go err.txt
	"$TRACESMITH" record --duration $duration -o t.sbt -- "$emit" instants:10 await:go instants:10 exit:4 2>err.txt &
	recorder=$!
	await grep -q 'continues without being recorded' err.txt
	"$TRACESMITH" verify -q t.sbt
	ticks=$(rows t.sbt -n tick)
	touch go
	code=0
	wait $recorder || code=$?
	[ "$ticks" -eq 0 ] || break
done
echo "$ticks rows, exit $code"

# Strings are omitted, and so is the command line.
"$TRACESMITH" record -q --redact -o r.sbt -- "$emit" texts:3 instants:2
"$TRACESMITH" export r.sbt -o r.json
! grep -E 'secret|texts:3' r.json || fail "not redacted"
echo "$(rows r.sbt -n told) $(rows r.sbt -n tick)"

# Windows by step.
"$TRACESMITH" record -q --window steps:3-5 -o w.sbt -- "$emit" steps:10
rows w.sbt -n tick
"$TRACESMITH" record -q --window steps:2-9 --max-steps 4 -o w.sbt -- "$emit" steps:10
rows w.sbt -n tick

# One that never opens is reported.
"$TRACESMITH" record -q --window steps:30-40 -o w.sbt -- "$emit" steps:10 2>&1
"$TRACESMITH" record -q --window time:900s-901s -o w.sbt -- "$emit" instants:10 2>&1
"$TRACESMITH" record -q --window flag:no-flag -o w.sbt -- "$emit" instants:10 2>&1
"$TRACESMITH" record -q --window command -o w.sbt -- "$emit" instants:10 2>&1

# Folded stacks of a program that was not sampled.
"$TRACESMITH" record -q -o w.folded -- "$emit" instants:10 2>&1
wc -c <w.folded

# While the recorder is stopped, a small budget loses events; the message says so, and what to do.
# Every event is stored or counted.
rm -f ready go ended
"$TRACESMITH" record --budget 256K -o b.sbt -- "$emit" instants:10 make:ready await:go instants:50000 make:ended 2>err.txt &
recorder=$!
await [ -e ready ]
kill -STOP $recorder
touch go
await [ -e ended ]
kill -CONT $recorder
wait $recorder
summary <err.txt
"$TRACESMITH" verify b.sbt
"$TRACESMITH" view b.sbt --table loss --json | python3 -c '
import json, sys
lost = sum(json.loads(line)["count"] for line in sys.stdin)
print(lost > 0, lost + int(sys.argv[1]))' "$(rows b.sbt -n tick)"

# A recording at its size limit loses events, too, but not for want of buffers.
"$TRACESMITH" record --budget 256M --max-size 64K -o m.sbt -- "$emit" instants:50000 2>err.txt
grep 'when and why' err.txt
