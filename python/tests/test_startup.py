# SPDX-License-Identifier: Apache-2.0
"""The hook that runs after an import, and what starts with the interpreter."""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tracesmith import _startup

LINE = pathlib.Path(__file__).resolve().parents[1].joinpath("tracesmith.pth").read_text()


class AskingFinder:
    """Asks all finders, as tools that wrap imports do."""

    asking = False

    def find_spec(self, name, path=None, target=None):
        if self.asking:
            return None
        self.asking = True
        try:
            specs = (finder.find_spec(name, path, target) for finder in sys.meta_path)
            return next((spec for spec in specs if spec is not None), None)
        finally:
            self.asking = False


class ImportHook(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        sys.path.insert(0, self.folder.name)
        self.addCleanup(sys.path.remove, self.folder.name)
        self.meta_path = list(sys.meta_path)
        self.addCleanup(self.restore)
        self.calls = 0

    def restore(self):
        sys.meta_path[:] = self.meta_path
        sys.modules.pop("watched", None)

    def write(self, text):
        pathlib.Path(self.folder.name, "watched.py").write_text(text)
        importlib.invalidate_caches()

    def called(self):
        self.calls += 1
        self.assertEqual(sys.modules["watched"].value, 1)

    def install(self):
        hook = _startup.ImportHook("watched", self.called)
        hook.install()
        return hook

    def test_calls_once_after_the_import(self):
        self.write("value = 1")
        hook = self.install()
        self.assertIsNotNone(importlib.util.find_spec("watched"))
        self.assertEqual(self.calls, 0)
        module = importlib.import_module("watched")
        self.assertEqual(self.calls, 1)
        self.assertNotIn(hook, sys.meta_path)
        # The module is as it would be without the hook.
        self.assertIs(type(module.__loader__), importlib.machinery.SourceFileLoader)
        self.assertNotIn("exec_module", vars(module.__loader__))
        importlib.reload(module)
        self.assertEqual(self.calls, 1)

    def test_a_failed_import_is_the_programs_and_the_next_one_counts(self):
        self.write("raise KeyError('not today')")
        self.install()
        with self.assertRaisesRegex(KeyError, "not today"):
            importlib.import_module("watched")
        self.assertEqual(self.calls, 0)
        self.write("value = 1  # longer, so that no cache is taken for it")
        importlib.import_module("watched")
        self.assertEqual(self.calls, 1)

    def test_a_missing_module_stays_missing(self):
        self.install()
        with self.assertRaises(ModuleNotFoundError):
            importlib.import_module("watched")

    def test_a_module_that_is_imported_already(self):
        self.write("value = 1")
        importlib.import_module("watched")
        hook = self.install()
        self.assertEqual(self.calls, 1)
        self.assertNotIn(hook, sys.meta_path)

    def test_among_finders_that_ask_each_other(self):
        self.write("value = 1")
        sys.meta_path.insert(0, AskingFinder())
        self.install()
        sys.meta_path.insert(0, AskingFinder())
        importlib.import_module("watched")
        self.assertEqual(self.calls, 1)

    def test_a_failure_of_ours_is_one_line(self):
        self.write("value = 2")
        self.install()
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(importlib.import_module("watched").value, 2)
        self.assertEqual(said.getvalue(), "tracesmith: after import of watched: AssertionError: 2 != 1\n")


class Start(unittest.TestCase):
    """The line of tracesmith.pth, in a folder that is treated like site-packages."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        pathlib.Path(self.folder.name, "tracesmith.pth").write_text(LINE)

    def run_python(self, code, **variables):
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TRACESMITH_", "PROBING_"))
        }
        code = f"import site; site.addsitedir({self.folder.name!r}); import sys\n{code}"
        result = subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        return result.stdout + result.stderr

    def test_nothing_is_imported_unless_a_variable_asks(self):
        code = "print([name for name in sys.modules if name.startswith('tracesmith')])"
        self.assertEqual(self.run_python(code), "[]\n")
        self.assertEqual(
            self.run_python(code, TRACESMITH_X="1"), "['tracesmith', 'tracesmith._startup']\n"
        )
        self.assertEqual(
            self.run_python(code, PROBING_X="1"), "['tracesmith', 'tracesmith._startup']\n"
        )

    def test_a_variable_of_torch_installs_the_hook(self):
        code = "print([type(finder).__name__ for finder in sys.meta_path].count('ImportHook'), 'torch' in sys.modules)"
        self.assertEqual(self.run_python(code, TRACESMITH_X="1"), "0 False\n")
        self.assertEqual(self.run_python(code, TRACESMITH_TORCH_PROFILING=""), "0 False\n")
        self.assertEqual(self.run_python(code, TRACESMITH_TORCH_PROFILING="on"), "1 False\n")
        self.assertEqual(self.run_python(code, PROBING_TORCH_PROFILING="on"), "1 False\n")

    def test_what_is_broken_is_one_line(self):
        broken = pathlib.Path(self.folder.name, "broken/tracesmith")
        broken.mkdir(parents=True)
        broken.joinpath("__init__.py").write_text("raise OSError('a\\nb')\n")
        said = self.run_python(
            "print('runs')", TRACESMITH_X="1", PYTHONPATH=str(broken.parent)
        )
        self.assertEqual(said, "runs\ntracesmith: cannot start: OSError('a\\nb')\n")


if __name__ == "__main__":
    unittest.main()
