#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# launch, queue, bandwidth, annotations, steps and memory of recorded traces: what HTA said of them, and counts of
# our own (analyze_launches.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data
[ -d "$real_data/oracles" ] || { echo "skip: there are no numbers of HTA in '$real_data'"; exit 77; }

small=
case $TS_BUILD in *san*) small=--small ;; esac
python3 "$TS_SOURCE/tests/real/analyze_launches.py" $small "$real_data"
