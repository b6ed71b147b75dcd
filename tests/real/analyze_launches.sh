#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# launch-latency, queue, bandwidth, annotations, steps and memory of recorded traces: compared with
# HTA, and with independent counts (analyze_launches.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

# Of others' files the large ones take most of the time. Ours are all small.
small=--small
[[ -z ${TS_REAL_FULL:-}${TS_LONG:-} || $TS_BUILD == *san* ]] || small=
code=0
for folder in "${real_folders[@]}"; do
	python3 "$TS_SOURCE/tests/real/analyze_launches.py" $small "$folder" || code=1
done
exit $code
