#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A killed recorder: a new one resumes, recover makes a trace, and a new recording of the same name
# keeps the leftovers. In each case every event is there once.
. "$TS_SOURCE/tests/cli/live.sh"

# kill_recorder: makes a recording t.sbt whose recorder is killed; the program continues in the
# background.
kill_recorder() {
	rm -f ready go ended t.sbt*
	setsid "$TRACESMITH" record -q -o t.sbt -- "$emit" instants:100 make:ready await:go instants:50 make:ended &
	recorder=$!
	await [ -e ready ]
	await has_recorder "$(program)"
	kill -9 $recorder
	wait $recorder 2>/dev/null || true
}
program() { "$TRACESMITH" ps --json | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["pid"])'; }

kill_recorder
"$TRACESMITH" ps --json | python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["mode"], r["recorder"])'
"$TRACESMITH" record --resume t.sbt 2>err.txt &
recorder=$!
await has_recorder "$(program)"
touch go
wait $recorder
summary <err.txt
"$TRACESMITH" verify t.sbt
rows t.sbt -n tick
t record --resume t.sbt

# The program has exited meanwhile.
kill_recorder
touch go
await [ -e ended ]
t recover t.sbt -o good.sbt | numbers # metrics are among them
"$TRACESMITH" verify good.sbt
rows good.sbt -n tick
# It can be repeated, and the trace can still be resumed.
t recover t.sbt -o good.sbt | numbers # metrics are among them
"$TRACESMITH" record -q --resume t.sbt
rows t.sbt -n tick

# A new recording of that name.
kill_recorder
touch go
await [ -e ended ]
t record -o t.sbt -- "$emit" instants:7 | summary
rows t.sbt -n tick
quietly recover t.1.sbt -o good.sbt
rows good.sbt -n tick
