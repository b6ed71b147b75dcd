#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What of a trace can be replayed, and what cannot and why: as text and JSON, without running it.
. "$TS_SOURCE/tests/cli/lib.sh"

for kind in plain killed native failed empty two processes bound cuda cuda-cut; do
	"$TS_BUILD/tests/targets/make_stream" $kind.sbt $kind
	echo "$kind:"
	"$TRACESMITH" info $kind.sbt | sed -n '/^replay/,/^$/p' | sed '/^$/d'
done
# Details are indented, on a narrow line too.
"$TRACESMITH" info --width 60 bound.sbt native.sbt | sed -n '/^replay/,/^$/p' | sed '/^$/d'
for kind in native failed bound cuda; do
	"$TRACESMITH" info --json $kind.sbt | python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["replay"]))'
done
# No command stream: nothing is said.
"$TS_BUILD/tests/targets/make_stream" nothing.sbt nothing
"$TRACESMITH" info nothing.sbt | sed -n "/^replay/p"
"$TRACESMITH" info --json nothing.sbt | python3 -c 'import json, sys; print("replay" in json.load(sys.stdin))'
