#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The table without options, with arguments, with selected columns, of several ranks.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
t view t.sbt
t view t.sbt --table slice,api_call --args
t view t.sbt --columns start,duration,name,grid_x,correlation,thread --limit 8
t view t.sbt -t gpu_op --columns time,kind,stream,bytes,copy_kind,args
kineto_json 1 >u.json
quietly import t.json u.json -o two.sbt
t view two.sbt --table gpu_op,counter
