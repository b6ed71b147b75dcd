#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Windows of execution traces by a flag file (python/tests/test_chakra.py), and the example that
# trains a model. The Python with torch is $TORCH_PYTHON, else python3, else
# build/package-venv.
# shellcheck source=../lib/package.sh
. "$TS_SOURCE/tests/lib/package.sh"

train() { # python
	"$1" "$TS_SOURCE/examples/python_train.py" --steps 10 -o train.sbt
	"$TRACESMITH" analyze train.sbt steps --all --json >steps
	grep -q '"steps": 10' steps || { cat steps; exit 1; }
	"$TRACESMITH" analyze train.sbt operators >spans
	for name in load "next batch" forward backward optimizer; do
		grep -q " $name\$" spans || { echo "no span '$name'"; cat spans; exit 1; }
	done
}

for candidate in ${TORCH_PYTHON:-} python3 "$TS_BUILD/package-venv/bin/python"; do
	if "$candidate" -c 'import torch' 2>/dev/null; then
		"$candidate" -m unittest test_chakra
		train "$candidate"
		exit
	fi
done
# What needs no torch.
run_package_tests test_chakra
echo "skip: no Python with torch, so that no window was recorded: set TORCH_PYTHON to one"
exit 77
