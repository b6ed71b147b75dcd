#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Forward operators of backward launches, compared with the arrows of PyTorch's profiler
# (forward.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

mapfile -d '' files < <(kineto_files kineto)
python3 "$TS_SOURCE/tests/real/forward.py" "${files[@]}"
