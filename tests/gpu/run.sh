#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs everything that needs an NVIDIA GPU: builds, runs every check and benchmark, prints one
# table, and writes DIR/results.json with a description of the machine, and a log of each step.
#
# tests/gpu/run.sh --out DIR [--only NAME,...] [--rows NAME,...] [--quick] [--build DIR] [--jobs N]
#   [--limit SECONDS]
#   --only    steps by name, or the groups checks and bench (tests/gpu/run.py has the list)
#   --rows    with --only replay: these rows (check_replay.py --list has their names and groups)
#   --quick   smaller counts, for a first look
#   --build   build directory; default: one below the system's temporary directory, which is reused
#   --jobs    number of checks without measurements to run in parallel; default: 4
#   --limit   total time limit; steps not started by then are reported as left out; default: an hour
#
# Needs neither network nor root. PYTHON names a Python with PyTorch; default: python3, or one below
# /opt that has it. Every step has a time limit. Exit code 1 if one failed, 77 without a GPU. See
# also scripts/gpu-opencl, scripts/gpu-python, scripts/gpu-metrics.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

out='' only='' rows='' quick='' jobs=4 limit=3600
build=${TMPDIR:-/tmp}/tracesmith-gpu-build
usage() { sed -n '4,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
	case $1 in
	--out | --only | --rows | --build | --jobs | --limit)
		[ $# -gt 1 ] || usage
		declare "${1#--}=$2"
		shift
		;;
	--quick) quick=--quick ;;
	*) usage ;;
	esac
	shift
done
[ -n "$out" ] || usage

if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then
	echo "skip: no NVIDIA GPU here (there is no /dev/nvidiactl)"
	exit 77
fi
mkdir -p "$out" "$build" || exit 1
out=$(realpath "$out") build=$(realpath "$build")

# A Python with PyTorch; its folder has cmake and ninja if the system has none.
has_torch() { timeout 100 "$1" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)' 2>/dev/null; }
if [ -z "${PYTHON:-}" ]; then
	for PYTHON in python3 /opt/*/.venv/bin/python /opt/*/bin/python; do
		has_torch "$PYTHON" && break
	done
	has_torch "$PYTHON" || PYTHON=python3
fi
PYTHON=$(command -v "$PYTHON") || { echo "no Python '$PYTHON'"; exit 1; }
PATH=$PATH:$(dirname "$PYTHON")
cuda=${CUDA_HOME:-/usr/local/cuda}
export PYTHON PATH PYTHONDONTWRITEBYTECODE=1 LC_ALL=C

build_all() {
	cmake -S . -B "$build" -G Ninja -DTRACESMITH_TESTS=OFF && ninja -C "$build" || return 1
	mkdir -p "$build/gpu"
	cc -std=gnu11 -O2 -g tests/gpu/launches.c -o "$build/gpu/launches" -ldl -lpthread || return 1
	# The rest needs the toolkit; checks that require it say so.
	rm -f "$build/gpu/runtime" "$build"/gpu/lib*.so
	[ ! -e "$cuda/lib64/libcudart_static.a" ] ||
		cc -std=gnu11 -O2 tests/gpu/runtime.c -o "$build/gpu/runtime" "$cuda/lib64/libcudart_static.a" -ldl -lpthread -lrt
	cc -std=gnu11 -O1 -g -fPIC -shared tests/gpu/crash_frames.c -o "$build/gpu/libcrash_frames.so"
	local library=(cc -std=gnu11 -O2 -g -fPIC -shared -fvisibility=hidden -D_GNU_SOURCE= -Isrc -Iinclude "-I$cuda/include" "-I$cuda/extras/CUPTI/include")
	"${library[@]}" tests/gpu/cupti_only.c -o "$build/gpu/libcupti_only.so" -ldl -lpthread
	"${library[@]}" tests/gpu/stack_compare.c src/code/local/*.c -o "$build/gpu/libstack_compare.so" -ldl -lpthread
	build_replay >"$build/gpu/nvcc.log" 2>&1 || cat "$build/gpu/nvcc.log"
	return 0
}
# Programs for check_replay.py, at the same time.
build_replay() {
	local nvcc=("$cuda/bin/nvcc" -O2 -std=c++17 -arch=native -Wno-deprecated-gpu-targets) to=$build/gpu
	local driver name
	driver=$(ldconfig -p | awk '/libcuda\.so\.1 .*(x86-64|AArch64)/ {print $NF; exit}')
	rm -f "$to"/replay_* "$to"/cuda_random "$to"/refused
	# Those of tests/cuda, which run on its stand-in for the driver, too.
	for name in replay_work refused cuda_random; do
		cc -std=gnu11 -O2 -g -D_GNU_SOURCE= -Iinclude -Isrc -Itests -DTS_TESTS_CUDA="\"$PWD/tests/cuda\"" "tests/cuda/$name"*.c -o "$to/$name" \
			"${driver:-libcuda.so.1}" -ldl -lpthread &
	done
	wait
	[ -x "$cuda/bin/nvcc" ] || return 0
	"${nvcc[@]}" tests/gpu/replay_program.cu -o "$to/replay_program" &
	"${nvcc[@]}" -rdc=true tests/gpu/replay_program.cu -o "$to/replay_program_rdc" &
	"${nvcc[@]}" tests/gpu/replay_refused.cu -o "$to/replay_refused" -ldl &
	"${nvcc[@]}" -DNESTED -rdc=true tests/gpu/replay_refused.cu -o "$to/replay_nested" -lcudadevrt -ldl &
	"${nvcc[@]}" -DMANAGED tests/gpu/replay_refused.cu -o "$to/replay_managed" -ldl &
	wait
}
export build cuda
export -f build_all build_replay
start=$SECONDS
if ! timeout 580 bash -c build_all >"$out/build.log" 2>&1 </dev/null; then
	printf '%-14s %-9s %s\n' build FAILED "see $out/build.log"
	grep -m 5 'error\|FAILED' "$out/build.log"
	exit 1
fi
printf '%-14s %-9s %s\n' build ok "$((SECONDS - start)) s"

if ! timeout 60 "$build/gpu/launches" count 1 >"$out/device.log" 2>&1; then
	echo "skip: no kernel can be launched here: $(tail -n 1 "$out/device.log")"
	exit 77
fi

work=$(mktemp -d)
# Rings and spools where they are by default: in memory.
shared=/dev/shm
[ -w $shared ] || shared=$work
live=$(mktemp -d "$shared/tracesmith-gpu.XXXXXX")
trap 'rm -rf "$work" "$live"' EXIT
CUPTI_ONLY_LIBRARY=$(find -L "$cuda" -name 'libcupti.so*' 2>/dev/null | head -n 1)
export CUPTI_ONLY_LIBRARY TS_GPU_HERE=1 TS_SOURCE=$PWD TS_GPU_BUILD=$build TRACESMITH=$build/tracesmith TS_GPU_WORK=$work TRACESMITH_LIVE_DIR=$live
"$PYTHON" tests/gpu/run.py --out "$out" --jobs "$jobs" --limit "$((limit - SECONDS))" ${only:+--only "$only"} ${rows:+--rows "$rows"} $quick
