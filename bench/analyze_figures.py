# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of analyses for bench/run: all analyses on recorded traces, compared with HTA, and how
their cost grows with the trace."""
import json
import math
import os
import subprocess
import time

RUNS = 5
# Recorded traces of other tools to analyze: name, files, limits in seconds and megabytes.
JOBS = (
    ("h100_owlv2", ("kineto/h100_owlv2.json.gz",), "<= 0.4", "<= 200"),
    ("mtia_rank0", ("kineto/mtia_rank0.json.gz",), None, None),
    ("4 ranks of megatron_tp8", tuple(f"pairs/megatron_tp8_r{rank}_kineto.json.gz" for rank in range(4)), None, None),
)
# The small trace to replicate, and the sizes in million events.
GROWTH_OF = "kineto/ns_resolution.json.gz"
GROWTH_MILLIONS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
GROWTH_RUNS = 3
EACH_MILLIONS = 5
# Memory for a trace of 20 M events and its analyses.
BYTES_AN_EVENT = 800


def measured(command):
    """Wall and CPU seconds and megabytes of a command; discards its output."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = child.stderr.read()
    child.stderr.close()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)}: status {child.returncode}: {errors.decode()[-300:]}")
    return {"wall": time.monotonic() - start, "cpu": usage.ru_utime + usage.ru_stime, "megabytes": usage.ru_maxrss / 1e3}


def best_of(runs, command):
    """The minimum of each figure, since other load only adds."""
    done = [measured(command) for _ in range(runs)]
    return {key: min(one[key] for one in done) for key in done[0]}


def analyze(bench, files, name="all"):
    return [bench.tool, "analyze", *files, name, "--json"]


# ---- against HTA ----

HTA = """
import json, logging, os, resource, sys, time
logging.disable(logging.CRITICAL)
wall = time.monotonic()
from hta.trace_analysis import TraceAnalysis
imported = time.process_time()
analysis = TraceAnalysis(trace_files={rank: path for rank, path in enumerate(sys.argv[1:])})
failed = []
for name, options in (
    ("get_temporal_breakdown", {"visualize": False}),
    ("get_gpu_kernel_breakdown", {"visualize": False}),
    ("get_comm_comp_overlap", {"visualize": False}),
    ("get_idle_time_breakdown", {"visualize": False}),
    ("get_queue_length_summary", {}),
    ("get_memory_bw_summary", {}),
    ("get_cuda_kernel_launch_stats", {"visualize": False}),
    ("get_gpu_user_annotation_breakdown", {"visualize": False}),
):
    try:
        getattr(analysis, name)(**options)
    except Exception as problem:
        failed.append(name)
usage = resource.getrusage(resource.RUSAGE_SELF)
children = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({
    "cpu": time.process_time() - imported + children.ru_utime + children.ru_stime, "start": imported, "wall": time.monotonic() - wall,
    "megabytes": usage.ru_maxrss / 1e3, "failed": failed,
}))
"""


def hta(bench, files):
    """As many runs as ours, and the minimum of each figure as well."""
    done = []
    for _ in range(RUNS):
        taken, reason = hta_once(bench, files)
        if not taken:
            return None, reason
        done.append(taken)
    if done[0]["failed"]:
        print(f"HTA fails in {', '.join(done[0]['failed'])}", flush=True)
    return {key: min(one[key] for one in done) for key in ("cpu", "start", "wall", "megabytes")}, None


def hta_once(bench, files):
    """CPU time of HTA for loading the files and its eight analyses, without startup; or None and
    the reason."""
    python = os.path.join(bench.venv, "bin", "python")
    if not os.path.exists(python):
        return None, "not installed: bench/run --peers BUILD installs it from PyPI"
    done = subprocess.run([python, "-c", HTA, *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    lines = done.stdout.decode().strip().splitlines()
    if done.returncode or not lines:
        return None, f"it fails here: {done.stderr.decode().strip().splitlines()[-1:]}"
    return json.loads(lines[-1]), None


def measure_job(bench, name, files, seconds, megabytes):
    ours = best_of(RUNS, analyze(bench, files))
    theirs, reason = hta(bench, files)
    bench.add(f"analyses of {name}, JSON.gz", ours["wall"], "s", seconds)
    bench.add(f"analyses of {name}, memory", ours["megabytes"], "MB", megabytes)
    if theirs:
        bench.add(f"analyses of {name}, all cores", ours["cpu"], "CPU s", None, "HTA, load and eight analyses", theirs["cpu"],
                  theirs["cpu"] / ours["cpu"])
        total = theirs["cpu"] + theirs["start"]
        bench.add(f"analyses of {name}, all cores", ours["cpu"], "CPU s", None, "HTA, its start included", total, total / ours["cpu"])
        bench.add(f"analyses of {name}, memory", ours["megabytes"], "MB", None, "HTA", theirs["megabytes"],
                  theirs["megabytes"] / ours["megabytes"])
    else:
        bench.add(f"analyses of {name}, all cores", ours["cpu"], "CPU s", None)
        bench.skip(f"analyses of {name} against HTA", reason)


def measure_jobs(bench):
    for name, paths, seconds, megabytes in JOBS:
        files = [os.path.join(bench.real, path) for path in paths]
        if not all(os.path.exists(path) for path in files):
            bench.skip(f"analyses of {name}", f"it is not in '{bench.real}'")
            continue
        measure_job(bench, name, files, seconds, megabytes)
        if len(files) == 1:
            trace = imported(bench, files[0], "job.sbt")
            taken = best_of(2 * RUNS, analyze(bench, [trace]))
            bench.add(f"analyses of {name}, SBT", taken["wall"], "s", "<= 0.1" if name == "h100_owlv2" else None)
            bench.add(f"analyses of {name}, SBT, all cores", taken["cpu"], "CPU s", None)
            os.unlink(trace)


def imported(bench, path, name):
    trace = bench.path(name)
    subprocess.run([bench.tool, "import", "-q", path, "-o", trace], check=True)
    return trace


# ---- states ----

def measure_states(bench):
    lines = [bench.program("state") for _ in range(3)]
    for name, key, target in (("state rebuild, one core", "with_graph_per_second", ">= 5"),
                              ("state rebuild by stream order alone, one core", "commands_per_second", ">= 5"),
                              ("dependency graph, one core", "graph_per_second", None)):
        bench.add(name, max(line[key] for line in lines) / 1e6, "M commands/s", target)


# ---- growth ----

def exponent(points, scale):
    """The slope of log(seconds) over log(scale(events)), by least squares."""
    x = [math.log(scale(events)) for events, _ in points]
    y = [math.log(seconds) for _, seconds in points]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return (sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x))


def free_bytes():
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable"):
                return int(line.split()[1]) * 1024
    return 0


def measure_growth(bench):
    path = os.path.join(bench.real, GROWTH_OF)
    if not os.path.exists(path):
        bench.skip("growth of analyses", f"'{path}' does not exist")
        return
    small, large, points = imported(bench, path, "small.sbt"), bench.path("large.sbt"), []
    for millions in GROWTH_MILLIONS:
        name = f"analyses of {millions:g} M events, SBT"
        if free_bytes() < millions * 1e6 * BYTES_AN_EVENT:
            bench.skip(name, f"needs about {millions * BYTES_AN_EVENT / 1e3:.0f} GB of memory")
            continue
        events = bench.program("replicate", small, large, "--events", str(int(millions * 1e6)))["events"]
        taken = best_of(1 if millions >= 10 else GROWTH_RUNS, analyze(bench, [large]))
        points.append((events, taken["cpu"]))
        bench.add(f"{name}, whole", taken["wall"], "s", None)
        bench.add(f"{name}, an event", taken["cpu"] / events * 1e9, "CPU ns", None)
        bench.add(f"{name}, memory", taken["megabytes"], "MB", None)
        if millions == EACH_MILLIONS:
            measure_each(bench, large, millions)
    os.unlink(small)
    os.unlink(large)
    if len(points) >= 3:
        bench.add("growth of analyses, exponent of n", exponent(points, lambda n: n), "", None)
        # Process startup dominates small traces and hides growth there.
        large_ones = [point for point in points if point[0] >= 900_000] or points
        bench.add("growth of analyses, exponent of n log n", exponent(points, lambda n: n * math.log(n)), "", "<= 1.1")
        if len(large_ones) >= 3:
            bench.add("the same from 1 M events on", exponent(large_ones, lambda n: n * math.log(n)), "", "<= 1.1")


def measure_each(bench, trace, millions):
    """Each analysis alone, including loading."""
    lines = subprocess.run([bench.tool, "analyze", "--list"], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    for name in (line.split()[0] for line in lines if line.strip()):
        taken = measured(analyze(bench, [trace], name))
        bench.add(f"{name} alone, {millions:g} M events, SBT", taken["cpu"], "CPU s", None)


def measure_analyze(bench):
    measure_jobs(bench)
    measure_states(bench)
    measure_growth(bench)
