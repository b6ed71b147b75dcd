#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every recorded trace: imported, compared with its source, exported, imported again (check_files.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data

mapfile -d '' files < <(real_files kineto chrome)
[ ${#files[@]} -gt 0 ] || { echo "skip: there are no Kineto or Chrome files in '$real_data'"; exit 77; }
python3 "$TS_SOURCE/tests/real/check_files.py" "${files[@]}"
