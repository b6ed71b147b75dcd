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
! grep -q $'\033' top.txt || fail "an escape sequence"
! grep -qE '.{1000}' top.txt || fail "a name is not cut"
"$TRACESMITH" analyze many.json kernels --json 2>/dev/null | grep -qE '"long_x{3000}"' || fail "the name is truncated in JSON"
"$TRACESMITH" analyze many.json kernels --top 50 | grep -c kernel_
