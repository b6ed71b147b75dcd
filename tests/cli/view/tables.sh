#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tables without a time, and unknown tables.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
t view t.sbt --table process
t view t.sbt --table thread,device,stream
t view t.sbt --table process,thread --json
t view t.sbt --table source,clock_sync --json
t view t.sbt --table meta --columns key,value
t view t.sbt --table string --name 'aten*' --json --columns text
t view t.sbt --table device,gpu_op --columns table,name
t view t.sbt --table window
t view t.sbt --table slices
t view t.sbt --table nonsense
t view t.sbt --table state
t view t.sbt --columns nam
t view t.sbt --table process --columns duration,grid_x
