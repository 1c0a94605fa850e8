#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How far a diagnosis can be trusted: faulty kernels of all operators and types, on hard and on normal inputs, with
rows in more than one order. Each kernel has one mistake that the diagnosis knows, two, or one that it does not know.

A pair counts if its results differ from those of each mistake alone. A mistake is named if a finding that explains
everything names it, or others with the same results. Otherwise "explained" means another explanation: another pair of
mistakes, or a part of y.

Runs like test_hard.py.
usage: test_trust.py [-v] [K/N [F]]   one of N kernels, of every Fth form; prints the outcome, with -v what was not named
"""
import concurrent.futures
import functools
import itertools
import os
import pathlib
import sys
import unittest
import zlib

import npuquant
import numpy as np
from calls import Call, first_place, names
from kernels import KERNELS, digest, run
from normal_inputs import normal_call
from test_hard import forms
from npuquant_facts.operators import OPERATORS
from numpy_operators import unpack
from unknown_mistakes import MISTAKES

# In hundredths: the shares that must be named, and that may be named falsely.
LEAST_NAMED = {"singles": 97, "pairs": 90}
MOST_HALF_NAMED = 2  # partly, or as possible


def permuted(call, rng):
    """The same call with its rows in another order."""
    order = rng.permutation(call.inputs["x"].shape[0])
    for name in "x", "activation_scale", "mxscale":
        if name in call.inputs and len(call.inputs[name]) == order.size:
            call.inputs[name] = np.ascontiguousarray(call.inputs[name][order])
    return call


def calls(operator, shape, **arguments):
    """The calls of a form by their kinds."""
    yield "hard", Call(operator, shape, **arguments)
    if operator == "trans_quant_param":
        yield "normal", normal_call(1, 512, 1, operator, **arguments)
    elif len(shape) == 2:
        yield "permuted", permuted(Call(operator, shape, **arguments), np.random.default_rng(1))
        yield "normal", normal_call(48, 512, 1, operator, **arguments)


class Tally:
    """The number of kernels, the number named, and the failures of the diagnosis."""

    def __init__(self):
        self.count, self.named, self.half_named, self.otherwise = 0, 0, 0, 0
        self.notes = []

    def add(self, other):
        for member, value in vars(other).items():
            setattr(self, member, getattr(self, member) + value)

    def line(self):
        return f"{self.count} tried, {self.named} named, {self.half_named} half named, {self.otherwise} explained otherwise"


def judge(call, results, mistakes, tally, note):
    said = call.diagnose(results)
    verdict, named = said["verdict"], [set(each) for each in first_place(said)]
    is_named = set(mistakes) in named or any(explains(call, each, digest(results)) for each in named)
    tally.count += 1
    tally.named += is_named
    tally.half_named += verdict in ("partly", "possible") and not is_named
    tally.otherwise += verdict == "explained" and not is_named
    if not is_named:
        tally.notes.append(f"{verdict}: {note}: {[names(finding) for finding in said['findings'][:1]]}")


def explains(call, mistakes, wanted):
    try:
        return digest(run(call, mistakes)) == wanted
    except ValueError:  # the kernel here cannot make both
        return False


def kernels(call):
    """The kernels of a call: their kind and their mistakes."""
    for name in call.mistakes:
        yield "singles", (name,)
    for pair in itertools.combinations(call.mistakes, 2):
        yield "pairs", pair
    for name in MISTAKES:
        yield "unknown", (name,)


def columns(call, results):
    """The columns of y, in an order of their own."""
    y = unpack(results["y"]) if call.arguments.get("dtype") == "quint4x2" else results["y"]
    return sorted(column.tobytes() for column in y.reshape(-1, y.shape[-1]).T)


@functools.lru_cache(maxsize=None)
def digests(call):
    """What each mistake alone gives."""
    return {digest(run(call, {name})) for name in call.mistakes}


def has_name(call, results):
    """Whether a mistake with a name gives the same, all of y is one value, or only columns of y are elsewhere."""
    y, right = results["y"], run(call, set())
    if y.ndim == 0 or np.array_equal(y, np.broadcast_to(y.flat[0], y.shape), equal_nan=y.dtype.kind == "f"):
        return True
    are_moved = digest({**results, "y": right["y"]}) == digest(right) and columns(call, results) == columns(call, right)
    return are_moved or digest(results) in digests(call)


def faulty(call, kind, mistakes):
    """A kernel's results; None if they show nothing, or if the mistakes cannot be made together."""
    if kind == "unknown":
        results = MISTAKES[mistakes[0]](call, np.random.default_rng(1))
        if results and has_name(call, results):
            return None
    else:
        try:
            results = run(call, set(mistakes))
        except ValueError:  # the kernel makes one mistake at a step, not two
            return None
    less = [set(), *({mistake} for mistake in mistakes if kind == "pairs")]
    shows = results is not None and all(digest(results) != digest(run(call, each)) for each in less)
    return results if shows else None


def prove(operator, form, first, step):
    tallies = {kind: Tally() for kind in ("singles", "pairs", "unknown")}
    np.seterr(all="ignore")
    for inputs, call in calls(operator, **form):
        for kind, mistakes in kernels(call):
            note = f"{operator} {form}, {inputs}: {', '.join(mistakes)}"
            if zlib.crc32(note.encode()) % step == first:
                results = faulty(call, kind, mistakes)
                if results is not None:
                    judge(call, results, mistakes, tallies[kind], note)
    return tallies


def has_hypotheses(name):
    try:
        return bool(npuquant.hypotheses(name))
    except ValueError:  # no operator
        return False


class Trust(unittest.TestCase):
    def test_every_operator(self):
        """Every operator with hypotheses has faulty kernels."""
        operators = {name.replace("npu_", "") for name in npuquant.__all__ if has_hypotheses(name)}
        # quant_matmul has the steps of others; a mixture of experts has tests of its own
        self.assertEqual(operators & OPERATORS.keys(), set(KERNELS))

    def test_page(self):
        """docs/diagnose.md names the limits that are asserted here."""
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "diagnose.md").read_text()
        said = f"at least {LEAST_NAMED['singles']} %", f"at least {LEAST_NAMED['pairs']} %", f"at most {MOST_HALF_NAMED} %"
        self.assertEqual([words for words in said if words not in page], [])

    def test_trust(self):
        first, step = (int(number) for number in (WORDS or ["1/1"])[0].split("/"))
        every = int((WORDS[1:] or [1])[0])
        total = {kind: Tally() for kind in ("singles", "pairs", "unknown")}
        tasks = [(operator, form) for operator in KERNELS for form in forms(operator)[::every]]
        with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
            for tallies in pool.map(prove, *zip(*tasks), itertools.repeat(first - 1), itertools.repeat(step)):
                for kind, tally in tallies.items():
                    total[kind].add(tally)
        for kind, tally in total.items():
            print(f"# {kind}: {tally.line()}")
            for note in tally.notes if "-v" in sys.argv else ():
                print(f"#   {note}")
        for kind, least in LEAST_NAMED.items():
            with self.subTest(kind):
                self.assertGreaterEqual(100 * total[kind].named, least * total[kind].count)
        with self.subTest("unknown"):
            self.assertEqual(total["unknown"].otherwise, 0)
            few = 1 if step > 100 else 0  # one of few kernels is no share
            self.assertLessEqual(100 * (total["unknown"].half_named - few), MOST_HALF_NAMED * total["unknown"].count)


if __name__ == "__main__":
    WORDS = [word for word in sys.argv[1:] if word != "-v"]
    unittest.main(argv=sys.argv[:1])
