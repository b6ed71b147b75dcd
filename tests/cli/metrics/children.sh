#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Children have their own metrics a second after they start; shorter ones are included in the times
# of their parent.
. "$TS_SOURCE/tests/cli/metrics.sh"

record -q -o t.sbt --backends host -- "$load" make:begun await:go cpu:300 fork:over make:child await:listed cpu:1000 make:computed await:sampled say >truth &
recorder=$!
await test -e begun
parent=$(cat begun)
await holds t.sbt 'trace.times("cpu_percent", pid)' "$parent"
: >go
await test -e child
child=$(cat child)
await holds t.sbt 'trace.times("cpu_percent", pid)' "$child"
: >listed
await test -e computed
copy_written t.sbt >/dev/null
rows=$(count cpu_percent "$child")
await holds t.sbt "len(trace.times('cpu_percent', pid)) >= $rows + 2" "$child"
: >sampled
await gone "$child"
await holds t.sbt 'trace.total("children_cpu_percent", "ended", pid) > 95 * json.load(open("truth"))["cpu_s"]' "$parent"
: >over
wait $recorder || fail "recording ends with $?"
python3 - <<'PY'
import json
from metrics import Trace, near
trace, child = Trace("t.sbt"), json.load(open("truth"))
assert len(trace.pids()) == 2 and child["pid"] in trace.pids(), trace.pids()
(parent,) = trace.pids() - {child["pid"]}
near(trace.total("cpu_percent", "all", child["pid"]) / 100, child["cpu_s"], 0.05, 0.12, "CPU of the child")
near(trace.total("cpu_percent", "all", parent) / 100, 0.3, 0.05, 0.12, "CPU of its parent")
# The parent's total includes it once the parent has waited; processes are listed once a second.
near(trace.total("children_cpu_percent", "ended", parent) / 100, child["cpu_s"], 0.05, 0.05, "CPU of ended children")
PY

# 40 children of 20 ms, which come and go between two samples.
rm begun go over
record -q -o u.sbt --backends host -- "$load" make:begun await:go spawn:40 say await:over >truth &
recorder=$!
await test -e begun
parent=$(cat begun)
await holds u.sbt 'trace.times("cpu_percent", pid)' "$parent"
: >go
await test -s truth
await holds u.sbt 'trace.total("children_cpu_percent", "ended", pid) > 93 * json.load(open("truth"))["children_cpu_s"]' "$parent"
: >over
wait $recorder || fail "recording ends with $?"
python3 - <<'PY'
import json
from metrics import Trace, near
trace, truth = Trace("u.sbt"), json.load(open("truth"))
near(trace.total("children_cpu_percent", "ended", truth["pid"]) / 100, truth["children_cpu_s"], 0.1, 0.06, "CPU of short children")
PY
