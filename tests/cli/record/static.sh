#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A statically linked program: it runs, and the recording says that it was not traced.
. "$TS_SOURCE/tests/cli/live.sh"
export TRACESMITH_BACKENDS=none

echo 'int main(void) { return 0; }' >still.c
cc -static still.c -o still 2>/dev/null || { echo "skip: no static program can be made here"; exit 77; }
pids() { sed -E 's/process [0-9]+/process PID/'; }
# It may end before it can be looked at; then only that is known.
"$TRACESMITH" record -o t.sbt -- ./still 2>said && code=0 || code=$?
[ $code -eq 4 ] || fail "exit code $code: $(cat said)"
grep -q 'an unknown number of events lost$' said || fail "$(cat said)"
grep -Eq 'process [0-9]+ \(still\) was not traced: (static program: .*; link it dynamically|it exited without)' said || fail "$(cat said)"
# Its own exit code comes first.
echo 'int main(void) { return 5; }' >still.c
cc -static still.c -o still
"$TRACESMITH" record -q -o t.sbt -- ./still 2>/dev/null && code=0 || code=$?
echo "exit $code"
