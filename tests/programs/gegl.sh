#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# GEGL's operations in OpenCL write the same image when they are recorded.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh" long
needs_command gegl gegl

export GEGL_USE_OPENCL=cpu GEGL_SWAP=ram
python3 -c '
import sys
pixels = bytes(v for i in range(64 * 48) for v in (i % 64 * 4, i // 64 * 5, i * 7 % 256))
sys.stdout.buffer.write(b"P6\n64 48\n255\n" + pixels)' >in.ppm
outputs=(out.png)
for operation in "brightness-contrast contrast=1.5" "box-blur radius=3" "edge-laplace" "pixelize"; do
	# shellcheck disable=SC2086 # its properties are further words
	check_program "GEGL, $operation" -- gegl in.ppm -o out.png -- gegl:$operation
done
