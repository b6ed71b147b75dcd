#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Forward operators of what was launched in the backward pass, against the arrows that PyTorch's profiler has drawn itself (forward.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

mapfile -d '' files < <(kineto_files kineto)
python3 "$TS_SOURCE/tests/real/forward.py" "${files[@]}"
