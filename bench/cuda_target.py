# SPDX-License-Identifier: Apache-2.0
"""
A program to measure: for each line "NAME STEPS", runs that many steps of a workload of
tests/gpu/workloads.py and answers with seconds. After "profile 1", torch.profiler (CPU and CUDA) is
active during the steps; its own start and stop are not included, but reported separately. "window
1" and "window 0" call cudaProfilerStart and Stop, "cupti 1" and "cupti 0" switch
tests/gpu/cupti_only.c, if it is loaded. Warm-up steps precede the measured ones until a switch has
taken effect.
"""
import ctypes, os, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tests/gpu"))
import torch
import workloads

SETTLE_SECONDS = float(os.environ.get("TS_SETTLE_SECONDS", "0.15"))
is_profiled = False
works = {"mlp": workloads.Mlp(), "transformer": workloads.Transformer()}


def timed(work, steps):
    start = time.perf_counter()
    while time.perf_counter() - start < SETTLE_SECONDS:
        work.train_steps(2)
        workloads.synchronize()
    start = time.perf_counter()
    work.train_steps(steps)
    workloads.synchronize()
    return time.perf_counter() - start


def measure(work, steps):
    if not is_profiled:
        return timed(work, steps), 0.0
    start = time.perf_counter()
    with workloads.make_profile():
        seconds = timed(work, steps)
    return seconds, time.perf_counter() - start - seconds - SETTLE_SECONDS


for work in works.values():
    timed(work, 20 if workloads.DEVICE == "cuda" else 1)
print("ready", os.getpid(), flush=True)
for line in sys.stdin:
    name, number = line.split()
    if name == "profile":
        is_profiled = number == "1"
    elif name == "window":
        torch.cuda.profiler.start() if number == "1" else torch.cuda.profiler.stop()
    elif name == "cupti":
        ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).cupti_only_switch(int(number))
    print(*(measure(works[name], int(number)) if name in works else (0, 0)), flush=True)
