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
t replay plain.sbt --list=checks --json --from 5 --to 6
# On a terminal, lines are cut, not wrapped.
PYTHONPATH=$TS_SOURCE/tests/lib python3 - "$TRACESMITH" replay plain.sbt --list <<'PY'
import on_terminal, sys
lines = on_terminal.run(60, sys.argv[1:]).splitlines()
assert max(map(len, lines)) <= 60, lines
assert any(line.startswith("      3 ") and line.endswith("clEnqueueNDRangeKerne\u2026") for line in lines), lines
PY
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
