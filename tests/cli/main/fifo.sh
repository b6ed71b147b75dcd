#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# FIFOs as operands: no verb waits for the other end of one. Pipes with a writer are read, and a
# signal ends the wait for more.
. "$TS_SOURCE/tests/cli/lib.sh"
. "$TS_SOURCE/tests/lib/processes.sh"
trap kill_remembered EXIT

# Only a verb that waits needs the time.
f() { echo "\$ tracesmith $*"; code=0; timeout 120 "$TRACESMITH" "$@" 2>&1 || code=$?; [ $code -eq 0 ] || echo "exit $code"; }

make_trace t
mkfifo fifo
for verb in view info verify state symbolize replay; do f $verb fifo; done
f analyze fifo kernels
f diff t.sbt fifo
f align t.sbt fifo
f recover fifo -o out.sbt
f recover t.sbt -o fifo
f export fifo -f chrome -o out.json
f export t.sbt -f chrome -o fifo
f import fifo -o out.sbt
f import t.json -o fifo
f import t.json --binary fifo -o out.sbt -q
mkfifo pipe.fifo.sbt
f record -q -o pipe.fifo.sbt -- true
f replay t.sbt --replace-kernel a=fifo
[ -p fifo ] || fail "the FIFO is gone"
[ ! -e out.json ] || fail "an output is left"

echo "--- pipes that are written"
f analyze <(cat t.json) kernels | sed 's|/dev/fd/[0-9]*|PIPE|'
f import -q <(cat t.json) -o pipe.sbt | sed 's|/dev/fd/[0-9]*|PIPE|'
f import -q - -o stdin.sbt < <(cat t.json)
exec 7<>fifo # a writer that is there for sure; t.json fits into the pipe
cat t.json >&7
"$TRACESMITH" import -q fifo -o named.sbt 7>&- 2>&1 &
pid=$!
remember $pid
until [ "$(find /proc/$pid/fd -lname "$PWD/fifo" 2>/dev/null)" ]; do kill -0 $pid; sleep 0.05; done
exec 7>&-
wait $pid
cmp <("$TRACESMITH" view pipe.sbt) <("$TRACESMITH" view stdin.sbt)
cmp <("$TRACESMITH" view named.sbt) <("$TRACESMITH" view stdin.sbt)
f export -q t.sbt -f folded --count spans -o >(cat >folded.txt) 2>&1 | sed 's|/dev/fd/[0-9]*|PIPE|'
until [ -s folded.txt ]; do sleep 0.05; done
"$TRACESMITH" import -q t.json -o /dev/stdout | cat >stdout.sbt
f verify stdout.sbt

echo "--- a pipe that stays empty"
exec 8<>fifo
for signal in INT TERM; do
	set -m # background jobs ignore SIGINT otherwise
	"$TRACESMITH" import -q fifo -o wait.sbt 2>&1 &
	pid=$!
	set +m
	remember $pid
	# It has created its output, and will read now or soon.
	until [ -e wait.sbt.part ]; do kill -0 $pid; sleep 0.05; done
	kill -$signal $pid
	code=0
	wait $pid || code=$?
	echo "$signal: exit $code"
	[ ! -e wait.sbt ] && [ ! -e wait.sbt.part ] || fail "an output without events is left"
done
exec 8>&-
