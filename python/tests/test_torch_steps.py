# SPDX-License-Identifier: Apache-2.0
"""Where steps begin and end."""

from __future__ import annotations

import unittest
from typing import Any

import torch
from torch import nn
from torch_support import Rows, TorchCase, read_table, run_program, tool_path

import tracesmith


class StepsTest(TorchCase):
    def forwards(self, rows: Rows) -> list[tuple[str, int]]:
        return [(row["module"], row["step"]) for row in rows.of("forward")]

    def test_gradient_accumulation(self) -> None:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Rows() as rows:
            for micro in range(6):
                model(torch.ones(1, 2)).sum().backward()
                if micro % 2:
                    optimizer.step()
        self.assertEqual([step for _, step in self.forwards(rows)], [0, 0, 1, 1, 2, 2])
        self.assertEqual([row["step"] for row in rows.of("step")], [0, 1, 2])
        # They are steps of the trace, too.
        self.assertEqual([mark["args"]["step"] for mark in rows.marks], [0, 1, 2, 3])

    @unittest.skipUnless(hasattr(torch.amp, "GradScaler"), "torch 2.3 has the first for CPUs")
    def test_a_scaler_that_skips_a_step(self) -> None:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
        with Rows() as rows:
            for value in (1.0, float("inf"), 1.0):
                optimizer.zero_grad()
                scaler.scale(model(torch.full((1, 2), value)).sum()).backward()
                scaler.step(optimizer)
                scaler.update()
        self.assertEqual([step for _, step in self.forwards(rows)], [0, 1, 1])
        self.assertEqual(len(rows.of("step")), 2)

    def test_several_optimizers_of_one_iteration(self) -> None:
        model = nn.Linear(2, 2)
        first = torch.optim.SGD([model.weight], lr=0.1)
        second = torch.optim.SGD([model.bias], lr=0.1)
        with Rows() as rows:
            for _ in range(4):
                model(torch.ones(1, 2)).sum().backward()
                first.step()
                second.step()
        self.assertEqual([step for _, step in self.forwards(rows)], [0, 1, 2, 3])
        steps = [(row["module"], row["step"]) for row in rows.of("step")]
        # That there is a second one is known once it has made a step.
        self.assertEqual(
            steps[2:],
            [("SGD", 1), ("SGD#2", 1), ("SGD", 2), ("SGD#2", 2), ("SGD", 3), ("SGD#2", 3)],
        )

    def test_an_optimizer_for_each_parameter(self) -> None:
        parameters = [nn.Parameter(torch.ones(1)) for _ in range(40)]
        optimizers = [torch.optim.SGD([parameter], lr=0.1) for parameter in parameters]
        model = nn.Linear(2, 2)
        with Rows() as rows:
            for _ in range(3):
                model(torch.ones(1, 2))
                sum(parameters).backward()
                for optimizer in optimizers:
                    optimizer.step()
        self.assertEqual([step for _, step in self.forwards(rows)], [0, 1, 2])

    def test_optimizers_that_take_turns(self) -> None:
        generator, critic = nn.Linear(2, 2), nn.Linear(2, 1)
        optimizers = [torch.optim.Adam(each.parameters()) for each in (critic, generator)]
        with Rows() as rows:
            for _ in range(4):
                for optimizer in optimizers:
                    critic(generator(torch.ones(1, 2))).sum().backward()
                    optimizer.step()
        # One step an iteration.
        self.assertEqual(max(row["step"] for row in rows.rows), 4 - 1)

    def test_an_optimizer_that_takes_over(self) -> None:
        model = nn.Linear(2, 2)
        first, second = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
        with Rows() as rows:
            for optimizer in [first] * 3 + [second] * 4:
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
        steps = [step for _, step in self.forwards(rows)]
        self.assertEqual(steps[:3], [0, 1, 2])
        self.assertGreaterEqual(steps[-1], 5)

    def test_inference(self) -> None:
        model = nn.Sequential(nn.Linear(2, 2))
        with Rows() as rows, torch.no_grad():
            for _ in range(3):
                model(torch.ones(1, 2))
        self.assertEqual(
            self.forwards(rows),
            [(name, step) for step in range(3) for name in ("Sequential", "Sequential.0")],
        )

    def test_evaluation_belongs_to_the_step_of_training(self) -> None:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Rows() as rows:
            for _ in range(2):
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
                with torch.no_grad():
                    model(torch.ones(1, 2))
                    model(torch.ones(1, 2))
        self.assertEqual([step for _, step in self.forwards(rows)], [0, 1, 1, 1, 2, 2])

    def test_steps_of_several_threads_at_once(self) -> None:
        import threading

        begun, second_begun = threading.Event(), threading.Event()

        class First(torch.optim.SGD):
            def step(self, closure: Any = None) -> None:
                begun.set()
                second_begun.wait(300)

        class Second(torch.optim.SGD):
            def step(self, closure: Any = None) -> None:
                second_begun.set()
                thread.join(300)

        parameters = [nn.Parameter(torch.ones(1))]
        first, second = First(parameters, lr=0.1), Second(parameters, lr=0.1)
        with Rows() as rows:
            thread = threading.Thread(target=first.step)
            thread.start()
            self.assertTrue(begun.wait(300))
            second.step()
        self.assertEqual(sorted(rows.modules("step")), ["First", "Second"])

    def test_an_update_written_by_hand(self) -> None:
        model = nn.Linear(2, 2)
        with Rows() as rows:
            for _ in range(3):
                model(torch.ones(1, 2)).sum().backward()
                model(torch.ones(1, 2)).sum().backward()
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter -= 0.1 * parameter.grad
                        parameter.grad = None
        self.assertEqual([step for _, step in self.forwards(rows)], [0, 0, 1, 1, 2, 2])

    def test_the_numbers_of_the_program_have_precedence(self) -> None:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Rows() as rows:
            for number in (100, 101, 102):
                tracesmith.step(number)
                for _ in range(2):
                    model(torch.ones(1, 2)).sum().backward()
                    optimizer.step()
        self.assertEqual([step for _, step in self.forwards(rows)], [100, 100, 101, 101, 102, 102])
        self.assertEqual(len(rows.of("step")), 6)

    def test_every_with_the_numbers_of_the_program(self) -> None:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Rows(every=2) as rows:
            for number in range(100, 106):
                tracesmith.step(number)
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
        self.assertEqual([step for _, step in self.forwards(rows)], [100, 102, 104])
        self.assertEqual([row["step"] for row in rows.of("step")], [100, 102, 104])

    def test_a_window_of_the_recording(self) -> None:
        run_program(
            """
            import os
            import subprocess
            import torch
            import tracesmith.torch

            tracesmith.torch.enable()
            model = torch.nn.Linear(2, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(4):
                if step in (2, 3):
                    command = [os.environ["TRACESMITH_RECORDER"], "window", "-q", str(os.getpid())]
                    subprocess.run([*command, "open" if step == 2 else "close"], check=True)
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
            """,
            command=[tool_path(), "record", "-q", "-o", "window.sbt", "--window", "command", "--"],
        )
        rows = read_table("window.sbt")
        self.assertEqual(
            [(row["step"], row["stage"]) for row in rows],
            [(2, "forward"), (2, "backward"), (2, "step")],
        )

    def test_steps_alone(self) -> None:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        code = nn.Module.__call__.__code__
        with Rows(modules=False) as rows:
            self.assertIs(nn.Module.__call__.__code__, code)
            for _ in range(3):
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
        self.assertEqual(
            [(row["stage"], row["step"]) for row in rows.rows], [("step", n) for n in range(3)]
        )

    def test_closures_and_nested_optimizers(self) -> None:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = model(torch.ones(1, 2)).square().sum()
            loss.backward()
            return loss

        with Rows() as rows:
            for _ in range(2):
                optimizer.step(closure)
        self.assertEqual([row["step"] for row in rows.of("step")], [0, 1])
        self.assertEqual({step for _, step in self.forwards(rows)}, {0, 1})


if __name__ == "__main__":
    unittest.main()
