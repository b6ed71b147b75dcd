#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For tests/cuda/replay_*.sh: records programs that run on the stand-in driver (tests/cuda/driver)
# and replays them. Needs no device.
. "$TS_SOURCE/tests/lib/cuda.sh"

export LD_LIBRARY_PATH=$programs/driver
# shellcheck disable=SC2034 # for those who source this
work=$programs/replay_work refused=$programs/refused random=$programs/cuda_random

# Waits until a command succeeds; fails after a limit.
wait_until() { # seconds, command...
	local end=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
	shift
	until "$@"; do
		[ "${EPOCHREALTIME/[.,]/}" -lt $end ] || return 1
		sleep 0.02
	done
}

# Records a program; it must succeed. Its output is in the file `printed`, record's in recorded.log.
record() { # trace, record's option..., --, program...
	local trace=$1 code=0
	shift
	rm -f "$trace" "$trace".*
	timeout "${limit_seconds:-600}" "$TRACESMITH" record -q -o "$trace" "$@" >printed 2>recorded.log </dev/null || code=$?
	[ $code -eq 0 ] || fail "record $*: exit code $code: $(head -c 2000 recorded.log; tail -n 3 printed)"
	expect 0 verify -q "$trace"
}

# A member of the report of the last replay_json(), as Python sees it.
report() { # expression on `r`
	python3 -c "import json; r = json.load(open('replay.json')); print($1)"
}

# Replays with --json; the exit code must be this. The report is in replay.json.
replay_json() { # exit code, trace, option...
	local expected=$1 code=0
	shift
	timeout "${limit_seconds:-600}" "$TRACESMITH" replay --json "$@" >replay.json 2>stderr </dev/null || code=$?
	[ $code -eq "$expected" ] || fail "replay $*: exit code $code, expected $expected: $(head -c 3000 replay.json stderr)"
}

# No difference, and something to compare with; nor does `record` doubt it.
replays() { # what it is about, trace, option...
	local verdict
	! grep 'cannot be replayed' recorded.log || fail "$1: record says that it cannot be replayed"
	replay_json 0 "${@:2}"
	verdict=$(sed -n 's/^{"verdict":"\([^"]*\)".*/\1/p' replay.json)
	case $verdict in "no difference in "*", equals recording" | "equals recording"*) ;; *) fail "$1: replay ${*:2}: verdict '$verdict'" ;; esac
}

# Must not replay; the message has this text.
cannot_replay() { # text, trace, option...
	local code=0
	timeout "${limit_seconds:-600}" "$TRACESMITH" replay "${@:2}" >stdout 2>stderr </dev/null || code=$?
	[ $code -gt 1 ] || fail "replay ${*:2}: exit code $code: $(cat stdout stderr)"
	grep -qF -- "$1" stderr || fail "replay ${*:2}: not '$1': $(cat stderr)"
}
