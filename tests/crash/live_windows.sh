#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Windows by file, step, time and command: everything inside is recorded, nothing outside is.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

# The windows of all processes with an agent are all open, or all closed.
windows_are() { # true or false
	"$TRACESMITH" ps --json 2>/dev/null | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
sys.exit(not rows or any(row["window"] != (sys.argv[1] == "true") for row in rows))' "$1"
}
await_windows() { wait_until 120 windows_are "$1" || fail "the windows do not become $1: $("$TRACESMITH" ps)"; }

# Both processes have emitted more.
has_moved() { # slot, since
	[ "$(oracle_returned "$1")" -gt $(($2 + 200)) ]
}

open_by_flag() {
	touch flag
	await_windows true
	for slot in 0 2; do
		wait_until 120 has_moved $slot "$(oracle_returned $slot)" || fail "the program makes no progress"
	done
	rm flag
	await_windows false
	nap_ms 30
}

record_flag() { # option...
	fresh
	rm -f flag
	"$TRACESMITH" record -q -o w.sbt --window flag:"$PWD/flag" "$@" -- \
		"$emitter" --oracle "$oracle" --chain --processes 2 --threads 2 --rate 20000 --seconds 20 >log 2>&1 &
	recorder=$!
	await_begin
	await_begin 2
	open_by_flag
	open_by_flag
	kill_hard "$(oracle_pid)" "$(oracle_pid 2)"
	reap $recorder
}

count_windows() { # trace, expected number of rows, text of the cause
	rows_of "$1" window >rows
	[ "$(wc -l <rows)" -eq "$2" ] || fail "$(wc -l <rows) windows, expected $2: $(cat rows)"
	[ "$(grep -c "\"opened_by\":\"$3\"" rows)" -eq "$2" ] || fail "windows were not opened by $3: $(cat rows)"
}

# A flag file that comes and goes twice, with two processes.
record_flag
check "flag" w.sbt --windows 2 --some-stored
count_windows w.sbt 4 flag

# The same, with one trace per window and process.
record_flag --split
pids="$(oracle_pid) $(oracle_pid 2)"
for pid in $pids; do
	files=(w_pid"${pid}"_*.sbt)
	[ ${#files[@]} -eq 2 ] || fail "process $pid: ${#files[@]} traces of windows, expected 2: $(ls)"
	for file in "${files[@]}"; do
		[[ $file =~ ^w_pid${pid}_[0-9]{13}\.sbt$ ]] || fail "a trace is called $file"
		check "split, $file" "$file" --windows 1 --some-stored
		[ "$(rows_of "$file" mark | grep -c .)" -gt 0 ] || fail "$file: has no events"
	done
done
all=(w_pid*.sbt)
[ ${#all[@]} -eq 4 ] || fail "${#all[@]} traces of windows, expected 4: $(ls)"
check "split, together" "${all[0]}" "${all[@]:1}" --windows 2 --some-stored

# Steps: exact, since the program opens and closes the window itself.
steps=(--threads 1 --mode instant --step-every 100 --seconds 0 --count 3000 --rate 20000)
fresh
"$TRACESMITH" record -q -o t.sbt --window steps:5-7 -- "$emitter" --oracle "$oracle" "${steps[@]}" >log 2>&1 || fail "record: $(cat log)"
check "steps:5-7" t.sbt --ranges 500-799
count_windows t.sbt 1 step
grep -q '"first_step":5,"last_step":8\|"first_step":5,"last_step":7' rows || fail "the steps of the window: $(cat rows)"
fresh
"$TRACESMITH" record -q -o t.sbt --window steps:29- -- "$emitter" --oracle "$oracle" "${steps[@]}" >log 2>&1 || fail "record: $(cat log)"
check "steps:29-" t.sbt --ranges 2900-2999
fresh
"$TRACESMITH" record -q -o t.sbt --window steps:0 -- "$emitter" --oracle "$oracle" "${steps[@]}" >log 2>&1 || fail "record: $(cat log)"
check "steps:0" t.sbt --ranges 0-99

# At most this many steps.
fresh
"$TRACESMITH" record -q -o t.sbt --max-steps 3 -- "$emitter" --oracle "$oracle" "${steps[@]}" >log 2>&1 || fail "record: $(cat log)"
check "--max-steps 3" t.sbt --ranges 0-299
fresh
"$TRACESMITH" record -q -o t.sbt --window steps:10-25 --max-steps 3 -- "$emitter" --oracle "$oracle" "${steps[@]}" >log 2>&1 ||
	fail "record: $(cat log)"
check "steps:10-25 --max-steps 3" t.sbt --ranges 1000-1299

# Time since the start.
for end in 700 3000 20000; do # a busy recorder can miss a short window
	fresh
	"$TRACESMITH" record -q -o t.sbt --window time:300ms-${end}ms -- \
		"$emitter" --oracle "$oracle" --rate 20000 --seconds $((end / 1000 + 1)).2 >log 2>&1 || fail "record: $(cat log)"
	check "time" t.sbt --windows 1
	rows_of t.sbt window >rows
	[ ! -s rows ] || break
done
count_windows t.sbt 1 time

# By command; the first one opens a recording that began closed.
fresh
"$TRACESMITH" record -q -o t.sbt --window command -- "$emitter" --oracle "$oracle" --threads 2 --rate 20000 --seconds 20 >log 2>&1 &
recorder=$!
await_begin
await_recorder
pid=$(oracle_pid)
for _ in 1 2 3; do
	expect 0 window "$pid" open
	await_windows true
	sleep 0.05
	expect 0 window "$pid" close
	await_windows false
done
kill_hard "$pid"
reap $recorder
check "by command" t.sbt --windows 3 --some-stored
count_windows t.sbt 3 command

# Killed inside a window: its events are there.
fresh
rm -f flag
touch flag
"$TRACESMITH" record -q -o t.sbt --window flag:"$PWD/flag" -- "$emitter" --oracle "$oracle" --threads 2 --rate 20000 --seconds 20 >log 2>&1 &
recorder=$!
await_begin
await_windows true
wait_until 120 has_emitted $(($(oracle_returned) + 200)) || fail "the program makes no progress"
kill_hard "$(oracle_pid)"
reap $recorder
check "killed in a window" t.sbt --windows 1 --some-stored
summary
