#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Many processes with many threads in one trace: complete and attributed correctly.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

processes=64 threads=4
is_sanitized && processes=16

"$TRACESMITH" record -q -o t.sbt --json -- "$emitter" --oracle "$oracle" --processes $processes --threads $threads \
	--mode mixed --rate 2000 --seconds 1 >log 2>&1 || fail "record: $(cat log)"
check "$processes processes" t.sbt --all-done --some-stored
found=$(rows_of t.sbt process | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
print(len({row["pid"] for row in rows}))')
# And their parent.
[ "$found" -ge $processes ] || fail "$found processes are in the trace, of $processes"
[ "$(find "$TRACESMITH_LIVE_DIR" -type f | wc -l)" -eq 0 ] || fail "areas remain"

# The same with a recorder that they start themselves: one for all.
fresh
TRACESMITH_OUT=t.sbt "$emitter" --oracle "$oracle" --processes $processes --threads $threads --mode instant \
	--rate 1000 --seconds 1 >log 2>&1 || fail "the program failed: $(cat log)"
await_finished t.sbt
check "one recorder for $processes processes" t.sbt --all-done --some-stored

# Thousands of threads that come and go.
fresh
"$TRACESMITH" record -q -o t.sbt -- "$emitter" --oracle "$oracle" --threads 8 --mode mixed --churn 24 --seconds 0 --count 8000 >log 2>&1 ||
	fail "record: $(cat log)"
check "short threads" t.sbt --all-done --some-stored

# As many threads at once as possible.
fresh
"$TRACESMITH" record -q -o t.sbt -- "$emitter" --oracle "$oracle" --threads 400 --mode instant --rate 100 --seconds 0.5 >log 2>&1 ||
	fail "record: $(cat log)"
check "many threads" t.sbt --all-done --some-stored
summary
