#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Device time by launch stack, with graph captures and forward operators; as a table and as a flame
# graph.
. "$TS_SOURCE/tests/cli/lib.sh"

"$TS_BUILD/tests/targets/symbol_frames" t.sbt >/dev/null
quietly symbolize t.sbt
# Lines and inlined functions depend on the build.
plain() { sed -E -e 's/(innermost|inlined)( \([^)]*\))?( < |;)//g' -e 's/ \(symbol_frames(\.c)?(:[0-9]+)?\)//g'; }
"$TRACESMITH" analyze t.sbt launch-stacks --depth 9 --csv | plain
"$TRACESMITH" analyze t.sbt launch-stacks --depth 1 --json | python3 -c '
import json, sys
for row in json.load(sys.stdin):
	print(row["kernel"], row["launches"], row["device_us"], row["forward"], row["python"])'
# In text output the stacks are below their row, complete at any width.
"$TRACESMITH" analyze t.sbt launch-stacks --depth 9 | sed -E -e '/^    (innermost|inlined)/d' | plain
echo "-- stacks of launches, in device time"
"$TRACESMITH" export t.sbt -f folded --count device -o - | plain
"$TRACESMITH" export t.sbt -f folded --count device --no-threads --no-lines -o - | plain
"$TRACESMITH" export t.sbt -f speedscope --count device -o - | python3 -c '
import json, sys
data = json.load(sys.stdin)
frames = data["shared"]["frames"]
for profile in data["profiles"]:
	for stack, weight in zip(profile["samples"], profile["weights"]):
		print(profile["name"], frames[stack[-1]]["name"], weight)'
echo "-- of a trace without stacks"
kineto_json 0 >k.json
quietly import k.json -o k.sbt
"$TRACESMITH" analyze k.sbt launch-stacks
"$TRACESMITH" export k.sbt -f folded --count device -o -
t export t.sbt -f timeline --count device -o x
t analyze t.sbt launch-stacks --depth 0
