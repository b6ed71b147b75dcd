#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Steps are shown with their numbers: those that a program announces (TS_STEP), and PyTorch's.
. "$TS_SOURCE/tests/cli/lib.sh"

cat >t.json <<'JSON'
{"traceEvents": [
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 1, "tid": 2, "ts": 0, "dur": 90},
  {"ph": "i", "s": "t", "cat": "step", "name": "step", "pid": 1, "tid": 2, "ts": 10, "args": {"loss": 0.5, "step": 41}},
  {"ph": "i", "s": "t", "cat": "step", "name": "step", "pid": 1, "tid": 2, "ts": 20, "args": {"step": -1}},
  {"ph": "i", "s": "t", "cat": "step", "name": "step", "pid": 1, "tid": 2, "ts": 30, "args": {"step": "one"}},
  {"ph": "i", "s": "t", "cat": "loop", "name": "step", "pid": 1, "tid": 2, "ts": 40, "args": {"step": 5}}]}
JSON
quietly import t.json -o t.sbt
t view t.sbt
t view t.sbt --table mark --columns name,args
t view t.sbt --table mark --limit 1 --json
