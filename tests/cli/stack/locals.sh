#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Local variables: names and shortened values, as text and as JSON; arguments of outer frames.
. "$TS_SOURCE/tests/cli/stack.sh"

cat >variables.py <<'PY'
import os, threading

here, there = os.pipe()

def inner(count, ratio, name, raw):
    many = list(range(1000))
    table = {"a": 1, "b": [True, None]}
    pair = (-5, 2.5)
    odd = "line\nbreak \x1b[31m \u00e9 \U0001f600"
    big = 2 ** 80
    os.mkdir(os.environ["READY"]) or os.read(here, 1)

def outer(answer):
    inner(42, 0.5, "text", b"bytes\x00")

outer(answer=None)
PY
start ready variables.py
await all_wait $program
LC_ALL=C.UTF-8 t stack --locals -p $program | still | sed -E "s/$program/PID/" | sed '/<module>/,$d'
"$TRACESMITH" stack --locals --json -p $program | python3 -c '
import json, sys
frames = json.load(sys.stdin)["threads"][0]["frames"]
print(list(frames[0]["locals"]), ascii(frames[0]["locals"]["odd"]))
print(frames[1]["locals"])'
# Not shown by default.
"$TRACESMITH" stack --json -p $program | grep -c locals || true
