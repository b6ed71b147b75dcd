#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sampled stacks: folded, as a speedscope profile, as a timeline.
. "$TS_SOURCE/tests/cli/lib.sh"

# Two processes with the same thread number; Python and native frames; an idle sample; one of an
# event; a counter.
cat >s.json <<'JSON'
{"tracesmith": {"format": 1, "rows": {
  "source": [{"id": 1, "name": "run"}],
  "process": [{"id": 1, "source": 1, "pid": 7, "name": "python3"}, {"id": 2, "source": 1, "pid": 8}],
  "thread": [{"id": 1, "process": 1, "tid": 7, "name": "MainThread", "chrome": [7, 7]},
             {"id": 2, "process": 1, "tid": 9, "name": "pin memory", "chrome": [7, 9]},
             {"id": 3, "process": 2, "tid": 9, "chrome": [8, 9]}]}},
 "stackFrames": {
  "1": {"name": "<module>", "file": "/app/train.py", "line": 40, "kind": "python"},
  "2": {"name": "step", "file": "/app/train.py", "line": 12, "kind": "python", "parent": "1"},
  "3": {"name": "forward", "file": "/venv/lib/python3.11/site-packages/torch/nn/linear.py", "line": 114, "kind": "python", "parent": "2"},
  "4": {"name": "at::addmm; \"x\"", "file": "/venv/lib/libtorch_cpu.so", "pc": 4096, "kind": "native", "parent": "3"},
  "5": {"name": "step", "file": "/app/train.py", "line": 13, "kind": "python", "parent": "1"}},
 "traceEvents": [
  {"ph": "P", "name": "python", "pid": 7, "tid": 7, "ts": 100, "weight": 100000, "sf": 4},
  {"ph": "P", "name": "python", "pid": 7, "tid": 9, "ts": 100, "weight": 100000, "sf": 2, "tracesmith": {"state": "idle"}},
  {"ph": "P", "name": "mark x", "pid": 7, "tid": 7, "ts": 150, "sf": 1},
  {"ph": "P", "name": "python", "pid": 7, "tid": 7, "ts": 200, "weight": 100000, "sf": 3},
  {"ph": "P", "name": "python", "pid": 8, "tid": 9, "ts": 200, "weight": 100000, "sf": 2},
  {"ph": "P", "name": "python", "pid": 7, "tid": 7, "ts": 300, "weight": 100000, "sf": 5},
  {"ph": "P", "name": "python", "pid": 7, "tid": 7, "ts": 400, "weight": 100000, "sf": 5},
  {"ph": "P", "name": "python", "pid": 7, "tid": 7, "ts": 900, "weight": 100000, "sf": 5},
  {"ph": "C", "name": "memory_bytes", "pid": 7, "tid": 7, "ts": 250, "args": {"rss": 4096}}]}
JSON
quietly import s.json -o s.sbt
t export --list
t export s.sbt -f folded -o -
t export s.sbt -f folded --no-idle --no-lines -o -
t export s.sbt -f folded --no-threads --count time -o -
t export s.sbt -f speedscope -o -
t export s.sbt -f speedscope --no-lines --no-idle -o -
t export s.sbt -f timeline -o -

# Data missing from the trace, and options of other formats. Spans take the place of samples.
make_trace t
t export t.sbt -f folded -o -
t export t.sbt -f folded -q --no-threads -o -
t export t.sbt -f speedscope -o -
t export t.sbt -f folded --count samples -o -
echo '{"traceEvents": [{"ph": "C", "name": "c", "pid": 1, "tid": 1, "ts": 1, "args": {"v": 1}}]}' >counter.json
quietly import counter.json -o counter.sbt
t export counter.sbt -f folded -o -
sed 's/, "weight": 100000//' s.json >counts.json
quietly import counts.json -o counts.sbt
t export counts.sbt -f folded --no-threads --no-lines -o -
t export counts.sbt -f folded --count time -o x
t export s.sbt -f folded --count cost -o x
t export s.sbt -f chrome --no-idle -o x
t export s.sbt -f timeline --count time -o x
t export s.sbt -f foldet -o x
[ ! -e x ] || fail "an output was made"
