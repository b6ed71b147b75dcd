#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions, threads and the GIL of a Python program: as text, as JSON, and on the screen with its
# keys.
. "$TS_SOURCE/tests/cli/stack.sh"
export TRACESMITH_BACKENDS=host

cat >busy.py <<'PY'
import os, threading

here, there = os.pipe()

def spin():
    os.mkdir(os.environ["READY"])
    while True:
        pass

def again(left):
    again(left - 1) if left else spin()

def wait():
    os.read(here, 1)

threading.Thread(target=wait, name="waiter").start()
again(5)
PY
start ready busy.py
export PROGRAM=$program

# holds PYTHON [options]: does this hold for `p`, the Python part of the second snapshot, with its
# functions (those that ran since the first one) and threads by name?
holds() {
	local code=$1
	shift
	"$TRACESMITH" top -n 2 --json -d 0.2 -p $program "$@" | python3 -c '
import json, os, sys
top = [json.loads(line) for line in sys.stdin][-1]
p = top.get("python")
functions = {f["func"]: f for f in p["functions"] if f["total_percent"]} if p else {}
threads = {t["name"]: t for t in p["threads"]} if p else {}
own = [f["func"] for f in functions.values() if f["file"].endswith("/busy.py")]
sys.exit(not eval(sys.argv[1]))' "$code"
}
echo "== JSON"
holds 'p is None'
await holds 'p["samples"] > 0 and p["processes"] == 1 and "spin" in functions' --python
await holds 'own == ["spin", "<module>", "again"] or own == ["spin", "again", "<module>"]' --python
# Recursion counts once: every function on the stack of the only running thread has all of its time.
await holds 'functions["again"]["total_s"] == functions["spin"]["own_s"] == functions["spin"]["total_s"] > 0 == functions["again"]["own_s"]' --python
await holds 'functions["spin"]["total_percent"] >= functions["spin"]["own_percent"] > 0 and functions["spin"]["lineno"] == 5' --python
await holds 'threads["MainThread"]["func"] == "spin" and threads["MainThread"]["lineno"] in (7, 8) and threads["MainThread"]["gil_percent"] > 0' --python
await holds 'threads["waiter"]["state"] == "idle" and threads["waiter"]["func"] == "wait" and threads["waiter"]["gil_percent"] == 0' --python
await holds 'threads["MainThread"]["pid"] == int(os.environ["PROGRAM"])' --python
# Waiting threads count only on request.
await holds '"wait" not in functions and "spin" in functions' --python
await holds '"wait" in functions and functions["wait"]["own_s"] > 0' --idle
echo fine
echo "== text"
shows_all() { "$TRACESMITH" top --python --once -d 0.3 -p $program >text && [ "$(grep -c 'spin (' text)" -eq 2 ] && grep -q ' waiter ' text; }
await shows_all
<text sed -n '/^python/,$p' | still | sed -E -e "s/^ *$program +[0-9]+/PID TID/" -e 's/[0-9]+(\.[0-9]+)?(s |%| )/N\2/g' -e 's/ +/ /g; s/^ //' -e '/[Tt]hread(ing)?\./d' -e '/ wait [(].*:13[)]/d' -e 's/ (gil|running) / STATE /; s/py:[78]\)/py:N)/' |
	sed -E '/^N N N(s)? /s/^N N Ns? Ns? /N /' | sort -u

echo "== no Python"
sleep 1000 &
remember $!
"$TRACESMITH" top --python --once -d 0.1 -p $! | tail -1

echo "== screen"
python3 -c 'import pty; pty.openpty()' 2>/dev/null || { echo "functions threads neither 0"; exit; }
cat >screen.py <<'PY'
import fcntl, os, pty, re, select, struct, subprocess, sys, termios, time
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
tool = subprocess.Popen([os.environ["TRACESMITH"], "top", "-d", "0.2", "-p", os.environ["PROGRAM"]], stdin=slave, stdout=slave, stderr=slave)
os.close(slave)

def see(pattern, key=b""):
    os.write(master, key)
    seen, until = b"", time.monotonic() + 60
    while not re.search(pattern, re.sub(rb"\x1b\[[?0-9;]*[A-Za-z]", b" ", seen), re.S):
        assert time.monotonic() < until, (pattern, seen[-2000:])
        if select.select([master], [], [], 1)[0]:
            seen += os.read(master, 65536)

see(rb"\A(?=.*python: 1 process, 2 threads)(?=.*OWN%.*spin \(/)")
print("functions", end=" ")
see(rb"STATE.*MainThread +.*waiter", b"y")
print("threads", end=" ")
see(rb"functions, threads or neither", b"yh")
see(rb"COMMAND", b" ")
print("neither", end=" ")
os.write(master, b"q")
while True:
    try:
        if not os.read(master, 65536):
            break
    except OSError:
        break
print(tool.wait())
PY
python3 screen.py
