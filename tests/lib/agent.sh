#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For scripts that abuse an observed program: a private live directory, and its contents read by
# live_area.py, an independent implementation of docs/live.md.
. "$TS_SOURCE/tests/lib/crash.sh"
targets=${targets:?}

shared=/dev/shm
[ -w $shared ] || shared=${TMPDIR:-/tmp}
# A script that re-executes itself in a namespace inherits it.
if [ -z "${live:-}" ]; then
	live=$(mktemp -d "$shared/tracesmith-agent.XXXXXX")
	trap 'rm -rf "$live"' EXIT
	export live
fi
export TRACESMITH_LIVE_DIR=$live/areas
unset TRACESMITH_OUT FERRUM_TRACE_OUT TRACESMITH_LIVE TRACESMITH_AGENT TRACESMITH_BUDGET TRACESMITH_RECORDER
# Tests count events exactly, so metrics are off unless a script enables them.
export TRACESMITH_BACKENDS=none
# The leak check does not work under ptrace, and the sanitizer expects to be loaded first.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:verify_asan_link_order=0
agent=$TS_BUILD/libtracesmith-agent.so
[ -e "$agent" ] || fail "there is no '$agent'; build it first"

# Flight mode; stream mode without a recorder; the same with space for a few rings only.
in_mode() { # flight|stream|small
	unset TRACESMITH_LIVE TRACESMITH_AGENT
	case $1 in
	flight) export TRACESMITH_LIVE=1 ;;
	stream) export TRACESMITH_AGENT="session=5;budget=5000000" ;;
	small) export TRACESMITH_AGENT="session=5;budget=200000" ;;
	esac
	mode=$1
	rm -rf "$TRACESMITH_LIVE_DIR"
}

read_areas() { python3 "$TS_SOURCE/tests/lib/live_area.py" "$@"; }

# A Python expression on the contents must be true.
holds() { # expression
	read_areas "$TRACESMITH_LIVE_DIR" --check "$1" || fail "${FUNCNAME[1]}: ${what:-} ${mode:-}: not so: $1"
}

# Runs a program that prints how many events it emitted: all of them must be there, or be counted as
# lost. $and, if set, must hold, too.
all_there() { # program, argument...
	local code=0
	what="$*"
	timeout 300 "$targets/$1" "${@:2}" >counts || code=$?
	[ $code -eq 0 ] || fail "$what: $mode: exit code $code"
	[ -s counts ] || fail "$what: $mode: no output"
	read_areas "$TRACESMITH_LIVE_DIR" --counts counts --check "${and:-True}" || fail "$what: $mode"
}

# No area was created; the program ran normally.
is_off() { # program, argument...
	local code=0
	what="$*"
	timeout 300 "$targets/$1" "${@:2}" >counts || code=$?
	[ $code -eq 0 ] || fail "$what: $mode: exit code $code"
	[ -z "$(ls "$TRACESMITH_LIVE_DIR" 2>/dev/null)" ] || fail "$what: $mode: there is an area"
}

is_root() { [ "$(id -u)" -eq 0 ]; }
