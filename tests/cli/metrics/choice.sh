#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Selecting metrics: none, some sources, all.
. "$TS_SOURCE/tests/cli/metrics.sh"

# Records a program that runs until a sample is on disk.
until_sampled() { # trace, options...
	rm -f over
	record -q -o "$1" "${@:2}" -- "$load" await:over &
	recorder=$!
	await holds "$1" 'trace.rows'
	: >over
	wait $recorder || fail "recording ends with $?"
}
counters() { rows "$1" --table counter; }

record -q -o none.sbt --backends none -- "$load" sleep:400
[ "$(counters none.sbt)" = 0 ] || fail "--backends none records metrics"
"$TRACESMITH" info --counters none.sbt | grep '^counters   0 series' >/dev/null
TRACESMITH_BACKENDS=none record -q -o none.sbt -- "$load" sleep:400
[ "$(counters none.sbt)" = 0 ] || fail "TRACESMITH_BACKENDS=none records metrics"
until_sampled all.sbt
[ "$(counters all.sbt)" -gt 0 ] || fail "metrics are not the default"
TRACESMITH_BACKENDS=none until_sampled host.sbt --backends host
[ "$(counters host.sbt)" -gt 0 ] || fail "the option does not win over the environment"
# A source without devices gives no values, and no error.
if [ ! -e /dev/davinci_manager ]; then
	record -q -o npu.sbt --backends npu-smi -- "$load" sleep:400
	[ "$(counters npu.sbt)" = 0 ] || fail "missing NPUs are sampled"
fi
