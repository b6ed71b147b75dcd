#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# pyopencl: its examples (Debian's python-pyopencl-doc, or the folder $TRACESMITH_PYOPENCL_EXAMPLES)
# and small programs with its arrays, element-wise kernels, reductions and scans
# (tests/opencl/pyopencl), recorded and replayed without difference. TS_LONG=1: also arrays, more of
# the examples, each also alone, and compiled with optimization, which takes most of the time.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

python=
for candidate in python3 /usr/bin/python3; do
	! "$candidate" -c 'import pyopencl' 2>/dev/null || { python=$candidate; break; }
done
[ -n "$python" ] || skip "no pyopencl (Debian: python3-pyopencl)"
examples=${TRACESMITH_PYOPENCL_EXAMPLES:-/usr/share/doc/python-pyopencl-doc/examples}

export PYOPENCL_CTX=0 PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=$PWD/cache
compile_quickly
# Their output contains times; they check their results themselves, and so does the replay.
check_program() { # file, replay's option...
	local file=$1 code=0
	shift
	if [ -n "${TS_LONG:-}" ]; then
		timeout 300 "$python" "$file" >alone 2>&1 </dev/null || code=$?
		[ $code -eq 0 ] || fail "'$file' fails alone: $(tail -n 3 alone)"
	fi
	record t.sbt --replayable -- "$python" "$file"
	replays "${file##*/}" t.sbt --check each --repeat 2 "$@"
	echo "${file##*/}: $(report 'r["commands"]') commands"
}

for file in "$TS_SOURCE"/tests/opencl/pyopencl/*.py; do
	# As many programs as all others have together, for what they do as well.
	[ "${file##*/}" != arrays.py ] || [ -n "${TS_LONG:-}" ] || continue
	check_program "$file"
done
if [ -d "$examples" ]; then
	# The others draw windows, need packages that are not installed, use fine-grained shared
	# memory, or run for minutes; demo-struct-reduce stores a member ("pad") that it never sets,
	# so its value is whatever was on a worker's stack.
	names=demo_array_svm
	[ -z "${TS_LONG:-}" ] || names+=" demo demo_meta_template demo_array demo_elementwise demo_elementwise_complex narray n-body"
	for name in $names; do
		[ ! -e "$examples/$name.py" ] || check_program "$examples/$name.py"
	done
else
	echo "left out: pyopencl's examples are not here (Debian: python-pyopencl-doc)"
fi
