#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A trace large enough for progress reports, analyzed and compared without a terminal.
. "$TS_SOURCE/tests/cli/lib.sh"

"$TS_BUILD/tests/targets/make_kineto" 400000 >large.json
"$TRACESMITH" import -q large.json -o large.sbt
"$TRACESMITH" analyze large.sbt all >all.txt 2>all.err || fail "analyze all: exit $?: $(cat all.err)"
grep -q '^kernels' all.txt || fail "no table of kernels: $(head all.txt)"
"$TRACESMITH" diff large.sbt large.sbt >diff.txt 2>diff.err || fail "diff: exit $?: $(cat diff.err)"
