# SPDX-License-Identifier: Apache-2.0
"""torch.compile: no graph break and no recompilation, and a compiled region is one row."""

from __future__ import annotations

import contextlib
import unittest
from typing import Any

import torch
from torch import nn
from torch_support import VERSION, Rows, TorchCase, needs_compile

try:
    import torch._dynamo
    from torch._dynamo.utils import counters
except ImportError:  # pragma: no cover
    counters = None


# Before 2.5, this backend calls modules one by one as the graph has them.
EAGER = "eager" if VERSION >= (2, 5) else "aot_eager"
# Older ones call modules while they compile them, with tensors like any other.
TRIES_OUT = VERSION < (2, 4)


class Net(nn.Module):
    def __init__(self, hooked: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        if hooked:
            self.first.register_forward_hook(lambda module, args, out: out * 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def compiled(function: Any, backend: str = "eager", **options: Any) -> Any:
    return torch.compile(function, backend=backend, **options)


@unittest.skipIf(counters is None, "torch has no dynamo")
@needs_compile
class CompileTest(TorchCase):
    def setUp(self) -> None:
        super().setUp()
        torch._dynamo.reset()
        counters.clear()

    def figures(self) -> dict[str, Any]:
        return {
            "graphs": counters["stats"]["unique_graphs"],
            "operations": counters["stats"]["calls_captured"],
            "frames": counters["frames"]["ok"],
            "breaks": dict(counters["graph_break"]),
        }

    def programs(self) -> Any:
        """What is compiled in several ways, and a function that runs all of it once."""
        models = [Net(), Net(), Net(), Net(hooked=True)]
        optimizer = torch.optim.SGD(models[0].parameters(), lr=0.1)
        whole = compiled(models[0], fullgraph=True)
        function = compiled(lambda x: models[1](x).sum(), fullgraph=True)
        if hasattr(models[2], "compile"):
            models[2].compile(backend="eager", fullgraph=True)
        hooked = compiled(models[3])
        step = compiled(optimizer.step)
        x = torch.ones(2, 4)

        def run() -> None:
            whole(x).sum().backward()
            function(x).backward()
            models[2](x).sum().backward()
            step()

        def run_hooked() -> None:
            hooked(x).sum().backward()

        return run, run_hooked

    def test_enabled_before(self) -> None:
        run, run_hooked = self.programs()
        for _ in range(2):
            run()
            run_hooked()
        without = self.figures()
        torch._dynamo.reset()
        counters.clear()
        with Rows():
            run, run_hooked = self.programs()
            for _ in range(2):
                run()
                run_hooked()
            self.assertEqual(self.figures(), without)

    def test_enabled_and_disabled_after(self) -> None:
        run, _ = self.programs()
        run()
        run()
        without = self.figures()
        compiler = getattr(torch, "compiler", None)
        stance = getattr(compiler, "set_stance", lambda stance: contextlib.nullcontext())
        with stance("fail_on_recompile"):
            with Rows() as rows:
                run()
                run()
            run()
        self.assertEqual(self.figures(), without)
        self.assertIn("Net", rows.modules("forward"))

    def test_a_compiled_module_is_one_row(self) -> None:
        for late, backend in ((False, EAGER), (True, EAGER), (True, "aot_eager")):
            if TRIES_OUT and not late:
                continue
            with self.subTest(late=late, backend=backend):
                torch._dynamo.reset()
                model = Net()
                if late:
                    whole = compiled(model, backend)
                    whole(torch.ones(2, 4))
                with Rows() as rows:
                    if not late:
                        whole = compiled(model, backend)
                    whole(torch.ones(2, 4)).sum().backward()
                    whole(torch.ones(2, 4)).sum().backward()
                self.assertEqual(rows.modules("forward"), ["Net", "Net"])
                self.assertEqual(rows.modules("backward"), ["Net", "Net"])

    def test_explain(self) -> None:
        model = Net()
        with Rows():
            if VERSION < (2, 1):
                graphs = torch._dynamo.explain(model, torch.ones(2, 4))[2]
            else:
                graphs = torch._dynamo.explain(model)(torch.ones(2, 4)).graphs
        self.assertEqual(len(graphs), 1)

    def test_a_break_of_the_program_shows_the_module_it_is_in(self) -> None:
        class Broken(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = self.linear(x)
                torch._dynamo.graph_break()
                return self.linear(x)

        model = nn.Sequential(Broken(), nn.Linear(4, 4))
        expected = compiled(model)(torch.ones(2, 4))
        without = self.figures()
        torch._dynamo.reset()
        counters.clear()
        with Rows() as rows:
            self.assertTrue(torch.equal(compiled(model)(torch.ones(2, 4)), expected))
        self.assertEqual(self.figures(), without)
        self.assertEqual(rows.modules("forward")[0], "Sequential")

    def test_inductor(self) -> None:
        import shutil

        if not (shutil.which("g++") or shutil.which("clang++")):
            self.skipTest("no C++ compiler")
        model = Net()
        x = torch.ones(2, 4)
        expected = model(x)
        with Rows() as rows:
            got = torch.compile(model)(x)
            got.sum().backward()
        torch.testing.assert_close(got, expected)
        for stage in ("forward", "backward"):
            names = rows.modules(stage)
            self.assertEqual([name for name in names if name == "Net" or not TRIES_OUT], ["Net"])

    def test_compiled_autograd(self) -> None:
        def run() -> Any:
            torch._dynamo.reset()
            counters.clear()
            torch.manual_seed(0)
            model = Net()
            whole = compiled(model)
            for _ in range(2):
                whole(torch.ones(2, 4)).sum().backward()
            return [p.grad.clone() for p in model.parameters()], self.figures()

        if not hasattr(torch._dynamo.config, "compiled_autograd"):
            self.skipTest("no compiled autograd")
        with torch._dynamo.config.patch(compiled_autograd=True):
            without = run()
            with Rows() as rows:
                recorded = run()
        self.assert_equal_bits(without[0], recorded[0])
        self.assertEqual(without[1], recorded[1])
        if EAGER == "eager":
            self.assertEqual(rows.modules("forward"), ["Net", "Net"])

    @unittest.skipIf(VERSION < (2, 3), "before 2.3, torch calls the compiled update like a model")
    def test_steps_are_seen_although_the_optimizer_is_compiled(self) -> None:
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = compiled(optimizer.step)
        with Rows() as rows:
            for _ in range(3):
                model(torch.ones(2, 4)).sum().backward()
                step()
                optimizer.zero_grad()
        self.assertEqual(
            [row["step"] for row in rows.of("forward") if row["module"] == "Net"], [0, 1, 2]
        )


if __name__ == "__main__":
    unittest.main()
