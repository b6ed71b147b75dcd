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
rows --from 0 --to 10us
t view t.sbt --from soon
t view t.sbt --from 5
t view t.sbt --to 1.5
# Before anything is opened, if it does not depend on the start of the trace.
t view missing.sbt --from 2us --to 1us
t view missing.sbt --from @2 --to @1
t view missing.sbt --from 1us --to 1us
t view t.sbt --from 1us --to @1
t view t.sbt --to @later
t view t.sbt --from ''
