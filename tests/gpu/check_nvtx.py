# SPDX-License-Identifier: Apache-2.0
"""NVTX: ranges and marks of torch.cuda.nvtx and emit_nvtx are in the trace by name; windows by
range and by profiler start and stop contain exactly what ran inside.
"""
import json, os, subprocess, sys

from common import *

module_or_skip("torch")

PROGRAM = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import torch, workloads
work = workloads.Mlp()
def steps(count):
    work.train_steps(count); torch.cuda.synchronize()
steps(10)
spans = []
for _ in range(2):
    begin = time.clock_gettime_ns(time.CLOCK_REALTIME)
    torch.cuda.nvtx.range_push("chosen range")
    if sys.argv[3] == "api": torch.cuda.cudart().cudaProfilerStart()
    steps(10)
    torch.cuda.nvtx.mark("a mark")
    if sys.argv[3] == "api": torch.cuda.cudart().cudaProfilerStop()
    torch.cuda.nvtx.range_pop()
    spans.append([begin, time.clock_gettime_ns(time.CLOCK_REALTIME)])
    time.sleep(0.1)
    torch.cuda.nvtx.range_push("other range"); steps(10); torch.cuda.nvtx.range_pop()
    time.sleep(0.1)
if sys.argv[3] == "emit":
    with torch.autograd.profiler.emit_nvtx():
        steps(2)
json.dump(spans, open(sys.argv[2], "w"))
"""


def record_spans(name, how, options):
    out = os.path.join(WORK, name + ".json")
    trace = record(name, [sys.executable, "-c", PROGRAM, HERE, out, how], ["--stacks", "none", *options])
    return trace, json.load(open(out)) if os.path.exists(out) else []


def check_names():
    trace, _ = record_spans("nvtx", "emit", [])
    ranges = {row["name"] for row in trace.rows("slice", "name")}
    marks = {row["name"] for row in trace.rows("mark", "name")}
    expect({"chosen range", "other range"} <= ranges, f"ranges {sorted(ranges)[:8]}")
    expect("a mark" in marks, f"marks {sorted(marks)[:8]}")
    operators = {name for name in ranges if "aten::" in name or "Backward" in name}
    expect(any("aten::linear" in name or "aten::addmm" in name for name in operators), f"operators of emit_nvtx: {sorted(operators)[:8]}")
    check_complete(trace, "nvtx")
    figures.update(ranges=len(ranges), operators=len(operators))
    check_forward(trace)


def check_forward(trace):
    """Launches inside a backward operator name its forward operator."""
    backward = [row for row in trace.rows("slice", "start,duration,thread,name") if "Backward" in row["name"] and "seq = " in row["name"]]
    launches = [call for call in trace.launches() if any(row.get("tid") == call.get("tid") and row["start"] <= call["start"] <= row["start"] + (row.get("duration") or 0)
                                                         for row in backward)]
    done = run([TOOL, "analyze", trace.path, "launch-stacks", "--all", "--json"], 60, stderr=subprocess.PIPE)
    try:
        answers = json.loads(done.stdout)
    except ValueError:
        answers = []
    with_forward = sum(row["launches"] for row in answers if "aten::" in (row.get("forward") or ""))
    expect(launches, f"{len(backward)} operators of the backward pass, but no launches in them")
    expect(with_forward > 0, f"analyze launch-stacks: no forward operator for {len(launches)} launches of the backward pass")
    aim(with_forward >= 0.95 * len(launches), f"{with_forward} of {len(launches)} launches of the backward pass have their forward operator")
    viewed = sum(1 for row in trace.rows("gpu_op", "name", "--stacks") if "aten::" in (row.get("forward") or ""))
    expect(viewed > 0, "view --stacks: no kernel has a forward operator")
    aim(viewed == with_forward, f"view --stacks: {viewed} kernels with a forward operator, analyze launch-stacks: {with_forward}")
    figures.update(backward_launches=len(launches), with_forward=with_forward)


def check_window(name, how, option):
    """Kernels of ten steps in each of two windows, none outside."""
    trace, spans = record_spans(name, how, ["--window", option])
    inside = [sum(1 for call in trace.launches() if begin <= call["start"] <= end) for begin, end in spans]
    expect(len(inside) == 2 and inside[0] == inside[1] > 0, f"{option}: launches in the windows {inside}")
    expect(len(trace.launches()) == sum(inside), f"{option}: {len(trace.launches())} launches in all, {sum(inside)} in windows")
    expect(len(trace.kernels()) == sum(inside), f"{option}: {len(trace.kernels())} kernels, {sum(inside)} launches")
    expect(len(trace.rows("window")) == 2, f"{option}: {len(trace.rows('window'))} windows")
    check_complete(trace, option)
    figures[name] = inside


check_names()
check_window("window_nvtx", "range", "nvtx:chosen range")
check_window("window_api", "api", "cuda-profiler-api")
finish()
