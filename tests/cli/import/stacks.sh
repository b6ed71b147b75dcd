#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Folded stacks and speedscope: recognized by content, and our own exports come back with the same
# totals.
. "$TS_SOURCE/tests/cli/lib.sh"

total() { awk '{ sum += $NF } END { print sum }' "$1"; }
weights() { python3 -c 'import json, sys; print(sum(sum(p["weights"]) for p in json.load(open(sys.argv[1]))["profiles"]))' "$1"; }
# Frames with their time, not counting nested ones.
spans() {
	python3 - "$1" <<'PY'
import collections, json, sys
file, own = json.load(open(sys.argv[1])), collections.Counter()
for profile in file["profiles"]:
    stack, last = [], None
    for event in profile["events"]:
        if stack:
            own[file["shared"]["frames"][stack[-1]]["name"]] += event["at"] - last
        last = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert stack.pop() == event["frame"]
print(sorted(own.items()))
PY
}

printf 'main;work (a.py:3);read 12\nmain;work (a.py:3) 3\nmain 1\n' >stacks.txt
"$TRACESMITH" import stacks.txt -o folded.sbt 2>&1 | grep -o 'folded, .* events'
t export -q folded.sbt -f folded --no-threads -o -
t analyze folded.sbt functions
# The whole way: again as folded stacks, and through speedscope.
quietly export folded.sbt -f folded --no-threads -o again.txt
cmp again.txt <(sort stacks.txt) || fail "folded stacks differ"
quietly export folded.sbt -f speedscope -o again.json
"$TRACESMITH" import again.json -o again.sbt 2>&1 | grep -o 'speedscope, .* events'
quietly export again.sbt -f folded --no-threads -o through.txt
cmp again.txt through.txt || fail "speedscope changes folded stacks"

make_trace t
for kind in calls spans device; do
	quietly export t.sbt -f folded --count $kind -o $kind.txt
	quietly import $kind.txt -o $kind.sbt
	quietly export $kind.sbt -f folded --no-threads -o $kind.again.txt
	[ "$(total $kind.txt)" = "$(total $kind.again.txt)" ] || fail "$kind: the totals differ"
	echo "$kind: $(total $kind.txt)"
done
quietly export t.sbt -f speedscope --count device -o device.json
quietly import device.json -o device.sbt
quietly export device.sbt -f speedscope -o device.again.json
[ "$(weights device.json)" = "$(weights device.again.json)" ] || fail "speedscope: the totals differ"
quietly export t.sbt -f speedscope --count spans -o spans.json
quietly import spans.json -o spans.sbt
quietly export spans.sbt -f speedscope --count spans -o spans.again.json
[ "$(spans spans.json)" = "$(spans spans.again.json)" ] || fail "spans: the times differ"
