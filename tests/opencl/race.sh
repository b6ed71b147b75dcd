#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The race example: a replay reports nondeterminism and names the kernel with the bug, not one that
# uses its result. Fixed, it replays without difference.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

# Must name one of these kernels. A race that does not show is tried again: ten misses in a row are
# unlikely.
finds_race() { # trace, kernel...
	local trace=$1 tries kernel
	shift
	for tries in 1 2 3 4 5 6 7 8 9 10; do
		code=0
		timeout 300 "$TRACESMITH" replay --json "$trace" --check each --repeat 4 >replay.json 2>stderr </dev/null || code=$?
		[ $code -ne 0 ] || continue
		[ $code -eq 1 ] || fail "replay $trace: exit code $code: $(cat stderr)"
		[ "$(report 'r["verdict"]')" = nondeterministic ] || fail "'$trace': verdict '$(report 'r["verdict"]')'"
		kernel=$(report 'r["kernel"]')
		case " $* " in *" $kernel "*) ;; *) fail "'$trace': kernel '$kernel' is named, not one of: $*" ;; esac
		[ "$(report 'r["bytes_differing"] > 0 and r["first_byte"] >= 0 and r["command"] > 0 and r["buffer"] != ""')" = True ] ||
			fail "'$trace': the difference is not described: $(cat replay.json)"
		return
	done
	fail "'$trace': no race shows in $tries times 4 runs"
}

record kernel.sbt --replayable -- "$race" --mode kernel
finds_race kernel.sbt count_values
for _ in 1 2 3 4 5 6 7 8 9 10; do
	code=0
	timeout 300 "$TRACESMITH" replay kernel.sbt --check each --repeat 4 --as u32 >stdout 2>stderr </dev/null || code=$?
	[ $code -eq 0 ] || break
done
[ $code -eq 1 ] || fail "the text of a race: exit code $code: $(cat stderr)"
grep -q nondeterministic stdout && grep -q count_values stdout || fail "text of a race: $(cat stdout)"

record queues.sbt --replayable -- "$race" --mode queues
finds_race queues.sbt left right

for mode in kernel queues; do
	record fixed.sbt --replayable -- "$race" --mode $mode --fixed
	replays "$mode, put right" fixed.sbt --check each --repeat 4
done
echo "both races are found and named"
