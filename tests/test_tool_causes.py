#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The cause of a result, by the tool from outside: hypotheses, diagnose, explain and hard-inputs.

Runs like test_tool.py.
"""
import json
import os
import re
import shlex
import signal
import subprocess
import sys

import numpy as np
from numpy_operators import (
    anti_quant,
    as_dtype,
    dequant,
    dynamic,
    dynamic_block_quant,
    dynamic_quant,
    f4,
    group_of_rows,
    group_quant,
    quant_matmul,
    quantize,
    requant,
    round_to,
    trans_quant_param,
    unpack,
)
from test_tool import COMMANDS, TOOL, ToolTest, run_tests, save

WIDTH = 100  # of what is printed
EXPECT = {"y": "--expect", "scale": "--expect-scale", "offset": "--expect-offset"}


class Case:
    """A call, its right results, and the results of a kernel with the named mistake."""

    def __init__(self, mistake, operator, inputs, options, right, wrong, positional=1):
        self.mistake, self.operator, self.inputs, self.options = mistake, operator, inputs, options
        self.right, self.wrong, self.positional = right, wrong, positional


def cases():
    random = np.random.default_rng(5)

    def normal(*shape, size=1.0):
        return (random.standard_normal(shape) * size).astype(f4)

    def small(*shape):
        return random.integers(-9, 9, shape).astype("i1")

    def positive(*shape):
        return (random.random(shape) + 0.01).astype(f4)

    x, scales, zeros = normal(9, 40, size=20), positive(40), normal(40, size=9)
    yield Case("offset-left-out", "quantize", {"x": x, "scales": scales, "zero_points": zeros}, ["--axis", "-1"],
               {"y": quantize(x, scales, zeros, -1, True, "int8")}, {"y": quantize(x, scales, None, -1, True, "int8")})
    x, words = as_dtype(x, "f2"), ["--div-mode", "false", "--dtype", "quint4x2"]
    y = quantize(x, scales, None, -1, False, "quint4x2")
    yield Case("nibbles-swapped", "quantize", {"x": x, "scales": scales}, words,
               {"y": y}, {"y": (y & 0x0F0F0F0F) << 4 | y >> 4 & 0x0F0F0F0F})
    x, scale, ends, offset = as_dtype(normal(30, 16, size=20), "u2"), positive(3, 16), np.array([4, 11, 30]), f4([3.3])
    yield Case("group-late", "group-quant", {"x": x, "scale": scale, "group_index": ends, "offset": offset}, [],
               {"y": group_quant(x, scale, ends, offset, "int8")},
               {"y": group_quant(x, scale, ends + [1, 1, 0], offset, "int8")})
    scale, offset = positive(30), normal(30, size=99)
    y = trans_quant_param(scale, offset, 1).view("i8")
    yield Case("no-flag", "trans-quant-param", {"scale": scale, "offset": offset}, ["--round-mode", "1"],
               {"y": y}, {"y": y & ~(1 << 46)})
    x, smooth = normal(20, 5, 8, size=9), positive(8)
    right, wrong = (dict(zip(EXPECT, dynamic_quant(x, factors, None, False, "product", "uint8")))
                    for factors in (smooth, None))
    words = ["--dtype", "uint8"]
    yield Case("smooth-left-out", "dynamic-quant", {"x": x, "smooth_scales": smooth}, words, right, wrong)
    y, scale = dynamic_quant(x, None, None, False, "product", "int8")
    yield Case("other-form", "dynamic-quant", {"x": x}, [], {"y": y, "scale": scale},
               {"scale": dynamic_quant(x, None, None, False, "inverse", "int8")[1]})
    words = ["--block", "3", "--min-scale", "20", "--dtype", "uint8"]
    right, wrong = (dict(zip(EXPECT, dynamic_block_quant(x, 3, least, "uint8"))) for least in (20, 0))
    yield Case("min-scale-ignored", "dynamic-block-quant", {"x": x}, words, right, wrong)
    right = dict(zip(EXPECT, dynamic_block_quant(x, 4, 0, "int8")))
    y, scale = dynamic_block_quant(x, 2, 0, "int8")
    yield Case("half-block", "dynamic-block-quant", {"x": x}, ["--block", "4"], right,
               {"y": y, "scale": scale[..., ::2]})
    right = dict(zip(EXPECT, dynamic(x, None, None, True, "int8")))
    yield Case("offset-sign", "dynamic-quant-asymmetric", {"x": x}, ["--quant-mode", "pertensor"], right,
               {**right, "offset": -right["offset"]})
    x, scale, offset = random.integers(-(2**31), 2**31, (6, 4)).astype("i4"), positive(32), normal(32, size=9)
    yield Case("offset-left-out", "anti-quant", {"x": x, "scale": scale, "offset": offset}, ["--dtype", "bfloat16"],
               {"y": anti_quant(x, scale, offset, "bfloat16")}, {"y": anti_quant(x, scale, None, "bfloat16")})
    x, weight_scale, rows, bias = random.integers(-9999, 9999, (7, 20)).astype("i4"), positive(20), positive(7), normal(20)
    yield Case("row-scale-left-out", "dequant",
               {"x": x, "weight_scale": weight_scale, "activation_scale": rows, "bias": bias}, ["--dtype", "float32"],
               {"y": dequant(x, weight_scale, rows, bias, "float32")},
               {"y": dequant(x, weight_scale, None, bias, "float32")})
    words, bias = trans_quant_param(positive(20) * f4(0.01), normal(20, size=30), 0), small(20).astype("i4") * 99
    yield Case("bias-left-out", "requant", {"x": x, "words": words, "bias": bias}, [],
               {"y": requant(x, words, bias, "int8")}, {"y": requant(x, words, None, "int8")})
    scale = positive(20) * f4(0.01)
    words = scale.view("u4").astype("i8")  # words that hold only the scales' bits, as for a result of float16
    yield Case("all-scale-bits", "requant", {"x": x, "words": words}, ["--dtype", "float16"],
               {"y": requant(x, words, None, "float16")}, {"y": round_to(x.astype(f4) * scale, "float16")})
    x1, x2, scale, bias = small(7, 30), small(30, 20), positive(20), small(20).astype("i4") * 99
    yield Case("bias-left-out", "quant-matmul", {"x1": x1, "x2": x2, "scale": scale, "bias": bias},
               ["--dtype", "float16"], {"y": quant_matmul(x1, x2, scale, None, None, bias, "float16")},
               {"y": quant_matmul(x1, x2, scale, None, None, None, "float16")}, positional=2)
    scaled = np.matmul(x1.astype("i4"), x2.astype("i4")).astype(f4) * scale
    yield Case("all-scale-bits", "quant-matmul", {"x1": x1, "x2": x2, "scale": scale},
               ["--dtype", "float16"], {"y": quant_matmul(x1, x2, scale, None, None, None, "float16")},
               {"y": round_to(scaled, "float16")}, positional=2)
    yield Case("row-scale-left-out", "quant-matmul", {"x1": x1, "x2": x2, "scale": scale, "pertoken_scale": rows},
               ["--dtype", "bfloat16"], {"y": quant_matmul(x1, x2, scale, None, rows, None, "bfloat16")},
               {"y": quant_matmul(x1, x2, scale, None, None, None, "bfloat16")}, positional=2)


def values(array, case):
    """A value for each element, also from words of int4."""
    return unpack(array) if "quint4x2" in case.options else array


def said_bits(text):
    """The bits in a value's text, or the integer itself, as an unsigned type."""
    found = re.search(r"0x([0-9A-F]+)", text)
    return int(found.group(1), 16) if found else int(text)


def bits(element):
    return int(element) if element.dtype.kind == "i" and element.itemsize < 8 else \
        int(element.view(f"u{element.itemsize}"))


class CauseTest(ToolTest):
    def save_case(self, case):
        return [case.operator, *self.save_inputs(case.positional, **case.inputs), *case.options]

    def save_results(self, results):
        words = []
        for name, array in results.items():
            save(self.path(f"{name}_of_kernel.npy"), array)
            words += [EXPECT[name], f"{name}_of_kernel.npy"]
        return words

    def assert_hears_of_full_stdout(self, words):
        """Before any output gets its name."""
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "wb") as full:
            done = subprocess.run(words, cwd=self.folder, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (2, b"npuquant: cannot write to stdout\n"))

    def assert_narrow(self, text):
        self.assertLessEqual(max(map(len, text.splitlines())), WIDTH, text)


class Hypotheses(ToolTest):
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
        wraps = next(entry for entry in self.listed() if entry["name"] == "wrap")
        self.assertEqual(wraps["operators"][:4], ["quantize", "group-quant", "dynamic-quant", "dynamic-quant-asymmetric"])
        self.assertEqual(len({entry["what"] for entry in self.listed() if entry["name"] == "reciprocal"}), 4)

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


class Diagnose(CauseTest):
    def test_text(self):
        for case in cases():
            with self.subTest(case.operator, mistake=case.mistake):
                words = self.save_case(case)
                text = self.run_well("diagnose", *words, *self.save_results(case.wrong), status=1)
                self.assert_narrow(text)
                lines = text.splitlines()
                found = re.match(
                    rf"diagnosis: {case.mistake}: explains (\d+) of (\d+) differing elements and changes no other "
                    rf"{case.mistake}: the kernel ", re.sub(r"\s+", " ", text))
                self.assertTrue(found, text)
                differ = sum((values(case.right[name], case) != values(wrong, case)).sum()
                             for name, wrong in case.wrong.items())
                self.assertEqual(found.groups(), (str(differ), str(differ)))
                self.assertRegex(text, rf"\n  hypothesis +explained  unexplained  newly wrong\n  {case.mistake} +"
                                 rf"{differ} +0 +0\n")
                self.assertRegex(text, rf"\n[a-z]+\[[0-9, ]+\], step by step:\n  step +definition +{case.mistake}\n")
                *_, ours, theirs = lines
                self.assertRegex(ours, r"^  (y|scale|offset) +\S.*  \S")  # two values
                self.assertRegex(theirs, r"^  in the dump +\S")
                self.assertEqual(theirs.split("  ")[-1].strip(), ours.split("  ")[-1].strip())
                self.assertNotEqual(theirs.split("  ")[-1].strip(), re.split("  +", ours.strip())[1])

    def test_json(self):
        for case in cases():
            with self.subTest(case.operator, mistake=case.mistake):
                words = self.save_case(case)
                said = json.loads(self.run_well("diagnose", *words, *self.save_results(case.wrong), "--json", status=1))
                self.assertEqual(sorted(said), [
                    "admissible", "element", "findings", "first_place", "format", "results", "untried_pairs",
                    "verdict"])
                self.assertEqual(said["verdict"], "explained")
                self.assertEqual(said["format"], 1)
                self.assertEqual(said["untried_pairs"], 0)
                self.assertGreaterEqual(said["first_place"], 1)
                differing = {}
                for name, wrong in case.wrong.items():
                    different = values(case.right[name], case) != values(wrong, case)
                    differing[name] = int(different.sum())
                    self.assertIn({"name": name, "elements": different.size, "differing": differing[name]},
                                  said["results"])
                self.assertEqual(len(said["results"]), len(case.wrong))
                for finding in said["findings"]:
                    self.assertEqual(sorted(set(finding) - {"layout"}),
                                     ["explained", "hypotheses", "newly_wrong", "unexplained"])
                    for hypothesis in finding["hypotheses"]:
                        self.assertEqual(sorted(hypothesis), ["advice", "name", "what"])
                best = said["findings"][0]
                self.assertEqual([hypothesis["name"] for hypothesis in best["hypotheses"]], [case.mistake])
                self.assertEqual((best["explained"], best["unexplained"], best["newly_wrong"]),
                                 (sum(differing.values()), 0, 0))
                self.check_element(case, said["element"])

    def check_element(self, case, element):
        """The definition's value and the file's value at the place."""
        self.assertEqual(sorted(element), ["definition", "dump", "hypothesis", "index", "name", "result", "steps"])
        self.assertEqual(element["name"], case.mistake)
        self.assertTrue(element["steps"])
        for step in element["steps"]:
            self.assertLessEqual(set(step), {"step", "definition", "hypothesis"})
            self.assertGreater(len(step), 1)
        name, index = element["result"], tuple(element["index"])
        self.assertEqual(said_bits(element["definition"]), bits(values(case.right[name], case)[index]))
        self.assertEqual(said_bits(element["dump"]), bits(values(case.wrong[name], case)[index]))
        self.assertEqual(element["hypothesis"], element["dump"])

    def test_equal(self):
        for case in cases():
            with self.subTest(case.operator, mistake=case.mistake):
                words = ["diagnose", *self.save_case(case), *self.save_results(case.right)]
                self.assertEqual(self.run_well(*words), "diagnosis: nothing differs\n")
                self.assertEqual(self.run_well(*words, "--quiet"), "")
                said = json.loads(self.run_well(*words, "--json"))
                self.assertEqual((said["verdict"], said["findings"], "element" in said), ("equal", [], False))

    def test_partly(self):
        case = next(cases())
        y = case.wrong["y"].copy()
        y[2, 3] ^= 1
        words = ["diagnose", *self.save_case(case), *self.save_results({"y": y})]
        differ = int((y != case.right["y"]).sum())
        text = self.run_well(*words, status=1)
        self.assertRegex(text, rf"\Adiagnosis: offset-left-out: explains {differ - 1} of {differ} differing")
        said = json.loads(self.run_well(*words, "--json", status=1))
        self.assertEqual((said["verdict"], said["first_place"]), ("partly", 0))
        self.assertEqual(said["findings"][0]["unexplained"], 1)
        self.assertIn("\n  What remains: 1 element of y in row 2 of 9 and column 3 of 40.\n", text)
        self.assertEqual(said["remainder"]["y"], 1)
        self.assertEqual((said["remainder"]["rows"]["first"], said["remainder"]["columns"]["first"]), ([2], [3]))

    def test_none(self):
        case = next(cases())
        y = np.random.default_rng(1).integers(-128, 128, case.right["y"].shape).astype("i1")
        words = ["diagnose", *self.save_case(case), *self.save_results({"y": y})]
        text = self.run_well(*words, status=1)
        self.assert_narrow(text)
        differ = (y != case.right["y"]).sum()
        self.assertTrue(text.startswith("diagnosis: none of the hypotheses explains this\n"
                                        f"  What differs: {differ} elements of y in all 9 rows and all 40 columns.\n"))
        self.assertNotIn(" step  ", text)  # one column
        said = json.loads(self.run_well(*words, "--json", status=1))
        self.assertEqual(said["verdict"], "none")
        self.assertNotIn("hypothesis", said["element"])

    def test_pair(self):
        case = next(cases())
        x = case.inputs["x"].astype("f2").astype(f4)
        y = np.maximum(quantize(x, case.inputs["scales"], case.inputs["zero_points"], -1, True, "int8"), -127)
        words = ["diagnose", *self.save_case(case), *self.save_results({"y": y})]
        text = self.run_well(*words, status=1)
        self.assert_narrow(text)
        self.assertRegex(text, r"\Adiagnosis: [a-z0-9-]+ and [a-z0-9-]+: explains \d+ of \d+ differing\s+elements")
        said = json.loads(self.run_well(*words, "--json", status=1))
        pairs = [[hypothesis["name"] for hypothesis in finding["hypotheses"]] for finding in said["findings"]]
        self.assertEqual((said["verdict"], sorted(pairs[0])), ("explained", ["symmetric-range", "x-float16"]))

    def test_overwritten_column(self):
        """A column of one value is no mistake there, though offset-negated would give it: all clamp to 0."""
        x, scales, zero_points = f4(np.random.default_rng(1).normal(size=(20, 40))), f4([0.05]), np.array([100], "u1")
        y = quantize(x, scales, zero_points, 1, True, "uint8")
        y[:, 5] = 0
        words = self.save_inputs(1, x=x, scales=scales, zero_points=zero_points)
        words += ["--dtype", "uint8", *self.save_results({"y": y})]
        text = self.run_well("diagnose", "quantize", *words, status=1)
        self.assertTrue(text.startswith("diagnosis: none of the hypotheses explains this\n"), text)

    def test_same_results(self):
        """The diagnosis names all mistakes that fit."""
        x = f4([[0.5, 1.5, 2.5, 4.5]])
        save(self.path("x.npy"), x)
        save(self.path("one.npy"), f4([1]))
        save(self.path("y.npy"), np.array([[1, 2, 3, 5]], "i1"))
        text = self.run_well("diagnose", "quantize", "x.npy", "--scales", "one.npy", "--expect", "y.npy", status=1)
        self.assertTrue(text.startswith("diagnosis: half-away: explains 3 of 3 "))
        self.assertIn("  On these inputs the same bits come from half-up, half-added-up, half-added-away, ceiling", text)
        self.assert_narrow(text)

    def test_steps_that_are_not_done(self):
        case = next(case for case in cases() if case.mistake == "row-scale-left-out")
        words = ["diagnose", *self.save_case(case), *self.save_results(case.wrong)]
        self.assertRegex(self.run_well(*words, status=1), r"\n  \* activation scale +\S+ \(0x[0-9A-F]{8}\)  +-\n")

    def test_layouts_and_threads(self):
        """Byte order, Fortran order, streams and threads change no diagnosis."""
        random = np.random.default_rng(3)
        x, scale = (random.standard_normal((300, 400)) * 40).astype(f4), f4([0.3])
        y = np.maximum(quantize(x, scale, None, 0, True, "int8"), -127)
        words = ["diagnose", "quantize", "x.npy", "--scales", "one.npy"]
        np.save(self.path("x.npy"), x)
        np.save(self.path("one.npy"), scale)
        np.save(self.path("y.npy"), y)
        expected = self.run_well(*words, "--expect", "y.npy", status=1)
        self.assertTrue(expected.startswith("diagnosis: symmetric-range: explains "))
        for threads in "1234":
            self.assertEqual(self.run_well(*words, "--expect", "y.npy", "--threads", threads, status=1), expected)
        self.assertEqual(self.run_well(*words, "--expect", "-", status=1, input=self.read("y.npy")), expected)
        np.save(self.path("x.npy"), np.asfortranarray(x.astype(">f4")))
        np.save(self.path("one.npy"), scale.astype(">f4"))
        np.save(self.path("y.npy"), np.asfortranarray(y))
        self.assertEqual(self.run_well(*words, "--expect", "y.npy", status=1), expected)

    def test_result_is_written(self):
        case = next(cases())
        words = ["diagnose", *self.save_case(case), *self.save_results(case.wrong)]
        self.run_well(*words, "-o", "y.npy", status=1)
        self.assert_output("y.npy", case.right["y"])
        done = self.run_tool(*words, "-o", "-")
        self.assertEqual((done.returncode, done.stdout), (1, self.read("y.npy")))
        self.assertTrue(done.err.startswith("diagnosis: offset-left-out: "))

    def test_shapes(self):
        for shape in ((0, 4), (1,), (1, 1), (7,), (1, 2, 1, 2, 1, 2, 3, 4)):
            x = np.full(shape, -300, f4)
            save(self.path("x.npy"), x)
            save(self.path("one.npy"), f4([1]))
            save(self.path("y.npy"), np.full(shape, -127, "i1"))
            text = self.run_well("diagnose", "quantize", "x.npy", "--scales", "one.npy", "--expect", "y.npy",
                                 status=int(x.size > 0))
            self.assertIn("symmetric-range" if x.size > 0 else "nothing differs", text)
            if x.size > 0:
                self.assertIn(f"\ny[{', '.join('0' * x.ndim)}], step by step:\n", text)

    def test_command_lines(self):
        case = next(cases())
        right = self.save_results(case.right)
        inputs = self.save_case(case)
        np.save(self.path("i4.npy"), case.right["y"].astype("i4"))
        np.save(self.path("short.npy"), case.right["y"][1:])
        save(self.path("x1.npy"), np.ones((2, 3), "i1"))
        save(self.path("x2.npy"), np.ones((3, 2), "i1"))
        save(self.path("sums.npy"), np.full((2, 2), 4, "i4"))
        product = ("quant-matmul", "x1.npy", "x2.npy", "--dtype", "int32")
        for words, says in (
            ((), "diagnose: no operator given; see npuquant diagnose --help\n"),
            (("quantise",), "there is no operator quantise; did you mean quantize?\n"),
            (("info",), "there is no operator info; see npuquant --help\n"),
            (inputs, "no --expect given; see --help\n"),
            ((*inputs, "--expect", "none.npy"), "none.npy: No such file"),
            ((*inputs, "--expect", "i4.npy"), "i4.npy: holds i4 [9, 40]; expected i1 [9, 40] to compare with y"),
            ((*inputs, "--expect", "short.npy"), "short.npy: holds i1 [8, 40]; expected i1 [9, 40] to compare with y"),
            ((*inputs, *right, "--max-diff", "1"), "this command has no option --max-diff; "),
            ((*inputs, *right, "--max-diffs", "1"), "this command has no option --max-diffs; "),
            ((*inputs, *right, "--repeat", "2"), "this command has no option --repeat; "),
            ((*inputs, *right, "--at", "1,2"), "unknown option --at; "),
            ((*inputs, *right, "--json=1"), "--json=1: --json takes no value\n"),
            ((*inputs, *right, "--threads", "x"), "--threads: 'x' is not a number"),
            ((*inputs, *right, "--backend", "x"), "--backend: there is no 'x'"),
            ((*inputs, *right, "--axis", "7"), "axis"),
            ((*product, "--expect", "sums.npy"), "--dtype: int32 results are the sums of products themselves"),
        ):
            with self.subTest(words):
                self.run_badly("diagnose", *words, says=says)

    def test_full_stdout(self):
        case = next(cases())
        words = [TOOL, "diagnose", *self.save_case(case), *self.save_results(case.wrong), "-o", "y.npy"]
        self.assert_hears_of_full_stdout(words)
        self.assertFalse(os.path.exists(self.path("y.npy")))


class Admissible(CauseTest):
    """Dumps of a device, whose vector unit is sometimes one unit off in a division."""

    def save_device(self, share=0.06):
        """x near ties of its quotients, and results of a device that moves a share of the quotients. Returns words
        and y."""
        random = np.random.default_rng(9)
        scales = (random.random(64) + 0.5).astype(f4)
        x = (random.integers(-200, 200, (48, 64)) * f4(0.5) * scales).astype(f4)
        quotients = x / scales
        beside = np.nextafter(quotients, np.where(random.random(x.shape) < 0.5, f4(-np.inf), f4(np.inf)))
        moved = np.where((random.random(x.shape) < share) & (quotients != 0), beside, quotients)
        words = ["quantize", *self.save_inputs(1, x=x, scales=scales), "--axis", "-1"]
        return words, np.rint(moved).astype("i1"), np.rint(quotients).astype("i1")

    def check(self, words, status, first, verdict, said):
        """Checks --expect and diagnose, with --admissible: the status, the first line and the JSON."""
        for command in ([], ["diagnose"]):
            self.assertIn("diagnosis: " + first, self.run_well(*command, *words, "--admissible", status=status))
            self.run_well(*command, *words, status=1)
        report = json.loads(self.run_well("diagnose", *words, "--json", status=1))
        self.assertEqual((report["verdict"], report["admissible"]["verdict"]), (verdict, said))
        return report["admissible"]

    def test_within(self):
        words, device, right = self.save_device()
        words += self.save_results({"y": device})
        counted = self.check(words, 0, "within the device's division", "admissible", "admissible")
        differing = int((device != right).sum())
        self.assertGreater(differing, 30)
        self.assertEqual((counted["unit"], counted["units"], counted["differing"], counted["wrong"]),
                         ("element", device.size, differing, 0))
        self.assertEqual(counted["made"] + counted["exact_made"], differing)
        self.assertFalse(counted["too_many"])
        text = self.run_well(*words, status=1)
        self.assertIn(f"\n  Admissible for the device's vector division: {differing} of {differing} differing elements.\n",
                      text)

    def test_not_within(self):
        words, device, right = self.save_device()
        wrong = device.copy()
        wrong[3, 5] = right[3, 5] + 7
        counted = self.check(words + self.save_results({"y": wrong}), 1, "none of the hypotheses", "none", "wrong")
        self.assertEqual(counted["wrong"], 1)
        words, device, _ = self.save_device(share=1)
        counted = self.check(words + self.save_results({"y": device}), 1, "none of the hypotheses", "none", "admissible")
        self.assertTrue(counted["too_many"])

    def test_a_mistake_is_named(self):
        words, _, right = self.save_device()
        x, scales = (np.load(self.path(name)) for name in ("x.npy", "scales.npy"))
        quotients = x / scales
        away = (np.sign(quotients) * np.floor(np.abs(quotients) + f4(0.5))).astype("i1")
        self.assertGreater((away != right).sum(), 50)
        self.check(words + self.save_results({"y": away}), 1, "half-away", "explained", "admissible")

    def test_rows(self):
        x = f4([[.26586914, -.75683594, -.2454834, 1.2402344]])
        words = ["dynamic-quant", *self.save_inputs(1, x=x), "--scale-form", "inverse"]
        lower, same = np.array([[27, -77, -25, 127]], "i1"), np.array([[27, -78, -25, 127]], "i1")
        for y, scale, status in ((lower, 0x3C200001, 0), (same, 0x3C1FFFFF, 0), (lower, 0x3C200000, 1)):
            results = {"y": y, "scale": np.array([scale], "u4").view(f4)}
            self.run_well(*words, *self.save_results(results), "--admissible", status=status)

    def test_right(self):
        words, _, right = self.save_device()
        words += self.save_results({"y": right})
        self.run_well(*words, "--admissible")
        said = json.loads(self.run_well("diagnose", *words, "--json"))
        self.assertEqual(said["admissible"], {"verdict": "equal", "unit": "element"})

    def test_refused(self):
        words, device, _ = self.save_device()
        words += ["--admissible"]
        self.run_badly(*words, says="--admissible: nothing is compared; expected --expect FILE")
        expect = self.save_results({"y": device})
        self.run_badly(*words, *expect, "--max-diff", "1", says="--admissible: given with --max-diff or --max-ulp")
        for command in ([], ["diagnose"]):
            self.run_badly(*command, *words, *expect, "--div-mode", "false",
                           says="--admissible: quantize --div-mode false has no division on the device's vector unit")
        for case in cases():
            if case.operator not in ("quantize", "dynamic-quant", "dynamic-block-quant"):
                self.run_badly(*self.save_case(case), *self.save_results(case.right), "--admissible",
                               says=f"--admissible: {case.operator} has no division on the device's vector unit")


class PublicCases(CauseTest):
    """Mistakes of public reports, made again. docs/diagnose.md describes them."""

    def check(self, first, name, *words):
        """Checks the first line, and the name of the best finding or of the shown element."""
        self.assertTrue(self.run_well("diagnose", *words, status=1).startswith(f"diagnosis: {first}"))
        self.assertEqual(json.loads(self.run_well("diagnose", *words, "--json", status=1))["element"]["name"], name)

    def test_float16_truncated(self):
        """microsoft/onnxruntime pull request 32452: a cast where QuantizeLinear rounds."""
        x = np.linspace(-9, 9, 4096).astype("f2")
        x[:2] = [0.050018310546875, -0.050018310546875]
        scales = np.array([0.0999755859375], "f2")
        y = (x.astype(f4) / scales.astype(f4)).astype("i1")
        self.assertEqual(y[:2].tolist(), [0, 0])
        words = self.save_inputs(1, x=x, scales=scales)
        self.check("truncate: ", "truncate", "quantize", *words, *self.save_results({"y": y}))

    def test_tail_rounds_half_away(self):
        """microsoft/onnxruntime pull request 28606: vectors of 16 round halves to even, the rest with std::round()."""
        x = np.random.default_rng(1).integers(-400, 400, (64, 40)).astype(f4) / 4
        scales, zero_points = f4([0.5]), np.array([128], "u1")
        t = x * 2 + 128
        t[:, :32] = np.rint(t[:, :32])
        y = np.clip(np.floor(t + 0.5), 0, 255).astype("u1")
        words = self.save_inputs(1, x=x, scales=scales, zero_points=zero_points)
        name = "half-away in columns 32 to 39"
        self.check(name, name, "quantize", *words, "--dtype", "uint8", *self.save_results({"y": y}))

    def test_factor_one_unit_high(self):
        """sgl-project/sglang pull request 33533: a fast division gives DMAX / m one unit too high."""
        x = np.random.default_rng(1).standard_normal((512, 256)).astype("f2").astype(f4)
        largest = np.abs(x).max(axis=1, keepdims=True)
        y = np.rint(x * np.nextafter(f4(127) / largest, f4(np.inf))).astype("i1")
        results = {"y": y, "scale": (largest * (f4(1) / f4(127))).reshape(-1)}
        words = self.save_inputs(1, x=x.astype("f2"))
        self.check("within the device's division", "quotient one unit higher", "dynamic-quant", *words,
                   *self.save_results(results))


class OtherOperators(CauseTest):
    """Results of operators that end like dynamic_quant, except some bits: by each operator's own rules."""

    X = np.float16([[26, 44.75, -10.625, 22.375], [-30.25, 35.75, -5.375, 17.875], [31.75, -17.125, -4.75, 28.75],
                    [-22.75, 32.75, -24.375, -9.125], [2.25, -1, .5, 0], [3.25, -1, .5, 0]])
    Y = np.int8([[74, 127, -30, 64], [-107, 127, -19, 64], [127, -68, -19, 115], [-88, 127, -95, -35],
                 [127, -56, 28, 0], [127, -39, 20, 0]])
    ROUTED = {(0, 3): 63, (1, 3): 63}
    # The finding, the differing elements, the scale, and its bits in the last two rows.
    RULES = (
        ("scale-is-factor", {}, lambda m: 127 / m, (0x4261C71C, 0x421C4EC5)),
        ("other-form", {}, lambda m: 1 / (127 / m), (0x3C912245, 0x3CD1A346)),
        ("division", {(0, 3): 63}, lambda m: m * f4(1 / 127), (0x3C912244, 0x3CD1A346)),
        ("moe-routing", ROUTED, lambda m: m / 127, (0x3C912245, 0x3CD1A347)),
        ("moe-routing-8-5", {**ROUTED, (2, 1): -69}, lambda m: m / 127, (0x3C912245, 0x3CD1A347)),
        ("grouped-swiglu", {(3, 2): -94}, lambda m: m / 127, (0x3C912245, 0x3CD1A347)),
    )

    def test_rules(self):
        words = ["dynamic-quant", *self.save_inputs(1, x=self.X)]
        for name, changed, rule, bits in self.RULES:
            with self.subTest(name):
                y, scale = self.Y.copy(), rule(np.abs(self.X).max(axis=1).astype(f4))
                for place, value in changed.items():
                    y[place] = value
                self.assertEqual((scale.dtype, *scale[4:].view("u4")), (f4, *bits))
                results = self.save_results({"y": y, "scale": scale})
                said = json.loads(self.run_well("diagnose", *words, *results, "--json", status=1))
                named = [each["name"] for each in said["findings"][0]["hypotheses"]]
                self.assertEqual((said["verdict"], named), ("explained", [name]))


class Explain(CauseTest):
    def test_every_operator(self):
        random = np.random.default_rng(4)
        for case in cases():
            with self.subTest(case.operator, options=case.options):
                words = ["explain", *self.save_case(case)]
                y = values(case.right["y"], case)
                places = [tuple(int(random.integers(n)) for n in y.shape) for _ in range(3)]
                for place in places:
                    words += ["--at", ",".join(map(str, place))]
                said = json.loads(self.run_well(*words, "--json"))
                self.assertEqual(len(said), len(places))
                for place, element in zip(places, said):
                    self.assertEqual(sorted(element), ["definition", "index", "result", "steps"])
                    self.assertEqual((element["result"], tuple(element["index"])), ("y", place))
                    self.assertEqual(said_bits(element["definition"]), bits(y[place]))
                    self.assertEqual({tuple(step) for step in element["steps"]}, {("step", "definition")})
                text = self.run_well(*words)
                self.assert_narrow(text)
                parts = text.rstrip("\n").split("\n\n")
                for place, element, part in zip(places, said, parts, strict=True):
                    lines = [f"y[{', '.join(map(str, place))}]"]
                    for step in [*element["steps"], {"step": "y", "definition": element["definition"]}]:
                        lines.append(f"  {step['step'] + ' ':32}{step['definition']}")
                    self.assertEqual(part, "\n".join(lines))

    def steps_at(self, place, *words):
        said, = json.loads(self.run_well("explain", *words, "--at", ",".join(map(str, place)), "--json"))
        return {step["step"]: step["definition"] for step in said["steps"]}

    def test_values(self):
        save(self.path("x.npy"), f4([[-1.25, 3]]))
        save(self.path("scales.npy"), f4([0.5]))
        self.assertEqual(
            self.steps_at((0, 1), "quantize", "x.npy", "--scales", "scales.npy"),
            {"x": "3 (0x40400000)", "scale": "0.5 (0x3F000000)", "x / scale": "6 (0x40C00000)", "round": "6",
             "saturate": "6"})
        for x, last in (f4([[127, -2.5]]), {"round": "-2", "saturate": "-2", "as uint8, XOR 0x80": "126"}), (
                f4([[0, 0]]), {"NaN to an integer": "0", "as uint8, XOR 0x80": "128"}):
            save(self.path("x.npy"), x)
            steps = self.steps_at((0, 1), "dynamic-quant", "x.npy", "--dtype", "uint8")
            self.assertEqual(list(steps.items())[-len(last):], list(last.items()))

    def test_parameters_and_extremes(self):
        random = np.random.default_rng(6)
        x = (random.standard_normal((4, 3, 50)) * 9).astype(f4)
        smooth = (random.random((2, 50)) + 0.1).astype(f4)
        ends = np.array([5, 12])
        place = (2, 1, 30)
        for per_tensor in (False, True):
            mode = ["--quant-mode", "pertensor"] if per_tensor else []
            if per_tensor:  # which has no groups
                smooth, ends = smooth[0], None
            factors = smooth if per_tensor else smooth[group_of_rows(ends, 12)].reshape(x.shape)
            words = self.save_inputs(x=x, smooth_scales=smooth, group_index=ends)
            row = (x * factors) if per_tensor else (x * factors)[2:3, 1:2]
            first = (0, 0) if per_tensor else (2, 1)

            def at(element):
                where = np.unravel_index(element, row.shape)
                return f"[{where[0] + first[0]}, {where[1] + first[1]}, {where[2]}]"

            steps = self.steps_at(place, "dynamic-quant", *words, *mode)
            _, scale = dynamic_quant(x, smooth, ends, per_tensor, "product", "int8")
            self.assertEqual(steps["m is at"], at(np.abs(row).argmax()))
            self.assertEqual(said_bits(steps["m = max |v|"]), bits(np.abs(row).max()))
            self.assertEqual(said_bits(steps["scale"]), bits(scale[0] if per_tensor else scale[2, 1]))
            steps = self.steps_at(place, "dynamic-quant-asymmetric", *words, *mode)
            _, scale, offset = dynamic(x, smooth, ends, per_tensor, "int8")
            self.assertEqual((steps["hi is at"], steps["lo is at"]), (at(row.argmax()), at(row.argmin())))
            self.assertEqual((said_bits(steps["hi"]), said_bits(steps["lo"])), (bits(row.max()), bits(row.min())))
            self.assertEqual(said_bits(steps["scale"]), bits(scale[0] if per_tensor else scale[2, 1]))
            self.assertEqual(said_bits(steps["offset"]), bits(offset[0] if per_tensor else offset[2, 1]))

    def test_special_values(self):
        save(self.path("x.npy"), f4([[np.nan, 1], [0, 0]]))
        steps = self.steps_at((0, 1), "dynamic-quant", "x.npy")
        self.assertEqual((steps["m = max |v|"], steps["m is at"], steps["NaN to an integer"]), ("NaN", "[0, 0]", "0"))
        self.assertEqual(self.steps_at((1, 0), "dynamic-quant", "x.npy")["r = DMAX / m"], "inf (0x7F800000)")

    def test_blocks(self):
        save(self.path("x.npy"), f4([[1, 2, 8, -4, 3, 5, 2.5]]))
        steps = self.steps_at((0, 6), "dynamic-block-quant", "x.npy", "--block", "4", "--min-scale", "50")
        self.assertEqual(steps, {
            "m = max |x|": "5 (0x40A00000)", "m is at": "[0, 5]", "1 / m": "0.200000003 (0x3E4CCCCD)",
            "q = (1 / m) * DMAX": "25.3999996 (0x41CB3333)", "q, at least min_scale": "50 (0x42480000)",
            "scale": "0.0199999996 (0x3CA3D70A)", "x": "2.5 (0x40200000)", "x * q": "125 (0x42FA0000)", "round": "125",
            "saturate": "125"})
        save(self.path("scale.npy"), f4([[8 / 127, 1]]))
        said = self.run_well("diagnose", "dynamic-block-quant", "x.npy", "--block", "4", "--expect-scale", "scale.npy",
                             status=1)
        self.assertIn("\nscale[0, 1], step by step:\n", said)

    def test_layouts(self):
        """int4 count one by one; byte order and Fortran order change nothing; 1-D and 8-D."""
        for shape in ((16,), (1, 2, 1, 2, 1, 2, 3, 16)):
            x = np.arange(np.prod(shape), dtype=f4).reshape(shape) - 8
            place = tuple(n - 1 for n in shape)
            for stored in (x, np.asfortranarray(x.astype(">f4"))):
                np.save(self.path("x.npy"), stored)
                save(self.path("one.npy"), f4([1]))
                steps = self.steps_at(place, "quantize", "x.npy", "--scales", "one.npy", "--div-mode", "false", "--dtype",
                                      "quint4x2")
                self.assertEqual((steps["x"].split()[0], steps["saturate"]), (f"{int(x[place])}", "7"))

    def test_result_is_written(self):
        case = next(cases())
        words = ["explain", *self.save_case(case), "--at", "1,2"]
        text = self.run_well(*words)
        self.assertEqual(self.run_well(*words, "-o", "y.npy", "--threads", "2"), text)
        self.assert_output("y.npy", case.right["y"])
        done = self.run_tool(*words, "-o", "-")
        self.assertEqual((done.returncode, done.stdout, done.err), (0, self.read("y.npy"), text))

    def test_command_lines(self):
        save(self.path("x.npy"), np.ones((3, 8), f4))
        save(self.path("one.npy"), f4([1]))
        save(self.path("empty.npy"), np.ones((0, 8), f4))
        save(self.path("x1.npy"), np.ones((2, 3), "i1"))
        save(self.path("x2.npy"), np.ones((3, 2), "i1"))
        x = ("quantize", "x.npy", "--scales", "one.npy")
        for words, says in (
            ((), "explain: no operator given; see npuquant explain --help\n"),
            (("explain",), "there is no operator explain; see npuquant --help\n"),
            (x, "no --at given; see --help\n"),
            ((*x, "--at"), "--at: no value given; see --help\n"),
            ((*x, "--at", "1"), "--at: has 1 index; expected 2, one for each dimension of the result\n"),
            ((*x, "--at", "1,2", "--at", "1,2,3"), "--at: has 3 indices; expected 2, one for each"),
            ((*x, "--at", "3,0"), "--at: index 3 of dimension 0; expected less than 3\n"),
            ((*x, "--at", "0,8"), "--at: index 8 of dimension 1; expected less than 8\n"),
            (("quantize", "empty.npy", *x[2:], "--at", "0,0"), "--at: index 0 of dimension 0; expected less than 0\n"),
            ((*x, "--at", "9223372036854775807,0"), "--at: index 9223372036854775807 of dimension 0; expected less"),
            ((*x, "--at", "-1,0"), "--at: '-1,0': expected at most 8 numbers from 0 on, separated by commas\n"),
            ((*x, "--at", "99999999999999999999,0"), "--at: '99999999999999999999,0': expected at most 8 numbers"),
            ((*x, "--at", "1,2,3,4,5,6,7,8,9"), "--at: '1,2,3,4,5,6,7,8,9': expected at most 8 numbers"),
            ((*x, "--at", ""), "--at: '': expected"),
            ((*x, "--at", "1,"), "--at: '1,': expected"),
            ((*x, "--at", "1;2"), "--at: '1;2': expected"),
            ((*x, *["--at", "0,0"] * 65), "--at: is given more than 64 times\n"),
            ((*x, "--at", "0,0", "--expect", "x.npy"), "this command has no option --expect; "),
            ((*x, "--at", "0,0", "--repeat", "2"), "this command has no option --repeat; "),
            (("quant-matmul", "x1.npy", "x2.npy", "--dtype", "int32", "--at", "0,0"),
             "--dtype: int32 results are the sums of products themselves, with no steps behind them; expected another "
             "type\n"),
        ):
            with self.subTest(words):
                self.run_badly("explain", *words, says=says)
        self.assertEqual(self.run_well("explain", *x, *["--at", "0,0"] * 64).count("saturate"), 64)

    def test_full_stdout(self):
        case = next(cases())
        self.assert_hears_of_full_stdout([TOOL, "explain", *self.save_case(case), "--at", "0,0", "-o", "y.npy"])
        self.assertFalse(os.path.exists(self.path("y.npy")))


class Help(CauseTest):
    def example_of(self, *words):
        example = re.search(r"\nexample:\n  npuquant ((?s:.*))\n\Z", self.run_well(*words)).group(1)
        return shlex.split(example.replace("\\\n", ""))

    def test_help(self):
        general = self.run_well("--help")
        self.assertIn("\n  hypotheses  ", general)
        self.assert_narrow(general)
        for mode in ("diagnose", "explain", "hard-inputs"):
            self.assertIn(f"  {mode} ", general)
            text = self.run_well(mode, "--help")
            self.assertEqual(text, self.run_well("help", mode))
            self.assertTrue(text.startswith(f"usage: npuquant {mode} OPERATOR ...\n"))
            self.assertEqual(self.example_of(mode, "-h")[:2], [mode, "quantize"])
            named = [operator for operator in COMMANDS if f"\n  {operator}\n" in text]
            self.assertEqual(len(named), len(COMMANDS) - (mode == "hard-inputs"))
            for operator in named:
                text = self.run_well(mode, operator, "--help")
                self.assertEqual(text, self.run_well("help", mode, operator))
                self.assertTrue(text.startswith(f"usage: npuquant {mode} {operator} "))
                self.assertIn("\nexit status: 0 ", text)
                self.assertIn("  --json  ", text)
                self.assertEqual("  --expect FILE  " in text, mode == "diagnose")
                self.assertEqual("  --at I,J,...  " in text, mode == "explain")
                self.assertEqual("  --shape N,N,...  " in text, mode == "hard-inputs")
                self.assertEqual("  --bf16 NAME,...  " in text, mode != "hard-inputs")
                self.assert_narrow(text.split("\nexample:")[0])

    def test_examples_work(self):
        for operator in COMMANDS:
            self.save_example_inputs(operator)
            self.run_well(*" ".join(self.example_of(operator, "-h")).split(" -o ")[0].split(), "-q", "-o", "y.npy")
            self.assertEqual(self.run_well(*self.example_of("diagnose", operator, "-h")), "diagnosis: nothing differs\n")
            self.assertRegex(self.run_well(*self.example_of("explain", operator, "-h")), r"\Ay\[(0, )?1\]\n  ")
            if operator != "quant-matmul":
                self.assertIn("mistakes that are possible", self.run_well(*self.example_of("hard-inputs", operator, "-h")))

    def test_misspelt(self):
        for words, says in (
            (("diagnoze",), "there is no command diagnoze; did you mean diagnose?\n"),
            (("explian",), "there is no command explian; did you mean explain?\n"),
            (("hard-input",), "there is no command hard-input; did you mean hard-inputs?\n"),
            (("hypothesis",), "there is no command hypothesis; did you mean hypotheses?\n"),
            (("help", "explain", "dynamic"), "there is no operator dynamic; did you mean dynamic-quant?\n"),
            (("help", "explain", "quantize", "x"), "help: unexpected argument x\n"),
            (("help", "hypotheses", "quantize"), "help: unexpected argument quantize\n"),
            (("help", "diagnoses"), "there is no command diagnoses; did you mean diagnose?\n"),
        ):
            with self.subTest(words):
                self.run_badly(*words, says=says)


# A right kernel with a change of its results, "y = ..." or more.
KERNEL = """
import json, os, subprocess, sys
import numpy as np

folder = os.path.dirname(sys.argv[1])
manifest = json.load(open(sys.argv[1]))
words = manifest["diagnose"].split()[2:]
words = [{"--expect": "-o", "--expect-scale": "--scale-output", "--expect-offset": "--offset-output"}.get(word, word)
         for word in words]
subprocess.run(["TOOL", *words, "--quiet"], cwd=folder, check=True)
path = os.path.join(folder, "y.npy")
y = np.load(path)
MISTAKE
np.save(path, y)
"""


class HardInputs(CauseTest):
    forms = (
        ("quantize", "--shape", "16,40", "--axis", "1"),
        ("quantize", "--shape", "5,4,24", "--type", "x=bfloat16,scales=bfloat16,zero_points=bfloat16", "--div-mode",
         "false", "--axis", "-1", "--dtype", "quint4x2"),
        ("quantize", "--shape", "40", "--dtype", "uint8", "--type", "zero-points=int32"),
        ("quantize", "--shape", "1,2,1,2,1,2,3,4", "--axis", "7", "--dtype", "int32"),
        ("group-quant", "--shape", "16,40", "--type", "x=float16", "--without", "offset"),
        ("trans-quant-param", "--shape", "50", "--round-mode", "1"),
        ("dynamic-quant", "--shape", "16,40", "--scale-form", "inverse", "--without=group-index"),
        ("dynamic-quant-asymmetric", "--shape", "16,40", "--type=x=bfloat16", "--dtype", "quint4x2"),
        ("anti-quant", "--shape", "16,40", "--type", "x=quint4x2,scale=bfloat16", "--dtype", "bfloat16"),
        ("dequant", "--shape", "16,40", "--type", "weight-scale=bfloat16", "--type", "bias=float16"),
        ("requant", "--shape", "16,40", "--dtype", "float16", "--type", "words=int64"),
        ("requant", "--shape", "1,1"),
        ("dynamic-block-quant", "--shape", "5,4,24", "--block", "010", "--min-scale", "0x1p-3", "--type", "x=float16"),
    )

    def make(self, folder, *words, **options):
        self.run_well("hard-inputs", *words, "-o", folder, **options)
        with open(self.path(f"{folder}/manifest.json"), encoding="utf-8") as file:
            return json.load(file)

    def files(self, folder):
        return {name: self.read(f"{folder}/{name}") for name in os.listdir(self.path(folder))}

    def test_manifest(self):
        for words in self.forms:
            with self.subTest(words):
                self.setUp()
                manifest = self.make("hard", *words)
                self.assertEqual(sorted(manifest), [
                    "arguments", "diagnose", "inputs", "mistakes", "npuquant", "operator", "outputs", "seed"])
                self.assertEqual(manifest["npuquant"], self.run_well("--version").split()[1])
                self.assertEqual((manifest["operator"], manifest["seed"]), (words[0], 1))
                stored = {"bfloat16": "uint16", "quint4x2": "int32"}
                for entry in manifest["inputs"].values():
                    array = np.load(self.path(f"hard/{entry['file']}"))
                    self.assertEqual(array.dtype, stored.get(entry["dtype"], entry["dtype"]))
                    self.assertEqual(list(array.shape), entry["shape"])
                self.assertEqual(sorted(self.files("hard")),
                                 sorted([entry["file"] for entry in manifest["inputs"].values()] + ["manifest.json"]))
                names = [entry["name"] for entry in manifest["mistakes"]]
                listed = {entry["name"] for entry in json.loads(self.run_well("hypotheses", words[0], "--json"))}
                self.assertLessEqual(set(names), listed)
                self.assertEqual(len(set(names)), len(names))
                for entry in manifest["mistakes"]:
                    self.assertEqual(sorted(entry), ["elements", "name", "same_as"])
                    self.assertIn(entry["same_as"], [None, *names[:names.index(entry["name"])]])

    def test_types_and_shapes(self):
        manifest = self.make("hard", *self.forms[1])
        self.assertEqual(manifest["inputs"], {
            "x": {"file": "x.npy", "dtype": "bfloat16", "shape": [5, 4, 24]},
            "scales": {"file": "scales.npy", "dtype": "bfloat16", "shape": [24]},
            "zero_points": {"file": "zero_points.npy", "dtype": "bfloat16", "shape": [24]}})
        self.assertEqual(manifest["outputs"], {"y": {"file": "y.npy", "dtype": "quint4x2", "shape": [5, 4, 3]}})
        self.assertEqual(manifest["arguments"], {"axis": -1, "div_mode": False, "dtype": "quint4x2"})
        manifest = self.make("hard2", *self.forms[7])
        self.assertEqual({name: (entry["dtype"], entry["shape"]) for name, entry in manifest["outputs"].items()}, {
            "y": ("quint4x2", [16, 5]), "scale": ("float32", [16]), "offset": ("float32", [16])})

    def test_command_of_the_manifest(self):
        """The right results are equal, and differ with one element changed."""
        for words in self.forms:
            with self.subTest(words):
                self.setUp()
                manifest = self.make("hard", *words)
                diagnose = shlex.split(manifest["diagnose"])
                self.assertEqual(diagnose[:3], ["npuquant", "diagnose", words[0]])
                self.folder = self.path("hard")
                call = " ".join(diagnose[2:]).replace("--expect-scale", "--scale-output")
                call = call.replace("--expect-offset", "--offset-output").replace("--expect", "-o")
                self.run_well(*call.split(), "--quiet")
                self.assertEqual(self.run_well(*diagnose[1:]), "diagnosis: nothing differs\n")
                for name, entry in manifest["outputs"].items():
                    self.assertEqual(list(np.load(self.path(entry["file"])).shape), entry["shape"])
                    self.assertIn(f"{EXPECT[name]} {entry['file']}", manifest["diagnose"])
                y = np.load(self.path("y.npy"))
                y.view("u1").flat[-1] ^= 1
                np.save(self.path("y.npy"), y)
                self.run_well(*diagnose[1:], status=1)

    def test_elements_of_the_manifest(self):
        """A mistake changes as many elements as the manifest says."""
        manifest = self.make("hard", "quantize", "--shape", "48,72")
        x, scales, zeros = (np.load(self.path(f"hard/{name}.npy")) for name in manifest["inputs"])
        right = quantize(x, scales, zeros, 1, True, "int8")
        changed = {entry["name"]: entry["elements"] for entry in manifest["mistakes"]}
        for name, y in (("offset-left-out", quantize(x, scales, None, 1, True, "int8")),
                        ("opposite", quantize(x, scales, zeros, -1, False, "int8")),
                        ("symmetric-range", np.maximum(right, -127)),
                        ("transposed", right.reshape(48, 72).T.reshape(48, 72))):
            self.assertEqual(changed[name], (y != right).sum(), name)
        self.assertEqual([entry for entry in manifest["mistakes"] if entry["elements"] == 0 or entry["same_as"]], [])

    def test_seed(self):
        for name, seed in (("a", []), ("b", ["--seed", "1"]), ("c", ["--seed", "2"]), ("d", ["--seed=9223372036854775807"])):
            self.make(name, *self.forms[0], *seed)
        a, b, c, d = map(self.files, "abcd")
        self.assertEqual(a, b)
        for other in (c, d):
            self.assertEqual(sorted(a), sorted(other))
            self.assertNotEqual(a["x.npy"], other["x.npy"])
        self.make("c", *self.forms[0])  # over existing files
        self.assertEqual(self.files("c"), a)

    def test_text(self):
        self.assertRegex(self.run_well("hard-inputs", *self.forms[0], "-o", "hard"),
                         r"\Ahard: (\d+) of \1 mistakes that are possible in this call change its results\n\Z")
        self.assertEqual(self.run_well("hard-inputs", *self.forms[0], "-o", "hard", "-q"), "")
        text = self.run_well("hard-inputs", "quantize", "--shape", "1", "-o", "one")
        manifest = json.loads(self.read("one/manifest.json"))
        said = [f"one: {sum(entry['elements'] > 0 for entry in manifest['mistakes'])} of {len(manifest['mistakes'])} "
                "mistakes that are possible in this call change its results"]
        for entry in manifest["mistakes"]:
            if entry["elements"] == 0:
                said.append(f"  {entry['name']} changes nothing here")
            elif entry["same_as"]:
                said.append(f"  {entry['name']} gives the same results as {entry['same_as']}")
        self.assertGreater(len(said), 5)
        self.assertEqual(text, "\n".join(said) + "\n")

    # ---- --run ----

    def kernel(self, mistake=""):
        """The command of a program in a file with a space in its name."""
        self.write("my kernel.py", KERNEL.replace("TOOL", TOOL).replace("MISTAKE", mistake).encode())
        return f"'{sys.executable}' 'my kernel.py'"

    def test_run_of_a_right_program(self):
        for words in self.forms:
            with self.subTest(words):
                words = ("hard-inputs", *words, "-o", "my 'hard' $folder", "--run", self.kernel())
                self.assertTrue(self.run_well(*words).endswith("\ndiagnosis: nothing differs\n"))
        self.assertEqual(self.run_well(*words, "--quiet"), "")
        self.assertEqual(json.loads(self.run_well(*words, "--json"))["verdict"], "equal")

    def test_run_of_a_faulty_program(self):
        for words, mistake, name in (
            (self.forms[0], "y = np.maximum(y, -127)", "symmetric-range"),
            (self.forms[1], "y = (y & 0x0F0F0F0F) << 4 | y >> 4 & 0x0F0F0F0F", "nibbles-swapped"),
            (self.forms[5], "y &= ~(1 << 46)", "no-flag"),
            (self.forms[7], "path = os.path.join(folder, 'offset.npy'); y = -np.load(path)", "offset-sign"),
            (self.forms[8], "y = y.byteswap()", "bytes-swapped"),
        ):
            with self.subTest(name):
                words = ("hard-inputs", *words, "-o", "hard", "--run", self.kernel(mistake))
                text = self.run_well(*words, status=1)
                self.assertRegex(text, rf"\Ahard: .*change its results\n(  .*\n)*diagnosis: {name}: explains (\d+) of \2 ")
                self.assert_narrow(text)
                said = json.loads(self.run_well(*words, "--json", status=1))
                self.assertEqual(said["findings"][0]["hypotheses"][0]["name"], name)
                self.assertTrue(self.run_well(*words, "-q", status=1).startswith(f"diagnosis: {name}: explains "))

    def test_run_diagnoses_what_is_there(self):
        """A program need not write scales and offsets."""
        self.kernel("for name in ('scale', 'offset'): os.remove(os.path.join(folder, name + '.npy'))")
        words = ("hard-inputs", *self.forms[7], "-o", "hard", "--json", "--run", f"'{sys.executable}' 'my kernel.py'")
        self.assertEqual([result["name"] for result in json.loads(self.run_well(*words))["results"]], ["y"])

    def test_run_of_a_program_that_prints(self):
        """stdout has only the diagnosis."""
        words = ("hard-inputs", *self.forms[0], "-o", "hard", "--run", self.kernel("print('ready')"), "--json")
        done = self.run_tool(*words)
        self.assertEqual((done.returncode, done.err), (0, "ready\n"))
        self.assertEqual(json.loads(done.out)["verdict"], "equal")

    def test_run_of_a_program_that_fails(self):
        y = '"${1%/*}"/y.npy'
        words = ("hard-inputs", *self.forms[0], "-o", "hard")
        self.make("hard", *self.forms[0])
        np.save(self.path("good.npy"), np.zeros((16, 40), "i1"))
        np.save(self.path("short.npy"), np.zeros((16, 39), "i1"))
        np.save(self.path("wide.npy"), np.zeros((16, 40), "i4"))
        self.write("text.npy", b"no array")
        for command, says in (
            ("exit 3;", "--run: the command failed with status 3\n"),
            ("kill -9 $$;", "--run: the command failed with status 137\n"),
            ("set -e; false;", "--run: the command failed with status 1\n"),
            ("", "--run: the command has left no hard/y.npy\n"),
            (f"cp short.npy {y};", "hard/y.npy: holds i1 [16, 39]; expected i1 [16, 40] to compare with y, which is int8\n"),
            (f"cp wide.npy {y};", "hard/y.npy: holds i4 [16, 40]; expected i1 [16, 40] to compare with y, which is int8; "
             "if the file has int32, say --dtype int32\n"),
            (f"cp text.npy {y};", "hard/y.npy: "),
            (f"cp good.npy {y}; exit 4;", "--run: the command failed with status 4\n"),
        ):
            with self.subTest(command):
                np.save(self.path("hard/y.npy"), np.zeros((16, 40), "i1"))  # of an earlier run
                self.run_badly(*words, "--run", f"{command} :", says=says, prints=r"hard: [^\n]+\n\Z")
        done = self.run_tool(*words, "--run", "./no-such-program")
        self.assertEqual((done.returncode, done.err.splitlines()[-1]),
                         (2, "npuquant: --run: the command failed with status 127"))

    def test_signal_while_a_program_runs(self):
        """The inputs are complete, and there is no other file."""
        expected = sorted(entry["file"] for entry in self.make("hard", *self.forms[0])["inputs"].values())
        done = self.run_tool("hard-inputs", *self.forms[0], "-o", "hard", "--run", "kill -TERM $PPID; :")
        self.assertEqual((done.returncode, done.err), (-signal.SIGTERM, ""))
        self.assertEqual(sorted(self.files("hard")), sorted([*expected, "manifest.json"]))

    # ---- what cannot be done ----

    def test_command_lines(self):
        out = ("-o", "hard")
        x = ("quantize", "--shape", "8,8", *out)
        self.write("file", b"")
        for words, says in (
            ((), "hard-inputs: no operator given; see npuquant hard-inputs --help\n"),
            (("hard",), "there is no operator hard; see npuquant --help\n"),
            (("quant-matmul",), "hard-inputs: not for quant-matmul; expected the operator behind its sums, dequant or "
             "requant\n"),
            (("quantize", *out), "no --shape given; see --help\n"),
            (("quantize", "--shape", "8,8"), "no --output given; see --help\n"),
            (("quantize", "--shape", "0,8", *out), "--shape: '0,8': expected at most 8 numbers from 1 on, separated by"),
            (("quantize", "--shape", "8,x", *out), "--shape: '8,x': expected at most 8 numbers from 1 on, separated by"),
            (("quantize", "--shape", "1,1,1,1,1,1,1,1,1", *out), "--shape: '1,1,1,1,1,1,1,1,1': expected at most 8 "),
            (("quantize", "--shape", "1024,1025", *out), "--shape: has more values than 1048576; expected fewer\n"),
            (("quantize", "--shape", "9223372036854775807,3", *out), "--shape: has more values than 1048576; expected fewer\n"),
            ((*x, "--shape", "9,9", "--div-mode=false", "--dtype=quint4x2", "--axis=-1"),
             "--shape: dimension 1 is 9; expected a multiple of 8, as words hold eight int4\n"),
            (("anti-quant", "--shape", "4", "--type", "x=quint4x2", *out), "--shape: dimension 0 is 4; expected a mul"),
            (("group-quant", "--shape", "8", *out), "x: has 1 dimension; expected 2"),
            ((*x, "--axis", "5"), "axis: is 5; expected -2 to 1, as div_mode is true, x has 2 dimensions and scales"),
            ((*x, "--dtype", "quint4x2"), "--dtype: quint4x2 (int4) needs --div-mode false;"),
            ((*x, "--type", "x=int8"), "x: dtype is INT8; expected FLOAT32, FLOAT16 or BFLOAT16\n"),
            ((*x, "--type", "x=float"), "--type: x: there is no type 'float'; expected float32, float16, bfloat16, int8, "),
            ((*x, "--type", "x"), "--type: no type given for x; expected x=TYPE\n"),
            ((*x, "--type", "x=float16,y=int8"), "--type: there is no input called 'y'\n"),
            ((*x, "--type", ""), "--type: there is no input called ''\n"),
            ((*x, "--without", "x"), "--without: x is required\n"),
            ((*x, "--without", "zero-points,scales"), "--without: scales is required\n"),
            ((*x, "--without", "bias"), "--without: there is no input called 'bias'\n"),
            ((*x, "--seed", "-1"), "--seed: '-1' is not a number from 0 to 9223372036854775807\n"),
            ((*x, "--seed", "x"), "--seed: 'x' is not a number"),
            ((*x, "--json"), "--json: nothing is diagnosed; expected --run, too\n"),
            ((*x, "--run", ""), "--run: an empty name\n"),
            ((*x, "x.npy"), "unexpected argument x.npy; see --help\n"),
            ((*x, "--scales", "x.npy"), "this command has no option --scales; "),
            ((*x, "--expect", "x.npy"), "this command has no option --expect; "),
            ((*x, "--threads", "2"), "this command has no option --threads; "),
            (("quantize", "--shape", "8,8", "-o", "file"), "file: cannot be made: File exists\n"),
            (("quantize", "--shape", "8,8", "-o", "no/folder"), "no/folder: cannot be made: No such file or directory\n"),
            (("quantize", "--shape", "8,8", "-o", "x" * 300), ": cannot be made: File name too long\n"),
        ):
            with self.subTest(words):
                self.run_badly("hard-inputs", *words, says=says)

    def test_unwritable_folder(self):
        self.make("hard", *self.forms[0])
        before = self.files("hard")
        os.chmod(self.path("hard"), 0o555)
        others = self.without_rights_to_write("hard")
        self.run_badly("hard-inputs", *self.forms[0], "--seed", "2", "-o", "hard", preexec_fn=others,
                       says="hard/x.npy: cannot be written: Permission denied\n")
        self.assertEqual(self.files("hard"), before)

    def test_full_disk(self):
        """Fails at the first file, at a later one, and at the manifest."""
        script = '"$@"; echo $?; find . -type f'
        for shape, refused in (("99,99", "x"), ("6000", "scales"), ("3500", "zero_points"), ("2900", "manifest")):
            with self.subTest(refused):
                done = self.in_mounted("size=36k", script, "hard-inputs", "quantize", "--shape", shape, "--axis", "0",
                                       "-o", "hard")
                name = "manifest.json" if refused == "manifest" else f"{refused}.npy"
                self.assertEqual((done.stdout, done.stderr),
                                 ("2\n", f"npuquant: hard/{name}: cannot be written: No space left on device\n"))

    def test_file_in_the_way(self):
        """A folder has one of the names: the tool takes the earlier files back."""
        os.makedirs(self.path("hard/manifest.json"))
        self.write("hard/x.npy", b"before")
        self.run_badly("hard-inputs", *self.forms[0], "-o", "hard", says="hard/manifest.json: cannot be written: ")
        self.assertEqual(sorted(os.listdir(self.path("hard"))), ["manifest.json", "x.npy"])
        self.assertEqual(self.read("hard/x.npy"), b"before")

    def test_full_stdout(self):
        self.assert_hears_of_full_stdout([TOOL, "hard-inputs", *self.forms[0], "-o", "hard"])


if __name__ == "__main__":
    run_tests()
