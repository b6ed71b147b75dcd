#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Control characters in names are escaped; JSON stays valid.
. "$TS_SOURCE/tests/cli/lib.sh"

printf '[{"ph":"X","name":"red \\u001b[31m\\u0007 two\\nlines \\u009b \\u00e9\\ud800","pid":"p\\t1","tid":"t","ts":1,"dur":1,"args":{"k\\u0000":"\\u0001"}}]' >h.json
quietly import h.json -o h.sbt
t view h.sbt --args
t view h.sbt --json
"$TRACESMITH" view h.sbt --json | python3 -m json.tool >/dev/null
