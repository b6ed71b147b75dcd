#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# launch-latency, queue, bandwidth, annotations, steps and memory of recorded traces: compared with
# HTA, and with independent counts (analyze_launches.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

small=
case $TS_BUILD in *san*) small=--small ;; esac
code=0
for folder in "${real_folders[@]}"; do
	python3 "$TS_SOURCE/tests/real/analyze_launches.py" $small "$folder" || code=1
done
exit $code
