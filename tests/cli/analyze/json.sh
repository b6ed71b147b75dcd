#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Structure of the JSON and CSV output: lists, objects of lists, several analyses; exact times.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
kineto_json 1 >u.json
quietly import t.json u.json -o two.sbt
"$TRACESMITH" analyze two.sbt breakdown --json >breakdown.json
"$TRACESMITH" analyze two.sbt overlap --json >overlap.json 2>notes.txt
"$TRACESMITH" analyze two.sbt kernels --json >kernels.json
"$TRACESMITH" analyze two.sbt breakdown,overlap kernels overlap --json >several.json 2>>notes.txt
"$TRACESMITH" analyze two.sbt all --json >all.json 2>>notes.txt
"$TRACESMITH" analyze two.sbt breakdown --csv >breakdown.csv
"$TRACESMITH" analyze two.sbt kernels --csv --table kernels >kernels.csv
"$TRACESMITH" analyze --list --json >list.json
python3 - <<'PY'
import csv, json
load = lambda name: json.load(open(name), parse_float=str)
breakdown, overlap, kernels, several, everything = map(
    load, ("breakdown.json", "overlap.json", "kernels.json", "several.json", "all.json"))
# gemm runs for 50.001 us from 60, the copy for 2 from 130: 19.999 us idle between them.
want = {"idle_us": "19.999", "compute_us": "50.001", "non_compute_us": "2.000", "kernel_time_us": "72.000"}
assert [row["rank"] for row in breakdown] == [0, 1], breakdown
for row in breakdown:
    assert {key: row[key] for key in want} == want, row
assert isinstance(overlap, list) and all(row["overlap_pct"] is None for row in overlap), overlap
assert isinstance(kernels, dict) and all(isinstance(rows, list) for rows in kernels.values()), kernels
assert several == {"breakdown": breakdown, "overlap": overlap, "kernels": kernels}
assert list(everything) == [row["name"] for row in load("list.json")]
assert everything["breakdown"] == breakdown and everything["kernels"] == kernels
def same(name, rows):
    found = list(csv.DictReader(open(name, newline="")))
    text = lambda v: "" if v is None else {True: "true", False: "false"}[v] if isinstance(v, bool) else str(v)
    assert found == [{key: text(value) for key, value in row.items()} for row in rows], found
same("breakdown.csv", breakdown)
same("kernels.csv", kernels["kernels"])
PY
[ -s notes.txt ] || fail "notes go to stderr"
