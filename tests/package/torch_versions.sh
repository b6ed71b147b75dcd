#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tracesmith.torch and the window manager with other versions of PyTorch: tests/package/torch.sh and
# windows.sh in each environment build/package-venv-VERSION that scripts/package-venv made, as it does
# with TS_LONG=1.
# shellcheck source=../lib/package.sh
. "$TS_SOURCE/tests/lib/package.sh"

[ -n "${TS_LONG:-}" ] || { echo "skip: takes minutes for each version of PyTorch: set TS_LONG=1"; exit 77; }
"$PYTHON" -c 'import tracesmith._torch' 2>why || { echo "skip: $PYTHON cannot load the package: $(tail -n 1 why)"; exit 77; }
count=0
for python in "$TS_SOURCE"/build/package-venv-*/bin/python; do
	[ -x "$python" ] || continue
	"$python" -c 'import torch, sys; print("=== torch", torch.__version__, "Python", sys.version)'
	for test in torch windows; do
		TORCH_PYTHON=$python "$TS_SOURCE/scripts/run-test-script" "$TS_SOURCE/tests/package/$test.sh"
	done
	count=$((count + 1))
done
[ $count -gt 0 ] || { echo "skip: no environment build/package-venv-VERSION (see scripts/package-venv)"; exit 77; }
