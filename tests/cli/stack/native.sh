#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Native frames: of waiting threads, of a running one, of a program without Python. Names depend on
# the C library's symbols, order does not.
. "$TS_SOURCE/tests/cli/stack.sh"

cat >native.py <<'PY'
import os, threading

here, there = os.pipe()

def stand():
    os.read(here, 1)

def compare(one):
    os.mkdir(os.environ["READY"]) or os.read(here, 1)

def order():
    max([1, 2], key=compare)

threading.Thread(target=stand, name="worker").start()
order()
PY
start ready native.py
await all_wait $program
# The innermost frame (n: a native one), and those of the program.
cat >shape.py <<'PY'
import json, os, sys
process = json.load(sys.stdin)
for thread in process["threads"]:
    kinds = ["n" if frame["frame_type"] == "native" else frame["func"] for frame in thread["frames"] if frame["frame_type"] == "native" or frame["file"].startswith(os.getcwd())]
    # Some pairs of Python frames have no native frame worth a line between them, or none with a
    # known name.
    print(thread["name"], thread["main"], thread.get("native_missing"), kinds[:1], [kind for kind in kinds if kind != "n"])
    for frame in thread["frames"]:
        assert frame["frame_type"] != "native" or (frame["address"] > 0 and frame["lineno"] is None), frame
PY
echo "== waiting"
"$TRACESMITH" stack --native --json $program | python3 shape.py

echo "== without Python"
sleep 1000 &
remember $!
other=$!
named_sleep() { grep -q '^sleep' /proc/$other/comm && grep -q '^State:.S' /proc/$other/status; }
await named_sleep
t stack --native $other | still | sed -E -e "s/$other/PID/" -e 's/^        .*/        FRAME/' | uniq

echo "== running"
cat >spin.py <<'PY'
import os, threading

def spin():
    os.mkdir(os.environ["READY"]) or max(range(10 ** 13))

spin()
PY
start spins spin.py
runs() { "$TRACESMITH" stack --json $program | grep -q '"running":true'; }
await runs
# Its registers can be read only while it gets a processor.
spins() { "$TRACESMITH" stack --native --json $program | python3 shape.py >spin.txt && grep -q ' None ' spin.txt; }
await spins
cat spin.txt
# It keeps running, and nothing traces it.
grep TracerPid /proc/$program/status | cut -f 2
