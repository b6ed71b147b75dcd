#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The emulator on every recorded Kineto trace: reproduces the recorded times, is deterministic, and
# writes a valid trace (check_emulator.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

mapfile -d '' files < <(kineto_files kineto pairs)
python3 "$TS_SOURCE/tests/real/check_emulator.py" "$TRACESMITH" "${files[@]}"
