#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# clFFT: transforms are equal to those of a simple program, there and back.
# TS_LONG=1: more lengths, which use other kernels.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh"
needs_header clFFT.h libclfft-dev

compile use_clfft.c -lclFFT -lOpenCL -lm
sizes=(1 64)
[ -z "${TS_LONG:-}" ] || sizes+=(1 60 1 1001 16 12)
check_program clFFT -- "$program" "${sizes[@]}"
