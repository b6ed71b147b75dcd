#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two runs of four steps, B with a slower kernel, a new one and a removed one; then one step of
# each, equal traces, traces with different numbers of steps, and the last step.
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

echo "== the last step"
# It is left out only if two or more remain on both sides, and never silently.
for steps in 2 3; do
	python3 "$TS_SOURCE/tests/cli/diff/make_steps.py" "a$steps.json" --steps $steps
	python3 "$TS_SOURCE/tests/cli/diff/make_steps.py" "last$steps.json" --steps $steps --last relu
done
t diff a2.json last2.json --device gpu --width 80
t diff a3.json last3.json --device gpu
t diff a3.json last3.json --device gpu --all --top 1 | tail -n 6
t diff a3.json last2.json --device gpu --top 1 | tail -n 4
# A trace without steps, such as that of a replay, is compared with all of the other.
python3 "$TS_SOURCE/tests/cli/diff/make_steps.py" none.json --steps 5 --no-step-spans
"$TRACESMITH" import -q a.json -o other.sbt
t diff other.sbt none.json --top 1
