#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recorded traces compared: what HTA's own test of its diff says, counts of our own, and traces with themselves.
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data

python3 "$TS_SOURCE/tests/real/check_diff.py" "$TS_BUILD/tracesmith" "$real_data"
