#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Vendor libraries that crash, hang, print, and fail in every known way.
. "$TS_SOURCE/tests/cli/live.sh"

command -v cc >/dev/null || { echo "skip: no C compiler"; exit 77; }
mkdir lib nvml
cat >fake.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the environment asks for: "crash", "hang", or a number to return. */
static int act(const char *variable)
{
	const char *value = getenv(variable);

	if (!value)
		return 0;
	if (!strcmp(value, "crash"))
		*(volatile int *)0 = 1;
	if (!strcmp(value, "abort"))
		abort();
	if (!strcmp(value, "exit"))
		exit(7);
	while (!strcmp(value, "hang"))
		pause();
	return atoi(value);
}

#ifdef CUDA
int cuInit(unsigned int flags) { printf("noise\n"); fprintf(stderr, "noise\n"); return act("FAKE_CUDA"); }
int cuDriverGetVersion(int *version) { *version = getenv("FAKE_DRIVER") ? atoi(getenv("FAKE_DRIVER")) : 13000; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetName(char *name, int bytes, int device) { snprintf(name, bytes, "Fake\033[31m %d", device); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute == 133 ? act("FAKE_MPS") : 0; return 0; }
#endif
#ifdef CUPTI
int cuptiGetVersion(uint32_t *version) { *version = getenv("FAKE_VERSION") ? atoi(getenv("FAKE_VERSION")) : 130001; return 0; }
int cuptiSubscribe(void **subscriber, void *callback, void *context) { return act("FAKE_CUPTI"); }
int cuptiUnsubscribe(void *subscriber) { return 0; }
int cuptiActivityEnable(int kind) { return kind == 10 ? act("FAKE_ENABLE") : 1; }
#endif
#ifdef NVML
int nvmlInit_v2(void) { return act("FAKE_NVML"); }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int number, void **device) { *device = (void *)(uintptr_t)(number + 1); return 0; }
int nvmlDeviceGetMigMode(void *device, unsigned int *current, unsigned int *pending)
{
	int mode = act("FAKE_MIG");

	*current = *pending = mode == 1 && device == (void *)1;
	return mode == 3 ? 3 : 0;
}
#endif
#ifdef OPENCL
#include <fcntl.h>
int clGetPlatformIDs(uint32_t entries, void **platforms, uint32_t *count)
{
	const char *layers = getenv("FAKE_LAYERS") ? getenv(getenv("FAKE_LAYERS")) : NULL;
	int code = act("FAKE_OPENCL");

	if (layers)
		close(open(layers, O_RDONLY));
	if (code)
		return code;
	*count = 1;
	if (entries)
		platforms[0] = (void *)8;
	return 0;
}
int clGetPlatformInfo(void *platform, uint32_t name, size_t bytes, void *value, size_t *size) { snprintf(value, bytes, "Fake Platform"); return 0; }
int clGetDeviceIDs(void *platform, uint64_t type, uint32_t entries, void **devices, uint32_t *count) { *count = 3; return act("FAKE_DEVICES"); }
#endif
#ifdef DUCKDB
const char *duckdb_library_version(void) { return "v9.9.9"; }
int duckdb_open(const char *path, void **database) { return act("FAKE_DUCKDB"); }
int duckdb_connect(void *database, void **connection) { return 0; }
int duckdb_query(void *connection, const char *text, void *result) { return strcmp(text, "select 42") != 0; }
#endif
C
make() { cc -w -shared -fPIC -D"$1" -o "$2" fake.c || fail "cannot make '$2'"; }
make CUDA lib/libcuda.so.1
make CUPTI lib/libcupti.so.13
make OPENCL lib/libOpenCL.so.1
make NVML nvml/libnvidia-ml.so.1
make DUCKDB fake_duckdb.so

# check ID [VARIABLE=VALUE...]: prints the result, without machine-dependent parts.
check() {
	local id=$1 code=0 limit=60
	shift
	[[ $* != *=hang* ]] || limit=1
	env LD_LIBRARY_PATH="$PWD/lib" "$@" "$TRACESMITH" doctor --limit $limit --json "$id" >one.json 2>err.txt || code=$?
	[ $code -eq 0 ] && [ ! -s err.txt ] || fail "$id $*: exit $code: $(cat err.txt)"
	echo "$id${*:+ $*}: $(python3 - "$id" "$PWD" <<'PY'
import json, sys
check = next(check for check in json.load(open("one.json"))["checks"] if check["id"] == sys.argv[1])
print(check["state"] + ":", check["why"].replace(sys.argv[2], "HERE"), "|", check["fix"] or "-")
PY
)"
}
check cuda
for code in 34 46 101 802 803 804 805 808 999 12345 crash abort exit hang; do
	check cuda FAKE_CUDA=$code
done
check cupti
for code in 14 15 26 35 39 41 43 12345 crash; do
	check cupti FAKE_CUPTI=$code
done
check cupti FAKE_ENABLE=35
# Use any other copy that this machine has.
check cupti FAKE_VERSION=140000 | grep -qE "no: .*libcupti.so.13 is for CUDA 14, the driver for CUDA 13 . pip install nvidia-cuda-cupti|unknown: cuptiSubscribe returned" ||
	fail "a CUPTI that is newer than the driver: $(check cupti FAKE_VERSION=140000)"
check cupti FAKE_VERSION=28
check cupti FAKE_VERSION=18
check cupti FAKE_VERSION=17
check cupti FAKE_VERSION=130300
check cupti FAKE_CUDA=hang
if [ ! -e /dev/nvidiactl ]; then
	check cuda FAKE_CUDA=100 | grep -q 'absent: the driver is installed, but there is no NVIDIA GPU' || fail "a driver without a GPU"
fi
# Environment variables that disable CUDA or its device side.
check cuda_files NVIDIA_DRIVER_CAPABILITIES=utility,video | sed 's/podman run --device [^ ]*/docker run --gpus all/'
check cuda_files NVIDIA_VISIBLE_DEVICES=void | sed 's/podman run --device [^ ]*/docker run --gpus all/'
# Where there is a GPU, the answer depends on it.
[ -e /dev/nvidiactl ] || check cuda_files NVIDIA_DRIVER_CAPABILITIES=compute,utility | grep -q ': absent: no /dev/nvidia\* |' ||
	fail "a container with a driver's capabilities and no GPU"
check cuda_profilers
check cuda_profilers NSYS_PROFILING_SESSION_ID=7
check cuda_profilers CUDA_INJECTION64_PATH=/opt/other.so
check cuda_profilers CUDA_INJECTION64_PATH=
check cuda_profilers NVTX_INJECTION64_PATH="$PWD/libtracesmith-backend-cuda.so" | sed "s#$PWD#HERE#"
check disassembler PATH="$PWD/none:$PATH" CUDA_HOME="$PWD/none" | grep -qE 'yes: /|absent: neither' || fail "a disassembler"
mkdir -p toolkit/bin
printf '#!/bin/sh\n' >toolkit/bin/nvdisasm
chmod +x toolkit/bin/nvdisasm
check disassembler PATH="$PWD/none:/usr/bin:/bin" CUDA_HOME="$PWD/toolkit" | sed "s#$PWD#HERE#g"
check source_lines | grep -qE 'yes: from libdw|absent: .*libdw' || fail "source lines"
# A library that is missing beside the agent, and a file that is not a library.
mkdir beside
cp "$(dirname "$TRACESMITH")/libtracesmith-agent.so" beside/
check cuda_recording TRACESMITH_AGENT_PATH="$PWD/beside/libtracesmith-agent.so" | sed "s#$PWD#HERE#g"
echo text >beside/libtracesmith-backend-cuda.so
check cuda_recording TRACESMITH_AGENT_PATH="$PWD/beside/libtracesmith-agent.so" | sed "s#$PWD#HERE#g"
check mps FAKE_CUDA=crash CUDA_MPS_PIPE_DIRECTORY="$PWD/none" | sed "s#$PWD#HERE#"
mkdir mps
python3 -c '
import os, socket, sys, time
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("mps/control")
listener.listen(16)
while os.path.exists("mps"):
    time.sleep(0.1)' &
server=$!
await [ -e mps/control ]
export CUDA_MPS_PIPE_DIRECTORY=$PWD/mps
check mps FAKE_MPS=1
check mps FAKE_MPS=0
check mps FAKE_CUDA=hang
rm -r mps
wait $server
unset CUDA_MPS_PIPE_DIRECTORY
for mode in 0 1 3 crash; do
	check mig LD_LIBRARY_PATH="$PWD/nvml" FAKE_MIG=$mode | sed "s#$PWD#HERE#"
done
check mig LD_LIBRARY_PATH="$PWD/nvml" FAKE_NVML=9 | sed "s#$PWD#HERE#"
check opencl
check opencl FAKE_DEVICES=-1 | sed 's/ |.*//'
for code in -6 crash hang; do
	check opencl FAKE_OPENCL=$code OCL_ICD_VENDORS="$PWD/icd" | sed "s#$PWD#HERE#g"
done
mkdir icd
[ -e /dev/nvidiactl ] || check opencl FAKE_OPENCL=-1001 OCL_ICD_VENDORS="$PWD/icd" |
	grep -q 'absent: no platform' || fail "no platform"
echo libno-such-driver.so >icd/some.icd
check opencl FAKE_OPENCL=-1001 OCL_ICD_VENDORS="$PWD/icd" | sed "s#$PWD#HERE#g"
# The remedy depends on the rest of the machine.
check opencl_layers | sed 's/ |.*//'
check opencl_layers FAKE_LAYERS=OPENCL_LAYERS
check opencl_layers FAKE_OPENCL=crash
check duckdb TRACESMITH_DUCKDB="$PWD/fake_duckdb.so" | sed "s#$PWD#HERE#; s/ |.*//"
for code in 1 crash hang; do
	check duckdb TRACESMITH_DUCKDB="$PWD/fake_duckdb.so" FAKE_DUCKDB=$code | sed "s#$PWD#HERE#; s/ |.*//"
done
# A file that is not a library, and another library.
echo text >lib/libcuda.so.1
check cuda | sed 's/ |.*//; s/, although there is an NVIDIA GPU//'
cp lib/libOpenCL.so.1 lib/libcuda.so.1
check cuda | sed 's/ |.*//'
check duckdb TRACESMITH_DUCKDB="$PWD/lib/libOpenCL.so.1" | sed "s#$PWD#HERE#; s/ |.*//"
# All at once: each is reported, and the rest is unchanged.
make CUDA lib/libcuda.so.1
# On a busy machine again, with a higher limit, if more than the two OpenCL checks exceed it.
for limit in 5 60; do
	code=0
	LD_LIBRARY_PATH=$PWD/lib FAKE_CUDA=crash FAKE_OPENCL=hang "$TRACESMITH" doctor --limit $limit --json >all.json || code=$?
	[ "$(grep -o 'did not answer within' all.json | wc -l)" -gt 2 ] || break
done
python3 -c '
import json
report = json.load(open("all.json"))
print(*(check["id"] + ": " + check["why"] for check in report["checks"] if check["state"] == "unknown"), sep="\n")
print("basics work:", report["basics_work"])' | sed "s/within $limit s/within the limit/"
exit $code
