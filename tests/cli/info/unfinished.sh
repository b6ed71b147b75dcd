#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A truncated trace is shown as far as it goes; other files are refused.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
head -c -40 t.sbt >cut.sbt
"$TRACESMITH" info cut.sbt | grep -E '^(format|damage|places)' | sed 's/, created.*//' | numbers
"$TRACESMITH" info --json cut.sbt | python3 -c '
import json, sys
info = json.load(sys.stdin)
print(info["finished"], info["damaged_bytes"] > 0, info["events"])'
t info missing.sbt
echo "no trace" >notes.txt
t info notes.txt
t info .
: >empty.sbt
t info empty.sbt
