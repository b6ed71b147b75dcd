# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program that nobody records starts recording itself: twice when it uses CUDA already, and
once before. CUPTI is activated late, every kernel of a recording is in its file with the call that
launched it, and the program computes the same. torch.profiler has its own events, in a recording and
after it. check_late.py
"""
import json, os, sys

from common import *

module_or_skip("torch")
PACKAGE = os.path.join(BUILD, "python")
CLOCK_NS = 20_000
WORK = """
def work(steps):
    x = torch.ones(256, 256, device="cuda")
    for _ in range(steps):
        x = torch.relu(x @ x / 256)
    torch.cuda.synchronize()
    return float(x.sum())
"""
PROGRAM = WORK + """
import json, os, sys
import torch, tracesmith

before = work(3)
results = []
for number, steps in enumerate((10, 25)):
    work(4)  # not recorded
    with tracesmith.record(f"late-{number}.sbt") as recording:
        with tracesmith.span("work"):
            value = work(steps)
    results.append({"steps": steps, "value": value, "cuda": recording.cuda, "events": recording.summary.events,
                    "lost": recording.summary.lost})
work(4)
print(json.dumps({"before": before, "after": work(3), "results": results}))
"""
# torch is imported, and used with its profiler, in the recording.
INSIDE = WORK + """
import json
import tracesmith

with tracesmith.record("inside.sbt") as recording:
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        work(5)
    work(5)
found = sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profiler.events())
with profile(activities=[ProfilerActivity.CUDA], schedule=schedule(wait=0, warmup=1, active=1)) as profiler:
    work(1)
    with tracesmith.record("warming-up.sbt") as warming_up:
        profiler.step()
        work(5)
active = sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profiler.events())
print(json.dumps({"cuda": recording.cuda, "found": found, "active": active, "summary": str(warming_up.summary)}))
"""
EARLY = WORK + """
import json
import torch, tracesmith

with tracesmith.record("early.sbt") as recording:
    work(10)
print(json.dumps({"cuda": recording.cuda, "lost": recording.summary.lost}))
"""
SHARED = WORK + """
import json
import torch, tracesmith
from torch.profiler import ProfilerActivity, profile

def profiled(steps):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        work(steps)
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profiler.events())

told = {}
work(3)
with tracesmith.record("shared.sbt") as recording:
    work(5)
    told["inside"] = profiled(5)
    work(5)
told["cuda"], told["summary"] = recording.cuda, str(recording.summary)
told["after"] = profiled(5)
with tracesmith.record("again.sbt") as recording:
    work(5)
told["again"] = recording.cuda
print(json.dumps(told))
"""
PROFILED_FIRST = SHARED.replace("work(3)\n", "told['first'] = profiled(5)\n")


def told_by(program, environment):
    done = run([sys.executable, "-c", program], 180, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    expect(done.returncode == 0 and lines, f"exit code {done.returncode}: {done.stdout[-600:]}")
    return json.loads(lines[-1]) if lines else {}


def check_early(environment):
    told = told_by(EARLY, environment)
    if told:
        trace = Trace("early.sbt")
        figures["kernels_early"] = len(trace.kernels())
        expect(told == {"cuda": "cupti", "lost": 0}, f"early: {told}")
        expect(figures["kernels_early"] >= figures["kernels_0"], f"early: {figures['kernels_early']} kernels, late {figures['kernels_0']}")
        check_complete(trace, "early")


def check_inside(environment):
    told = told_by(INSIDE, environment)
    if not told:
        return
    expect(told["cuda"] == "cupti" and told["found"] >= 21 and told["active"] >= 21, f"torch.profiler first: {told}")
    expect("torch.profiler is running" in told["summary"], f"torch.profiler warms up: {told}")
    trace = Trace("inside.sbt")
    figures["kernels_inside"] = len(trace.kernels())
    expect(figures["kernels_inside"] >= 16, f"torch.profiler first: then {figures['kernels_inside']} kernels")
    expect([row["reason"] for row in trace.losses()] == ["another tool used CUPTI"], f"torch.profiler first: {trace.losses()}")


def check_shared(environment, program, calls):
    """Each step has at least three kernels, and each work a fill."""
    told = told_by(program, environment)
    if not told:
        return
    expect(told["cuda"] == told["again"] == "cupti", f"shared: {told}")
    expect(told["inside"] == told["after"] == told.get("first", told["after"]) >= 16, f"torch.profiler's events: {told}")
    trace, again = Trace("shared.sbt"), Trace("again.sbt")
    kernels = len(trace.kernels())
    figures["kernels_shared" if calls else "kernels_after_profiler"] = kernels
    expect(kernels == 2 * len(again.kernels()) >= 30, f"shared: {kernels} kernels beside torch.profiler, then {len(again.kernels())}")
    expect([row["reason"] for row in trace.losses()] == ["another tool used CUPTI"], f"shared: {trace.losses()}")
    expect(bool(trace.launches()) == calls, f"shared: {len(trace.launches())} launches")
    expect(("driver calls are not recorded: another tool has subscribed to CUPTI" in told["summary"]) != calls, f"shared: {told}")


def main():
    if not any(name.startswith("_emit") for name in (os.listdir(os.path.join(PACKAGE, "tracesmith")) if os.path.isdir(PACKAGE) else [])):
        skip("the Python package was not built: no headers of Python here")
    os.chdir(WORK)
    environment = {"PYTHONPATH": PACKAGE, "TRACESMITH_RECORDER": TOOL}
    told = told_by(PROGRAM, environment)
    if not told:
        return
    expect(told["before"] == told["after"], f"it computes {told['after']}, before {told['before']}")
    for number, result in enumerate(told["results"]):
        name = f"recording {number}"
        expect(result["cuda"] == "cupti", f"{name}: CUDA by {result['cuda']}")
        expect(result["lost"] == 0, f"{name}: {result['lost']} events lost")
        rows = [json.loads(line) for line in run([TOOL, "view", "--json", f"late-{number}.sbt"], stderr=None).stdout.splitlines()]
        span = [row for row in rows if row.get("name") == "work"][0]
        kernels = [row for row in rows if row["table"] == "gpu_op" and row["kind"] == "kernel"]
        calls = {row["correlation"] for row in rows if row["table"] == "api_call" and row.get("correlation")}
        # A fill, and for each step at least a product, a division and a relu.
        expect(len(kernels) >= 3 * result["steps"], f"{name}: {len(kernels)} kernels in {result['steps']} steps")
        expect(all(row["correlation"] in calls for row in kernels), f"{name}: kernels without a launch")
        # The clock of the device is known to a few microseconds.
        outside = [row["start"] - span["start"] for row in kernels
                   if not -CLOCK_NS <= row["start"] - span["start"] <= span["duration"] + CLOCK_NS]
        expect(not outside, f"{name}: {len(outside)} kernels outside of its span, at {outside[:3]} ns of {span['duration']}")
        figures[f"kernels_{number}"] = len(kernels)
    ratio = figures["kernels_1"] / max(figures["kernels_0"], 1)
    expect(2 < ratio < 3, f"kernels of 25 and 10 steps: {ratio:.2f} times as many")
    check_early(environment)
    check_inside(environment)
    check_shared(environment, SHARED, calls=True)
    check_shared(environment, PROFILED_FIRST, calls=False)


main()
finish()
