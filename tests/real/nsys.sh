#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recorded exports of Nsight Systems: imported and compared row by row with Python's sqlite3
# (check_nsys.py); then analyses and export.
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

need_files_of_others 'exports of Nsight Systems' nsys
mapfile -d '' files < <(real_files nsys)
python3 "$TS_SOURCE/tests/real/check_nsys.py" "${files[@]}"
