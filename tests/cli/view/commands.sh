#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --commands: the command stream of each stream, with operands.
. "$TS_SOURCE/tests/cli/lib.sh"

call() { echo "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"$1\", \"pid\": 1, \"tid\": 2, \"ts\": $2, \"dur\": $3, \"args\": {\"correlation\": $4}},"; }
device() { echo "{\"ph\": \"X\", \"cat\": \"$1\", \"name\": \"$2\", \"pid\": 0, \"tid\": $3, \"ts\": $4, \"dur\": $5, \"args\": {\"device\": 0, \"stream\": $3, \"correlation\": $6${7-}}},"; }
{
	echo '{"schemaVersion": 1, "traceEvents": ['
	call cudaLaunchKernel 10 2 1
	device kernel gemm 7 15 20 1 ', "grid": [4, 2, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 64'
	call cudaEventRecord 13 1 2
	call cudaStreamWaitEvent 15 1 3
	device cuda_sync "Stream Wait Event" 20 15 1 3 ', "cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2, "wait_on_cuda_event_id": 9'
	call cudaMemcpyAsync 18 2 4
	device gpu_memcpy "Memcpy DtoH (Device -> Pinned)" 20 37 5.5 4 ', "bytes": 4096'
	call cudaStreamSynchronize 22 22 5
	device cuda_sync "Stream Sync" 20 22 22 5 ', "cuda_sync_kind": "Stream Sync"'
	call cudaLaunchKernel 50 2 6
	call cudaDeviceSynchronize 60 3 7
	echo '{"ph": "i", "name": "x", "pid": 1, "tid": 2, "ts": 100}]}'
} >t.json
quietly import t.json -o t.sbt
t view t.sbt --commands
t view t.sbt --commands --json
t view t.sbt --commands --stream 20 --limit 2 --json
t view t.sbt --commands --name 'cuda*' --from 20us --to 50us
t view t.sbt --commands --device 1
# A copy without a call in the trace; a trace without devices.
make_trace k
t view k.sbt --commands --json
echo '[{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 1, "dur": 1}]' >host.json
quietly import host.json -o host.sbt
t view host.sbt --commands
# Options that do not combine with it.
t view t.sbt --commands --table gpu_op
t view t.sbt --commands --sort duration
t view t.sbt --commands --thread 2
t view t.sbt --commands --device x
