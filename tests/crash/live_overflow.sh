#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# More events than fit: little memory, a stopped recorder. Stored plus lost events equal emitted
# events, and the program never waits. Prints its speed without checking it.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

count=600000
is_sanitized && count=100000

speed() { sed -n 's/.*, \(.* ns an emit\)/\1/p' log | head -n 1; }

# Undisturbed: with enough memory, nothing is lost at this rate.
fresh
"$TRACESMITH" record -q -o t.sbt -- "$emitter" --oracle "$oracle" --threads 2 --seconds 0 --count $((count / 10)) --rate 100000 >log 2>&1 ||
	fail "record: $(cat log)"
check "undisturbed" t.sbt --all-done --some-stored

off=$("$emitter" --oracle "$oracle" --threads 2 --mode pair --seconds 0 --count $count --report | tee log >/dev/null && speed)

for mode in pair mixed begin; do
	fresh
	"$TRACESMITH" record -q -o t.sbt --budget 128K -- \
		"$emitter" --oracle "$oracle" --threads 2 --mode $mode --seconds 0 --count $count --report >log 2>&1 ||
		fail "record: $(cat log)"
	check "little memory, $mode" t.sbt --all-done --some-stored
	[ $mode = pair ] && small="$(speed)"
done

# A stopped recorder: rings fill up, then everything is dropped, and the program continues as if
# nothing happened.
for seconds in 1.5 30; do # on a slow machine the program may have ended
	fresh
	"$TRACESMITH" record -q -o t.sbt --budget 1M -- \
		"$emitter" --oracle "$oracle" --threads 2 --mode pair --seconds $seconds --report >log 2>&1 &
	recorder=$!
	await_begin
	kill -STOP $recorder 2>/dev/null && ! is_done && break
	kill -CONT $recorder 2>/dev/null || true
	reap $recorder
done
await_done
kill -CONT $recorder
reap $recorder
[ $code -eq 0 ] || fail "record: exit code $code: $(cat log)"
check "stopped recorder" t.sbt --all-done --some-stored --some-lost
stopped=$(speed)

# Stopped and continued repeatedly: drops are counted, the rest is there.
fresh
"$TRACESMITH" record -q -o t.sbt --budget 256K -- \
	"$emitter" --oracle "$oracle" --threads 3 --mode mixed --rate 300000 --seconds 2 >log 2>&1 &
recorder=$!
await_begin
for _ in 1 2 3 4; do
	kill -STOP $recorder 2>/dev/null || break # a slow machine: the program has ended
	sleep 0.12
	kill -CONT $recorder 2>/dev/null || break
	sleep 0.1
done
reap $recorder
[ $code -eq 0 ] || fail "record: exit code $code: $(cat log)"
check "stopped now and then" t.sbt --all-done --some-stored --some-lost
[ "$(rows_of t.sbt loss | grep -c '"reason":"ring full')" -gt 0 ] || fail "no loss row says that a ring was full"

# Killed while everything is being dropped.
fresh
"$TRACESMITH" record -q -o t.sbt --budget 128K -- "$emitter" --oracle "$oracle" --threads 2 --mode instant --seconds 20 >log 2>&1 &
recorder=$!
await_begin
kill -STOP $recorder
# More than fits.
before=$(oracle_returned)
wait_until 120 has_emitted $((before + 50000)) || fail "the program stops while events are dropped"
kill_hard "$(oracle_pid)"
kill -CONT $recorder
reap $recorder
check "killed while dropping" t.sbt --some-stored --some-lost

# No room even for a second ring: events of threads without one are counted.
fresh
"$TRACESMITH" record -q -o t.sbt --budget 48K -- "$emitter" --oracle "$oracle" --threads 8 --mode instant --rate 20000 --seconds 0.3 >log 2>&1 ||
	fail "record: $(cat log)"
check "no rings" t.sbt --all-done
summary "off: $off; little memory: $small; recorder stopped: $stopped"
