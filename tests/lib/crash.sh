#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For scripts that run the tool: failure messages, time limits, waiting, what a trace has.

# shellcheck disable=SC2034 # for those who source this
targets=$TS_BUILD/tests/targets

fail() { echo "$*" >&2; exit 1; }

is_sanitized() { case $TS_BUILD in *san*) return 0 ;; *) return 1 ;; esac; }

# Runs the tool; it must finish in time with this exit code. Its output is in the files stdout and
# stderr.
expect() { # exit code, argument...
	local expected=$1 code=0
	shift
	timeout "${limit_seconds:-300}" "$TRACESMITH" "$@" >stdout 2>stderr </dev/null || code=$?
	[ "$code" -eq "$expected" ] ||
		fail "tracesmith $*: exit code $code, expected $expected: $(head -c 2000 stderr)"
}

# The last message must contain each of these.
says() { # text...
	local text
	for text in "$@"; do
		grep -qF -- "$text" stderr || fail "no message contains '$text': $(head -c 2000 stderr)"
	done
}

# A member of `info --json`.
info_of() { # trace, Python expression on `info`
	"$TRACESMITH" info "$1" --json 2>/dev/null | python3 -c "import json, sys; info = json.load(sys.stdin); print($2)"
}

# The rows of a table, one JSON object per line.
rows_of() { # trace, table
	"$TRACESMITH" view "$1" --json --table "$2" 2>/dev/null
}

# Waits until a command succeeds; fails after a limit.
wait_until() { # seconds, command...
	local end=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
	shift
	until "$@"; do
		[ "${EPOCHREALTIME/[.,]/}" -lt $end ] || return 1
		sleep 0.01
	done
}
