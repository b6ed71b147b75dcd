#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Only what is needed is read.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 - >big.json <<'PY'
import json, random
random.seed(3)
print(json.dumps([{"ph": "X", "name": "op%d" % random.randrange(1000), "pid": 1, "tid": 1, "ts": i * 10,
                   "dur": random.randrange(13), "args": {"a": random.randrange(10**6), "b": "text %d" % random.randrange(5000)}}
                  for i in range(300000)]))
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
# a time range of one of five chunks, without the arguments
read_share 0.15 --from 1500ms --to 1500.1ms
read_share 0.15 --limit 10
read_share 0.2 --columns start
read_share 0.5
read_share 0.02 --device 3
read_share 1.1 --name op7 --args
