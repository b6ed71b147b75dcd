#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the trace does not have: 3 if it was asked about; 0 and a note if a filter of a list selects
# nothing.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
t view t.sbt --name nosuch
t view t.sbt --name nosuch --json
t view t.sbt --commands --stream 99
t view t.sbt --name nosuch --limit 0
t state t.sbt --stream 99
t state t.sbt --why nosuch
t analyze t.sbt critical-path --annotation nosuch
t analyze t.sbt critical-path --what-if nosuch=2
t analyze t.sbt critical-path --what-if 'gemm*=2' --json >/dev/null
t analyze t.sbt kernels --steps 99
t analyze t.sbt steps --step-span nosuch
t analyze t.sbt kernels --rank 99
t info t.sbt --counters --name nosuch --category 'no*'
t replay t.sbt --target emulator --what-if kernel:nosuch=0.5x
# Wrong whatever the trace holds.
t analyze t.sbt critical-path --what-if nosuch
t analyze t.sbt steps --csv --table nosuch
t view t.sbt --table nosuch
