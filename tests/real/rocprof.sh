#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recorded files of rocprofv3: every record compared with an independent reading (check_rocprof.py); then analyses and export.
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data

[ -d "$real_data/rocprof" ] || { echo "skip: there are no files of rocprofv3 in '$real_data'"; exit 77; }
mapfile -d '' files < <(find "$real_data/rocprof" -type f -print0)
[ ${#files[@]} -gt 0 ] || { echo "skip: there are no files of rocprofv3 in '$real_data'"; exit 77; }
python3 "$TS_SOURCE/tests/real/check_rocprof.py" "${files[@]}"
