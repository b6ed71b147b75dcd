#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Traces that cannot be aligned are refused with advice, and stay unchanged.
. "$TS_SOURCE/tests/cli/lib.sh"
. "$TS_SOURCE/tests/lib/align.sh"

make_job job 50 0:0:0 1:5000000:0
t align
t align job/job.sbt job/job.sbt
t align job/rank0.sbt job/rank1.sbt -o out.sbt
t align job/job.sbt -o job/job.sbt
t align job/job.sbt -o out.sbt --dry-run
mkdir folder
t align job/job.sbt -o folder
t align job/job.sbt -o job/rank0.json
t align gone.sbt
echo "== imported files can be analyzed, but not changed"
t align job/rank0.json job/rank1.json
t align job/rank0.json job/rank1.json --dry-run | sed -n '2,5s/  */ /gp' | cut -d ' ' -f 1-4
echo "== an unfinished trace"
head -c $(($(stat -c %s job/job.sbt) - 10)) job/job.sbt >cut.sbt
cp cut.sbt cut.copy
t align cut.sbt 2>&1 | tail -n 2
cmp cut.sbt cut.copy
echo "== nothing to compare"
t align job/rank0.sbt | tail -n 2
[ ! -e out.sbt ] || fail "an output was made"
