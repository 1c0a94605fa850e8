#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A kernel with one mistake runs on 512 x 4096 random normal values, for every mistake of every operator. The diagnosis
must put the true mistake in the first place, beside those that give the same bits, and no others. A mistake that changes
no bit must be no difference. Hard inputs must tell every mistake from all others. docs/random-data.md has the numbers.

Runs like test_hard.py.
usage: test_random.py            checks, the page too
       test_random.py OPERATOR   checks one operator
       test_random.py --record   writes the table into the page, to be reviewed
       test_random.py --tables   prints on how many elements each mistake shows
"""
import concurrent.futures
import functools
import os
import pathlib
import sys
import unittest

import numpy as np
from calls import GIVEN, first_place
from kernels import digest, run
from normal_inputs import normal_call

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "random-data.md"
BEGIN, END = "<!-- tests/diagnosis/test_random.py --record -->\n", "<!-- end -->\n"

SHAPE = 512, 4096
SEED = 1

# The title of each call in the page, the operator, and its arguments.
FORMS = {
    "quantize, float32 to int8": ("quantize", {}),
    "group_quant, float32 to int8": ("group_quant", {}),
    "trans_quant_param": ("trans_quant_param", {}),
    "dynamic_quant, float32 to int8": ("dynamic_quant", {}),
    "dynamic_quant, float32 to int4": ("dynamic_quant", {"dtype": "quint4x2"}),
    "dynamic_quant_asymmetric, float32 to int8": ("dynamic_quant_asymmetric", {}),
    "dynamic_quant_asymmetric, float32 to int4": ("dynamic_quant_asymmetric", {"dtype": "quint4x2"}),
    "dynamic_block_quant in blocks of 32, float32 to int8": ("dynamic_block_quant", {"block": 32}),
    "dynamic_mx_quant, bfloat16 to float8_e4m3fn": ("dynamic_mx_quant", {"dtypes": {"x": "bfloat16"}}),
    "dynamic_mx_quant, float32 to float4_e2m1": ("dynamic_mx_quant", {"dtype": "float4_e2m1fn_x2"}),
    "anti_quant, int8 to float16": ("anti_quant", {}),
    "anti_mx_quant, float8_e4m3fn to bfloat16": ("anti_mx_quant", {"dtype": "bfloat16"}),
    "dequant to float16, int32 bias": ("dequant", {}),
    "dequant to bfloat16, float32 bias": ("dequant", {"dtype": "bfloat16", "dtypes": {"bias": "float32"}}),
    "requant to int8": ("requant", {}),
}


def thread_pool():
    """NumPy's way with errors belongs to a thread."""
    return concurrent.futures.ThreadPoolExecutor(os.cpu_count(), initializer=np.seterr, initargs=["ignore"])


def as_if_unwritten(results, right, call):
    """A y of one value looks like memory that held it before, and to which nothing was written."""
    y = results["y"]
    is_alike = (y == y.flat[0]).all() and digest({**results, "y": right["y"]}) == digest(right)
    return ["rows-untouched"] if "rows-untouched" in call.mistakes and is_alike else []


def without_numbers(names):
    """Without bounds of any number, if a bound with a name gives the same: it has the name."""
    return [name for name in names if not name.endswith("-other")] or names


class Outcome:
    """Of a call: what is said about a right kernel, and the mistakes by the bits that they give."""

    def __init__(self, form):
        operator, arguments = FORMS[form]
        call = normal_call(*SHAPE, SEED, operator, **arguments)
        alike = {}
        with thread_pool() as pool:
            mistakes = [set(), *({name} for name in call.mistakes)]
            for made, results in zip(mistakes, pool.map(lambda made: run(call, made), mistakes)):
                alike.setdefault(digest(results), (results, []))[1].extend(made)
            self.said, *self.said_of = pool.map(lambda results: call.diagnose(results[0]), alike.values())
        (right, self.unseen), *seen = alike.values()
        self.mistakes = [without_numbers(names) + as_if_unwritten(results, right, call) for results, names in seen]
        self.possible = call.mistakes
        self.by_hard_inputs = sum(call.changed[name] > 0 and call.same_as[name] is None for name in call.mistakes)


@functools.cache
def outcome(form):
    return Outcome(form)


class RandomData(unittest.TestCase):
    pass


def check(self, form):
    found = outcome(form)
    self.assertEqual(found.said["verdict"], "equal")
    self.assertEqual(found.by_hard_inputs, len(found.possible))
    for names, said in zip(found.mistakes, found.said_of):
        with self.subTest(form=form, mistakes=names):
            self.assertIn(said["verdict"], GIVEN)
            self.assertCountEqual(first_place(said), [[name] for name in names])


# ---- the page ----


def counts():
    yield "| call | possible | hidden | rare | alike | named alone |\n"
    yield "|---|---|---|---|---|---|\n"
    for form in FORMS:
        found = outcome(form)
        elements = [sum(result["differing"] for result in said["results"]) for said in found.said_of]
        rare = sum(len(names) for names, differing in zip(found.mistakes, elements) if differing < 10)
        alone = sum(len(names) == 1 for names in found.mistakes)
        alike = len(found.possible) - len(found.unseen) - alone
        yield f"| {form} | {len(found.possible)} | {len(found.unseen)} | {rare} | {alike} | {alone} |\n"


def table(form):
    found = outcome(form)
    results = found.said["results"]
    yield f"\n## {form}\n\n| mistakes |"
    for result in results:
        yield f" {result['name']}, of {result['elements']:,} |"
    yield "\n|---|" + "---|" * len(results) + "\n"
    for names, said in zip(found.mistakes, found.said_of):
        yield f"| {code(names)} |" + "".join(f" {result['differing']:,} |" for result in said["results"]) + "\n"
    yield f"\nNo bit changes with {code(found.unseen)}.\n"


def code(names):
    return ", ".join(f"`{name}`" for name in names)


def made_page():
    """The page with its table made anew."""
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{''.join(counts())}{END}{after}"


class Page(unittest.TestCase):
    def test_table(self):
        self.maxDiff = None
        self.assertEqual(PAGE.read_text(), made_page())


if __name__ == "__main__":
    wanted = sys.argv.pop(1) if len(sys.argv) > 1 else None
    for form, (operator, _) in FORMS.items():
        if wanted in (None, "--record", "--tables", operator):
            setattr(RandomData, f"test_{form}", lambda self, form=form: check(self, form))
    if wanted:
        del Page
    done = unittest.main(verbosity=2, exit=False).result
    if done.wasSuccessful() and wanted == "--record":
        PAGE.write_text(made_page())
    if wanted == "--tables":
        print("".join(line for form in FORMS for line in table(form)))
    sys.exit(not done.wasSuccessful())
