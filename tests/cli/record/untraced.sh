#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No shared memory: a loss of unknown size, in the summary, in JSON, in the trace and in the exit
# code; with the reason and what to do.
. "$TS_SOURCE/tests/cli/live.sh"
export TRACESMITH_BACKENDS=none
unshare -m mount -t tmpfs tmpfs live 2>/dev/null || { echo "skip: no file system can be mounted here"; exit 77; }

pids() { sed -E 's/process [0-9]+/process PID/'; }
export -f t pids summary numbers
export emit
unshare -m bash -euc '
mount -t tmpfs -o size=64k,mode=700 tmpfs live
t record -o t.sbt -- "$emit" instants:10 | summary | pids
# Only a trace has the table of losses.
t record -o t.folded -- "$emit" instants:10 | tail -n 2
"$TRACESMITH" record -q --json -o j.sbt -- "$emit" instants:10 2>/dev/null >json || echo "exit $?"'
"$TRACESMITH" info t.sbt | grep -E '^loss' | pids
python3 - <<END
import json
r = json.load(open("json"))
print(r["lost"], r["unknown_losses"], r["untraced"], r["untraced_reason"])
END
"$TRACESMITH" info --json t.sbt | python3 -c '
import json, sys
info = json.load(sys.stdin)
print(info["lost"], info["unknown_losses"], [row.get("count") for row in info["loss"]])'
# The exit code of the program comes first.
unshare -m bash -euc '
mount -t tmpfs -o size=64k,mode=700 tmpfs live
"$TRACESMITH" record -q -o t.sbt -- "$(command -v false)" 2>/dev/null || echo "exit $?"'
