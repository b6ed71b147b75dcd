#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A recorded program sees no difference: streams, environment, exit code.
. "$TS_SOURCE/tests/cli/live.sh"

# Events of every kind, of a thread, a track, a child.
t record -o t.sbt -- "$emit" instants:100 spans:10 track:7 counter:5 threads:2 fork instants:3 say:done | summary
t verify t.sbt
echo "$(rows t.sbt -n tick) $(rows t.sbt -n work) $(rows t.sbt -n layer) $(rows t.sbt -n memory)"
[ -z "$(ls live)" ] || fail "areas remain"
[ ! -e t.sbt.journal ] || fail "a journal remains"

# Standard streams are the program's own.
echo input | "$TRACESMITH" record -q -o s.sbt -- sh -c 'cat; echo error >&2' >out.txt 2>err.txt
cat out.txt err.txt
# Options after the command belong to the command, also without --.
"$TRACESMITH" record -q -o s.sbt sh -c 'echo "$@"' sh -o x -- --json
# Closed descriptors stay closed.
"$TRACESMITH" record -q -o s.sbt -- sh -c 'for fd in 0 1 2 3 4; do [ ! -e /proc/self/fd/$fd ] || echo "$fd"; done >fds.txt' <&- 2>&- 3>&- 4>&-
cat fds.txt

# Exit codes and signals are passed on.
t record -q -o s.sbt -- sh -c 'exit 42'
bash -c '"$TRACESMITH" record -q -o s.sbt -- sh -c "kill -9 \$\$"; echo "shell sees $?"' 2>/dev/null
t verify s.sbt
# The summary says so, too.
{ "$TRACESMITH" record -o s.sbt -- sh -c 'exit 42' || :; } 2>&1 | grep '^  '
bash -c '"$TRACESMITH" record -o s.sbt -- sh -c "kill -9 \$\$"; :' 2>&1 | grep '^  '
# Even if it has exited before the recorder looks.
t view s.sbt --table process --columns name,exit_status

# JSON, and a default output name.
"$TRACESMITH" record --json -q -- "$emit" instants:5 | python3 -c '
import json, os, sys
r = json.load(sys.stdin)
print(sorted(r), r["events"] - r["metrics"], r["lost"], r["bytes"] == os.path.getsize(r["file"]))'
ls tracesmith-*.sbt | numbers
