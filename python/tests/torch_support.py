# SPDX-License-Identifier: Apache-2.0
"""What tests of tracesmith.torch share: models, and the rows that a program stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from typing import Any, Callable, Optional

import torch
from torch import nn

import tracesmith
import tracesmith.torch
from tracesmith import _torch

# PyTorch's, for what differs between versions.
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
needs_compile = unittest.skipIf(
    VERSION < (2, 1) and sys.version_info >= (3, 11),
    "torch.compile of torch 2.0 needs Python 3.10 or older",
)


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = nn.functional.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x))
        return self.out(mixed)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm(x))
        return x + self.mlp(x)


class Net(nn.Module):
    """A small transformer."""

    def __init__(self, width: int = 8, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(16, width)
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, 16)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def tokens(seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 16, (2, 5), generator=torch.Generator().manual_seed(seed))


def tool_path() -> str:
    return os.environ["TRACESMITH_RECORDER"]


def tool(*arguments: str) -> str:
    """The output of the tool."""
    return subprocess.run(
        [tool_path(), *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
    ).stdout


def read_table(trace: str, table: str = "torch_trace") -> list[dict[str, Any]]:
    """The rows of a table, in the order of their start."""
    return [
        json.loads(line) for line in tool("view", "--json", "--table", table, trace).splitlines()
    ]


class Rows:
    """Rows of torch_trace that are stored inside `with`."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.rows: list[dict[str, Any]] = []

    def __enter__(self) -> "Rows":
        self.directory = tempfile.TemporaryDirectory(dir=os.getcwd())
        self.path = os.path.join(self.directory.name, "t.sbt")
        self.recording = tracesmith.start(self.path)
        tracesmith.torch.enable(**self.settings)
        return self

    def __exit__(self, *exception: Any) -> None:
        tracesmith.torch.disable()
        tracesmith.stop()
        self.rows = read_table(self.path)
        self.marks = read_table(self.path, "mark")
        self.slices = read_table(self.path, "slice")
        self.directory.cleanup()

    def of(self, stage: str, step: Optional[int] = None) -> list[dict[str, Any]]:
        """Of a stage, in the order of their begin."""
        rows = [
            row for row in self.rows if row["stage"] == stage and step in (None, int(row["step"]))
        ]
        return sorted(rows, key=lambda row: (int(row["step"]), int(row["seq"])))

    def modules(self, stage: str, step: Optional[int] = None) -> list[str]:
        return [row["module"] for row in self.of(stage, step)]


class TorchCase(unittest.TestCase):
    """Leaves nothing switched on."""

    maxDiff = None

    def setUp(self) -> None:
        torch.manual_seed(0)

    def tearDown(self) -> None:
        tracesmith.torch.unwatch()
        tracesmith.torch.disable()
        self.assertEqual(_torch.state()["failures"], 0, "errors inside the profiler")

    def train(self, model: nn.Module, steps: int = 1, **optimizer: Any) -> list[Any]:
        """Gradients and parameters after each step."""
        update = torch.optim.SGD(model.parameters(), lr=0.1)
        seen = []
        for step in range(steps):
            model(tokens(step)).square().mean().backward()
            seen.append([parameter.grad.clone() for parameter in model.parameters()])
            update.step()
            update.zero_grad()
            seen.append([parameter.detach().clone() for parameter in model.parameters()])
        return seen

    def assert_equal_bits(self, first: Any, second: Any) -> None:
        if isinstance(first, torch.Tensor):
            self.assertTrue(torch.equal(first, second))
            return
        self.assertEqual(len(first), len(second))
        for one, other in zip(first, second):
            self.assert_equal_bits(one, other)


def run_program(
    source: str, *arguments: str, env: Optional[dict[str, str]] = None, command: Any = ()
) -> subprocess.CompletedProcess[str]:
    """Runs a program of its own; its output, which must end well."""
    path = Path(tempfile.mkdtemp(dir=os.getcwd())) / "program.py"
    path.write_text(textwrap.dedent(source))
    return subprocess.run(
        [*command, sys.executable, str(path), *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        env={**os.environ, **(env or {})},
    )


def with_and_without(function: Callable[[], Any], **settings: Any) -> tuple[Any, Any]:
    """What a function returns without and with modules being recorded."""
    torch.manual_seed(0)
    without = function()
    torch.manual_seed(0)
    with Rows(**settings):
        recorded = function()
    return without, recorded
