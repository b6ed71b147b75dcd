#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ViennaCL: vectors, a matrix product and a sparse system agree with the host.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh" long
needs_header viennacl/vector.hpp libviennacl-dev

compile use_viennacl.cpp -lOpenCL
check_program ViennaCL -- "$program"
