#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What starts with the interpreter: python/tests/test_startup.py.
# shellcheck source=../lib/package.sh
. "$TS_SOURCE/tests/lib/package.sh"
run_package_tests test_startup
