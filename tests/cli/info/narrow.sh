#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Counters on terminals of every width: a series is one line.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 -c 'import pty; pty.openpty()' 2>/dev/null || { echo "skip: no pseudo-terminals"; exit 77; }
"$TS_BUILD/tests/targets/make_counters" m.sbt
export PYTHONPATH=$TS_SOURCE/tests/lib PYTHONDONTWRITEBYTECODE=1
cat >look.py <<'PY'
import re, sys
import on_terminal
for columns in 40, 50, 60, 74, 80, 120, 200:
    text = on_terminal.run(columns, [*sys.argv[1:], "--name", "cpu*", "--name", "memory*", "--name", "utilization*"])
    lines = re.sub(r"\r\033\[K|\033\[\d*m", "", text).replace("\r", "").split("\n")
    shown = text.partition("not shown")[0].count("\n")
    table = [line for line in lines[:shown] if line.startswith("  ")]
    assert len(table) == 7, lines
    # The columns that are left out are named.
    dropped = [title for title in ("min", "mean", "max", "last") if title not in table[0].split()]
    note = " ".join(" ".join(lines).partition(f"not shown at {columns} columns: ")[2].partition("(")[0].split())
    assert note == ", ".join(dropped), (columns, dropped, note)
    assert max(map(len, table)) <= columns, (columns, table)
    print(columns, table[0].split("over")[0].split(), "over" in table[0])
PY
LC_ALL=C TERM=xterm python3 look.py "$TRACESMITH" info --counters m.sbt
