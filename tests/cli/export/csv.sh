#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tables as CSV: every column, arbitrary strings; a time range; a directory of all tables.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
for table in slice api_call gpu_op mark thread stream; do
	t export -q t.sbt -f csv --table $table -o -
done
# A time range: rows that overlap it, including rows that never end.
t export -q t.sbt -f csv -t slice --from 0.15ms --to 0.16ms -o -
t export -q t.sbt -f csv -t slice --from 0.6ms -o -
t export -q t.sbt -f csv -t slice --to @1000000010000 -o -
t export -q t.sbt -f csv -t slice --limit 1 -o -

# All tables. Strings are written where they are used, so the string table is not exported.
quietly export t.sbt -f csv -o all/
ls all
mkdir there
quietly export t.sbt -f csv -o there
diff -r all there || fail "a folder that was there"
cmp all/slice.csv <("$TRACESMITH" export -q t.sbt -f csv -t slice -o -) || fail "a table alone differs"

# Strings that need quoting: another program reads what view shows.
python3 - <<'PY'
import json
names = ["plain", "a,b", 'say "x"', "two\nlines", "cr\rlf\r\n", " spaces ", "tab\there", "nul\0nul", "\u00e9\U0001f600", "=1+1", "'", '"', "",
         "\x7f\x01", "back\\slash", ",", '","', "\u2028"]
events = [{"ph": "X", "name": name, "cat": name, "pid": 1, "tid": 2, "ts": i, "dur": 1,
           "args": {name: name, "list": [name, 1.5, None, True], "o": {name: {}}, "big": 2**62, "real": 0.1, "nothing": None}}
          for i, name in enumerate(names)]
events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": 'main, "the" thread'}})
text = json.dumps({"traceEvents": events}).encode()
# Bytes that are not UTF-8.
open("odd.json", "wb").write(text.replace(b"plain", b"pl\xff\xc3in"))
PY
quietly import odd.json -o odd.sbt
"$TRACESMITH" export -q odd.sbt -f csv -t slice -o odd.csv
"$TRACESMITH" view --json -t slice odd.sbt >odd.view
python3 - <<'PY'
import csv, json
data = open("odd.csv", "rb").read()
data.decode()
assert b"\0" not in data
rows = list(csv.DictReader(open("odd.csv", newline="", encoding="utf-8"), strict=True))
view = [json.loads(line) for line in open("odd.view", encoding="utf-8")]
assert len(rows) == len(view) == 18, (len(rows), len(view))
for row, shown in zip(rows, view):
    assert None not in row and None not in row.values(), row
    for column in "name", "category":
        assert row[column] == shown.get(column, "").replace("\0", "\ufffd"), (row, shown)
    assert json.loads(row["args"]) == shown["args"], (row["args"], shown["args"])
    assert row["thread_name"] == 'main, "the" thread' and row["thread_pid"] == "1" and row["thread_tid"] == "2"
    assert int(row["duration"]) == 1000
PY

# Usage errors.
t export t.sbt -f csv -o x
t export t.sbt -f csv --table slise -o x
t export t.sbt -f csv --table parchment -o x
t export t.sbt -f csv --table edge -o x
t export t.sbt -f csv --table shape -o x
t export t.sbt -f csv --table slice --from soon -o x
t export t.sbt -f csv --table slice --limit 0 -o x
t export t.sbt -f chrome --table slice -o x
t export t.sbt -f chrome --from 1ms -o x
t export t.sbt -f folded --limit 3 -o x
t export t.sbt -f csv -o none/deep/
[ ! -e x ] || fail "an output was made"
cp t.sbt slice.csv
t export slice.csv -f csv -o . 2>&1
cmp t.sbt slice.csv || fail "the trace was changed"
