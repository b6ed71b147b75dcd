#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The derived table `edge`: every dependency of a small trace, and only those that overlap a time
# range.
. "$TS_SOURCE/tests/cli/lib.sh"
. "$TS_SOURCE/tests/cli/state.sh"

state_json >t.json
"$TRACESMITH" state t.json --edges --json >edges.json
"$TRACESMITH" state t.json --edges --csv >edges.csv
"$TRACESMITH" state t.json --edges --json --from 150us >late.json
"$TRACESMITH" state t.json --edges >edges.txt
python3 - <<'PY'
import csv, json
edges = json.load(open("edges.json"))
key = lambda e: (e["kind"], e["from_table"], e["from_point"], e["from_name"], e["to_table"], e["to_point"], e["to_name"])
keys = [key(edge) for edge in edges]
# Each command with a call is launched by it; stream 7 is in order; the host waited for the copy of
# stream 20.
assert keys.count(("launch", "api_call", "start", "cudaLaunchKernel", "gpu_op", "start", "gemm")) == 2, keys
assert ("stream", "gpu_op", "end", "gemm", "gpu_op", "start", "relu") in keys, keys
sync = [e for e in edges if e["kind"] == "sync"]
assert all(e["to_name"] == "cudaStreamSynchronize" and e["to_point"] == "end" for e in sync), sync
for e in edges:
    assert e["from_ns"] <= e["to_ns"] and round(e["slack_us"] * 1000) == e["to_ns"] - e["from_ns"], e
late = json.load(open("late.json"))
assert late and len(late) < len(edges) and all(e["to_ns"] >= 160000 for e in late), late
rows = list(csv.DictReader(open("edges.csv")))
assert len(rows) == len(edges) and rows[0]["kind"] == edges[0]["kind"], rows[:1]
text = open("edges.txt").read().splitlines()
assert len(text) == len(edges) + 1, text
PY
