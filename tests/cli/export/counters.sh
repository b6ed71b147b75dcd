#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Counters of the machine, of processes and of devices: where viewers find them, and re-imported.
. "$TS_SOURCE/tests/cli/lib.sh"

# $1 is the pid of a process.
metrics_json() {
	cat <<JSON
{"tracesmith": {"format": 1, "rows": {
  "source": [{"id": 1, "name": "run"}],
  "process": [{"id": 1, "source": 1, "pid": $1, "name": "train"}],
  "device": [{"id": 1, "source": 1, "number": 0, "name": "Fast 1"}, {"id": 2, "source": 1, "number": 0, "name": "Fast 1"}]}},
 "traceEvents": [
  {"ph": "C", "name": "cpu_percent", "cat": "system", "ts": 1, "args": {"user": 12.5, "system": 0.5}, "tracesmith": {"thread": null}},
  {"ph": "C", "name": "threads", "cat": "process", "ts": 2, "args": {"count": 3}, "tracesmith": {"thread": null, "process": 1}},
  {"ph": "C", "name": "x", "cat": "device", "ts": 3, "args": {"draw": 350.0},
   "tracesmith": {"thread": null, "device": 1, "name": "power_W"}},
  {"ph": "C", "name": "x", "cat": "device", "ts": 4, "args": {"draw": 5.0},
   "tracesmith": {"thread": null, "device": 2, "name": "power_W"}},
  {"ph": "C", "name": "x", "cat": "process", "ts": 5, "args": {"used": 4096},
   "tracesmith": {"thread": null, "device": 1, "process": 1, "name": "memory_bytes"}}
]}
JSON
}

for pid in 100 0; do
	metrics_json $pid >m.json
	quietly import m.json -o m.sbt
	t export -q m.sbt -o m.chrome.json
	grep '"ph":"[CM]"' m.chrome.json
	quietly import m.chrome.json -o back.sbt
	cmp <("$TRACESMITH" view --json m.sbt) <("$TRACESMITH" view --json back.sbt) || fail "round trip"
	for table in source process thread device; do
		cmp <("$TRACESMITH" view --json -t $table m.sbt) <("$TRACESMITH" view --json -t $table back.sbt) ||
			fail "$table"
	done
done
t export m.sbt -f chrome-array -o -
