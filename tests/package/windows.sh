#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Windows of execution traces by a flag file: python/tests/test_chakra.py. The Python with torch is
# $TRACESMITH_TORCH_PYTHON, else python3, else build/torch-venv.
# shellcheck source=../lib/package.sh
. "$TS_SOURCE/tests/lib/package.sh"

for candidate in ${TRACESMITH_TORCH_PYTHON:-} python3 "$TS_BUILD/torch-venv/bin/python"; do
	if "$candidate" -c 'import torch' 2>/dev/null; then
		"$candidate" -m unittest test_chakra
		exit
	fi
done
# What needs no torch.
"$PYTHON" -m unittest test_chakra
echo "skip: no Python with torch, so that no window was recorded: set TRACESMITH_TORCH_PYTHON to one"
exit 77
