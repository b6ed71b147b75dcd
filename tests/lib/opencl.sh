#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For tests/opencl/*.sh: records and replays programs on an OpenCL device; skips if there is none.
. "$TS_SOURCE/tests/lib/replay.sh"

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

# No difference, and something to compare with.
replays() { # what it is about, trace, option...
	agrees "$@"
	case $verdict in *", equals recording") ;; *) fail "$1: replay ${*:2}: verdict '$verdict'" ;; esac
}

# No difference; the recording need not have checks of this part.
agrees() { # what it is about, trace, option...
	replay_json 0 "${@:2}"
	verdict=$(verdict)
	case $verdict in "no difference in "*) ;; *) fail "$1: replay ${*:2}: verdict '$verdict'" ;; esac
	checks=$((${checks:-0} + 1))
}

# The number of rows of a table.
count_of() { rows_of "$@" | wc -l; }
