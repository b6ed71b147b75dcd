#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# analyze advice: of devices that are idle for reasons that the trace does not have, of a C program,
# of a capture of graphs, of a program without a device.
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

need_files_of_others "traces" rocprof
python3 "$TS_SOURCE/tests/real/advice.py" "$real_data"
