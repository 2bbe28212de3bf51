# SPDX-License-Identifier: GPL-2.0
"""Tests of selftests/interop/table.py."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "selftests", "interop"))

import table  # noqa: E402

FIRST = """ok 1 - one, two things, smc_rs <- smc (server)
[2] ok 1 - one, two things, smc_rs <- smc (client)
not ok 2 - late, smc <- smc_rs (client)
[2] ok 2 - late, smc <- smc_rs (server)
ok 3 - alone, smc <- smc_rs (client)
"""
AGAIN = """[2] ok 1 - late, smc <- smc_rs (server)
ok 1 - late, smc <- smc_rs (client)
"""


class Table(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write("rs-c.out", FIRST, 1_000)

    def write(self, name, text, when):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.utime(path, (when, when))

    def test_both_hosts_have_to_pass(self):
        self.assertEqual(table.read(self.folder), {
            ("one, two things", "smc_rs", "smc"): True,
            ("late", "smc", "smc_rs"): False,
            ("alone", "smc", "smc_rs"): False,
        })

    def test_the_last_result_counts(self):
        key = ("late", "smc", "smc_rs")
        self.write("again/rs-c.out", AGAIN, 900)
        self.assertFalse(table.read(self.folder)[key])
        self.write("again/rs-c.out", AGAIN, 2_000)
        self.assertTrue(table.read(self.folder)[key])
        rows, columns = table.ordered(table.read(self.folder))
        self.assertEqual(rows, ["one, two things", "late", "alone"])
        self.assertEqual(columns, [("smc", "smc_rs"), ("smc_rs", "smc")])

    def test_a_failure_is_named(self):
        text = table.failures(table.read(self.folder))
        self.assertIn("late: smc <- smc_rs\n", text)
        self.assertNotIn("one, two things", text)

    def test_what_was_not_run_shows(self):
        results = table.read(self.folder)
        self.assertIn("\nlink groups expire ", table.table(results))
        self.assertIn("Not run: c-c, rs-rs, stock-c, stock-rs, v1.", table.sums(results))


if __name__ == "__main__":
    unittest.main()
