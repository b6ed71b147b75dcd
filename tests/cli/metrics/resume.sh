#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A killed recorder loses no stored metrics, and its successor continues.
. "$TS_SOURCE/tests/cli/metrics.sh"

"$TRACESMITH" record -q -o t.sbt --backends host -- "$load" make:begun await:over &
recorder=$!
await test -e begun
pid=$(cat begun)
await has_recorder "$pid"
sleep 1.2
kill -KILL $recorder
wait $recorder 2>/dev/null || true
sleep 0.5
record --resume t.sbt --backends host 2>log &
successor=$!
await has_recorder "$pid"
sleep 1.2
: >over
wait $successor || fail "the successor ends with $?: $(cat log)"
await gone "$pid"
quietly verify -q t.sbt
python3 - "$pid" <<'PY'
import sys
from metrics import Trace
trace, pid = Trace("t.sbt"), int(sys.argv[1])
for times in trace.times("memory_bytes", pid), trace.times("memory_bytes"):
    # Before and after a gap without a recorder; no row comes twice.
    hole, at = max((b - a, a) for a, b in zip(times, times[1:]))
    assert hole >= 0.4, hole
    before, after = [t for t in times if t <= at], [t for t in times if t > at]
    assert len(before) >= 5 and len(after) >= 5, (len(before), len(after))
    assert len(set(times)) == len(times)
PY
