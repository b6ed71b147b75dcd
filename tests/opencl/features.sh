#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that the command stream promises to hold (tests/targets/opencl_features.c), each alone and all together.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

program=$targets/opencl_features
[ -x "$program" ] || fail "there is no '$program'; build it first"
record t.sbt --replayable -- "$program"
replays "all features" t.sbt --check each --repeat 2
