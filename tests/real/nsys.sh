#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recorded exports of Nsight Systems: imported, and compared row by row with what Python's sqlite3 reads (check_nsys.py); the analyses
# and the export that users go on with.
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

need_files_of_others 'exports of Nsight Systems' nsys
mapfile -d '' files < <(real_files nsys)
python3 "$TS_SOURCE/tests/real/check_nsys.py" "${files[@]}"
