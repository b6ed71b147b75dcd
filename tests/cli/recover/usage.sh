#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage errors, and files with nothing to recover. Existing files stay.
. "$TS_SOURCE/tests/cli/lib.sh"

# No program that was killed on this machine may be the one whose trace is asked for.
export TRACESMITH_LIVE_DIR=$PWD/none-recorded

make_trace t
cp t.sbt before.sbt
t recover
t recover t.sbt
t recover t.sbt -o t.sbt
ln t.sbt link.sbt
t recover t.sbt -o link.sbt
cmp t.sbt before.sbt || fail "the trace was changed"
t recover missing.sbt -o out.sbt
: >empty.sbt
t recover empty.sbt -o out.sbt
t recover t.json -o out.sbt
[ ! -e out.sbt ] || fail "an output was made"
cp t.sbt out.sbt
t recover empty.sbt -o out.sbt
cmp t.sbt out.sbt || fail "the output was changed"
echo precious >out.sbt
t recover t.sbt -o out.sbt
cat out.sbt
mkdir folder
t recover t.sbt -o folder
t recover t.sbt -o none/out.sbt
