#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program killed at any instant: every event whose emit returned is in the trace, or counted as
# lost, exactly once. TS_LONG=1 kills 500 times.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"
# Metrics are sampled as well, which must not interfere.
export TRACESMITH_BACKENDS=host

kills=16
is_sanitized && kills=12
[ -z "${TS_LONG:-}" ] || kills=500

# Random kinds and rates of events.
choose() {
	local modes=(instant span begin string dynamic counter pair mixed)
	mode=${modes[$(random 8)]}
	threads=$((1 + $(random 3)))
	options=(--mode "$mode" --threads "$threads" --seconds 20)
	case $(random 4) in
	0) options+=(--rate 20000) ;;
	1) options+=(--rate 200000) ;;
	2) options+=(--rate 100000 --signals 500) ;;
	3) options+=(--rate 100000 --churn 704) ;;
	esac
	budget=()
	[ "$(random 3)" -ne 0 ] || budget=(--budget 192K)
	# At full speed: most of it is lost, and what is kept must still add up.
	if [ "$(random 6)" -eq 0 ]; then
		options=(--mode "$mode" --threads "$threads" --seconds 20) budget=(--budget 256K)
	fi
}

begin() {
	fresh
	choose
}

# Started by a recorder.
kill_recorded() {
	begin
	"$TRACESMITH" record -q -o t.sbt "${budget[@]}" -- "$emitter" --oracle "$oracle" "${options[@]}" >log 2>&1 &
	local recorder=$!
	await_begin
	nap_ms "$(random 120)"
	kill_hard "$(oracle_pid)"
	reap $recorder
	[ $code -eq 137 ] || fail "record of a killed program: exit code $code, expected 137: $(cat log)"
	check "recorded, ${options[*]} ${budget[*]}" t.sbt
}

# Several processes, one of which is killed: the others are complete.
kill_one_of_several() {
	begin
	options=(--mode "$mode" --threads 2 --processes 3 --rate 50000 --seconds 0.5)
	"$TRACESMITH" record -q -o t.sbt -- "$emitter" --oracle "$oracle" "${options[@]}" >log 2>&1 &
	local recorder=$!
	await_begin 2
	nap_ms "$(random 120)"
	kill_hard "$(oracle_pid 2)"
	reap $recorder
	# On a slow machine it may have exited before it was killed.
	[ $code -eq 1 ] || { [ $code -eq 0 ] && is_done 2; } || fail "record: exit code $code, expected the program's, 1: $(cat log)"
	check "one of several, ${options[*]}" t.sbt
}

# It started its own recorder, which survives it.
kill_session() {
	begin
	TRACESMITH_OUT=t.sbt "$emitter" --oracle "$oracle" "${options[@]}" >log 2>&1 &
	local program=$!
	await_begin
	nap_ms "$(random 120)"
	kill_hard $program
	reap $program
	await_finished t.sbt
	check "its own recorder, ${options[*]}" t.sbt
	# A message about losses is not an error.
	[ ! -e t.sbt.log ] || ! grep -vE "events? lost|when and why" t.sbt.log || fail "the recorder complains: $(cat t.sbt.log)"
}

# Without a recorder: the newest events outlive it in memory.
kill_alone() {
	begin
	options=(--mode "$mode" --threads "$threads" --rate 300000 --seconds 20)
	TRACESMITH_LIVE=1 "$emitter" --oracle "$oracle" "${options[@]}" >log 2>&1 &
	local program=$!
	await_begin
	nap_ms "$(random 300)"
	kill_hard $program
	reap $program
	expect 0 recover -q $program -o t.sbt
	check "alone, ${options[*]}" t.sbt --flight --some-stored
	expect 0 ps --clean
}

# Attached to while it ran.
kill_attached() {
	begin
	options=(--mode "$mode" --threads "$threads" --rate 100000 --seconds 20)
	TRACESMITH_LIVE=1 "$emitter" --oracle "$oracle" "${options[@]}" >log 2>&1 &
	local program=$!
	await_begin
	"$TRACESMITH" record -q -o t.sbt -p $program >recorder.log 2>&1 &
	local recorder
	await_recorder
	nap_ms "$(random 120)"
	kill_hard $program
	reap $recorder
	[ $code -eq 0 ] || fail "record -p: exit code $code: $(cat recorder.log)"
	check "attached, ${options[*]}" t.sbt --flight
	reap $program
}

for ((i = 0; i < kills; i++)); do
	case $((i % 8)) in
	0 | 1 | 2 | 5) kill_recorded ;;
	3) kill_one_of_several ;;
	4) kill_session ;;
	6) kill_alone ;;
	7) kill_attached ;;
	esac
done
[ $stored -gt 0 ] || fail "nothing was ever stored"
left=$(find "$TRACESMITH_LIVE_DIR" -type f | wc -l)
[ "$left" -eq 0 ] || fail "$left areas remain: $(ls "$TRACESMITH_LIVE_DIR")"
summary "$kills kills"
