#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --list shows commands with the values of their arguments, without a device: text, JSON, parts of a
# stream, checks, what cannot be replayed.
. "$TS_SOURCE/tests/cli/lib.sh"

for kind in plain killed native failed two bad-hash typed; do "$TS_BUILD/tests/targets/make_stream" $kind.sbt $kind; done
# No driver is needed: there is none.
export OCL_ICD_VENDORS=/nonexistent OCL_ICD_FILENAMES=
t replay plain.sbt --list
t replay plain.sbt --list=checks
t replay plain.sbt --list --kernel 'mix*'
t replay plain.sbt --list --from 5 --to 6
t replay plain.sbt --list --stream 1 -q
t replay native.sbt --list | grep -v exists
t replay native.sbt --list --skip-unsupported | grep -v exists
t replay failed.sbt --list | grep -v exists
t replay killed.sbt -l -q --from 6
t replay two.sbt --list --window 2 | grep -v exists
t replay typed.sbt --list --from 3
t replay typed.sbt --list --from 3 --json
# Images that exist before the window, for --png.
t replay typed.sbt --list | grep "memory 11"
t replay typed.sbt --list --json | grep '"number":11'
t replay plain.sbt --list=checks --json --from 5 --to 6
t replay plain.sbt --list --width 80 -q | grep NDRange
# On a terminal, lines are cut, not wrapped.
PYTHONPATH=$TS_SOURCE/tests/lib python3 - "$TRACESMITH" replay plain.sbt --list <<'PY'
import on_terminal, sys
lines = on_terminal.run(60, sys.argv[1:]).splitlines()
assert max(map(len, lines)) <= 60, lines
assert any(line.startswith("      3       0  clEnqueueNDRangeKernel(kernel=step_, ") and line.endswith("\u2026") for line in lines), lines
assert lines[-2].startswith("not shown at 60 columns: time, thread"), lines
PY
# Processes are told apart by their pid, and have numbers of their own.
"$TS_BUILD/tests/targets/make_stream" processes.sbt processes
t replay processes.sbt --list
t replay processes.sbt --list --process 4002 --from 6
t replay processes.sbt --list --process 1
t replay processes.sbt --list --process 'ma*'
# Commands and objects have one number: in the list, in the table and in its JSON.
t view typed.sbt --table command --columns sequence,kind,queue,object,other
"$TRACESMITH" view plain.sbt --table command --json >rows.json
"$TRACESMITH" view plain.sbt --table object --json >objects.json
"$TRACESMITH" replay plain.sbt --list --json >list.json
python3 - <<'PY'
import json
load = lambda name: [json.loads(line) for line in open(name)]
rows = {row["sequence"]: row for row in load("rows.json") if row["kind"] not in ("check", "close", "open")}
listed = {row["sequence"]: row for row in load("list.json") if "sequence" in row}
assert rows.keys() == listed.keys(), (rows, listed)
for number, row in rows.items():
    one = listed[number]
    assert row["kind"] == one["kind"] and row["queue"] == one["stream"] and row["pid"] == one["pid"], (row, one)
    assert row.get("object") == one.get("function", one.get("to")) and row.get("other") == one.get("from"), (row, one)
objects = {(o["kind"], o["number"]) for o in load("objects.json")}
assert objects == {(o["object"], o["number"]) for o in load("list.json") if "sequence" not in o}, objects
PY
# Streams of CUDA: grids, addresses, nodes of graphs, settings, address spaces.
"$TS_BUILD/tests/targets/make_stream" cuda.sbt cuda
t replay cuda.sbt --list=checks
t replay cuda.sbt --list --json
"$TS_BUILD/tests/targets/make_stream" cut.sbt cuda-cut
t replay cut.sbt --list | grep -v exists
# What it refuses.
t replay plain.sbt --list=everything
t replay plain.sbt --list -o out.sbt
t replay plain.sbt --list --at 3 --dump 10
t replay plain.sbt --list --target emulator
t replay plain.sbt --list --kernel gemm
# Whoever reads the list may stop.
"$TRACESMITH" replay plain.sbt --list 2>&1 | head -n 1
# All JSON lines are objects, and numbers are those of the commands.
"$TRACESMITH" replay plain.sbt --list --json | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
assert [row["sequence"] for row in rows if "sequence" in row] == [2, 3, 4, 5, 6], rows
assert [row["pid"] for row in rows] == [4001] * len(rows), rows'
