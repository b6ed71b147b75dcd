#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The instruction stream of every recorded Kineto trace against a count of its JSON (check_commands.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data

mapfile -d '' files < <(real_files kineto | sort -z)
[ ${#files[@]} -gt 0 ] || { echo "skip: there are no Kineto files in '$real_data'"; exit 77; }
python3 "$TS_SOURCE/tests/real/check_commands.py" "${files[@]}"
