#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Attribution of values: to the program that a process ran at the time, to the recorder, to a
# window.
. "$TS_SOURCE/tests/cli/metrics.sh"

rows_of() { "$TRACESMITH" view "$1" --json --table counter; }

# A process that becomes another program: earlier peaks do not count for the new one. (It runs
# python directly: a wrapper script would be one more program.)
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
record -q -o e.sbt --sample-interval 10ms --backends host -- "$python" -c '
import os, sys, time
block = bytearray(64 << 20)
while not os.path.exists("exec.go"):
    time.sleep(0.01)
os.execv(sys.argv[1], [sys.argv[1], "await:e.over"])' "$load" &
recorder=$!
rss='trace.values("memory_bytes", "rss", trace.pids().pop())'
await holds e.sbt "max($rss) > 64 << 20"
: >exec.go
# rss_of TRACE PROGRAM: what was read while the process ran that program, a value a line.
rss_of() {
	"$TRACESMITH" export -q "$1" -f csv --table counter -o - | python3 -c '
import csv, json, sys
for row in csv.DictReader(sys.stdin):
    if row["process_name"] == sys.argv[1] and row["name"] == "memory_bytes":
        print(json.loads(row["args"])["rss"])' "$2"
}
# The first values after the exec may be read before the agent says which program it is.
has_ten_of_load() { copy_written e.sbt && [ "$(rss_of copy/good.sbt metrics_load | wc -l)" -ge 10 ]; }
await has_ten_of_load
: >e.over
wait $recorder || fail "recording ends with $?"
[ "$(rss_of e.sbt "${python##*/}" | sort -n | tail -n 1)" -gt $((32 << 20)) ] || fail "the first program's values are missing"
# A sample that the exec interrupts may be the second program's, with the memory of the first.
large=$(rss_of e.sbt metrics_load | awk -v most=$((32 << 20)) '$1 > most' | wc -l)
[ "$large" -le 1 ] || fail "$large values of the first program are attributed to the second"
"$TRACESMITH" view e.sbt --table process --json | python3 -c '
import json, sys
rows = list(map(json.loads, sys.stdin))
assert {row.get("parent") for row in rows} - {row["id"] for row in rows} <= {None, 0}, rows' ||
	fail "a parent has no row"

# A recorder inside a recording measures for its own trace.
record -q -o outer.sbt --backends host -- "$TRACESMITH" record -q -o inner.sbt --backends host -- "$load" await:i.over 2>log &
recorder=$!
await holds inner.sbt 'len(trace.times("tasks")) >= 5'
await holds outer.sbt 'len(trace.times("tasks")) >= 5'
: >i.over
wait $recorder || fail "$(cat log)"
for trace in outer inner; do
	rows_of $trace.sbt | python3 -c '
import json, sys
times = [row["start"] for row in map(json.loads, sys.stdin) if row["category"] == "system" and row["name"] == "tasks"]
apart = [b - a for a, b in zip(times, times[1:])]
assert len(times) >= 2 and sorted(apart)[len(apart) // 2] > 50e6, times' || fail "$trace.sbt: none, or two recorders'"
done

# The rates of the second window exclude the time between the two.
record -q -o w.sbt --backends host --window flag:flag -- "$load" make:begun await:first cpu:50 make:one await:second cpu:700 make:two await:go cpu:50 make:three await:over &
recorder=$!
await test -e begun
pid=$(cat begun)
is_open() { "$TRACESMITH" config "$pid" --json | grep '"enabled":true'; }
is_closed() { ! is_open; }
: >flag
await holds w.sbt 'trace.times("cpu_percent", pid)' "$pid"
: >first
await test -e one
rm flag
await is_closed
: >second
await test -e two
: >flag
# A sample that was made after the second window opened.
reopened() {
	copy_written w.sbt
	"$TRACESMITH" view copy/good.sbt --table window --json >opened
	rows_of copy/good.sbt | python3 -c '
import json, sys
starts = sorted(json.loads(line)["start"] for line in open("opened"))
rows = [row["start"] for row in map(json.loads, sys.stdin) if row["category"] == "process" and row["name"] == "cpu_percent"]
sys.exit(not (len(starts) == 2 and rows and rows[-1] >= starts[1]))'
}
await reopened
: >go
await test -e three
: >over
wait $recorder || fail "recording ends with $?"
"$TRACESMITH" view w.sbt --table window --json >windows
rows_of w.sbt | python3 -c '
import json, sys
rows = [row for row in map(json.loads, sys.stdin) if row["category"] == "process" and row["name"] == "cpu_percent"]
first, second = sorted(json.loads(line)["start"] for line in open("windows"))
before = [row for row in rows if first <= row["start"] < second][-1]
after = next(row for row in rows if row["start"] >= second)
assert after["start"] - before["start"] > 700e6, (before, after)
# Its first rate covers an interval after the window opened, when it slept.
assert after["args"]["all"] < 40, after' || fail "a rate reaches back before its window"
