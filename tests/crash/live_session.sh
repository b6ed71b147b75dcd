#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TRACESMITH_OUT: a program starts its own recorder and does not notice: no extra child, no signal,
# no open pipe, no terminal. The trace is there when the program has ended, however it ended.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

# A program that waits for any child sees none.
TRACESMITH_OUT=t.sbt "$emitter" --oracle "$oracle" --host --rate 20000 --threads 2 --seconds 0.5 >log 2>&1 ||
	fail "a strange child: $(cat log)"
grep -q "strange children: 0, errno ECHILD, SIGCHLD: 0" log || fail "a strange child: $(cat log)"
# The exit handler waits for the file: the caller need not.
check "at the program's end" t.sbt --all-done --some-stored
await_finished t.sbt
check "its own recorder" t.sbt --all-done --some-stored
[ ! -e t.sbt.log ] || fail "the recorder complains: $(cat t.sbt.log)"

# Descriptors, directory, session and environment of the recorder.
fresh
TRACESMITH_OUT=t.sbt "$emitter" --oracle "$oracle" --rate 1000 --seconds 0.5 --linger 600 > >(cat >piped.log) 2>&1 &
program=$!
await_begin
await_recorder
for fd in 0 1 2; do
	target=$(readlink /proc/"$recorder"/fd/$fd)
	[ "$target" = /dev/null ] || [[ $target == /memfd:* ]] || fail "descriptor $fd of the recorder is $target"
done
for fd in /proc/"$recorder"/fd/*; do
	[[ $(readlink "$fd") != pipe:* ]] || fail "the recorder holds a pipe: $(ls -l /proc/"$recorder"/fd)"
done
[ "$(readlink /proc/"$recorder"/cwd)" = / ] || fail "the recorder's directory is not /"
session=$(cut -d')' -f2- /proc/"$recorder"/stat | awk '{print $4}')
[ "$session" = "$recorder" ] || fail "the recorder is in session $session"
[ "$(cut -d')' -f2- /proc/"$recorder"/stat | awk '{print $2}')" != $program ] || fail "the recorder is a child of the program"
tr '\0' '\n' </proc/"$recorder"/environ >environment
! grep -qE '^(LD_PRELOAD|TRACESMITH_OUT|TRACESMITH_AGENT)=' environment ||
	fail "the recorder has the program's environment"
await_done
kill_hard $program
reap $program
await_finished t.sbt
check "with a pipe" t.sbt --all-done --some-stored

# Ctrl-C for the entire foreground group.
fresh
TRACESMITH_OUT=t.sbt setsid env --default-signal=INT "$emitter" --oracle "$oracle" --rate 20000 --seconds 20 >log 2>&1 &
program=$!
await_begin
sleep 0.1
kill -INT -- -$program
reap $program
[ $code -eq 130 ] || fail "Ctrl-C: exit code $code of the program"
await_finished t.sbt
check "Ctrl-C" t.sbt --some-stored

# The same with a recorder as parent: it exits like the program, and the trace is finished.
fresh
setsid env --default-signal=INT "$TRACESMITH" record -q -o t.sbt -- "$emitter" --oracle "$oracle" --rate 20000 --seconds 20 >log 2>&1 &
recorder=$!
await_begin
sleep 0.1
kill -INT -- -$recorder
reap $recorder
[ $code -eq 130 ] || fail "Ctrl-C: exit code $code of record: $(cat log)"
check "Ctrl-C of record" t.sbt --some-stored

# JSON: a plain array of events with exactly these members.
fresh
FERRUM_TRACE_OUT=t.json "$emitter" --oracle "$oracle" --mode mixed --rate 5000 --seconds 0.3 >log 2>&1 || fail "the program failed"
json_is_finished() { [ -e t.json ] && [ ! -e t.json.sbt ]; }
wait_until 120 json_is_finished || fail "t.json is missing: $(ls)"
check_json t.json

# A flush in the middle: earlier events are readable, and emitting continues.
fresh
TRACESMITH_OUT=t.sbt "$emitter" --oracle "$oracle" --threads 2 --seconds 0 --count 5000 --rate 50000 --flush --gate "$live/gate" >log 2>&1 &
program=$!
wait_until 120 grep -q "flush:" log || fail "there was no flush"
grep -q "flush: 0" log || fail "the flush failed: $(cat log)"
"$TRACESMITH" verify -q t.sbt || fail "after a flush the trace is incomplete"
python3 "$TS_SOURCE/tests/crash/live_check.py" "$oracle" t.sbt --ranges 0-4999 2>check.log ||
	fail "after a flush: $(cat check.log)"
touch "$live/gate"
reap $program
await_finished t.sbt
check "flush, and more" t.sbt --all-done --some-stored
[ "$last_stored" -eq 20000 ] || [ "$last_lost" -gt 0 ] || fail "$last_stored of 20000 are stored"

# Two programs, one output: one trace of both.
fresh
rm -f "$live/gate"
TRACESMITH_OUT=t.sbt "$emitter" --oracle "$oracle.1" --rate 20000 --seconds 0.2 --flush --gate "$live/gate" >log 2>&1 &
first=$!
TRACESMITH_OUT=t.sbt "$emitter" --oracle "$oracle.2" --first 1 --rate 20000 --seconds 0.3 --flush --gate "$live/gate" >log 2>&1 &
second=$!
oracle=$oracle.1 await_begin
oracle=$oracle.2 await_begin
touch "$live/gate"
reap $first
reap $second
await_finished t.sbt
oracle=$oracle.1,$oracle.2 check "two programs" t.sbt --all-done --some-stored
[ "$(rows_of t.sbt process | wc -l)" -ge 2 ] || fail "two programs: $(rows_of t.sbt process)"

# The recorder that holds the output when a program looks is about to end, and does not take its
# events: another one is started at the end.
fresh
: >t.sbt
exec 9<t.sbt
flock -x 9
rm -f "$live/gate"
TRACESMITH_OUT=t.sbt "$emitter" --oracle "$oracle" --rate 20000 --seconds 0.3 --flush --gate "$live/gate" >log 2>&1 9<&- &
program=$!
await_begin
[ ! -s t.sbt ] || fail "a recorder works on what another holds"
exec 9<&-
touch "$live/gate"
reap $program
wait_until 120 test -s t.sbt || fail "a program whose output was in use at first was not recorded"
await_finished t.sbt
check "held at first" t.sbt --all-done --some-stored

# One after another into the same output: the second makes its own trace, or resumes; none is lost
# silently. A relative path, with a program that changes its directory.
mkdir elsewhere
fresh
TRACESMITH_OUT=./t.sbt "$emitter" --oracle "$oracle" --chdir elsewhere --rate 20000 --seconds 0.2 >log 2>&1
[ ! -e elsewhere/t.sbt ] || fail "a relative output is where the program went, not where it was started"
await_finished t.sbt
check "elsewhere" t.sbt --all-done --some-stored

# The process id in the name.
fresh
TRACESMITH_OUT=t-%p.sbt "$emitter" --oracle "$oracle" --rate 20000 --seconds 0.2 >log 2>&1 &
program=$!
reap $program
await_finished t-$program.sbt
check "%p" t-$program.sbt --all-done --some-stored

# If no recorder can be started, the program runs, and says how to recover its events.
fresh
TRACESMITH_OUT=none.sbt TRACESMITH_RECORDER=/nonexistent "$emitter" --oracle "$oracle" --rate 20000 --seconds 0.2 >log 2>&1 &
program=$!
reap $program
[ $code -eq 0 ] || fail "without a recorder: exit code $code"
grep -q "tracesmith recover $program" log || fail "no message about the recorder: $(cat log)"
expect 0 recover -q $program -o t.sbt
check "without a recorder" t.sbt --flight --some-stored
expect 0 ps --clean
[ "$(find "$TRACESMITH_LIVE_DIR" -type f | wc -l)" -eq 0 ] || fail "areas remain: $(ls -l "$TRACESMITH_LIVE_DIR")"
summary
