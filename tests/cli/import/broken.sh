#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Input that fails halfway: the rows before are in a finished trace; without rows there is no trace.
. "$TS_SOURCE/tests/cli/lib.sh"

event() { echo "{\"ph\":\"X\",\"name\":\"op$1\",\"pid\":1,\"tid\":1,\"ts\":$1,\"dur\":1}"; }
{ echo '{"traceEvents":['; event 1; echo ,; event 2; echo ,; event 3; echo ',{"ph": oops'; } >bad.json
t import -q bad.json -o bad.sbt
t verify bad.sbt
"$TRACESMITH" view bad.sbt -t slice --columns name,start
# Truncated: the same.
head -c 180 bad.json >cut.json
t import -q cut.json -o cut.sbt | numbers
t verify cut.sbt
# The second of two: the first is kept.
kineto_json 0 >good.json
t import -q good.json bad.json -o both.sbt
t verify both.sbt
# No event at all.
echo 'oops' >none.json
t import -q none.json -o none.sbt
[ ! -e none.sbt ] || fail "an output without events remains"
: >empty.json
t import -q empty.json -o empty.sbt
[ ! -e empty.sbt ] || fail "an output without events remains"
# A device is not removed.
t import -q none.json -o /dev/null
[ -c /dev/null ] || fail "/dev/null is gone"
# Control characters in names are escaped.
{ "$TRACESMITH" import -q $'no\033[31m.json' -o none.sbt 2>&1 || true; } >message.txt
grep -qF 'no\x1b[31m.json' message.txt || fail "message: $(cat message.txt)"
