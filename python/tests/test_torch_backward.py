# SPDX-License-Identifier: Apache-2.0
"""Backward times: order, containment, and gradients that are equal bit for bit."""

from __future__ import annotations

import unittest
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_support import Block, Net, Rows, TorchCase, tokens, with_and_without

import tracesmith


class Work(torch.autograd.Function):
    """Shows its backward as a span."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, name: str) -> torch.Tensor:
        ctx.name = name
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        with tracesmith.span(ctx.name):
            return grad.sin(), None


class Worker(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Work.apply(x * self.weight, self.name)


def times(row: dict[str, Any]) -> tuple[float, float]:
    """Begin and end, of a row of torch_trace or of a slice."""
    if "stage" in row:
        return row["start"], row["start"] + row["duration"] * 1e9
    return row["start"], row["start"] + row["duration"]


class BackwardTest(TorchCase):
    def test_gradients_and_parameters_are_equal_bit_for_bit(self) -> None:
        def run() -> Any:
            return self.train(Net(), steps=3)

        without, recorded = with_and_without(run)
        self.assert_equal_bits(without, recorded)

    def test_order(self) -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 4)), nn.Tanh())
        with Rows() as rows:
            model(torch.ones(2, 4)).sum().backward()
        root = "Sequential"
        self.assertEqual(
            rows.modules("backward"),
            [root, f"{root}.2", f"{root}.1", f"{root}.1.1", f"{root}.1.0", f"{root}.0"],
        )

    def assert_inside(self, inner: dict[str, Any], outer: dict[str, Any]) -> None:
        (start, end), (outer_start, outer_end) = times(inner), times(outer)
        # A duration is stored as a double.
        self.assertLessEqual(outer_start, start)
        self.assertLessEqual(end, outer_end + 1000)

    def test_a_module_that_shares_its_input_ends_when_the_next_one_begins(self) -> None:
        class Branches(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = Worker("work of first")
                self.second = Worker("work of second")

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.first(x) + self.second(x)

        model = nn.Sequential(nn.Linear(4, 4), Branches())
        with Rows() as rows:
            model(torch.ones(2, 4)).sum().backward()
        spans = {row["module"]: row for row in rows.of("backward")}
        first, second = spans["Sequential.1.first"], spans["Sequential.1.second"]
        work = {row["name"]: row for row in rows.slices}
        self.assert_inside(work["work of first"], first)
        self.assert_inside(work["work of second"], second)
        # The later call runs backward first; it does not wait for the other.
        self.assertLess(second["seq"], first["seq"])
        self.assertLessEqual(times(second)[1], times(first)[0] + 1000)

    def test_modules_without_inputs_that_need_gradients_end_with_the_pass(self) -> None:
        model = nn.Sequential(Worker("work"), nn.Linear(4, 4))
        with Rows() as rows:
            model(torch.ones(2, 4)).sum().backward()
        spans = {row["module"]: row for row in rows.of("backward")}
        self.assertEqual(len(spans), 3)
        (work,) = (row for row in rows.slices if row["name"] == "work")
        self.assert_inside(work, spans["Sequential.0"])
        self.assertLessEqual(times(spans["Sequential.1"])[1], times(work)[0] + 1000)

    def test_several_passes_over_one_graph(self) -> None:
        model = nn.Linear(4, 4)
        with Rows() as rows:
            loss = model(torch.ones(2, 4)).sum()
            loss.backward(retain_graph=True)
            loss.backward()
        self.assertEqual(rows.modules("backward"), ["Linear", "Linear"])

    def test_a_pass_that_fails_leaves_nothing_behind(self) -> None:
        class Failing(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                return x.clone()

            @staticmethod
            def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
                raise RuntimeError("no gradient today")

        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor, fails: bool) -> torch.Tensor:
                x = self.linear(x)
                return Failing.apply(x) if fails else x

        model = Model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Rows() as rows:
            with self.assertRaisesRegex(RuntimeError, "no gradient today"):
                model(torch.ones(2, 4), True).sum().backward()
            optimizer.step()
            model(torch.ones(2, 4), False).sum().backward()
            optimizer.step()
        self.assertEqual(rows.modules("backward", 1), ["Model", "Model.linear"])

    def test_autograd_grad_and_second_derivatives(self) -> None:
        def run() -> Any:
            model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
            x = torch.ones(2, 4, requires_grad=True)
            (first,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
            first.square().sum().backward()
            return [
                first.detach(),
                x.grad,
                *(p.grad for p in model.parameters() if p.grad is not None),
            ]

        self.assert_equal_bits(*with_and_without(run))

    def test_outputs_in_containers(self) -> None:
        class Many(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor) -> Any:
                y = self.linear(x)
                return {"loss": y.sum(), "hidden": [y, (y * 2, None)]}

        with Rows() as rows:
            Many()(torch.ones(2, 4))["loss"].backward()
        self.assertEqual(rows.modules("backward"), ["Many", "Many.linear"])

    def test_operations_in_place(self) -> None:
        # Full backward hooks make such modules fail.
        def run() -> Any:
            model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4))
            y = model(torch.ones(2, 4))
            y += 1
            y.sum().backward()
            return [p.grad for p in model.parameters()]

        self.assert_equal_bits(*with_and_without(run))

    def test_checkpoints(self) -> None:
        for reentrant in (True, False):
            with self.subTest(reentrant=reentrant):

                class Model(nn.Module):
                    def __init__(self) -> None:
                        super().__init__()
                        self.first = nn.Linear(8, 8)
                        self.block = Block(8)

                    def forward(self, x: torch.Tensor) -> torch.Tensor:
                        return checkpoint(self.block, self.first(x), use_reentrant=reentrant)

                def run() -> Any:
                    model = Model()
                    model(torch.ones(2, 3, 8)).sum().backward()
                    return [p.grad for p in model.parameters()]

                self.assert_equal_bits(*with_and_without(run))
                with Rows() as rows:
                    run()
                blocks = [name for name in rows.modules("forward") if ".block" in name]
                recomputed = rows.modules("recompute")
                # The last part of a forward may be left out, since nothing needs it.
                self.assertEqual(recomputed, blocks[: len(recomputed)])
                self.assertGreaterEqual(len(recomputed), len(blocks) - 2)
                self.assertEqual(
                    sorted(set(rows.modules("backward"))), sorted(rows.modules("forward"))
                )

    def test_a_module_contains_its_checkpoints(self) -> None:
        for reentrant in (True, False):
            with self.subTest(reentrant=reentrant):

                class Model(nn.Module):
                    def __init__(self) -> None:
                        super().__init__()
                        self.block = nn.Sequential(Worker("early"), Worker("late"))
                        self.out = nn.Linear(4, 4)

                    def forward(self, x: torch.Tensor) -> torch.Tensor:
                        return self.out(checkpoint(self.block, x, use_reentrant=reentrant))

                with Rows() as rows:
                    Model()(torch.ones(2, 4, requires_grad=True)).sum().backward()
                spans = {row["module"]: row for row in rows.of("backward")}
                work = {row["name"]: row for row in rows.slices}
                for outer in ("Model", "Model.block"):
                    for name in ("early", "late"):
                        self.assert_inside(work[name], spans[outer])
                self.assertLessEqual(times(spans["Model.out"])[1], times(work["late"])[0] + 1000)

    def test_steps_of_other_threads_during_a_pass(self) -> None:
        import threading

        started, go_on = threading.Event(), threading.Event()

        class Wait(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                return x.clone()

            @staticmethod
            def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
                started.set()
                go_on.wait(300)
                return grad

        class Waiting(nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return Wait.apply(super().forward(x))

        slow = nn.Sequential(nn.Linear(4, 4), Waiting(4, 4))
        with Rows() as rows:
            thread = threading.Thread(target=lambda: slow(torch.ones(2, 4)).sum().backward())
            thread.start()
            self.assertTrue(started.wait(300))
            self.train(Net(layers=1), steps=5)
            go_on.set()
            thread.join()
        found = [name for name in rows.modules("backward") if name.startswith("Sequential")]
        self.assertEqual(found, ["Sequential", "Sequential.1", "Sequential.0"])

    def test_threads(self) -> None:
        import threading

        models = [Net(layers=1) for _ in range(3)]

        def work(model: nn.Module) -> None:
            for _ in range(5):
                model(tokens()).sum().backward()

        with Rows() as rows:
            threads = [threading.Thread(target=work, args=(model,)) for model in models]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(len(rows.of("forward")), 3 * 5 * 14)
        self.assertEqual(len(rows.of("backward")), 3 * 5 * 14)
        self.assertEqual(len({row["tid"] for row in rows.of("forward")}), 3)


if __name__ == "__main__":
    unittest.main()
