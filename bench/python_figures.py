# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of Python stacks for bench/run: the cost of a sweep, the slowdown of the program, and
the accuracy, compared with py-spy and CPython 3.15's sampler on the same programs at the same
rate.

py-spy is taken from BUILD/bench-venv (bench/run --peers), PY_SPY or PATH; 3.15 from the folder
of scripts/python-versions (PYTHON_VERSIONS, default build/python-versions), by chroot and as
root. PYTHON is the sampled interpreter; default: the system's.
"""
import collections
import glob
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from live_figures import thread_seconds

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(HERE, "..", "tests", "python", "oracle.py")
CHECK = os.path.join(HERE, "..", "tests", "python", "check.py")
RATE = 100
SETTLE_SECONDS = 0.7
STEADY_SECONDS = 15
PAIRS = 30
UNITS = 3  # the fastest counts, to exclude other load
SHARE_RATE, SHARE_SECONDS = 500, 20
ORACLE_RATE, ORACLE_SECONDS = 1000, 10
FULL_INTERVAL = 0.0001
STUDENT_95 = 2.045  # 29 degrees of freedom


# ---- sampled programs ----

class Python:
    """An interpreter, in a chroot or not. `run` returns the command for a file, which is copied
    into a chroot."""

    def __init__(self, command, root=None):
        self.command, self.root = command, root
        done = subprocess.run([*self.chroot(), command, "-c", "import platform; print(platform.python_version())"], stdout=subprocess.PIPE, check=True)
        self.version = done.stdout.decode().strip()
        self.folder = tempfile.mkdtemp(prefix="tracesmith-bench-", dir=(root or "") + "/tmp")

    def chroot(self):
        return ["chroot", self.root] if self.root else []

    def inner(self, path):
        return path[len(self.root):] if self.root else path

    def run(self, file, *arguments):
        copy = shutil.copy(file, self.folder)
        return [*self.chroot(), self.command, self.inner(copy), *arguments]

    def path(self, name):
        return os.path.join(self.folder, name)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Target:
    """A program that prints "ready PID"."""

    def __init__(self, command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.child.stdout.readline().split()[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait()

    def unit(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return [float(word) for word in self.child.stdout.readline().split()]


# ---- samplers ----

class Ours:
    name = "tracesmith"

    def __init__(self, bench):
        self.bench, self.output = bench, bench.path("python.sbt")
        self.live = tempfile.TemporaryDirectory(prefix="tracesmith-bench-", dir="/dev/shm")  # goes with this object

    def command(self, pid, rate, python):
        del python
        return [self.bench.tool, "record", "-q", "-o", self.output, "-p", str(pid), "--backends", "python", "--python-interval", f"{1 / rate:.6f}"]

    def environment(self):
        return dict(os.environ, TRACESMITH_LIVE_DIR=self.live.name)

    def rows(self):
        done = subprocess.run([self.bench.tool, "view", self.output, "--table", "sample", "--json"], stdout=subprocess.PIPE, check=True)
        for line in done.stdout.splitlines():
            row = json.loads(line)
            if row.get("stack"):
                yield 1, [(frame["func"], frame.get("file", ""), frame.get("lineno", 0)) for frame in row["stack"]]

    def errors(self, said):
        """Percent of stacks that were inconsistent and dropped."""
        del said
        done = subprocess.run([self.bench.tool, "view", self.output, "--table", "counter", "--json", "--name", "python_stacks_per_s"],
                              stdout=subprocess.PIPE, check=True)
        sums = collections.Counter()
        for line in done.stdout.splitlines():
            sums.update(json.loads(line)["args"])
        taken = sums["stored"] + sums["rejected"]
        return sums["rejected"] / taken * 100 if taken else None


class PySpy:
    def __init__(self, bench, program, options=()):
        self.program, self.options, self.output = program, options, bench.path("py-spy.raw")
        self.name = " ".join(["py-spy", *options])

    def command(self, pid, rate, python):
        del python
        return [self.program, "record", "-p", str(pid), "-r", str(rate), "-f", "raw", "--full-filenames", "-i", *self.options, "-o", self.output]

    def environment(self):
        return None

    def rows(self):
        with open(self.output, encoding="utf-8") as file:
            for line in file:
                stack, count = line.rsplit(" ", 1)
                frames = [re.fullmatch(r"(.*) \((.*):(\d+)\)", frame) for frame in reversed(stack.split(";"))]
                yield int(count), [(frame[1], frame[2], int(frame[3])) for frame in frames if frame]

    def errors(self, said):
        found = re.search(r"Samples: (\d+) Errors: (\d+)", said)
        return int(found[2]) / max(int(found[1]) + int(found[2]), 1) * 100 if found else None


class Tachyon:
    """profiling.sampling of 3.15, with its interpreter."""
    name = "profiling.sampling"

    def __init__(self):
        self.output = None

    def command(self, pid, rate, python):
        self.output = python.path("collapsed")
        # It looks up the program file by the path in its own root, and the process in /proc.
        again = python.root + python.root
        os.makedirs(os.path.dirname(again), exist_ok=True)
        if not os.path.lexists(again):
            os.symlink("/", again)
        inner = ["chroot", python.root, python.command, "-m", "profiling.sampling", "attach", "-a", "-r", str(rate), "--collapsed", "-o",
                 python.inner(self.output), str(pid)]
        return ["unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec "$@"', python.root, *inner]

    def environment(self):
        return None

    def rows(self):
        with open(self.output, encoding="utf-8") as file:
            for line in file:
                stack, count = line.rsplit(" ", 1)
                frames = [frame.split(":") for frame in reversed(stack.split(";")) if not frame.startswith("tid:")]
                yield int(count), [(frame[1], frame[0], int(frame[2] or 0)) for frame in frames if len(frame) == 3]

    def errors(self, said):
        found = re.search(r"Error rate: ([0-9.]+)", said)
        return float(found[1]) if found else 0.0


class Attached:
    """A running sampler; stopped as users stop it."""

    def __init__(self, sampler, pid, rate, python):
        self.sampler = sampler
        self.child = subprocess.Popen(sampler.command(pid, rate, python), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      env=sampler.environment(), text=True)
        self.said = ""

    def __enter__(self):
        time.sleep(SETTLE_SECONDS)
        if self.child.poll() is not None:
            raise RuntimeError(f"{self.sampler.name}: {self.child.stdout.read()}")
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
        self.said = self.child.communicate()[0]

    def cpu_seconds(self):
        return thread_seconds(self.child.pid)


# ---- measurements ----

def measure_reader(bench, python):
    """Only the reader: no rings, no file."""
    sweeps = os.path.join(bench.build, "tests", "targets", "python_sweeps")
    if not os.path.exists(sweeps):
        bench.skip("a sweep of Python stacks", "tests/targets/python_sweeps was not built")
        return
    with Target(python.run(os.path.join(HERE, "python_target.py"), "deep")) as target:
        time.sleep(SETTLE_SECONDS)
        for what, options in (("in a row", ["--seconds", "4"]), (f"{RATE} Hz", ["--seconds", "8", "--interval-us", str(10 ** 6 // RATE)])):
            done = subprocess.run([sweeps, str(target.pid), *options], stdout=subprocess.PIPE, check=True)
            line = json.loads(done.stdout.splitlines()[-1])
            bench.add(f"sweep, 5 threads x 30, {what}", line["cpu_us_median"], "us of CPU", "<= 10")
            bench.add(f"mean of all sweeps, {what}", line["cpu_us_a_sweep"], "us of CPU", None)
            if "--interval-us" not in options:
                bench.add("stacks read and resolved, one core", line["stacks_a_cpu_second"], "stacks/s", ">= 100000")
                bench.add("frames of a sweep", line["frames_a_sweep"], "frames", None)
                bench.add("rejected of all", line["rejected"] / max(line["stacks"] + line["rejected"], 1) * 100, "%", None)


def measure_stored(bench, python):
    """The full path: read, resolved, emitted, encoded, on disk."""
    ours = Ours(bench)
    with Target(python.run(os.path.join(HERE, "python_target.py"), "deep")) as target:
        with Attached(ours, target.pid, 1 / FULL_INTERVAL, python) as attached:
            before, start = attached.cpu_seconds(), time.monotonic()
            time.sleep(STEADY_SECONDS)
            taken, elapsed = attached.cpu_seconds() - before, time.monotonic() - start
    info = json.loads(subprocess.run([bench.tool, "info", ours.output, "--json"], stdout=subprocess.PIPE, check=True).stdout)
    rows = info["tables"].get("sample", 0)
    # The CPU time excludes the first seconds.
    stored = rows * elapsed / (elapsed + SETTLE_SECONDS)
    bench.add("stacks with names and lines stored, one core", stored / taken, "stacks/s", ">= 100000")
    bench.add("stacks of that second by the clock", stored / elapsed, "stacks/s", None)
    bench.add("bytes of a stored stack", os.path.getsize(ours.output) / max(rows, 1), "bytes", None)


def sampler_share(sampler, python):
    """Percent of a core that a sampler takes at RATE."""
    with Target(python.run(os.path.join(HERE, "python_target.py"), "deep")) as target:
        with Attached(sampler, target.pid, RATE, python) as attached:
            before, start = attached.cpu_seconds(), time.monotonic()
            time.sleep(STEADY_SECONDS)
            return (attached.cpu_seconds() - before) / (time.monotonic() - start) * 100


def half_pair(target, sampler, python):
    """Wall and CPU seconds per unit of work, with or without a sampler."""
    if not sampler:
        return [min(values) for values in zip(*(target.unit() for _ in range(UNITS)))]
    with Attached(sampler, target.pid, RATE, python):
        return half_pair(target, None, python)


def slowdown(sampler, python):
    """Slowdown of the program in percent of wall time: mean over pairs, and half of the 95 %
    interval."""
    ratios = []
    with Target(python.run(os.path.join(HERE, "python_target.py"), "units")) as target:
        half_pair(target, None, python)
        for number in range(PAIRS):
            order = (None, sampler) if number % 2 else (sampler, None)
            taken = {bool(who): half_pair(target, who, python)[0] for who in order}
            ratios.append((taken[True] / taken[False] - 1) * 100)
    mean = sum(ratios) / len(ratios)
    deviation = math.sqrt(sum((ratio - mean) ** 2 for ratio in ratios) / (len(ratios) - 1))
    return mean, STUDENT_95 * deviation / math.sqrt(len(ratios))


def share_error(sampler, python):
    """Maximum error of the sampled share of a function in percentage points, and the number of
    samples."""
    with Target(python.run(os.path.join(HERE, "python_target.py"), "shares", str(SHARE_SECONDS + 2 * SETTLE_SECONDS + 1))) as target:
        with Attached(sampler, target.pid, SHARE_RATE, python) as attached:
            time.sleep(SHARE_SECONDS)
        true = json.loads(target.child.stdout.readline())
    counts = collections.Counter()
    for count, frames in sampler.rows():
        if frames and frames[0][0] in true:
            counts[frames[0][0]] += count
    whole = sum(counts.values())
    if not whole:
        raise RuntimeError(f"{sampler.name} has no samples: {attached.said}")
    return max(abs(counts[name] / whole - share) for name, share in true.items()) * 100, whole


def impossible_share(sampler, python):
    """Impossible stacks per 100,000 of a call-heavy program, the number of stacks, and the
    percentage of errors that the sampler itself reports."""
    log, stacks = python.path("log.json"), python.path("stacks")
    command = python.run(ORACLE, "--log", python.inner(log), "--seconds", str(ORACLE_SECONDS + 2 * SETTLE_SECONDS), "--parts", "storm,waves,generators")
    with Target(command) as target:
        with Attached(sampler, target.pid, ORACLE_RATE, python) as attached:
            time.sleep(ORACLE_SECONDS)
        target.child.wait()
    with open(log, encoding="utf-8") as file:
        oracle = json.load(file)["file"]
    whole = 0
    with open(stacks, "w", encoding="utf-8") as file:
        for count, frames in sampler.rows():
            stack = [{"func": name, "file": oracle if os.path.basename(path) == "oracle.py" else path, "lineno": line} for name, path, line in frames]
            print("\n".join([json.dumps({"start": 0, "stack": stack})] * count), file=file)
            whole += count
    done = subprocess.run([sys.executable, CHECK, "--log", log, "--json", stacks + ".json", stacks], stdout=subprocess.PIPE, check=False)
    if done.returncode > 1:
        raise RuntimeError(done.stdout.decode())
    with open(stacks + ".json", encoding="utf-8") as file:
        verdict = json.load(file)
    return verdict["impossible"] / max(verdict["stacks"], 1) * 1e5, whole, sampler.errors(attached.said)


def compare(bench, python, peers):
    """Ours and the peers on one interpreter; ours first, as the reference."""
    ours, where = Ours(bench), python.version
    results = {sampler: {} for sampler in (ours, *peers)}
    for sampler, result in list(results.items()):
        try:
            result["share"] = sampler_share(sampler, python)
            result["slowdown"], result["interval"] = slowdown(sampler, python)
            result["shares"], result["samples"] = share_error(sampler, python)
            result["impossible"], result["stacks"], result["errors"] = impossible_share(sampler, python)
        except (RuntimeError, OSError, ValueError) as error:
            bench.skip(f"{sampler.name} on {where}", " ".join(str(error).split())[:200])
            del results[sampler]
    if ours not in results:
        return
    for sampler in list(results)[1:] or [None]:
        show_pair(bench, where, results[ours], sampler, results.get(sampler))


FIGURES = (
    ("share", f"sampler at {RATE} Hz", "% of a core", "<= 0.5"),
    ("slowdown", f"slowdown at {RATE} Hz", "%", "<= 0.5"),
    ("interval", "half of its 95 % interval", "%", None),
    ("shares", f"functions' shares off, {SHARE_RATE} Hz", "points", "<= 2"),
    ("impossible", f"impossible stacks, {ORACLE_RATE} Hz", "in 100,000", "<= 1"),
    ("stacks", "of so many stacks", "stacks", None),
    ("errors", "errors that it counts", "%", None),
)


def show_pair(bench, where, ours, sampler, theirs):
    for key, name, unit, target in FIGURES:
        value, peer = ours[key], theirs and theirs[key]
        if value is None:
            continue
        ratio = None if peer is None or key not in ("share", "shares") else peer / max(value, 1e-3)
        if ratio is None and peer is not None:
            bench.add(f"{name}, {where}", value, unit, target)
            bench.add(f"{name}, {where}, {sampler.name}", peer, unit, None)
        else:
            bench.add(f"{name}, {where}", value, unit, target, sampler.name if ratio else None, peer, ratio)


def find_py_spy(bench):
    for path in (os.environ.get("PY_SPY"), os.path.join(bench.venv, "bin", "py-spy"), shutil.which("py-spy")):
        if path and os.path.exists(path):
            return path
    return None


def find_newest():
    """The 3.15 of scripts/python-versions: its root and command."""
    folder = os.environ.get("PYTHON_VERSIONS", os.path.join(HERE, "..", "build", "python-versions"))
    for path in sorted(glob.glob(os.path.join(os.path.abspath(folder), "*", "usr", "bin", "python3.15-pie")) +
                       glob.glob(os.path.join(os.path.abspath(folder), "*", "usr", "bin", "python3.15")), reverse=True):
        root = path[:path.rindex("/usr/bin/")]
        if os.path.exists(os.path.join(root, ".complete")):
            return root, path[len(root):]
    return None


def measure_newest(bench):
    name, found = "CPython 3.15 and its own sampler", find_newest()
    if not found or os.geteuid():
        bench.skip(name, "scripts/python-versions has put none here" if not found else "needs root, for chroot")
        return
    python = Python(found[1], found[0])
    try:
        compare(bench, python, [Tachyon()])
    finally:
        again = python.root + python.root
        if os.path.islink(again):
            os.unlink(again)
        python.close()


def measure_python(bench):
    python = Python(os.environ.get("PYTHON", "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable))
    try:
        measure_reader(bench, python)
        measure_stored(bench, python)
        program = find_py_spy(bench)
        if not program:
            bench.skip("py-spy", "not installed: bench/run --peers BUILD installs it from PyPI")
        compare(bench, python, [PySpy(bench, program), PySpy(bench, program, ("--nonblocking",))] if program else [])
    finally:
        python.close()
    measure_newest(bench)
