#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Processes come and go: children of the given ones, exec, exit.
. "$TS_SOURCE/tests/cli/python.sh"

cat >parent.py <<'PY'
import os, subprocess, sys, time

def the_parent():
    child = subprocess.Popen([sys.executable, "program.py", "the_child"])
    child.wait()

open("parent.ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
the_parent()
os.execv(sys.executable, [sys.executable, "program.py", "the_other"])
PY
"$python" parent.py &
first=$!
begin the_second
second=$program
await [ -e parent.ready ]
"$TRACESMITH" sniff -p $first,$second -i 0.01 --all-threads -o t.sbt 2>err.txt &
sniffer=$!
await [ -e t.sbt ]
touch go
await sampled t.sbt the_child
await sampled t.sbt the_parent
touch the_child.over
await sampled t.sbt the_second
# One of them is killed; the other one is still sampled.
kill -9 $second
wait $second 2>/dev/null || true
await sampled t.sbt the_other
touch the_other.over
wait $first
wait $sniffer
numbers <err.txt
stacks t.sbt >stacks.txt
for function in the_parent the_child the_other the_second; do
	grep -q ";$function" stacks.txt && echo "$function was seen"
done
"$TRACESMITH" verify t.sbt

echo "== not Python"
sleep 1000 &
other=$!
"$TRACESMITH" sniff -p $other -o none.sbt 2>none.txt &
sniffer=$!
described() { copy_written none.sbt && "$TRACESMITH" view copy/good.sbt --table process --json | grep '"sleep"'; }
await described
kill $other
wait $sniffer || echo "exit $?"
numbers <none.txt
rows none.sbt --table sample

echo "== no operand"
if "$TRACESMITH" sniff -d 0.5 -o users.sbt >users.txt 2>&1; then
	grep -q 'waiting for one\|users.sbt:' users.txt || { cat users.txt; fail "the message is missing"; }
else
	code=$?
	[ $code -eq 4 ] || { cat users.txt; fail "exit code $code"; }
	grep -q -- '-p PID' users.txt || { cat users.txt; fail "the advice is missing"; }
fi
