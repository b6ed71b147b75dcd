#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ctrl-C during an import: a finished trace with what was read, exit code 130; SIGTERM: 143. If the
# trace existed, it stays as it was.
. "$TS_SOURCE/tests/cli/lib.sh"

events() {
	python3 - <<'PY'
import sys
sys.stdout.write("[")
for i in range(300000):
    sys.stdout.write('{"ph":"X","name":"op%d","pid":1,"tid":1,"ts":%d,"dur":1},\n' % (i % 50, i))
PY
}
events >events.txt
mkfifo pipe

stop() { # signal, output
	# Background jobs ignore SIGINT unless job control is on.
	set -m
	"$TRACESMITH" import -q - -o "$2" <pipe 2>err.txt &
	pid=$!
	set +m
	exec 9>pipe
	cat events.txt >&9
	kill -"$1" $pid
	# More input wakes it up.
	cat events.txt >&9 2>/dev/null || true
	exec 9>&-
	code=0
	wait $pid || code=$?
	echo "$1: exit $code"
	numbers <err.txt
	t verify "$2"
}

for signal in INT TERM; do
	stop $signal $signal.sbt
done
cp INT.sbt before.sbt
stop INT INT.sbt
cmp before.sbt INT.sbt || fail "the earlier trace was changed"
[ ! -e INT.sbt.part ] || fail "the part was left"
