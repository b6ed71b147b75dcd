#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# clpeak measures the latency of kernels: 20,000 launches, and no result to read back. Its figures
# are not looked at; memory after each command is.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh" long
needs_command clpeak clpeak

check_answer() { grep -q 'Kernel launch latency' "$1" || fail "it measured nothing: $(cat "$1")"; }
replayable=--replayable=checked
check_program clpeak -- clpeak --kernel-latency
