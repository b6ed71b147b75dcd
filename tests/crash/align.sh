#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# align appends to existing traces: a full disk, a limit or a kill at any instant loses no row.
set -euo pipefail
. "$TS_SOURCE/tests/lib/crash.sh"
. "$TS_SOURCE/tests/lib/align.sh"

make_job job 300 0:0:0 1:5000000:20 2:-70000:0
rows() { "$TRACESMITH" view --json -t gpu_op,api_call "$1" 2>/dev/null | wc -l; }
before=$(rows job/job.sbt)
[ "$before" -eq 1800 ] || fail "$before rows"

# A file that may not grow: it stays unchanged.
cp job/job.sbt full.sbt
python3 - "$TRACESMITH" "$(stat -c %s full.sbt)" <<'PY' && fail "it was written"
import resource, subprocess, sys
limit = int(sys.argv[2])
sys.exit(subprocess.run([sys.argv[1], "align", "-q", "full.sbt"], stdout=subprocess.DEVNULL, stderr=open("stderr", "w"),
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))).returncode)
PY
says "file size limit"
expect 0 verify full.sbt
cmp full.sbt job/job.sbt

# Killed at any instant.
for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
	cp job/job.sbt killed.sbt
	"$TRACESMITH" align -q killed.sbt >/dev/null 2>&1 &
	pid=$!
	sleep "0.0$((round * 3))"
	kill -9 $pid 2>/dev/null || true
	wait $pid 2>/dev/null || true
	[ "$(rows killed.sbt)" -eq "$before" ] || fail "round $round: rows are gone"
	"$TRACESMITH" verify -q killed.sbt || expect 0 recover killed.sbt -o good.sbt
done

# Another process writes it.
exec 9<job/job.sbt
flock -x 9
cp job/job.sbt kept.sbt
expect 3 align -q job/job.sbt
cmp job/job.sbt kept.sbt
