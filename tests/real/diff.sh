#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# diff of recorded traces: compared with HTA's own test of its diff, with independent counts, and of
# traces with themselves.
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

code=0
for folder in "${real_folders[@]}"; do
	python3 "$TS_SOURCE/tests/real/check_diff.py" "$TS_BUILD/tracesmith" "$folder" || code=1
done
exit $code
