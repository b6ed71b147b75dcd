#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures CUDA replay: what recording for it costs outside and inside of a window, sizes of traces,
and how well a replay reproduces the recorded times.

    bench/cuda_replay.py --tool TOOL --launches PROGRAM --out DIR [--program PROGRAM] [--spool PROGRAM] [--only PARTS]
    bench/cuda_replay.py --table DIR/cuda_replay.json      prints the table of a result

PARTS: outside, inside, replays, kernels, snapshot; default: all.

outside   a launch-bound loop in C with the window closed; processes with --replayable, without it,
          and without a recorder take turns. CUPTI is loaded and off in both recorded ones. Processes
          differ by their addresses, so the interval comes from a bootstrap over processes, too.
inside    the same work in one process, with the window open and closed in random order, in a process
          with --replayable and in one without. The figure divides one ratio by the other: CUPTI is on
          in both. Measured after the snapshot.
replays   times of the device and of the whole, replayed by recorded (--check none), set-up and size.
kernels   --kernel: a GEMM, an attention and a softmax kernel alone, against all recorded launches.
snapshot  rate at which memory leaves the device when a window opens; the medium is named. With
          --spool also without a device: threads that fill the spool, and peers beside it.

Writes DIR/cuda_replay.json and DIR/cuda_replay.md. A missed target is reported, and no failure.
"""
import argparse, json, os, random, re, shutil, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../tests/gpu")]
from common import demangled
from cuda import Figures, TARGET, UNITS, Worker, interval, machine

WORKLOADS = [sys.executable, os.path.join(HERE, "../tests/gpu/replay_workloads.py")]
WINDOW = ["--window", "cuda-profiler-api"]
RECORDED, REPLAYABLE, CHECKED = "recorded", "replayable", "checked"
RECORD_OPTIONS = {RECORDED: [], REPLAYABLE: ["--replayable"], CHECKED: ["--replayable=checked"]}
# Its launches are waited for one by one, and memory is hashed after each.
CHECKED_SHARE = 10
REPLAYED = ("mlp", "transformer", "graph", "libraries")
KERNELS = (("GEMM", r"(?i)gemm|nvjet|cutlass|xmma"), ("attention", r"(?i)flash|fmha|attention|sdpa"), ("softmax", r"(?i)softmax"))


class ReplayFigures(Figures):
    """`at_least`: a target from below; `low`, `high`: an interval that is known; `holds`: decided by
    the caller, with `target` as text."""

    def add(self, name, values, unit, target=None, at_least=None, bounds=None, holds=None):
        value = statistics.median(values)
        low, high = bounds or (interval(values) if len(values) > 1 else (value, value))
        if holds is None and (target is not None or at_least is not None):
            holds = value <= target if at_least is None else value >= at_least
        text = target if isinstance(target, str) else f"<= {target}" if target is not None else f">= {at_least}" if at_least is not None else None
        line = f"{name:<64} {value:>10.3f} {unit:<14} [{low:.3f}, {high:.3f}] {'' if holds is None else 'ok' if holds else 'MISSED, ' + text}".rstrip()
        self.rows.append({"name": name, "value": round(value, 4), "low": round(low, 4), "high": round(high, 4), "unit": unit, "pairs": len(values),
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


def start(workers):
    """Drops those that do not start."""
    for way, worker in list(workers.items()):
        try:
            worker.start()
        except (TimeoutError, AssertionError) as fault:
            print(f"{way}: {fault}", flush=True)
            worker.process.kill()
            del workers[way]


def stop(workers):
    for worker in workers.values():
        worker.end_input()
    for worker in workers.values():
        worker.stop()


# ---- outside of a window ----

def measure_outside(figures, options):
    program, chooser = [options.launches, "serve"], random.Random(7)
    groups = {"recorded": [], "bare": []}
    nanoseconds = {}
    for generation in range(options.generations):
        commands = {"bare": program, RECORDED: record_command("outside-recorded", RECORDED, program, options, "--window", "command"),
                    REPLAYABLE: record_command("outside-replayable", REPLAYABLE, program, options, "--window", "command")}
        workers = {way: Worker(command) for way, command in commands.items()}
        start(workers)
        found = {base: [] for base in groups}
        for _ in range(options.rounds):
            pair = {way: workers[way].ask(str(UNITS["launches"]))[0] for way in chooser.sample(list(workers), len(workers))}
            for way, seconds in pair.items():
                nanoseconds.setdefault(way, []).append(1e9 * seconds / UNITS["launches"])
            for base in found:
                if base in pair and REPLAYABLE in pair:
                    found[base].append(100 * (pair[REPLAYABLE] / pair[base] - 1))
        for base, values in found.items():
            if values:
                groups[base].append(values)
        stop(workers)
    for way, values in nanoseconds.items():
        figures.add(f"a launch in C, window closed, {way}", values, "ns")
    for base, target in (("recorded", 1.0), ("bare", None)):
        if groups[base]:
            values = [value for group in groups[base] for value in group]
            figures.add(f"a launch in C, window closed: --replayable over {base}", values, "% longer", target, bounds=clustered(groups[base]))


# ---- inside of a window ----

def ask_pair(worker, names, way, chooser):
    """{name: seconds with the window open by seconds with it closed}"""
    found = {name: [0.0, 0.0] for name in names}
    for is_on in chooser.sample([True, False], 2):
        worker.ask(f"window {int(is_on)}")
        for name in names:
            steps = max(1, UNITS[name] // (CHECKED_SHARE if way == CHECKED else 1))
            found[name][0 if is_on else 1] = worker.ask(str(steps) if name == "launches" else f"{name} {steps}")[0] / steps
    worker.ask("window 0")
    return found


def measure_inside(figures, options):
    chooser = random.Random(7)
    for program, names in (([options.launches, "serve"], ["launches"]), (TARGET, ["mlp", "transformer"])):
        # A snapshot is drained while the program runs: steps are repeated until that is over.
        workers = {way: Worker(record_command("inside-" + way, way, program, options, *WINDOW), {"TS_SETTLE_SECONDS": "0.6"})
                   for way in (RECORDED, REPLAYABLE, CHECKED)}
        start(workers)
        pairs = {name: {way: [] for way in workers} for name in names}
        for number in range(options.rounds if program is not TARGET else options.rounds * 3 // 4):
            for way in chooser.sample(list(workers), len(workers)):
                if way == CHECKED and number % 3:
                    continue
                try:
                    for name, pair in ask_pair(workers[way], names, way, chooser).items():
                        pairs[name][way].append(pair)
                except (OSError, TimeoutError, ValueError, IndexError) as fault:
                    print(f"{way}: {fault}", flush=True)
                    workers.pop(way).process.kill()
        stop(workers)
        for name in names:
            add_inside(figures, name, pairs[name])


def add_inside(figures, name, pairs):
    closed = [pair[1] for way in pairs for pair in pairs[way]]
    if closed:
        figures.add(f"{name}: a {'launch' if name == 'launches' else 'step'}, window closed", [1e6 * value for value in closed], "us")
    base = [pair[0] / pair[1] for pair in pairs.get(RECORDED, [])]
    for way, target in ((REPLAYABLE, 10), (CHECKED, None)):
        ratios = [pair[0] / pair[1] for pair in pairs.get(way, [])]
        if ratios and base:
            values = [100 * (ratio / other - 1) for ratio, other in zip(ratios, base)]
            figures.add(f"{name}: inside of a window, {'--replayable=checked' if way == CHECKED else '--replayable'} over recording", values, "% longer", target)


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
    name, mib = "snapshot", 4096
    if os.access("/dev/shm", os.W_OK):
        options.work = tempfile.mkdtemp(prefix="tracesmith-snapshot.", dir="/dev/shm")
    try:
        if options.program:
            measure_memory(figures, options, name, mib)
        if options.spool:
            measure_spool(figures, options, mib // 2)
    finally:
        if options.work.startswith("/dev/shm/tracesmith-snapshot."):
            shutil.rmtree(options.work, ignore_errors=True)


def measure_memory(figures, options, name, mib):
    env = {"REPLAY_PROGRAM_MIB": str(mib)}
    run(record_command(name, REPLAYABLE, [options.program, "memory", "15"], options, *WINDOW, "--snapshot-limit", "16G"), 200, env)
    trace = trace_of(name, options)
    facts = [json.loads(line) for line in run([options.tool, "view", trace, "--table", "meta", "--json"], 60).splitlines() if line.startswith("{")]
    found = next((row.get("value") for row in facts if row.get("key") == "cuda_snapshot"), None)
    print("cuda_snapshot:", found, flush=True)
    where = os.environ.get("TRACESMITH_LIVE_DIR", "/dev/shm")
    if isinstance(found, dict) and found.get("drain_ns"):
        figures.add(f"snapshot of {found['bytes'] / 1e9:.1f} GB: from the device to the spool ({medium(where)}; trace on {medium(trace)})", [found.get("stored", found["bytes"]) / found["drain_ns"]],
                    "GB/s", at_least=20)
        figures.add("snapshot: the program waits", [found.get("held_ns", 0) / 1e6], "ms")
    figures.add(f"snapshot: trace of {mib / 1024:.0f} GiB of numbers that do not compress", [os.path.getsize(trace) / 1e9], "GB")


def measure_spool(figures, options, mib):
    """Without a device: as many threads as a snapshot has, and one; peers of the same bytes in the same process."""
    for threads in sorted({1, max(2, min(12, os.cpu_count() * 3 // 4))}):
        command = [options.tool, "record", "-q", "-o", trace_of("spool", options), "--backends", "opencl", "--no-symbols", *RECORD_OPTIONS[REPLAYABLE],
                   "--", options.spool, str(mib), str(threads)]
        found = [json.loads(line) for line in run(command, 200).splitlines() if line.startswith("{")]
        for row in found:
            title = f"{mib / 1024:.0f} GiB to the spool" if row["way"] == "spool" else f"the same to {row['way']}"
            figures.add(f"{title}, {row['threads']} threads", [row["gb_per_s"]], "GB/s", at_least=20 if row["way"] == "spool" and threads > 8 else None)
            figures.add(f"{title}, {row['threads']} threads: CPU time", [row["cpu_s_per_gb"]], "s/GB")


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
    parser.add_argument("--generations", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--recordings", type=int, default=1)
    parser.add_argument("--replays", type=int, default=4)
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
