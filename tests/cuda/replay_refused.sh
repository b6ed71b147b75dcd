#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is not captured prevents a window or ends it, with its name; the program runs on.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda_replay.sh"

"$refused" list >list
count=0
refuses() { # reason, record's option..., --, program...
	record t.sbt --replayable "${@:2}"
	cannot_replay "$1" t.sbt
	grep -qF -- "$1" recorded.log || fail "${*:2}: record does not say '$1': $(cat recorded.log)"
}
while IFS='|' read -r mode reason lasts; do
	refuses "$reason" -- "$refused" "$mode"
	count=$((count + 1))
	# What it has made is there when a window is to open.
	[ -z "$lasts" ] || refuses "$reason" --window steps:2-3 --window-timeout 100ms -- "$refused" "$mode" early
done <list
[ $count -gt 0 ] && [ $count -eq "$(wc -l <list)" ] || fail "only $count kinds"

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
