#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All that a CUDA program may do and a replay can repeat: recorded from the start, and with a check
# after each command; replayed as a whole and command by command. TS_LONG=1: each alone.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda_replay.sh"

modes=all
# shellcheck disable=SC2046 # a list of words
[ -z "${TS_LONG:-}" ] || modes="all $(echo $("$work" list))"
for mode in $modes; do
	"$work" "$mode" >alone 2>&1 || fail "$mode fails alone: $(cat alone)"
	record t.sbt --replayable -- "$work" "$mode"
	replays "$mode" t.sbt --repeat 4
	replays "$mode" t.sbt --check each --repeat 3
	STAND_IN_LAZY=1 replays "$mode, late" t.sbt --repeat 2
	record checked.sbt --replayable=checked -- "$work" "$mode"
	replays "$mode, checked" checked.sbt --check each
	STAND_IN_LAZY=1 record lazy.sbt --replayable -- "$work" "$mode"
	replays "$mode, recorded late" lazy.sbt --repeat 3
	echo "$mode: equal"
done
# Memory that pools give back while a window is open: the program expects it, as a real driver does.
record t.sbt --replayable -- "$work" pool_thresholds
replays pool_thresholds t.sbt --check each --repeat 2
echo "pool_thresholds: equal"
# What gives memory back asks the driver for thresholds, which ends captures of other threads.
for window in "" "--window nvtx:never"; do
	# shellcheck disable=SC2086 # an option and its value, or nothing
	record t.sbt --replayable $window -- "$work" capture_beside_frees
done
record t.sbt --replayable -- "$work" capture_and_pinned
# The driver has no memory for what is asked of it during a capture, to see if that is allowed.
STAND_IN_MEMORY=$((64 << 20)) record t.sbt --replayable --window nvtx:never -- "$work" capture_without_memory
# Pinned memory that no kernel can see, but beside its address are numbers as a model has them.
record t.sbt --replayable -- "$work" sizes
replays sizes t.sbt --repeat 2
"$TRACESMITH" replay t.sbt --list -q >list 2>stderr || fail "--list: $(cat stderr)"
! grep "host_write" list || fail "sizes of a model count as pointers to pinned memory"
