#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Messages of an export: rows written and omitted; none with -q; JSON.
. "$TS_SOURCE/tests/cli/lib.sh"

say() {
	echo "\$ tracesmith $*"
	"$TRACESMITH" "$@" 2>&1 >/dev/null | sed -E 's/[0-9.]+ [KM]?i?B in [0-9.]+ s/N B in N s/; s/ in [0-9.]+ s$/ in N s/'
}

make_trace t
for format in chrome chrome-array folded speedscope dot; do
	say export t.sbt -f $format -o out
	say export -q t.sbt -f $format -o out
done
# A timeline of stacks needs some.
t export t.sbt -f timeline -o stacks.json
[ ! -e stacks.json ] || fail "a timeline without stacks"
say export t.sbt -f chrome -o /dev/null
say export t.sbt -f folded --count device -o -
say export t.sbt -f csv --table slice -o out
say export t.sbt -f csv -o folder/
say export t.sbt -f dot --limit 1 -o out
t export t.sbt -f dot --json -o -
"$TRACESMITH" export t.sbt -f dot --limit 1 --json -q -o out.dot >summary.json 2>err.txt
[ ! -s err.txt ] || fail "-q"
python3 - <<'PY'
import json, os
summary = json.load(open("summary.json"))
assert summary.pop("seconds") >= 0
assert summary.pop("bytes") == os.stat("out.dot").st_size
print(json.dumps(summary))
PY
"$TRACESMITH" export t.sbt -f csv --json -q -o folder >summary.json
python3 - <<'PY'
import json, os
summary = json.load(open("summary.json"))
assert sorted(summary["files"]) == sorted("folder/" + name for name in os.listdir("folder")), summary
assert summary["bytes"] == sum(os.stat(name).st_size for name in summary["files"])
assert summary["left_out"] == [] and summary["file"] == "folder" and summary["format"] == "csv"
PY
"$TRACESMITH" export t.sbt --json -q -o /dev/null | sed -E 's/"seconds":[0-9.e-]+/"seconds":N/'
