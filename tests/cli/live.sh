# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests of live recording: lib.sh, a live directory of the test's own, and a program that emits.
. "$TS_SOURCE/tests/cli/lib.sh"

export TRACESMITH_LIVE_DIR=$PWD/live
unset TRACESMITH_AGENT TRACESMITH_AGENT_PATH TRACESMITH_OUT FERRUM_TRACE_OUT TRACESMITH_LIVE TRACESMITH_BUDGET
mkdir -m 700 live
# shellcheck disable=SC2034
emit=$TS_BUILD/tests/targets/launch_emit

# Waits until a command succeeds, for at most two minutes, for busy machines.
await() {
	local end=$((SECONDS + 120))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || fail "waited in vain: $*"
		sleep 0.05
	done
}

# rows TRACE [options of view]: prints the number of rows.
rows() { "$TRACESMITH" view "$@" --json | wc -l; }

# A trace that is still being written: copy/good.sbt is what can be read of it so far.
copy_written() { # trace
	rm -rf copy && mkdir copy
	cp "$1" copy
	[ ! -e "$1.journal" ] || cp "$1.journal" copy
	"$TRACESMITH" recover "copy/$1" -o copy/good.sbt
}

gone() { ! kill -0 "$1" 2>/dev/null; }

# recorder_of PID: prints the pid of its recorder, if any.
recorder_of() {
	"$TRACESMITH" ps --json | python3 -c '
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    if row["pid"] == int(sys.argv[1]) and row["recorder"] == "alive":
        print(row["recorder_pid"])' "$1"
}
has_recorder() { [ -n "$(recorder_of "$1")" ]; }

# The final message of a recording without machine-dependent parts, such as whether a short program
# was sampled at all.
summary() { sed -E -e "s#$TS_BUILD#BUILD#" -e 's/ process(es)?,/ processes,/' -e 's/ threads?,/ threads,/' -e 's/ \([0-9,]+ of metrics\)//' -e 's/ [0-9,]+ devices?,//' | numbers; }
