# SPDX-License-Identifier: Apache-2.0
"""The module table: which rows there are, against hooks written by hand and torch.profiler."""

from __future__ import annotations

import gc
import os
import time
import unittest
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch_support import Net, Rows, TorchCase, read_table, run_program, tokens, tool

import tracesmith
import tracesmith.torch


def expected_calls(model: nn.Module, run: Any) -> list[str]:
    """Paths of modules in the order of their calls, by forward hooks."""
    calls: list[str] = []
    root = type(model).__name__
    handles = [
        module.register_forward_pre_hook(
            lambda module, args, name=name: calls.append(f"{root}.{name}" if name else root)
        )
        for name, module in model.named_modules()
    ]
    run()
    for handle in handles:
        handle.remove()
    return calls


class TableTest(TorchCase):
    def test_rows_are_those_of_hooks_written_by_hand(self) -> None:
        gc.collect()  # an optimizer of another test would make this one the second
        model = Net()
        calls = expected_calls(model, lambda: model(tokens()))
        with Rows() as rows:
            self.train(model, steps=3)
        for step in range(3):
            self.assertEqual(rows.modules("forward", step), calls)
            self.assertEqual(sorted(rows.modules("backward", step)), sorted(calls))
            self.assertEqual(rows.modules("step", step), ["SGD"])
            seqs = [row["seq"] for row in rows.rows if row["step"] == step]
            self.assertEqual(sorted(seqs), list(range(len(seqs))))

    def test_a_call_is_inside_the_one_around_it(self) -> None:
        model = Net()
        with Rows() as rows:
            self.train(model)
        for stage in ("forward", "backward"):
            spans = {
                row["module"]: (row["start"], row["start"] + round(row["duration"] * 1e9))
                for row in rows.of(stage)
            }
            for path, (start, end) in spans.items():
                outer = path.rpartition(".")[0]
                while outer and outer not in spans:
                    outer = outer.rpartition(".")[0]
                if outer:
                    # A duration is stored as a double.
                    self.assertLessEqual(spans[outer][0] - 1000, start, (stage, path))
                    self.assertLessEqual(end, spans[outer][1] + 1000, (stage, path))

    def test_durations_agree_with_torch_profiler(self) -> None:
        span = torch.profiler.record_function

        class Spanned(nn.Module):
            def __init__(self, name: str) -> None:
                super().__init__()
                self.name = name

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                with span(f"inside {self.name}"):
                    return x.sin()

        modules = [Spanned(name) for name in "abc"]
        with Rows() as rows:
            with torch.profiler.profile(
                activities=[torch.profiler.ProfilerActivity.CPU]
            ) as profile:
                for module in modules:
                    with span(f"around {module.name}"):
                        module(torch.ones(1))
        spans = {event.name: event.time_range.elapsed_us() for event in profile.events()}
        for module, row in zip(modules, rows.of("forward")):
            # The profiler counts microseconds, with a clock of its own.
            measured_us = row["duration"] * 1e6
            self.assertGreaterEqual(measured_us, spans[f"inside {module.name}"] * 0.99 - 2)
            self.assertLessEqual(measured_us, spans[f"around {module.name}"] * 1.01 + 2)

    def test_columns(self) -> None:
        before = time.monotonic_ns()
        with Rows() as rows:
            self.train(Net())
        for row in rows.rows:
            self.assertGreaterEqual(row["duration"], 0)
            # On a CPU, torch counts no memory.
            for column in ("allocated", "max_allocated", "cached", "device_time", "device"):
                self.assertFalse(row.get(column), column)
        self.assertLess(
            sum(row["duration"] for row in rows.of("step")), time.monotonic_ns() - before
        )

    def test_a_model_that_is_moved(self) -> None:
        model = nn.Sequential(nn.Linear(2, 2))
        on_device = False
        with Rows(memory=False, device_time=False) as rows, mock.patch.multiple(
            torch.Tensor,
            create=True,
            is_cuda=property(lambda tensor: on_device),
            get_device=lambda tensor: 1,
        ):
            for on_device in (False, True, False):
                model(torch.ones(1, 2))
        devices = [row.get("device") for row in rows.of("forward")]
        self.assertEqual(devices[:2] + devices[4:], [None] * 4)
        self.assertTrue(devices[2] and devices[3], devices)

    def test_names_of_modules_that_are_shared_late_or_unregistered(self) -> None:
        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                shared = nn.Linear(4, 4)
                self.first = shared
                self.second = shared
                self.hidden = [nn.Linear(4, 4)]

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = self.second(self.first(x))
                if hasattr(self, "late"):
                    x = self.late(x)
                return self.hidden[0](x)

        model = Model()
        with Rows() as rows, torch.no_grad():
            model(torch.ones(2, 4))
            model.late = nn.Sequential(nn.Linear(4, 4))
            model(torch.ones(2, 4))
        self.assertEqual(
            rows.modules("forward"),
            ["Model", "Model.first", "Model.first", "Model.Linear"]
            + ["Model", "Model.first", "Model.first", "Model.late", "Model.late.0", "Model.Linear"],
        )

    def test_names_begin_at_the_outermost_module_even_if_only_its_parts_are_called(self) -> None:
        class Trainer(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = nn.Sequential(nn.Linear(4, 4))
                self.loss = nn.MSELoss()

        trainer = Trainer()
        with Rows() as rows:
            trainer.loss(trainer.model(torch.ones(2, 4)), torch.zeros(2, 4))
        self.assertEqual(
            rows.modules("forward"), ["Trainer.model", "Trainer.model.0", "Trainer.loss"]
        )

    def test_two_models_of_a_class_have_names_of_their_own(self) -> None:
        first, second = Net(layers=1), Net(layers=1)
        with Rows() as rows, torch.no_grad():
            first(tokens())
            second(tokens())
            first(tokens())
        roots = [name for name in rows.modules("forward") if "." not in name]
        self.assertEqual(roots, ["Net", "Net#2", "Net"])

    def test_names_do_not_outlive_their_modules(self) -> None:
        with Rows():
            for _ in range(50):
                nn.Sequential(nn.Linear(2, 2), nn.ReLU())(torch.ones(1, 2))
            self.assertLess(tracesmith.torch.state()["modules"], 10)

    def test_selection(self) -> None:
        model = Net()
        cases: list[tuple[Any, list[str]]] = [
            ("head", ["Net.head"]),
            ("*.mlp.0", ["Net.layers.0.mlp.0", "Net.layers.1.mlp.0"]),
            ("Embedding", ["Net.embedding"]),
            (r"re:layers\.1$", ["Net.layers.1"]),
            (["head", "Net"], ["Net", "Net.head"]),
            (False, []),
        ]
        for modules, names in cases:
            with self.subTest(modules=modules):
                with Rows(modules=modules) as rows:
                    self.train(model)
                self.assertEqual(rows.modules("forward"), names)
                self.assertEqual(sorted(rows.modules("backward")), sorted(names))
                self.assertEqual(rows.modules("step"), ["SGD"])

    def test_sampling(self) -> None:
        model = Net(layers=1)
        with Rows(every=3) as rows:
            self.train(model, steps=7)
        self.assertEqual(sorted({row["step"] for row in rows.rows}), [0, 3, 6])
        with Rows(rate=0.5, mode="random") as rows:
            self.train(model, steps=40)
        # Of 560 calls; 6 standard deviations.
        calls = len(rows.of("forward"))
        self.assertTrue(209 < calls < 351, calls)
        with Rows(rate=0.5) as rows:
            self.train(model, steps=64)
        steps = {row["step"] for row in rows.of("step")}
        self.assertTrue(8 < len(steps) < 56, steps)
        for step in steps:
            self.assertEqual(len(rows.of("forward", step)), 14)

    def test_flight_mode_of_the_program_goes_on(self) -> None:
        tracesmith.start()
        tracesmith.torch.enable()
        self.train(Net(layers=1))
        tracesmith.torch.disable()
        self.assertTrue(tracesmith.is_enabled())
        tracesmith.stop()
        self.assertFalse(tracesmith.is_enabled())

    def test_a_recording_goes_on_that_began_after_the_modules(self) -> None:
        model = nn.Linear(2, 2)
        tracesmith.torch.enable()
        with tracesmith.record("after.sbt") as recording:
            model(torch.ones(1, 2))
            tracesmith.torch.disable()
            tracesmith.instant("goes on")
        self.assertEqual(len(read_table("after.sbt")), 1)
        self.assertEqual([row["name"] for row in read_table("after.sbt", "mark")][-1], "goes on")
        self.assertEqual(recording.summary.lost, 0)

    def test_without_a_recording_the_newest_rows_are_kept_and_survive_kill(self) -> None:
        run = run_program(
            """
            import os, signal, sys
            import torch
            import tracesmith.torch
            from torch_support import Net, tokens

            tracesmith.torch.enable()
            model = Net()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(400):
                model(tokens()).sum().backward()
                optimizer.step()
            print(os.getpid(), tracesmith.torch.state()["rows"], flush=True)
            if os.fork() == 0:
                os.kill(os.getppid(), signal.SIGKILL)
                os._exit(0)
            signal.pause()
            """,
            command=["bash", "-c", '"$@"; echo "status $?"', "bash"],
        )
        pid, stored = run.stdout.split()[:2]
        self.assertIn("status 137", run.stdout)
        self.assertGreater(int(stored), 15000)
        tool("recover", pid, "-o", "killed.sbt")
        rows = read_table("killed.sbt")
        self.assertGreaterEqual(len(rows), 10000)
        self.assertEqual(max(row["step"] for row in rows), 399)
        os.unlink("killed.sbt")


if __name__ == "__main__":
    unittest.main()
