#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recorded exports of Nsight Systems: imported, and compared row by row with what Python's sqlite3 reads (check_nsys.py); the analyses
# and the export that users go on with.
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data

mapfile -d '' files < <(real_files nsys)
[ ${#files[@]} -gt 0 ] || { echo "skip: there are no exports of Nsight Systems in '$real_data'"; exit 77; }
python3 "$TS_SOURCE/tests/real/check_nsys.py" "${files[@]}"
