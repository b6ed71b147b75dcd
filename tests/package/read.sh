#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python package reads and writes traces: python/tests/test_trace.py, and the examples of
# docs/python-api.md.
# shellcheck source=../lib/package.sh
. "$TS_SOURCE/tests/lib/package.sh"

# With the libraries that read tables, if they are there.
for python in "$PYTHON" ${TORCH_PYTHON:+"$TORCH_PYTHON"} \
	"$TS_BUILD/package-venv/bin/python"; do
	if "$python" -c 'import polars, tracesmith._read' 2>/dev/null; then
		PYTHON=$python
		break
	fi
done
run_package_tests test_trace test_guide
