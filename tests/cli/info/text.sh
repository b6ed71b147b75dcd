#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The summary as text. Sizes depend on the compressor and are removed.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
"$TRACESMITH" info t.sbt | sed -E -e '/^size/s/ .*//' -e 's/created .*/created/' \
	-e '/^events/s/\(.*/.../' -e '/^table/,/^$/s/^([a-z_]+ +[a-z0-9]+ +[a-z0-9]+) .*/\1/'
kineto_json 1 >u.json
quietly import t.json u.json -o two.sbt
"$TRACESMITH" info two.sbt | sed '/^table/,/^$/d' | grep -E '^(source|places|meta)'
# Several traces, one of which does not exist.
t info t.sbt missing.sbt two.sbt | grep -E '^(trace|exit|\$)'
# A file of another tool: its own size, and nothing about the trace that it is converted to.
"$TRACESMITH" info t.json | sed '/^time/,$d' | sed "s/ ([0-9,]* bytes)/ (N bytes)/"
[ "$("$TRACESMITH" info t.json | sed -nE 's/^size.*\(([0-9]*),?([0-9]*) bytes\)/\1\2/p')" = "$(stat -c %s t.json)" ] || fail "not its size"
"$TRACESMITH" info --json t.json | python3 -c '
import json, os, sys
info = json.load(sys.stdin)
print(info["bytes"] == os.path.getsize("t.json"), "created_ns" in info, "finished" in info)'
# Lines about losses and damage fit into the width.
head -c -10 t.sbt >cut.sbt
quietly recover cut.sbt -o good.sbt
for trace in cut.sbt good.sbt; do
	"$TRACESMITH" info --width 60 $trace 2>err.txt | sed -n -e '/^damage/,/^source/p' -e '/^loss  *[a-z]/,/^meta/p' >lines.txt
	[ -s lines.txt ] || fail "$trace: no such line"
	awk 'length > 60' lines.txt
done
