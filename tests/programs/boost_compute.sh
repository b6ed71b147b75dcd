#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boost.Compute: sums, scans, sorts and transforms agree with the standard library.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh" long
needs_header boost/compute/container/vector.hpp libboost-dev

compile use_boost_compute.cpp -lOpenCL
check_program Boost.Compute -- "$program"
