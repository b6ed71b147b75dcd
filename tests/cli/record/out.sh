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

# If the output cannot be written, the trace is elsewhere, and the program says so.
export TMPDIR=$PWD/tmp
mkdir tmp
here() { sed -E "s#$(pwd -P)#HERE#g; s#tracesmith-$(id -u)#tracesmith-UID#; s/-[0-9a-f]{8}\./-SESSION./"; }
# The recorder may still give native frames their names.
cleared() { rm -r tmp/tracesmith-* 2>/dev/null; }
ends_elsewhere() { # output, events
	TRACESMITH_OUT=$1 "$emit" instants:"$2" 2>said || echo "exit $?"
	here <said
	await finished tmp/tracesmith-*/*.sbt
	rows tmp/tracesmith-*/*.sbt -n tick
	await cleared
}
mkdir taken.sbt
ends_elsewhere taken.sbt 10
await test -s taken.sbt.log
here <taken.sbt.log
ends_elsewhere none/q.sbt 11
# Somebody has locked the old trace, which stays.
cp t.sbt locked.sbt
exec 9<locked.sbt
flock -s 9
ends_elsewhere locked.sbt 12
exec 9<&-
cmp t.sbt locked.sbt
# A child says it no second time, and is in the same trace.
TRACESMITH_OUT=none/q.sbt "$emit" instants:1 fork instants:2 2>said
here <said
await finished tmp/tracesmith-*/q-*.sbt
rows tmp/tracesmith-*/q-*.sbt -n tick
await cleared
# Nowhere.
chmod 755 tmp && mkdir -m 777 "tmp/tracesmith-$(id -u)"
chmod 777 "tmp/tracesmith-$(id -u)"
TRACESMITH_OUT=none/q.sbt "$emit" instants:10 2>&1 | here | sed 's/recover [0-9]*/recover PID/'
# No shared memory.
TRACESMITH_LIVE_DIR=$PWD/no/such TRACESMITH_OUT=t.sbt "$emit" instants:10 fork instants:3 2>&1 | here
# A recorder that does nothing.
TRACESMITH_RECORDER=/bin/true TRACESMITH_OUT=t.sbt "$emit" instants:10 2>&1 | here | sed 's/recover [0-9]*/recover PID/'
