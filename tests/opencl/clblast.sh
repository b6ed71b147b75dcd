#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# CLBlast, a third-party library: GEMM, AXPY and DOT are recorded and replayed without difference.
# TS_LONG=1: also the batched forms, which take half a minute to compile, and more sizes.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"
compile_quickly

program=$targets/opencl_clblast
batched=(--batched 0)
[ -z "${TS_LONG:-}" ] || batched=()
code=0
"$program" --size 33 "${batched[@]}" >alone 2>&1 || code=$?
[ $code -ne 77 ] || { cat alone; exit 77; }
[ $code -eq 0 ] || fail "the program fails alone: $(cat alone)"

# An odd size uses the most kernels, including those that pad.
sizes=33
[ -z "${TS_LONG:-}" ] || sizes="32 33 96"
for size in $sizes; do
	record t.sbt --replayable -- "$program" --size $size "${batched[@]}"
	replays "size $size" t.sbt --check each --repeat 2
	kernels=$(report 'r["commands"]')
	agrees "size $size, GEMM alone" t.sbt --check each --kernel 'Xgemm*' --repeat 2
	echo "size $size: $kernels commands"
done
