#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No disk space for the trace: reported, exit code 3, and the rest can be recovered.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 - >big.json <<'PY'
import json, random
random.seed(1)
print(json.dumps([{"ph": "X", "name": "op%d" % random.randrange(10**9), "pid": 1, "tid": 1, "ts": random.random() * 1e9,
                   "dur": random.random() * 1e6} for i in range(200000)]))
PY
code=0
# A file size limit, in 1024-byte units, simulates a full disk.
(trap '' XFSZ; ulimit -f 2048; exec "$TRACESMITH" import -q big.json -o full.sbt) 2>err.txt || code=$?
echo "exit $code"
grep -q 'file size limit' err.txt || { cat err.txt; fail "no reason given"; }
grep -q 'full.sbt' err.txt || { cat err.txt; fail "the file is not named"; }
quietly recover full.sbt -o good.sbt
t verify good.sbt
