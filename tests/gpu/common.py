# SPDX-License-Identifier: Apache-2.0
"""Shared by the checks in this folder: recording a program, reading the trace with the tool,
invariants of every trace, and reporting. Each check is a program: exit code 0, 1 or 77
(skipped), figures as JSON after "result: " in its last line.

Environment (set by tests/gpu/run.sh): TRACESMITH the tool, TS_SOURCE the repository, TS_GPU_BUILD
the build, TS_GPU_WORK a scratch directory.
"""
import collections, ctypes, importlib.util, json, os, statistics, subprocess, sys, time

SOURCE = os.environ.get("TS_SOURCE") or os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.environ.get("TS_GPU_BUILD", os.path.join(SOURCE, "build"))
TOOL = os.environ.get("TRACESMITH", os.path.join(BUILD, "tracesmith"))
WORK = os.environ.get("TS_GPU_WORK", ".")
HERE = os.path.dirname(os.path.realpath(__file__))
LAUNCHES = os.path.join(BUILD, "gpu", "launches")
RUNTIME = os.path.join(BUILD, "gpu", "runtime")
ONLY_CUPTI = os.path.join(BUILD, "gpu", "libcupti_only.so")
WORKLOADS = [sys.executable, os.path.join(HERE, "workloads.py")]
LAUNCH_NAMES = ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel")

OP_COLUMNS = "start,duration,kind,name,correlation,grid_x,process,graph_node"
CALL_COLUMNS = "start,duration,thread,name,correlation,result"

problems = []
missed = []
left_out = []
figures = {}


# ---- reporting ----

def expect(condition, text):
    """Continues after a failure, so that one run reports all."""
    if not condition:
        problems.append(text)
        print("FAULT:", text, flush=True)
    return condition


def aim(condition, text):
    """A figure that misses its target is not a failure, but is shown."""
    if not condition:
        missed.append(text)
        print("MISSED:", text, flush=True)
    return condition


def leave_out(text):
    """Reports a part of a check that cannot run here, with the reason."""
    left_out.append(text)
    print("skipped:", text, flush=True)


def skip(reason):
    """Earlier failures stay failures."""
    if problems:
        finish()
    print("skip:", reason)
    sys.exit(77)


def finish():
    print_result()
    sys.exit(1 if problems else 0)


def print_result():
    print("result:", json.dumps({"figures": figures, "problems": problems, "missed": missed, "left_out": left_out}))


def module_or_skip(name):
    """A package that the machine may not have."""
    if not importlib.util.find_spec(name):
        skip("no " + name + " here")


# ---- running ----

def run(command, seconds=120, env=None, **options):
    """Returns its output as text. A program that does not end in time is killed, which is a
    failure."""
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.STDOUT)
    print("+", " ".join(map(str, command)), flush=True)
    try:
        done = subprocess.run(command, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, timeout=seconds, text=True, errors="replace", **options)
    except subprocess.TimeoutExpired:
        expect(False, f"did not end within {seconds} s: {' '.join(map(str, command))[:120]}")
        return subprocess.CompletedProcess(command, 124, "", "")
    print((done.stdout or "")[-4000:], flush=True)
    # If a kernel could be launched before, a program that finds no device is a failure.
    if done.returncode == 77 and not os.environ.get("TS_GPU_HERE"):
        skip((done.stdout or "").strip()[-100:])
    return done


def trace_path(name):
    return os.path.join(WORK, name + ".sbt")


def record_command(name, command, options=(), backends="cuda"):
    chosen = ["--backends", backends] if backends else []
    return [TOOL, "record", "-q", "-o", trace_path(name), *chosen, *options, "--", *command]


def record(name, command, options=(), seconds=120, env=None, backends="cuda", code=0):
    """Records a program. Returns its verified trace."""
    done = run(record_command(name, command, options, backends), seconds, env)
    expect(done.returncode == code, f"{name}: exit code {done.returncode}, not {code}: {(done.stdout or '')[-200:]}")
    return Trace(trace_path(name), done.stdout)


# ---- reading ----

class Trace:
    def __init__(self, path, output=""):
        self.path, self.output, self.kept = path, output, {}
        if not os.path.exists(path):
            expect(False, "no trace " + path)
            finish()
        checked = subprocess.run([TOOL, "verify", "-q", path], capture_output=True, text=True, timeout=120)
        expect(checked.returncode == 0, f"verify: {checked.stdout[-200:]}{checked.stderr[-200:]}")

    def rows(self, table, columns=None, *options):
        command = [TOOL, "view", self.path, "--table", table, "--json", *options]
        if columns:
            command += ["--columns", columns]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as view:
            return [json.loads(line) for line in view.stdout]

    def keep(self, table, columns=None):
        if table not in self.kept:
            self.kept[table] = self.rows(table, columns)
        return self.kept[table]

    def ops(self):
        return self.keep("gpu_op", OP_COLUMNS)

    def kernels(self):
        return [row for row in self.ops() if row["kind"] in ("kernel", "collective")]

    def calls(self):
        return self.keep("api_call", CALL_COLUMNS)

    def launches(self):
        return [row for row in self.calls() if is_launch(row["name"])]

    def losses(self):
        return self.keep("loss")

    def facts(self):
        return {row["key"]: row.get("value") for row in self.keep("meta")}

    def uncertainty_ns(self):
        return max((row["uncertainty_ns"] for row in self.keep("clock_sync")), default=0)

    def call_of(self):
        """Calls by (pid, correlation)."""
        return {(row.get("pid"), row["correlation"]): row for row in self.calls() if row.get("correlation")}

    def bytes(self):
        return os.path.getsize(self.path)


def is_launch(name):
    return name.removesuffix("_ptsz") in LAUNCH_NAMES


# ---- invariants of every trace ----

def check_complete(trace, name, may_lose=()):
    """Nothing is lost; each kernel has its call, and no command begins before its call. Reports
    copies without a call of the program (the driver's own)."""
    side = trace.facts().get("cuda_device_side")
    expect(not isinstance(side, dict) or side.get("state") != "off", f"{name}: the device side is off: {side}")
    # Programs that the agent cannot enter (static ones, such as ldconfig, which some libraries run)
    # are reported there, too.
    losses = [row for row in trace.losses() if row.get("what") != "process" and not any(word in row.get("reason", "") for word in may_lose)]
    expect(not losses, f"{name}: lost: {losses[:3]}")
    by_correlation = trace.call_of()
    uncertainty = trace.uncertainty_ns()
    without, early, worst = collections.Counter(), 0, 0
    for op in trace.ops():
        call = by_correlation.get((op.get("pid"), op.get("correlation")))
        if not call:
            without[op["kind"]] += 1
        elif op.get("start") is not None and op["start"] + uncertainty < call["start"]:
            early += 1
            worst = max(worst, call["start"] - op["start"])
    expect(not without["kernel"] and not without["collective"], f"{name}: {dict(without)} of {len(trace.ops())} commands have no call")
    if without:
        figures["without_call"] = dict(without)
    expect(early == 0, f"{name}: {early} commands begin before their call by more than {uncertainty} ns, at most by {worst} ns")
    untimed = sum(1 for op in trace.ops() if op.get("duration", -1) < 0 or not op.get("start"))
    expect(untimed == 0, f"{name}: {untimed} commands have no times")
    return uncertainty


# ---- an independent count ----

def oracle(command, seconds=120, env=None, name="oracle"):
    """Kernels of a separate run, counted by a library that uses only CUPTI
    (tests/gpu/cupti_only.c): {name: (count, total ns)}; None: not available."""
    path = os.path.join(WORK, name + ".counts")
    if not os.path.exists(ONLY_CUPTI):
        return None
    if os.path.exists(path):
        os.unlink(path)
    done = run(command, seconds, {"CUDA_INJECTION64_PATH": ONLY_CUPTI, "CUPTI_ONLY_OUT": path, **(env or {})})
    if not expect(done.returncode == 0 and os.path.exists(path), f"the counting run gave {done.returncode}"):
        return None
    found = collections.defaultdict(lambda: (0, 0))
    for line in open(path):
        count, total, kernel = line.rstrip("\n").split(" ", 2)
        kernel = demangled(kernel)
        found[kernel] = (found[kernel][0] + int(count), found[kernel][1] + int(total))
    return dict(found)


def demangled(name):
    if not name.startswith("_Z"):
        return name
    if not hasattr(demangled, "function"):
        library = ctypes.CDLL("libstdc++.so.6")
        demangled.function = library.__cxa_demangle
        demangled.function.restype = ctypes.c_void_p
        demangled.free = ctypes.CDLL(None).free
    status = ctypes.c_int()
    found = demangled.function(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return name
    text = ctypes.string_at(found).decode()
    demangled.free(ctypes.c_void_p(found))
    return text


def compare_counts(ours, theirs, name):
    """Compares multisets of names: ours and an independent count."""
    missing = collections.Counter(theirs) - collections.Counter(ours)
    more = collections.Counter(ours) - collections.Counter(theirs)
    expect(not missing and not more, f"{name}: {sum(ours.values())} kernels, counted {sum(theirs.values())}; "
           f"missing {dict(missing.most_common(3))}, too many {dict(more.most_common(3))}"[:700])


def compare_times(ours_ns, theirs_ns, name, percent=2.0):
    difference = 100 * (ours_ns / theirs_ns - 1) if theirs_ns else 0
    expect(abs(difference) <= percent, f"{name}: device time {ours_ns / 1e6:.3f} ms, counted {theirs_ns / 1e6:.3f} ms: {difference:+.2f} %")
    return difference


def settle_times(pairs, again, name, percent=2.0):
    """Compares total times of ours and of a count, [(ours, theirs)]: while their medians differ,
    both run again, at most twice, since a GPU's clock changes. Returns the difference in
    percent."""
    for _ in range(2):
        ours, theirs = (statistics.median(values) for values in zip(*pairs))
        if theirs and abs(100 * (ours / theirs - 1)) <= percent:
            break
        pairs.append(again())
    ours, theirs = (statistics.median(values) for values in zip(*pairs))
    return round(compare_times(ours, theirs, name, percent), 2)


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_REALTIME)
