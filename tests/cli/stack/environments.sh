#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Another pid namespace, another root; many threads; deep recursion; asyncio.
. "$TS_SOURCE/tests/cli/stack.sh"

cat >many.py <<'PY'
import os, sys, threading, time

here, there = os.pipe()
waiting = []

def stand():
    waiting.append(1) or os.read(here, 1)

def deeper(left):
    deeper(left - 1) if left else stand()

sys.setrecursionlimit(10000)
threading.stack_size(64 << 20)
threading.Thread(target=deeper, args=(5000,), name="deep").start()
threading.stack_size(256 << 10)
for number in range(500):
    threading.Thread(target=stand, name="n%d" % number).start()
while len(waiting) < 501:
    time.sleep(0.001)
os.mkdir(os.environ["READY"]) or os.read(here, 1)
PY
start many many.py
await all_wait $program
"$TRACESMITH" stack --json $program | python3 -c '
import json, sys
threads = {thread["name"]: thread for thread in json.load(sys.stdin)["threads"]}
print(len(threads), sum(thread["rejected"] for thread in threads.values()))
print(sum(frame["func"] == "deeper" for frame in threads["deep"]["frames"]))
print(all(threads["n%d" % number]["frames"][0]["func"] == "stand" for number in range(500)))'
t stack --group $program | sed -n '/other threads/,$p' | still
kill -9 $program

echo "== asyncio"
cat >tasks.py <<'PY'
import asyncio, os

here, there = os.pipe()

async def stand():
    os.mkdir(os.environ["READY"]) or os.read(here, 1)

async def main():
    task = asyncio.ensure_future(stand())
    getattr(task, "set_name", id)("the reader")
    await task

asyncio.new_event_loop().run_until_complete(main())
PY
start tasks tasks.py
await all_wait $program
"$TRACESMITH" stack --json $program | python3 -c '
import json, sys
thread, = json.load(sys.stdin)["threads"]
print(thread["task"], thread["frames"][0]["func"])'

echo "== a namespace"
[ "$(id -u)" = 0 ] && unshare --pid --fork true 2>/dev/null || { echo "True stand pid 1 in its own namespace"; exit; }
cat >still.py <<'PY'
import os, threading

here, there = os.pipe()

def stand():
    os.mkdir(os.environ["READY"]) or os.read(here, 1)

stand()
PY
READY=inside unshare --pid --fork --kill-child python3 still.py </dev/null &
outside=$!
remember "$outside"
await [ -d inside ]
program=$(pgrep -P $outside)
remember "$program"
await all_wait "$program"
"$TRACESMITH" stack --json "$program" | python3 -c '
import json, sys
process = json.load(sys.stdin)
print(process["pid"] == int(sys.argv[1]), process["threads"][0]["frames"][0]["func"], "pid", process["inner_pid"], "in its own namespace")' "$program"
