#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A recorder killed at any instant, and at each point that docs/live.md names: `record --resume` and
# `recover` find every emitted event exactly once. TS_LONG=1 kills 100 times.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"
# Metrics are sampled as well, which must not interfere.
export TRACESMITH_BACKENDS=host

# The tool, which dies at the point in TRACESMITH_CRASH_AT.
crash_tool=$TS_BUILD/tracesmith-crash
[ -x "$crash_tool" ] || fail "there is no '$crash_tool'; build it first"

kills=6 passes=1
is_sanitized && kills=4
[ -z "${TS_LONG:-}" ] || kills=100 passes=4

# Starts a recording in the background; sets $recorder to its pid.
start() { # record's option...
	"$TRACESMITH" record -q -o t.sbt "$@" -- "$emitter" --oracle "$oracle" "${options[@]}" >log 2>&1 &
	recorder=$!
}

begin() {
	local modes=(instant span begin string dynamic counter pair mixed)
	fresh
	options=(--mode "${modes[$(random 8)]}" --threads $((1 + $(random 3))) --seconds "0.$((3 + $(random 3)))" --rate 60000)
	[ "$(random 4)" -ne 0 ] || options+=(--churn 504)
	[ "$(random 4)" -ne 0 ] || options+=(--processes 3)
	saves=()
	case $(random 3) in
	0) saves=(--autosave 20ms) ;;
	1) saves=(--autosave 50ms --budget 256K) ;;
	esac
}

all_done() {
	local i slots=$((($(stat -c %s "$oracle") - 64) / 64))
	for ((i = 0; i < slots; i++)); do
		is_done $i || return 1
	done
}

await_all_done() { wait_until 300 all_done || fail "the program does not end"; }

# Resumes until the program has ended; killed again and again on the way.
go_on() { # times to be killed
	local i resumed
	for ((i = 0; i < $1; i++)); do
		"$TRACESMITH" record -q --resume t.sbt "${saves[@]:0:2}" >log 2>&1 &
		resumed=$!
		nap_ms "$(random 100)"
		kill_hard $resumed
		reap $resumed
	done
	# Without a journal the recording was complete before the kill.
	[ ! -e t.sbt.journal ] || expect 0 record -q --resume t.sbt
}

# The program continues without a recorder.
kill_and_resume() { # times to be killed again
	begin
	start "${saves[@]}"
	await_begin
	nap_ms "$(random 250)"
	kill_hard $recorder
	reap $recorder
	nap_ms "$(random 150)"
	go_on "$1"
	await_all_done
	[ ! -e t.sbt.journal ] || fail "the journal is still there"
	check "resumed, ${options[*]} ${saves[*]}" t.sbt --all-done
}

# Recovers a copy without changing the original, which is then resumed, too.
kill_and_recover() {
	begin
	start "${saves[@]}"
	await_begin
	nap_ms "$(random 250)"
	kill_hard $recorder
	reap $recorder
	await_all_done
	if [ -e t.sbt.journal ]; then
		cksum t.sbt t.sbt.journal >before
		expect 0 recover -q t.sbt -o r.sbt
		cksum t.sbt t.sbt.journal >after
		cmp -s before after || fail "recover changed what it read"
		check "recovered, ${options[*]} ${saves[*]}" r.sbt --all-done
		expect 0 record -q --resume t.sbt
	fi
	check "resumed at the end, ${options[*]} ${saves[*]}" t.sbt --all-done
}

# Each thread of each process has written its pid.
all_named() {
	[ -s "$oracle" ] || return 1
	local i slots=$((($(stat -c %s "$oracle") - 64) / 64))
	for ((i = 0; i < slots; i++)); do
		[ "$(oracle_pid $i)" -gt 0 ] || return 1
	done
}

kill_both() {
	begin
	options+=(--seconds 20)
	start "${saves[@]}"
	wait_until 120 all_named || fail "not all threads start: $(cat log)"
	nap_ms "$(random 200)"
	local pids=() i slots=$((($(stat -c %s "$oracle") - 64) / 64))
	for ((i = 0; i < slots; i++)); do
		pids+=("$(oracle_pid $i)")
	done
	# The parent goes first.
	local parents
	mapfile -t parents < <(pgrep -P $recorder)
	mapfile -t pids < <(printf '%s\n' "${parents[@]}" "${pids[@]}" | grep -v '^0*$')
	if [ "$(random 2)" -eq 0 ]; then
		kill_hard $recorder "${pids[@]}"
	else
		kill_hard "${pids[@]}" $recorder
	fi
	reap $recorder
	for i in "${pids[@]}"; do
		await_gone "$i"
	done
	sleep 0.05
	if [ -e t.sbt.journal ]; then
		expect 0 recover -q t.sbt -o r.sbt
		check "both killed, recovered, ${options[*]} ${saves[*]}" r.sbt
		expect 0 record -q --resume t.sbt
	fi
	check "both killed, ${options[*]} ${saves[*]}" t.sbt
}

# Killed around the instant at which a rotation takes effect.
crash_in_rotation() { # point, pass
	local seconds
	for seconds in 0.5 3 20; do
		begin
		TRACESMITH_CRASH_AT=$1:$2 "$crash_tool" record -q -o t.sbt --rotate 60ms -- \
			"$emitter" --oracle "$oracle" --mode mixed --threads 2 --seconds $seconds --rate 50000 >log 2>&1 &
		recorder=$!
		reap $recorder
		[ $code -eq 0 ] || break
	done
	[ $code -eq 137 ] || fail "$1:$2: exit code $code: $(cat log)"
	died=$((died + 1))
	local journals=(t.*.sbt.journal) files
	expect 0 record -q --resume "${journals[0]%.journal}"
	await_all_done
	files=(t.*.sbt)
	check "$1:$2 resumed" "${files[0]}" "${files[@]:1}" --all-done
	[ ! -e "${journals[0]}" ] || fail "$1:$2: a journal is left: $(ls)"
}

# A trace in use by a live recorder is refused.
refuse() {
	begin
	options=(--mode mixed --threads 2 --rate 20000 --seconds 60)
	start
	wait_until 120 test -e t.sbt.journal || fail "no journal: $(cat log)"
	await_begin
	expect 3 record -q --resume t.sbt
	says t.sbt
	expect 3 record -q -o t.sbt -- true
	says t.sbt
	expect 3 recover -q t.sbt -o r.sbt
	says t.sbt
	kill -TERM $recorder
	reap $recorder
	[ $code -eq 143 ] || fail "record: exit code $code: $(cat log)"
	check "undisturbed by others" t.sbt
}

# Leftovers of a killed recorder are kept when the next one uses the same name.
keep() {
	begin
	rm -f "$live/gate"
	options+=(--seconds 0 --count 8000 --flush --gate "$live/gate")
	start "${saves[@]}"
	await_begin
	nap_ms 50
	kill_hard $recorder
	reap $recorder
	touch "$live/gate"
	await_all_done
	"$TRACESMITH" record -o t.sbt -- true >log 2>&1 || fail "record: $(cat log)"
	grep -q "t.1.sbt" log || fail "no message about the kept files: $(cat log)"
	expect 0 recover -q t.1.sbt -o r.sbt
	check "kept, ${options[*]} ${saves[*]}" r.sbt --all-done
	expect 0 record -q --resume t.1.sbt
	check "kept and resumed, ${options[*]} ${saves[*]}" t.1.sbt --all-done
}

# On a small disk the journal restarts every 1.5 MB, while blocks arrive.
kill_on_small_disk() {
	begin
	rm -f small/*
	"$TRACESMITH" record -q -o small/t.sbt -- \
		"$emitter" --oracle "$oracle" --mode pair --threads 2 --rate 200000 --seconds 0.6 >log 2>&1 &
	recorder=$!
	await_begin
	nap_ms "$(random 400)"
	kill_hard $recorder
	reap $recorder
	nap_ms 50
	[ ! -e small/t.sbt.journal ] || expect 0 record -q --resume small/t.sbt
	await_all_done
	check "on a small disk" small/t.sbt --all-done
}

# JSON is written from a trace beside it, which another recorder finishes.
kill_json() {
	local TRACESMITH_BACKENDS=none
	begin
	rm -f "$live/gate"
	"$TRACESMITH" record -q -o t.json --autosave 50ms -- \
		"$emitter" --oracle "$oracle" --mode mixed --rate 10000 --seconds 0 --count 4000 --flush --gate "$live/gate" >log 2>&1 &
	recorder=$!
	await_begin
	nap_ms "$(random 200)"
	kill_hard $recorder
	reap $recorder
	touch "$live/gate"
	expect 0 record -q --resume t.json
	await_all_done
	check_json t.json
}

# A recorder started by a program: the next program with the same output resumes from its leftovers.
kill_detached() {
	begin
	# In the middle it flushes and waits for the gate, until its recorder is killed.
	rm -f "$live/gate"
	TRACESMITH_OUT=t.sbt "$emitter" --oracle "$oracle" --threads 2 --mode mixed --rate 20000 --seconds 0 --count 8000 \
		--flush --gate "$live/gate" >log 2>&1 &
	local program=$!
	await_recorder
	nap_ms "$(random 100)"
	kill_hard $recorder
	touch "$live/gate"
	reap $program
	[ -e t.sbt.journal ] || fail "no journal"
	if [ "$1" = resume ]; then
		expect 0 record -q --resume t.sbt
		check "its own recorder was killed" t.sbt --all-done
	else
		TRACESMITH_OUT=t.sbt "$emitter" --oracle "$oracle.2" --first 1 --mode mixed --rate 20000 --seconds 0.2 >log 2>&1
		await_finished t.sbt
		oracle=$oracle,$oracle.2 check "the next program went on" t.sbt --all-done
	fi
}

# Killed before there is a journal: there is nothing to resume, and areas, if any, hold everything.
recover_area() { # what
	# The program starts when the recording is open.
	[ -e "$oracle" ] || return 0
	await_all_done
	expect 0 recover -q "$(oracle_pid)" -o r.sbt
	check "$1, from memory" r.sbt --all-done
	expect 0 ps --clean
}

crash_at() { # point, how often it is passed
	local seconds
	# A slow machine passes the point less often: then the program runs longer.
	for seconds in 0.5 3 20; do
		begin
		options=(--mode mixed --threads 2 --seconds "$seconds" --rate 50000)
		TRACESMITH_CRASH_AT=$1:$2 "$crash_tool" record -q -o t.sbt --autosave 30ms -- \
			"$emitter" --oracle "$oracle" "${options[@]}" >log 2>&1 &
		recorder=$!
		reap $recorder
		[ $code -eq 0 ] && [ "$pass" -eq 1 ] || break
	done
	if [ $code -eq 0 ]; then
		[ "$pass" -gt 1 ] || fail "$1 was not passed $2 times"
		check "$1:$2 was not passed" t.sbt --all-done
		return
	fi
	[ $code -eq 137 ] || fail "$1:$2: exit code $code: $(cat log)"
	died=$((died + 1))
	if [ ! -e t.sbt.journal ]; then
		[[ "$1:$2" = R0:* || "$1:$2" = R1:1 ]] || fail "$1:$2: no journal"
		recover_area "$1:$2"
		return
	fi
	if [ $((pass % 2)) -eq 0 ] && [ -e "$oracle" ]; then
		await_all_done
		expect 0 recover -q t.sbt -o r.sbt
		check "$1:$2 recovered" r.sbt --all-done
	fi
	# Long enough for rings to wrap: data that was freed but not stored would be overwritten.
	nap_ms 150
	expect 0 record -q --resume t.sbt
	expect 0 verify -q t.sbt
	# It may have died before the program was started.
	[ -e "$oracle" ] || return 0
	await_all_done
	check "$1:$2 resumed" t.sbt --all-done
}

for ((i = 0; i < kills; i++)); do
	case $((i % 4)) in
	0) kill_and_resume 0 ;;
	1) kill_and_resume $((1 + $(random 3))) ;;
	2) kill_and_recover ;;
	3) kill_both ;;
	esac
done

mkdir small
if mount -t tmpfs -o size=24m tmpfs small 2>/dev/null; then
	trap 'clean_up; umount -l small' EXIT
	for ((i = 0; i < passes * 2; i++)); do
		kill_on_small_disk
	done
else
	echo "left out: a small disk (no right to mount one)"
fi
refuse
keep
kill_json
kill_detached resume
kill_detached next

died=0
for ((pass = 1; pass <= passes; pass++)); do
	# Each some way into the recording, further in later passes.
	for point in R0:1 R1:9 R2:3 R3:2 R4:15 R5:5 R6:2 R7:3 R8:1; do
		crash_at ${point%:*} $((${point#*:} + 3 * (pass - 1)))
	done
	for point in rotate-decided rotate-renamed; do
		crash_in_rotation $point $pass
	done
done
[ $stored -gt 0 ] || fail "nothing was ever stored"
summary "$kills kills, $died deaths at R0 to R8 and in rotations"
