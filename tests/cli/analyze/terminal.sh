#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Long work shows progress on a terminal and clears the line; short work shows none.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 -c 'import pty; pty.openpty()' 2>/dev/null || { echo "skip: no pseudo-terminals"; exit 77; }
"$TS_BUILD/examples/write_trace" small.sbt 10 >/dev/null
"$TS_BUILD/examples/write_trace" large.sbt 60000 >/dev/null
export PYTHONPATH=$TS_SOURCE/tests/lib PYTHONDONTWRITEBYTECODE=1 TERM=xterm
cat >look.py <<'PY'
import sys
import on_terminal
expected, argv = sys.argv[1], sys.argv[2:]
text = on_terminal.run(100, argv)
if expected == "-":
    assert " ..." not in text, text
else:
    line = "\r\033[K" + expected + " ..."
    assert line in text, text
    # Cleared before anything else is written.
    assert text.split(line, 1)[1].startswith("\r\033[K"), text
PY
python3 look.py overlap "$TRACESMITH" analyze large.sbt overlap
python3 look.py "dependencies and states" "$TRACESMITH" state large.sbt
python3 look.py compare "$TRACESMITH" diff large.sbt large.sbt
python3 look.py - "$TRACESMITH" analyze small.sbt overlap
