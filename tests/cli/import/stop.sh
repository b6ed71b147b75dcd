#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ctrl-C during an import: a finished trace with what was read, exit code 130; SIGTERM: 143.
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
for signal in INT TERM; do
	# Background jobs ignore SIGINT unless job control is on.
	set -m
	"$TRACESMITH" import -q - -o $signal.sbt <pipe 2>err.txt &
	pid=$!
	set +m
	exec 9>pipe
	cat events.txt >&9
	kill -$signal $pid
	# More input wakes it up.
	cat events.txt >&9 2>/dev/null || true
	exec 9>&-
	code=0
	wait $pid || code=$?
	echo "$signal: exit $code"
	numbers <err.txt
	t verify $signal.sbt
done
