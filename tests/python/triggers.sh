#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stacks that the agent takes inside a Python program: at its marks, equal to the program's own log,
# on every CPython installed; and at OpenCL calls.
set -euo pipefail
. "$TS_SOURCE/tests/lib/python.sh"
python=${python:?}

export TRACESMITH
is_sanitized && { echo "skip: the agent of a sanitizer build cannot be preloaded into Python"; exit 77; }

check_marks() { # interpreter
	rm -f log t.sbt rows
	TRACESMITH_BACKENDS=none "$TRACESMITH" record -q -o t.sbt --python-on marks -- \
		"$1" -W ignore "$TS_SOURCE/tests/python/triggers.py" log || fail "'$1' fails when it is recorded"
	"$TRACESMITH" view t.sbt --table mark --json >rows
	printf '%s: ' "$("$1" -c 'import platform; print(platform.python_version())')"
	python3 "$TS_SOURCE/tests/python/triggers_check.py" log rows || fail "'$1': see above"
	"$TRACESMITH" verify -q t.sbt
}
check_marks "$python"
for other in "$HOME"/.pyenv/versions/3.*/bin/python3; do
	[ -x "$other" ] || continue
	"$other" -c 'import sys; sys.exit(sys.version_info < (3, 8))' || continue
	check_marks "$other"
done

# None unless requested.
rm -f log t.sbt
TRACESMITH_BACKENDS=none "$TRACESMITH" record -q -o t.sbt -- "$python" "$TS_SOURCE/tests/python/triggers.py" log
"$TRACESMITH" view t.sbt --table mark --json >rows
! grep -q '"stack"' rows || fail "marks have stacks that were not requested"

# OpenCL calls have the line of the program that made them.
with_opencl=
for candidate in python3 /usr/bin/python3; do
	! "$candidate" -c 'import pyopencl as cl; cl.get_platforms()[0].get_devices()' 2>/dev/null || { with_opencl=$candidate; break; }
done
if [ -n "$with_opencl" ]; then
	cat >calls.py <<-'END'
		import numpy, pyopencl, pyopencl.array
		def launch(queue):
		    a = pyopencl.array.arange(queue, 1000, dtype=numpy.float32)
		    return (a + a).get().sum()
		context = pyopencl.create_some_context(interactive=False)
		launch(pyopencl.CommandQueue(context))
	END
	rm -f t.sbt
	PYOPENCL_CTX=0 "$TRACESMITH" record -q -o t.sbt --backends opencl --python-on calls -- "$with_opencl" calls.py
	"$TRACESMITH" view t.sbt --table api_call --json >rows
	python3 - <<-'END' || fail "calls: see above"
		import json, sys
		rows = [json.loads(line) for line in open("rows")]
		kernels = [row for row in rows if row["name"] == "clEnqueueNDRangeKernel"]
		if not kernels:
		    sys.exit("no launches")
		for row in kernels:
		    names = [frame["func"] for frame in row.get("stack", [])]
		    if names[-2:] != ["launch", "<module>"]:
		        sys.exit("a launch has the stack %s" % names)
		print("%d of %d calls have stacks" % (sum("stack" in row for row in rows), len(rows)))
	END
else
	echo "left out: no pyopencl with a device"
fi
