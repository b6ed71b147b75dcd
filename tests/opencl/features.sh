#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every supported feature (tests/targets/opencl_features.c), together on one device and on two, and
# each alone (TS_LONG=1). With unsupported features the program still runs, and a replay names them.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

program=$targets/opencl_features
[ -x "$program" ] || fail "no '$program'; build it first"
mapfile -t names < <("$program" --list | sed -n 's/^\([a-z_]*\) *$/\1/p')
mapfile -t others < <("$program" --list | sed -n 's/^\([a-z_]*\) *\*.*/\1/p')
[ ${#names[@]} -gt 10 ] || fail "only ${#names[@]} features"

for devices in pthread "pthread pthread"; do
	export POCL_DEVICES=$devices
	"$program" >alone
	ways=("" read)
	[ "$devices" = pthread ] || ways=(copy)
	[ -z "${TS_LONG:-}" ] || ways=("" read copy)
	for way in "${ways[@]}"; do
		export TRACESMITH_OPENCL_CHECKS=$way
		mode=--replayable${way:+=checked}
		record t.sbt $mode -- "$program"
		diff alone printed || fail "recorded with $mode $way its result differs"
		! rows_of t.sbt loss | grep "checks of memory\|contents of memory" || fail "$mode $way: checks are lost"
		replays "all features, $mode $way, $devices" t.sbt --check each --repeat 2
	done
done
unset POCL_DEVICES TRACESMITH_OPENCL_CHECKS
# Each alone shows which one fails, and nothing that all together do not.
[ -n "${TS_LONG:-}" ] || names=()
for name in "${names[@]}"; do
	record t.sbt --replayable -- "$program" "$name"
	replays "$name" t.sbt --check each
done

# Between two that can be replayed: those are replayed all the same.
for name in "${others[@]}"; do
	code=0
	"$program" copies "$name" rectangles >alone 2>&1 || code=$?
	[ $code -eq 0 ] || continue
	record t.sbt --replayable -- "$program" copies "$name" rectangles
	diff alone printed || fail "recorded, the result of '$name' differs"
	code=0
	"$TRACESMITH" replay t.sbt >stdout 2>stderr </dev/null || code=$?
	[ $code -eq 3 ] || [ $code -eq 4 ] || fail "replay of '$name': exit code $code: $(head -c 1000 stdout stderr)"
	says command
	[ $code -eq 4 ] || [ "$(count_of t.sbt loss)" -gt 0 ] || fail "'$name': the missing part is not counted"
	# Its waits are kept, so that others are not replayed in another order.
	[ "$name" != many_views ] || [ "$(rows_of t.sbt command | grep -c '"wait":\[.*too long')" -eq 1 ] || fail "a launch with many arguments loses its waits"
	replay_json 0 t.sbt --skip-unsupported
	[ "$(report 'r["skipped"] > 0 and r["checks"] > 2 and r["equal"]')" = True ] || fail "'$name' is not skipped: $(cat replay.json)"
done
echo "$checks replays"
