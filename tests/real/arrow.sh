#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recorded traces as Arrow streams: every cell of every table is that of CSV (check_arrow.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

mapfile -d '' files < <(real_files kineto chrome memory | sort -z)
python3 "$TS_SOURCE/tests/real/check_arrow.py" "${files[@]}"
