#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Self and total time of functions of known sampled stacks; recursion counts once. Idle threads do
# not count, unless asked for or if there are no others.
. "$TS_SOURCE/tests/cli/lib.sh"

cat >s.json <<'JSON'
{"tracesmith": {"format": 1, "rows": {
  "source": [{"id": 1, "name": "run", "rank": 3}],
  "process": [{"id": 1, "source": 1, "pid": 7, "name": "python3"}],
  "thread": [{"id": 1, "process": 1, "tid": 7, "name": "MainThread", "chrome": [7, 7]},
             {"id": 2, "process": 1, "tid": 9, "name": "worker", "chrome": [7, 9]}]}},
 "stackFrames": {
  "1": {"name": "main", "file": "/app/x.py", "line": 3, "kind": "python"},
  "2": {"name": "fib", "file": "/app/x.py", "line": 10, "kind": "python", "parent": "1"},
  "3": {"name": "fib", "file": "/app/x.py", "line": 11, "kind": "python", "parent": "2"},
  "4": {"name": "fib", "file": "/app/x.py", "line": 10, "kind": "python", "parent": "3"},
  "5": {"name": "poll", "file": "/lib/libc.so.6", "pc": 64, "kind": "native", "parent": "1"}},
 "traceEvents": [
  {"ph": "P", "name": "python", "pid": 7, "tid": 7, "ts": 100, "weight": 100000, "sf": 4},
  {"ph": "P", "name": "python", "pid": 7, "tid": 7, "ts": 200, "weight": 100000, "sf": 2},
  {"ph": "P", "name": "mark x", "pid": 7, "tid": 7, "ts": 250, "sf": 2},
  {"ph": "P", "name": "python", "pid": 7, "tid": 7, "ts": 300, "weight": 100000, "sf": 1, "tracesmith": {"state": "waiting for gil"}},
  {"ph": "P", "name": "python", "pid": 7, "tid": 7, "ts": 400, "weight": 100000, "sf": 5, "tracesmith": {"state": "idle"}},
  {"ph": "P", "name": "python", "pid": 7, "tid": 9, "ts": 400, "weight": 300000, "sf": 5, "tracesmith": {"state": "idle"}}]}
JSON
quietly import s.json -o s.sbt
t analyze s.sbt functions
t analyze s.sbt functions --idle
t analyze s.sbt functions --idle --json
t analyze s.sbt functions --json
t analyze s.sbt functions --from @0 --to @200000 --csv
t analyze s.sbt functions --rank 3 --top 1 --idle
t analyze s.sbt kernels --idle
t analyze s.sbt functions --from @400000
# Samples without a weight.
sed 's/"weight": [13]00000, //' s.json >counts.json
quietly import counts.json -o counts.sbt
t analyze counts.sbt functions
# A worker that ran in one of 25 samples is idle.
python3 - <<'PY'
import json

trace = json.load(open("s.json"))
ran = {"ph": "P", "name": "python", "pid": 7, "tid": 9, "ts": 0, "weight": 100000, "sf": 2}
waits = [dict(ran, ts=1000 + i, sf=5, tracesmith={"state": "idle"}) for i in range(23)]
trace["traceEvents"] += [ran, *waits]
json.dump(trace, open("worker.json", "w"))
PY
t analyze worker.json functions --top 1
make_trace t
t analyze t.sbt functions
