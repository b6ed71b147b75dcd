#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage errors, and outputs that cannot be written.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
cp t.sbt before.sbt
t export t.sbt
t export t.sbt -f chrom -o x.json
t export t.sbt -f parchment -o x.json
t export missing.sbt -o x.json
echo "no trace" >notes.txt
t export notes.txt -o x.json
t export t.sbt -o t.sbt
ln -s t.sbt link.sbt
t export t.sbt -o link.sbt
t export link.sbt -o t.sbt
cmp t.sbt before.sbt || fail "the trace was changed"
mkdir folder
t export t.sbt -o folder
t export t.sbt -f csv -t slice -o folder/
t export t.sbt -f csv -t slice --from 2ms --to 1ms -o x.csv
t export t.sbt -o none/x.json
t export t.sbt -o /dev/full
[ -c /dev/full ] || fail "/dev/full is gone"
[ ! -e x.json ] || fail "an output was made"
# An incomplete file is removed.
code=0
(trap '' XFSZ; ulimit -f 1; exec "$TRACESMITH" export t.sbt -o part.json) 2>err.txt || code=$?
cat err.txt
echo "exit $code"
[ ! -e part.json ] || fail "an incomplete file remains"
