#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A driver that calls exit(): the replay has failed, whatever the exit code.
. "$TS_SOURCE/tests/cli/lib.sh"

"$TS_BUILD/tests/targets/make_stream" plain.sbt plain
code=0
LD_LIBRARY_PATH=$TS_BUILD/tests/lib/exiting "$TRACESMITH" replay plain.sbt >stdout 2>stderr || code=$?
! grep -q "no OpenCL support" stderr || { echo "skip: $(cat stderr)"; exit 77; }
cat stdout stderr
echo "exit $code"
