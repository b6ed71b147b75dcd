#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On a terminal, checked with a small terminal emulator: keys, sizes, signals; the terminal is
# restored.
. "$TS_SOURCE/tests/cli/live.sh"

python3 -c 'import pty; pty.openpty()' 2>/dev/null || { echo "skip: no pseudo-terminals"; exit 77; }
cat >screen.py <<'PY'
import atexit, fcntl, os, pty, re, select, signal, struct, subprocess, sys, termios, time

TOOL = os.environ["TRACESMITH"]
EMIT = sys.argv[1]
# Without accelerators, whose users it would show, too.
TOP = TOOL, "top", "-d", "0.2", "--backends", "host"

class Screen:
    """What a terminal shows. Every sequence that is not expected is an error."""
    def __init__(self, rows, columns):
        self.alternate = False
        self.is_foreign = False  # another process writes
        self.cursor_shown = True
        self.wraps = True
        self.partial = b""
        self.frames = []  # rows that each frame drew
        self.bytes = b""
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = [[(" ", "")] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.style = ""
        self.cleared = False

    def feed(self, data):
        self.bytes += data
        data = self.partial + data
        at = 0
        while at < len(data):
            if data[at] != 0x1b:
                width = 1 if data[at] < 0x80 else 2 if data[at] < 0xe0 else 3 if data[at] < 0xf0 else 4
                if at + width > len(data):
                    break
                self.put(data[at:at + width].decode())
                at += width
                continue
            found = re.match(rb"\x1b\[([?0-9;]*)([A-Za-z])", data[at:])
            if not found:
                assert re.fullmatch(rb"\x1b(\[[?0-9;]*)?", data[at:]), f"unexpected sequence {data[at:at + 20]!r}"
                break
            self.obey(found[1].decode(), found[2].decode())
            at += found.end()
        self.partial = data[at:]

    def obey(self, parameters, letter):
        if letter == "H":
            row, column = (int(x) for x in parameters.split(";"))
            assert column == 1
            self.row, self.column = row - 1, 0
            if self.frames:
                self.frames[-1].append(self.row)
        elif letter == "K":
            if self.row < self.rows:
                self.cells[self.row][self.column:] = [(" ", "")] * (self.columns - self.column)
        elif letter == "J":
            assert parameters == "2"
            self.resize(self.rows, self.columns)
            self.cleared = True
        elif letter == "m":
            self.style = "" if parameters == "0" else parameters
        elif parameters == "?1049":
            self.alternate = letter == "h"
            self.resize(self.rows, self.columns)
        elif parameters == "?25":
            self.cursor_shown = letter == "h"
        elif parameters == "?7":
            self.wraps = letter == "h"
        elif parameters == "?2026":
            if letter == "h":
                self.frames.append([])
        else:
            raise AssertionError(f"unexpected sequence {parameters}{letter}")

    def put(self, character):
        if not self.alternate or self.is_foreign:
            return
        assert character >= " ", f"control character {character!r}"
        # Output for the previous size may still be in transit when it changes.
        if self.row < self.rows and self.column < self.columns:
            self.cells[self.row][self.column] = (character, self.style)
        self.column += 1

    def line(self, row):
        return "".join(c for c, _ in self.cells[row]).rstrip()

    def text(self):
        return "\n".join(self.line(i) for i in range(self.rows))

    def selected(self):
        """The row that is shown reversed, below the titles."""
        return [i for i in range(self.rows) if self.cells[i][0][1] == "7" and "COMMAND" not in self.line(i)]

class Session:
    def __init__(self, *command, rows=24, columns=200, **environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(environment)
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execv(command[0], command)
        self.screen = Screen(rows, columns)
        self.raw = b""
        self.before = None

    def pump(self, seconds=0.05):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        try:
            got = os.read(self.fd, 65536) if ready else b""
        except OSError:
            return False
        self.raw += got
        self.screen.feed(got)
        return True

    def holds_within(self, seconds, holds):
        end = time.monotonic() + seconds
        while not holds() and time.monotonic() < end:
            self.pump()
        return holds()

    def until(self, what, holds):
        if not self.holds_within(120, holds):
            sys.exit(f"waited in vain for {what} in\n{self.screen.text()}\n{self.raw[-300:]!r}")

    def type_divided(self, what, holds, *parts):
        """A sequence in parts; again if a pause was so long that it ended the sequence."""
        for _ in range(12):
            self.type(*parts)
            if self.holds_within(5, holds):
                return
        self.until(what, holds)

    def see(self, pattern):
        self.until(pattern, lambda: re.search(pattern, self.screen.text()))

    def miss(self, pattern):
        self.until("no " + pattern, lambda: not re.search(pattern, self.screen.text()))

    def type(self, *parts):
        for i, part in enumerate(parts):
            if i:
                time.sleep(0.01)
            os.write(self.fd, part.encode())

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def is_raw(self):
        return not termios.tcgetattr(self.fd)[3] & (termios.ICANON | termios.ECHO)

    def end(self):
        while self.pump(0.2):
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                while select.select([self.fd], [], [], 0)[0] and self.pump(0):
                    pass
                break
        status = os.waitpid(self.pid, 0)[1]
        return f"died of {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"

    def given_back(self):
        assert not self.is_raw(), "the terminal is still raw"
        assert not self.screen.alternate and self.screen.cursor_shown and self.screen.wraps
        return "terminal given back"

def target(*words):
    ready = f"ready{len(targets)}"
    program = subprocess.Popen([EMIT, *words, f"make:{ready}", "await:done"], env={**os.environ, "TRACESMITH_LIVE": "1"})
    targets.append(program)
    while not os.path.exists(ready):
        time.sleep(0.01)
    return program.pid

def order(session):
    """Pids of the table, from above."""
    below = False
    pids = []
    for i in range(session.screen.rows - 1):
        line = session.screen.line(i)
        if below and line.split() and line.split()[0].isdigit():
            pids.append(int(line.split()[0]))
        below = below or "COMMAND" in line
    return pids

targets = []
atexit.register(lambda: [program.kill() for program in targets])
pids = sorted(target("instants:10") for _ in range(3))

# ---- contents and keys ----
s = Session(*TOP)
s.see("launch_emit")
s.until("all three", lambda: sorted(order(s)) == pids)
assert s.screen.alternate and not s.screen.cursor_shown and not s.screen.wraps and s.is_raw()
s.see(r"tracesmith top .* 3 processes, every 0\.2 s")
s.see(r"cpu \[.*\] +[0-9.]+%  user")
s.see(r"mem \[.*\] +[0-9.]+%  used")
s.see(r"flight +[0-9.]+ +[0-9.]+M .* 0 +0 +0:00\.0\d launch_emit")
print("first screen")
s.type("N")
s.until("sorted by pid", lambda: order(s) == pids)
s.type("R")
s.until("reversed", lambda: order(s) == pids[::-1])
s.type("R")
s.until("sorted by pid", lambda: order(s) == pids)
print("sorted")
titles = next(i for i in range(24) if "COMMAND" in s.screen.line(i))
def sorted_by():
    return "".join(c for c, style in s.screen.cells[titles] if style == "1").strip()
assert sorted_by() == "PID", sorted_by()
s.type(">")
s.until("another column", lambda: sorted_by() == "USER")
s.type("<", "<")
s.until("the last column", lambda: sorted_by() == "COMMAND")
for key, title in ("P", "CPU%"), ("M", "RES"), ("T", "TIME+"), ("E", "EV/S"), ("N", "PID"):
    s.type(key)
    s.until(title, lambda: sorted_by() == title)
print("sort columns")

def selected_pid():
    rows = s.screen.selected()
    return int(s.screen.line(rows[0]).split()[0]) if len(rows) == 1 else None
s.type("\x1b[H")
s.until("first", lambda: selected_pid() == pids[0])
s.type_divided("second", lambda: selected_pid() == pids[1], "\x1b[H\x1b", "[", "B")
s.type_divided("third", lambda: selected_pid() == pids[2], "\x1bO", "B")
s.type("\x1b[A\x1b[A")
s.until("first", lambda: selected_pid() == pids[0])
s.type("\x1b[6~")
s.until("last", lambda: selected_pid() == pids[2])
s.type_divided("first", lambda: selected_pid() == pids[0], "\x1b[5", "~")
s.type("\x1b[1;5F")
s.until("last", lambda: selected_pid() == pids[2])
s.type("R")
s.until("selection stays with its process", lambda: selected_pid() == pids[2] and order(s) == pids[::-1])
s.type("R")
print("selected")
s.type("c")
s.see("make:ready0")
s.type("c")
s.miss("make:ready0")
s.type("/ready1\n")
s.until("one of them", lambda: order(s) == [pids[1]])
s.see("only 'ready1'")
s.type("/\x15nobody\n")
s.see("no process name matches")
s.type("/", "\x15", "\n")
s.until("all", lambda: order(s) == pids)
s.type("h")
s.see("this help")
s.see("EV/S +events stored")
s.type("x")
s.miss("this help")
print("filtered, helped")
s.type("dabc\n")
s.see("'abc' is not a time")
s.type("d", "0.1", "\n")
s.see("every 0.1 s")
s.type("s3600\n")
s.see("every 3600 s")
# Only a key changes anything now: two rows are drawn, and perhaps the clock.
s.type("\x1b[H")
s.until("first", lambda: selected_pid() == pids[0])
del s.screen.frames[:]
s.type("\x1b[B")
s.until("second", lambda: selected_pid() == pids[1])
rows = {row for frame in s.screen.frames for row in frame} - {0}
assert rows == {titles + 1, titles + 2}, rows
print("only what has changed is drawn")
s.type("d0.1\n")
s.see("every 0.1 s")

# ---- signals to processes ----
s.type("k")
s.see(rf"signal for {pids[1]} \(launch_emit\)")
s.type("\x1b")
s.miss("signal for")
s.type("kNONSENSE\n")
s.see("'NONSENSE' is not a signal")
s.type("kSTOP\n")
s.see(rf"sent signal {int(signal.SIGSTOP)} to process {pids[1]}")
s.see(rf"(?m)^ *{pids[1]} \S+ +T ")
s.type("k18\n")
s.see(rf"(?m)^ *{pids[1]} \S+ +[SR] ")
s.type("k9")
s.see(r"cancels \[TERM\]: 9")
s.type("\x7f\n")
s.until("two are left", lambda: order(s) == [pids[0], pids[2]])
print("killed:", -targets[1].wait())

# ---- sizes ----
for rows, columns in (10, 40), (5, 20), (3, 9), (2, 2), (1, 1), (60, 250), (24, 200):
    s.resize(rows, columns)
    s.until(f"{rows}x{columns}", lambda: s.screen.cleared)
    s.until("nothing outside", lambda: s.screen.frames and max(s.screen.frames[-1], default=0) < rows)
s.until("as before", lambda: order(s) == [pids[0], pids[2]])
s.type("\x0c")
s.see("tracesmith top")
print("resized")
assert all(byte < 0x80 for byte in s.screen.bytes), "not ASCII"
s.type("q")
print("quit:", s.end(), s.given_back())

# ---- exits ----
for number in signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGABRT:
    s = Session(*TOP)
    s.see("launch_emit")
    assert s.is_raw()
    os.kill(s.pid, number)
    print(f"{signal.Signals(number).name}:", s.end(), s.given_back())
s = Session(*TOP)
s.see("launch_emit")
s.type("\x03")
print("Ctrl-C:", s.end(), s.given_back())
s = Session(*TOP)
s.see("launch_emit")
os.close(s.fd)
print("hang-up: died of", os.WTERMSIG(os.waitpid(s.pid, 0)[1]))

# ---- UTF-8, colours, hostile names ----
hostile = subprocess.Popen([sys.executable, "-c", """
import sys, time
open("/proc/self/comm", "w").write("a\\x1b]0;b\\x07\\u202ec")
open("named", "w").close()
time.sleep(600)""", "\x1b[2J\x9b31m\u200b\u6f22"])
while not os.path.exists("named"):
    time.sleep(0.01)
for environment in {"LC_ALL": "C.UTF-8"}, {"LC_ALL": "C.UTF-8", "NO_COLOR": "1"}, {"LC_ALL": "C"}:
    s = Session(TOOL, "top", "-d", "0.1", "-c", "-p", f"{hostile.pid},{pids[0]}", columns=400, **environment)
    s.see("launch_emit")
    s.see("time.sleep")
    wide = "UTF-8" in environment["LC_ALL"]
    s.see(r"\?\[2J\?.*31m.*" + ("\u6f22" if wide else r"\?"))
    s.type("c")
    s.see(r"a\?\]0;b\?\?c")
    styles = {style for line in s.screen.cells for _, style in line}
    print(environment, "colours:", "2" in styles)
    s.type("q")
    s.end()
hostile.kill()
hostile.wait()

# ---- Ctrl-Z in a shell ----
class Shell(Session):
    def expect(self, pattern):
        self.until(pattern, lambda: re.search(pattern, self.raw))
        self.raw = self.raw[re.search(pattern, self.raw).end():]

s = Shell("/bin/bash", "--norc", "--noediting", "-i")
s.type("PS1=':''> '; stty -g > before\n")
s.expect(rb":> $")
s.type(f"'{TOOL}' top -d 0.2 --backends host\n")
s.see("launch_emit")
s.type("\x1a")
s.expect(rb"Stopped")
s.expect(rb":> $")
assert not s.screen.alternate and s.screen.cursor_shown
s.type("stty -g > stopped\n")
s.expect(rb":> $")
s.type("fg\n")
s.until("the screen again", lambda: s.screen.alternate)
s.see("launch_emit")
# Stopped by another process.
child = int(subprocess.run(["pgrep", "-P", str(s.pid)], capture_output=True, text=True).stdout)
s.screen.is_foreign = True
os.kill(child, signal.SIGSTOP)
s.expect(rb"Stopped")
s.expect(rb":> $")
s.type("fg\n")
s.until("keys again", s.is_raw)
s.until("the screen again", lambda: b"\x1b[?1049h" in s.raw)
s.screen.is_foreign = False
s.type("\x0c")
s.see("launch_emit")
s.type("q")
s.expect(rb":> $")
s.type("stty -g > after; cmp before stopped && cmp before after && echo sa\"\"me\n")
s.expect(rb"same")
assert not s.screen.alternate and s.screen.cursor_shown and s.screen.wraps
s.type("exit 0\n")
print("stopped and continued:", s.end())

# ---- without a terminal ----
s = Session(TOOL, "top", TERM="dumb")
print("dumb:", s.end(), s.raw.decode().strip())
open("done", "w").close()
for program in targets:
    program.wait()
PY
python3 screen.py "$emit"
