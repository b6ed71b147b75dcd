#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All threads, with names; recursion; a stopped program; JSON; both names of the verb.
. "$TS_SOURCE/tests/cli/stack.sh"

cat >threads.py <<'PY'
import os, threading, time

here, there = os.pipe()
waiting = []

def stand():
    waiting.append(1) or os.read(here, 1)

def deeper(left):
    if left:
        deeper(left - 1)
    else:
        stand()

def begin():
    threading.Thread(target=stand, name="short").start()
    threading.Thread(target=deeper, args=(300,), name="deep \x1b[31mred").start()
    while len(waiting) < 2:
        time.sleep(0.001)
    os.mkdir(os.environ["READY"]) or os.read(here, 1)

begin()
PY
start ready threads.py
await all_wait $program

echo "== text"
t stack -p $program | still | sed -E "s/$program/PID/" | uniq -c | sed -E 's/^ +([0-9]+) /\1: /'
echo "== operands, and both names"
cmp <("$TRACESMITH" stack $program) <("$TRACESMITH" backtrace -p $program) && echo the same
echo "== JSON"
"$TRACESMITH" stack --json $program | python3 -c '
import json, os, sys
process = json.loads(sys.stdin.read())
pid = int(sys.argv[1])
assert process["pid"] == process["inner_pid"] == pid and process["command"].endswith("/threads.py"), process["command"]
version = os.popen("python3 -c \"import platform; print(platform.python_version())\"").read().strip()
if sys.version_info < (3, 11):  # without further details
    version = version.rsplit(".", 1)[0]
assert process["version"].startswith(version), (process["version"], version)
print(sorted(process), sorted(process["threads"][0]), sorted(process["threads"][0]["frames"][0]))
tids = {int(name) for name in os.listdir("/proc/%d/task" % pid)}
for thread in process["threads"]:
    frames = thread["frames"]
    assert thread["tid"] in tids or sys.version_info < (3, 11), thread["tid"]
    assert [frame["depth"] for frame in frames] == list(range(len(frames) - 1, -1, -1))
    assert {frame["frame_type"] for frame in frames} == {"python"}
    own = [frame for frame in frames if os.path.basename(frame["file"]) == "threads.py"]
    print(ascii(thread["name"]), thread["main"], thread["state"], thread["gil"], thread["task"], thread["rejected"], len(own), own[0]["func"], own[0]["lineno"], own[-1]["func"])
assert process["threads"][0]["tid"] in (pid, None)' $program
echo "== stopped"
kill -STOP $program
stopped() { [ "$(grep -l '^State:.T' /proc/$program/task/*/status | wc -l)" = 3 ]; }
await stopped
t stack $program | still | sed -E "s/$program/PID/" | sed -n 2,7p
"$TRACESMITH" stack --json $program >stopped.json
grep -c . stopped.json
# It stays stopped.
grep State /proc/$program/status | cut -f 2
kill -CONT $program
echo "== several, each once"
first=$program
start second threads.py
t stack -p $program,$first -p $first $program | grep -c '^process'
