#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recorded traces as CSV, as nested spans and as a graph: other programs read what view shows
# (check_tables.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

mapfile -d '' files < <(real_files kineto chrome | sort -z)
python3 "$TS_SOURCE/tests/real/check_tables.py" "${files[@]}"
