#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For tests/opencl/*.sh: records and replays programs on an OpenCL device; skips if there is none.
. "$TS_SOURCE/tests/lib/crash.sh"

pipeline=$TS_BUILD/examples/opencl_pipeline
# shellcheck disable=SC2034 # for those who source this
race=$TS_BUILD/examples/opencl_race
# shellcheck disable=SC2034,SC2154
random=$targets/opencl_random

skip() { echo "skip: $*"; exit 77; }

export LC_ALL=C
# Shared memory as in real use, if available; else any directory.
shared=/dev/shm
[ -w $shared ] || shared=${TMPDIR:-/tmp}
live=$(mktemp -d "$shared/tracesmith-test.XXXXXX")
export TRACESMITH_LIVE_DIR=$live/areas
mkdir -m 700 "$TRACESMITH_LIVE_DIR"
unset TRACESMITH_OUT FERRUM_TRACE_OUT TRACESMITH_LIVE TRACESMITH_AGENT TRACESMITH_BUDGET TRACESMITH_BACKENDS OPENCL_LAYERS POCL_DEVICES POCL_EXTRA_BUILD_FLAGS POCL_WORK_GROUP_SPECIALIZATION
# Keeps PoCL's compiler cache with the build: only the first run takes a minute.
export POCL_CACHE_DIR=$TS_BUILD/tests/pocl-cache
mkdir -p "$POCL_CACHE_DIR"
# The same for what the agent learns about kernels.
export TRACESMITH_CACHE_DIR=$TS_BUILD/tests/cache
# The agent is preloaded before the sanitizer, which expects to be first; drivers leak.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0:detect_leaks=0

# For scripts with many kernels: most of the time is PoCL's compiler. It optimizes nothing, and makes
# one version of a kernel for all sizes of work-groups. TS_LONG=1: the versions that users get.
compile_quickly() {
	[ -n "${TS_LONG:-}" ] || export POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable POCL_WORK_GROUP_SPECIALIZATION=0
}

# Kills what this script started and is still running.
clean_up() {
	local pids
	pids=$(jobs -pr)
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -KILL $pids 2>/dev/null || true
	wait 2>/dev/null || true
	! mountpoint -q disk 2>/dev/null || umount disk || true
	rm -rf "$live"
}
trap clean_up EXIT

[ -x "$pipeline" ] || skip "built without OpenCL (its headers were not found)"
"$TRACESMITH" replay --help >/dev/null 2>&1 || fail "the tool has no verb 'replay'"
code=0
"$pipeline" --steps 0 >device.log 2>&1 || code=$?
[ $code -ne 4 ] || skip "no OpenCL device"
[ $code -eq 0 ] || fail "opencl_pipeline: exit code $code: $(cat device.log)"

# Waits until a command succeeds; fails after a limit.
wait_until() { # seconds, command...
	local end=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
	shift
	until "$@"; do
		[ "${EPOCHREALTIME/[.,]/}" -lt $end ] || return 1
		sleep 0.02
	done
}

# Records a program; it must succeed. Its output is in the file `printed`.
record() { # trace, record's option..., --, program...
	local trace=$1 code=0
	shift
	rm -f "$trace" "$trace".*
	timeout "${limit_seconds:-3000}" "$TRACESMITH" record -q -o "$trace" "$@" >printed 2>recorded.log </dev/null || code=$?
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
	timeout "${limit_seconds:-3000}" "$TRACESMITH" replay --json "$@" >replay.json 2>stderr </dev/null || code=$?
	[ $code -eq "$expected" ] || fail "replay $*: exit code $code, expected $expected: $(head -c 3000 replay.json stderr)"
}

# No difference, and something to compare with.
replays() { # what it is about, trace, option...
	agrees "$@"
	case $verdict in *", equals recording") ;; *) fail "$1: replay ${*:2}: verdict '$verdict'" ;; esac
}

# No difference; the recording need not have checks of this part.
agrees() { # what it is about, trace, option...
	replay_json 0 "${@:2}"
	verdict=$(sed -n 's/^{"verdict":"\([^"]*\)".*/\1/p' replay.json)
	case $verdict in "no difference in "*) ;; *) fail "$1: replay ${*:2}: verdict '$verdict'" ;; esac
	checks=$((${checks:-0} + 1))
}

# The rows of a table, one JSON object per line.
rows_of() { # trace, table
	"$TRACESMITH" view "$1" --json --table "$2" 2>/dev/null
}
count_of() { rows_of "$@" | wc -l; }
