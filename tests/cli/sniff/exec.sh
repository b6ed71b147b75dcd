#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that executes itself anew and maps other memory where the old interpreter was: what is
# read there is not taken for an interpreter without threads.
. "$TS_SOURCE/tests/cli/python.sh"

cat >again.py <<'PY'
import ctypes, os, sys, time

def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.001)

def the_first():
    open("ready", "w").close()
    wait_for("go")

def the_other():
    wait_for("over")

if len(sys.argv) == 1:
    the_first()
    # Where the interpreter's data is.
    lines = [line.split() for line in open("/proc/self/maps")]
    places = [words[0] for words in lines if "w" in words[1] and "python" in words[-1]]
    os.execv(sys.executable, [sys.executable, "again.py", *places])
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for place in sys.argv[1:]:
    start, end = (int(word, 16) for word in place.split("-"))
    # Anonymous, private, and not over anything (MAP_FIXED_NOREPLACE).
    if libc.mmap(start, end - start, 3, 0x100022, -1, 0) == start:
        ctypes.memset(start, 0x55, end - start)
the_other()
PY
"$python" -c 'import ctypes' 2>/dev/null || { echo "skip: python3 has no ctypes"; exit 77; }
"$python" again.py &
program=$!
await [ -e ready ]
# It does not look between exec() and the new mapping, unless the machine is busy.
"$TRACESMITH" sniff -q -p $program -i 0.5 -o t.sbt 2>err.txt &
sniffer=$!
await sampled t.sbt the_first
touch go
await sampled t.sbt the_other
touch over
wait $program
wait $sniffer || fail "$(cat err.txt)"
