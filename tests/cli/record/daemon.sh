#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Processes that outlive the program are still followed; a signal ends the recording.
. "$TS_SOURCE/tests/cli/live.sh"

"$TRACESMITH" record -o t.sbt -- "$emit" instants:1 daemon instants:10 make:ready await:go instants:5 2>err.txt &
recorder=$!
await [ -e ready ]
await grep -q 'recording its child processes' err.txt
touch go
wait $recorder
rows t.sbt -n tick
rm -f ready go
code=0
"$TRACESMITH" record -o t.sbt -- "$emit" instants:1 daemon instants:10 make:ready await:go 2>err.txt &
recorder=$!
await [ -e ready ]
await grep -q 'recording its child processes' err.txt
kill -INT $recorder
wait $recorder || code=$?
echo "exit $code"
rows t.sbt -n tick
touch go
grep -c 'nothing lost' err.txt
