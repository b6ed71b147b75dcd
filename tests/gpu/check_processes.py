# SPDX-License-Identifier: Apache-2.0
"""Processes: one that never uses CUDA is unaffected; two recorded at once are in one trace; forked
workers work and exit; a statically linked runtime is recorded.
"""
import collections, importlib.util, os, subprocess, sys

from common import *

WITHOUT = """
import sys
print("hello", 1 + 1)
print("error", file=sys.stderr)
mapped = open("/proc/self/maps").read()
print([word for word in ("libcuda.so", "libcupti") if word in mapped])
"""
TWO = """
import subprocess, sys
children = [subprocess.Popen(sys.argv[1:]) for _ in range(2)]
sys.exit(max(child.wait() for child in children))
"""
FORKED = """
import os, torch
from torch.utils.data import DataLoader, Dataset
class Items(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.full((256,), float(i))
if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    total = 0.0
    for batch in DataLoader(Items(), batch_size=8, num_workers=4, pin_memory=True, multiprocessing_context="fork"):
        total += (batch.cuda(non_blocking=True) * 2).sum().item()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    total += (torch.ones(16, device="cuda") * 2).sum().item()
    print("total", total)
"""


def check_without():
    command = [sys.executable, "-c", WITHOUT]
    alone = subprocess.run(command, capture_output=True, timeout=60)
    recorded = subprocess.run(record_command("without", command), capture_output=True, timeout=60)
    expect((alone.returncode, alone.stdout, alone.stderr) == (recorded.returncode, recorded.stdout, recorded.stderr),
           f"a program without CUDA: {recorded.stdout[-200:]} {recorded.stderr[-200:]}")
    expect(b"[]" in recorded.stdout, "a library of NVIDIA's is in a program that does not use it")
    trace = Trace(trace_path("without"))
    expect(not trace.calls() and not trace.ops() and not trace.losses(), f"rows of a program without CUDA; loss {trace.losses()[:2]}")


def check_two(count=20000):
    trace = record("two", [sys.executable, "-c", TWO, LAUNCHES, "count", str(count)], ["--stacks", "none"])
    check_complete(trace, "two at once")
    by_process = collections.Counter(op.get("pid") for op in trace.kernels())
    expect(sorted(by_process.values()) == [count, count], f"kernels by process: {dict(by_process)}")
    both = [subprocess.Popen(record_command(f"beside-{i}", [LAUNCHES, "count", str(count)], ["--stacks", "none"])) for i in range(2)]
    expect(all(one.wait(60) == 0 for one in both), "two recorders beside each other")
    for i in range(2):
        beside = Trace(trace_path(f"beside-{i}"))
        check_complete(beside, "two recorders")
        expect(len(beside.kernels()) == count, f"{len(beside.kernels())} kernels, not {count}")
    figures["two"] = list(by_process.values())


def check_forked():
    if not importlib.util.find_spec("torch"):
        figures["forked"] = "left out: no torch"
        return
    alone = run([sys.executable, "-c", FORKED], 120)
    trace = record("forked", [sys.executable, "-c", FORKED])
    expect(alone.stdout.splitlines()[-1:] == [line for line in trace.output.splitlines() if line.startswith("total")],
           f"with forked workers: {trace.output[-200:]}")
    check_complete(trace, "forked workers")
    users = {op.get("pid") for op in trace.ops()}
    expect(len(users) == 1, f"commands of processes {users}")
    figures["forked_commands"] = len(trace.ops())


def check_static(count=1000):
    if not os.path.exists(RUNTIME):
        print("the runtime could not be linked statically: left out")
        figures["static"] = "left out"
        return
    counted = oracle([RUNTIME, str(count)], name="static")
    trace = record("static", [RUNTIME, str(count)])
    check_complete(trace, "static runtime")
    names = collections.Counter(op["name"] for op in trace.kernels())
    kinds = collections.Counter(op["kind"] for op in trace.ops())
    if counted:
        compare_counts(names, {name: entry[0] for name, entry in counted.items()}, "static runtime")
    expect(names == {"count_up": count}, f"static runtime: {dict(names)}")
    expect(kinds["fill"] == count // 100 and kinds["copy"] == count // 100, f"static runtime: {dict(kinds)}")
    expect(str(count // 100 * 100 * 1) in trace.output, f"static runtime: {trace.output[-100:]}")
    figures["static"] = dict(kinds)


def check_default(count=1000):
    """By default CUDA is recorded, along with metrics."""
    trace = record("default", [LAUNCHES, "count", str(count)], backends=None)
    expect(len(trace.kernels()) == count, f"by default: {len(trace.kernels())} kernels, not {count}")
    expect(all(row.get("stack") for row in trace.rows("api_call", "name,stack", "--name", "cuLaunchKernel")), "by default: launches without a stack")


check_without()
check_default()
check_two()
check_static()
if "--quick" not in sys.argv:
    check_forked()
finish()
