#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A recorded program gets the same answers to OpenCL queries (tests/targets/opencl_answers.c).
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

program=$targets/opencl_answers
[ -x "$program" ] || fail "no '$program'; build it first"
"$program" >alone 2>&1 || fail "the program fails alone: $(cat alone)"
for options in "" --replayable --replayable=checked copy; do
	[ "$options" != copy ] || export TRACESMITH_OPENCL_CHECKS=copy
	options=${options/copy/--replayable=checked}
	# shellcheck disable=SC2086 # nothing, or an option
	record t.sbt $options -- "$program"
	diff alone printed || fail "recorded with '$options' its answers differ"
	[ "$(count_of t.sbt gpu_op)" -gt 0 ] && [ "$(count_of t.sbt api_call)" -gt 0 ] || fail "nothing is recorded"
done
