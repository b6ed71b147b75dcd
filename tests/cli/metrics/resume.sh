#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A killed recorder loses no stored metrics, and its successor continues.
. "$TS_SOURCE/tests/cli/metrics.sh"

"$TRACESMITH" record -q -o t.sbt --backends host -- "$load" make:begun await:over &
recorder=$!
await test -e begun
pid=$(cat begun)
await has_recorder "$pid"
recorded='min(len(trace.times("memory_bytes")), len(trace.times("memory_bytes", pid)))'
await holds t.sbt "$recorded >= 5" "$pid"
kill -KILL $recorder
wait $recorder 2>/dev/null || true
copy_written t.sbt
mv copy/good.sbt before.sbt
sleep 0.5
record --resume t.sbt --backends host 2>log &
successor=$!
await has_recorder "$pid"
await holds t.sbt "$recorded >= 6 + len(Trace('before.sbt').times('memory_bytes'))" "$pid"
: >over
wait $successor || fail "the successor ends with $?: $(cat log)"
await gone "$pid"
quietly verify -q t.sbt
python3 - "$pid" <<'PY'
import sys
from metrics import Trace
before, trace, pid = Trace("before.sbt"), Trace("t.sbt"), int(sys.argv[1])
for whose in pid, None:
    stored, times = before.times("memory_bytes", whose), trace.times("memory_bytes", whose)
    # Each clock comparison makes earlier times more exact, by less than a microsecond here.
    assert all(abs(a - b) < 1e-3 for a, b in zip(stored, times)), "rows before the kill are lost or come twice"
    assert len(times) >= len(stored) + 5, (len(stored), len(times))
    assert times[len(stored)] - stored[-1] >= 0.4, "rows while there was no recorder"
    assert len(set(times)) == len(times)
PY
