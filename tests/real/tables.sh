#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recorded traces as CSV, as nested spans and as a graph: what another program reads is what view shows (check_tables.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data

mapfile -d '' files < <(quick_real_files kineto chrome | sort -z)
[ ${#files[@]} -gt 0 ] || { echo "skip: there are no Kineto or Chrome files in '$real_data'"; exit 77; }
python3 "$TS_SOURCE/tests/real/check_tables.py" "${files[@]}"
