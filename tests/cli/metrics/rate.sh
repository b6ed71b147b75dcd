#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The sampling interval of a process changes at run time, and 0 pauses sampling.
. "$TS_SOURCE/tests/cli/metrics.sh"

record -q -o t.sbt --backends host -- "$load" make:begun await:over &
recorder=$!
await test -e begun
pid=$(cat begun)
await "$TRACESMITH" config "$pid"
sleep 1.5
"$TRACESMITH" config "$pid" --json | grep '"sample_rate":0.1' >/dev/null || fail "it does not begin with 0.1 s"
"$TRACESMITH" config "$pid" sample_rate=0.02 >/dev/null
sleep 1.5
"$TRACESMITH" config "$pid" sample_rate=0 >/dev/null
sleep 3
"$TRACESMITH" config "$pid" probing.sample_rate=0.1 >/dev/null
sleep 1
: >over
wait $recorder
python3 - "$pid" <<'PY'
import sys
from metrics import Trace
trace, pid = Trace("t.sbt"), int(sys.argv[1])
times = trace.times("cpu_percent", pid)
gaps = [(b - a, a) for a, b in zip(times, times[1:])]
# The pause is the longest gap; it begins when the recorder sees the setting, which may take a while
# on a busy machine.
pause, since = max(gaps)
assert pause >= 1.0, pause
slow = [gap for gap, at in gaps if at < since - 2.2]
fast = [gap for gap, at in gaps if since - 1.0 < at < since]
# On a busy machine single samples are late, and the next one then follows sooner: only medians and
# counts show the interval.
assert len([gap for gap in fast if gap < 0.07]) > 5, (len(fast), fast[:5])
assert slow and sorted(slow)[len(slow) // 2] > 0.08, slow
assert [time for time in times if time > since + 1], "it does not go on behind the pause"
# The machine keeps the recorder's interval.
system = trace.times("memory_bytes")
assert max(b - a for a, b in zip(system, system[1:])) < pause
PY

# --sample-rate is the initial rate.
record -q -o u.sbt --backends host --sample-rate 0.5 -- "$load" sleep:2200
python3 -c '
from metrics import Trace
trace = Trace("u.sbt")
(pid,) = trace.pids()
for times in trace.times("memory_bytes", pid), trace.times("memory_bytes"):
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    assert gaps and gaps[len(gaps) // 2] > 0.3, times'
