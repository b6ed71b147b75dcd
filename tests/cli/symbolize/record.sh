#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# record resolves frames at its end, unless disabled; recover says how to resolve them; a killed
# symbolize leaves a valid trace.
. "$TS_SOURCE/tests/cli/live.sh"

work=$TS_BUILD/tests/targets/accelerator_work
symbols() { "$TRACESMITH" view "$1" --table symbol --json | wc -l; }
names() { "$TRACESMITH" view "$1" --table gpu_op --stacks --json | grep -c '"func":"main"' || true; }

"$TRACESMITH" record -q --stacks native -o named.sbt -- "$work" launches:20
[ "$(symbols named.sbt)" -gt 0 ] || fail "no names"
echo "with main: $(names named.sbt)"
"$TRACESMITH" record -q --stacks native --no-symbols -o bare.sbt -- "$work" launches:20
echo "without names: $(symbols bare.sbt) $(names bare.sbt)"
cp bare.sbt killed.sbt
quietly symbolize bare.sbt
echo "later: $(names bare.sbt)"

# Killed at any instant.
for wait in 0.001 0.003 0.006 0.01 0.02; do
	cp killed.sbt k.sbt
	"$TRACESMITH" symbolize -q k.sbt &
	pid=$!
	sleep $wait
	kill -9 $pid 2>/dev/null || true
	wait $pid 2>/dev/null || true
	"$TRACESMITH" view k.sbt --table gpu_op --json 2>/dev/null | wc -l | grep -qx 20 || fail "rows are gone"
done
echo "killed: whole"
"$TRACESMITH" recover killed.sbt -o saved.sbt 2>&1 | grep symbolize
