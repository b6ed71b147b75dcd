# SPDX-License-Identifier: Apache-2.0
"""The module table of a PyTorch program on the GPU: device times against CUDA events by hand, memory
against torch.cuda, names and order against hooks by hand, kernels inside against torch.profiler; and a
model that is moved to the host. check_modules.py [--device cpu]: with cpu, only what needs no GPU.
"""
import json, os, sys

from common import *

module_or_skip("torch")
DEVICE = sys.argv[2] if sys.argv[1:2] == ["--device"] else "cuda"
STEPS = 12
PROGRAM = """
import json, os, sys
import torch, tracesmith, tracesmith.torch
from torch import nn

device, steps = sys.argv[1], int(sys.argv[2])
on_gpu = device == "cuda"
torch.manual_seed(0)
model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.GELU())]).to(device)
optimizer = torch.optim.Adam(model.parameters())
x = torch.rand(512, 1024, device=device)
by_hand = {"device_ms": [], "allocated": [], "forward": [], "backward": []}

def train(seen=None):
    if on_gpu:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
    y = model(x)
    if on_gpu:
        last.record()
        if seen is not None:
            seen["allocated"].append(torch.cuda.memory_allocated())
            seen["device_ms"].append((first, last))
    y.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

for _ in range(3):
    train()

# The order of calls, by hooks, while nothing records.
handles = [module.register_forward_pre_hook(lambda m, i, n=name: by_hand["forward"].append(n)) for name, module in model.named_modules()]
handles += [module.register_full_backward_pre_hook(lambda m, g, n=name: by_hand["backward"].append(n)) for name, module in model.named_modules()]
train()
for handle in handles:
    handle.remove()

tracesmith.torch.enable(memory=True, device_time=True)
with tracesmith.record("modules.sbt") as recording:
    for _ in range(steps):
        train(by_hand)
    if on_gpu:
        torch.cuda.synchronize()
        model.to("cpu")
        model(x.cpu())
        model.to("cuda")
    tracesmith.torch.disable()
by_hand["device_ms"] = [first.elapsed_time(last) for first, last in by_hand["device_ms"]]

kernels = 0.0
if on_gpu:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]) as profiler:
        with torch.no_grad():
            model(x)
        torch.cuda.synchronize()
    kernels = sum(event.device_time_total for event in profiler.events() if event.device_type.name == "CUDA") / 1e3
columns = ["step", "seq", "module", "stage", "allocated", "max_allocated", "cached", "device", "device_number", "device_time", "duration"]
rows = tracesmith.open("modules.sbt").torch_trace(columns).to_dicts()
print(json.dumps({"rows": rows, "by_hand": by_hand, "kernel_ms": kernels, "cuda": recording.summary.cuda,
                  "lost": recording.summary.lost, "failures": tracesmith.torch.state()["failures"]}))
"""


def of_stage(rows, stage):
    return sorted((row for row in rows if row["stage"] == stage), key=lambda row: (row["step"], row["seq"]))


def check_order(rows, by_hand):
    paths = {row["module"] for row in rows if row["stage"] == "forward"}
    root = min(paths, key=len)
    for stage in ("forward", "backward"):
        expected = [root + ("." + name if name else "") for name in by_hand[stage]]
        found = [row["module"] for row in of_stage(rows, stage)][: len(expected)]
        expect(found == expected, f"{stage}: {found}, by hooks {expected}")
    expect(len(of_stage(rows, "step")) == STEPS, f"{len(of_stage(rows, 'step'))} steps of the optimizer")
    return root


def check_device(told, root):
    rows, by_hand = told["rows"], told["by_hand"]
    roots = [row for row in of_stage(rows, "forward") if row["module"] == root]
    expect(told["cuda"] == "cupti", f"CUDA by {told['cuda']}")
    expect(len(roots) == STEPS + 1, f"{len(roots)} calls of the model")
    *on_device, on_host = roots
    expect(on_host["device_time"] is None and on_host["device"] is None, f"the model on the host: {on_host}")
    work = [row for row in rows if row["stage"] != "step" and row["step"] < on_host["step"]]
    untimed = [row["module"] for row in work if row["stage"] == "forward" and not row["device_time"]]
    expect(not untimed, f"{len(untimed)} forwards without device time, such as {untimed[:3]}")
    expect({row["device_number"] for row in on_device} == {0}, f"devices {[row['device_number'] for row in on_device]}")
    # Ours lie inside of those by hand, and leave out only what the events themselves take.
    pairs = [(row["device_time"] * 1e3, by) for row, by in zip(on_device, by_hand["device_ms"]) if row["device_time"]]
    ratio = statistics.median(ours / by for ours, by in pairs) if pairs else 0
    figures["device_time_ratio"] = round(ratio, 3)
    expect(0.5 < ratio <= 1.05, f"device time: {ratio:.3f} of that between CUDA events by hand")
    shortest = min((ours for ours, _ in pairs), default=0)
    figures["forward_ms"], figures["kernel_ms"] = round(shortest, 3), round(told["kernel_ms"], 3)
    expect(shortest >= 0.7 * told["kernel_ms"], f"{shortest:.3f} ms, but kernels take {told['kernel_ms']:.3f}")
    wrong = [(row["allocated"], by / 1e6) for row, by in zip(on_device, by_hand["allocated"]) if abs(row["allocated"] - by / 1e6) > 0.01]
    expect(not wrong, f"allocated MB, ours and torch.cuda's: {wrong[:3]}")
    expect(all(row["max_allocated"] >= row["allocated"] and row["cached"] >= row["allocated"] for row in on_device), "memory figures in the wrong order")


def main():
    package = os.path.join(BUILD, "python")
    if not os.path.exists(os.path.join(package, "tracesmith/__init__.py")):
        skip("the Python package was not built: no headers of Python here")
    os.chdir(WORK)
    done = run([sys.executable, "-c", PROGRAM, DEVICE, str(STEPS)], 180, env={"PYTHONPATH": package, "TRACESMITH_RECORDER": TOOL})
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not expect(done.returncode == 0 and lines, f"exit code {done.returncode}: {done.stdout[-600:]}"):
        return
    told = json.loads(lines[-1])
    figures["rows"] = len(told["rows"])
    expect(not told["lost"] and not told["failures"], f"{told['lost']} rows lost, {told['failures']} errors in the profiler")
    root = check_order(told["rows"], told["by_hand"])
    if DEVICE == "cuda":
        check_device(told, root)


main()
finish()
