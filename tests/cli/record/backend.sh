#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A third-party backend, the example in examples/backends: what its descriptor adds to record and
# doctor.
. "$TS_SOURCE/tests/cli/live.sh"

export LD_LIBRARY_PATH=$TS_BUILD/examples/backends:$TS_BUILD/tests/backends${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset TRACESMITH_BACKENDS SLEEPS_RECORDED
shown() { "$TRACESMITH" view "$1" --json | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
print(sorted(row["args"]["requested_ms"] for row in rows if row.get("category") == "sleeps"))'; }

echo "-- options, in --help and in the program"
"$TRACESMITH" record --help | grep -c sleeps || true
"$TRACESMITH" record --backends host,sleeps --help | grep -A 2 -e '--sleeps-at-least'
"$TRACESMITH" record --backends sleeps --help | tr -s ' \n' ' ' | grep -o 'from the N-th sleep on (sleeps:N)'
"$TRACESMITH" record --backends sleeps -o t.sbt -- bash -c 'sleep 0.02; sleep 0.01' 2>&1 | grep sleeps
shown t.sbt
"$TRACESMITH" record --sleeps-at-least 15 --backends=sleeps -q --json -o t.sbt -- bash -c 'sleep 0.02; sleep 0.01' | grep -o '"sleeps":.*'
shown t.sbt
TRACESMITH_BACKENDS=sleeps t record --sleeps-at-least soon -- true
t record --sleeps-at-least 15 -- true
t record --backends sleeps --sleeps-at-least 15 -p 1

echo "-- its library and its variable"
"$TRACESMITH" record -q --backends sleeps -o t.sbt -- bash -c 'echo "$SLEEPS_RECORDED ${LD_PRELOAD//$TS_BUILD/BUILD}"'
SLEEPS_RECORDED=mine "$TRACESMITH" record -q --backends sleeps -o t.sbt -- bash -c 'echo "$SLEEPS_RECORDED"'
"$TRACESMITH" record -q --backends host -o t.sbt -- bash -c 'echo "${SLEEPS_RECORDED-none} ${LD_PRELOAD//$TS_BUILD/BUILD}"'

echo "-- a window"
"$TRACESMITH" record --backends sleeps --window sleeps:3 -o t.sbt -- python3 -c '
import time
for i in range(5): time.sleep(0.005)' 2>&1 | grep sleeps
"$TRACESMITH" view t.sbt -t window --json | grep -o '"opened_by":"[^"]*"'
[ "$("$TRACESMITH" view t.sbt -t mark --json | grep -c '"sleeps"')" = 3 ] || fail "not from the third sleep on"
"$TRACESMITH" record -q --backends sleeps --window sleeps:3 -o t.sbt -- sleep 0.01 2>&1
t record --backends sleeps --window sleeps:x -- true
t record --window sleeps:3 -- true

echo "-- checks of doctor"
checked() { "$TRACESMITH" doctor --limit 60 --json "$@" | python3 -c '
import json, sys
for check in json.load(sys.stdin)["checks"]:
    print(check["id"], check["group"], check["state"], check["why"], check["fix"])'; }
checked sleeps
SLEEPS_BROKEN=1 checked sleeps
TRACESMITH_BACKENDS=sleeps checked sleeps_clock
t doctor nosuch

echo "-- one of an older interface"
"$TRACESMITH" record --backends older,host -q -o t.sbt -- true 2>&1
"$TRACESMITH" view t.sbt --json | grep -o '"outcome":"[^"]*"'
