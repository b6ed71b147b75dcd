#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Counters on terminals of every width: a series is one line.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 -c 'import pty; pty.openpty()' 2>/dev/null || { echo "skip: there are no pseudo-terminals here"; exit 77; }
"$TS_BUILD/tests/targets/make_counters" m.sbt
cat >on_terminal.py <<'PY'
import fcntl, os, pty, re, struct, sys, termios
for columns in 40, 50, 60, 74, 80, 120, 200:
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execv(sys.argv[1], [*sys.argv[1:], "--name", "cpu*", "--name", "memory*", "--name", "utilization*"])
    data = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        data += part
    os.waitpid(pid, 0)
    lines = re.sub(r"\r\033\[K|\033\[\d*m", "", data.decode()).replace("\r", "").split("\n")
    table = [line for line in lines if line.startswith("  ")]
    assert len(table) == 7, lines
    assert max(map(len, table)) <= columns, (columns, table)
    print(columns, table[0].split("over")[0].split(), "over" in table[0])
PY
LC_ALL=C TERM=xterm python3 on_terminal.py "$TRACESMITH" info --counters m.sbt
