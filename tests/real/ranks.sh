#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All Kineto files as the ranks of one job: one trace, exported, imported again (check_ranks.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data

mapfile -d '' files < <(real_files kineto | sort -z)
[ ${#files[@]} -gt 0 ] || { echo "skip: there are no Kineto files in '$real_data'"; exit 77; }
python3 "$TS_SOURCE/tests/real/check_ranks.py" "${files[@]}"
