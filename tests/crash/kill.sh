#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An import killed at any instant leaves a prefix of its output, in T.part; recover makes a valid
# trace of it. Ctrl-C leaves a finished one.
set -euo pipefail
. "$TS_SOURCE/tests/lib/crash.sh"

events=400000 kills=10
[ -z "${TS_LONG:-}" ] || kills=30
is_sanitized && events=100000 kills=10

start=$EPOCHREALTIME
"$targets/make_kineto" $events | "$TRACESMITH" import -q - -o whole.sbt
took_us=$((${EPOCHREALTIME/./} - ${start/./}))
whole_bytes=$(stat -c %s whole.sbt)

# Starts an import that reads a pipe; sets $import to its pid.
start_import() { # output
	# A shell without a terminal starts background jobs with Ctrl-C ignored.
	env --default-signal=INT "$TRACESMITH" import -q - -o "$1" < <("$targets/make_kineto" $events 2>/dev/null) 2>stderr &
	import=$!
}

recovered=0
for ((i = 0; i < kills; i++)); do
	us=$((RANDOM * 32768 + RANDOM))
	us=$((us % took_us))
	start_import killed.sbt
	sleep "$((us / 1000000)).$(printf %06d $((us % 1000000)))"
	kill -KILL $import 2>/dev/null || true
	wait $import 2>/dev/null || true
	[ -e killed.sbt.part ] || continue
	bytes=$(stat -c %s killed.sbt.part)
	# Id and time of the file header differ; the rest is a prefix, byte for byte. (The index
	# follows the last chunk.)
	if [ "$bytes" -gt 64 ] && [ "$bytes" -lt "$whole_bytes" ]; then
		cmp -s <(tail -c +65 killed.sbt.part) <(head -c "$bytes" whole.sbt | tail -c +65) ||
			fail "kill $i: $bytes bytes are not a prefix of the complete trace"
	fi
	if [ "$bytes" -lt 64 ]; then
		expect 3 recover killed.sbt.part -o good.sbt
		says killed.sbt.part
		continue
	fi
	expect 0 recover -q killed.sbt.part -o good.sbt
	expect 0 verify -q good.sbt
	[ "$(info_of good.sbt 'info["finished"]')" = True ] || fail "kill $i: what was recovered is not finished"
	recovered=$((recovered + 1))
	rm killed.sbt.part good.sbt
done
[ $recovered -gt 0 ] || fail "no import got as far as its first byte"

# The rows of a truncated trace are rows of the complete one, the earliest of each table. (The clock
# may be tied to trace time at the end of a source, so times are compared without it.)
rows_of() { # trace, table
	"$TRACESMITH" view "$1" --json --table "$2" 2>/dev/null | sed -E 's/"start":17000000([0-9]{11}),/"start":\1,/' |
		sed -E 's/"start":0*([0-9])/"start":\1/' | sort
}
head -c $((whole_bytes / 2)) whole.sbt >cut.sbt
expect 1 verify -q cut.sbt
expect 0 recover -q cut.sbt -o good.sbt
for table in slice api_call gpu_op; do
	rows_of whole.sbt $table >whole.rows
	rows_of good.sbt $table >good.rows
	[ -s good.rows ] || [ $table != slice ] || fail "no rows of $table in half of the trace"
	comm -13 whole.rows good.rows >other.rows
	[ ! -s other.rows ] || fail "rows of $table differ from those of the complete trace: $(head -n 1 other.rows)"
done

# Ctrl-C.
events=$((events * 10))
start_import stopped.sbt
has_rows() { [ "$(stat -c %s stopped.sbt.part 2>/dev/null || echo 0)" -gt 100000 ]; }
for ((i = 0; i < 6000; i++)); do
	! has_rows || break
	sleep 0.02
done
has_rows || fail "Ctrl-C: the import writes nothing: $(cat stderr)"
kill -INT $import
code=0
wait $import || code=$?
[ $code -eq 130 ] || fail "Ctrl-C: exit code $code, expected 130: $(cat stderr)"
expect 0 verify -q stopped.sbt
[ "$(info_of stopped.sbt '0 < info["events"] < '$events)" = True ] || fail "Ctrl-C: the events read so far are missing"
[ "$(info_of stopped.sbt 'len(info["loss"]) > 0')" = True ] || fail "Ctrl-C: the trace does not say that something is missing"
