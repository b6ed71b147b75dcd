# SPDX-License-Identifier: Apache-2.0
"""torch.profiler inside a recorded program gets exactly the same events as without us; meanwhile
calls are still recorded, the gap is in loss, and device times resume afterwards.
"""
import json, os, sys

from common import *

module_or_skip("torch")

PROGRAM = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import torch, workloads
work = workloads.mlp()
host, device = torch.ones(1 << 16), torch.ones(1 << 16, device=workloads.DEVICE)
def move():
    for _ in range(3): device.copy_(host)
    for _ in range(2): host.copy_(device)
work(); move(); work(); torch.cuda.synchronize(); time.sleep(0.3)
found = []
for _ in range(2):
    begin = time.clock_gettime_ns(time.CLOCK_REALTIME)
    with workloads.make_profile() as profile:
        work(); move(); torch.cuda.synchronize()
    end = time.clock_gettime_ns(time.CLOCK_REALTIME)
    found.append({**workloads.counted(profile), "begin_ns": begin, "end_ns": end})
    time.sleep(0.3)
    work(); torch.cuda.synchronize(); time.sleep(0.3)
    found[-1]["resumed_ns"] = [end, time.clock_gettime_ns(time.CLOCK_REALTIME)]
json.dump(found, open(sys.argv[2], "w"))
"""


OUR_REASON = "another tool used CUPTI"
GIVES_WORK = ("Launch", "Memcpy", "Memset")


def compare_rest(number, ours, alone):
    """Copies, fills, and runtime and driver calls that it saw. Those that submit work must be the
    same; others may depend on time (polling)."""
    kinds = ("gpu_memcpy", "gpu_memset")
    counts = [{kind: found["others"].get(kind, [0])[0] for kind in kinds} for found in (ours, alone)]
    expect(counts[0] == counts[1] and counts[0]["gpu_memcpy"] >= 5, f"profile {number}: copies and fills {counts[0]}, without us {counts[1]}")
    working = [{name: count for name, count in found["calls"].items() if any(word in name for word in GIVES_WORK)} for found in (ours, alone)]
    expect(working[0] == working[1] and working[0], f"profile {number}: calls {working[0]}, without us {working[1]}")
    differ = {name: (ours["calls"].get(name, 0), alone["calls"].get(name, 0)) for name in {**ours["calls"], **alone["calls"]}
              if ours["calls"].get(name, 0) != alone["calls"].get(name, 0)}
    aim(not differ, f"profile {number}: calls (with us, without us): {differ}")
    figures.setdefault("profiler_copies_fills", []).append(list(counts[0].values()))
    figures.setdefault("profiler_calls", []).append(sum(ours["calls"].values()))


def command(out):
    return [sys.executable, "-c", PROGRAM, HERE, out]


bare_out, recorded_out = os.path.join(WORK, "profiler-bare.json"), os.path.join(WORK, "profiler-recorded.json")
run(command(bare_out), 120)
trace = record("profiler", command(recorded_out), ["--stacks", "none"])
bare, recorded = json.load(open(bare_out)), json.load(open(recorded_out))
for number, (alone, ours) in enumerate(zip(bare, recorded)):
    compare_counts({name: entry[0] for name, entry in ours["kernels"].items()}, {name: entry[0] for name, entry in alone["kernels"].items()},
                   f"profile {number}, what it got")
    compare_rest(number, ours, alone)
    inside = [call for call in trace.launches() if ours["begin_ns"] <= call["start"] <= ours["end_ns"]]
    expected = sum(entry[0] for entry in ours["kernels"].values())
    expect(len(inside) >= expected > 0, f"profile {number}: {len(inside)} calls meanwhile, {expected} kernels")
    begin, end = ours["resumed_ns"]
    after = [op for op in trace.kernels() if begin <= op["start"] <= end]
    expect(len(after) == expected, f"profile {number}: {len(after)} kernels afterwards, not {expected}")
    figures.setdefault("profiler_kernels", []).append(expected)
    figures.setdefault("resumed_kernels", []).append(len(after))
reasons = {row.get("reason") for row in trace.losses() if row["what"] == "gpu_op"}
expect(reasons == {OUR_REASON}, f"the gap in loss: {sorted(map(str, reasons))}, not '{OUR_REASON}'")
figures["loss"] = [f"{row['what']}: {row.get('reason')}" for row in trace.losses()][:4]
finish()
