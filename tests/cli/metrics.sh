# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests of metrics: live.sh, a program with known resource use, and the module that reads
# recordings.
. "$TS_SOURCE/tests/cli/live.sh"

# shellcheck disable=SC2034
load=$TS_BUILD/tests/targets/metrics_load
export PYTHONPATH=$TS_SOURCE/tests/cli/metrics PYTHONDONTWRITEBYTECODE=1
unset TRACESMITH_BACKENDS

# A Python expression on `trace`, what has been written of a trace so far, and on `pid`.
holds() { # trace, expression, [pid]
	copy_written "$1" && python3 - "$2" "${3:-0}" <<'PY'
import json, sys
from metrics import Trace
trace, pid = Trace("copy/good.sbt"), int(sys.argv[2])
sys.exit(not eval(sys.argv[1]))
PY
}

# The number of rows in the copy that holds() made.
count() { # metric, [pid]
	python3 - "$@" <<'PY'
import sys
from metrics import Trace
print(len(Trace("copy/good.sbt").times(sys.argv[1], *map(int, sys.argv[2:]))))
PY
}

# Limits every wait, and kills its processes at the end.
record() { timeout -k 10 -s INT 600 "$TRACESMITH" record "$@"; }
end_all() {
	local pids
	# Processes that outlive their recorder wait for one of these.
	: >go && : >over
	pids=$(jobs -pr)
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -KILL $pids 2>/dev/null || true
	wait 2>/dev/null || true
}
trap end_all EXIT
