#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tinygrad: training steps of a small network agree with numpy.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh" long
needs_python tinygrad "PyPI: tinygrad"

export DEV=CL CACHEDB=$programs_cache/tinygrad.db
check_program tinygrad -- "$python" "$TS_SOURCE/tests/programs/use_tinygrad.py"
