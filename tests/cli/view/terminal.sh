#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On a terminal, lines are truncated to its width and the header is highlighted; NO_COLOR works.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 -c 'import pty; pty.openpty()' 2>/dev/null || { echo "skip: no pseudo-terminals"; exit 77; }
make_trace t
export PYTHONPATH=$TS_SOURCE/tests/lib PYTHONDONTWRITEBYTECODE=1
cat >look.py <<'PY'
import sys
import on_terminal
text = on_terminal.run(60, sys.argv[1:])
for line in text.splitlines():
    plain = line.replace("\033[1m", "").replace("\033[0m", "")
    assert len(plain) <= 60, line
print(text.replace("\033", "ESC"), end="")
PY
python3 look.py "$TRACESMITH" view t.sbt --table gpu_op,slice
NO_COLOR=1 python3 look.py "$TRACESMITH" view t.sbt --table gpu_op --limit 1
TERM=dumb python3 look.py "$TRACESMITH" view t.sbt --table gpu_op --limit 1
