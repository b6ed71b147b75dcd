#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# piglit's tests of the OpenCL API: each passes or fails as it does alone, and what it enqueued is
# replayed. Those that use windows, or read tests from files, are left out.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh" long
folder=$(ls -d /usr/lib/*/piglit/bin 2>/dev/null) || true
[ -n "$folder" ] || skip "no piglit (Debian: piglit)"

compared=0 replayed=0 failures=0
complain() { echo "$*" >&2; failures=$((failures + 1)); }
for test in "$folder"/cl-*; do
	name=${test##*/}
	case $name in *-tester | *-interop-*) continue ;; esac
	# Some fail with this driver: its exit code is that of the program.
	alone=0 recorded=0
	"$test" >alone 2>&1 </dev/null || alone=$?
	rm -f t.sbt t.sbt.*
	"$TRACESMITH" record -q --replayable -o t.sbt -- "$test" >printed 2>&1 </dev/null || recorded=$?
	[ $alone -eq $recorded ] || complain "$name: exit code $alone alone, $recorded recorded"
	diff <(grep PIGLIT alone) <(grep PIGLIT printed) || complain "$name: another result when recorded"
	compared=$((compared + 1))
	# 3: it enqueues nothing.
	code=0
	"$TRACESMITH" replay --json t.sbt --check each --repeat 2 >replay.json 2>stderr || code=$?
	case $code in
	0) replayed=$((replayed + 1)) ;;
	3) grep -q 'nothing to replay' stderr || complain "$name: $(cat stderr)" ;;
	*) complain "$name: replay: exit code $code: $(cat replay.json stderr)" ;;
	esac
done
echo "piglit: $compared tests, $replayed replayed"
[ $failures -eq 0 ] || fail "$failures tests failed"
