#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# At a terminal: Ctrl-C goes to the program; two at once end the recording, two more abandon the
# program; Ctrl-Z stops both, and fg continues.
. "$TS_SOURCE/tests/cli/live.sh"

cat >session.py <<'PY'
import os, pty, re, select, signal, sys, time

TOOL = os.environ["TRACESMITH"]

class Session:
    def __init__(self, *command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(command[0], command)
        self.text = ""

    def expect(self, pattern):
        until = time.monotonic() + 20
        while not re.search(pattern, self.text):
            ready, _, _ = select.select([self.fd], [], [], 0.1)
            try:
                got = os.read(self.fd, 4096) if ready else b""
            except OSError:
                got = b""
            self.text += got.decode()
            if time.monotonic() > until:
                sys.exit(f"waited in vain for {pattern!r} in {self.text!r}")
        self.text = self.text[re.search(pattern, self.text).end():]

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def end(self):
        status = os.waitpid(self.pid, 0)[1]
        return f"died of {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"

def record(script):
    return Session(TOOL, "record", "-o", "t.sbt", "--", "bash", "-c", script)

s = record('trap "exit 5" INT; echo ready; while :; do sleep 0.02; done')
s.expect("ready")
s.type("\x03")
s.expect("nothing lost")
print("its own answer:", s.end())

s = record('echo ready; exec sleep 100')
s.expect("ready")
s.type("\x03")
s.expect("nothing lost")
print("no answer:", s.end())

s = record('trap "echo got" INT; echo ready; until [ -e go ]; do sleep 0.02; done; exit 6')
s.expect("ready")
s.type("\x03")
s.expect("got")
time.sleep(0.2)
s.type("\x03")
s.expect("nothing lost")
s.expect("continues without being recorded")
open("go", "w").close()
print("two:", s.end())
os.remove("go")

s = record('trap "" INT; echo "pid=$$."; until [ -e go ]; do sleep 0.02; done')
s.expect("pid=")
s.expect(r"\.")
for i in range(4):
    s.type("\x03")
    if i == 1:
        s.expect("continues without being recorded")
    time.sleep(0.2)
print("four:", s.end())
open("go", "w").close()

s = Session("/bin/bash", "--norc", "--noediting", "-i")
s.type("PS1=':''> '\n")
s.expect(":> ")
s.type(f"'{TOOL}' record -q -o t.sbt -- bash -c 'echo rea\"\"dy; sleep 0.3; exit 8'\n")
s.expect("ready\r\n")
s.type("\x1a")
s.expect("Stopped")
s.expect(":> ")
s.type("echo stopped=$(ps -o stat= -p $(pgrep -d, -s 0) | grep -c ^T).\n")
s.expect(r"stopped=[23]\.")
s.expect(":> ")
s.type("fg\n")
s.expect(":> ")
s.type("echo code=$?.\n")
s.expect(r"code=8\.")
s.type("exit 0\n")
print("stopped and continued:", s.end())
PY
python3 session.py
"$TRACESMITH" verify t.sbt
