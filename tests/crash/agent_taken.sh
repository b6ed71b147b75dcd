#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recorders come and go: drained space is free, the rest is kept or overwritten. In both modes, in
# any order, across laps and rings, each event was drained, is there, or is counted.
set -euo pipefail
. "$TS_SOURCE/tests/lib/agent.sh"

mkfifo rounds counts
start() {
	rm -rf "$TRACESMITH_LIVE_DIR"
	TRACESMITH_AGENT="session=5;budget=200000" "$targets/agent_odd" rounds <rounds >counts &
	exec 8>rounds 9<counts
	sum=0
}
emit() { # count
	local said
	echo "$1" >&8
	read -r _ said <&9
	sum=$((sum + said))
}
end() {
	exec 8>&- 9<&-
	wait $! || true # it is dead and cannot report
}

mode="in time"
start
for _ in 1 2 3 4 5; do
	emit 550
	holds "one.total == $sum and take(one, 1)"
done
holds 'one.dropped == 0 and one.rings == 1'
end

for modes in "1 0 1 0 1 0" "0 0 0 0" "1 1 1 0 0"; do
	mode=$modes count=300
	start
	for next in $modes; do
		for _ in 1 2 3; do
			emit $count
			count=$((count * 7 / 4 % 2000 + 100))
		done
		# All there; then all drained, and the mode changes.
		holds "one.total == $sum and take(one, $next) and Area(one.path).total == $sum and Area(one.path).stored == 0"
	done
	end
done
