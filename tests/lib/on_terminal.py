# SPDX-License-Identifier: Apache-2.0
"""For tests of terminal output: runs a program on a terminal of a given width, and returns all that
it wrote.
"""
import fcntl
import os
import pty
import struct
import termios


def run(columns, argv):
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execv(argv[0], argv)
    data = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        data += part
    os.close(fd)
    os.waitpid(pid, 0)
    return data.decode().replace("\r\n", "\n")
