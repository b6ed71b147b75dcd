#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A trace without device work: `all` leaves out what is empty, names may come first, operators by
# shape and in any order, steps of a program of our own.
. "$TS_SOURCE/tests/cli/live.sh"

cat >t.json <<'JSON'
{"schemaVersion": 1, "traceEvents": [
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 2, "ts": 0, "dur": 1000},
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 1, "tid": 2, "ts": 1000, "dur": 1200},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 100, "dur": 700, "args": {"Input Dims": [[2, 3], [3, 4]]}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 1100, "dur": 300, "args": {"Input Dims": [[8, 8], [8, 8]]}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 2, "ts": 1500, "dur": 20},
  {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 2, "ts": 1600, "dur": 20},
  {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 2, "ts": 1700, "dur": 20}]}
JSON
t analyze t.json all
"$TRACESMITH" analyze t.json all >after.txt
"$TRACESMITH" analyze all t.json | cmp - after.txt
"$TRACESMITH" analyze t.json all --json 2>/dev/null | python3 -c 'import json, sys; print(len(json.load(sys.stdin)), "analyses in JSON")'

echo "== names first"
"$TRACESMITH" analyze t.json steps operators >after.txt
"$TRACESMITH" analyze steps t.json operators | cmp - after.txt
"$TRACESMITH" analyze steps,operators t.json | cmp - after.txt
t analyze opertors t.json
# Ambiguous: a file of that name.
cp t.json steps
t analyze steps t.json
t analyze steps t.json operators
rm steps

echo "== operators"
t analyze t.json operators --by-shape
t analyze t.json operators --sort calls --top 1
t analyze t.json operators --sort time
t analyze t.json steps --by-shape

echo "== steps"
t analyze t.json steps --step-span ''
t analyze t.json steps --step-span aten::add
"$TRACESMITH" record -q --backends none -o steps.sbt -- "$emit" steps:5 spans:3 >/dev/null || fail "cannot record"
"$TRACESMITH" view steps.sbt --table mark --name step --columns name | head -n 3
"$TRACESMITH" analyze steps.sbt steps --json 2>/dev/null | python3 -c '
import json, sys
print(*(row["step"] for row in json.load(sys.stdin)["steps"]))'
