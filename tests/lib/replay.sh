#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For scripts that record programs to replay them, on any target.
. "$TS_SOURCE/tests/lib/crash.sh"

# Records a program; it must succeed. Its output is in the file `printed`, record's in recorded.log.
record() { # trace, record's option..., --, program...
	local trace=$1 code=0
	shift
	rm -f "$trace" "$trace".*
	timeout "${limit_seconds:-3000}" "$TRACESMITH" record -q -o "$trace" "$@" >printed 2>recorded.log </dev/null || code=$?
	[ $code -eq 0 ] || fail "record $*: exit code $code: $(head -c 2000 recorded.log; tail -n 3 printed)"
	expect 0 verify -q "$trace"
}

# True if the window of the only program is open (true), or is not (false).
window_is() { case $("$TRACESMITH" ps --json 2>/dev/null) in *"\"window\":$1"*) ;; *) return 1 ;; esac; }

# Replays with --json; the exit code must be this. The report is in replay.json.
replay_json() { # exit code, trace, option...
	local expected=$1 code=0
	shift
	timeout "${limit_seconds:-3000}" "$TRACESMITH" replay --json "$@" >replay.json 2>stderr </dev/null || code=$?
	[ $code -eq "$expected" ] || fail "replay $*: exit code $code, expected $expected: $(head -c 3000 replay.json stderr)"
}

# A member of the report of the last replay_json(), as Python sees it.
report() { # expression on `r`
	python3 -c "import json; r = json.load(open('replay.json')); print($1)"
}

# The same for its verdict, without the time that Python needs to start.
verdict() { sed -n 's/^{"verdict":"\([^"]*\)".*/\1/p' replay.json; }
