#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The unusual programs of the other agent_*.sh under `record`, with a recorder that they start
# themselves, and with `recover`: stored plus lost events equal what the programs say they emitted.
set -euo pipefail
. "$TS_SOURCE/tests/lib/agent.sh"

emitted() { awk '{ sum += $2 } END { print sum + 0 }' counts; }

accounts() { # what
	local sum
	expect 0 verify -q t.sbt
	sum=$(info_of t.sbt 'info["events"] + sum(loss.get("count", 0) for loss in info["loss"])')
	[ "$sum" = "$(emitted)" ] || fail "$1: $(emitted) were emitted, the trace accounts for $sum: $(info_of t.sbt 'info["events"], info["loss"]')"
}
record() { # program, case
	rm -rf "$TRACESMITH_LIVE_DIR" t.sbt*
	timeout 300 "$TRACESMITH" record -q -o t.sbt -- "$targets/$1" "${@:2}" >counts 2>errors || fail "$*: exit code $?: $(cat errors)"
	accounts "record $*"
	[ -z "$(ls "$TRACESMITH_LIVE_DIR")" ] || fail "$*: areas are left: $(ls "$TRACESMITH_LIVE_DIR")"
}
for part in tree late clone vfork exec busy; do record agent_fork $part; done
for part in early short many ends cancel storm; do record agent_threads $part; done
record agent_odd environment
record agent_odd unseen
record agent_odd file_limit 1000000

# Its own recorder, which the program cannot see.
for program in "agent_odd unseen" "agent_fork tree" "agent_threads ends"; do
	rm -rf "$TRACESMITH_LIVE_DIR" t.sbt*
	# shellcheck disable=SC2086 # two words
	TRACESMITH_OUT=t.sbt TRACESMITH_RECORDER=$TRACESMITH "$targets/"$program >counts || fail "$program: exit code $?"
	for ((i = 0; i < 4000; i++)); do [ ! -s t.sbt ] || [ -e t.sbt.journal ] || break; sleep 0.05; done
	accounts "TRACESMITH_OUT, $program"
done

# Killed, then recovered.
in_mode flight
rm -f t.sbt counts
mkfifo rounds
exec 9<>rounds
"$targets/agent_odd" rounds <&9 >counts &
pid=$!
echo 30000 >&9
for ((i = 0; i < 4000; i++)); do [ ! -s counts ] || break; sleep 0.05; done
kill -KILL $pid
wait $pid 2>/dev/null || true
expect 0 recover -q $pid -o t.sbt
accounts "recover"
