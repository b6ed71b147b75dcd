# SPDX-License-Identifier: Apache-2.0
"""torch.profiler inside a recorded program gets exactly the events that it gets without us; meanwhile calls go on being recorded, the gap is in loss, and afterwards device times are back."""
import json, os, sys

from common import *

module_or_skip("torch")

PROGRAM = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import torch, workloads
work = workloads.mlp()
work(); work(); torch.cuda.synchronize(); time.sleep(0.3)
found = []
for _ in range(2):
    begin = time.clock_gettime_ns(time.CLOCK_REALTIME)
    with workloads.make_profile() as profile:
        work(); torch.cuda.synchronize()
    end = time.clock_gettime_ns(time.CLOCK_REALTIME)
    found.append({**workloads.counted(profile), "begin_ns": begin, "end_ns": end})
    time.sleep(0.3)
    work(); torch.cuda.synchronize(); time.sleep(0.3)
    found[-1]["resumed_ns"] = [end, time.clock_gettime_ns(time.CLOCK_REALTIME)]
json.dump(found, open(sys.argv[2], "w"))
"""


def command(out):
    return [sys.executable, "-c", PROGRAM, HERE, out]


bare_out, recorded_out = os.path.join(WORK, "profiler-bare.json"), os.path.join(WORK, "profiler-recorded.json")
run(command(bare_out), 120)
trace = record("profiler", command(recorded_out), ["--stacks", "none"])
bare, recorded = json.load(open(bare_out)), json.load(open(recorded_out))
for number, (alone, ours) in enumerate(zip(bare, recorded)):
    compare_counts({name: entry[0] for name, entry in ours["kernels"].items()}, {name: entry[0] for name, entry in alone["kernels"].items()},
                   f"profile {number}, what it got")
    inside = [call for call in trace.launches() if ours["begin_ns"] <= call["start"] <= ours["end_ns"]]
    expected = sum(entry[0] for entry in ours["kernels"].values())
    expect(len(inside) >= expected > 0, f"profile {number}: {len(inside)} calls meanwhile, {expected} kernels")
    begin, end = ours["resumed_ns"]
    after = [op for op in trace.kernels() if begin <= op["start"] <= end]
    expect(len(after) == expected, f"profile {number}: {len(after)} kernels afterwards, not {expected}")
    figures.setdefault("profiler_kernels", []).append(expected)
    figures.setdefault("resumed_kernels", []).append(len(after))
expect(trace.losses(), "the gap is not in loss")
figures["loss"] = [f"{row['what']}: {row.get('reason')}" for row in trace.losses()][:4]
finish()
