#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# critical-path of recorded traces: HTA's construction compared with HTA's numbers, and invariants
# of ours (critical_path.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

code=0
for folder in "${real_folders[@]}"; do
	mapfile -d '' files < <(real_folders=("$folder") && kineto_files kineto pairs)
	python3 "$TS_SOURCE/tests/real/critical_path.py" "$folder" "${files[@]}" || code=1
done
exit $code
