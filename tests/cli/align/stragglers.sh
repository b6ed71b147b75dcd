#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The straggler does not depend on which clock is off; if clocks cannot tell, there is none.
. "$TS_SOURCE/tests/cli/lib.sh"
. "$TS_SOURCE/tests/lib/align.sh"

show() {
	"$TRACESMITH" analyze "$@" stragglers --json 2>/dev/null | python3 -c '
import json, sys
found = json.load(sys.stdin)
for row in found["ranks"]:
    print(row["rank"], row["verdict"], row["times_last"], "late since", row["late_since_collective"])
print(len([c for c in found["collectives"] if c["verdict"] == "within uncertainty"]), "unclear")'
}

echo "== clocks agree; rank 1 is late by 400 us in the second half"
make_job good 200 0:0:0 1:0:0 2:0:0
show good/job.sbt
echo "== the same with clocks that disagree"
make_job bad 200 0:0:0 1:-40000000:50 2:9000000000:-120
show bad/job.sbt
echo "== stored, then analyzed"
"$TRACESMITH" align bad/job.sbt -q >/dev/null
show bad/job.sbt
show bad/job.sbt --no-align
echo "== not aligned: the clock is blamed"
show bad/rank0.sbt bad/rank1.sbt bad/rank2.sbt --no-align
