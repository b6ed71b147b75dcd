#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage errors suggest what was meant, before anything is read if possible.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
# Another test checks the list of analyses.
short() { t "$@" | sed 's/breakdown, kernels.* (see/LIST (see/'; }
short analyze
short analyze t.sbt
short analyze t.sbt nothing
t analyze breakdown
"$TRACESMITH" analyze breakdown t.sbt | cmp - <("$TRACESMITH" analyze t.sbt breakdown)
t analyze t.sbt brekdown
t analyze t.sbt breakdown,kernls
t analyze t.sbt overlp breakdown
short analyze t.sbt ,
short analyze t.sbt breakdown,
t analyze none.sbt breakdown
t analyze ./brekdown breakdown
t analyze t.sbt breakdown --stepz 1
t analyze t.sbt breakdown --steps few
t analyze t.sbt breakdown --steps ''
t analyze t.sbt breakdown --steps 5-3
t analyze t.sbt breakdown --steps 3- --all
t analyze t.sbt breakdown --steps 3 --all
t analyze t.sbt breakdown --rounding up
t analyze t.sbt breakdown --rank first
t analyze t.sbt breakdown --from soon
t analyze t.sbt breakdown --to @later
t analyze t.sbt breakdown --from 2ms --to 1ms
t analyze missing.sbt breakdown --from 1ms --to 1ms
t analyze t.sbt breakdown --from 1
t analyze t.sbt ./t.sbt breakdown
t analyze t.sbt breakdown --top 0
t analyze t.sbt launch-latency --short 0
t analyze t.sbt launch-latency --short 10
t analyze t.sbt launch --delay long
t analyze t.sbt idle --wait -3us
# Options of an analysis that was not requested.
t analyze t.sbt breakdown --depth 3
t analyze t.sbt idle,launch-stacks --short 5us
t analyze t.sbt kernels --what-if 'gemm*=2'
t analyze t.sbt breakdown --json --csv
t analyze t.sbt all --csv
t analyze t.sbt breakdown overlap --csv
t analyze t.sbt breakdown --table breakdown
t analyze t.sbt breakdown --csv --table brekdown
# Earlier names of analyses.
for names in launch:launch-latency launches:launch-stacks; do
	"$TRACESMITH" analyze t.sbt ${names#*:} >name.txt
	"$TRACESMITH" analyze t.sbt ${names%:*} | cmp - name.txt
	"$TRACESMITH" analyze t.sbt ${names%:*},${names#*:},breakdown --json |
		python3 -c 'import json, sys; print(*json.load(sys.stdin))'
done
# A file with the name of an analysis.
cp t.sbt kernels
"$TRACESMITH" analyze ./kernels breakdown >ours.txt
"$TRACESMITH" analyze t.sbt breakdown | cmp - ours.txt
