# SPDX-License-Identifier: Apache-2.0
"""CUDA replay: what must be shown on a GPU. Each row records a program in one process and replays it
in others: equal to the recording with --check each and --check final, three runs each; or not
deterministic, with the right kernel; or refused, by name.

check_replay.py [--rows NAME,...] [--jobs N] [--limit SECONDS] [--out DIR] [--quick]
  --rows   names of rows, groups, or patterns such as 'c-*'; default: all
  --jobs   rows that run at the same time
  --limit  rows that have not started by then are left out
  --out    gets replay.json, and replay-rows.log with what all programs wrote

Every program has a time limit, and so has each row; nothing is waited for without one.
"""
import argparse, concurrent.futures, fnmatch, json, os, re, shutil, signal, subprocess, sys, threading, time

from common import BUILD, HERE, TOOL, WORK, figures, left_out, missed, problems

PROGRAM = os.path.join(BUILD, "gpu", "replay_program")
PROGRAM_RDC = os.path.join(BUILD, "gpu", "replay_program_rdc")
REFUSED = os.path.join(BUILD, "gpu", "replay_refused")
NESTED = os.path.join(BUILD, "gpu", "replay_nested")
MANAGED = os.path.join(BUILD, "gpu", "replay_managed")
# Those of tests/cuda.
WORKS = os.path.join(BUILD, "gpu", "replay_work")
REFUSED_WORKS = os.path.join(BUILD, "gpu", "refused")
RANDOM = os.path.join(BUILD, "gpu", "cuda_random")
CRASH_FRAMES = os.path.join(BUILD, "gpu", "libcrash_frames.so")
CRASHED = (128 + signal.SIGSEGV, 128 + signal.SIGABRT, 128 + signal.SIGBUS, -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS)
WINDOW = ["--window", "cuda-profiler-api"]
EQUAL = re.compile(r"no difference in \d+ runs?, equals recording$")
RECORD_SECONDS, REPLAY_SECONDS, ROW_SECONDS = 100, 60, 180
LOG_BYTES = 60_000  # of a row
REPEAT = 3

rows = {}


class Failed(Exception):
    """Why a row failed."""


class Skipped(Exception):
    """Why a row cannot run here."""


class Row:
    def __init__(self, name, group, function, *arguments, **options):
        self.name, self.group, self.function, self.arguments, self.options = name, group, function, arguments, options
        self.state, self.note, self.seconds, self.figures, self.log = "skipped", "no time was left for it", 0.0, {}, []
        self.work = os.path.join(WORK, "rows", name)
        rows[name] = self

    def run(self, deadline):
        start = time.monotonic()
        self.deadline = min(deadline, start + ROW_SECONDS)
        if deadline - start < 10:
            return self
        os.makedirs(self.work, exist_ok=True)
        try:
            self.note = self.function(self, *self.arguments, **self.options) or ""
            self.state = "ok"
        except Failed as fault:
            self.state, self.note = "FAILED", str(fault)
        except Skipped as fault:
            self.state, self.note = "skipped", str(fault)
        except Exception as fault:  # the suite goes on
            self.state, self.note = "FAILED", f"{type(fault).__name__}: {fault}"
        self.seconds = time.monotonic() - start
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.rmtree(live_folder(self.work), ignore_errors=True)
        return self

    # ---- running ----

    def call(self, command, seconds, env=None, input_signal=None):
        """Exit code, standard output and standard error. `input_signal`: (seconds, signal) to send to
        the program. Ends everything that it started."""
        left = min(seconds, self.deadline - time.monotonic())
        self.log.append("+ " + " ".join(map(str, command)))
        if left <= 1:
            raise Failed("the row's time is over")
        begin = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   env={**os.environ, "TS_GPU_WORK": self.work, **(env or {})}, cwd=self.work, start_new_session=True)
        try:
            if input_signal:
                try:
                    out, err = process.communicate(timeout=input_signal[0])
                except subprocess.TimeoutExpired:
                    process.send_signal(input_signal[1])
                    out, err = process.communicate(timeout=max(1, left - input_signal[0]))
            else:
                out, err = process.communicate(timeout=left)
            code = process.returncode
        except subprocess.TimeoutExpired:
            out, err = end_session(process)
            code = 124
            err += f"\ndid not end within {left:.0f} s"
        self.log += [out[-8000:], err[-8000:], f"= {code} after {time.monotonic() - begin:.2f} s"]
        return code, out, err

    def crash(self, code, command, env=None):
        """Where it crashes: runs it once more, with a handler. "": it did not."""
        if not os.path.exists(CRASH_FRAMES) or not (code in CRASHED or code == 4):
            return ""
        _, out, err = self.call(command, 60, {"TRACESMITH_LIVE_DIR": live_folder(self.work), **(env or {}), "LD_PRELOAD": CRASH_FRAMES})
        frames = re.findall(r"^(\S*tracesmith\S*?)\(\S*?\+(0x[0-9a-f]+)\)", (out + err).partition("CRASH:")[2], re.M)[:12]
        return ("crash in " + " < ".join(frame_name(path, offset) for path, offset in frames[:6])) if frames else ""

    def trace(self, name="t"):
        return os.path.join(self.work, name + ".sbt")

    def record(self, program, options=(), name="t", env=None, checked=False, code=0):
        """The program's output; its recording is at trace(name)."""
        command = [TOOL, "record", "-o", self.trace(name), "--backends", "cuda", "--replayable" + ("=checked" if checked else ""), *options, "--", *program]
        begin = time.monotonic()
        found, out, err = self.call(command, RECORD_SECONDS, {"TRACESMITH_LIVE_DIR": live_folder(self.work), **(env or {})})
        self.figures["record_s"] = round(time.monotonic() - begin, 1)
        if found == 77 and code != 77:
            raise Skipped(last_line(*program_lines(err, out)))
        if found != code:
            raise Failed(f"recorded: exit code {found}: {self.crash(found, command, env) or last_line(*program_lines(err, out))}")
        return out

    def facts(self, name="t"):
        code, out, err = self.call([TOOL, "info", "--json", self.trace(name)], 60)
        if code:
            raise Failed(f"info: exit code {code}: {last_line(err, out)}")
        found = json.loads(out)
        self.figures["bytes"] = found.get("bytes") or os.path.getsize(self.trace(name))
        return found

    def window(self, name="t", launches=1):
        """Facts of the only window, which must be replayable."""
        facts = self.facts(name)
        windows = [window for window in (facts.get("replay") or {}).get("windows", []) if window["commands"] or window.get("failed")]
        if not windows:
            raise Failed("no window was recorded: " + "; ".join(row.get("reason", "") for row in facts.get("loss", []))[:200])
        window = windows[0]
        if window.get("failed") or not window["complete"]:
            why = window.get("failed") or "; ".join(f"{row['count']} {row.get('call')}: {row['reason']}" for row in window["unreplayable"])
            raise Failed("refused: " + (why or "the window is not complete"))
        if window["launches"] < launches:
            raise Failed(f"{window['launches']} launches, at least {launches} were expected")
        self.figures.update(launches=window["launches"], commands=window["commands"])
        return window

    def replay(self, *options, name="t", seconds=REPLAY_SECONDS, input_signal=None):
        code, out, err = self.call([TOOL, "replay", self.trace(name), *options], seconds, input_signal=input_signal)
        return code, out, err

    def report(self, *options, name="t"):
        code, out, err = self.replay("--json", *options, name=name)
        lines = [line for line in out.splitlines() if line.startswith("{")]
        try:
            return code, json.loads(lines[-1]) if lines else {}, err
        except ValueError:
            return code, {}, err

    def must_equal(self, *options, repeat=REPEAT, name="t"):
        begin = time.monotonic()
        code, report, err = self.report("--repeat", str(repeat), *options, name=name)
        what = " ".join(options)
        if code or not EQUAL.match(report.get("verdict", "")):
            crash = self.crash(code, [TOOL, "replay", self.trace(name), "--repeat", str(repeat), *options]) if not report else ""
            raise Failed(f"{what}: exit code {code}: {difference(report) or last_line(err)} {crash}")
        if not report.get("checks"):
            raise Failed(f"{what}: nothing was compared with the recording")
        return report, time.monotonic() - begin


def end_session(process):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except OSError:
            pass
        try:
            return process.communicate(timeout=4)
        except subprocess.TimeoutExpired:
            continue
    return "", ""  # it cannot be killed (in the driver): left behind


def frame_name(path, offset):
    try:
        found = subprocess.run(["addr2line", "-fse", path, offset], capture_output=True, text=True, timeout=20).stdout.split()
        return f"{found[0]} {found[1]}" if len(found) > 1 else offset
    except (OSError, subprocess.SubprocessError):
        return offset


def live_folder(work):
    """Where rings and spools are: of each row by themselves."""
    path = os.path.join(os.environ.get("TRACESMITH_LIVE_DIR", work), "row-" + os.path.basename(work))
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def last_line(*texts):
    for text in texts:
        lines = [line for line in (text or "").strip().splitlines() if line.strip()]
        if lines:
            # The message of a driver's or Python's error, rather than what follows from it.
            chosen = next((line for line in lines if re.search(r"rror|refused|fault", line)), lines[-1])
            return (lines[-1] if chosen is lines[-1] else chosen + " ... " + lines[-1])[:260]
    return "no message"


def program_lines(*texts):
    """Without those of the recorder."""
    return ["\n".join(line for line in text.splitlines() if not line.startswith(("tracesmith", " ", "/"))) for text in texts]


def difference(report):
    if not report:
        return ""
    parts = [report.get("verdict", "?")]
    for key in ("command", "kernel", "command_text", "buffer", "first_byte", "bytes_differing", "between", "note"):
        if report.get(key) not in (None, ""):
            parts.append(f"{key} {report[key]}")
    return "; ".join(parts)[:300]


def times(row, report):
    """What the GPU took, replayed by recorded, of kernels that have a recorded time."""
    kernels = [kernel for kernel in report.get("kernels") or [] if kernel.get("recorded_ns") and kernel.get("median_ns")]
    if kernels:
        row.figures["gpu"] = round(sum(kernel["median_ns"] for kernel in kernels) / sum(kernel["recorded_ns"] for kernel in kernels), 3)
    if report.get("span_ns") and report.get("recorded_span_ns"):
        row.figures["wall"] = round(report["span_ns"] / report["recorded_span_ns"], 3)


def summary(row, window, *reports):
    found = row.figures
    text = f"{window['launches']} launches, {reports[0].get('checks')}+{reports[-1].get('checks')} checks, {found['bytes'] / 1e6:.1f} MB"
    return text + "".join(f", {key} x{found[key]}" for key in ("gpu", "wall") if key in found)


# ---- kinds of rows ----

def bit_exact(row, program, options=WINDOW, env=None, launches=1, checked=False, is_compared_with_bare=False, may_be_refused=None):
    """`may_be_refused`: what the program may do that is not captured."""
    bare = row.call(program, RECORD_SECONDS, env) if is_compared_with_bare else None
    if bare and bare[0] == 77:
        raise Skipped(last_line(bare[2], bare[1]))
    if bare and bare[0]:
        raise Failed(f"alone: exit code {bare[0]}: {last_line(bare[2], bare[1])}")
    out = row.record(program, options, env=env, checked=checked)
    if bare and own_lines(bare[1]) != own_lines(out):
        raise Failed(f"the recorded program answers otherwise: {first_difference(own_lines(bare[1]), own_lines(out))}")
    try:
        window = row.window(launches=launches)
    except Failed as fault:
        if may_be_refused and str(fault).startswith("refused: " + may_be_refused):
            raise Skipped(str(fault)) from None
        raise
    each, _ = row.must_equal("--check", "each")
    final, row.figures["replay_s"] = row.must_equal("--check", "final")
    times(row, final)
    count_timed(row)
    return summary(row, window, each, final)


def own_lines(text):
    """Without those of the recorder, which also has a line for each warning."""
    return [line for line in text.splitlines() if re.match(r"[a-z][a-z _-]*: |range|type ", line) and not line.startswith("tracesmith")]


def first_difference(ours, theirs):
    return next((f"'{left}', recorded '{right}'" for left, right in zip(ours, theirs) if left != right), f"{len(ours)} lines, recorded {len(theirs)}")


def count_timed(row):
    """Device times are recorded beside the stream."""
    code, out, _ = row.call([TOOL, "view", row.trace(), "--table", "gpu_op", "--columns", "kind,start,duration", "--json"], 60)
    ops = [json.loads(line) for line in out.splitlines() if line.startswith("{")] if not code else []
    timed = sum(1 for op in ops if op["kind"] in ("kernel", "collective") and op.get("start") and op.get("duration", -1) >= 0)
    row.figures["timed_kernels"] = timed
    if not timed:
        row.figures["no_times"] = True


def not_deterministic(row, program, kernel, env=None, repeat=6):
    row.record(program, WINDOW, env=env)
    row.window()
    code, report, err = row.report("--check", "each", "--repeat", str(repeat))
    row.replay("--check", "each", "--repeat", "3")  # for the log, with the stack
    if code != 1 or report.get("verdict") != "nondeterministic":
        raise Failed(f"exit code {code}: {difference(report) or last_line(err)}")
    found = report.get("kernel") or ""
    if not re.search(kernel, found):
        raise Failed(f"kernel {found[:80]}, not {kernel}; {difference(report)[:150]}")
    return f"{found[:70]}, command {report.get('command')}, {report.get('bytes_differing')} bytes"


def refused(row, program, message, env=None, options=WINDOW, is_tried_first=False):
    """`is_tried_first`: the program says that it failed rather than that it cannot run here."""
    if is_tried_first:
        code, out, err = row.call(program, 60, env)
        if code:
            raise Skipped(f"does not run here: {last_line(err, out)}")
    row.record(program, options, env=env)
    facts = row.facts()
    windows = (facts.get("replay") or {}).get("windows", [])
    if any(window["replayable"] and window["complete"] for window in windows):
        raise Failed("the window counts as replayable")
    reasons = [window.get("failed") or "; ".join(row["reason"] for row in window.get("unreplayable", [])) for window in windows]
    reasons += [loss.get("reason", "") for loss in facts.get("loss", [])]
    found = next((reason for reason in reasons if re.search(message, reason)), None)
    code, _, err = row.replay("--check", "final", seconds=60)
    if not found:
        raise Failed(f"not named: {'; '.join(filter(None, reasons))[:200] or last_line(err)}")
    if code == 0:
        raise Failed("replay ends with exit code 0")
    return found[:110]


def spinning(row):
    """A kernel that never ends in a replay: the time limit names it, and Ctrl-C ends it."""
    row.record([PROGRAM, "spin"], WINDOW)
    row.window()
    begin = time.monotonic()
    code, out, err = row.replay("--time-limit", "2", seconds=60)
    took = time.monotonic() - begin
    if code != 4 or "spin_on_host" not in out + err:
        raise Failed(f"--time-limit: exit code {code}: {last_line(err, out)}")
    begin = time.monotonic()
    code, out, err = row.replay(seconds=60, input_signal=(5, signal.SIGINT))
    after = time.monotonic() - begin - 5
    if code not in (130, -2):
        raise Failed(f"Ctrl-C: exit code {code}: {last_line(err, out)}")
    if after > 2:
        raise Failed(f"Ctrl-C took {after:.1f} s")
    return f"time limit of 2 s: {took:.1f} s; Ctrl-C: {after:.2f} s"


def pageable(row):
    """Memory of malloc() is not captured: the replay fails, and names the kernel."""
    row.record([PROGRAM, "pageable"], WINDOW)
    row.window()
    code, out, err = row.replay("--check", "final")
    if code == 0 or "read_host" not in out + err:
        raise Failed(f"exit code {code}: {last_line(err, out)}")
    return last_line(err, out)[:110]


def selected(row):
    """Parts of a window: each ends with exit code 0."""
    row.record([PROGRAM, "streams"], WINDOW)
    window = row.window()
    code, out, _ = row.replay("--list", "--json")
    streams = [found["stream"] for found in map(json.loads, out.splitlines()) if found.get("kind") == "launch"] if not code else []
    if not streams:
        raise Failed("--list names no stream")
    notes = []
    for options in (["--kernel", "*mix_numbers*#3", "--repeat", "5"], ["--stream", str(streams[0])],
                    ["--from", str(window["first_command"]), "--to", str(window["first_command"] + 9)]):
        code, report, err = row.report(*options)
        if code:
            raise Failed(f"{' '.join(options)}: exit code {code}: {difference(report) or last_line(err)}")
        notes.append(f"{options[0]}: {report.get('asked')}+{report.get('included')}")
    return "; ".join(notes)


def dumped(row):
    """An independent check: memory that the program wrote to a file is what the replay shows."""
    path = os.path.join(row.work, "memory")
    out = row.record([PROGRAM, "plain"], WINDOW, env={"REPLAY_PROGRAM_DUMP": path})
    window = row.window()
    found = re.search(r"^memory (0x[0-9a-f]+) (\d+)$", out, re.M)
    if not found:
        raise Failed("the program wrote no memory")
    code, report, err = row.report("--at", str(window["last_command"]), "--dump", f"{found[1]}:4096", "--as", "u32", "--limit", "0")
    content = open(path, "rb").read()[:4096]
    expected = [int.from_bytes(content[at:at + 4], "little") for at in range(0, 4096, 4)]
    values = (report.get("dump") or {}).get("values") or []
    if code or values != expected:
        equal = sum(left == right for left, right in zip(expected, values))
        raise Failed(f"exit code {code}: {equal} of 1024 values are equal: {last_line(err)}")
    return "1024 values are equal"


def stepped(row, program, env=None):
    """A window of five training steps in the middle of a run, by their numbers."""
    row.record(program, ["--window", "steps:3-7"], env=env)
    window = row.window(launches=5)
    each, _ = row.must_equal("--check", "each")
    final, _ = row.must_equal("--check", "final")
    code, report, err = row.report("--step", "5-6")
    if code:
        raise Failed(f"--step 5-6: exit code {code}: {difference(report) or last_line(err)}")
    return summary(row, window, each, final)


def random_programs(row, first, last):
    """Each is recorded by a process of its own."""
    if not os.path.exists(RANDOM):
        raise Skipped("there is no generator of programs here")
    failed, launches = [], 0
    for seed in range(first, last + 1):
        try:
            row.record([RANDOM, "--seeds", f"{seed}-{seed}"])
            launches += row.window()["launches"]
            row.must_equal("--check", "each", repeat=2)
            row.must_equal("--check", "final", repeat=2)
        except Failed as fault:
            failed.append(f"seed {seed}: {fault}")
    row.figures["programs"] = last + 1 - first
    if failed:
        raise Failed(f"{len(failed)} of {last + 1 - first}: {failed[0]}")
    return f"{last + 1 - first} programs, {launches} launches"


# ---- the rows ----

def torch_rows():
    python = [sys.executable, os.path.join(HERE, "replay_workloads.py")]
    caches = {"TORCHINDUCTOR_CACHE_DIR": os.path.join(WORK, "inductor"), "TRITON_CACHE_DIR": os.path.join(WORK, "triton"),
              "CUPY_CACHE_DIR": os.path.join(WORK, "cupy")}

    def exact(name, title=None, **options):
        Row(title or name, options.pop("group", "torch"), bit_exact, [*python, name], env=caches, **options)

    # Those that take longest come first.
    for name in ("compile", "transformer", "transformer-bf16", "libraries", "triton"):
        exact(name, launches=5)
    # XLA may end its transfers with functions of the host.
    exact("jax", group="frameworks", launches=5, may_be_refused="host function")
    exact("cupy", group="frameworks", launches=5)
    for name in ("mlp", "mlp-bf16", "dropout", "adamw-foreach", "adamw-fused", "accumulate", "amp", "graph", "graph-async", "mlp-async", "expandable", "streams", "deterministic"):
        exact(name, launches=5)
    for name in ("language", "reduced", "lstm", "residual", "loader", "special"):
        exact(name, group="models", launches=5)
    exact("mlp", "mlp-whole", options=())
    exact("mlp", "mlp-checked", checked=True)
    Row("mlp-steps", "torch", stepped, [*python, "mlp", "8"], env=caches)
    for name, kernel in (("convolution", r"(?i)wgrad|dgrad|conv|bgrad|cudnn|cutlass"), ("index_add", r"(?i)index"), ("scatter_add", r"(?i)scatter")):
        Row(name, "nondeterministic", not_deterministic, [*python, name], kernel, env=caches)
    Row("refused-nccl", "refused", refused, [*python, "nccl"], "NCCL", env=caches)


def program_rows():
    for mode in ("plain", "globals", "cooperative", "clusters", "attributes", "streams", "graph", "graph-memory", "pools", "host", "copies"):
        Row("c-" + mode, "c", bit_exact, [PROGRAM, mode], launches=0 if mode == "copies" else 4, is_compared_with_bare=True)
    Row("c-answers", "c", bit_exact, [PROGRAM, "answers", "1"], is_compared_with_bare=True)
    Row("c-globals-rdc", "c", bit_exact, [PROGRAM_RDC, "globals,cooperative"], launches=4)
    # A window from the start of the process, with everything after each other.
    Row("c-whole", "c", bit_exact, [PROGRAM, "plain,globals,streams,graph,pools,host,copies"], options=(), launches=40)
    # Variables, constants, pointers to functions, cooperative launches, clusters and a graph in one program.
    Row("c-together", "c", bit_exact, [PROGRAM, "globals,cooperative,clusters,graph"], options=(), launches=16)
    Row("c-checked", "c", bit_exact, [PROGRAM, "globals"], checked=True, launches=4)
    Row("c-graph-checked", "c", bit_exact, [PROGRAM, "graph"], checked=True, launches=4)
    Row("c-race", "nondeterministic", not_deterministic, [PROGRAM, "race"], "race_read|race_write", repeat=8)
    Row("c-atomics", "nondeterministic", not_deterministic, [PROGRAM, "atomics"], "atomic_sum")
    Row("spin", "c", spinning)
    Row("pageable", "c", pageable)
    Row("selected", "c", selected)
    Row("dumped", "c", dumped)


# What is done, the message's begin, and whether what it made prevents a window, too.
REFUSALS = (
    ("host-function", "host function", False), ("callback", "host function|callback", False), ("write-value", "memory operation of a stream", False),
    ("write-value-64", "memory operation of a stream", False), ("wait-value", "memory operation of a stream", False), ("batch", "memory operation of a stream", False),
    ("array", "array", True), ("mipmap", "array|mipmap", True), ("texture", "texture", True), ("surface", "surface|array", True), ("managed", "managed memory", True),
    ("ipc-event", "another process|IPC", True), ("shareable", "another process|shareable", True), ("import", "another process|shareable", True),
    ("external-memory", "external memory|another process|shareable", True), ("multicast", "multicast", True), ("green-context", "green context", True),
    ("host-node", "graph node: host|host function", False), ("captured-host-function", "host function|graph node: host", False),
    ("conditional-node", "graph node: conditional|conditional", False), ("memory-operation-node", "graph node: memory operation|memory operation", False),
    ("updatable-node", "launch attribute|updatable", False), ("malloc", "malloc|free", False), ("export-table", "export table", True),
    ("peer", "peer access", True),
)


def refused_rows():
    for name, message, is_lasting in REFUSALS:
        Row("refused-" + name, "refused", refused, [REFUSED, name], message)
        if is_lasting:
            Row(f"refused-{name}-early", "refused", refused, [REFUSED, name, "early"], message)
        elif name in ("host-function", "write-value", "host-node"):
            # Over before the window opens, so nothing to refuse.
            Row(f"allowed-{name}-early", "refused", bit_exact, [REFUSED, name, "early"])
    Row("c-printf", "c", bit_exact, [REFUSED, "printf"])
    Row("refused-nested", "refused", refused, [NESTED, "nested"], "nested_parent|launches kernels|dynamic parallelism")
    Row("refused-device-graph", "refused", refused, [NESTED, "device-graph"], "device|graph")
    Row("refused-managed-global", "refused", refused, [MANAGED, "managed-global"], "managed")
    Row("refused-managed-global-early", "refused", refused, [MANAGED, "managed-global", "early"], "managed")


def modes_of(program):
    """Lines of "program list"."""
    try:
        return subprocess.run([program, "list"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return []


def work_rows():
    """The programs of tests/cuda, which also run without a GPU."""
    for mode in modes_of(WORKS):
        Row("w-" + mode, "work", bit_exact, [WORKS, mode], options=(), launches=0)
    for line in modes_of(REFUSED_WORKS):
        mode, _, rest = line.partition("|")
        reason = rest.rpartition("|")[0]
        Row("w-refused-" + mode, "refused", refused, [REFUSED_WORKS, mode], re.escape(reason), options=(), is_tried_first=True)


def random_rows(count, size=10):
    for first in range(1, count + 1, size):
        Row(f"random-{first}", "random", random_programs, first, min(first + size - 1, count))


# ---- all of them ----

def is_chosen(row, patterns):
    return not patterns or any(pattern == row.group or fnmatch.fnmatch(row.name, pattern) for pattern in patterns)


def needs_program(row):
    """A program that was not built: no toolkit."""
    command = next((argument for argument in row.arguments if isinstance(argument, list)), [])
    path = command[0] if command and command[0].startswith(BUILD) else None
    return path if path and not os.path.exists(path) else None


def line_of(row):
    return f"{row.name:<28} {row.state:<8} {row.seconds:>5.1f} s  {row.note}"[:230]


def grouped(found):
    """Refusals and random programs have a line in total, and one for each that failed."""
    lines = []
    for row in found:
        if row.group not in ("refused", "random") or row.state == "FAILED":
            lines.append(line_of(row))
    for group in ("refused", "random"):
        of_group = [row for row in found if row.group == group]
        if of_group:
            states = [row.state for row in of_group]
            left = ", ".join(row.name for row in of_group if row.state == "skipped")
            lines.append(f"{group + ' (' + str(len(states)) + ')':<28} {states.count('ok')} ok, {states.count('FAILED')} failed" + (f"; skipped: {left}"[:300] if left else ""))
    return lines


def store(found, out):
    if not out:
        return
    with open(os.path.join(out, "replay.json"), "w") as file:
        json.dump({"rows": [{"name": row.name, "group": row.group, "state": row.state, "seconds": round(row.seconds, 1), "note": row.note, **row.figures}
                            for row in found]}, file, indent=1)
    with open(os.path.join(out, "replay-rows.log"), "w") as file:
        for row in found:
            file.write(f"==== {line_of(row)}\n" + "\n".join(row.log)[-LOG_BYTES:] + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="")
    parser.add_argument("--jobs", type=int, default=max(2, min(12, (os.cpu_count() or 4) * 3 // 4)))
    parser.add_argument("--limit", type=float, default=540)
    parser.add_argument("--out", default="")
    parser.add_argument("--quick", action="store_true", help="20 random programs instead of 200")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    options = parser.parse_args()
    torch_rows()
    random_rows(20 if options.quick else 200)
    program_rows()
    work_rows()
    refused_rows()
    patterns = [word for word in options.rows.split(",") if word]
    chosen = [row for row in rows.values() if is_chosen(row, patterns)]
    if options.list:
        print("\n".join(f"{row.group:<18} {row.name}" for row in chosen))
        return 0
    deadline = time.monotonic() + options.limit
    lock, done = threading.Lock(), []

    def one(row):
        absent = needs_program(row)
        if absent:
            row.note = f"{os.path.basename(absent)} was not built (no nvcc?)"
        else:
            row.run(deadline)
        with lock:
            done.append(row)
            print(line_of(row), flush=True)
            if row.state == "FAILED":
                print("\n".join(row.log)[-1500:], flush=True)
            store([row for row in chosen if row in done], options.out)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, chosen))
    for row in chosen:
        if row.state == "FAILED":
            problems.append(f"{row.name}: {row.note}")
        elif row.state == "skipped":
            left_out.append(f"{row.name}: {row.note}")
        elif row.figures.get("no_times"):
            missed.append(f"{row.name}: no kernel has a recorded time")
    states = [row.state for row in chosen]
    figures.update(ok=states.count("ok"), failed=states.count("FAILED"), skipped=states.count("skipped"))
    print_result_with(grouped(chosen))
    return 1 if problems else 0


def print_result_with(lines):
    print("result:", json.dumps({"figures": figures, "problems": problems, "missed": missed, "left_out": left_out, "lines": lines}))


sys.exit(main())
