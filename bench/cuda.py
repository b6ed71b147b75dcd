#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the overhead of recording CUDA, compared with the bare program, with CUPTI alone and
with torch.profiler.

    bench/cuda.py --tool TOOL --launches PROGRAM --out DIR [--cupti-only LIBRARY]
                  [--generations N] [--rounds N] [--only mlp,transformer,launches]

Two processes of the same program differ by some percent because of their addresses alone. With
PyTorch, a pair is therefore the same work done twice in one process, with capture on and off, in
random order: the window open or closed, CUPTI's activity kinds enabled or disabled, torch.profiler
started or not. All modes take turns in a round; after some rounds, all processes are restarted. The
C program has one process per mode, used in turn. A figure is the median over all pairs, with its
95 % bootstrap interval.

The PyTorch percentages thus compare capture on with capture off in a process that has the library
loaded. The cost of the library while no window is open is not included; it has a separate row
("outside of a window"), compared with another process without the library, with the variance
between processes.

Prints a table; writes DIR/cuda.json and DIR/cuda.md. Missed targets are reported there, and are not
failures.
"""
import argparse, json, os, random, select, statistics, subprocess, sys, time

HERE = os.path.dirname(os.path.realpath(__file__))
TARGET = [sys.executable, os.path.join(HERE, "cuda_target.py")]
START_SECONDS = 120
UNIT_SECONDS = 60
WAYS = ("bare", "CUPTI only", "recorded", "recorded with stacks", "outside of a window", "torch.profiler")
# Modes with a large, clear cost run only in every second round.
RARE = ("bare", "torch.profiler")
UNITS = {"mlp": 60, "transformer": 10, "launches": 50000}
TABLE_NOTE = """
PyTorch: a percentage is capture on (the window open) against off (closed) in one process. What the closed wrappers cost beside that is the row "outside of a window".
"""


# ---- processes that answer requests ----

class Worker:
    """A process that answers each line with a line; killed if it does not answer in time."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **(env or {})})
        self.pending = b""

    def line(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\n" not in self.pending:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not data:
                raise TimeoutError("no answer" if not ready else "it has ended")
            self.pending += data
        line, self.pending = self.pending.split(b"\n", 1)
        return line.decode().split()

    def start(self):
        words = self.line(START_SECONDS)
        assert words[0] == "ready", words
        self.pid = int(words[1]) if len(words) > 1 else None

    def ask(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()
        return [float(word) for word in self.line(UNIT_SECONDS)]

    def end_input(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass

    def stop(self, seconds=60):
        self.end_input()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def command_of(way, program, options, name, is_last):
    """The command that starts a program in this mode; None: not available."""
    if way == "bare":
        return program, {}
    if way == "torch.profiler":
        return (program, {}) if program is TARGET else None
    if way == "CUPTI only":
        return (program, {"CUDA_INJECTION64_PATH": options.cupti_only}) if options.cupti_only else None
    if way == "outside of a window" and program is TARGET:
        return None
    stacks = "none" if way == "recorded" else "all"
    window = ["--window", "command"] if way == "outside of a window" else ["--window", "cuda-profiler-api"] if program is TARGET else []
    return [options.tool, "record", "-q", "-o", trace_of(way, name, options), "--backends", "cuda", "--stacks", stacks, *window,
            # Sizes come from the last traces: only these are complete.
            *([] if is_last else ["--no-symbols"]), "--", *program], {}


def trace_of(way, name, options):
    return os.path.join(options.work, f"bench-{name}-{way.replace(' ', '-')}.sbt")


def start_all(program, options, name, is_last):
    workers = {}
    for way in WAYS:
        command = command_of(way, program, options, name, is_last)
        if command:
            workers[way] = Worker(*command)
    for way, worker in list(workers.items()):
        try:
            worker.start()
        except (TimeoutError, AssertionError) as fault:
            print(f"{name}, {way}: {fault}", flush=True)
            worker.process.kill()
            del workers[way]
    return workers


# ---- figures ----

def interval(values, rounds=2000):
    """The 95 % bootstrap interval of the median; deterministic."""
    chooser = random.Random(1)
    medians = sorted(statistics.median(chooser.choices(values, k=len(values))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


class Figures:
    def __init__(self):
        self.rows, self.lines = [], []

    def add(self, name, values, unit, target=None):
        value = statistics.median(values)
        low, high = interval(values) if len(values) > 1 else (value, value)
        holds = None if target is None else value <= target
        line = f"{name:<64} {value:>10.2f} {unit:<14} [{low:.2f}, {high:.2f}] {'' if holds is None else 'ok' if holds else f'MISSED, <= {target}'}".rstrip()
        self.rows.append({"name": name, "value": round(value, 4), "low": round(low, 4), "high": round(high, 4), "unit": unit, "pairs": len(values),
                          "target": None if target is None else f"<= {target}", "holds": holds})
        self.lines.append(line)
        print(line, flush=True)

    def result(self):
        """The result, as read by tests/gpu/run.py."""
        missed = [f"{row['name']}: {row['value']:.4g} {row['unit']}, not {row['target']}" for row in self.rows if row["holds"] is False]
        return {"figures": {row["name"]: row["value"] for row in self.rows}, "problems": [], "missed": missed, "lines": self.lines}

    def table(self):
        lines = ["| what | measured | 95 % interval | pairs | target |", "|---|---|---|---|---|"]
        for row in self.rows:
            missed = "" if row["holds"] in (None, True) else ", **missed**"
            lines.append(f"| {row['name']} | {row['value']:.4g} {row['unit']}{missed} | {row['low']:.4g} .. {row['high']:.4g} | {row['pairs']} | {row['target'] or ''} |")
        return "\n".join(lines) + "\n"


# ---- the measurements ----

def measure_rounds(program, names, options):
    """Seconds by workload: a list of {mode: seconds per unit}."""
    times = {name: [] for name in names}
    chooser = random.Random(7)
    for generation in range(options.generations):
        workers = start_all(program, options, names[0], generation == options.generations - 1)
        for _ in range(options.rounds):
            for name in names:
                pair = {}
                for way in chooser.sample(list(workers), len(workers)):
                    try:
                        pair[way] = workers[way].ask(str(UNITS[name]))[0]
                    except (OSError, TimeoutError, ValueError, IndexError) as fault:
                        print(f"{name}, {way}: {fault}", flush=True)
                        workers.pop(way).process.kill()
                times[name].append(pair)
        for worker in workers.values():
            worker.end_input()
        for worker in workers.values():
            worker.stop()
    return times


SWITCHES = {"CUPTI only": "cupti", "torch.profiler": "profile", "recorded": "window", "recorded with stacks": "window"}


def ask_pair(worker, way, names, chooser):
    """{name: (seconds with capture, seconds without, additional seconds of torch.profiler)}"""
    found = {name: [0.0, 0.0, 0.0] for name in names}
    for is_on in chooser.sample([True, False], 2):
        if way in SWITCHES:
            worker.ask(f"{SWITCHES[way]} {int(is_on)}")
        for name in names:
            if way in SWITCHES or is_on:
                seconds, beside = worker.ask(f"{name} {UNITS[name]}")
                found[name][0 if is_on else 1] = seconds
                found[name][2] += beside
    return found


def measure_torch(figures, options, names):
    ways = [way for way in WAYS if way != "outside of a window"]
    pairs = {name: {way: [] for way in ways} for name in names}
    chooser = random.Random(7)
    for generation in range(options.generations):
        workers = start_all(TARGET, options, names[0], generation == options.generations - 1)
        for number in range(options.rounds * 5 // 3):
            for way in chooser.sample(list(workers), len(workers)):
                if way in RARE and number % 2:
                    continue
                try:
                    for name, pair in ask_pair(workers[way], way, names, chooser).items():
                        pairs[name][way].append(pair)
                except (OSError, TimeoutError, ValueError, IndexError, subprocess.SubprocessError) as fault:
                    print(f"{way}: {fault}", flush=True)
                    workers.pop(way).process.kill()
        for worker in workers.values():
            worker.end_input()
        for worker in workers.values():
            worker.stop()
    targets = {("mlp", "recorded"): 3, ("mlp", "recorded with stacks"): 6, ("transformer", "recorded"): 2, ("transformer", "recorded with stacks"): 4}
    for name in names:
        add_workload(figures, name, pairs[name], targets)
    stops = [pair[2] for name in names for pair in pairs[name]["torch.profiler"]]
    if stops:
        figures.add("torch.profiler: start and stop", stops, "s")
    for way in ("recorded", "recorded with stacks"):
        add_bytes(figures, f"PyTorch, {way}", trace_of(way, names[0], options), options, 12 if "stacks" in way else None)


def add_workload(figures, name, pairs, targets):
    more = {way: [100 * (pair[0] / pair[1] - 1) for pair in pairs[way]] for way in WAYS[1:] if pairs.get(way)}
    figures.add(f"{name}: a step, bare", [1e6 * pair[0] / UNITS[name] for pair in pairs["bare"]], "us")
    for way, values in more.items():
        figures.add(f"{name}: {way}", values, "% longer", targets.get((name, way)))
    for way in ("recorded", "recorded with stacks"):
        if way in more and "CUPTI only" in more:
            figures.add(f"{name}: {way}, beyond CUPTI's own", [ours - theirs for ours, theirs in zip(more[way], more["CUPTI only"])], "% longer")
    if "recorded" in pairs and pairs["recorded"]:
        off = [100 * (pair[1] / bare[0] - 1) for pair, bare in zip(pairs["recorded"][::2], pairs["bare"])]
        figures.add(f"{name}: outside of a window (closed wrappers), against a bare process", off, "% longer")


def measure_launches(figures, options):
    times = measure_rounds([options.launches, "serve"], ["launches"], options)
    unit = UNITS["launches"]
    targets = {"recorded": 350, "recorded with stacks": 1000}
    for way in WAYS[:-1]:
        values = [1e9 * pair[way] / unit for pair in times["launches"] if way in pair]
        if values:
            figures.add(f"a launch in C, {way}", values, "ns")
    for way, target in {**targets, "outside of a window": None}.items():
        for base in ("CUPTI only", "bare"):
            values = [1e9 * (pair[way] - pair[base]) / unit for pair in times["launches"] if way in pair and base in pair]
            if values:
                figures.add(f"a launch in C, {way}, over {base}", values, "ns", target if base == "CUPTI only" else None)
        if target:
            add_bytes(figures, f"launches in C, {way}", trace_of(way, "launches", options), options, 12 if "stacks" in way else None)


def add_bytes(figures, name, trace, options, target):
    """Bytes on disk per launch, with everything."""
    try:
        found = json.loads(subprocess.run([options.tool, "info", "--json", trace], capture_output=True, timeout=60, check=True).stdout)
        launches = found["tables"].get("gpu_op", 0)
        figures.add(f"{name}: bytes for each command", [found["bytes"] / launches], "bytes", target)
        lost = sum(row.get("count") or 0 for row in found["loss"])
        figures.add(f"{name}: lost of {launches}", [lost], "rows", 0)
        for row in found["loss"]:
            print(f"{name}: {json.dumps(row)}", flush=True)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, ZeroDivisionError) as fault:
        print(f"{name}: no bytes: {fault}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--launches", required=True, help="tests/gpu/launches.c, built")
    parser.add_argument("--out", required=True)
    parser.add_argument("--work", help="where traces are written; default: --out")
    parser.add_argument("--cupti-only", help="tests/gpu/cupti_only.c, built")
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", default="launches,mlp,transformer")
    options = parser.parse_args()
    options.work = options.work or options.out
    os.makedirs(options.work, exist_ok=True)
    parts = options.only.split(",")
    os.makedirs(options.out, exist_ok=True)
    figures = Figures()
    try:
        if "launches" in parts:
            measure_launches(figures, options)
        if "mlp" in parts or "transformer" in parts:
            measure_torch(figures, options, [name for name in ("mlp", "transformer") if name in parts])
    finally:
        with open(os.path.join(options.out, "cuda.json"), "w") as file:
            json.dump({"machine": machine(), "rows": figures.rows}, file, indent=1)
        with open(os.path.join(options.out, "cuda.md"), "w") as file:
            file.write("\n".join(f"{key}: {value}" for key, value in machine().items()) + "\n\n" + figures.table() + TABLE_NOTE)
    print("result:", json.dumps(figures.result()))


def machine():
    try:
        return json.loads(os.environ.get("TS_GPU_MACHINE", "{}"))
    except ValueError:
        return {}


if __name__ == "__main__":
    main()
