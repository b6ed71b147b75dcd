#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A recorder that is busy answers late: the command waits for it.
. "$TS_SOURCE/tests/cli/live.sh"

# Registers as the recorder of an area (docs/live.md, section 2.1); answers when a file appears.
cat >recorder.py <<'END'
import os, struct, sys, time
def wait(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
def word(at, form, *value):
    size = struct.calcsize(form)
    if value:
        os.pwrite(area, struct.pack(form, *value), at)
    return struct.unpack(form, os.pread(area, size, at))[0]
area = os.open(sys.argv[1], os.O_RDWR)
word(568, "<Q", int(open("/proc/self/stat").read().rpartition(")")[2].split()[19]))
word(560, "<Q", os.getpid())
wait(lambda: word(584, "<I"))
wait(lambda: os.path.exists("answer"))
word(512, "<I", 0)
word(584, "<I", 0)
word(588, "<I", word(588, "<I") + 1)
wait(lambda: os.path.exists("end"))
END

TRACESMITH_LIVE=1 "$emit" instants:1 make:a await:b &
program=$!
await [ -e a ]
python3 recorder.py live/$program-* &
recorder=$!
await has_recorder "$program"
pids() { sed -E -e "s/$program/PID/g" -e "s/$recorder/RECORDER/g"; }
t window "$program" close >said 2>&1 &
window=$!
await grep -q waiting said
touch answer
wait $window
pids <said
# And one that ends instead.
rm answer said
t window "$program" open >said 2>&1 &
window=$!
await grep -q waiting said
kill -KILL $recorder
wait $recorder 2>/dev/null || true
wait $window
pids <said
touch b
wait $program
