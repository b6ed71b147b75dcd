# SPDX-License-Identifier: Apache-2.0
"""Events that a Python program emits arrive in its trace."""

import unittest

import tracesmith


class Names(unittest.TestCase):
    def test_unknown_names_are_attribute_errors(self):
        with self.assertRaises(AttributeError):
            tracesmith.no_such_name  # noqa: B018

    def test_every_public_name_is_listed(self):
        self.assertLessEqual(set(tracesmith.__all__), set(dir(tracesmith)))


if __name__ == "__main__":
    unittest.main()
