#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Truncated, damaged and invalid traces.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
head -c -40 t.sbt >cut.sbt
t view cut.sbt --columns name --limit 2 2>&1 | numbers
cmp <("$TRACESMITH" view --json t.sbt) <("$TRACESMITH" view --json cut.sbt 2>/dev/null) || fail "cut"
t view missing.sbt
echo "no trace" >notes.txt
t view notes.txt
# An error names chunk and byte of a damaged payload; rows of other tables are still shown.
cp t.sbt bad.sbt
damage_chunk bad.sbt 11
t view bad.sbt --table gpu_op --json | numbers
t view bad.sbt --table mark --columns name
