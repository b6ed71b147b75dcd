#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A trace with native frames of a test program: frames are resolved once, by build id only, and
# shown with all stacks.
. "$TS_SOURCE/tests/cli/lib.sh"

program=$TS_BUILD/tests/targets/symbol_frames
build_id=$("$program" t.sbt)
[ -n "$build_id" ] || { echo "skip: this linker makes no build ids"; exit 77; }

# Whether lines are known depends on the build and on libdw.
functions() {
	"$TRACESMITH" view "$@" --table gpu_op --stacks --json | python3 -c '
import json, sys
def words(stack):
	frames = [f for f in stack if not f["func"] in ("innermost", "inlined")]
	return " < ".join(f["func"].split("+")[0] for f in frames) or "-"
for line in sys.stdin:
	row = json.loads(line)
	print(row["name"], "| captured:", words(row.get("stack", [])), "| launched:", words(row.get("launch_stack", [])),
	      "| forward:", row.get("forward", "-"), "| called:", words(row.get("forward_stack", [])))'
}

echo "-- without names"
functions t.sbt
"$TRACESMITH" symbolize t.sbt 2>&1 | sed -E 's/, [0-9] with/, N with/; s/ \(no libdw.*//'
echo "-- with names"
functions t.sbt
t verify t.sbt
rows=$("$TRACESMITH" view t.sbt --table symbol --json | wc -l)
[ "$rows" -ge 2 ] || fail "$rows rows of symbol"

echo "-- again: nothing happens"
size=$(stat -c %s t.sbt)
t symbolize t.sbt
[ "$(stat -c %s t.sbt)" = "$size" ] || fail "a second run has changed the file"
quietly symbolize t.sbt --force
[ "$(stat -c %s t.sbt)" -gt "$size" ] || fail "--force did nothing"
functions t.sbt | grep -c launches_kernels
t verify t.sbt

echo "-- another build"
"$program" other.sbt "00${build_id#??}" >/dev/null
"$TRACESMITH" symbolize other.sbt 2>&1 | sed -E "s|'.*/|'|; s/ \(no libdw.*//"
functions other.sbt | grep -c launches_kernels || true

echo "-- a file that has moved, and one that is gone"
mkdir root
cp "$program" program
./program moved.sbt >/dev/null
mv program root/
"$TRACESMITH" symbolize moved.sbt 2>&1 | sed -E "s|'.*/|'|; s/ \(no libdw.*//"
TRACESMITH_DEBUG_PATH=/nowhere:$PWD/root quietly symbolize moved.sbt
functions moved.sbt | grep -c launches_kernels

echo "-- what cannot be named"
head -c 3000 t.sbt >cut.sbt
"$TRACESMITH" symbolize cut.sbt >out 2>&1 && cat out || echo "exit $?"
t symbolize nothing.sbt
t symbolize
