#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Metadata of processes: info and analyses say why there is no device activity.
. "$TS_SOURCE/tests/cli/lib.sh"

cat >d.json <<'JSON'
{"tracesmith": {"format": 1, "rows": {
   "process": [{"id": 1, "pid": 7, "name": "train"}, {"id": 2, "pid": 8, "name": "load"}],
   "thread": [{"id": 1, "process": 1, "tid": 7, "chrome": [7, 7]}],
   "meta": [{"process": 1, "key": "cuda_device_side", "value": {"state": "on"}},
            {"process": 1, "key": "cuda_device_side", "value": {"state": "off", "reason": "Nsight is at work"}},
            {"process": 2, "key": "cuda_other_calls", "value": {"cuUnheardOf": 3}},
            {"thread": 1, "key": "colour", "value": 5}]}},
 "traceEvents": [{"ph": "i", "name": "note", "pid": 7, "tid": 7, "ts": 3}]}
JSON
quietly import d.json -o d.sbt
"$TRACESMITH" info d.sbt | grep '^meta  *[^ 0-9]'
"$TRACESMITH" info d.sbt --json | python3 -c '
import json, sys
for fact in json.load(sys.stdin)["process_meta"]:
	print(fact)'
# How they ended: what was killed, and programs that failed; a child may just say no.
cat >x.json <<'JSON'
{"tracesmith": {"format": 1, "rows": {
   "process": [{"id": 1, "pid": 7, "name": "train", "exit_status": 256},
               {"id": 2, "pid": 8, "parent": 1, "name": "load", "exit_status": 11},
               {"id": 3, "pid": 9, "parent": 1, "name": "grep", "exit_status": 256},
               {"id": 4, "pid": 10, "parent": 1, "name": "rt", "exit_status": 40},
               {"id": 5, "pid": 11, "name": "fine", "exit_status": 0}]}},
 "traceEvents": []}
JSON
quietly import x.json -o x.sbt
t info x.sbt | grep '^failed'
t view x.sbt --table process --columns pid,name,exit_status
t analyze d.sbt launch-stacks
t analyze d.sbt advice
