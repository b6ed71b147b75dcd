# SPDX-License-Identifier: Apache-2.0
"""Settings from arguments and from the environment; the module `probing`."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
import warnings
from pathlib import Path
from unittest import mock

from torch_support import TorchCase, read_table, tool_path

import tracesmith.torch
from tracesmith.torch import _settings


class SettingsTest(TorchCase):
    def test_environment(self) -> None:
        cases = {
            "on": {},
            "1": {},
            "off": None,
            "0": None,
            "": None,
            "on,enabled=off": None,
            "ordered": {"mode": "ordered"},
            "ordered:0.5": {"mode": "ordered", "rate": 0.5},
            "random:0.1": {"mode": "random", "rate": 0.1},
            "on,mode=random,rate=0.5": {"mode": "random", "rate": 0.5},
            "steps": {"modules": False},
            "on,every=10,modules=*.mlp+Linear": {"every": 10, "modules": ["*.mlp", "Linear"]},
            "on,memory=on,device_time=auto,backward=off,cost=0.02": {
                "memory": True,
                "device_time": "auto",
                "backward": False,
                "cost": 0.02,
            },
            "on,sync=on,tracepy=on,unknown=1": {"device_time": True},
        }
        for text, expected in cases.items():
            with self.subTest(text=text):
                self.assertEqual(_settings.parse(text), (expected, []))
        self.assertEqual(
            _settings.parse("on,exprs=loss@train,acc1@train"),
            ({}, [("train", "loss"), ("train", "acc1")]),
        )

    def test_errors_name_what_is_expected(self) -> None:
        for arguments, message in (
            ({"rate": 0}, "expected a share above 0"),
            ({"every": 0}, "expected 1 or more steps"),
            ({"mode": "other"}, "expected 'ordered'"),
            ({"memory": "sometimes"}, "expected True, False or 'auto'"),
            ({"cost": 2}, "expected a share"),
            ({"modules": "re:("}, r"modules 're:\(': "),
            ({"modules": 3}, "modules 3: expected a path"),
            ({"modules": ["fc1", None]}, "modules None: expected a path"),
            ({"every": "10"}, "every '10': expected a whole number"),
            ({"every": 2**63}, "expected 1 or more steps"),
            ({"rate": "all"}, "rate 'all': expected a number"),
        ):
            with self.subTest(**arguments), self.assertRaisesRegex((ValueError, TypeError), message):
                tracesmith.torch.enable(**arguments)
        self.assertFalse(tracesmith.torch.is_enabled())

    def test_import_of_torch_follows_the_environment(self) -> None:
        for name in ("TRACESMITH_TORCH_PROFILING", "PROBING_TORCH_PROFILING"):
            with mock.patch.dict(os.environ, {name: "on"}):
                tracesmith.torch._on_import()
                self.assertTrue(tracesmith.torch.is_enabled())
                tracesmith.torch.disable()
        both = {"TRACESMITH_TORCH_PROFILING": "off", "PROBING_TORCH_PROFILING": "on"}
        with mock.patch.dict(os.environ, both):
            tracesmith.torch._on_import()
            self.assertFalse(tracesmith.torch.is_enabled())
        with mock.patch.dict(os.environ, {"TRACESMITH_TORCH_PROFILING": "on,every=often"}):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                tracesmith.torch._on_import()
            self.assertIn("every=often", str(caught[0].message))
            self.assertFalse(tracesmith.torch.is_enabled())

    def test_a_program_that_knows_nothing_of_it(self) -> None:
        program = Path("plain.py")
        program.write_text(
            "import torch\n"
            "model = torch.nn.Sequential(torch.nn.Linear(2, 2))\n"
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "def train():\n"
            "    for _ in range(3):\n"
            "        loss = model(torch.ones(1, 2)).sum()\n"
            "        loss.backward()\n"
            "        optimizer.step()\n"
            "train()\n"
        )
        for name in ("TRACESMITH_TORCH_PROFILING", "PROBING_TORCH_PROFILING"):
            subprocess.run(
                [tool_path(), "record", "-q", "-o", "plain.sbt", "--", sys.executable, program],
                env={**os.environ, name: "on,watch=loss@train"},
                check=True,
                timeout=300,
            )
            rows = read_table("plain.sbt")
            self.assertEqual(
                [(row["module"], row["step"]) for row in rows if row["stage"] == "forward"],
                [(n, s) for s in range(3) for n in ("Sequential", "Sequential.0")],
            )
            marks = [m for m in read_table("plain.sbt", "mark") if m["category"] == "watch"]
            self.assertEqual([mark["name"] for mark in marks], ["train"] * 3)
            os.unlink("plain.sbt")
        program.unlink()

    def test_shared_memory_that_cannot_be_used_is_one_warning(self) -> None:
        os.mkdir("shared", 0o755)
        os.chmod("shared", 0o755)
        run = subprocess.run(
            [sys.executable, "-c", "import tracesmith.torch as t; t._on_import(); print('runs')"],
            env={
                **os.environ,
                "TRACESMITH_LIVE_DIR": os.path.abspath("shared"),
                "TRACESMITH_TORCH_PROFILING": "on",
            },
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
        )
        os.rmdir("shared")
        self.assertEqual(run.stdout, "runs\n")
        self.assertIn("chmod 700", run.stderr)

    def test_torch_is_not_imported(self) -> None:
        program = (
            "import sys, tracesmith.torch, probing\n"
            "assert not tracesmith.torch.is_enabled()\n"
            "assert tracesmith.torch.state()['rows'] == 0\n"
            "assert 'torch' not in sys.modules\n"
            "probing.enable_torch_profiling()\n"
            "assert 'torch' in sys.modules and tracesmith.torch.is_enabled()\n"
            "probing.disable_torch_profiling()\n"
            "assert not tracesmith.torch.is_enabled()\n"
        )
        subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


if __name__ == "__main__":
    unittest.main()
