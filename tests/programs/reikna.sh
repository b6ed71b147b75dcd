#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# reikna: matrix product, reduction, scan and FFT agree with numpy.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh" long
needs_python reikna "PyPI: reikna"

check_program reikna -- "$python" "$TS_SOURCE/tests/programs/use_reikna.py"
