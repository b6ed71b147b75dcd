#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tables on narrow lines: names stay and differ, the least important columns go, and a line says
# which.
. "$TS_SOURCE/tests/cli/lib.sh"

real=$TS_SOURCE/tests/data/real/kineto
cp "$real/transformer_train.json.gz" b.json.gz
cp "$real/mlp_train.json.gz" a.json.gz
for width in 80 100 120 200; do
	t analyze b.json.gz kernels --top 6 --width $width
	t diff a.json.gz b.json.gz --device gpu --top 6 --width $width || true
done
t analyze b.json.gz steps,idle,critical-path,launch-stacks --top 3 --width 80

echo "== every kernel, every width"
export PYTHONPATH=$TS_SOURCE/tests/lib PYTHONDONTWRITEBYTECODE=1
cat >look.py <<'PY'
import json, re, subprocess, sys
tool = [sys.argv[1], "analyze", "b.json.gz", "kernels"]
run = lambda *more: subprocess.run(tool + list(more), check=True, capture_output=True, text=True).stdout
names = [row["name"] for row in json.loads(run("--json"))["kernels"]]
assert len(set(names)) == len(names) > 40
for width in range(40, 200, 7):
    lines = run("--top", "100", "--width", str(width)).split("\n")
    assert max(map(len, lines)) <= width, (width, max(lines, key=len))
    first = lines.index("kernels:") + 2
    shown = [re.split("  +", line.strip())[1] for line in lines[first:first + len(names)]]
    assert len(set(shown)) == len(names), (width, shown)
PY
python3 look.py "$TRACESMITH"

echo "== a pipe has no limit, a terminal its width"
"$TRACESMITH" analyze b.json.gz kernels >pipe.txt
"$TRACESMITH" analyze b.json.gz kernels --width 0 | cmp - pipe.txt
python3 -c 'import pty; pty.openpty()' 2>/dev/null || { echo "skip: no pseudo-terminals"; exit 77; }
NO_COLOR=1 python3 -c 'import sys, on_terminal; print(on_terminal.run(93, sys.argv[1:]), end="")' \
	"$TRACESMITH" analyze b.json.gz kernels >terminal.txt
"$TRACESMITH" analyze b.json.gz kernels --width 93 | diff - terminal.txt
