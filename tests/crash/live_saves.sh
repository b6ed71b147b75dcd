#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files on disk during a recording: saves, snapshots, rotation, a size limit, redaction.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

# Periodic saves: a save leaves a finished trace. While events arrive, the next chunk may replace
# the index: the trace is then readable, but not finished. When they cease it is complete.
"$TRACESMITH" record -q -o t.sbt --autosave 50ms -- "$emitter" --oracle "$oracle" --threads 2 --mode string --rate 20000 --seconds 0.8 --linger 20 >log 2>&1 &
recorder=$!
await_begin
finished=0 looks=0
until is_done; do
	[ -e t.sbt ] || continue
	code=0
	"$TRACESMITH" verify -q t.sbt >verify.log 2>&1 || code=$?
	[ $code -le 1 ] || fail "verify while recording: exit code $code: $(cat verify.log)"
	looks=$((looks + 1))
	[ $code -ne 0 ] || finished=$((finished + 1))
done
saved() { "$TRACESMITH" verify -q t.sbt >/dev/null 2>&1 && python3 "$TS_SOURCE/tests/crash/live_check.py" "$oracle" t.sbt >/dev/null 2>&1; }
wait_until 120 saved || fail "what was emitted is not saved: $(python3 "$TS_SOURCE/tests/crash/live_check.py" "$oracle" t.sbt 2>&1)"
check "saved while it runs" t.sbt --all-done --some-stored
[ -e t.sbt.journal ] || fail "the recording is over"
kill_hard "$(oracle_pid)"
reap $recorder
check "saved and finished" t.sbt --all-done --some-stored

# Copies of the trace so far: each is complete, and a prefix of the events.
fresh
"$TRACESMITH" record -q -o t.sbt --snapshot-every 150ms -- "$emitter" --oracle "$oracle" --threads 2 --rate 20000 --seconds 1 >log 2>&1 ||
	fail "record: $(cat log)"
check "with snapshots" t.sbt --all-done --some-stored
snapshots=(t-*.sbt)
[ -e "${snapshots[0]}" ] || fail "no snapshots: $(ls)"
for snapshot in "${snapshots[@]}"; do
	check "snapshot $snapshot" "$snapshot" --windows 1
done

# A new file at intervals: together they are the recording.
fresh
"$TRACESMITH" record -q -o t.sbt --rotate 150ms -- "$emitter" --oracle "$oracle" --threads 2 --mode mixed --rate 20000 --seconds 1 >log 2>&1 ||
	fail "record: $(cat log)"
files=(t.*.sbt)
[ ${#files[@]} -ge 2 ] || fail "${#files[@]} files after a rotation: $(ls)"
for file in "${files[@]}"; do
	expect 0 verify -q "$file"
done
check "rotation by time" "${files[0]}" "${files[@]:1}" --all-done --some-stored

# By size; only the newest are kept, and what others have written.
fresh
others=(t.20231224.sbt t.0001.sbt t.0002.json)
for other in "${others[@]}"; do
	echo "not ours" >"$other"
done
"$TRACESMITH" record -o t.sbt --rotate 256K --rotate-keep 3 -- "$emitter" --oracle "$oracle" --threads 2 --mode pair --rate 100000 --seconds 0 --count 150000 >log 2>&1 ||
	fail "record: $(cat log)"
for other in "${others[@]}"; do
	[ "$(cat "$other")" = "not ours" ] || fail "'$other' was deleted or overwritten"
	rm "$other"
done
files=(t.*.sbt)
[ ${#files[@]} -le 3 ] && [ ${#files[@]} -ge 2 ] || fail "${#files[@]} files are kept, of 3: $(ls)"
events=0
for file in "${files[@]}"; do
	events=$((events + $("$TRACESMITH" info --json "$file" | grep -o '"events":[0-9]*' | cut -d: -f2)))
done
tr -d , <log | grep -q "^  ${#files[@]} files kept of [0-9]* with $events of the [0-9]* events$" || fail "of ${#files[@]} files with $events events: $(cat log)"
check "rotation by size" "${files[0]}" "${files[@]:1}" --windows 1 --some-stored

# Files that are smaller than what comes at once, also at the end: nothing is lost.
fresh
"$TRACESMITH" record -o t.sbt --rotate 32K --backends host --sample-rate 10ms -- "$emitter" --oracle "$oracle" --threads 2 --mode pair --rate 20000 --seconds 0.6 >log 2>&1 ||
	fail "record: $(cat log)"
grep -q 'nothing lost' log || fail "something is lost: $(cat log)"
files=(t.*.sbt)
[ ${#files[@]} -ge 2 ] || fail "${#files[@]} files after a rotation: $(ls)"
for file in "${files[@]}"; do
	rows_of "$file" loss >>rows
done
! grep -E 'disk|limit' rows || fail "rows are lost at the end of a rotation"
check "rotation by a small size" "${files[0]}" "${files[@]:1}" --all-done --none-lost
rm rows

# The recorder is killed among rotations, and another resumes.
fresh
"$TRACESMITH" record -q -o t.sbt --rotate 100ms -- "$emitter" --oracle "$oracle" --threads 2 --mode mixed --rate 20000 --seconds 0.8 >log 2>&1 &
recorder=$!
await_begin
nap_ms $((200 + $(random 200)))
kill_hard $recorder
reap $recorder
journals=(t.*.sbt.journal)
# Without a journal the recording was complete before the kill.
[ ! -e "${journals[0]}" ] || expect 0 record -q --resume "${journals[0]%.journal}"
await_done
files=(t.*.sbt)
check "rotation, recorder killed" "${files[0]}" "${files[@]:1}" --all-done --some-stored

# A size limit: the recording stops when it is reached, and the program continues.
fresh
"$TRACESMITH" record -q -o t.sbt --max-size 1M -- "$emitter" --oracle "$oracle" --threads 2 --mode pair --rate 200000 --seconds 0 --count 200000 >log 2>&1 ||
	fail "record: $(cat log)"
is_done || fail "the program was ended with the recording"
check "--max-size" t.sbt --windows 1 --some-stored
[ "$(stat -c %s t.sbt)" -le 1048576 ] || fail "the trace is larger than it may be: $(stat -c %s t.sbt)"
[ "$last_stored" -lt "$(($(oracle_returned 0) + $(oracle_returned 1)))" ] || fail "the limit was not reached"

# A time limit.
fresh
"$TRACESMITH" record -q -o t.sbt --duration 200ms -- "$emitter" --oracle "$oracle" --threads 2 --rate 20000 --seconds 0.7 >log 2>&1 ||
	fail "record: $(cat log)"
check "--duration" t.sbt --windows 1

# Private data stays private: neither the command line nor string arguments are anywhere, not even
# while it runs.
fresh
secret=qrstuvwxyzabcdefghijklmnop
"$TRACESMITH" record -q -o t.sbt --redact -- "$emitter" --oracle "$oracle" --mode string --rate 20000 --seconds 20 --name "$secret-$secret" >log 2>&1 &
recorder=$!
await_begin
sleep 0.2
for file in t.sbt t.sbt.journal "$TRACESMITH_LIVE_DIR"/[0-9]*; do
	! grep -qaF ghijklmnopqrstuvwxyzabcdef "$file" || fail "$file: has a text of an argument"
	! grep -qaF -- "--seconds" "$file" || fail "$file: has the command line"
done
kill_hard "$(oracle_pid)"
reap $recorder
expect 0 verify -q t.sbt
"$TRACESMITH" export t.sbt -f chrome -o t.json >/dev/null 2>&1
for table in $("$TRACESMITH" info t.sbt --json | python3 -c 'import json, sys; print(*json.load(sys.stdin)["tables"])') string; do
	rows_of t.sbt "$table" >>rows 2>/dev/null || true
done
[ -s rows ] && grep -q '"string"' rows || fail "the events are missing"
for text in ghijklmnopqrstuvwxyzabcdef "--seconds"; do
	! grep -qaF -- "$text" rows t.json t.sbt || fail "'$text' is in the trace"
done
# Without --redact they are there, so the check can fail.
fresh
rm -f rows
"$TRACESMITH" record -q -o t.sbt -- "$emitter" --oracle "$oracle" --mode string --seconds 0 --count 2000 >log 2>&1 || fail "record: $(cat log)"
rows_of t.sbt mark >rows
grep -qF ghijklmnopqrstuvwxyzabcdef rows || fail "texts of arguments are not found where they are"
rows_of t.sbt process >rows
grep -qF -- "--seconds" rows || fail "the command line is not found where it is"
summary "$finished of $looks looks found a finished trace"
