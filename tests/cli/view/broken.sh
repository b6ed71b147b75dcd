#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Traces that are cut, damaged, or none.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
head -c -40 t.sbt >cut.sbt
t view cut.sbt --columns name --limit 2 2>&1 | numbers
cmp <("$TRACESMITH" view --json t.sbt) <("$TRACESMITH" view --json cut.sbt 2>/dev/null) || fail "cut"
t view missing.sbt
t view t.json
# A damaged payload is named with chunk and byte; rows of other tables are still shown.
python3 - <<'PY'
data = bytearray(open("t.sbt", "rb").read())
# The first chunk of table 11, gpu_op; its last byte is part of a payload.
at = 64
while data[at + 32] != 11:
    at += int.from_bytes(data[at + 16:at + 24], "little")
data[at + int.from_bytes(data[at + 16:at + 24], "little") - 1] ^= 1
open("bad.sbt", "wb").write(data)
PY
t view bad.sbt --table gpu_op --json | numbers
t view bad.sbt --table mark --columns name
