#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The traces of tests/golden, one per format version, are still read exactly as when they were
# written. They are never regenerated; if a view shows more than before, TS_UPDATE=1 accepts it:
# review the diff carefully.
set -euo pipefail

code=0
for trace in "$TS_SOURCE"/tests/golden/*.sbt; do
	"$TRACESMITH" verify -q "$trace" || { echo "$trace is incomplete"; code=1; }
	python3 "$TS_SOURCE/tests/real/dump_trace.py" "$trace" >found
	if [ -n "${TS_UPDATE:-}" ]; then
		cp found "${trace%.sbt}.expected"
	fi
	diff -u "${trace%.sbt}.expected" found || code=1
	# It survives export and import unchanged, too.
	"$TRACESMITH" export "$trace" -f chrome -o golden.json
	"$TRACESMITH" import -q golden.json -o again.sbt
	"$TRACESMITH" verify -q again.sbt
	python3 - "$trace" <<-'END' || code=1
	import os, sys
	sys.path.insert(0, os.environ["TS_SOURCE"] + "/tests/real")
	import tool
	faults = tool.Faults()
	tool.compare_tables(faults, sys.argv[1], "again.sbt", "import of the export")
	print("\n".join(faults), end="\n" if faults else "")
	sys.exit(bool(faults))
	END
done
exit $code
