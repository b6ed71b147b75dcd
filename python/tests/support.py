# SPDX-License-Identifier: Apache-2.0
"""Runs Python programs and reads their traces with the tool, for the tests of the package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from typing import Any, Callable

TOOL = os.environ.get("TRACESMITH", "tracesmith")
PATIENCE = 120  # seconds that a busy machine may take


def rows(path: str, *options: str) -> list[dict[str, Any]]:
    """All rows of a trace, in time order."""
    text = subprocess.run(
        [TOOL, "view", path, "--json", *options], capture_output=True, text=True, check=True
    ).stdout
    return [json.loads(line) for line in text.splitlines()]


def is_finished(path: str) -> bool:
    """True once its recorder has ended: it has a complete trace, and no journal."""
    done = subprocess.run([TOOL, "info", path, "--json"], capture_output=True, text=True)
    if done.returncode or os.path.exists(path + ".journal"):
        return False
    return bool(json.loads(done.stdout)["finished"])


def await_that(condition: Callable[[], Any], what: str) -> Any:
    """Waits until a condition holds."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited in vain: {what}")


class ProgramTest(unittest.TestCase):
    """A test with a folder of its own, in which it runs programs."""

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="tracesmith-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.mkdir(self.path("live"), 0o700)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def environment(self, **variables: str) -> dict[str, str]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TRACESMITH_", "FERRUM_"))
        }
        environment["TRACESMITH_LIVE_DIR"] = self.path("live")
        environment["TRACESMITH_RECORDER"] = TOOL
        environment["OUT"] = self.path("t.sbt")
        environment.update(variables)
        return environment

    def start(self, code: str, **variables: str) -> subprocess.Popen[str]:
        """Starts a program, with pipes."""
        file = self.path("program.py")
        with open(file, "w", encoding="utf-8") as program:
            program.write(textwrap.dedent(code))
        return subprocess.Popen(
            [sys.executable, file],
            env=self.environment(**variables),
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run_program(self, code: str, **variables: str) -> str:
        """Runs a program that must succeed, without a word on standard error; its output."""
        process = self.start(code, **variables)
        output, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, errors), (0, ""), output)
        return output

    def traced(self, code: str, *options: str) -> list[dict[str, Any]]:
        """Rows of a program that records itself, by TRACESMITH_OUT."""
        self.run_program(code, TRACESMITH_OUT=self.path("t.sbt"))
        return rows(self.path("t.sbt"), *options)
