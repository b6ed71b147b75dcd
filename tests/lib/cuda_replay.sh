#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For tests/cuda/replay_*.sh: records programs that run on the stand-in driver (tests/cuda/driver)
# and replays them. Needs no device.
. "$TS_SOURCE/tests/lib/cuda.sh"

export LD_LIBRARY_PATH=$programs/driver
# shellcheck disable=SC2034 # for those who source this
work=$programs/replay_work refused=$programs/refused random=$programs/cuda_random

# record OUTPUT OPTION.. -- PROGRAM ARGUMENT..: must succeed.
record() {
	local to=$1
	shift
	"$TRACESMITH" record -q --backend cuda -o "$to" "$@" >record.out 2>record.err || {
		cat record.out record.err
		fail "record $*"
	}
}

# replays WHAT TRACE OPTION..: the replay finds no difference.
replays() {
	local what=$1
	shift
	"$TRACESMITH" replay "$@" >replay.out 2>replay.err || {
		cat replay.out replay.err
		fail "$what: replay $* exits with $?"
	}
}
