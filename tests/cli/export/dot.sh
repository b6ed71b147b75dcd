#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The dependency graph as Graphviz: checked with a parser, deterministic, and in part.
. "$TS_SOURCE/tests/cli/lib.sh"
. "$TS_SOURCE/tests/cli/dot.sh"

dependencies_json >d.json
quietly import d.json -o d.sbt
t export -q d.sbt -f dot -o -
t export -q d.sbt -f dot -o g.dot
t export -q d.sbt -f dot -o again.dot
cmp g.dot again.dot || fail "not the same twice"
check_dot g.dot
t export d.sbt -f dot --limit 2 -o - | tee limited.dot | grep -E 'label="[0-9]+ of|^not exported'
t export -q d.sbt -f dot --from 0.07ms --to 0.09ms -o part.dot
check_dot part.dot

# Without devices.
echo '{"traceEvents": [{"ph": "X", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}' >none.json
quietly import none.json -o none.sbt
t export -q none.sbt -f dot -o none.dot
check_dot none.dot

# The edges are those that `state` shows.
"$TRACESMITH" state d.sbt --edges --csv >edges.csv
python3 - <<'PY'
import csv, re
shown = set()
for row in csv.DictReader(open("edges.csv")):
    if row["from_table"] in ("gpu_op", "api_call") and row["to_table"] in ("gpu_op", "api_call") and row["kind"] != "program":
        shown.add((f'{row["from_table"]}:{row["from_row"]}', f'{row["to_table"]}:{row["to_row"]}', row["kind"], row["inferred"] in ("1", "true", "yes")))
drawn = set()
for line in open("g.dot"):
    match = re.match(r'\t"([a-z_]+:\d+)" -> "([a-z_]+:\d+)" \[color=\w+(, style=dashed)?, tooltip="(\w+)', line)
    if match and match[4] != "program":
        drawn.add((match[1], match[2], match[4], match[3] is not None))
assert drawn == shown and len(drawn) > 4, (drawn ^ shown)
PY
