#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Forward operators of what was launched in the backward pass, against the arrows that PyTorch's profiler has drawn itself (forward.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data

mapfile -d '' files < <(real_files kineto | sort -z)
[ ${#files[@]} -gt 0 ] || { echo "skip: there are no Kineto files in '$real_data'"; exit 77; }
python3 "$TS_SOURCE/tests/real/forward.py" "${files[@]}"
