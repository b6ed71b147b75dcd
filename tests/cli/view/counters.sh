#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Counters show their subject, and values with units; JSON is exact.
. "$TS_SOURCE/tests/cli/lib.sh"

cat >m.json <<'JSON'
{"tracesmith": {"format": 1, "rows": {
  "source": [{"id": 1, "name": "run"}],
  "process": [{"id": 1, "source": 1, "pid": 100, "name": "train"}, {"id": 2, "source": 1, "pid": 200}],
  "thread": [{"id": 1, "process": 1, "tid": 101, "name": "main", "chrome": [100, 101]}],
  "device": [{"id": 1, "source": 1, "number": 0, "name": "Fast 1"}, {"id": 2, "source": 1, "number": 1}]}},
 "traceEvents": [
  {"ph": "C", "name": "cpu_percent", "cat": "system", "ts": 1, "args": {"user": 12.345678, "system": 0.5},
   "tracesmith": {"thread": null}},
  {"ph": "C", "name": "memory_bytes", "cat": "process", "ts": 2, "args": {"rss": 1610612737, "vms": 5000},
   "tracesmith": {"thread": null, "process": 1}},
  {"ph": "C", "name": "threads", "cat": "process", "ts": 3, "args": {"count": 12345},
   "tracesmith": {"thread": null, "process": 2}},
  {"ph": "C", "name": "Fast 1 0 power_W", "cat": "device", "ts": 4, "args": {"draw": 350.25, "note": "hot"},
   "tracesmith": {"thread": null, "device": 1, "name": "power_W"}},
  {"ph": "C", "name": "device 1 pcie_bytes_per_s", "cat": "device", "ts": 5, "args": {"received": 1048576.0, "sent": 0.0},
   "tracesmith": {"thread": null, "device": 2, "name": "pcie_bytes_per_s"}},
  {"ph": "C", "name": "Fast 1 0 memory_bytes", "cat": "process", "ts": 6, "args": {"used": 4096},
   "tracesmith": {"thread": null, "device": 1, "process": 2, "name": "memory_bytes"}},
  {"ph": "C", "name": "queue", "cat": "app", "pid": 100, "tid": 101, "ts": 7,
   "args": {"length": 9007199254740993, "full": false, "nothing": null, "deep": [1]}}
]}
JSON
quietly import m.json -o m.sbt
t view m.sbt
t view m.sbt --json
t view m.sbt --process 100 --columns where,name
t view m.sbt --process 200 --columns where,name
t view m.sbt --process train --columns where,name
t view m.sbt --device 0 --columns where,name
t view m.sbt --name '*_bytes*' --columns process,device,thread,name
t view m.sbt --thread main --columns where,name
