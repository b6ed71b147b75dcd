#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# breakdown, overlap, kernels and idle of recorded traces: compared with HTA's numbers, and with
# counts in plain Python (analyze_breakdowns.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

code=0
for folder in "${real_folders[@]}"; do
	mapfile -d '' files < <(real_folders=("$folder") && kineto_files kineto pairs)
	python3 "$TS_SOURCE/tests/real/analyze_breakdowns.py" "$folder" "${files[@]}" || code=1
done
exit $code
