#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Samples: the function in the table, the whole stack in JSON.
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
