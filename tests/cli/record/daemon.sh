#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Processes that outlive the program are still followed; a signal ends the recording.
. "$TS_SOURCE/tests/cli/live.sh"

# The recorder waits half a second for a process that it has not seen yet: the program ends when its
# daemon has emitted.
until_ready='"$@"; until [ -e ready ]; do sleep 0.05; done'
"$TRACESMITH" record -o t.sbt -- bash -c "$until_ready" bash "$emit" instants:1 daemon instants:10 make:ready await:go instants:5 2>err.txt &
recorder=$!
await [ -e ready ]
await grep -q 'recording its child processes' err.txt
touch go
wait $recorder
rows t.sbt -n tick
rm -f ready go
code=0
"$TRACESMITH" record -o t.sbt -- bash -c "$until_ready" bash "$emit" instants:1 daemon instants:10 make:ready await:go 2>err.txt &
recorder=$!
await [ -e ready ]
await grep -q 'recording its child processes' err.txt
kill -INT $recorder
wait $recorder || code=$?
echo "exit $code"
rows t.sbt -n tick
touch go
grep -c 'nothing lost' err.txt
