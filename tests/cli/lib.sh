# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests/cli/*/*.sh, which are run by scripts/run-test-script in an empty folder and whose output
# is compared with the file NAME.stdout beside them (TS_UPDATE=1 writes it anew).
set -euo pipefail
# The user's settings must not change the output.
unset NO_COLOR
export LC_ALL=C TERM=xterm

# Prints a command, its output and its exit code, as in a terminal.
t() {
	local code=0
	echo "\$ tracesmith $*"
	"$TRACESMITH" "$@" 2>&1 || code=$?
	[ $code -eq 0 ] || echo "exit $code"
}

# Runs a command silently, for setup.
quietly() {
	"$TRACESMITH" "$@" >quietly.log 2>&1 || { cat quietly.log; exit 1; }
}

fail() {
	echo "FAILED: $*"
	exit 1
}

# Replaces machine-dependent numbers by N, and sizes by B.
numbers() { sed -E -e 's/[0-9]+([.,][0-9]+)*/N/g' -e 's/N [KMG]?i?B/N B/g' -e 's/nothing else lost/nothing lost/'; }

# A training step of one rank: operators, runtime calls, kernels, a copy, memory counters, marks.
# $1 is the rank; times are us since a base of 1000 s.
kineto_json() {
	local rank=$1
	cat <<JSON
{
  "schemaVersion": 1,
  "deviceProperties": [{"id": $rank, "name": "GPU X", "totalGlobalMem": 1024}],
  "distributedInfo": {"backend": "nccl", "rank": $rank, "world_size": 2},
  "baseTimeNanoseconds": 1000000000000,
  "traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 10$rank, "tid": 0, "args": {"name": "python"}},
    {"ph": "M", "name": "thread_name", "pid": 10$rank, "tid": 20$rank, "args": {"name": "main"}},
    {"ph": "X", "cat": "user_annotation", "name": "step#1", "pid": 10$rank, "tid": 20$rank, "ts": 10, "dur": 500},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 10$rank, "tid": 20$rank, "ts": 20.5, "dur": 100.25,
     "args": {"Input Dims": [[2, 3], [3, 4]], "alpha": 0.5, "deep": null, "ok": true, "note": "a \"b\"\n\u00e9"}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10$rank, "tid": 20$rank, "ts": 40, "dur": 8,
     "args": {"cbid": 211, "correlation": 7}},
    {"ph": "X", "cat": "kernel", "name": "gemm_kernel", "pid": $rank, "tid": 7, "ts": 60, "dur": 50.001,
     "args": {"device": $rank, "context": 1, "stream": 7, "correlation": 7, "registers per thread": 32,
              "grid": [4, 2, 1], "block": [128, 1, 1]}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": $rank, "tid": 20, "ts": 130, "dur": 2,
     "args": {"device": $rank, "context": 1, "stream": 20, "correlation": 8, "bytes": 4096, "memory bandwidth (GB/s)": 2.048}},
    {"ph": "i", "s": "t", "cat": "note", "name": "[memory]", "pid": 10$rank, "tid": 20$rank, "ts": 30, "args": {"Bytes": 64}},
    {"ph": "C", "name": "GPU memory", "pid": 10$rank, "tid": 20$rank, "ts": 35, "args": {"allocated": 64, "reserved": 128}},
    {"ph": "B", "cat": "cpu_op", "name": "never ends", "pid": 10$rank, "tid": 20$rank, "ts": 200, "args": {}},
    {"ph": "s", "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 10$rank, "tid": 20$rank, "ts": 20.5},
    {"ph": "f", "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e", "pid": 10$rank, "tid": 20$rank, "ts": 40}
  ]
}
JSON
}

# make_trace NAME: makes NAME.sbt, a trace of one rank, from NAME.json.
make_trace() {
	kineto_json 0 >"$1.json"
	quietly import "$1.json" -o "$1.sbt"
}

# damage_chunk FILE TABLE: changes the last byte of the first chunk of the table with that id (11 is
# gpu_op), which belongs to the payload of a column.
damage_chunk() {
	python3 - "$1" "$2" <<'PY'
import sys
path, table = sys.argv[1], int(sys.argv[2])
data = bytearray(open(path, "rb").read())
size = lambda at: int.from_bytes(data[at + 16:at + 24], "little")
at = 64
while int.from_bytes(data[at + 32:at + 34], "little") != table:
    at += size(at)
data[at + size(at) - 1] ^= 1
open(path, "wb").write(data)
PY
}

# flip_byte FILE OFFSET: changes that byte; a negative offset counts from the end.
flip_byte() {
	python3 - "$1" "$2" <<'PY'
import sys
path, at = sys.argv[1], int(sys.argv[2])
data = bytearray(open(path, "rb").read())
data[at] ^= 0xff
open(path, "wb").write(data)
PY
}

# skip_without_device FILE: ends the test as skipped if the output of a replay says that there is no
# OpenCL device. A replay that crashed has the same exit code, and is a failure.
skip_without_device() {
	! grep -Eq 'no OpenCL (loader|platform|device) found|no OpenCL support' "$1" || { echo "skip: $(cat "$1")"; exit 77; }
}
