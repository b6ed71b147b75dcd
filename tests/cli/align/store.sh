#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Alignment is computed, stored and then used: in place, in a copy, and in several files.
. "$TS_SOURCE/tests/cli/lib.sh"
. "$TS_SOURCE/tests/lib/align.sh"

clocks=(0:0:0 1:25000000:0 2:-3000000000:80 3:700:-30)
make_job job 400 "${clocks[@]}"
traces=1 check_clocks 30 "${clocks[@]}" job/job.sbt

echo "== in place"
cp job/job.sbt before.sbt
"$TRACESMITH" align job/job.sbt -q >/dev/null
t verify job/job.sbt
check_appended before.sbt job/job.sbt
"$TRACESMITH" view job/job.sbt --json --table clock_sync | python3 -c '
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    print(row["clock"], row["generation"], row["method"], 0 < row["uncertainty_ns"] < 30000)'
# A drift has points at both ends: none of it remains.
traces=1 check_clocks 30 0:0:0 1:0:0 2:0:0 3:0:0 job/job.sbt

echo "== again"
cp job/job.sbt once.sbt
# What was stored is the last line.
"$TRACESMITH" align job/job.sbt 2>&1 | tail -n 1
cmp job/job.sbt once.sbt

echo "== a copy"
"$TRACESMITH" align before.sbt -o copy.sbt -q >/dev/null
t verify copy.sbt
cmp <("$TRACESMITH" view --json -t gpu_op copy.sbt) <("$TRACESMITH" view --json -t gpu_op job/job.sbt)
[ ! -e copy.sbt.part ] || fail "a part remains"
make_trace t
{ "$TRACESMITH" align t.sbt -o copy.sbt >/dev/null; } 2>&1
traces=1 check_clocks 30 "${clocks[@]}" before.sbt

echo "== one file per rank"
files=(job/rank0.sbt job/rank1.sbt job/rank2.sbt job/rank3.sbt)
traces=4 check_clocks 30 "${clocks[@]}" "${files[@]}"
cp job/rank2.sbt before2.sbt
{ "$TRACESMITH" align "${files[@]}" >/dev/null; } 2>&1
for file in "${files[@]}"; do
	quietly verify "$file"
done
check_appended before2.sbt job/rank2.sbt
traces=4 check_clocks 30 0:0:0 1:0:0 2:0:0 3:0:0 "${files[@]}"

echo "== rows are unchanged except for their times"
rows() { "$TRACESMITH" view --json -t gpu_op,api_call "$1" | python3 -c '
import json, sys
for row in sorted((r["source"] if "source" in r else 0, r.get("correlation"), r["name"]) for r in map(json.loads, sys.stdin)):
    print(row)'; }
cmp <(rows before.sbt) <(rows job/job.sbt)
