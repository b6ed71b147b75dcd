# SPDX-License-Identifier: Apache-2.0
"""Variables of chosen functions, as marks."""

from __future__ import annotations

import sys
import unittest
import warnings
from typing import Any, NamedTuple

import torch
from torch import nn
from torch_support import Rows, TorchCase, needs_compile

import tracesmith.torch
from tracesmith.torch import _watch


class Pair(NamedTuple):
    left: int
    right: str


class Slotted:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 5


class Model(nn.Module):
    kind = "small"

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.scale = 0.5

    @property
    def dangerous(self) -> int:
        raise AssertionError("watch() must not compute anything")

    def __getattr__(self, name: str) -> Any:
        if name == "computed":
            raise AssertionError("watch() must not compute anything")
        return super().__getattr__(name)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch = {"ids": x, "name": "first", 3: [1, 2]}
        pair = Pair(7, "seven")  # noqa: F841
        slotted = Slotted()  # noqa: F841
        y = self.linear(x) * self.scale
        loss = y.square().mean()
        batch["name"] = "second"
        return loss


class Helper:
    @staticmethod
    def double(value: int) -> int:
        doubled = value * 2
        return doubled

    @classmethod
    def name(cls) -> str:
        text = cls.__name__
        return text


async def asynchronous_numbers(n: int) -> Any:
    yield n


def train(steps: int) -> None:
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        loss = model(torch.ones(3, 4))
        loss.backward()
        optimizer.step()


def fails(value: int) -> int:
    doubled = value * 2
    if value < 0:
        raise ValueError(doubled)
    return doubled


def numbers(n: int) -> Any:
    yield n


class WatchTest(TorchCase):
    def watched(self, function: Any, *expressions: str, run: Any, **options: Any) -> list[Any]:
        with Rows(modules=False) as rows:
            tracesmith.torch.watch(function, *expressions, **options)
            run()
            tracesmith.torch.unwatch()
        return [mark for mark in rows.marks if mark["category"] == "watch"]

    def arguments(self, marks: list[Any]) -> list[dict[str, Any]]:
        return [mark["args"] for mark in marks]

    def test_values_at_the_return(self) -> None:
        model = Model()
        marks = self.watched(
            "Model.forward",
            "loss",
            "x.shape",
            "x.dtype",
            "x",
            "self.scale",
            "self.kind",
            "self.linear.weight.shape",
            "batch['name']",
            "batch[3][1]",
            "pair.right",
            "pair[0]",
            "slotted.value",
            run=lambda: model(torch.ones(3, 4)),
        )
        (mark,) = marks
        self.assertEqual(mark["name"], "Model.forward")
        args = dict(mark["args"])
        loss = model(torch.ones(3, 4)).item()
        self.assertAlmostEqual(args.pop("loss"), loss)
        self.assertEqual(args.pop("step"), 0)
        self.assertEqual(
            args,
            {
                "x.shape": "[3, 4]",
                "x.dtype": "float32",
                "x": "float32 [3, 4] cpu",
                "self.scale": 0.5,
                "self.kind": "small",
                "self.linear.weight.shape": "[2, 4]",
                "batch['name']": "second",
                "batch[3][1]": 2,
                "pair.right": "seven",
                "pair[0]": 7,
                "slotted.value": 5,
            },
        )

    def test_nothing_is_computed(self) -> None:
        model = Model()
        (mark,) = self.watched(
            "Model.forward",
            "self.dangerous",
            "self.computed",
            "missing",
            "x.T",
            "batch['none']",
            "batch[3][9]",
            run=lambda: model(torch.ones(3, 4)),
        )
        values = {key: value for key, value in mark["args"].items() if key != "step"}
        self.assertEqual(set(values.values()), {"<no such value>"})

    def test_expressions_that_could_compute_are_refused(self) -> None:
        for text in ("f(x)", "x + 1", "x[i]", "x[0:2]", "", "a if b else c", "x.y()", "lambda: 0"):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, "expected a variable"):
                tracesmith.torch.watch("train", text)
        with self.assertRaisesRegex(ValueError, "at least one"):
            tracesmith.torch.watch("train")
        with self.assertRaisesRegex(ValueError, "watch 3: expected a variable"):
            tracesmith.torch.watch("train", 3)
        for function in 3, "":
            with self.assertRaisesRegex(TypeError, "expected a function, or its name"):
                tracesmith.torch.watch(function, "loss")
        with self.assertRaisesRegex(TypeError, "a result of watch"):
            tracesmith.torch.unwatch("train")

    def test_every(self) -> None:
        marks = self.watched(
            fails, "value", every=3, run=lambda: [fails(value) for value in range(10)]
        )
        self.assertEqual([mark["args"]["value"] for mark in marks], [0, 3, 6, 9])

    def test_a_function_that_is_defined_later_or_locally(self) -> None:
        def run() -> None:
            class Later(nn.Module):
                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    size = x.numel()
                    return x * size

            model = nn.Sequential(Later(), nn.Linear(4, 4))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(3):
                model(torch.ones(2, 4)).sum().backward()
                optimizer.step()

        marks = self.watched("Later.forward", "size", run=run)
        # The first step finds it.
        self.assertEqual([mark["args"]["size"] for mark in marks], [8, 8])

    def test_a_function_that_is_never_defined_is_one_warning(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            marks = self.watched("Model.backwards", "loss", run=lambda: train(40))
        self.assertEqual(marks, [])
        said = [str(each.message) for each in caught if "Model.backwards" in str(each.message)]
        self.assertEqual(len(said), 1, said)
        self.assertIn("not found yet", said[0])

    def test_static_methods_and_class_methods(self) -> None:
        before = dict(vars(Helper))
        for function in ("Helper.double", Helper.double):
            marks = self.watched(function, "doubled", run=lambda: Helper().double(3))
            self.assertEqual([mark["args"]["doubled"] for mark in marks], [6])
        for function in ("Helper.name", Helper.name):
            marks = self.watched(function, "text", run=lambda: Helper.name())
            self.assertEqual([mark["args"]["text"] for mark in marks], ["Helper"])
        self.assertEqual(dict(vars(Helper)), before)

    def test_a_function_that_is_running_at_each_step(self) -> None:
        marks = self.watched("train", "loss", "step", at="step", run=lambda: train(3))
        self.assertEqual([mark["name"] for mark in marks], ["train"] * 3)
        self.assertTrue(all(isinstance(mark["args"]["loss"], float) for mark in marks))

    def test_exceptions_pass_and_leave_no_mark(self) -> None:
        def run() -> None:
            with self.assertRaisesRegex(ValueError, "-2"):
                fails(-1)
            self.assertEqual(fails(1), 2)

        marks = self.watched(fails, "doubled", run=run)
        self.assertEqual([mark["args"]["doubled"] for mark in marks], [2])

    def test_functions_are_what_they_were_afterwards(self) -> None:
        before = Model.forward
        signature = __import__("inspect").signature(before)
        handle = tracesmith.torch.watch("Model.forward", "loss")
        self.assertEqual(__import__("inspect").signature(Model.forward), signature)
        handle.remove()
        self.assertIs(Model.forward, before)
        self.assertIsNone(sys.gettrace())

    def test_generators_are_refused(self) -> None:
        for function in (numbers, asynchronous_numbers):
            with self.assertRaisesRegex(TypeError, "generator"):
                tracesmith.torch.watch(function, "n")
        self.assertEqual(_watch._watches, [])

    @unittest.skipIf(hasattr(sys, "monitoring"), "sys.monitoring needs no trace function")
    def test_a_debugger_keeps_its_trace_function(self) -> None:
        events: list[str] = []

        def debugger(frame: Any, event: str, arg: Any) -> Any:
            events.append(frame.f_code.co_name)
            return None

        def run() -> None:
            sys.settrace(debugger)
            try:
                self.assertEqual(fails(2), 4)
                self.assertIs(sys.gettrace(), debugger)
            finally:
                sys.settrace(None)
            self.assertEqual(fails(3), 6)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            marks = self.watched(fails, "doubled", run=run)
        self.assertIn("fails", events)
        self.assertIn("debugger", str(caught[0].message))
        self.assertEqual([mark["args"]["doubled"] for mark in marks], [6])

    @unittest.skipUnless(hasattr(sys, "monitoring"), "Python 3.12")
    def test_other_tools_of_sys_monitoring(self) -> None:
        handle = tracesmith.torch.watch(fails, "doubled")
        self.assertTrue(handle.is_active)
        handle.remove()

    @needs_compile
    def test_compiled_functions_are_not_broken(self) -> None:
        from torch._dynamo.utils import counters

        torch._dynamo.reset()
        counters.clear()
        handle = tracesmith.torch.watch("Plain.forward", "y")
        self.addCleanup(handle.remove)
        compiled = torch.compile(Plain(), backend="eager", fullgraph=True)
        self.assertTrue(torch.equal(compiled(torch.ones(2)), torch.ones(2) * 2))
        self.assertEqual(sum(counters["graph_break"].values()), 0)


class Plain(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return y


if __name__ == "__main__":
    unittest.main()
