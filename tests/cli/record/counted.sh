#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that exits at once is one process, whether its metrics, its live area or its exit came
# first.
. "$TS_SOURCE/tests/cli/live.sh"

for ((i = 0; i < 60; i++)); do
	"$TRACESMITH" record -q --json --sample-rate 0.001 -o t.sbt -- true 2>/dev/null | grep -o '"processes":[0-9]*'
done | sort | uniq -c | sed 's/^ *//'
