#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Only what is needed is read.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 - >big.json <<'PY'
import json
print(json.dumps([{"ph": "X", "name": "op%d" % (i * 7919 % 1000), "pid": 1, "tid": 1, "ts": i * 10, "dur": i * 7919 % 13,
                   "args": {"a": i * 104729 % 99991, "b": "text %d" % (i * 31 % 5000)}} for i in range(300000)]))
PY
quietly import big.json -o big.sbt
# prints the share of bytes and of chunks that was read, and checks it
read_share() {
	local most=$1
	shift
	"$TRACESMITH" view big.sbt --stats "$@" 2>stats.txt >out.txt
	grep -qE '^bytes read: [0-9]+ of [0-9]+, chunks read: [0-9]+ of [0-9]+, rows: [0-9]+$' stats.txt || cat stats.txt
	python3 - "$most" <<'PY'
import re, sys
read, size, chunks, all_chunks, rows = map(int, re.findall(r"\d+", open("stats.txt").read()))
most = float(sys.argv[1])
assert read <= size * most, f"{read} of {size} bytes read, more than {most}"
assert rows == len(open("out.txt").readlines()) - 1
print("rows", rows)
PY
}
read_share 0.5 --limit 10
read_share 0.5 --from 1500ms --to 1500.1ms
read_share 0.6 --columns start
read_share 0.1 --device 3
read_share 1.2 --name op7 --args
