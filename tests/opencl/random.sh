#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 90 random command graphs, 1,000 with TS_LONG=1 (tests/targets/opencl_random.c): run, recorded,
# replayed, compared. Also recorded without a command stream: every command is there once, with
# plausible times. Some with a window in the middle, or replayed in parts. TS_GRAPHS=N runs another
# number of them; TS_FIRST=N starts elsewhere.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"
compile_quickly

graphs=${TS_GRAPHS:-90} first=${TS_FIRST:-1} batch=30
[ -z "${TS_LONG:-}" ] || graphs=${TS_GRAPHS:-1000} batch=50

# Sets $seeds for a batch; each third has two devices, each fourth several threads.
setting() { # number
	local from=$((first + batch * $1))
	seeds=$from-$((from + batch - 1))
	unset POCL_DEVICES
	[ $(($1 % 3)) -ne 1 ] || export POCL_DEVICES="pthread pthread"
	threads=1
	[ $(($1 % 4)) -ne 2 ] || threads=3
}

given() { sed -n 's/^total: \([0-9]*\) commands given.*/\1/p' printed; }

# Each command is a row of gpu_op, and its times are in order.
check_times() { # trace, commands
	rows_of "$1" gpu_op >rows.jsonl
	python3 - "$2" rows.jsonl <<'PY' || fail "seeds $seeds: wrong rows of gpu_op"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[2])]
assert len(rows) == int(sys.argv[1]), f"{len(rows)} rows of {sys.argv[1]} commands"
for row in rows:
    times = [row.get(name) for name in ("queued", "submitted", "start", "duration")]
    assert None not in times, f"a time is missing: {row}"
    times[3] += times[2]
    assert times == sorted(times), f"times are out of order: {row}"
PY
}

total=0
for ((i = 0; i < graphs / batch; i++)); do
	setting $i
	"$random" --seeds $seeds --threads $threads >alone 2>&1 || fail "seeds $seeds: the program fails alone: $(grep -v 'model says' alone)"
	record t.sbt --replayable -- "$random" --seeds $seeds --threads $threads
	replays "seeds $seeds" t.sbt --check each --repeat 2
	total=$((total + $(report 'r["commands"]')))
	if [ $((i % 5)) -eq 0 ]; then
		record plain.sbt -- "$random" --seeds $seeds --threads $threads
		check_times plain.sbt "$(given)"
		replay_json 3 plain.sbt
	fi
	# A window in the middle. With several threads it may never find all user events set.
	if [ $((i % 5)) -eq 2 ]; then
		record window.sbt --replayable --window steps:33-90 -- "$random" --seeds $seeds
		replays "seeds $seeds, a window" window.sbt --check each --repeat 2
	fi
	# A part: from anywhere to anywhere.
	if [ $((i % 5)) -eq 4 ]; then
		for from in 200 900 1500; do
			agrees "seeds $seeds, a part" t.sbt --check each --repeat 2 --from $from --to $((from + 300))
		done
	fi
	if [ $((i % 10)) -eq 1 ]; then
		for way in read copy; do
			TRACESMITH_OPENCL_CHECKS=$way record checked.sbt --replayable=checked -- "$random" --seeds $seeds --threads $threads
			replays "seeds $seeds, checked, $way" checked.sbt --check each
		done
	fi
done
echo "$graphs graphs replayed without difference, $total commands"
