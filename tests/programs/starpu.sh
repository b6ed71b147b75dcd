#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# StarPU schedules tasks on OpenCL devices from threads of its own: its examples check themselves.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh" long
examples=$(ls -d /usr/lib/*/starpu/examples 2>/dev/null) || true
[ -n "$examples" ] || skip "no examples of StarPU (Debian: starpu-examples)"

# All tasks run on the OpenCL device. The first run measures the bus and keeps the figures.
export STARPU_NCPU=0 STARPU_OPENCL_ON_CPUS=1 STARPU_HOME=$programs_cache/starpu STARPU_SILENT=1
mkdir -p "$STARPU_HOME"
for example in vector_scal variable block; do
	check_program "StarPU, $example" -- "$examples/$example"
done
