#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that exits before its first or second sample: nothing wrong is recorded, and nothing
# waits.
. "$TS_SOURCE/tests/cli/metrics.sh"

for words in cpu:20 sleep:10 spawn:1; do
	record -q -o t.sbt -- "$load" $words || fail "exit code $?"
	quietly verify -q t.sbt
	python3 -c '
from metrics import Trace
trace = Trace("t.sbt")
assert all(row["args"].get("rss", 1) > 0 for row in trace.rows), "an ended process has no memory, not none"'
done
# Its exit code is passed on.
code=0
record -q -o t.sbt -- bash -c 'exit 7' || code=$?
[ $code -eq 7 ] || fail "exit code $code"
# Many of them, one after another.
record -q -o many.sbt -- bash -c 'for i in {1..60}; do /bin/true; done; until [ -e over ]; do sleep 0.05; done' &
recorder=$!
await holds many.sbt 'trace.of("memory_bytes")'
: >over
wait $recorder || fail "exit code $?"
quietly verify -q many.sbt
python3 -c '
from metrics import Trace
assert Trace("many.sbt").of("memory_bytes"), "the machine is not sampled"'
