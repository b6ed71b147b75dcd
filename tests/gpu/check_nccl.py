# SPDX-License-Identifier: Apache-2.0
"""NCCL with one rank (more need more GPUs): a recorded program gets the same result, and its
collectives are calls. NCCL decides whether a kernel runs for them.
"""
import json, os, sys

from common import *

module_or_skip("torch")

PROGRAM = """
import json, os, sys
import torch, torch.distributed as dist
if not dist.is_available() or not dist.is_nccl_available():
    sys.exit("PyTorch has no NCCL")
if os.path.exists(sys.argv[1] + ".meet"): os.unlink(sys.argv[1] + ".meet")
torch.cuda.set_device(0)
dist.init_process_group("nccl", init_method="file://" + sys.argv[1] + ".meet", rank=0, world_size=1)
tensor = torch.arange(1 << 16, dtype=torch.float32, device="cuda")
for _ in range(10):
    dist.all_reduce(tensor)
    tensor.mul_(0.5)
torch.cuda.synchronize()
json.dump({"sum": tensor.double().sum().item(), "nccl": list(torch.cuda.nccl.version())}, open(sys.argv[1], "w"))
dist.destroy_process_group()
"""
ENVIRONMENT = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}


def command(out):
    return [sys.executable, "-c", PROGRAM, out]


def answer(out):
    return json.load(open(out)) if os.path.exists(out) else None


bare_out, recorded_out = os.path.join(WORK, "nccl-bare.json"), os.path.join(WORK, "nccl-recorded.json")
done = run(command(bare_out), 60, ENVIRONMENT)
if done.returncode == 124:
    problems.clear()
if done.returncode or not answer(bare_out):
    skip("NCCL does not run without us, neither: " + ((done.stdout or "").strip().splitlines() or ["no reason was given"])[-1][-150:])
trace = record("nccl", command(recorded_out), ["--stacks", "none"], 60, ENVIRONMENT)
expect(answer(recorded_out) == answer(bare_out), f"recorded: {answer(recorded_out)}, alone: {answer(bare_out)}")
calls = sum(1 for call in trace.calls() if call["name"] == "ncclAllReduce")
collectives = [row for row in trace.rows("gpu_op", "kind,bytes,name") if row["kind"] == "collective"]
aim(calls == 10, f"{calls} calls of ncclAllReduce, not 10")
aim(all(row.get("bytes") for row in collectives), f"bytes of collectives: {[row.get('bytes') for row in collectives][:3]}")
figures.update(calls=calls, collectives=len(collectives), nccl=".".join(map(str, (answer(bare_out) or {}).get("nccl", []))))
finish()
