#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The call graph that oracle.py claims is its real one, as Python itself sees it; and check.py
# detects violations.
set -euo pipefail
. "$TS_SOURCE/tests/lib/python.sh"

"$python" "$TS_SOURCE/tests/python/oracle.py" --log log.json --seconds 1 --hold 0.03 --witness stacks >/dev/null
check=(python3 "$TS_SOURCE/tests/python/check.py" --strict --log log.json)
"${check[@]}" stacks

# A callee under the wrong caller, a line that a function does not have, a stack without its
# outermost frames.
spoil() { # what, Python statements on `stack`
	python3 - "$2" <<'PY' >spoiled
import json, sys

for line in open("stacks"):
    row = json.loads(line)
    stack = row["stack"]
    if stack[0]["func"] == "left_leaf" and stack[1]["func"] == "left_middle":
        exec(sys.argv[1])
        print(json.dumps(row))
PY
	cat spoiled spoiled >twice
	! "${check[@]}" twice >said || fail "$1 is not noticed: $(cat said)"
	grep -q impossible said || fail "$1: $(cat said)"
}
spoil "another callee" 'stack[0].update(func="right_leaf", lineno=[f for f in json.load(open("log.json"))["functions"] if f["name"] == "right_leaf"][0]["first_line"])'
spoil "another line" 'stack[1]["lineno"] += 1'
spoil "a line outside" 'stack[0]["lineno"] += 100'
spoil "a cut stack" 'del stack[-6:]'
spoil "a missing frame" 'del stack[1]'
