#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The cause of a result, by the tool from outside: hypotheses, diagnose, explain and hard-inputs. What they say is
that of the package, whose tests in python/tests/test_diagnose.py check it.

Runs like test_tool.py. PYTHONPATH names the folder diagnosis, too.
"""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import types

import numpy as np
from kernels import run
from numpy_operators import f4, quant_matmul, quantize
from test_tool import COMMANDS, TOOL, ToolTest, run_tests, save

WIDTH = 100  # of what is printed
EXPECT = {"y": "--expect", "scale": "--expect-scale", "offset": "--expect-offset"}

# Mistakes, and the calls of hard-inputs on which they show.
CASES = (
    ("offset-left-out", "quantize", "--shape", "9,40", "--axis", "-1"),
    ("nibbles-swapped", "quantize", "--shape", "9,40", "--type", "x=float16", "--div-mode=false", "--dtype=quint4x2"),
    ("group-late", "group-quant", "--shape", "30,16", "--type", "x=bfloat16"),
    ("no-flag", "trans-quant-param", "--shape", "30", "--round-mode", "1"),
    ("halves-swapped", "trans-quant-param", "--shape", "30", "--dtype", "uint64"),
    ("smooth-left-out", "dynamic-quant", "--shape", "20,5,8", "--dtype", "uint8", "--without", "group-index"),
    ("min-scale-ignored", "dynamic-block-quant", "--shape", "20,5,8", "--block", "3", "--min-scale", "20"),
    ("offset-sign", "dynamic-quant-asymmetric", "--shape", "20,40"),
    ("offset-left-out", "anti-quant", "--shape", "6,32", "--type", "x=quint4x2", "--dtype", "bfloat16"),
    ("row-scale-left-out", "dequant", "--shape", "7,20", "--type", "bias=float32", "--dtype", "bfloat16"),
    ("bias-left-out", "requant", "--shape", "7,20"),
    ("all-scale-bits", "requant", "--shape", "7,20", "--dtype", "float16"),
)


class CauseTest(ToolTest):
    def save_case(self, mistake, operator, *options):
        """Writes hard inputs, and the results of a kernel with a mistake, or without. Returns the words of the call,
        and those that name the results."""
        self.run_well("hard-inputs", operator, *options, "-o", ".")
        manifest = json.loads(self.read("manifest.json"))
        results = run(types.SimpleNamespace(
            operator=operator.replace("-", "_"), arguments=manifest["arguments"],
            inputs={name: np.load(self.path(entry["file"])) for name, entry in manifest["inputs"].items()},
            types={name: entry["dtype"] for name, entry in manifest["inputs"].items()},
        ), {mistake} if mistake else set())
        if manifest["outputs"]["y"]["dtype"] == "uint64":  # which the kernels do not have
            results["y"] = results["y"].view("u8")
        words = shlex.split(manifest["diagnose"])[2:]
        return words[:words.index("--expect")], self.save_results(results)

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
    def check_text(self, mistake, *words):
        text = self.run_well("diagnose", *words, status=1)
        self.assert_narrow(text)
        found = re.match(rf"diagnosis: {mistake}: explains (\d+) of \1 differing elements and changes no other "
                         rf"{mistake}: the kernel ", re.sub(r"\s+", " ", text))
        self.assertTrue(found, text)
        self.assertRegex(text, rf"\n  hypothesis +explained  unexplained  newly wrong\n  {mistake} +{found[1]} +0 +0\n")
        self.assertRegex(text, rf"\n[a-z]+\[[0-9, ]+\], step by step:\n  step +definition +{mistake}\n")
        *_, ours, theirs = text.splitlines()
        self.assertRegex(ours, r"^  (y|scale|offset) +\S.*  \S")  # two values
        self.assertRegex(theirs, r"^  in the dump +\S")
        self.assertEqual(theirs.split("  ")[-1].strip(), ours.split("  ")[-1].strip())
        self.assertNotEqual(theirs.split("  ")[-1].strip(), re.split("  +", ours.strip())[1])

    def test_text(self):
        for mistake, *words in CASES:
            with self.subTest(mistake, words=words):
                call, expect = self.save_case(mistake, *words)
                self.check_text(mistake, *call, *expect)

    def test_quant_matmul(self):
        random = np.random.default_rng(5)
        x1, x2 = random.integers(-9, 9, (7, 30)).astype("i1"), random.integers(-9, 9, (30, 20)).astype("i1")
        scale, rows, bias = f4(random.random(20) + 0.01), f4(random.random(7) + 0.01), random.integers(-9, 9, 20) * 99
        for mistake, parameters, dtype in (("bias-left-out", {"bias": bias.astype("i4")}, "float16"),
                                           ("row-scale-left-out", {"pertoken_scale": rows}, "bfloat16")):
            with self.subTest(mistake):
                words = self.save_inputs(2, x1=x1, x2=x2, scale=scale, **parameters)
                y = quant_matmul(x1, x2, scale, None, None, None, dtype)
                self.check_text(mistake, "quant-matmul", *words, "--dtype", dtype, *self.save_results({"y": y}))

    def test_json(self):
        call, expect = self.save_case(*CASES[0])
        said = json.loads(self.run_well("diagnose", *call, *expect, "--json", status=1))
        self.assertEqual(said["verdict"], "explained")

    def test_equal(self):
        call, expect = self.save_case(None, *CASES[0][1:])
        self.assertEqual(self.run_well("diagnose", *call, *expect), "diagnosis: nothing differs\n")
        self.assertEqual(self.run_well("diagnose", *call, *expect, "--quiet"), "")
        self.assertEqual(json.loads(self.run_well("diagnose", *call, *expect, "--json"))["verdict"], "equal")

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
        call, expect = self.save_case(*CASES[0])
        words = ["diagnose", *call, *expect]
        self.run_well(*call, "-o", "right.npy")
        self.run_well(*words, "-o", "y.npy", status=1)
        self.assertEqual(self.read("y.npy"), self.read("right.npy"))
        done = self.run_tool(*words, "-o", "-")
        self.assertEqual((done.returncode, done.stdout), (1, self.read("y.npy")))
        self.assertTrue(done.err.startswith("diagnosis: offset-left-out: "))

    def test_command_lines(self):
        inputs, right = self.save_case(*CASES[0])
        np.save(self.path("i4.npy"), np.zeros((9, 40), "i4"))
        np.save(self.path("short.npy"), np.zeros((8, 40), "i1"))
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
        call, expect = self.save_case(*CASES[0])
        self.assert_hears_of_full_stdout([TOOL, "diagnose", *call, *expect, "-o", "y.npy"])
        self.assertFalse(os.path.exists(self.path("y.npy")))


class Admissible(CauseTest):
    """Dumps of a device, whose vector unit is sometimes one unit off in a division."""

    def save_device(self):
        """x near ties of its quotients. Returns words, the results of a device that moves some quotients, and right ones."""
        random = np.random.default_rng(9)
        scales = (random.random(64) + 0.5).astype(f4)
        x = (random.integers(-200, 200, (48, 64)) * f4(0.5) * scales).astype(f4)
        quotients = x / scales
        beside = np.nextafter(quotients, np.where(random.random(x.shape) < 0.5, f4(-np.inf), f4(np.inf)))
        moved = np.where((random.random(x.shape) < 0.06) & (quotients != 0), beside, quotients)
        words = ["quantize", *self.save_inputs(1, x=x, scales=scales), "--axis", "-1"]
        return words, np.rint(moved).astype("i1"), np.rint(quotients).astype("i1")

    def test_statuses(self):
        words, device, right = self.save_device()
        wrong = device.copy()
        wrong[3, 5] = right[3, 5] + 7
        for y, status, first in ((right, 0, ""), (device, 0, "within the device's division"),
                                 (wrong, 1, "none of the hypotheses")):
            expect = self.save_results({"y": y})
            for command in ([], ["diagnose"]):
                self.assertIn(first, self.run_well(*command, *words, *expect, "--admissible", status=status))
                self.run_well(*command, *words, *expect, status=int(bool(first)))
        differing = int((device != right).sum())
        self.assertIn(f"\n  Admissible for the device's vector division: {differing} of {differing} differing elements.\n",
                      self.run_well(*words, *self.save_results({"y": device}), status=1))

    def test_refused(self):
        words, device, _ = self.save_device()
        words += ["--admissible"]
        self.run_badly(*words, says="--admissible: nothing is compared; expected --expect FILE")
        expect = self.save_results({"y": device})
        self.run_badly(*words, *expect, "--max-diff", "1", says="--admissible: given with --max-diff or --max-ulp")
        for command in ([], ["diagnose"]):
            self.run_badly(*command, *words, *expect, "--div-mode", "false",
                           says="--admissible: quantize --div-mode false has no division on the device's vector unit")
        for _, operator, *options in CASES:
            if operator not in ("quantize", "dynamic-quant", "dynamic-block-quant"):
                call, expect = self.save_case(None, operator, *options)
                self.run_badly(*call, *expect, "--admissible",
                               says=f"--admissible: {operator} has no division on the device's vector unit")


class Explain(CauseTest):
    def test_every_operator(self):
        for _, operator, *options in CASES:
            with self.subTest(operator, options=options):
                call, _ = self.save_case(None, operator, *options)
                shape = [int(extent) for extent in options[1].split(",")]
                places = [[0] * len(shape), [extent - 1 for extent in shape]]
                words = ["explain", *call]
                for place in places:
                    words += ["--at", ",".join(map(str, place))]
                said = json.loads(self.run_well(*words, "--json"))
                self.assertEqual([(element["result"], element["index"]) for element in said],
                                 [("y", place) for place in places])
                text = self.run_well(*words)
                self.assert_narrow(text)
                for element, part in zip(said, text.rstrip("\n").split("\n\n"), strict=True):
                    lines = [f"y[{', '.join(map(str, element['index']))}]"]
                    for step in [*element["steps"], {"step": "y", "definition": element["definition"]}]:
                        lines.append(f"  {step['step'] + ' ':32}{step['definition']}")
                    self.assertEqual(part, "\n".join(lines))

    def test_layouts(self):
        """int4 count one by one; byte order and Fortran order change nothing; 1-D and 8-D."""
        for shape in ((16,), (1, 2, 1, 2, 1, 2, 3, 16)):
            x = np.arange(np.prod(shape), dtype=f4).reshape(shape) - 8
            place = tuple(n - 1 for n in shape)
            for stored in (x, np.asfortranarray(x.astype(">f4"))):
                np.save(self.path("x.npy"), stored)
                save(self.path("one.npy"), f4([1]))
                text = self.run_well("explain", "quantize", "x.npy", "--scales", "one.npy", "--div-mode", "false",
                                     "--dtype", "quint4x2", "--at", ",".join(map(str, place)))
                self.assertRegex(text, rf"\n  x +{int(x[place])} .*\n(.*\n)*  saturate +7\n")

    def test_result_is_written(self):
        call, _ = self.save_case(*CASES[0])
        words = ["explain", *call, "--at", "1,2"]
        self.run_well(*call, "-o", "right.npy")
        text = self.run_well(*words)
        self.assertEqual(self.run_well(*words, "-o", "y.npy", "--threads", "2"), text)
        self.assertEqual(self.read("y.npy"), self.read("right.npy"))
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
        call, _ = self.save_case(*CASES[0])
        self.assert_hears_of_full_stdout([TOOL, "explain", *call, "--at", "0,0", "-o", "y.npy"])
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
            (self.forms[7], "path = os.path.join(folder, 'offset.npy'); y = -np.load(path)", "offset-sign"),
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
