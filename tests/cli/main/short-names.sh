#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --short-names: every verb that shows kernels shows them without arguments; copies, whose direction
# is in parentheses, and names of Python functions stay.
. "$TS_SOURCE/tests/cli/lib.sh"

make_json() { # template argument
	cat <<JSON
{"stackFrames": {"1": {"name": "run.<locals>.<lambda>", "file": "/app/x.py", "line": 3, "kind": "python"},
                 "2": {"name": "void caller<$1>(int)", "file": "/app/x.so", "pc": 64, "kind": "native", "parent": "1"}},
 "traceEvents": [
  {"ph": "P", "name": "python", "pid": 1, "tid": 1, "ts": 1, "weight": 1000, "sf": 1},
  {"ph": "P", "name": "python", "pid": 1, "tid": 1, "ts": 2, "weight": 1000, "sf": 2},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10, "dur": 2, "args": {"correlation": 7}},
  {"ph": "X", "cat": "kernel", "name": "void gemm<$1>($1*)", "pid": 0, "tid": 7, "ts": 20, "dur": 5,
   "args": {"device": 0, "stream": 7, "correlation": 7}},
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 30, "dur": 5,
   "args": {"device": 0, "stream": 7, "correlation": 8}}]}
JSON
}
make_json float >a.json
make_json half >b.json
quietly import a.json -o a.sbt

# names ARGUMENT...: the names among its output
names() {
	echo "== $*"
	"$TRACESMITH" "$@" --short-names | grep -oE '(void )?(gemm|caller)(<[^ ]*)?|Memcpy HtoD.*\)|run\.<.*>' | sort -u
}

names analyze a.sbt kernels
names analyze a.sbt launch-latency
names analyze a.sbt critical-path
names analyze a.sbt functions
names state a.sbt --commands
names state a.sbt --why 7
names view a.sbt --table gpu_op
names view a.sbt --commands
names diff a.json b.json --top 0
