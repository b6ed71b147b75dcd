# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests/cli/state/*.sh: a trace with every state and most reasons. Sourced after lib.sh.

# call NAME TS DUR CORRELATION: a call on the main thread.
call() {
	echo "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"$1\", \"pid\": 9, \"tid\": 9, \"ts\": $2, \"dur\": $3," \
		"\"args\": {\"correlation\": $4}},"
}

# command CATEGORY NAME STREAM TS DUR CORRELATION
command_() {
	echo "{\"ph\": \"X\", \"cat\": \"$1\", \"name\": \"$2\", \"pid\": 0, \"tid\": $3, \"ts\": $4, \"dur\": $5," \
		"\"args\": {\"device\": 0, \"stream\": $3, \"correlation\": $6}},"
}

# Times in us with some nanoseconds, so that they do not look rounded.
state_events() {
	call cudaLaunchKernel 10 5 1
	command_ kernel gemm 7 20 50.001 1
	call cudaLaunchKernel 20 5 2
	command_ kernel relu 7 72 20 2
	call cudaMemcpyAsync 30 4 3
	command_ gpu_memcpy "Memcpy HtoD (Pinned -> Device)" 20 40 100 3
	call cudaMemcpyAsync 36 4 4
	command_ gpu_memcpy "Memcpy HtoD (Pinned -> Device)" 21 142 10 4
	call cudaStreamSynchronize 50 80 5
	call cudaLaunchKernel 160 5 6
	command_ kernel gemm 7 170 30 6
	command_ kernel "no launch, \\\"here\\\"" 7 210 10 99
	call cudaLaunchKernel 220 5 77
}

# state_json [COMMAND]: prints the trace, its rows passed through COMMAND.
state_json() {
	echo '{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU X"}], "baseTimeNanoseconds": 0, "traceEvents": ['
	state_events | "${@:-cat}"
	echo '{"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "args": {"name": "python"}}]}'
}
