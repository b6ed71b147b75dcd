#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On a terminal lines are cut to its width and the header stands out; NO_COLOR is obeyed.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 -c 'import pty; pty.openpty()' 2>/dev/null || { echo "skip: there are no pseudo-terminals here"; exit 77; }
make_trace t
cat >on_terminal.py <<'PY'
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
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
text = data.decode().replace("\r\n", "\n")
for line in text.splitlines():
    plain = line.replace("\033[1m", "").replace("\033[0m", "")
    assert len(plain) <= 60, line
print(text.replace("\033", "ESC"), end="")
PY
python3 on_terminal.py "$TRACESMITH" view t.sbt --table gpu_op,slice
NO_COLOR=1 python3 on_terminal.py "$TRACESMITH" view t.sbt --table gpu_op --limit 1
TERM=dumb python3 on_terminal.py "$TRACESMITH" view t.sbt --table gpu_op --limit 1
