#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs record themselves, their children, and in flight mode: python/tests/test_record.py.
# shellcheck source=tests/lib/package.sh
. "$TS_SOURCE/tests/lib/package.sh"
run_package_tests test_record
