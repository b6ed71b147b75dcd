#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Samples: the function in the table, the full stack in JSON.
. "$TS_SOURCE/tests/cli/lib.sh"

cat >s.json <<'JSON'
{"stackFrames": {"1": {"name": "main", "category": "app"}, "2": {"name": "work", "category": "app", "parent": "1"}},
 "traceEvents": [{"ph": "X", "name": "op", "pid": 1, "tid": 2, "ts": 1, "dur": 2, "sf": "1"}],
 "samples": [{"cpu": 0, "tid": 2, "ts": 1.5, "name": "cycles", "sf": "2", "weight": 3}]}
JSON
quietly import s.json -o s.sbt
t view s.sbt
t view s.sbt --json
t view s.sbt --table sample --name 'wo*'
t view s.sbt --table sample --name 'none*'
t view s.sbt --table frame,stack
# One line per frame, with everything known about it; a row without a stack is one line.
cat >p.json <<'JSON'
{"tracesmith": {"format": 1, "rows": {"process": [{"id": 1, "pid": 7}], "thread": [{"id": 1, "process": 1, "tid": 7, "chrome": [7, 7]}]}},
 "stackFrames": {"1": {"name": "main", "file": "/app/x.py", "line": 3, "kind": "python"},
                 "2": {"name": "poll", "file": "/lib/libc.so.6", "pc": 4096, "kind": "native", "parent": "1"},
                 "3": {"name": "", "pc": 255, "kind": "native", "parent": "2"}},
 "traceEvents": [{"ph": "P", "name": "python", "pid": 7, "tid": 7, "ts": 1, "weight": 1000000, "sf": 2, "tracesmith": {"state": "idle"}},
                 {"ph": "P", "name": "python", "pid": 7, "tid": 7, "ts": 2, "weight": 1000000, "sf": 3},
                 {"ph": "i", "name": "note", "pid": 7, "tid": 7, "ts": 3}]}
JSON
quietly import p.json -o p.sbt
t view p.sbt
t view p.sbt --stacks --columns time,name
t view p.sbt --table sample --json
t view p.sbt --table sample --json --columns start --stacks
