#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Processes that cannot be read: missing, a zombie, no Python, another user's. Each says why; the
# others are shown.
. "$TS_SOURCE/tests/cli/stack.sh"

cat >still.py <<'PY'
import os, threading

here, there = os.pipe()

def stand():
    os.mkdir(os.environ["READY"]) or os.read(here, 1)

stand()
PY
start ready still.py
fine=$program
await all_wait $fine

echo "== usage"
t stack -p nobody
t stack 0
t stack -p 1,
TRACESMITH_BACKENDS=none t stack --frobnicate

echo "== no such process"
t stack -p 2147483646 | sed 's/2147483646/PID/'
t stack -p 2147483646,$fine | still | sed -E "s/2147483646|$fine/PID/g"

echo "== a zombie"
python3 -c '
import os, time
child = os.fork()
if child == 0:
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
open("zombie.new", "w").write(str(child))
os.rename("zombie.new", "zombie")
time.sleep(1000)' &
remember $!
await [ -e zombie ]
t stack "$(cat zombie)" | sed -E "s/$(cat zombie)/PID/; s/\(python3[.0-9]*\)/(python3)/"

echo "== no Python"
sleep 1000 &
remember $!
other=$!
named_sleep() { grep -q '^sleep' /proc/$other/comm; }
await named_sleep
t stack $other | sed -E "s/$other/PID/"
t stack $other $fine | still | sed -E "s/$other|$fine/PID/g" | sed -n '1,3p;$p'

echo "== another user's"
if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then
	echo "tracesmith stack: process PID (python3): CAP_SYS_PTRACE"
	echo "exit 4"
	exit
fi
public=$(mktemp -d /tmp/tracesmith-stack.XXXXXX)
trap 'rm -rf "$public"; kill_remembered' EXIT
chmod 755 "$public"
cp "$TRACESMITH" "$public"
code=0
(cd / && setpriv --reuid 65534 --regid 65534 --clear-groups "$public/tracesmith" stack -p $fine) 2>said || code=$?
sed -E -e "s/$fine/PID/" -e 's/\(python3[.0-9]*\) .*(CAP_SYS_PTRACE).*/(python3): \1/' said
echo "exit $code"
