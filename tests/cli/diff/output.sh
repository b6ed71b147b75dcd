#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# JSON and CSV, names without arguments, several ranks, exit codes, usage errors.
. "$TS_SOURCE/tests/cli/lib.sh"

make() { python3 "$TS_SOURCE/tests/cli/diff/make_steps.py" "$@"; }

make a.json --steps 2
make b.json --steps 2 --template "8, half"
t diff a.json b.json --json --device gpu
t diff a.json b.json --csv --device gpu
t diff a.json b.json --short-names --json --device gpu
# Notes do not mix with the output.
make c.json --steps 5
make d.json --steps 8
"$TRACESMITH" diff c.json d.json --json >out.json 2>notes.txt || fail "a longer recording differs"
python3 -m json.tool out.json >/dev/null || fail "no JSON"
cat notes.txt

echo "== ranks"
for rank in 0 1; do
	make "r$rank.json" --rank $rank
	quietly import "r$rank.json" -o "r$rank.sbt"
done
t diff r0.sbt,r1.sbt r0.json,r1.json --device gpu --top 1
t diff r0.sbt,r1.sbt r0.json --device gpu --top 1
t diff r0.sbt,r1.sbt r1.json --rank 1 --device gpu --top 1
# A comma that belongs to a name.
cp r0.sbt "r,0.sbt"
t diff r,0.sbt r0.sbt --device gpu --top 1 | tail -n 3

echo "== no device activity"
cat >host.json <<JSON
{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}]}
JSON
t diff host.json host.json
echo '{"traceEvents": []}' >empty.json
t diff empty.json empty.json
t diff host.json empty.json --device cpu

echo "== usage errors"
t diff a.json
t diff a.json b.json c.json
t diff a.json b.json --device tpu
for threshold in x 5x . 1.2.3 -1 ''; do
	t diff a.json b.json --threshold "$threshold"
done
t diff a.json b.json --threshold 5% --device gpu --top 1 >out.txt
t diff a.json b.json --json --csv
t diff a.json b.json --steps 3-2
# Comparing nothing with nothing is an error.
t diff a.json b.json --steps 77
t diff a.json b.json --steps 1 --steps-b 77-80
t diff a.json missing.json
t diff , b.json
# An output error takes precedence over the exit code for differences.
status=0
"$TRACESMITH" diff a.json b.json >/dev/full 2>errors.txt || status=$?
[ "$status" = 3 ] || fail "exit code $status although the output cannot be written"
