#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tool names two mistakes at once, explains neither noise nor results of other calls, and blames no right kernel:
on hard inputs and on random normal values.

NPUQUANT_TOOL is the path of the tool.
"""
import random
import tempfile
import unittest

import numpy as np
from calls import first_place, hard_inputs, names
from kernels import KERNELS, digest, run
from normal_inputs import normal_call
from numpy_operators import pack
from test_hard import forms

INT4 = ["--dtype", "quint4x2"]
UINT8 = ["--dtype", "uint8"]

# Operator, options, and the two mistakes.
PAIRS = (
    ("quantize", [], "x-bfloat16", "truncate"),
    ("quantize", [], "x-float16", "offset-negated"),
    ("quantize", [], "floor", "tail-untouched"),
    ("quantize", ["--div-mode", "false", *INT4], "ceiling", "nibbles-swapped"),
    ("group-quant", [], "product-bfloat16", "group-late"),
    ("group-quant", [], "floor", "symmetric-range"),
    ("group-quant", INT4, "floor", "awq-order"),
    ("group-quant", [], "group-next", "offset-before-scaling"),
    ("quantize", [], "first-16-reused", "truncate"),
    ("trans-quant-param", [], "other-round-mode", "offset-negated"),
    ("dynamic-quant", [], "other-form", "smooth-left-out"),
    ("dynamic-quant", [], "truncate", "smooth-bfloat16"),
    ("dynamic-quant", [], "one-step-more", "rows-untouched"),
    ("dynamic-quant", UINT8, "floor", "scale-of-next-row"),
    ("dynamic-quant", INT4, "x-bfloat16", "scale-of-row-before"),
    ("dynamic-quant", [], "scale-is-largest", "floor"),
    ("dynamic-quant", UINT8, "minus-128", "truncate"),
    ("dynamic-quant", [], "range-of-first-32", "floor"),
    ("dynamic-quant", [], "range-of-64", "group-next"),
    ("dynamic-quant-asymmetric", ["--without", "smooth-scales,group-index"], "range-of-columns", "offset-rounded"),
    ("dynamic-quant", INT4, "halves-of-32", "plus-8"),
    ("dynamic-quant", [], "scale-is-factor", "truncate"),
    ("dynamic-quant", [], "scale-bfloat16", "division"),
    ("dynamic-quant", [], "all-bfloat16", "division"),
    ("dynamic-quant", [], "grouped-swiglu", "smooth-left-out"),
    ("dynamic-quant-asymmetric", [], "range-reciprocal", "floor"),
    ("dynamic-quant-asymmetric", [], "returned-float16", "floor"),
    ("dynamic-quant-asymmetric", [], "onnx-dynamic", "x-bfloat16"),
    ("dynamic-quant-asymmetric", [], "pytorch-asymmetric", "truncate"),
    ("dynamic-quant-asymmetric", [], "offset-rounded", "smooth-after-range"),
    ("dynamic-quant-asymmetric", [], "offset-from-low", "scale-bfloat16"),
    ("dynamic-quant-asymmetric", INT4, "one-step-less", "transposed"),
    ("dynamic-quant-asymmetric", [], "offset-truncated", "floor"),
    ("dynamic-quant-asymmetric", [], "zero-point-from-low", "ceiling"),
    ("dynamic-block-quant", [], "scale-divided", "truncate"),
    ("dynamic-block-quant", ["--block", "16"], "half-block", "x-bfloat16"),
    ("dynamic-block-quant", ["--block", "16", "--min-scale", "90"], "min-scale-ignored", "scale-of-block-before"),
    ("anti-quant", [], "scaled-before-offset", "result-truncated"),
    ("anti-quant", [], "offset-negated", "scale-float16"),
    ("anti-quant", ["--type", "x=quint4x2"], "x-awq-order", "x-minus-8"),
    ("anti-quant", [], "relu", "result-truncated"),
    ("dequant", [], "bias-after-scaling", "result-truncated"),
    ("dequant", [], "bias-of-next", "result-truncated"),
    ("dequant", ["--dtype", "bfloat16", "--type", "bias=float32"], "scale-of-next-row", "bias-left-out"),
    ("dequant", [], "first-product-bfloat16", "scale-of-next-row"),
    ("requant", [], "bias-left-out", "truncate"),
    ("requant", [], "scale-bfloat16", "offset-of-next"),
    ("requant", [], "unsigned-int8", "truncate"),
)

# One of the two changes few elements, or only elements that the other changes: hard inputs show both.
RARE_PAIRS = (
    ("quantize", [], "nan-before-offset", "tf32"),
    ("dynamic-quant", [], "least-1e-6", "scale-bfloat16"),
    ("dynamic-quant", [], "relu", "dmax-first"),
    ("dynamic-quant", [], "inverse-first", "added-m-1e-6"),
    ("dynamic-quant", [], "added-1e-5", "division"),
    ("dynamic-quant", [], "float64", "smooth-bfloat16"),
    ("dynamic-quant-asymmetric", [], "symmetric-range", "nan-low"),
    ("dynamic-block-quant", ["--block", "16"], "one-division", "ceiling"),
    ("anti-quant", ["--dtype", "bfloat16"], "float64", "result-finite"),
    ("anti-quant", ["--dtype", "float32"], "two-products", "scale-of-next"),
    ("anti-quant", ["--type", "scale=bfloat16", "--dtype", "bfloat16"], "sum-float16", "offset-of-one-before"),
    ("dequant", ["--dtype", "float16", "--without", "bias,activation-scale"], "nan-negative", "scale-of-next"),
    ("requant", ["--dtype", "int8"], "wrap", "one-clamp"),
    ("trans-quant-param", [], "other-round-mode", "offset-int8"),
    ("trans-quant-param", ["--without", "offset"], "all-scale-bits", "halves-swapped"),
)

# Mistakes in a part of y.
PARTS = (
    ("quantize", [], "truncate"),
    ("group-quant", [], "ceiling"),
    ("dynamic-quant", [], "product-bfloat16"),
    ("dynamic-quant-asymmetric", [], "round-first"),
    ("dynamic-block-quant", ["--block", "16"], "scale-of-next-block"),
    ("anti-quant", [], "result-truncated"),
    ("dequant", [], "product-bfloat16"),
    ("requant", [], "floor"),
)

FORMS = (
    *((operator, []) for operator in KERNELS),
    ("quantize", UINT8),
    ("anti-quant", ["--type", "x=quint4x2"]),
    ("dynamic-quant", INT4),
    ("dynamic-quant", UINT8),
    ("dynamic-quant-asymmetric", INT4),
    ("dynamic-block-quant", ["--block", "8", *INT4]),
)


def calls(operator, *options):
    """A function that makes hard inputs in a folder, and one that makes normal ones."""
    shape = "72" if operator == "trans-quant-param" else "48,72"
    return {
        "hard": lambda folder: hard_inputs(folder, operator, "--shape", shape, *options),
        "normal": lambda folder: normal_call(folder, 48, 512, 1, operator, *options),
    }


class Pairs(unittest.TestCase):
    def test_pairs(self):
        for operator, options, *mistakes in PAIRS:
            for kind, make in calls(operator, *options).items():
                with self.subTest(operator, inputs=kind, mistakes=mistakes), tempfile.TemporaryDirectory() as folder:
                    self.check(make(folder), set(mistakes))

    def test_rare_pairs(self):
        for operator, options, *mistakes in RARE_PAIRS:
            with self.subTest(operator, mistakes=mistakes), tempfile.TemporaryDirectory() as folder:
                self.check(calls(operator, *options)["hard"](folder), set(mistakes))

    def check(self, call, mistakes):
        results = run(call, mistakes)
        said = call.diagnose(results)
        self.assertEqual(said["verdict"], "explained")
        named = [set(pair) for pair in first_place(said)]
        self.assertIn(mistakes, named)
        for pair in named:
            self.assertEqual(digest(run(call, pair)), digest(results), pair)


class Parts(unittest.TestCase):
    """The tool names a mistake with its columns or rows."""

    def test_parts(self):
        for operator, options, mistake in PARTS:
            with tempfile.TemporaryDirectory() as folder, self.subTest(operator, mistake=mistake):
                call = calls(operator, *options)["normal"](folder)
                right, wrong = run(call, set()), run(call, {mistake})
                for where, part in ((np.s_[:, 496:], ("column", 496, 512)), (np.s_[:, :480], ("column", 0, 480)),
                                    (np.s_[32:], ("row", 32, 48)), (np.s_[8:16], ("row", 8, 16))):
                    y = right["y"].copy()
                    y[where] = wrong["y"][where]
                    said = call.diagnose({**right, "y": y})
                    self.assertEqual(said["verdict"], "explained", part)
                    named = [(names(finding), finding["part"]) for finding in said["findings"][:said["first_place"]]]
                    self.assertEqual([name for name, _ in named], [[mistake]], part)
                    self.assertEqual(tuple(named[0][1][key] for key in ("unit", "begin", "end")), part)


# ---- noise ----


def flipped(y, is_int4, rng):
    """One element in a hundred is one unit off, in its last bit."""
    hit = rng.random((*y.shape[:-1], y.shape[-1] * (8 if is_int4 else 1))) < 0.01
    bits = f"u{y.itemsize}"
    return (y.view(bits) ^ (pack(hit).view(bits) if is_int4 else hit.astype(bits))).view(y.dtype)


def uniform(y, is_int4, rng):
    return np.frombuffer(rng.bytes(y.nbytes), y.dtype).reshape(y.shape)


def shuffled(y, is_int4, rng):
    """The result's values in other places."""
    return rng.permuted(y.reshape(-1)).reshape(y.shape)


class Noise(unittest.TestCase):
    def test_noise(self):
        for operator, options in FORMS:
            for kind, make in calls(operator, *options).items():
                with tempfile.TemporaryDirectory() as folder:
                    self.check(make(folder), kind)

    def check(self, call, kind):
        rng = np.random.default_rng(1)
        right = run(call, set())
        for noise in flipped, uniform, shuffled:
            with self.subTest(call.operator, inputs=kind, arguments=call.arguments, noise=noise.__name__):
                y = noise(right["y"], call.arguments.get("dtype") == "quint4x2", rng)
                said = call.diagnose({**right, "y": y})
                self.assertEqual((said["verdict"], said["first_place"]), ("none", 0), said["findings"])

    def test_unwritten(self):
        """Memory that was never written holds zeros."""
        for operator, options in FORMS:
            for kind, make in calls(operator, *options).items():
                with self.subTest(operator, inputs=kind, options=options), tempfile.TemporaryDirectory() as folder:
                    call = make(folder)
                    results = run(call, set())
                    said = call.diagnose({**results, "y": np.zeros_like(results["y"])})
                    name = "tail-untouched" if operator == "trans-quant-param" else "rows-untouched"
                    self.assertEqual((said["verdict"], first_place(said)), ("explained", [[name]]))

    def test_other_call(self):
        for operator, options in FORMS:
            with self.subTest(operator, options=options), tempfile.TemporaryDirectory() as folder:
                other = run(normal_call(folder, 48, 512, 2, operator, *options), set())
                said = normal_call(folder, 48, 512, 1, operator, *options).diagnose(other)
                self.assertEqual((said["verdict"], said["first_place"]), ("none", 0), said["findings"])


# ---- right kernels ----


class RightKernels(unittest.TestCase):
    def test_right_kernels(self):
        chosen = random.Random(1)
        for operator in KERNELS:
            for seed, form in enumerate(chosen.choices(forms(operator), k=6)):
                with self.subTest(operator, form=form, seed=seed), tempfile.TemporaryDirectory() as folder:
                    call = hard_inputs(folder, operator, *form, "--seed", str(seed))
                    self.assertEqual(call.diagnose(run(call, set()))["verdict"], "equal")

    def test_normal(self):
        for operator, options in FORMS:
            for seed in range(4):
                with self.subTest(operator, options=options, seed=seed), tempfile.TemporaryDirectory() as folder:
                    call = normal_call(folder, 48, 512, seed, operator, *options)
                    self.assertEqual(call.diagnose(run(call, set()))["verdict"], "equal")


if __name__ == "__main__":
    unittest.main(verbosity=2)
