#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Graphviz can draw the graph.
. "$TS_SOURCE/tests/cli/lib.sh"
. "$TS_SOURCE/tests/cli/dot.sh"

command -v dot >/dev/null || { echo "skip: no Graphviz (dot)"; exit 77; }
dependencies_json >d.json
quietly import d.json -o d.sbt
"$TRACESMITH" export -q d.sbt -f dot -o - | dot -Tsvg >g.svg 2>err.txt || fail "dot: $(cat err.txt)"
[ ! -s err.txt ] || fail "dot says: $(cat err.txt)"
# All nodes, with their unchanged names.
python3 - <<'PY'
import xml.etree.ElementTree as tree
titles = {element.text for element in tree.parse("g.svg").iter() if element.tag.endswith("title")}
assert {"gpu_op:0", "gpu_op:3", "gpu_op:4", "gpu_op:5", "api_call:0", "cluster_legend"} <= titles, titles
texts = " ".join(element.text or "" for element in tree.parse("g.svg").iter() if element.tag.endswith("text"))
assert 'odd "name" \\ {x|y}' in texts, texts
PY
