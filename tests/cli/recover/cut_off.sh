#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A trace whose recorder was killed: every verb that reads it says once that it was cut off, and how
# to get the rest. While it is being recorded they name the recorder, and nothing advises to recover.
. "$TS_SOURCE/tests/cli/live.sh"
export TRACESMITH_BACKENDS=none

# begin OUTPUT [options of record]: until the program waits for `go`.
begin() {
	rm -rf ready go ended live/*
	setsid "$TRACESMITH" record -q -o "$@" -- "$emit" instants:100 make:ready await:go instants:50 make:ended &
	recorder=$!
	await [ -e ready ]
	await has_recorder "$("$TRACESMITH" ps --json | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["pid"])')"
}
end() { # of the recorder, and then of the program
	kill -9 $recorder
	wait $recorder 2>/dev/null || true
	touch go
	await [ -e ended ]
}
named() { sed -E "s/process $recorder\b/process RECORDER/; s/\"recorder_pid\":$recorder\b/\"recorder_pid\":RECORDER/"; }

echo "being recorded"
begin 'a run.sbt'
t view 'a run.sbt' | named
t info 'a run.sbt' 2>&1 | grep -E 'warning|format|damage' | sed 's/, created.*//' | named
t verify 'a run.sbt' | named
t verify -q 'a run.sbt'
t verify --json 'a run.sbt' | named
t symbolize 'a run.sbt' | named
t recover 'a run.sbt' -o good.sbt | named

echo "cut off"
end
t view 'a run.sbt'
t view --json 'a run.sbt'
t info 'a run.sbt' 2>&1 | grep -E 'warning|format|damage' | sed 's/, created.*//'
t info --json 'a run.sbt' 2>/dev/null | grep -o '"finished":[a-z]*'
t analyze 'a run.sbt' advice
t state 'a run.sbt'
t export 'a run.sbt' -f folded -o -
t diff 'a run.sbt' 'a run.sbt' | uniq
t replay 'a run.sbt'
t symbolize 'a run.sbt'
t align 'a run.sbt'
t verify 'a run.sbt'
t verify --json 'a run.sbt'
# The command that they name.
eval "\$TRACESMITH $("$TRACESMITH" view 'a run.sbt' 2>&1 | grep -o "recover .*")" 2>quietly.log
rows good.sbt -n tick
t verify good.sbt

echo "cut off behind a save: the trace has an index"
begin s.sbt --autosave 10ms
# Between two saves the next chunk may replace the index.
is_saved() {
	kill -STOP $recorder
	[ "$(rows s.sbt -n tick)" = 100 ] && "$TRACESMITH" verify -q s.sbt && return
	kill -CONT $recorder
	return 1
}
await is_saved
t verify s.sbt | named
end
t view s.sbt --limit 1 2>&1 | grep warning
t info s.sbt 2>&1 | grep -E 'format|damage' | sed 's/, created.*//'
t verify s.sbt | numbers

echo "nothing of the trace yet"
: >s.sbt
t info s.sbt
echo "an export that was not written"
begin t.json
t view t.json | named
end
t view t.json
quietly recover t.json -o good.sbt
rows good.sbt -n tick

echo "the journal of another trace"
make_trace other
cp 'a run.sbt.journal' other.sbt.journal
"$TRACESMITH" view other.sbt >/dev/null
t verify other.sbt
