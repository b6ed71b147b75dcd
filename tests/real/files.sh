#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every recorded trace: imported, compared with its source, exported, imported again
# (check_files.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

mapfile -d '' files < <(real_files kineto chrome)
python3 "$TS_SOURCE/tests/real/check_files.py" "${files[@]}"
