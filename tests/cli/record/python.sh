#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The python backend: stacks of a started program, of a running one, at a changing interval, and on
# events.
. "$TS_SOURCE/tests/cli/python.sh"

echo "== a started program"
"$TRACESMITH" record --backends python --python-interval 0.01 -o a.sbt -- bash -c "$python program.py the_main & wait" 2>err.txt &
recorder=$!
await sampled a.sbt 'worker;wait_inside$'
await sampled a.sbt 'the_main;run;wait_inside$'
await named a.sbt worker-1
await counted a.sbt python_stacks_per_s
touch the_main.over
wait $recorder
summary <err.txt
"$TRACESMITH" verify a.sbt
stacks a.sbt | grep -o 'the_main;run;wait_inside$\|worker;wait_inside$' | sort -u
"$TRACESMITH" view a.sbt --table thread --json | grep -o 'MainThread\|worker-[0-9]' | sort -u
# Its own counters, and no metrics.
"$TRACESMITH" info --counters a.sbt --json | grep -o 'python_[a-z_]*\|memory_bytes' | sort -u

echo "== without --backends, with all the rest"
"$TRACESMITH" record -o default.sbt -- "$python" program.py the_default 2>err.txt &
recorder=$!
await sampled default.sbt 'the_default;run;wait_inside$'
touch the_default.over
wait $recorder
# What was rejected is lost, as the trace says.
rejected=$(sed -nE 's/.* Python stacks \(([0-9]+) rejected\).*/\1/p' err.txt)
[ "$rejected" = 0 ] || grep -q 'nothing else lost$' err.txt || fail "$(cat err.txt)"
[ "$rejected" = 0 ] || "$TRACESMITH" info default.sbt | grep -q "^loss  *stacks: $rejected lost: rejected" || fail "$rejected: $("$TRACESMITH" info default.sbt)"
grep -o ' Python stacks ([0-9]* rejected)' err.txt | sed 's/[0-9][0-9]*/N/'
stacks default.sbt | grep -o 'the_default;run;wait_inside$' | sort -u
"$TRACESMITH" info --counters default.sbt --json | grep -o 'memory_bytes' | sort -u
# Nobody asked for the stacks of a program without Python.
"$TRACESMITH" record -o none.sbt -- true 2>&1 | grep -c 'Python' || true

echo "== a running one, with metrics"
begin the_second
# On a busy machine longer.
for seconds in 1 5 30; do
	"$TRACESMITH" record -p $program --duration ${seconds}s --backends python,host --python-interval 20ms --json -o b.sbt 2>err.txt |
		python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["stacks"] > 30, r["stacks_rejected"] <= r["stacks"], r["metrics"] > 0)' >said.txt
	grep -q False said.txt || ! stacks b.sbt | grep 'the_second;run;wait_inside$' >/dev/null || break
done
cat said.txt
sed "s/$program/PID/" err.txt | grep -v '^b.sbt'
stacks b.sbt | grep -c 'the_second;run;wait_inside$'

echo "== a changing interval"
"$TRACESMITH" record -q -p $program --backends python --python-interval 10s -o c.sbt &
recorder=$!
interval() { "$TRACESMITH" config $recorder --json | grep -o '"python_interval":[0-9.]*'; }
await eval 'interval | grep -qx .*:10'
interval
quietly config $recorder python_interval=0
quietly config $recorder python_sweep=1
await samples_of c.sbt asked 3
quietly config $recorder python_interval=0.01
await samples_of c.sbt python 51
kill -INT $recorder
wait $recorder
"$TRACESMITH" view c.sbt --table sample --json | python3 -c '
import collections, json, sys
names = collections.Counter(json.loads(line)["name"] for line in sys.stdin)
print(sorted(names), names["asked"] >= 3, names["python"] > 50)'

echo "== on entry of a function"
touch the_second.over
wait $program
cat >comes.py <<'PY'
import sys, time
def wanted_one(answer): time.sleep(float(sys.argv[1]))
def other(): time.sleep(float(sys.argv[1]))
for i in range(6):
    wanted_one(42)
    other()
PY
# On a busy machine longer.
for seconds in 0.08 1 5; do
	"$TRACESMITH" record -q --backends python --python-interval 0.005 --python-on 'function:wanted_*' --locals -o d.sbt -- "$python" comes.py $seconds
	"$TRACESMITH" view d.sbt --table sample --args --json >d.json
	! grep -q '"function wanted_one".*answer.*42' d.json || ! grep -q '"after function wanted_one"' d.json || break
done
grep -o '"name":"[a-z ]*function[^"]*"' d.json | sort -u
grep -c 'answer.*42' d.json >/dev/null && echo "locals are there"
[ "$(wc -l <d.json)" -lt 60 ] && echo "few"

echo "== marks and calls need the agent"
"$TRACESMITH" record -q --backends none --python-on marks,calls -o f.sbt -- bash -c 'echo $TRACESMITH_PYTHON_STACKS'

echo "== usage"
t record --backends host --native -o x.sbt -- true
t record --backends host --python-interval 1 -o x.sbt -- true
t record --backends python --python-interval 0.00001 -o x.sbt -- true
t record --backends python --python-on sometimes -o x.sbt -- true
t record --backends python --python-on function: -o x.sbt -- true
t record --python-on marks -p 1 -o x.sbt
