#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures CUDA replay: what recording for it costs outside and inside of a window, sizes of traces,
and how well a replay reproduces the recorded times.

    bench/cuda_replay.py --tool TOOL --launches PROGRAM --out DIR [--program PROGRAM] [--spool PROGRAM] [--only PARTS]
    bench/cuda_replay.py --table DIR/cuda_replay.json      prints the table of a result

PARTS: outside, inside, replays, kernels, snapshot; default: all.

outside   a launch-bound loop in C with the window closed. Processes with --replayable, without it
          and without a recorder take turns every 30 ms; CUPTI is loaded and off in both recorded
          ones. Processes differ by their addresses, so intervals come from a bootstrap over
          processes, too. Then, within one process, launches through the wrapper take turns with
          launches straight to the driver.
inside    a process with --replayable and one without take turns in the same way, with their windows
          closed, open, and closed again. The figure divides one ratio by the other: CUPTI is on in
          both. Measured after the snapshot.
replays   times of the device and of the whole, replayed by recorded (--check none), set-up and size.
kernels   --kernel: a GEMM, an attention and a softmax kernel alone, against all recorded launches.
snapshot  rate at which memory leaves the device when a window opens; the medium is named. With
          --spool also without a device: threads that fill the spool, and peers beside it.

Writes DIR/cuda_replay.json and DIR/cuda_replay.md. A missed target is reported, and no failure.
"""
import argparse, contextlib, json, os, random, re, shutil, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../tests/gpu")]
from common import demangled
from cuda import Figures, TARGET, Worker, interval, machine

WORKLOADS = [sys.executable, os.path.join(HERE, "../tests/gpu/replay_workloads.py")]
WINDOW = ["--window", "cuda-profiler-api"]
BARE, RECORDED, REPLAYABLE, CHECKED = "bare", "recorded", "replayable", "checked"
RECORD_OPTIONS = {RECORDED: [], REPLAYABLE: ["--replayable"], CHECKED: ["--replayable=checked"]}
# Its launches are waited for one by one, and memory is hashed after each.
CHECKED_SHARE = 10
REPLAYED = ("mlp", "transformer", "graph", "libraries")
KERNELS = (("GEMM", r"(?i)gemm|nvjet|cutlass|xmma"), ("attention", r"(?i)flash|fmha|attention|sdpa"), ("softmax", r"(?i)softmax"))


class ReplayFigures(Figures):
    """`at_least`: a target from below; `bounds`: an interval that is known; `holds`: decided by
    the caller, with `target` as text; `pairs`: how many, if not one a value."""

    def add(self, name, values, unit, target=None, at_least=None, bounds=None, holds=None, pairs=None):
        value = statistics.median(values)
        low, high = bounds or (interval(values) if len(values) > 1 else (value, value))
        if holds is None and (target is not None or at_least is not None):
            holds = value <= target if at_least is None else value >= at_least
        text = target if isinstance(target, str) else f"<= {target}" if target is not None else f">= {at_least}" if at_least is not None else None
        line = f"{name:<64} {value:>10.3f} {unit:<14} [{low:.3f}, {high:.3f}] {'' if holds is None else 'ok' if holds else 'MISSED, ' + text}".rstrip()
        self.rows.append({"name": name, "value": round(value, 4), "low": round(low, 4), "high": round(high, 4), "unit": unit, "pairs": pairs or len(values),
                          "target": text, "holds": holds})
        self.lines.append(line)
        print(line, flush=True)


def clustered(groups, rounds=2000):
    """The 95 % bootstrap interval of the median of values in groups (processes): groups are drawn
    first, then values in them."""
    chooser = random.Random(1)
    medians = []
    for _ in range(rounds):
        drawn = [value for group in chooser.choices(groups, k=len(groups)) for value in chooser.choices(group, k=len(group))]
        medians.append(statistics.median(drawn))
    medians.sort()
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def trace_of(name, options):
    return os.path.join(options.work, name + ".sbt")


def record_command(name, way, program, options, *more):
    return [options.tool, "record", "-q", "-o", trace_of(name, options), "--backends", "cuda", "--stacks", "none", "--no-symbols",
            *RECORD_OPTIONS[way], *more, "--", *program]


def run(command, seconds, env=None):
    """Its output. Raises OSError or subprocess.SubprocessError."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=seconds,
                          env={**os.environ, **(env or {})})
    if done.returncode:
        print(f"exit code {done.returncode}: {' '.join(command)[-200:]}: {done.stderr[-300:]}", flush=True)
        raise subprocess.SubprocessError(done.stderr[-200:])
    return done.stdout


@contextlib.contextmanager
def running(workers):
    """Drops those that do not start, and ends them all."""
    for way, worker in list(workers.items()):
        try:
            worker.start()
        except (TimeoutError, AssertionError) as fault:
            print(f"{way}: {fault}", flush=True)
            worker.process.kill()
            del workers[way]
    try:
        yield workers
    finally:
        for worker in workers.values():
            worker.end_input()
        for worker in workers.values():
            worker.stop()


# ---- pairs of processes ----

SLICE = {"launches": 10000, "mlp": 16, "transformer": 4}  # steps: 20 to 40 ms


def seconds_a_step(worker, name, steps):
    return worker.ask(str(steps) if name == "launches" else f"{name} {steps}")[0] / steps


def ask_pairs(workers, names, count, chooser, steps=SLICE):
    """{name: [{way: seconds a step}]}: all ways take turns, so that each pair sees one state of the machine."""
    found = {name: [] for name in names}
    for _ in range(count):
        for name in names:
            found[name].append({way: seconds_a_step(workers[way], name, steps[name]) for way in chooser.sample(list(workers), len(workers))})
    return found


def percents(pairs, way, base):
    return [100 * (pair[way] / pair[base] - 1) for pair in pairs if way in pair and base in pair]


# ---- outside of a window ----

def measure_outside(figures, options):
    program, chooser = [options.launches, "serve"], random.Random(7)
    groups = {RECORDED: [], BARE: []}
    nanoseconds, wrapped = {}, []
    for _ in range(2 * options.generations):
        commands = {BARE: program, RECORDED: record_command("outside-recorded", RECORDED, program, options, "--window", "command"),
                    REPLAYABLE: record_command("outside-replayable", REPLAYABLE, program, options, "--window", "command")}
        with running({way: Worker(command) for way, command in commands.items()}) as workers:
            pairs = ask_pairs(workers, ["launches"], 2 * options.rounds, chooser)["launches"]
            if REPLAYABLE in workers:
                wrapped.append(ask_direct(workers[REPLAYABLE], 2 * options.rounds, chooser))
        for pair in pairs:
            for way, seconds in pair.items():
                nanoseconds.setdefault(way, []).append(1e9 * seconds)
        for base in groups:
            values = percents(pairs, REPLAYABLE, base)
            if values:
                groups[base].append(values)
    for way, values in nanoseconds.items():
        figures.add(f"a launch in C, window closed, {way}", values, "ns")
    for base, target in ((RECORDED, 1.0), (BARE, None)):
        add_groups(figures, f"a launch in C, window closed: --replayable over {base}", groups[base], target)
    add_groups(figures, "a launch in C, window closed: --replayable over the driver's function, in one process", wrapped)


def ask_direct(worker, count, chooser):
    """What the wrapper costs, in % of a launch that calls the driver's function, in one process: its addresses are the same."""
    found = []
    for _ in range(count):
        seconds = {}
        for is_direct in chooser.sample([0, 1], 2):
            worker.ask(f"direct {is_direct}")
            seconds[is_direct] = seconds_a_step(worker, "launches", SLICE["launches"])
        found.append(100 * (seconds[0] / seconds[1] - 1))
    worker.ask("direct 0")
    return found


def add_groups(figures, name, groups, target=None):
    """Values by process."""
    if groups:
        figures.add(name, [value for group in groups for value in group], "% longer", target, bounds=clustered(groups))


# ---- inside of a window ----

# A snapshot is drained while the program runs: that must be over.
SETTLE_SECONDS = 1.5


def windowed(ways, program, settle_seconds, options):
    return {way: Worker(record_command("inside-" + way, way, program, options, *WINDOW), {"TS_SETTLE_SECONDS": settle_seconds}) for way in ways}


def open_windows(workers, name):
    for worker in workers.values():
        worker.ask("window 1")
    end = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < end:
        for worker in workers.values():
            seconds_a_step(worker, name, 4)


def inside_ratio(closed, opened, way):
    """How much longer a step takes, beyond what these two processes differ by anyway."""
    return (1 + statistics.median(percents(opened, way, RECORDED)) / 100) / (1 + statistics.median(percents(closed, way, RECORDED)) / 100)


def inside_bounds(groups, way, rounds=1000):
    """The 95 % bootstrap interval: processes are drawn first, then pairs in them."""
    chooser = random.Random(1)
    found = []
    for _ in range(rounds):
        drawn = [[chooser.choices(part, k=len(part)) for part in group] for group in chooser.choices(groups, k=len(groups))]
        found.append(100 * (statistics.median(inside_ratio(*group, way) for group in drawn) - 1))
    found.sort()
    return found[int(0.025 * rounds)], found[int(0.975 * rounds)]


def measure_inside(figures, options):
    """Each generation has a process with --replayable and one without. Pairs with both windows closed tell how these two
    processes differ by their addresses, pairs with both open what a window costs."""
    chooser = random.Random(7)
    for program, names in (([options.launches, "serve"], ["launches"]), (TARGET, ["mlp", "transformer"])):
        groups = {name: [] for name in names}
        for _ in range(options.generations):
            with running(windowed((RECORDED, REPLAYABLE), program, "0.004", options)) as workers:
                closed = ask_pairs(workers, names, options.rounds, chooser)
                open_windows(workers, names[0])
                opened = ask_pairs(workers, names, 2 * options.rounds, chooser)
                for worker in workers.values():
                    worker.ask("window 0")
                for name, pairs in ask_pairs(workers, names, options.rounds, chooser).items():
                    groups[name].append((closed[name] + pairs, opened[name]))
        for name in names:
            add_inside(figures, name, groups[name])
        measure_checked(figures, program, names, options, chooser)


def add_inside(figures, name, groups):
    groups = [group for group in groups if all(percents(pairs, REPLAYABLE, RECORDED) for pairs in group)]
    if not groups:
        print(f"{name}: no process has answered", flush=True)
        return
    unit = "launch" if name == "launches" else "step"
    figures.add(f"{name}: a {unit}, window closed", [1e6 * pair[REPLAYABLE] for closed, _ in groups for pair in closed], "us")
    figures.add(f"{name}: a {unit}, recorded", [1e6 * pair[RECORDED] for _, opened in groups for pair in opened], "us")
    values = [100 * (inside_ratio(closed, opened, REPLAYABLE) - 1) for closed, opened in groups]
    figures.add(f"{name}: inside of a window, --replayable over recording", values, "% longer", 10, bounds=inside_bounds(groups, REPLAYABLE),
                pairs=sum(len(opened) for _, opened in groups))


def measure_checked(figures, program, names, options, chooser):
    with running(windowed((RECORDED, CHECKED), program, "0", options)) as workers:
        open_windows(workers, names[0])
        pairs = ask_pairs(workers, names, 3, chooser, {name: max(1, steps // CHECKED_SHARE) for name, steps in SLICE.items()})
    for name in names:
        values = percents(pairs[name], CHECKED, RECORDED)
        if values:
            figures.add(f"{name}: inside of a window, --replayable=checked over recording", values, "% longer")


# ---- replays ----

REPEAT = 3


def kernel_times(trace, options):
    """ns of all launches, by kernel."""
    found = {}
    for line in run([options.tool, "view", trace, "--table", "gpu_op", "--columns", "kind,name,start,duration", "--json"], 60).splitlines():
        row = json.loads(line) if line.startswith("{") else {}
        if row.get("kind") == "kernel" and row.get("duration", -1) >= 0:
            found.setdefault(row["name"], []).append(row["duration"])
    return found


def counted_times(path):
    """{kernel: (launches, ns)} as tests/gpu/cupti_only.c writes them."""
    found = {}
    for line in open(path):
        count, ns, name = line.rstrip("\n").split(" ", 2)
        name = demangled(name)
        before = found.get(name, (0, 0))
        found[name] = before[0] + int(count), before[1] + int(ns)
    return found


def replay_once(name, options, found):
    """Times of the device are CUPTI's, as those of the recording are."""
    report = json.loads(run([options.tool, "replay", trace_of(name, options), "--check", "none", "--repeat", str(REPEAT), "--json"], 120))
    if report.get("recorded_span_ns"):
        found["wall"].append(report["span_ns"] / report["recorded_span_ns"])
    if report.get("setup_ns"):
        found["setup"].append((report["setup_ns"] / 1e9, report.get("restored_bytes") or 0))
    kernels = [kernel for kernel in report.get("kernels") or [] if kernel.get("recorded_ns") and kernel.get("median_ns") and kernel["recorded_launches"] == kernel["launches"]]
    if kernels:
        found["device"].append(100 * (sum(kernel["median_ns"] for kernel in kernels) / sum(kernel["recorded_ns"] for kernel in kernels) - 1))


def replay_counted(name, options, found):
    """The same, but counted by a library that the replay knows nothing of."""
    trace, counts = trace_of(name, options), trace_of(name, options) + ".counts"
    run([options.tool, "replay", trace, "--check", "none", "--repeat", str(REPEAT)], 150, {"CUDA_INJECTION64_PATH": options.cupti_only, "CUPTI_ONLY_OUT": counts})
    recorded = {}
    for kernel, times in kernel_times(trace, options).items():
        recorded.setdefault(demangled(kernel), []).extend(times)
    replayed = counted_times(counts)
    names = [kernel for kernel in recorded if replayed.get(kernel, (0, 0))[0] == REPEAT * len(recorded[kernel])]
    if names:
        found["counted"].append(100 * (sum(replayed[kernel][1] for kernel in names) / REPEAT / sum(sum(recorded[kernel]) for kernel in names) - 1))
    if len(names) < len(recorded):
        print(f"{name}: {len(recorded) - len(names)} of {len(recorded)} kernels have another number of launches in the replay", flush=True)


def add_percent(figures, title, values):
    low, high = interval(values) if len(values) > 1 else (values[0], values[0])
    figures.add(title, values, "% longer", "within 3 %, or 0 in the interval", holds=abs(statistics.median(values)) <= 3 or low <= 0 <= high)


def measure_replays(figures, options):
    for name in REPLAYED:
        found = {"device": [], "counted": [], "wall": [], "setup": [], "bytes": []}
        for _ in range(options.recordings):
            try:
                run(record_command(name, REPLAYABLE, [*WORKLOADS, name, "20"], options, *WINDOW), 150)
                found["bytes"].append(os.path.getsize(trace_of(name, options)))
                for _ in range(options.replays):
                    replay_once(name, options, found)
                if options.cupti_only:
                    replay_counted(name, options, found)
            except (OSError, ValueError, subprocess.SubprocessError) as fault:
                print(f"{name}: {str(fault)[-200:]}", flush=True)
        if found["device"]:
            add_percent(figures, f"{name}: time on the GPU, replayed against recorded", found["device"])
        if found["counted"]:
            add_percent(figures, f"{name}: time on the GPU, replayed against recorded, by CUPTI alone", found["counted"])
        if found["wall"]:
            figures.add(f"{name}: first start to last end, replayed by recorded", found["wall"], "x", 1.1)
        if found["setup"]:
            bytes_most = max(size for _, size in found["setup"])
            figures.add(f"{name}: set-up, with {bytes_most / 1e6:.0f} MB of memory", [seconds for seconds, _ in found["setup"]], "s", round(1 + bytes_most / 20e9, 3))
        if found["bytes"]:
            figures.add(f"{name}: trace of 20 steps", [size / 1e6 for size in found["bytes"]], "MB")


# ---- single kernels ----

def measure_kernels(figures, options):
    run(record_command("kernels", REPLAYABLE, [*WORKLOADS, "kernels", "5"], options, *WINDOW), 150)
    trace = trace_of("kernels", options)
    kernels = kernel_times(trace, options)
    for title, pattern in KERNELS:
        found = {name: times for name, times in kernels.items() if re.search(pattern, name) and len(times) >= 5}
        if not found:
            print(f"{title}: no such kernel among {[name[:60] for name in kernels][:20]}", flush=True)
            continue
        name = max(found, key=lambda kernel: sum(found[kernel]))
        # The word of its name that says what it is, in whatever form names have.
        word = next(word for word in re.findall(r"\w+", name) if re.search(pattern, word))
        if sum(word in kernel for kernel in kernels) > 1:
            print(f"{title}: several kernels have {word} in their names", flush=True)
        add_kernel(figures, title, f"*{word}*", found[name], trace, options)


def add_kernel(figures, title, pattern, times, trace, options):
    report = json.loads(run([options.tool, "replay", trace, "--kernel", f"{pattern}#3", "--repeat", "30", "--json"], 120))
    timed = report.get("timed") or report
    warm, cold = (timed.get(key) or timed.get(key.replace("timed_", "")) for key in ("timed_warm_ns", "timed_cold_ns"))
    low, high = interval(times)
    middle = statistics.median(times)
    figures.add(f"{title} ({pattern.strip('*')[:40]}): recorded", [value / 1e3 for value in times], "us")
    if not warm:
        print(f"{title}: no times in {str(report)[:300]}", flush=True)
        return
    for way, value in (("warm", warm), ("cold", cold)):
        if value:
            difference = 100 * (value / middle - 1)
            bounds = 100 * (value / high - 1), 100 * (value / low - 1)
            figures.add(f"{title}: --kernel, L2 {way}, against recorded", [difference], "% longer", "within 5 %, or 0 in the interval" if way == "warm" else None,
                        bounds=bounds, holds=(abs(difference) <= 5 or bounds[0] <= 0 <= bounds[1]) if way == "warm" else None)
    if timed.get("clocks"):
        print(f"{title}: clocks {timed['clocks']}", flush=True)


# ---- snapshot ----

def medium(path):
    """The file system of the spool."""
    mounts = [line.split()[1:3] for line in open("/proc/mounts")]
    best = max((mount for mount in mounts if os.path.realpath(path).startswith(mount[0])), key=lambda mount: len(mount[0]), default=("?", "?"))
    return best[1]


def measure_snapshot(figures, options):
    """The trace is in memory, too: a disk would be slower than what is measured."""
    name, mib, work = "snapshot", 4096, options.work
    is_shared = os.access("/dev/shm", os.W_OK)
    if is_shared:
        options.work = tempfile.mkdtemp(prefix="tracesmith-snapshot.", dir="/dev/shm")
    try:
        if options.program:
            measure_memory(figures, options, name, mib)
        if options.spool:
            measure_spool(figures, options, mib // 2)
    finally:
        if is_shared:
            shutil.rmtree(options.work, ignore_errors=True)
        options.work = work


def measure_memory(figures, options, name, mib):
    rates, waits = [], []
    trace = trace_of(name, options)
    where = os.environ.get("TRACESMITH_LIVE_DIR", "/dev/shm")
    for _ in range(options.snapshots):
        run(record_command(name, REPLAYABLE, [options.program, "memory", "15"], options, *WINDOW, "--snapshot-limit", "16G"), 200, {"REPLAY_PROGRAM_MIB": str(mib)})
        facts = [json.loads(line) for line in run([options.tool, "view", trace, "--table", "meta", "--json"], 60).splitlines() if line.startswith("{")]
        found = next((row.get("value") for row in facts if row.get("key") == "cuda_snapshot"), None)
        print("cuda_snapshot:", found, flush=True)
        if isinstance(found, dict) and found.get("drain_ns"):
            size = found["bytes"]
            rates.append(found.get("stored", size) / found["drain_ns"])
            waits.append(found.get("held_ns", 0) / 1e6)
    if rates:
        figures.add(f"snapshot of {size / 1e9:.1f} GB: from the device to the spool ({medium(where)}; trace on {medium(trace)})", rates, "GB/s", at_least=20)
        figures.add("snapshot: the program waits", waits, "ms")
    figures.add(f"snapshot: trace of {mib / 1024:.0f} GiB of numbers that do not compress", [os.path.getsize(trace) / 1e9], "GB")


def measure_spool(figures, options, mib):
    """Without a device: as many threads as a snapshot has, and one; peers of the same bytes in the same process."""
    for threads in sorted({1, max(2, min(12, os.cpu_count() * 3 // 4))}):
        command = [options.tool, "record", "-q", "-o", trace_of("spool", options), "--backends", "opencl", "--no-symbols", *RECORD_OPTIONS[REPLAYABLE],
                   "--", options.spool, str(mib), str(threads)]
        found = {}
        for _ in range(options.snapshots):
            for row in (json.loads(line) for line in run(command, 200).splitlines() if line.startswith("{")):
                found.setdefault(row["way"], []).append(row)
        for way, rows in found.items():
            title = f"{mib / 1024:.0f} GiB to the spool" if way == "spool" else f"the same to {way}"
            count = f"{threads} thread{'s' if threads > 1 else ''}"
            figures.add(f"{title}, {count}", [row["gb_per_s"] for row in rows], "GB/s", at_least=20 if way == "spool" and threads > 8 else None)
            figures.add(f"{title}, {count}: CPU time", [row["cpu_s_per_gb"] for row in rows], "s/GB")


# ---- main ----

PARTS = {"outside": measure_outside, "inside": measure_inside, "replays": measure_replays, "kernels": measure_kernels, "snapshot": measure_snapshot}


def table_of(rows):
    figures = Figures()
    figures.rows = rows
    return figures.table()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool")
    parser.add_argument("--launches", help="tests/gpu/launches.c, built")
    parser.add_argument("--program", help="tests/gpu/replay_program.cu, built")
    parser.add_argument("--spool", help="bench/live/spool.c, built")
    parser.add_argument("--cupti-only", help="tests/gpu/cupti_only.c, built: for times of the device")
    parser.add_argument("--out")
    parser.add_argument("--work", help="where traces are written; default: --out")
    parser.add_argument("--generations", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--recordings", type=int, default=1)
    parser.add_argument("--replays", type=int, default=4)
    parser.add_argument("--snapshots", type=int, default=5)
    parser.add_argument("--only", default="outside,inside,replays,kernels,snapshot")
    parser.add_argument("--table", help="print the table of this result")
    options = parser.parse_args()
    if options.table:
        found = json.load(open(options.table))
        print("\n".join(f"{key}: {value}" for key, value in found["machine"].items()) + "\n\n" + table_of(found["rows"]), end="")
        return
    if not options.tool or not options.launches or not options.out:
        parser.error("--tool, --launches and --out are needed")
    options.work = options.work or options.out
    os.makedirs(options.work, exist_ok=True)
    os.makedirs(options.out, exist_ok=True)
    figures = ReplayFigures()
    failed = []
    for part in options.only.split(","):
        if part == "snapshot" and not options.program and not options.spool:
            continue
        begin = time.monotonic()
        try:
            PARTS[part](figures, options)
        except (OSError, ValueError, KeyError, IndexError, TimeoutError, subprocess.SubprocessError) as fault:
            failed.append(f"{part}: {type(fault).__name__}: {str(fault)[-200:]}")
            print(failed[-1], flush=True)
        print(f"{part}: {time.monotonic() - begin:.0f} s", flush=True)
        with open(os.path.join(options.out, "cuda_replay.json"), "w") as file:
            json.dump({"machine": machine(), "rows": figures.rows, "failed": failed}, file, indent=1)
        with open(os.path.join(options.out, "cuda_replay.md"), "w") as file:
            file.write("\n".join(f"{key}: {value}" for key, value in machine().items()) + "\n\n" + figures.table())
    result = figures.result()
    result["problems"] = failed
    print("result:", json.dumps(result))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
