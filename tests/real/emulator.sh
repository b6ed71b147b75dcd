#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The emulator on every recorded Kineto trace: it finds the recorded times again, the same ones each time, and its result is a
# trace like others (check_emulator.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data

mapfile -d '' files < <({ real_files kineto; real_files pairs | grep -z '_kineto'; } | sort -z)
[ ${#files[@]} -gt 0 ] || { echo "skip: there are no Kineto files in '$real_data'"; exit 77; }
python3 "$TS_SOURCE/tests/real/check_emulator.py" "$TRACESMITH" "${files[@]}"
