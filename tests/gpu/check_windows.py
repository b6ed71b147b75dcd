# SPDX-License-Identifier: Apache-2.0
"""Windows by a flag file in four worker processes that use the GPU: one pair of files each, with the
steps of the window and the kernels of each step. check_windows.py [--device cpu]
"""
import glob, json, os, sys, time

from common import *

module_or_skip("torch")
DEVICE = sys.argv[2] if sys.argv[1:2] == ["--device"] else "cuda"
WORKERS = 4
WORKER = """
import os, sys
import torch
from tracesmith.chakra import get_global_manager

device = sys.argv[1]
manager = get_global_manager()
x = torch.rand(128, 128, device=device)
print("ready", flush=True)
for line in sys.stdin:  # a step for each line; the answer says whether a window is open
    is_open = manager.tick_by_flag()
    x = torch.relu(x @ x / 128)
    if device == "cuda":
        torch.cuda.synchronize()
    print("open" if is_open else "closed", flush=True)
manager.wait()
"""
FILES = "windows"


class Worker:
    def __init__(self, environment):
        self.process = subprocess.Popen([sys.executable, "-c", WORKER, DEVICE], env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def step(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(120)


def check_files(pid, steps):
    (kineto,) = glob.glob(f"{FILES}/kineto_pid{pid}_*.json")
    (observed,) = glob.glob(f"{FILES}/pytorch_et_pid{pid}_*.json")
    expect(json.load(open(observed))["nodes"], f"{observed}: no nodes")
    events = json.load(open(kineto))["traceEvents"]
    annotations = {event["name"] for event in events if event.get("cat") == "user_annotation"}
    expected = {f"ProfilerStep#{number}" for number in range(steps)}
    expect(annotations == expected, f"{kineto}: steps {sorted(annotations)}, not {sorted(expected)}")
    if DEVICE == "cuda":
        kernels = [event for event in events if event.get("cat") == "kernel"]
        figures["kernels"] = len(kernels)
        # A product, a division and a relu.
        expect(len(kernels) == 3 * steps, f"{kineto}: {len(kernels)} kernels in {steps} steps")


def main():
    package = os.path.join(BUILD, "python")
    if not os.path.exists(os.path.join(package, "tracesmith/__init__.py")):
        skip("the Python package was not built: no headers of Python here")
    os.chdir(WORK)
    flag = os.path.abspath("flag")
    environment = {**os.environ, "PYTHONPATH": package, "VLLM_CHAKRA_FLAG": flag, "VLLM_CHAKRA_TRACE_DIR": FILES}
    workers = [Worker(environment) for _ in range(WORKERS)]
    expect({worker.step() for worker in workers} == {"closed"}, "a window without the flag")
    open(flag, "w").close()
    for number, worker in enumerate(workers):
        expect([worker.step() for _ in range(number + 1)] == ["open"] * (number + 1), "no window with the flag")
    os.unlink(flag)
    expect({worker.step() for worker in workers} == {"closed"}, "the window stays open without the flag")
    for worker in workers:
        expect(worker.end() == 0, "a worker failed")
    found = sorted(os.listdir(FILES))
    expect(len(found) == 2 * WORKERS and not any(name.endswith(".part") for name in found), f"files: {found}")
    for number, worker in enumerate(workers):
        check_files(worker.process.pid, number + 1)
    figures["workers"] = WORKERS


main()
finish()
