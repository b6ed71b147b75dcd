#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recovers the intact part of a truncated or damaged trace, and reports the rest.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
size=$(stat -c %s t.sbt)
# A missing index loses nothing.
head -c $((size - 10)) t.sbt >cut.sbt
t recover cut.sbt -o good.sbt | numbers
t verify good.sbt
cmp <("$TRACESMITH" view --json -t slice,gpu_op,api_call t.sbt) <("$TRACESMITH" view --json -t slice,gpu_op,api_call good.sbt)
# Nothing is kept of what cannot be written.
t recover cut.sbt -o /dev/full
# A damaged chunk, here that of gpu_op, is omitted, and the trace says so.
cp t.sbt bad.sbt
damage_chunk bad.sbt 11
t recover bad.sbt -o good.sbt | numbers
t verify good.sbt
"$TRACESMITH" info good.sbt | sed '/^table/,/^$/d' | grep '^loss' | numbers
"$TRACESMITH" view good.sbt --columns table | sort -u
"$TRACESMITH" recover bad.sbt -o json.sbt --json -q >out.json
python3 -c '
import json
r = json.load(open("out.json"))
print(sorted(r), r["damaged_bytes"] > 0, r["rows"] > 0)'
