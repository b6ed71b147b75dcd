# SPDX-License-Identifier: Apache-2.0
"""A training loop to record: a data loader with two workers, a small model, spans and steps.

    python3 examples/python_train.py -o t.sbt        # records itself; the CPU suffices
    tracesmith analyze t.sbt steps
    tracesmith analyze t.sbt operators
    tracesmith view t.sbt

    tracesmith record -o t.sbt -- python3 examples/python_train.py    # with stacks and metrics

    # A window of PyTorch's own traces, while the flag exists (docs/windows.md):
    touch flag; TRACESMITH_CHAKRA_FLAG=flag python3 examples/python_train.py
"""
import argparse
import contextlib

import torch
from torch.utils.data import DataLoader, Dataset

import tracesmith
from tracesmith.chakra import get_global_manager


class Curve(Dataset):
    """Points of a noisy curve."""

    def __len__(self):
        return 2048

    def __getitem__(self, index):
        with tracesmith.span("load", "data", index=index):
            generator = torch.Generator().manual_seed(index)
            x = torch.rand(16, generator=generator)
            return x, torch.sin(x.sum() * 3) + 0.01 * torch.rand(1, generator=generator)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU())
        self.head = torch.nn.Linear(64, 1)

    def forward(self, x):
        return self.head(self.body(x))


def train(steps):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    manager = get_global_manager()
    batches = iter(DataLoader(Curve(), batch_size=32, num_workers=2))
    loss = None
    for number in range(steps):
        tracesmith.step(number)
        manager.tick_by_flag()
        with tracesmith.span("next batch", "train"):
            x, y = next(batches)
        with tracesmith.span("forward", "train"):
            loss = torch.nn.functional.mse_loss(model(x), y)
        with tracesmith.span("backward", "train"):
            optimizer.zero_grad()
            loss.backward()
        with tracesmith.span("optimizer", "train"):
            optimizer.step()
        tracesmith.counter("loss", value=loss.item())
    return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", help="record into this trace")
    parser.add_argument("--steps", type=int, default=50, help="at most 64; default: %(default)s")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        recording = None
        if arguments.output:
            recording = stack.enter_context(tracesmith.record(arguments.output))
        loss = train(min(arguments.steps, 64))
    print(f"loss {loss:.4f}")
    if recording is not None:
        print(recording.summary)


if __name__ == "__main__":
    main()
