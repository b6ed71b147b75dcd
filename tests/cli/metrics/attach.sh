#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs without an agent are sampled as well: a running one, and one that cannot load it.
. "$TS_SOURCE/tests/cli/metrics.sh"

"$load" make:begun await:go cpu:600 sleep:300 say make:said await:over >truth &
pid=$!
await test -e begun
record -p $pid -o t.sbt --backends host 2>log &
recorder=$!
await holds t.sbt 'trace.times("memory_bytes", pid)' $pid
: >go
await test -e said
# A sample after all of its work.
await holds t.sbt 'trace.total("cpu_percent", "all", pid) > 100 * (json.load(open("truth"))["cpu_s"] - 0.1)' $pid
: >over
wait $recorder || fail "recording ends with $?: $(cat log)"
python3 - $pid <<'PY'
import json, sys
from metrics import Trace, near
trace, truth, pid = Trace("t.sbt"), json.load(open("truth")), int(sys.argv[1])
assert trace.pids() == {pid} and truth["pid"] == pid, trace.pids()
near(trace.total("cpu_percent", "all", pid) / 100, truth["cpu_s"], 0.05, 0.12, "CPU seconds")
assert trace.of("memory_bytes")
PY
"$TRACESMITH" view t.sbt --table process --json | grep metrics_load >/dev/null || fail "the process has no name"
