#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The sampling interval of a process changes at run time, and 0 pauses sampling.
. "$TS_SOURCE/tests/cli/metrics.sh"

record -q -o t.sbt --backends host -- "$load" make:begun await:over &
recorder=$!
await test -e begun
pid=$(cat begun)
await "$TRACESMITH" config "$pid"
times='trace.times("cpu_percent", pid)'
await holds t.sbt "len($times) >= 12" "$pid"
slow=$(count cpu_percent "$pid")
"$TRACESMITH" config "$pid" --json | grep '"sample_rate":0.1' >/dev/null || fail "it does not begin with 0.1 s"
"$TRACESMITH" config "$pid" sample_rate=0.02 >/dev/null
# On a busy machine some samples are late.
await holds t.sbt "len([a for a, b in zip(${times}[$slow:], ${times}[$slow + 1:]) if b - a < 0.07]) > 10" "$pid"
"$TRACESMITH" config "$pid" sample_rate=0 >/dev/null
# The machine keeps the recorder's interval.
await holds t.sbt "len([t for t in trace.times('memory_bytes') if t > ${times}[-1]]) >= 12" "$pid"
paused=$(count cpu_percent "$pid")
"$TRACESMITH" config "$pid" probing.sample_rate=0.1 >/dev/null
await holds t.sbt "len($times) > $paused + 2" "$pid"
: >over
wait $recorder
python3 - "$pid" "$slow" "$paused" <<'PY'
import sys
from metrics import Trace
pid, slow, paused = map(int, sys.argv[1:])
times = Trace("t.sbt").times("cpu_percent", pid)
assert (times[slow - 1] - times[0]) / (slow - 1) > 0.08, times[:slow]
assert times[paused] - times[paused - 1] > 0.8, times[paused - 2:paused + 2]
PY

# --sample-interval is the initial interval; --sample-rate is the same in seconds.
for option in "--sample-interval 500ms" "--sample-rate 0.5"; do
	rm -f over u.sbt
	# shellcheck disable=SC2086
	record -q -o u.sbt --backends host $option -- "$load" await:over &
	recorder=$!
	await holds u.sbt 'trace.pids() and all(len(trace.times("memory_bytes", each)) >= 5 for each in [None, *trace.pids()])'
	: >over
	wait $recorder || fail "recording ends with $?"
	python3 -c '
from metrics import Trace
trace = Trace("u.sbt")
(pid,) = trace.pids()
for times in trace.times("memory_bytes", pid), trace.times("memory_bytes"):
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    assert gaps and gaps[len(gaps) // 2] > 0.3, times'
done
