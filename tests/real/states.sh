#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The states of every recorded Kineto file: they partition time, and run when the devices did (check_states.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data

mapfile -d '' files < <({ real_files kineto; real_files pairs | grep -z '_kineto'; } | sort -z)
[ ${#files[@]} -gt 0 ] || { echo "skip: there are no Kineto files in '$real_data'"; exit 77; }
python3 "$TS_SOURCE/tests/real/check_states.py" "${files[@]}"
