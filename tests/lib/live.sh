#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For scripts that record programs: a private live directory, a program that knows what it emitted
# (live_oracle), and the check of the result (live_check.py).
. "$TS_SOURCE/tests/lib/crash.sh"

emitter=$TS_BUILD/tests/targets/live_oracle
[ -x "$emitter" ] || fail "there is no '$emitter'; build it first"

# Shared memory as in real use, if available; else any directory.
shared=/dev/shm
[ -w $shared ] || shared=${TMPDIR:-/tmp}
live=$(mktemp -d "$shared/tracesmith-test.XXXXXX")
oracle=$live/oracle
mkdir -m 700 "$live/areas"
export TRACESMITH_LIVE_DIR=$live/areas
unset TRACESMITH_OUT FERRUM_TRACE_OUT TRACESMITH_LIVE TRACESMITH_AGENT TRACESMITH_BUDGET TRACESMITH_CRASH_AT
# Tests count events exactly, so metrics are off unless a script enables them.
export TRACESMITH_BACKENDS=none
# The agent is preloaded before the sanitizer, which expects to be first.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0

# Kills what this script started and is still running.
clean_up() {
	local pids
	pids=$(jobs -pr)
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -KILL $pids 2>/dev/null || true
	wait 2>/dev/null || true
	# Programs that outlived their parent, such as those of a killed recorder.
	for area in "$TRACESMITH_LIVE_DIR"/[0-9]*; do
		[ -e "$area" ] || continue
		area=${area##*/}
		pid=${area%%-*}
		[ "$(readlink "/proc/$pid/exe" 2>/dev/null)" != "$emitter" ] || kill -KILL "$pid" 2>/dev/null || true
	done
	rm -rf "$live"
}
trap clean_up EXIT

# Removes everything that was recorded before.
fresh() { rm -f "$oracle" "$oracle".* ./*.sbt ./*.sbt.* ./*.json; }

# A number of the oracle file: offset and size in bytes.
oracle_word() { # byte, bytes
	od -An -tu"$2" -j"$1" -N"$2" "$oracle" 2>/dev/null | tr -d ' '
}

# Those of a slot; the first is 0.
oracle_returned() { oracle_word $((64 + 64 * ${1:-0})) 8; }
oracle_pid() { oracle_word $((64 + 64 * ${1:-0} + 16)) 4; }
oracle_done() { oracle_word $((64 + 64 * ${1:-0} + 24)) 8; }

has_begun() { # slot
	local returned
	returned=$(oracle_returned "${1:-0}")
	[ "${returned:-0}" -gt 0 ]
}

# The first thread.
has_emitted() { # events
	local returned
	returned=$(oracle_returned)
	[ "${returned:-0}" -ge "$1" ]
}

is_done() { # slot
	[ "$(oracle_done "${1:-0}")" = 1 ]
}

is_gone() { # pid
	[ ! -e "/proc/$1" ] || grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null || [ ! -e "/proc/$1" ]
}

# The trace is finished and no recorder uses it any more.
is_finished() { # trace
	[ -s "$1" ] && [ ! -e "$1.journal" ] && flock -n -x "$1" true
}

await_begin() { wait_until 120 has_begun "$@" || fail "the program emits nothing: $(tail -n 5 log 2>/dev/null)"; }
await_done() { wait_until 300 is_done "$@" || fail "the program does not end"; }
# The only program is being recorded, by $recorder.
find_recorder() {
	recorder=$("$TRACESMITH" ps --json 2>/dev/null |
		python3 -c 'import json, sys; print(json.loads(sys.stdin.readline() or "{}").get("recorder_pid", 0))')
	[ "$recorder" -gt 0 ]
}
await_recorder() { wait_until 120 find_recorder || fail "no recorder has come: $(cat log 2>/dev/null)"; }
await_gone() { wait_until 300 is_gone "$1" || fail "process $1 does not end"; }
await_finished() { wait_until 300 is_finished "$1" || fail "'$1' is not finished: $(ls -l "$1"* 2>&1)"; }

random() { echo $((SRANDOM % $1)); }

nap_ms() { sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"; }

kill_hard() { # pid...
	local pid
	for pid in "$@"; do
		[ "$pid" -gt 1 ] || fail "no process to kill" # 0 is the entire process group
	done
	kill -KILL "$@" 2>/dev/null || true
}

# Waits for a process of this shell; its exit code is in $code.
reap() { # pid
	code=0
	# shellcheck disable=SC2034 # for those who source this
	wait "$1" 2>/dev/null || code=$?
}

stored=0 lost=0 checks=0

try_check() { # trace, argument...
	text=
	"$TRACESMITH" verify -q "$1" >check.log 2>&1 </dev/null &&
		text=$(python3 "$TS_SOURCE/tests/crash/live_check.py" "$oracle" "$@" 2>check.log)
}

# Checks the traces against the oracle: see live_check.py. Sets $stored and $lost.
check() { # what it is about, trace, argument...
	local what=$1 text tries=0 is_active
	shift
	while :; do
		is_active=$([ ! -e "$1.journal" ] || echo yes)
		! try_check "$@" || break
		# A recorder that is active before the check may replace the index during it.
		[ -n "$is_active" ] && [ $((tries += 1)) -le 200 ] || fail "$what: '$1': $text$(echo; head -n 12 check.log)"
		nap_ms 50
	done
	# emitted N stored N lost N
	read -r _ _ _ last_stored _ last_lost <<<"$text"
	stored=$((stored + last_stored)) lost=$((lost + last_lost)) checks=$((checks + 1))
}

# Checks a plain array of events, with exactly these members, of a program in mode mixed with one
# thread.
check_json() { # file
	python3 - "$oracle" "$1" <<'END' || fail "'$1' is not what it should be"
import json, struct, sys
events = json.load(open(sys.argv[2]))
returned = struct.unpack_from("<Q", open(sys.argv[1], "rb").read(), 64)[0]
assert isinstance(events, list) and events, "no array"
members = {"name", "cat", "ph", "ts", "dur", "pid", "tid"}
seen = set()
for event in events:
    assert set(event) - {"args"} == (members if event["ph"] == "X" else members - {"dur"}), event
    assert "args" not in event or event["args"], event
    if event["ph"] == "M":
        assert event["name"] in ("process_name", "thread_name") and event["args"]["name"], event
        continue
    assert event["cat"] == "oracle", event
    assert type(event["ts"]) in (int, float) and type(event.get("dur", 0)) in (int, float), event
    assert event["args"]["s"] not in seen, event
    seen.add(event["args"]["s"])
# Every event except ends, which have no separate line.
expected = {s for s in range(returned) if s % 8 != 5}
assert seen == expected, f"{len(expected - seen)} missing, {len(seen - expected)} too many"
END
	checks=$((checks + 1))
}

summary() { echo "$checks checks: $stored events stored, $lost lost and counted${1:+; $1}"; }
