#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Signals to the recorder: forwarded to the program or ending the recording.
. "$TS_SOURCE/tests/cli/live.sh"

# start NAME options...: starts a recording in the background; sets $recorder to its pid.
start() {
	rm -f ready
	"$TRACESMITH" record "$@" 2>err.txt &
	recorder=$!
	await [ -e ready ]
}
finished() {
	local code=0
	wait "$recorder" || code=$?
	echo "$1: exit $code"
	"$TRACESMITH" verify t.sbt
}

# TERM, USR1 and USR2 are forwarded, and the program's exit code counts.
for name in TERM USR1 USR2; do
	start -q -o t.sbt -- bash -c "trap 'exit 9' $name; touch ready; while :; do sleep 0.02; done"
	kill -s $name $recorder
	finished $name
done
# A program without a handler dies of it, and so does the recorder.
start -q -o t.sbt -- "$emit" instants:10 make:ready sleep:100000
kill -TERM $recorder
finished death
rows t.sbt -n tick
# Signals ignored by the caller stay ignored, by both.
rm -f ready
(
	trap '' HUP
	exec "$TRACESMITH" record -q -o t.sbt -- sh -c 'touch ready; while [ ! -e go ]; do sleep 0.02; done'
) &
recorder=$!
await [ -e ready ]
kill -HUP $recorder
touch go
finished ignored
# The program's own kill(0) is not sent back to it.
code=0
setsid "$TRACESMITH" record -q -o t.sbt -- bash -c 'n=0; trap "n=\$((n + 1))" USR1; kill -USR1 0; sleep 0.2; exit $((n + 20))' || code=$?
echo "own: exit $code"
# Without a program a signal finishes the recording.
rm -f ready
TRACESMITH_LIVE=1 "$emit" instants:10 make:ready await:done &
program=$!
await [ -e ready ]
"$TRACESMITH" record -q -o t.sbt -p $program &
recorder=$!
await has_recorder $program
kill -INT $recorder
finished attached
rows t.sbt -n tick
touch "done"
wait $program
