#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Without -f, the name of the output decides on the format, and .gz compresses it.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t

for name in x.json x.speedscope.json x.pftrace x.perfetto-trace x.csv x.dot x.gv x.folded plain; do
	options=()
	[ $name != x.csv ] || options=(--table slice)
	"$TRACESMITH" export t.sbt "${options[@]}" -o $name --json -q | python3 -c '
import json, sys
summary = json.load(sys.stdin)
print(summary["file"], summary["format"])'
done
echo "-f takes precedence:"
"$TRACESMITH" export -q t.sbt -f folded --count spans -o named.json
"$TRACESMITH" export -q t.sbt --count spans -o named.folded
cmp named.json named.folded || fail "-f is ignored"

echo "compressed:"
for name in x.json x.pftrace x.csv; do
	options=()
	[ $name != x.csv ] || options=(--table slice)
	t export -q t.sbt "${options[@]}" -o $name.gz
	gzip -dc $name.gz | cmp - $name || fail "$name.gz is not a compressed $name"
done
quietly export t.sbt -f csv -t slice -o odd.gz
gzip -dc odd.gz | cmp - x.csv || fail "-f and .gz"
# A full disk, here a file size limit in 1024-byte units, is found by the thread that compresses.
python3 -c '
import json, random
random.seed(1)
print(json.dumps([{"ph": "X", "name": "op%d" % random.randrange(10**9), "pid": 1, "tid": 1, "ts": i} for i in range(20000)]))' >big.json
quietly import big.json -o big.sbt
code=0
(trap '' XFSZ; ulimit -f 1; exec "$TRACESMITH" export -q big.sbt -o big.json.gz) 2>&1 || code=$?
echo "exit $code"
[ ! -e big.json.gz ] && [ ! -e big.json.gz.part ] || fail "an incomplete file remains"

echo "unknown:"
for name in x.sbt x.txt x.json.zst x.gz; do
	t export t.sbt -o $name
	[ ! -e $name ] || fail "$name was written"
done
