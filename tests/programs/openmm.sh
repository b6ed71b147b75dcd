#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OpenMM: energies of a small simulation agree with its CPU platform.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh" long
needs_python openmm "PyPI: openmm"

check_program OpenMM -- "$python" "$TS_SOURCE/tests/programs/use_openmm.py"
