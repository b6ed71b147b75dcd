#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every recorded trace: exported as Perfetto protobuf, read with Perfetto's own schema, imported again: the same (check_perfetto.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"
need_real_data

mapfile -d '' files < <(real_files kineto chrome)
[ ${#files[@]} -gt 0 ] || { echo "skip: there are no Kineto or Chrome files in '$real_data'"; exit 77; }
if ! python=$("$TS_SOURCE/scripts/perfetto-peer" "$TS_BUILD"); then
	# What comes back is compared all the same.
	python3 "$TS_SOURCE/tests/real/check_perfetto.py" - "${files[@]}"
	echo "$python"
	exit 77
fi
python3 "$TS_SOURCE/tests/real/check_perfetto.py" "$python" "${files[@]}"
