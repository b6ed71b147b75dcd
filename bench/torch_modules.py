#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tracesmith.torch costs, against torch.profiler and hooks written by hand.

    bench/torch_modules.py --device cuda --pairs 40

In one process, all variants take turns, in an order that changes each round. A round's ratio is its
variant's time to that of "off" in the same round; the table shows the median of the ratios with its
95 % interval (of order statistics). Run it with a Python that has torch and the package of the
build: PYTHONPATH=build/python.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator

import torch
from torch import nn

import tracesmith
import tracesmith.torch


class Layer(nn.Module):
    """An encoder layer whose parts are modules of their own, as in most transformers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.activation = nn.GELU()
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        y = self.norm1(x)
        parts = [
            part(y).view(batch, length, self.heads, -1).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        ]
        mixed = nn.functional.scaled_dot_product_attention(*parts)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.activation(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1024, width)
        self.layers = nn.ModuleList(Layer(width, 8) for _ in range(layers))
        self.head = nn.Linear(width, 1024)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Training:
    """A model, and a training step of it."""

    def __init__(self, name: str, device: str, scale: float, clock: str) -> None:
        self.clock = time.thread_time if clock == "thread" else time.perf_counter
        torch.manual_seed(0)
        on_gpu = device == "cuda"
        if name == "mlp":
            width = int((2048 if on_gpu else 512) * scale)
            self.model = nn.Sequential(
                *[part for _ in range(8) for part in (nn.Linear(width, width), nn.ReLU())],
                nn.Linear(width, 16),
            ).to(device)
            self.input = torch.randn(1024 if on_gpu else 128, width, device=device)
        else:
            width = int((1024 if on_gpu else 256) * scale) // 8 * 8
            self.model = Transformer(width, 8 if on_gpu else 4).to(device)
            self.input = torch.randint(
                0, 1024, (8 if on_gpu else 2, 256 if on_gpu else 64), device=device
            )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5)
        self.device = device

    def step(self) -> None:
        output = self.model(self.input)
        loss = output.float().square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def run(self, steps: int) -> float:
        """Seconds for these steps, with what the device has left to do."""
        self.synchronize()
        start = self.clock()
        for _ in range(steps):
            self.step()
        self.synchronize()
        return self.clock() - start

    def synchronize(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


@contextmanager
def recorded(**settings: Any) -> Iterator[None]:
    tracesmith.torch.enable(**settings)
    try:
        yield
    finally:
        tracesmith.torch.disable()


@contextmanager
def off(training: Training) -> Iterator[None]:
    yield


@contextmanager
def idle(training: Training) -> Iterator[None]:
    """Enabled, in steps that are not recorded."""
    with recorded(every=1 << 40):
        # Step 0 is one of those that are; the next one reads its device times.
        for _ in range(2):
            training.step()
            training.synchronize()
        yield


@contextmanager
def steps_and_metrics(training: Training) -> Iterator[None]:
    with recorded(modules=False, memory=True):
        yield


@contextmanager
def on(training: Training) -> Iterator[None]:
    with recorded():
        yield


@contextmanager
def on_everything(training: Training) -> Iterator[None]:
    with recorded(memory=True, device_time=True):
        yield


@contextmanager
def variables(training: Training) -> Iterator[None]:
    with recorded():
        watches = [tracesmith.torch.watch("Training.step", "loss", "output.shape")]
        if isinstance(training.model, Transformer):
            watches.append(tracesmith.torch.watch("Layer.forward", "x.shape", "mixed.dtype"))
        try:
            yield
        finally:
            for each in watches:
                each.remove()


@contextmanager
def profiler(training: Training) -> Iterator[None]:
    activities = [torch.profiler.ProfilerActivity.CPU]
    if training.device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities):
        yield


@contextmanager
def hooks(training: Training) -> Iterator[None]:
    """Times of modules as programs take them: forward hooks and full backward hooks."""
    rows: list[tuple[str, str, int]] = []
    begun: dict[tuple[str, str], int] = {}

    def begin(stage: str, name: str) -> Callable[..., None]:
        def hook(*args: Any) -> None:
            begun[stage, name] = time.perf_counter_ns()

        return hook

    def end(stage: str, name: str) -> Callable[..., None]:
        def hook(*args: Any) -> None:
            if training.device == "cuda":
                torch.cuda.memory_allocated()
            start = begun.pop((stage, name), None)
            if start is not None:
                rows.append((stage, name, time.perf_counter_ns() - start))

        return hook

    handles = []
    for name, module in training.model.named_modules():
        handles.append(module.register_forward_pre_hook(begin("forward", name)))
        handles.append(module.register_forward_hook(end("forward", name)))
        handles.append(module.register_full_backward_pre_hook(begin("backward", name)))
        handles.append(module.register_full_backward_hook(end("backward", name)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


VARIANTS: dict[str, Callable[[Training], Any]] = {
    "off": off,
    "off again": off,
    "idle": idle,
    "steps": steps_and_metrics,
    "on": on,
    "on and each reading": on_everything,
    "on with variables": variables,
    "hooks by hand": hooks,
    "torch.profiler": profiler,
}


def interval(values: list[float]) -> tuple[float, float, float]:
    """The median, and the 95 % interval of order statistics around it."""
    ordered = sorted(values)
    count = len(ordered)
    spread = 0.98 * count**0.5
    low = max(0, int(count / 2 - spread))
    high = min(count - 1, int(count / 2 + spread))
    return statistics.median(ordered), ordered[low], ordered[high]


class Empty(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def measure_calls(rounds: int) -> None:
    """The shortest time of empty modules, also in steps of training and inference that have no rows."""
    module, x = nn.Sequential(*(Empty() for _ in range(999))), torch.ones(1)
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters())
    best: dict[str, float] = {}

    def call(name: str) -> None:
        for _ in range(30):
            start = time.perf_counter()
            module(x)
            best[name] = min(best.get(name, 1), time.perf_counter() - start)

    tracesmith.start()
    for _ in range(rounds):
        call("off")
        with recorded(every=1 << 40):
            optimizer.step()  # ends step 0, which is recorded
            call("training, idle")
        with recorded(every=1 << 40), torch.no_grad():
            module(x)
            call("inference, idle")
        with recorded(), torch.no_grad():
            call("inference, with rows")
    tracesmith.stop()
    for name, seconds in best.items():
        print(f"a call of an empty module, {name:20} {seconds * 1e6:6.0f} ns")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--pairs", type=int, default=30, help="rounds (default: 30)")
    parser.add_argument(
        "--ms", type=float, default=150, help="time of one measurement (default: 150)"
    )
    parser.add_argument("--scale", type=float, default=1, help="of the models' width")
    parser.add_argument("--models", default="mlp,transformer")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument(
        "--clock",
        choices=("wall", "thread"),
        default="wall",
        help="thread: CPU time of the calling thread, on a busy machine",
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", help="trace to record into; default: flight mode")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--calls", action="store_true", help="only calls of an empty module")
    options = parser.parse_args()
    if options.calls:
        measure_calls(options.pairs)
        return
    torch.set_num_threads(options.threads)
    names = [name for name in VARIANTS if name in options.variants.split(",") or name == "off"]
    # Once for all rounds: what the first rows cost is not a step's.
    tracesmith.start(options.output)
    for model in options.models.split(","):
        training = Training(model, options.device, options.scale, options.clock)
        training.run(10)
        steps = max(1, round(options.ms / 1000 / (training.run(10) / 10)))
        times: dict[str, list[float]] = {name: [] for name in names}
        for round_number in range(options.pairs):
            shift = round_number % len(names)
            for name in names[shift:] + names[:shift]:
                with VARIANTS[name](training):
                    training.step()
                    times[name].append(training.run(steps) / steps)
        modules = sum(1 for _ in training.model.modules())
        base_ms = statistics.median(times["off"]) * 1000
        if not options.json:
            print(f"{model} on {options.device}: {modules} modules, {base_ms:.3f} ms a step,")
            print(f"  {options.pairs} rounds of {steps} steps")
        for name in names[1:]:
            ratios = [time / base for time, base in zip(times[name], times["off"])]
            middle, low, high = ((value - 1) * 100 for value in interval(ratios))
            each_us = middle / 100 * base_ms * 1000 / modules
            if options.json:
                figures = {"model": model, "device": options.device, "variant": name}
                figures.update(percent=middle, low=low, high=high, us_per_module=each_us)
                print(json.dumps(figures))
            else:
                print(
                    f"  {name:18} {middle:+8.2f} %  ({low:+.2f} .. {high:+.2f})"
                    f"  {each_us:+8.2f} us a module and step"
                )
    tracesmith.stop()


if __name__ == "__main__":
    sys.exit(main())
