#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A diagnosis names two mistakes at once, explains neither noise nor results of other calls, and blames no right
kernel: on hard inputs and on random normal values.

Runs like test_hard.py.
"""
import random
import unittest

import numpy as np
from calls import GIVEN, Call, first_place, names
from kernels import KERNELS, digest, run
from normal_inputs import normal_call
from numpy_operators import pack
from test_hard import forms

INT4 = {"dtype": "quint4x2"}
UINT8 = {"dtype": "uint8"}

# Operator, arguments, and the two mistakes.
PAIRS = (
    ("quantize", {}, "x-bfloat16", "truncate"),
    ("quantize", {}, "x-float16", "offset-negated"),
    ("quantize", {}, "floor", "tail-untouched"),
    ("quantize", {"div_mode": False, **INT4}, "ceiling", "nibbles-swapped"),
    ("group_quant", {}, "product-bfloat16", "group-late"),
    ("group_quant", {}, "floor", "symmetric-range"),
    ("group_quant", INT4, "floor", "awq-order"),
    ("group_quant", {}, "group-next", "offset-before-scaling"),
    ("quantize", {}, "first-16-reused", "truncate"),
    ("trans_quant_param", {}, "other-round-mode", "offset-negated"),
    ("dynamic_quant", {}, "other-form", "smooth-left-out"),
    ("dynamic_quant", {}, "truncate", "smooth-bfloat16"),
    ("dynamic_quant", {}, "one-step-more", "rows-untouched"),
    ("dynamic_quant", UINT8, "floor", "scale-of-next-row"),
    ("dynamic_quant", INT4, "x-bfloat16", "scale-of-row-before"),
    ("dynamic_quant", {}, "scale-is-largest", "floor"),
    ("dynamic_quant", UINT8, "minus-128", "truncate"),
    ("dynamic_quant", {}, "range-of-first-32", "floor"),
    ("dynamic_quant", {}, "range-of-64", "group-next"),
    ("dynamic_quant_asymmetric", {"without": ("smooth_scales", "group_index")}, "range-of-columns", "offset-rounded"),
    ("dynamic_quant", INT4, "halves-of-32", "plus-8"),
    ("dynamic_quant", {}, "scale-is-factor", "truncate"),
    ("dynamic_quant", {}, "scale-bfloat16", "division"),
    ("dynamic_quant", {}, "all-bfloat16", "division"),
    ("dynamic_quant", {}, "grouped-swiglu", "smooth-left-out"),
    ("dynamic_quant_asymmetric", {}, "range-reciprocal", "floor"),
    ("dynamic_quant_asymmetric", {}, "returned-float16", "floor"),
    ("dynamic_quant_asymmetric", {}, "onnx-dynamic", "x-bfloat16"),
    ("dynamic_quant_asymmetric", {}, "pytorch-asymmetric", "truncate"),
    ("dynamic_quant_asymmetric", {}, "offset-rounded", "smooth-after-range"),
    ("dynamic_quant_asymmetric", {}, "offset-from-low", "scale-bfloat16"),
    ("dynamic_quant_asymmetric", INT4, "one-step-less", "transposed"),
    ("dynamic_quant_asymmetric", {}, "offset-truncated", "floor"),
    ("dynamic_quant_asymmetric", {}, "zero-point-from-low", "ceiling"),
    ("dynamic_block_quant", {}, "scale-divided", "truncate"),
    ("dynamic_block_quant", {"block": 16}, "half-block", "x-bfloat16"),
    ("dynamic_block_quant", {"block": 16, "min_scale": 90.0}, "min-scale-ignored", "scale-of-block-before"),
    ("anti_quant", {}, "scaled-before-offset", "result-truncated"),
    ("anti_quant", {}, "offset-negated", "scale-float16"),
    ("anti_quant", {"dtypes": {"x": "quint4x2"}}, "x-awq-order", "x-minus-8"),
    ("anti_quant", {}, "relu", "result-truncated"),
    ("dequant", {}, "bias-after-scaling", "result-truncated"),
    ("dequant", {}, "bias-of-next", "result-truncated"),
    ("dequant", {"dtype": "bfloat16", "dtypes": {"bias": "float32"}}, "scale-of-next-row", "bias-left-out"),
    ("dequant", {}, "first-product-bfloat16", "scale-of-next-row"),
    ("requant", {}, "bias-left-out", "truncate"),
    ("requant", {}, "scale-bfloat16", "offset-of-next"),
    ("requant", {}, "unsigned-int8", "truncate"),
    ("requant", {}, "gemmlowp", "bias-left-out"),
    ("dynamic_quant", {}, "range-of-4-rows", "floor"),
    ("dynamic_quant", {}, "running-range", "truncate"),
    ("dynamic_quant", INT4, "words-unmasked", "truncate"),
    ("dynamic_block_quant", {"block": 16}, "groups-bfloat16", "scale-of-next-block"),
    ("quantize", {}, "x-read-as-bfloat16", "truncate"),
    ("group_quant", {}, "operands-float16", "truncate"),
    ("anti_quant", {"dtypes": {"x": "quint4x2"}}, "x-borrowed", "scale-of-next"),
    ("anti_quant", {}, "x-read-as-uint8", "result-truncated"),
    ("dequant", {}, "scale-read-as-bfloat16", "bias-left-out"),
    ("dynamic_mx_quant", {"scale_alg": 1}, "scale-floor", "truncate"),
    ("dynamic_mx_quant", {"dtype": "float4_e2m1fn_x2"}, "nibbles-swapped", "scale-even"),
    ("dynamic_mx_quant", {}, "scale-ceil", "scales-swapped"),
    ("anti_mx_quant", {}, "scales-swapped", "x-fnuz"),
    ("anti_mx_quant", {"src_type": "float4_e2m1fn_x2"}, "x-nibbles-swapped", "scale-of-next-group"),
    ("dynamic_mx_quant", {}, "scales-groups-first", "truncate"),
    ("dynamic_mx_quant", {"dtype": "float4_e2m1fn_x2"}, "scale-of-group-before", "scales-in-planes"),
    ("dynamic_mx_quant", {"axis": 0}, "scales-not-paired", "rows-overwritten"),
)

# One of the two changes few elements, or only elements that the other changes: hard inputs show both.
RARE_PAIRS = (
    ("quantize", {}, "nan-before-offset", "tf32"),
    ("quantize", {}, "offset-integer", "round-first"),
    ("dynamic_quant", {}, "least-1e-6", "scale-bfloat16"),
    ("dynamic_quant", {}, "relu", "dmax-first"),
    ("dynamic_quant", {}, "dmax-first", "added-m-1e-6"),
    ("dynamic_quant", {}, "added-1e-5", "division"),
    ("dynamic_quant", {}, "least-other", "floor"),
    ("dynamic_quant", {}, "range-of-16", "half-away"),
    ("dynamic_quant", {}, "float64", "smooth-bfloat16"),
    ("dynamic_quant_asymmetric", {}, "symmetric-range", "nan-low"),
    ("dynamic_block_quant", {"block": 16}, "one-division", "ceiling"),
    ("anti_quant", {"dtype": "bfloat16"}, "float64", "result-finite"),
    ("anti_quant", {"dtype": "float32"}, "two-products", "scale-of-next"),
    ("anti_quant", {"dtypes": {"scale": "bfloat16"}, "dtype": "bfloat16"}, "sum-float16", "offset-of-one-before"),
    ("dequant", {"without": ("bias", "activation_scale")}, "nan-negative", "scale-of-next"),
    ("requant", {"dtype": "int8"}, "wrap", "one-clamp"),
    ("dynamic_mx_quant", {}, "scale-rceil", "bad-groups-nan"),
    ("anti_mx_quant", {"dtype": "float16"}, "scale-ff-infinite", "result-half-away"),
    ("anti_mx_quant", {"dtype": "bfloat16"}, "scale-shifted", "x-without-specials"),
    ("dynamic_mx_quant", {"dtype": "float4_e2m1fn_x2", "round_mode": "round"}, "half-to-zero", "small-groups-kept"),
    ("trans_quant_param", {}, "other-round-mode", "offset-int8"),
    ("trans_quant_param", {"without": "offset"}, "all-scale-bits", "halves-swapped"),
)

# Mistakes in a part of y.
PARTS = (
    ("quantize", {}, "truncate"),
    ("group_quant", {}, "ceiling"),
    ("dynamic_quant", {}, "product-bfloat16"),
    ("dynamic_quant_asymmetric", {}, "round-first"),
    ("dynamic_block_quant", {"block": 16}, "scale-of-next-block"),
    ("dynamic_mx_quant", {}, "truncate"),
    ("anti_mx_quant", {}, "x-without-subnormals"),
    ("anti_quant", {}, "result-truncated"),
    ("dequant", {}, "product-bfloat16"),
    ("requant", {}, "floor"),
)

FORMS = (
    *((operator, {}) for operator in KERNELS),
    ("quantize", UINT8),
    ("anti_quant", {"dtypes": {"x": "quint4x2"}}),
    ("dynamic_quant", INT4),
    ("dynamic_quant", UINT8),
    ("dynamic_quant_asymmetric", INT4),
    ("dynamic_block_quant", {"block": 8, **INT4}),
    ("dynamic_mx_quant", {"dtype": "float4_e1m2fn_x2", "axis": 0}),
    ("anti_mx_quant", {"src_type": "float4_e1m2fn_x2", "axis": 0}),
)


def calls(operator, arguments):
    """The call on hard inputs, and the one on normal inputs."""
    yield "hard", hard_call(operator, arguments)
    yield "normal", normal_call(48, 512, 1, operator, **arguments)


def hard_call(operator, arguments):
    return Call(operator, (72,) if operator == "trans_quant_param" else (48, 72), **arguments)


class Pairs(unittest.TestCase):
    def test_pairs(self):
        for operator, arguments, *mistakes in PAIRS:
            for kind, call in calls(operator, arguments):
                with self.subTest(operator, inputs=kind, mistakes=mistakes):
                    self.check(call, set(mistakes))

    def test_rare_pairs(self):
        for operator, arguments, *mistakes in RARE_PAIRS:
            with self.subTest(operator, mistakes=mistakes):
                self.check(hard_call(operator, arguments), set(mistakes))

    def check(self, call, mistakes):
        results = run(call, mistakes)
        said = call.diagnose(results)
        self.assertIn(said["verdict"], GIVEN)
        named = [set(pair) for pair in first_place(said)]
        self.assertIn(mistakes, named)
        for pair in named:
            self.assertEqual(digest(run(call, pair)), digest(results), pair)


class Parts(unittest.TestCase):
    """A diagnosis names a mistake with its columns or rows."""

    def test_parts(self):
        for operator, arguments, mistake in PARTS:
            with self.subTest(operator, mistake=mistake):
                call = normal_call(48, 512, 1, operator, **arguments)
                right, wrong = run(call, set()), run(call, {mistake})
                for where, part in ((np.s_[:, 496:], ("column", 496, 512)), (np.s_[:, :480], ("column", 0, 480)),
                                    (np.s_[32:], ("row", 32, 48)), (np.s_[8:16], ("row", 8, 16))):
                    y = right["y"].copy()
                    y[where] = wrong["y"][where]
                    said = call.diagnose({**right, "y": y})
                    self.assertIn(said["verdict"], GIVEN, part)
                    named = [(names(finding), finding["part"]) for finding in said["findings"][:said["first_place"]]]
                    self.assertIn([mistake], [name for name, _ in named], part)
                    for (name,), _ in named:  # in a part without the last block, that one may have any scale
                        np.testing.assert_array_equal(run(call, {name})["y"][where], y[where])
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
        for operator, arguments in FORMS:
            for kind, call in calls(operator, arguments):
                self.check(call, kind)

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
        for operator, arguments in FORMS:
            for kind, call in calls(operator, arguments):
                with self.subTest(operator, inputs=kind, arguments=arguments):
                    results = run(call, set())
                    said = call.diagnose({**results, "y": np.zeros_like(results["y"])})
                    name = "tail-untouched" if operator == "trans_quant_param" else "rows-untouched"
                    self.assertEqual((said["verdict"], first_place(said)), ("explained", [[name]]))

    def test_other_call(self):
        for operator, arguments in FORMS:
            with self.subTest(operator, arguments=arguments):
                other = run(normal_call(48, 512, 2, operator, **arguments), set())
                said = normal_call(48, 512, 1, operator, **arguments).diagnose(other)
                self.assertEqual((said["verdict"], said["first_place"]), ("none", 0), said["findings"])


# ---- right kernels ----


class RightKernels(unittest.TestCase):
    def test_right_kernels(self):
        chosen = random.Random(1)
        for operator in KERNELS:
            for seed, form in enumerate(chosen.choices(forms(operator), k=6)):
                with self.subTest(operator, form=form, seed=seed):
                    call = Call(operator, **form, seed=seed)
                    self.assertEqual(call.diagnose(run(call, set()))["verdict"], "equal")

    def test_normal(self):
        for operator, arguments in FORMS:
            for seed in range(4):
                with self.subTest(operator, arguments=arguments, seed=seed):
                    call = normal_call(48, 512, seed, operator, **arguments)
                    self.assertEqual(call.diagnose(run(call, set()))["verdict"], "equal")


if __name__ == "__main__":
    unittest.main(verbosity=2)
