#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python package reads and writes traces: python/tests/test_trace.py, and the examples of
# docs/python-api.md.
# shellcheck source=../lib/package.sh
. "$TS_SOURCE/tests/lib/package.sh"
run_package_tests test_trace test_guide
