#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One object per line, with every column and argument.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
t view t.sbt --json
"$TRACESMITH" view t.sbt --json | while IFS= read -r line; do
	python3 -m json.tool <<<"$line" >/dev/null || fail "$line"
done
t view t.sbt --json --columns time,duration,where,name,table --limit 3
t view t.sbt --json --table gpu_op --columns start,args,device
