#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TRACESMITH_OUT: the program starts its own recorder, silently.
. "$TS_SOURCE/tests/cli/live.sh"
export TRACESMITH_RECORDER=$TRACESMITH

# The trace is complete, and no recorder has it.
finished() { [ -s "$1" ] && [ ! -e "$1.journal" ] && flock -n -x "$1" true; }
json_finished() { [ -s "$1" ] && [ ! -e "$1.sbt" ]; }

TRACESMITH_OUT=t.sbt "$emit" instants:100 fork instants:3 say:done
await finished t.sbt
"$TRACESMITH" verify t.sbt
rows t.sbt -n tick
TRACESMITH_OUT=t.json "$emit" instants:10
await json_finished t.json
python3 -c 'import json; print(len(json.load(open("t.json"))))'
# Two programs, one trace.
TRACESMITH_OUT=two.sbt "$emit" make:one instants:10 await:two &
TRACESMITH_OUT=two.sbt "$emit" make:two instants:20 await:one
wait
await finished two.sbt
rows two.sbt -n tick
# Each may start a recorder. One that comes second finds the trace in use, or the program already
# recorded and gone: both are silent.
"$TRACESMITH" record --detached --area 1-1-recorded -o two.sbt || echo "exit $?"
ls
# Errors go to a file beside it.
"$TRACESMITH" record --detached --area 1-1-missing -o none.sbt || echo "exit $?"
cat none.sbt.log
mkdir taken.sbt
TRACESMITH_OUT=taken.sbt "$emit" instants:10 || echo "exit $?"
await test -s taken.sbt.log
cat taken.sbt.log | sed "s#$(pwd -P)#HERE#"
