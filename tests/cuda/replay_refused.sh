#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is not captured prevents a window or ends it, with its name; the program runs on.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda_replay.sh"

count=0
while IFS='|' read -r mode reason; do
	record t.sbt --replayable -- "$refused" "$mode"
	cannot_replay "$reason" t.sbt
	grep -qF -- "$reason" recorded.log || fail "$mode: record does not say '$reason': $(cat recorded.log)"
	count=$((count + 1))
done < <("$refused" list)
[ $count -ge 17 ] || fail "only $count kinds"

# The arena has to exist before the first allocation.
"$work" endless >running 2>&1 &
pid=$!
trap 'kill -KILL $pid 2>/dev/null || true; rm -rf "$live"' EXIT
wait_until 60 grep -q round running || fail "the program does not start"
code=0
timeout 60 "$TRACESMITH" record -q -o p.sbt -p $pid --replayable >stdout 2>stderr </dev/null || code=$?
[ $code -ne 0 ] || fail "record -p --replayable succeeds: $(cat stdout stderr)"
kill -0 $pid || fail "the program has died"
kill -KILL $pid
wait $pid 2>/dev/null || true
echo "$count kinds are refused"
