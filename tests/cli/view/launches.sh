#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --stacks of device activity: launch stacks, capture stacks of graph kernels, forward operators.
. "$TS_SOURCE/tests/cli/lib.sh"

"$TS_BUILD/tests/targets/symbol_frames" t.sbt >/dev/null
# Addresses and folders depend on the build.
places() { sed -E -e 's/\+0x[0-9a-f]+/+0xN/' -e 's/ +$//'; }
"$TRACESMITH" view t.sbt --table gpu_op --stacks --columns name | places
"$TRACESMITH" view t.sbt --table api_call --stacks --columns name --limit 2 | places
# Nothing of it is looked up without --stacks.
t view t.sbt --table gpu_op --columns name,stack --name gemm_backward
"$TRACESMITH" view t.sbt --table gpu_op --json | grep -c launch_stack || true
