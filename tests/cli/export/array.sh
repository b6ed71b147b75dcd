#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The plain array of Chrome events.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
t export t.sbt -f chrome-array -o -
quietly export t.sbt -f chrome-array -o array.json
python3 -c 'import json; assert isinstance(json.load(open("array.json")), list)'
# A trace without events.
echo '{"traceEvents": []}' >empty.json
quietly import empty.json -o empty.sbt || true
[ ! -e empty.sbt ] || t export empty.sbt -f chrome-array -o -
