#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Filters.
. "$TS_SOURCE/tests/cli/lib.sh"

kineto_json 0 >rank0.json
kineto_json 1 >rank1.json
quietly import rank0.json rank1.json -o t.sbt
rows() {
	echo "\$ view $*"
	"$TRACESMITH" view t.sbt --columns where,table,name "$@" | tail -n +2
}
rows --name 'aten::*'
rows --name gemm_kernel --name '*emory*'
rows --name gemm_kernel --device 1
rows --category 'gpu_*'
rows --device 0
rows --stream 20
rows --device 0 --device 1 --stream 7
rows --process 100 --table api_call,counter
rows --process python --table api_call
rows --process 0
rows --thread 201 --name cuda*
rows --thread main --table mark
rows --thread nobody
rows --table gpu_op --thread 7
rows --table flow --category fwdbwd --process 100
rows --device 99
rows --table slice --device 0
t view t.sbt --device zero
t view t.sbt --stream ''
