#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the tool says about the cause of a result, from outside: hypotheses, diagnose, explain and hard-inputs.

Run as test_tool.py is.
"""
import json
import re
import unittest

from test_tool import COMMANDS, ToolTest, run_tests


class Hypotheses(ToolTest):
    """The list of the known mistakes."""

    def listed(self, *words):
        return json.loads(self.run_well("hypotheses", *words, "--json"))

    def test_json(self):
        entries = self.listed()
        for entry in entries:
            self.assertEqual(sorted(entry), ["advice", "name", "operators", "what"])
            self.assertTrue(entry["operators"])
            self.assertLessEqual(set(entry["operators"]), set(COMMANDS))
            self.assertRegex(entry["name"], r"\A[a-z0-9-]+\Z")
            self.assertRegex(entry["what"], r"[^.]\Z")
            self.assertTrue(entry["advice"].endswith("."))
        words = [(entry["name"], entry["what"], entry["advice"]) for entry in entries]
        self.assertEqual(len(set(words)), len(words))

    def test_entries_with_the_same_words_are_one(self):
        wraps = [entry for entry in self.listed() if entry["name"] == "wrap"]
        self.assertEqual([entry["operators"] for entry in wraps], [[
            "quantize", "group-quant", "dynamic-quant", "dynamic-quant-asymmetric", "requant", "quant-matmul"]])
        self.assertEqual(len({entry["what"] for entry in self.listed() if entry["name"] == "reciprocal"}), 3)

    def test_of_one_operator(self):
        entries = self.listed()
        for operator in COMMANDS:
            its = [entry for entry in entries if operator in entry["operators"]]
            self.assertGreater(len(its), 5)
            self.assertEqual(self.listed(operator), its)

    def test_text(self):
        for operator in ([], ["dequant"]):
            text = self.run_well("hypotheses", *operator)
            self.assertLessEqual(max(map(len, text.splitlines())), 100)
            said = [re.sub(r"\s+", " ", part).strip() for part in text.split("\n\n")]
            self.assertEqual(said, [
                f"{entry['name']}: the kernel {entry['what']}. {entry['advice']} "
                f"operators: {', '.join(entry['operators'])}" for entry in self.listed(*operator)])

    def test_help(self):
        text = self.run_well("hypotheses", "--help")
        for words in (("help", "hypotheses"), ("hypotheses", "dequant", "-h", "--nonsense")):
            self.assertEqual(self.run_well(*words), text)
        example = re.search(r"example:\n  npuquant (.*)\n\Z", text).group(1)
        self.assertTrue(self.run_well(*example.split()))

    def test_command_lines(self):
        for words, says in (
            (("quantise",), "there is no operator quantise; did you mean quantize?\n"),
            (("npu_dynamic_quant",), "there is no operator npu_dynamic_quant; did you mean dynamic-quant?\n"),
            (("--jsn",), "hypotheses: unexpected argument --jsn; see npuquant hypotheses --help\n"),
            (("dequant", "requant"), "hypotheses: unexpected argument requant; see npuquant hypotheses --help\n"),
        ):
            with self.subTest(words):
                self.run_badly("hypotheses", *words, says=says)


if __name__ == "__main__":
    run_tests()
