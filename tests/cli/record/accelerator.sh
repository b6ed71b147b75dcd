#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Device activity emitted by a program: calls with stacks, kernels, graphs, copies, memory; in
# windows, and when the program or the recorder is killed.
. "$TS_SOURCE/tests/cli/live.sh"

work=$TS_BUILD/tests/targets/accelerator_work

# summary TRACE: rows by table; number and minimum depth of launch stacks; columns of kernels.
summary() {
	"$TRACESMITH" verify "$1" || return
	"$TRACESMITH" view "$1" -t api_call,gpu_op,allocation,sample,loss --json | python3 -c '
import collections, json, sys
rows = collections.defaultdict(list)
for line in sys.stdin:
    row = json.loads(line)
    rows[row["table"]].append(row)
print({table: len(of) for table, of in sorted(rows.items()) if table != "loss"})
calls = {row["correlation"]: row for row in rows["api_call"] if "correlation" in row}
stacks = [row["stack"] for row in calls.values() if row["name"] == "cuLaunchKernel"]
print("launches from two places", len({json.dumps(stack) for stack in stacks}) >= 2, "with frames of the program",
      min(sum("accelerator_work" in frame.get("module", "") for frame in stack) for stack in stacks) >= 2)
ops = rows["gpu_op"]
for name, of in sorted(collections.Counter(row["name"] for row in ops).items()):
    print(name, of)
print("without a call", sum(row["correlation"] not in calls for row in ops))
kernels = [row for row in ops if row["kind"] == "kernel"]
print(sorted({(row["registers"], row["shared_bytes"], row.get("graph", 0), "stack" in row) for row in kernels}))
for row in rows["loss"]:
    print("lost", row["what"], row["count"])'
}

"$TRACESMITH" record -q --stacks native -o t.sbt -- "$work" launches:100 copies:50 graph:20 memory:10
summary t.sbt
"$TRACESMITH" view t.sbt -t allocation --json | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
print({(row["kind"], row["pool"], row["bytes"], row["total_bytes"], row["device"]) for row in rows} ==
      {("alloc", "cuMemAlloc_v2", 512, 512, 3), ("free", "cuMemAlloc_v2", 512, 0, 3)}, all(len(row["stack"]) > 1 for row in rows))'

# Without stacks.
"$TRACESMITH" record -q --stacks none -o t.sbt -- "$work" launches:10
"$TRACESMITH" view t.sbt -t api_call --json | grep -c '"stack"' || true

# The program is killed: its emitted events are there, and commands that had not run are counted.
bash -c '"$TRACESMITH" record -q --stacks native -o t.sbt -- "$0" launches:100 pending:7 kill' "$work" 2>/dev/null || true
summary t.sbt

# The recorder is killed; the program continues, and a successor has everything.
rm -f t.sbt*
setsid "$TRACESMITH" record -q --stacks native -o t.sbt -- "$work" launches:100 pending:3 graph:5 make:ready await:go launches:50 memory:2 copies:1 make:ended &
recorder=$!
await [ -e ready ]
program=$("$TRACESMITH" ps --json | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["pid"])')
await has_recorder "$program"
kill -9 $recorder
wait $recorder 2>/dev/null || true
touch go
await [ -e ended ]
await gone "$program"
quietly recover t.sbt -o good.sbt
summary good.sbt
"$TRACESMITH" record -q --resume t.sbt
summary t.sbt

# A window becomes its own file, with everything that its rows refer to.
rm -f t.sbt* ready go
"$TRACESMITH" record -q --stacks native --window command --split -o t.sbt -- \
	"$work" launches:5 make:ready await:go launches:40 graph:2 memory:1 make:ready2 await:go2 launches:5 &
recorder=$!
await [ -e ready ]
program=$("$TRACESMITH" ps --json | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["pid"])')
await has_recorder "$program"
quietly window "$program" open
touch go
await [ -e ready2 ]
quietly window "$program" close
touch go2
wait $recorder
summary t_pid*.sbt 2>/dev/null | sed -E "s/_pid[0-9_]+//"
