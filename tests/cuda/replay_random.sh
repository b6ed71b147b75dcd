#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 30 random programs, 600 with TS_LONG=1 (cuda_random.c): each is right alone and when it is
# recorded, and replays without difference. Some have several threads, a window in the middle or a
# check after each command. TS_LONG=1 also records 200 of them at once:
# 100,000 commands. TS_PROGRAMS=N runs another number of them; TS_FIRST=N starts elsewhere.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda_replay.sh"

programs_count=${TS_PROGRAMS:-30} first=${TS_FIRST:-1} batch=10
[ -z "${TS_LONG:-}" ] || programs_count=${TS_PROGRAMS:-600}

for ((i = 0; i < programs_count / batch; i++)); do
	seeds=$((first + batch * i))-$((first + batch * i + batch - 1))
	export STAND_IN_LAZY=$((i % 4 == 3))
	# With several threads not all at once (cuda_random.c).
	case $((i % 3)) in
	0) options=() ;;
	1) options=(--threads 3 --without pinned) ;;
	2) options=(--threads 3 --without graphs) ;;
	esac
	"$random" --seeds $seeds "${options[@]}" >alone 2>&1 || fail "seeds $seeds: the program fails alone: $(grep -v right alone)"
	record t.sbt --replayable -- "$random" --seeds $seeds "${options[@]}"
	# The third run has another order.
	replays "seeds $seeds" t.sbt --repeat 4
	replays "seeds $seeds" t.sbt --check each --repeat $((i % 3 == 1 ? 3 : 1))
	# A window in the middle.
	if [ $((i % 3)) -eq 1 ]; then
		record window.sbt --replayable --window steps:21-40 -- "$random" --seeds $seeds
		replays "seeds $seeds, a window" window.sbt --repeat 3
		replays "seeds $seeds, a window" window.sbt --check each
	fi
	if [ $((i % 3)) -eq 0 ]; then
		record checked.sbt --replayable=checked -- "$random" --seeds $seeds
		replays "seeds $seeds, checked" checked.sbt --check each
	fi
done
if [ -n "${TS_LONG:-}" ]; then
	record t.sbt --replayable -- "$random" --seeds "$first-$((first + 199))"
	replays "200 programs at once" t.sbt --repeat 3
	[ "$(report 'r["commands"]')" -ge 60000 ] || fail "only $(report 'r["commands"]') commands"
fi
echo "$programs_count programs replayed without difference"
