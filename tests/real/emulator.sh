#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The emulator on every recorded Kineto trace: it finds the recorded times again, the same ones each time, and its result is a
# trace like others (check_emulator.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

mapfile -d '' files < <(kineto_files kineto pairs)
python3 "$TS_SOURCE/tests/real/check_emulator.py" "$TRACESMITH" "${files[@]}"
