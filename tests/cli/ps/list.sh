#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Processes that can be recorded, recorders, and leftovers of dead processes.
. "$TS_SOURCE/tests/cli/live.sh"

t ps
TRACESMITH_LIVE=1 "$emit" instants:100 make:ready await:done &
program=$!
await [ -e ready ]
# $1: the program's pid.
shown() { sed -E -e "s/ *$1/PID/g" -e 's/[0-9.]+ (B|KiB|MiB|s)/N/g' -e 's/ +/ /g' -e 's/^ //'; }
t ps | shown $program
"$TRACESMITH" ps --json | python3 -c '
import json, sys
row = json.loads(sys.stdin.readline())
assert not sys.stdin.read()
print(sorted(row))
print(row["pid"] == int(sys.argv[1]), row["state"], row["threads"], row["rings"], row["window"],
      row["recorder"], row["emitted_bytes"] > 0, row["waiting_bytes"] == row["emitted_bytes"], row["lost"])' $program
"$TRACESMITH" record -q --backends none -o t.sbt -p $program &
recorder=$!
is_streaming() { "$TRACESMITH" ps --json | grep '"mode":"stream"' >/dev/null; }
await is_streaming
"$TRACESMITH" ps | shown $program | sed "s/$recorder/RECORDER/"
kill -9 $recorder
wait $recorder 2>/dev/null || true
"$TRACESMITH" ps | shown $program
kill -9 $program
wait $program 2>/dev/null || true
t ps | shown $program
"$TRACESMITH" ps --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])'
# Only of given processes, or of all.
t ps --clean $$ | sed "s/ $$$/ OTHER/"
t ps --clean 12x
t ps | shown $program | head -n 2
t ps --clean $program | sed "s/$program/PID/"
t ps
t ps --clean
ls live
# A directory that others can write to is not used.
chmod 777 live
t ps | sed "s#$(pwd -P)#HERE#"
t ps extra
