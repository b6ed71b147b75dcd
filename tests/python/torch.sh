#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# PyTorch training on the CPU with data loader workers: all processes and threads in one timeline,
# each with its name. TORCH_PYTHON: a Python with torch, if the default one has none.
set -euo pipefail
. "$TS_SOURCE/tests/lib/python.sh"

python=${TORCH_PYTHON:-$python}
"$python" -c 'import torch' 2>/dev/null || { echo "skip: $python has no torch: set TORCH_PYTHON, or TS_LONG=1"; exit 77; }

cat >train.py <<'PY'
import os, sys, time

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        return self.load(index), float(index % 7)

    def load(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand(256, generator=generator)


def step(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs).squeeze(1), targets)
    loss.backward()
    optimizer.step()
    return loss.item()


def train(seconds):
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(Numbers(), batch_size=32, num_workers=2, persistent_workers=True)
    end, steps = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for inputs, targets in loader:
            step(model, optimizer, inputs, targets.float())
            steps += 1
            if time.monotonic() >= end:
                break
    print("steps", steps)


if __name__ == "__main__":
    train(float(sys.argv[1]))
PY

"$TRACESMITH" record -q -o t.sbt --backends python --python-interval 0.005 -- "$python" train.py 6 >said 2>record.err ||
	fail "record: $(cat said record.err)"
# The main process trains, two others load, and none has two roles.
trace_holds t.sbt "any('train' in functions(sample) and 'step' in functions(sample) for sample in samples)"
trace_holds t.sbt "len({sample['pid'] for sample in samples if '_worker_loop' in functions(sample) and '__getitem__' in functions(sample)}) == 2"
trace_holds t.sbt "not any('step' in functions(sample) and '_worker_loop' in functions(sample) and 'train' not in functions(sample) for sample in samples)"
# Other threads: those that feed queues, in workers and in the trainer.
trace_holds t.sbt "len({(sample['pid'], sample['tid']) for sample in samples}) > len({sample['pid'] for sample in samples})"
"$TRACESMITH" view t.sbt --table thread --json >threads
grep -q '"MainThread"' threads || fail "no thread is called MainThread: $(cat threads)"
grep -q QueueFeederThread threads || fail "no thread feeds a queue: $(cat threads)"
# One timeline with a lane for each.
"$TRACESMITH" export t.sbt -f timeline -o t.json 2>export.err || fail "export: $(cat export.err)"
python3 - <<'PY'
import json

document = json.load(open("t.json"))
events = document["traceEvents"] if isinstance(document, dict) else document
lanes = {(event["pid"], event.get("tid")) for event in events if event["ph"] in "BX"}
processes = {pid for pid, _ in lanes}
assert len(processes) >= 3, f"processes: {processes}"
assert len(lanes) > len(processes), f"lanes: {lanes}"
depth = {}
for event in events:
    if event["ph"] in "BE":
        lane = (event["pid"], event.get("tid"))
        depth[lane] = depth.get(lane, 0) + (1 if event["ph"] == "B" else -1)
        assert depth[lane] >= 0, f"a stack of {lane} ends twice"
assert not any(depth.values()), f"stacks left open: {depth}"
PY
cat said
