#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tracesmith.torch, with a real PyTorch: python/tests/test_torch_*.py. They run with the first of
# $TORCH_PYTHON, python3, and the environment of scripts/package-venv that has torch.
# shellcheck source=../lib/package.sh
. "$TS_SOURCE/tests/lib/package.sh"

for python in ${TORCH_PYTHON:+"$TORCH_PYTHON"} python3 \
	"$TS_BUILD/package-venv/bin/python" "$TS_SOURCE/build/package-venv/bin/python"; do
	if "$python" -c 'import torch, tracesmith._torch' 2>/dev/null; then
		export PYTHON=$python
		torch=$("$python" -c 'import torch; print(torch.__version__)')
		break
	fi
done
if [ -z "${torch:-}" ]; then
	echo "skip: no Python with torch for which the package was built (see scripts/package-venv)"
	exit 77
fi
echo "torch $torch"
# One thread: the tests do little work, and run beside others.
export OMP_NUM_THREADS=1
unset "${!PROBING_@}" TRACESMITH_TORCH_PROFILING
run_package_tests test_torch_table test_torch_backward test_torch_unseen test_torch_steps \
	test_torch_settings test_torch_jobs test_torch_watch
# Alone: before PyTorch 2.3, no optimizer is seen any more once something was compiled.
run_package_tests test_torch_compile

# Asked for by a variable alone: tracesmith is loaded when the program's own import of torch is done,
# also by a Python that does not have the package.
cat >train.py <<'END'
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(8):
    optimizer.zero_grad()
    model(torch.ones(2, 2)).sum().backward()
    optimizer.step()
END
for variable in TRACESMITH_TORCH_PROFILING PROBING_TORCH_PROFILING; do
	rm -f t.sbt
	env -u PYTHONPATH TRACESMITH_BACKENDS=none $variable=on "$TRACESMITH" record -o t.sbt -- "$PYTHON" train.py
	rows=$("$TRACESMITH" view -t torch_trace t.sbt | grep -c Linear) || true
	[ "$rows" -gt 0 ] || { echo "torch: $variable=on has no rows of Linear"; exit 1; }
	echo "$variable: ok"
done
