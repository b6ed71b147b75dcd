#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All Kineto files as ranks of one job: one trace, exported, imported again (check_ranks.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

mapfile -d '' files < <(kineto_files kineto)
python3 "$TS_SOURCE/tests/real/check_ranks.py" "${files[@]}"
