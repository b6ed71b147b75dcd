# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program that nobody records starts recording itself, twice, when it uses CUDA already:
CUPTI is activated late, every kernel of a recording is in its file with the call that launched it,
and the program computes the same. check_late.py
"""
import json, os, sys

from common import *

module_or_skip("torch")
PACKAGE = os.path.join(BUILD, "python")
CLOCK_NS = 20_000
PROGRAM = """
import json, os, sys
import torch, tracesmith

def work(steps):
    x = torch.ones(256, 256, device="cuda")
    for _ in range(steps):
        x = torch.relu(x @ x / 256)
    torch.cuda.synchronize()
    return float(x.sum())

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


def main():
    if not any(name.startswith("_emit") for name in (os.listdir(os.path.join(PACKAGE, "tracesmith")) if os.path.isdir(PACKAGE) else [])):
        skip("the Python package was not built: no headers of Python here")
    os.chdir(WORK)
    environment = {"PYTHONPATH": PACKAGE, "TRACESMITH_RECORDER": TOOL}
    done = run([sys.executable, "-c", PROGRAM], 180, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not expect(done.returncode == 0 and lines, f"exit code {done.returncode}: {done.stdout[-600:]}"):
        return
    told = json.loads(lines[-1])
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


main()
finish()
