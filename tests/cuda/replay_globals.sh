#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Variables of modules lie elsewhere in a replay: pointers to them are changed wherever they are.
# And where they do not, nothing is.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda_replay.sh"

relocated() { report 'r.get("relocated", 0)'; }
for window in "" "--window steps:20-30"; do
	modes="globals modules"
	[ -z "$window" ] || modes="globals modules steps globals"
	for checked in "" =checked; do
		# shellcheck disable=SC2086 # words
		STAND_IN_GLOBALS=0x7d0000000000 record t.sbt --replayable$checked $window -- "$work" $modes
		STAND_IN_GLOBALS=0x7c0000000000 replays "elsewhere" t.sbt --repeat 2
		STAND_IN_GLOBALS=0x7c0000000000 replays "elsewhere" t.sbt --check each --repeat 2
		STAND_IN_GLOBALS=0x7d0000000000 replays "at the same place" t.sbt --check each --repeat 2
	done
done
record t.sbt --replayable -- "$work" globals
STAND_IN_GLOBALS=0x7c0000000000 "$TRACESMITH" replay t.sbt >stdout 2>stderr </dev/null || fail "$(cat stdout stderr)"
grep -q "words" stdout stderr || fail "the report does not say that pointers were changed: $(cat stdout stderr)"
echo "variables may lie anywhere"
