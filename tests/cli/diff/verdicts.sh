#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two runs of four steps, B with a slower kernel, a new one and a removed one; then one step of
# each, equal traces, and traces with different numbers of steps.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 "$TS_SOURCE/tests/cli/diff/make_steps.py" a.json --steps 5
python3 "$TS_SOURCE/tests/cli/diff/make_steps.py" b.json --steps 5 --gemm 220 --new relu --without tanh
t diff a.json b.json
t diff a.json b.json --device gpu --threshold 15
t diff a.json b.json --steps 2 --device gpu --top 2
t diff a.json b.json --steps 2 --steps-b 3 --device gpu --top 1
t diff a.json a.json --device gpu --top 1
# A longer recording of the same work.
python3 "$TS_SOURCE/tests/cli/diff/make_steps.py" long.json --steps 8
t diff a.json long.json --device gpu --top 1
