#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ffmpeg's filters in OpenCL write the same frames when they are recorded.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh" long
needs_command ffmpeg ffmpeg

outputs=(frames.raw)
for filter in avgblur_opencl sobel_opencl unsharp_opencl transpose_opencl; do
	check_program "ffmpeg, $filter" -- ffmpeg -nostdin -v error -y -init_hw_device opencl=device -filter_hw_device device \
		-f lavfi -i testsrc=size=64x48:rate=5:duration=1 -vf "format=yuv420p,hwupload,$filter,hwdownload,format=yuv420p" \
		-f rawvideo frames.raw
done
