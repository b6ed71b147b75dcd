#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command stream of every recorded Kineto trace, compared with a count of its JSON
# (check_commands.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

mapfile -d '' files < <(kineto_files kineto)
python3 "$TS_SOURCE/tests/real/check_commands.py" "${files[@]}"
