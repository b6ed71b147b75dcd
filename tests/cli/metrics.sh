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

# Limits every wait, and kills its processes at the end.
record() { timeout -k 10 -s INT 600 "$TRACESMITH" record "$@"; }
end_all() {
	local pids
	# Processes that outlive their recorder wait for one of these.
	: >go && : >over
	pids=$(jobs -p)
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -KILL $pids 2>/dev/null || true
	wait 2>/dev/null || true
}
trap end_all EXIT
