#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For tests/cuda/replay_*.sh: records programs that run on the stand-in driver (tests/cuda/driver)
# and replays them. Needs no device.
. "$TS_SOURCE/tests/lib/cuda.sh"
. "$TS_SOURCE/tests/lib/replay.sh"

export LD_LIBRARY_PATH=$programs/driver
# shellcheck disable=SC2034 # for those who source this
work=$programs/replay_work refused=$programs/refused random=$programs/cuda_random

# No difference, and something to compare with; nor does `record` doubt it.
replays() { # what it is about, trace, option...
	local verdict
	! grep 'cannot be replayed' recorded.log || fail "$1: record says that it cannot be replayed"
	replay_json 0 "${@:2}"
	verdict=$(verdict)
	case $verdict in "no difference in "*", equals recording" | "equals recording"*) ;; *) fail "$1: replay ${*:2}: verdict '$verdict': $(head -c 2000 replay.json)" ;; esac
}

# Must not replay; the message has this text.
cannot_replay() { # text, trace, option...
	local code=0
	timeout "${limit_seconds:-3000}" "$TRACESMITH" replay "${@:2}" >stdout 2>stderr </dev/null || code=$?
	[ $code -gt 1 ] || fail "replay ${*:2}: exit code $code: $(cat stdout stderr)"
	grep -qF -- "$1" stderr || fail "replay ${*:2}: not '$1': $(cat stderr)"
}
