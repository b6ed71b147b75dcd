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

# With native frames, a running thread is stopped: all its values are of one instant.
cat >counting.py <<'PY'
import os

def count():
    a = 100000
    os.mkdir(os.environ["READY"])
    while True:
        a += 1
        b = a
        c = b

count()
PY
start counting counting.py
python3 - "$TRACESMITH" $program <<'PY'
import json, subprocess, sys
checked = 0
for _ in range(200):
    if checked == 60:
        break
    text = subprocess.run([sys.argv[1], "stack", "--native", "--locals", "--json", "-p", sys.argv[2]], stdout=subprocess.PIPE, check=True).stdout
    thread = json.loads(text)["threads"][0]
    values = [frame["locals"] for frame in thread["frames"] if frame["func"] == "count"]
    if not values or "c" not in values[0] or thread.get("native_missing"):
        continue
    checked += 1
    assert int(values[0]["a"]) - int(values[0]["c"]) in (0, 1), values
print("one instant")
PY
