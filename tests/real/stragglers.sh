#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stragglers and clocks of recorded jobs, compared with a count in Python.
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

code=0
for folder in "${real_folders[@]}"; do
	python3 "$TS_SOURCE/tests/real/stragglers.py" "$folder" || code=1
done
exit $code
