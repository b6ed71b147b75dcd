#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that nobody records starts and stops its own recordings, also with children, in flight
# mode, and until it is killed.
. "$TS_SOURCE/tests/cli/live.sh"

export TRACESMITH_RECORDER=$TRACESMITH TMPDIR=$PWD/tmp
mkdir tmp
program=$TS_BUILD/tests/targets/start_stop

# Marks of a trace by name, and losses.
marks() {
	"$TRACESMITH" view --json "$1" | grep -o '"table":"mark".*"name":"[a-z]*"' | sed 's/.*"name":"//; s/"$//' | sort | uniq -c |
		sed 's/^ *//'
	"$TRACESMITH" verify "$1" >/dev/null || echo "damaged: $1"
	"$TRACESMITH" info "$1" | grep -i 'lost' || true
}

echo "== cycles"
"$program" cycles . 3
for cycle in 0 1 2; do
	echo "$cycle.sbt: $("$TRACESMITH" view --json $cycle.sbt | grep -c "\"cycle\":$cycle}") of its own," \
		"$("$TRACESMITH" view --json $cycle.sbt | grep '"name":"work"' | grep -vc "\"cycle\":$cycle}") of others"
done

for what in flight fresh children redact busy; do
	echo "== $what"
	rm -f t.sbt
	"$program" $what .
	marks t.sbt
	[ $what != redact ] || echo "strings: $("$TRACESMITH" view --json t.sbt | grep -c 'do not store')"
done

echo "== elsewhere"
"$program" elsewhere . | sed "s|$PWD|HERE|g; s/-[0-9a-f]*\.sbt/-SESSION.sbt/; s/tracesmith-[0-9]*/tracesmith-UID/"
marks tmp/tracesmith-*/t-*.sbt

echo "== exits without a stop"
rm -f t.sbt
echo | "$program" running .
marks t.sbt

echo "== killed"
rm -f t.sbt
mkfifo input
"$program" running . <input >output &
killed=$!
exec 5>input
await grep -q start output
kill -9 $killed
wait $killed 2>/dev/null || true
exec 5>&-
is_complete() { "$TRACESMITH" info --json t.sbt | grep -q '"finished":true' && [ ! -e t.sbt.journal ]; }
await is_complete
marks t.sbt
