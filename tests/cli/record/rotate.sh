#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The summary of a rotated recording is about all files that are left.
. "$TS_SOURCE/tests/cli/live.sh"
export TRACESMITH_BACKENDS=none

check() { # options of record
	rm -f t.*sbt
	"$TRACESMITH" record --json --rotate 64K "$@" -o t.sbt -- "$emit" instants:50000 sleep:100 instants:50000 sleep:100 instants:50000 >summary.json 2>err.txt
	python3 - <<'PY'
import glob, json, os
summary = json.load(open("summary.json"))
files = glob.glob("t.*sbt")
assert summary["files"] > 1, summary
assert summary["files_kept"] == len(files), (summary, files)
assert summary["bytes"] == sum(os.path.getsize(file) for file in files), (summary, files)
assert summary["file_bytes"] == os.path.getsize(summary["file"]), (summary, files)
assert f"in {len(files)} files" in open("err.txt").read()
PY
}
check
check --rotate-keep 2
