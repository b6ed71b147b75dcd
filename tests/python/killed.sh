#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A recorder that samples stacks is killed: `recover` and `record --resume` have its samples, and
# continue with the same threads. Samples and marks of a thread share one row.
set -euo pipefail
. "$TS_SOURCE/tests/lib/python.sh"
python=${python:?} work=${work:?}

cat >busy.py <<'END'
import os, sys, threading, time


def leaf():
    return sum(range(2000))


def work():
    while not os.path.exists("end"):
        leaf()


for name in ("one", "two"):
    threading.Thread(target=work, name=name).start()
print("ready", os.getpid(), flush=True)
END

# Each thread of a process has one row, however often it is written.
has_one_row_each() { # trace
	"$TRACESMITH" view "$1" --table thread --json | python3 -c '
import json, sys
rows = {}
for line in sys.stdin:
    row = json.loads(line)
    rows.setdefault((row["process"], row.get("tid")), set()).add(row["id"])
sys.exit(any(len(ids) > 1 for ids in rows.values()))' || fail "$1: a thread has two rows: $("$TRACESMITH" view "$1" --table thread --json)"
}
is_right='{"one", "two"} <= {sample.get("thread") for sample in samples} if "thread" in samples[0] else len({sample["tid"] for sample in samples}) >= 2'

setsid "$TRACESMITH" record -q -o t.sbt --backends python --python-interval 0.002 --autosave 200ms -- "$python" busy.py >said 2>"$work/record.err" &
recorder=$!
remember $recorder
await "the program to be ready" says_ready said
remember "$pid"
await_samples t.sbt
await_samples t.sbt
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null || true
"$TRACESMITH" recover t.sbt -o recovered.sbt >/dev/null 2>&1
trace_holds recovered.sbt "len(samples) > 20 and any(functions(s)[:3] == ['leaf', 'work', 'run'] for s in samples) and ($is_right)"
has_one_row_each recovered.sbt
before=$(samples_of recovered.sbt | wc -l)

"$TRACESMITH" record -q --resume t.sbt --backends python --python-interval 0.002 2>"$work/record.err" &
recorder=$!
remember $recorder
await "samples of the second recorder" has_samples t.sbt $((before + 20))
touch end
end_recording
trace_holds t.sbt "len(samples) > $before"
has_one_row_each t.sbt

# With the agent in it: its own events, and samples of it.
rm -f log
"$TRACESMITH" record -q -o both.sbt --backends python --python-interval 0.001 --python-on marks -- \
	"$python" -W ignore "$TS_SOURCE/tests/python/triggers.py" log
trace_holds both.sbt "any(s['name'].startswith('mark plain') for s in samples) and any(s['name'] == 'python' for s in samples)"
has_one_row_each both.sbt
