#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compressed input gives the same trace, regardless of its name.
. "$TS_SOURCE/tests/cli/lib.sh"

kineto_json 0 >a.json
quietly import a.json -o plain.sbt
gzip -c a.json >packed
if ! "$TRACESMITH" import -q packed -o packed.sbt 2>err.txt; then
	grep -q 'gzip' err.txt || { cat err.txt; fail "no reason given"; }
	echo "skip: this build has no zlib"
	exit 77
fi
cmp <("$TRACESMITH" view --json plain.sbt) <("$TRACESMITH" view --json packed.sbt) || fail "gzip"
# Truncated: what was read stays, and the exit code is 3.
head -c 300 packed >cut.gz
code=0
"$TRACESMITH" import cut.gz -o cut.sbt 2>err.txt || code=$?
[ $code -eq 3 ] || fail "cut: exit $code"
grep -q "input 'cut.gz'" err.txt || { cat err.txt; fail "cut: not named"; }
echo same
