#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python package emits events: python/tests/test_emit.py, and the examples of its page.
# shellcheck source=tests/lib/package.sh
. "$TS_SOURCE/tests/lib/package.sh"
run_package_tests test_emit
"$PYTHON" -m doctest "$TS_SOURCE/docs/python-emit.md"
