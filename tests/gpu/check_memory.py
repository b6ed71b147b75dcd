# SPDX-License-Identifier: Apache-2.0
"""The memory timeline: allocations minus frees between two points match the change of PyTorch's
reserved memory, and each row's total is the sum of the rows up to it.
"""
import collections, json, os, sys

from common import *

module_or_skip("torch")

PROGRAM = """
import json, sys, time
import torch
def point():
    torch.cuda.synchronize(); time.sleep(0.01)
    points.append([time.clock_gettime_ns(time.CLOCK_REALTIME), getattr(torch.cuda, sys.argv[2])()])
    time.sleep(0.01)
points, kept = [], []
torch.zeros(1, device="cuda")
point()
for size in (1 << 20, 3 << 20, 30 << 20, 200 << 20, 1 << 30):
    kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    point()
kept.clear(); torch.cuda.empty_cache(); point()
kept.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda")); point()
json.dump(points, open(sys.argv[1], "w"))
"""


def bytes_of(row, sizes):
    """What a row adds; a free may not know its size."""
    if row["kind"] == "alloc":
        sizes[row.get("address")] = row.get("bytes") or 0
        return sizes[row.get("address")]
    return -(row.get("bytes") or sizes.pop(row.get("address"), 0))


def check_memory(name, settings, measure="memory_reserved"):
    out = os.path.join(WORK, name + ".json")
    trace = record(name, [sys.executable, "-c", PROGRAM, out, measure], ["--no-symbols"], env=settings)
    points = json.load(open(out))
    rows = [row for row in trace.rows("allocation") if row.get("device") is not None]
    expect(rows, f"{name}: no allocations")
    sizes, total = {}, 0
    changes = []
    for row in rows:
        change = bytes_of(row, sizes)
        total += change
        changes.append((row["start"], change))
        if row.get("total_bytes") is not None and not expect(row["total_bytes"] == total, f"{name}: a total of {row['total_bytes']}, the sum is {total}"):
            break
    for (begin, before), (end, after) in zip(points, points[1:]):
        change = sum(bytes for when, bytes in changes if begin < when <= end)
        expect(change == after - before, f"{name}: {change} bytes between two points, PyTorch says {after - before}")
    expect(all(row.get("stack") for row in rows), f"{name}: allocations without a stack")
    figures[name] = len(rows)


check_memory("memory", {})
check_memory("memory_expandable", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
check_memory("memory_async", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}, "memory_allocated")  # the pool is the driver's own there
finish()
