#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recorded files of rocprofv3: every record compared with an independent parser (check_rocprof.py);
# then analyses and export.
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

need_files_of_others 'files of rocprofv3' rocprof
mapfile -d '' files < <(find "$real_data/rocprof" -type f -print0)
python3 "$TS_SOURCE/tests/real/check_rocprof.py" "${files[@]}"
