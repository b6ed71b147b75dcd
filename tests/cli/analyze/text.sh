#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Text output: one table; several with headings; truncated lists; long and hostile names; on a
# terminal.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
"$TRACESMITH" analyze t.sbt breakdown >one.txt
[ "$(wc -l <one.txt)" = 2 ] || fail "a header and a row"
grep -q '^rank ' one.txt || fail "no header"
grep -q '^ *0 .*50 us' one.txt || fail "no row"
"$TRACESMITH" analyze t.sbt breakdown kernels >two.txt
grep -oE '^(breakdown|kernels): [a-z]' two.txt
[ "$(sed -n 2,3p two.txt)" = "$(cat one.txt)" ] || fail "the same table below its heading"

python3 - <<'PY'
import json
kernel = lambda i, name: {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 10 * i, "dur": 100 - i,
                          "args": {"device": 0, "stream": 7, "correlation": i}}
names = ["long_" + "x" * 3000, "bad\u001b[31m\nname"] + ["kernel_%02d" % i for i in range(40)]
json.dump({"traceEvents": [kernel(i, name) for i, name in enumerate(names)]}, open("many.json", "w"))
PY
"$TRACESMITH" analyze many.json kernels --top 3 >top.txt
grep -c kernel_ top.txt
grep -o '^\.\.\. .* more rows.*' top.txt
grep -o 'bad.*name' top.txt
# So it is for a table that has all of its rows otherwise, and for advice.
python3 - <<'PY'
import json
event = lambda cat, name, ts, dur: {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}
steps = [event("user_annotation", f"ProfilerStep#{i}", 1000 * i, 900) for i in range(9)]
ops = [event("cpu_op", name, 1000 * i + at, 300) for i in range(9) for at, name in ((0, "aten::mm"), (400, "aten::copy_"))]
json.dump({"traceEvents": steps + ops}, open("steps.json", "w"))
PY
"$TRACESMITH" analyze steps.json steps --top 3 | grep '^\.\.\.'
"$TRACESMITH" analyze steps.json advice --top 1 | grep -E '^([0-9]|\.\.\.)'
# The causes of a stream with one command say nothing.
python3 - <<'PY'
import json
kernel = lambda stream, ts: {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": stream, "ts": ts, "dur": 10,
                             "args": {"device": 0, "stream": stream}}
json.dump({"traceEvents": [kernel(7, 0), kernel(7, 90), kernel(8, 20), kernel(9, 40)]}, open("streams.json", "w"))
PY
"$TRACESMITH" analyze streams.json idle --json 2>notes.txt | grep -oE '"stream": (8|9)' && fail "streams with one command"
grep 'leave out' notes.txt
! grep -q $'\033' top.txt || fail "an escape sequence"
! grep -qE '.{1000}' top.txt || fail "a name is not cut"
"$TRACESMITH" analyze many.json kernels --json 2>/dev/null | grep -qE '"long_x{3000}"' || fail "the name is truncated in JSON"
"$TRACESMITH" analyze many.json kernels --top 50 | grep -c kernel_
