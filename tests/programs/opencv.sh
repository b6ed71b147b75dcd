#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OpenCV: filters of its transparent API agree with the same filters on the host.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh" long
needs_python cv2 "Debian: python3-opencv"

export OPENCV_OPENCL_DEVICE=:CPU: OPENCV_OPENCL_CACHE_ENABLE=0
check_program OpenCV -- "$python" "$TS_SOURCE/tests/programs/use_opencv.py"
