#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --from and --to: rows that overlap the range, both ends included, and rows that never ended.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
rows() {
	echo "\$ view $*"
	"$TRACESMITH" view t.sbt --columns time,duration,name "$@" | tail -n +2
}
rows --from 25us --to 25us
rows --from 120us
rows --to 0
rows --from 0.6ms
rows --from @1000000200000 --to @1000000200000
rows --from 30.5us --to '50 us'
rows --from 1h
rows --to -1us
t view t.sbt --from soon
t view t.sbt --to @later
t view t.sbt --from ''
