#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# breakdown, overlap, kernels and idle of recorded traces: against HTA's own numbers, and against counts made by
# Python alone (analyze_breakdowns.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data
[ -d "$real_data/oracles" ] || { echo "skip: there are no numbers of HTA in '$real_data/oracles'"; exit 77; }

mapfile -d '' files < <(real_files kineto pairs | grep -z 'kineto' | sort -z)
[ ${#files[@]} -gt 0 ] || { echo "skip: there are no Kineto files in '$real_data'"; exit 77; }
python3 "$TS_SOURCE/tests/real/analyze_breakdowns.py" "$real_data" "${files[@]}"
