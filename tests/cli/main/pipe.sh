#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A closed pipe ends the tool silently; an output that cannot be written is an error.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 - >many.json <<'PY'
import json
print(json.dumps([{"ph": "X", "name": "op%d" % i, "pid": 1, "tid": 1, "ts": i, "dur": 1} for i in range(50000)]))
PY
quietly import many.json -o many.sbt
set +o pipefail
"$TRACESMITH" view many.sbt 2>err.txt | head -n 2
"$TRACESMITH" view many.sbt --json 2>>err.txt | head -n 1
"$TRACESMITH" export many.sbt -o - 2>>err.txt | head -c 1
echo
"$TRACESMITH" info many.sbt 2>>err.txt | true
cat err.txt
set -o pipefail
# A verb that writes a file finishes it even if nobody reads its report.
set +o pipefail
"$TRACESMITH" import many.json -o piped.sbt --json 2>&1 | true
set -o pipefail
t verify piped.sbt

code=0
"$TRACESMITH" view many.sbt >/dev/full 2>err.txt || code=$?
cat err.txt
echo "exit $code"
code=0
"$TRACESMITH" --help >/dev/full 2>err.txt || code=$?
cat err.txt
echo "exit $code"
code=0
"$TRACESMITH" --help >&- 2>err.txt || code=$?
echo "closed: exit $code"
# With standard output closed, an opened file must not take its descriptor.
"$TRACESMITH" import many.json -o closed.sbt --json >&- 2>/dev/null || true
t verify closed.sbt
