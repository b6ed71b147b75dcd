#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A database from a pipe is copied to $TMPDIR, and the copy is removed however the import ends.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 - <<'PY' || { echo "skip: Python has no sqlite3"; exit 77; }
import sqlite3
database = sqlite3.connect("a.sqlite")
database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
database.execute("CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER)")
database.executemany("INSERT INTO OSRT_API VALUES (?, ?, 7, 1)", ((i, i + 1) for i in range(400000)))
database.commit()
PY
mkdir tmp
export TMPDIR=$PWD/tmp
if ! "$TRACESMITH" import -q a.sqlite -o plain.sbt 2>err.txt; then
	grep -q 'no SQLite' err.txt || { cat err.txt; fail "no reason given"; }
	echo "skip: this build has no SQLite"
	exit 77
fi
"$TRACESMITH" import -q - -o piped.sbt <a.sqlite || fail "from a file at stdin"
"$TRACESMITH" import -q - -o piped.sbt < <(cat a.sqlite) || fail "from a pipe"
cmp <("$TRACESMITH" view --json plain.sbt | tail -n +2) <("$TRACESMITH" view --json piped.sbt | tail -n +2) || fail "differs"
[ -z "$(ls tmp)" ] || fail "files remain: $(ls tmp)"

# A truncated compressed database keeps what could be decompressed.
gzip -c a.sqlite >a.sqlite.gz
head -c $(($(stat -c %s a.sqlite.gz) / 2)) a.sqlite.gz >cut.sqlite.gz
code=0
"$TRACESMITH" import -q cut.sqlite.gz -o cut.sbt 2>err.txt || code=$?
[ $code = 3 ] || fail "cut: exit code $code"
rows=$("$TRACESMITH" view --json cut.sbt --table slice,api_call | wc -l)
[ "$rows" -gt 1000 ] || { cat err.txt; fail "cut: $rows rows"; }
[ -z "$(ls tmp)" ] || fail "cut: files remain: $(ls tmp)"

nameless=$(python3 -c 'import os; os.open("tmp", os.O_TMPFILE | os.O_RDWR); print("yes")' 2>/dev/null || true)
mkfifo pipe
for signal in INT TERM KILL; do
	[ $signal != KILL ] || [ -n "$nameless" ] || continue
	# Background jobs ignore SIGINT unless job control is on.
	set -m
	"$TRACESMITH" import -q - -o $signal.sbt <pipe 2>err.txt &
	pid=$!
	set +m
	exec 9>pipe
	head -c 5000000 a.sqlite >&9
	until readlink /proc/$pid/fd/* | grep "^$TMPDIR/" >/dev/null; do
		kill -0 $pid || fail "$signal: it has ended"
		sleep 0.01
	done
	kill -$signal $pid
	# More input wakes it up.
	{ tail -c +5000001 a.sqlite >&9; } 2>/dev/null || true
	exec 9>&-
	wait $pid 2>/dev/null && fail "$signal: went on"
	[ -z "$(ls tmp)" ] || fail "$signal: files remain: $(ls tmp)"
done
echo "nothing left"
