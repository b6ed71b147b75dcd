#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cuda_calls.def matches NVIDIA's headers: names, arguments, CUPTI's numbers, streams.
set -euo pipefail

for folder in ${CUDA_HOME:+"$CUDA_HOME/include"} /usr/local/cuda/include; do
	if [ -e "$folder/generated_cuda_meta.h" ] && [ -e "$folder/cupti_driver_cbid.h" ]; then
		python3 "$TS_SOURCE/scripts/cuda-calls" --check "$TS_SOURCE/src/backends/cuda/calls/cuda_calls.def" "$folder"
		exit
	fi
done
echo "skip: no CUDA headers with generated_cuda_meta.h and cupti_driver_cbid.h"
exit 77
