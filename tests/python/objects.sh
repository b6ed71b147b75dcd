#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Values, dictionaries, attributes, names of threads, tasks and local variables in the memory of
# each Python, compared with the program's own answer. TORCH_PYTHON: one with torch and
# numpy, for tensors and arrays.
set -euo pipefail
. "$TS_SOURCE/tests/lib/pythons.sh"

compare() { # name, command...
	local name=$1
	shift
	echo "$name:"
	"$TS_BUILD/tests/targets/python_objects" "$@"
}
each_python "$TS_SOURCE/tests/python/objects.py" compare
if [ -n "${TORCH_PYTHON:-}" ]; then
	compare "tensors and arrays" "$TORCH_PYTHON" "$TS_SOURCE/tests/python/objects.py" arrays
fi
