#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For tests/cuda/*.sh: records programs on stand-ins for NVIDIA's libraries. Needs no device.
. "$TS_SOURCE/tests/lib/crash.sh"

# shellcheck disable=SC2034 # for those who source this
programs=$TS_BUILD/tests/cuda
export LC_ALL=C
export LD_LIBRARY_PATH=$programs
shared=/dev/shm
[ -w $shared ] || shared=${TMPDIR:-/tmp}
live=$(mktemp -d "$shared/tracesmith-test.XXXXXX")
export TRACESMITH_LIVE_DIR=$live/areas
mkdir -m 700 "$TRACESMITH_LIVE_DIR"
trap 'rm -rf "$live"' EXIT
unset TRACESMITH_OUT FERRUM_TRACE_OUT TRACESMITH_LIVE TRACESMITH_AGENT TRACESMITH_BUDGET TRACESMITH_BACKENDS NVTX_INJECTION64_PATH
# CUPTI does not work with the stand-in driver: device activity stays off, as under Nsight. Tests of
# device activity override this.
export NSYS_STAND_IN=1
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0:detect_leaks=0

[ -e "$TS_BUILD/libtracesmith-backend-cuda.so" ] || fail "no libtracesmith-backend-cuda.so; build it first"

# Records a program with only the backend cuda; it must succeed. Its output is in the file
# `printed`.
record() { # trace, record's option..., --, program...
	local trace=$1 code=0
	shift
	rm -f "$trace" "$trace".*
	timeout 300 "$TRACESMITH" record -q --backends cuda --no-symbols -o "$trace" "$@" >printed 2>recorded.log </dev/null || code=$?
	[ $code -eq 0 ] || fail "record $*: exit code $code: $(head -c 2000 recorded.log; tail -n 5 printed)"
	expect 0 verify -q "$trace"
}

# Evaluates a Python expression on the rows of some tables: lists of dicts, named like the tables.
of_rows() { # trace, expression, table...
	local trace=$1 expression=$2 table
	shift 2
	for table in "$@"; do
		rows_of "$trace" "$table" >"rows.$table"
	done
	python3 - "$expression" "$@" <<-'PYTHON'
		import collections, json, sys
		tables = {table: [json.loads(line) for line in open("rows." + table)] for table in sys.argv[2:]}
		print(eval(sys.argv[1], {"Counter": collections.Counter, "json": json, **tables}))
	PYTHON
}
