# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by tests of the Python package (tests/package/*.sh): runs modules of python/tests on the
# package of the build, which needs no pip. They skip, with the reason, if it was not built.
set -euo pipefail

export PYTHONPATH=$TS_BUILD/python:$TS_SOURCE/python/tests
# Python files are linked into the build; caches must not appear in the sources.
export PYTHONDONTWRITEBYTECODE=1
export TRACESMITH_RECORDER=$TRACESMITH
export TRACESMITH_LIVE_DIR=$PWD/live

# The interpreter that the extension modules were built for.
package_python() { cat "$TS_BUILD/python/python" 2>/dev/null; }

if ! PYTHON=$(package_python); then
	echo "skip: the Python package was not built: no headers of Python 3.9 or newer (Debian: python3-dev)"
	exit 77
fi
export PYTHON

# run_package_tests MODULE...: python/tests/MODULE.py, with unittest.
run_package_tests() { "$PYTHON" -m unittest "$@"; }
