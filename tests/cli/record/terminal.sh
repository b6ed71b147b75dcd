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
        self.text = self.all_text = ""

    def holds(self, condition, seconds=20):
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                return False
            ready, _, _ = select.select([self.fd], [], [], 0.02)
            try:
                got = os.read(self.fd, 4096) if ready else b""
            except OSError:
                got = b""
            self.text += got.decode()
            self.all_text += got.decode()
        return True

    def expect(self, pattern):
        if not self.holds(lambda: re.search(pattern, self.text)):
            sys.exit(f"waited in vain for {pattern!r} in {self.text!r}")
        self.text = self.text[re.search(pattern, self.text).end():]

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def press(self):
        """Ctrl-C, until the program has said "got" and the recorder has read its signal, too."""
        def is_pending():
            masks = re.findall(r"(?:Sig|Shd)Pnd:\s*(\w+)", open(f"/proc/{self.pid}/status").read())
            return any(int(mask, 16) >> (signal.SIGINT - 1) & 1 for mask in masks)
        before = self.all_text.count("got")
        self.type("\x03")
        if not self.holds(lambda: self.all_text.count("got") > before and not is_pending()):
            sys.exit(f"no answer to Ctrl-C in {self.all_text!r}")

    def press_twice(self, is_done, press_last):
        """Two within a second; again if a busy machine made it more."""
        for _ in range(8):
            self.press()
            press_last()
            if self.holds(is_done, 5):
                return
        sys.exit(f"Ctrl-C twice has no effect in {self.all_text!r}")

    def continues(self):
        return "continues without being recorded" in self.all_text

    def has_ended(self):
        return bool(os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT))

    def end(self):
        if not self.holds(self.has_ended):
            sys.exit(f"it does not end; {self.all_text!r}")
        status = os.waitpid(self.pid, 0)[1]
        return f"died of {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"

# Not a shell, which takes Ctrl-C for its child's if that exits at this moment.
with open("answer.py", "w") as file:
    file.write('''
import os, signal, subprocess, sys
ends = len(sys.argv) > 1
signal.signal(signal.SIGINT, lambda number, frame: sys.exit(5) if ends else os.write(1, b"got "))
print("ready", flush=True)
while not os.path.exists("go"):
    subprocess.run(["sleep", "0.02"])
sys.exit(6)
''')
answer = sys.executable, "answer.py"

def record(*command):
    return Session(TOOL, "record", "-o", "t.sbt", "--", *command)

s = record(*answer, "ends")
s.expect("ready")
s.type("\x03")
s.expect(r"nothing\s+(else\s+)?lost")
print("its own answer:", s.end())

s = record("bash", "-c", 'echo ready; exec sleep 100')
s.expect("ready")
s.type("\x03")
s.expect(r"nothing\s+(else\s+)?lost")
print("no answer:", s.end())

s = record(*answer)
s.expect("ready")
s.press_twice(s.continues, s.press)
s.expect(r"nothing\s+(else\s+)?lost")
open("go", "w").close()
print("two:", s.end())
os.remove("go")

s = record(*answer)
s.expect("ready")
s.press_twice(s.continues, s.press)
# What its children leave behind, nobody will read: all but the newest is removed meanwhile.
def dead_areas():
    names = os.listdir(os.environ["TRACESMITH_LIVE_DIR"])
    return {name for name in names if not os.path.exists("/proc/" + name.split("-")[0])}
s.holds(dead_areas)
left = dead_areas()
if not s.holds(lambda: not left & dead_areas(), 60):
    print("left:", left & dead_areas())
s.press_twice(s.has_ended, lambda: s.type("\x03"))
print("four:", s.end())
open("go", "w").close()

s = Session("/bin/bash", "--norc", "--noediting", "-i")
s.type("PS1=':''> '\n")
s.expect(":> ")
s.type(f"'{TOOL}' record -q -o t.sbt -- bash -c 'echo rea\"\"dy; until [ -e on ]; do sleep 0.02; done; exit 8'\n")
s.expect("ready\r\n")
s.type("\x1a")
s.expect("Stopped")
s.expect(":> ")
s.type("until [ $(ps -o stat= -p $(pgrep -d, -s 0) | grep -c ^T) -ge 2 ]; do sleep 0.1; done; echo both sto\"\"pped.\n")
s.expect(r"both stopped\.")
s.expect(":> ")
s.type("fg\n")
open("on", "w").close()
s.expect(":> ")
s.type("echo code=$?.\n")
s.expect(r"code=8\.")
s.type("exit 0\n")
print("stopped and continued:", s.end())
PY
python3 session.py
"$TRACESMITH" verify t.sbt
