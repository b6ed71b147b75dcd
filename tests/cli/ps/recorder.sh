#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A recorder has its own area for what it measures, but is not listed as a program to record.
. "$TS_SOURCE/tests/cli/live.sh"

TRACESMITH_LIVE=1 "$emit" instants:100 make:ready await:done &
program=$!
await [ -e ready ]
"$TRACESMITH" record -q --backends host -o t.sbt -p $program &
recorder=$!
await has_recorder $program
pids() { "$TRACESMITH" ps --json "$@" | python3 -c '
import json, sys
print(*sorted(json.loads(line)["pid"] for line in sys.stdin))'; }
shows_recorder() { [ "$(pids --all)" = "$(printf '%s\n' $program $recorder | sort -n | xargs)" ]; }
await shows_recorder
[ "$(pids)" = $program ] || fail "$(pids) in place of $program"
touch ./done
wait $program $recorder
echo fine
