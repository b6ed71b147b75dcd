#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --why: what an event waited for, step by step, and what waited for it.
. "$TS_SOURCE/tests/cli/lib.sh"

call() { echo "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"$1\", \"pid\": 1, \"tid\": 2, \"ts\": $2, \"dur\": $3, \"args\": {\"correlation\": $4}},"; }
device() { echo "{\"ph\": \"X\", \"cat\": \"$1\", \"name\": \"$2\", \"pid\": 0, \"tid\": $3, \"ts\": $4, \"dur\": $5, \"args\": {\"device\": 0, \"stream\": $3, \"correlation\": $6${7-}}},"; }
{
	echo '{"schemaVersion": 1, "traceEvents": ['
	echo '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 0, "dur": 100},'
	call cudaLaunchKernel 10 2 1
	device kernel gemm 7 15 20 1
	call cudaEventRecord 13 1 2
	call cudaStreamWaitEvent 15 1 3
	device cuda_sync "Stream Wait Event" 20 15 1 3 ', "cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2, "wait_on_cuda_event_id": 9'
	call cudaMemcpyAsync 18 2 4
	device gpu_memcpy "Memcpy DtoH (Device -> Pinned)" 20 37 5.5 4 ', "bytes": 4096'
	call cudaStreamSynchronize 22 22 5
	device cuda_sync "Stream Sync" 20 22 22 5 ', "cuda_sync_kind": "Stream Sync"'
	call cudaLaunchKernel 50 2 6
	device kernel gemm 7 55 20 6
	device kernel orphan 7 80 1 8
	echo '{"ph": "i", "name": "x", "pid": 1, "tid": 2, "ts": 100}]}'
} >t.json
quietly import t.json -o t.sbt
# The copy waited for the event after the kernel, and the host for the copy.
t state t.sbt --why 4
t state t.sbt --why 5
t state t.sbt --why 4 --json
# By row, by name, by a substring, by a glob: of several the one that waited longest.
t state t.sbt --why gpu_op:0 | sed -n 1,3p
t state t.sbt --why api_call:5 | sed -n 1,3p
t state t.sbt --why gemm | sed -n 1,4p
t state t.sbt --why Memcpy | sed -n 1,3p
t state t.sbt --why 'cudaStream*' | sed -n 1,4p
t state t.sbt --why orphan
# No match.
t state t.sbt --why 99
t state t.sbt --why gpu_op:77
t state t.sbt --why 'no*such'
t state t.sbt --why 1 --csv
