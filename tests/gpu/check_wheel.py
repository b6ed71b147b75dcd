# SPDX-License-Identifier: Apache-2.0
"""The wheel in a virtual environment of its own: installed and tried (scripts/check-wheel), then with
the PyTorch of this machine: a program that knows nothing of the package, recorded with its modules;
and one that records itself. check_wheel.py [--device cpu] [WHEEL]; default: $TS_WHEEL, or one made of
the build.
"""
import argparse, glob, importlib.util, json, os, sys

from common import *

STEPS = 5
TRAIN = """
import sys
import torch
from torch import nn

device, steps = sys.argv[1], int(sys.argv[2])
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(steps):
    model(torch.rand(64, 256, device=device)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
INSIDE = """
import tracesmith
import torch

with tracesmith.record("inside.sbt") as recording:
    exec(compile(open("train.py").read(), "train.py", "exec"))
import json
print(json.dumps({"cuda": recording.cuda, "lost": recording.summary.lost, "file": tracesmith.__file__}))
"""


def environment(wheel):
    """Returns the folder of an environment with the wheel and, by a path file, PyTorch."""
    folder = os.path.abspath("env")
    done = run([sys.executable, "-m", "venv", "--without-pip", folder])
    expect(done.returncode == 0, f"venv: {done.stdout[-300:]}")
    done = run([sys.executable, "-m", "pip", "--python", folder + "/bin/python", "install", "-q", "--no-index", "--no-deps", wheel])
    expect(done.returncode == 0, f"pip install: {done.stdout[-300:]}")
    (packages,) = glob.glob(folder + "/lib/python*/site-packages")
    with open(packages + "/torch-of-this-machine.pth", "w") as file:
        file.write(os.path.dirname(os.path.dirname(importlib.util.find_spec("torch").origin)) + "\n")
    return folder


def check_kernels(trace, name, device):
    if device == "cuda":
        kernels = len(trace.kernels())
        figures["kernels_" + name] = kernels
        expect(kernels >= 10 * STEPS, f"{name}: {kernels} kernels in {STEPS} steps")
        # A stack of Python that changes twice while it is read is counted, and no loss of ours.
        check_complete(trace, name, may_lose=("changed while they were read",))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("wheel", nargs="?", default=os.environ.get("TS_WHEEL"))
    options = parser.parse_args()
    if run([sys.executable, "-m", "pip", "--version"]).returncode:
        skip("no pip here")
    wheel = options.wheel and os.path.abspath(options.wheel)
    os.chdir(WORK)
    if not wheel:
        wheel = run([sys.executable, os.path.join(SOURCE, "packaging/tracesmith_build.py"), "--build", BUILD, "--out", "wheel"], stderr=None).stdout.strip()
    figures["wheel"] = os.path.basename(wheel)
    for name in ("TRACESMITH", "TRACESMITH_RECORDER", "PYTHONPATH"):
        os.environ.pop(name, None)
    done = run([os.path.join(SOURCE, "scripts/check-wheel"), wheel, sys.executable], 300)
    expect(done.returncode == 0 and "skipped" not in done.stdout, "scripts/check-wheel failed, or left something out")

    module_or_skip("torch")
    folder = environment(wheel)
    tool, python = folder + "/bin/tracesmith", folder + "/bin/python"
    with open("train.py", "w") as file:
        file.write(TRAIN)
    train = ["train.py", options.device, str(STEPS)]
    done = run([tool, "record", "-q", "-o", "outside.sbt", "--", python, *train], env={"TRACESMITH_TORCH_PROFILING": "on"})
    expect(done.returncode == 0, f"recorded from outside: {done.stdout[-300:]}")
    trace = Trace("outside.sbt")
    rows = trace.rows("torch_trace")
    figures["module_rows"] = len(rows)
    for stage, modules in (("forward", 4), ("backward", 4), ("step", 1)):
        found = sum(row["stage"] == stage for row in rows)
        expect(found == modules * STEPS, f"{found} rows of {stage}, not {modules * STEPS}")
    check_kernels(trace, "outside", options.device)

    done = run([python, "-c", INSIDE, *train[1:]], env={"PATH": "/usr/bin:/bin"})
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if expect(done.returncode == 0 and lines, f"recorded from inside: {done.stdout[-300:]}"):
        told = json.loads(lines[-1])
        expect(not told["lost"] and told["file"].startswith(folder), f"recorded from inside: {told}")
        expect(options.device != "cuda" or told["cuda"] == "cupti", f"CUDA by {told['cuda']}")
        check_kernels(Trace("inside.sbt"), "inside", options.device)
        expect(figures.get("kernels_inside") == figures.get("kernels_outside"), f"other kernels from inside: {figures}")


main()
finish()
