#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Chrome JSON to a file and to standard output; the re-imported trace is the same.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
"$TRACESMITH" export --list | grep -q '^chrome ' || fail "--list"
t export -q t.sbt -f chrome -o out.json
python3 -m json.tool out.json >/dev/null
"$TRACESMITH" export t.sbt -o - >stdout.json
cmp out.json stdout.json || fail "standard output differs"
quietly import out.json -o back.sbt
cmp <("$TRACESMITH" view --json t.sbt) <("$TRACESMITH" view --json back.sbt) || fail "round trip"
# A longer existing file is replaced.
head -c 1000000 /dev/zero >out.json
t export -q t.sbt -o out.json
cmp out.json stdout.json || fail "old bytes are left"
