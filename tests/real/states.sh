#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The states of every recorded Kineto file partition time, and are running when the devices ran
# (check_states.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

mapfile -d '' files < <(kineto_files kineto pairs)
python3 "$TS_SOURCE/tests/real/check_states.py" "${files[@]}"
