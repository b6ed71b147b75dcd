#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stragglers and clocks of recorded jobs, against a count by Python.
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

need_real_data
python3 "$TS_SOURCE/tests/real/stragglers.py" "$real_data"
