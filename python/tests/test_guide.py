# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of docs/python-api.md.

A comment `<!-- needs pandas, pyarrow -->` before an example names packages without which it is left
out; `<!-- needs a recorder -->` and other words that are no package are for nobody to install, so
that such an example is left out, too.
"""

import doctest
import importlib
import os
import re
import tempfile
import unittest

GUIDE = os.path.join(os.environ.get("TS_SOURCE") or os.path.join(os.path.dirname(__file__), "../.."), "docs/python-api.md")
EXAMPLE = re.compile(r"(?:^<!-- needs (?P<needs>[^>]*) -->\n+)?^```python\n(?P<code>.*?)^```$", re.M | re.S)


def missing(needs):
    for package in re.split(r",\s*", needs or ""):
        try:
            if package:
                importlib.import_module(package)
        except ImportError:
            return package
    return None


class Guide(unittest.TestCase):
    def test_examples(self):
        with open(GUIDE, encoding="utf-8") as file:
            text = file.read()
        parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
        names, ran = {}, 0
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            self.addCleanup(os.chdir, before)
            for match in EXAMPLE.finditer(text):
                line = text.count("\n", 0, match.start("code"))
                package = missing(match["needs"])
                if package:
                    print(f"skip: the example in line {line}: {package} is not installed")
                    continue
                example = parser.get_doctest(match["code"], names, "python-api", GUIDE, line)
                if not example.examples:
                    continue
                runner.run(example, clear_globs=False)
                names = example.globs
                ran += len(example.examples)
            os.chdir(before)
        self.assertEqual(runner.failures, 0)
        self.assertGreater(ran, 15)


if __name__ == "__main__":
    unittest.main()
