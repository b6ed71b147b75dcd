#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ends that nobody plans, and what the recorder makes of them.
. "$TS_SOURCE/tests/cli/live.sh"
export TRACESMITH_BACKENDS=none

python3 -c 'import pty; pty.openpty()' 2>/dev/null || { echo "skip: no pseudo-terminals"; exit 77; }

# As the leader of its session (ssh -t, a new terminal) only the recorder is told of the hang-up.
timeout 300 python3 - "$TRACESMITH" "$emit" <<'PY'
import os, pty, signal, sys, time
tool, emit = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(tool, [tool, "record", "-q", "-o", "hung.sbt", "--", emit, "instants:10", "make:ready", "await:never"])
while not os.path.exists("ready"):
    time.sleep(0.05)
os.close(terminal)
status = os.waitpid(pid, 0)[1]
print("terminal closed:", signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else status)
PY
t verify hung.sbt

# The journal has what the removed trace had.
rm -f ready
"$TRACESMITH" record -o t.sbt -- "$emit" instants:10 make:ready await:go 2>err.txt &
recorder=$!
await [ -e ready ]
await [ -s t.sbt ]
rm t.sbt
touch go
code=0
wait $recorder || code=$?
echo "trace removed: exit $code"
cat err.txt
t view t.sbt
quietly recover t.sbt -o good.sbt
rows good.sbt -n tick

# So has that of a rotation, whose files have names of their own.
rm -f ready go
"$TRACESMITH" record --rotate 1h -o "a run.sbt" -- "$emit" instants:10 make:ready await:go 2>err.txt &
recorder=$!
await [ -e ready ]
await [ -s "a run.0001.sbt" ]
rm "a run.0001.sbt"
touch go
wait $recorder || true
cat err.txt

# A program that goes on after Ctrl-C.
rm -f ready go
"$TRACESMITH" record -o s.sbt -- bash -c 'trap : INT; touch ready; while [ ! -e go ]; do sleep 0.02; done' 2>err.txt &
recorder=$!
await [ -e ready ]
kill -INT $recorder
await grep -q "Ctrl-C twice" err.txt
touch go
wait $recorder
grep "Ctrl-C twice" err.txt | numbers
