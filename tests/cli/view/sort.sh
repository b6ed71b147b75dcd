#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Longest first, and limits.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
t view t.sbt --sort duration --columns duration,name
t view t.sbt --sort duration --limit 2 --columns duration,name --table gpu_op,api_call
t view t.sbt --limit 2 --columns name
t view t.sbt --limit 0
t view t.sbt --sort size
