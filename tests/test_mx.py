#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Microscaling against NumPy, in every bit and on every backend: each bfloat16 and each float16 as a group's largest
magnitude, float32 beside each boundary of an algorithm with each exponent, and random calls. And back: each code with
each scale.

usage: test_mx.py LIBRARY
NPUQ_TEST_SEED repeats a run. NPUQ_TEST_SHARE=N tries the Nth part of the maxima and of the calls.
"""
import ctypes
import itertools
import os
import sys
import time

import numpy as np
from numpy_operators import MX_TYPES, SEED, anti_mx_quant, dynamic_mx_quant, f4, random_mx_call, rng

library = ctypes.CDLL(os.path.abspath(sys.argv[1]))
library.npuq_last_error.restype = ctypes.c_char_p
library.npuq_backend_name.restype = ctypes.c_char_p
SHARE = int(os.environ.get("NPUQ_TEST_SHARE") or 1)
BACKENDS = [number for number in range(5) if library.npuq_backend_available(number)]

NUMBERS = {"f4": 0, "f2": 1, "u2": 27, "float8_e5m2": 35, "float8_e4m3fn": 36, "float8_e8m0fnu": 37,
           "float4_e2m1fn_x2": 40, "float4_e1m2fn_x2": 41}
DIVISORS = (0, 6, 7, 7.25, 8, 9, 12)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("ndim", ctypes.c_int32),
                ("shape", ctypes.c_int64 * 8), ("strides", ctypes.c_int64 * 8)]


class Options(ctypes.Structure):
    _fields_ = [("block", ctypes.c_int32), ("rounding", ctypes.c_int32), ("scale_algorithm", ctypes.c_int32),
                ("small_groups", ctypes.c_int32), ("dst_type_max", ctypes.c_float), ("max_low_bound", ctypes.c_float),
                ("bad_groups", ctypes.c_int32), ("reserved", ctypes.c_int32 * 9)]


def tensor(array, dtype):
    size = array.itemsize
    return Tensor(array.ctypes.data, NUMBERS[dtype], array.ndim, (ctypes.c_int64 * 8)(*array.shape),
                  (ctypes.c_int64 * 8)(*(stride // size for stride in array.strides)))


def quantise(x, axis, options, dtype):
    """y and mxscale, which the library says the shape of."""
    given, shape, view = Options(*options), (ctypes.c_int64 * 8)(), tensor(x, x.dtype.str[1:])
    status = library.npuq_mx_scale_shape(ctypes.byref(view), axis, ctypes.byref(given), shape)
    assert status == 0, library.npuq_last_error()
    y = np.full((*x.shape[:-1], x.shape[-1] // (2 if MX_TYPES[dtype] == 7 else 1)), 0xA5, np.uint8)
    mxscale = np.full(shape[:x.ndim + 1], 0xA5, np.uint8)
    results = [ctypes.byref(tensor(y, dtype)), ctypes.byref(tensor(mxscale, "float8_e8m0fnu"))]
    status = library.npuq_dynamic_mx_quant(ctypes.byref(view), axis, ctypes.byref(given), *results, None)
    assert status == 0, library.npuq_last_error()
    return y, mxscale


def compare(run, expected, what):
    """On every backend; run() returns the results by name."""
    for backend in BACKENDS:
        library.npuq_set_backend(backend)
        for (name, got), wanted in zip(run().items(), expected):
            if not np.array_equal(got, wanted):
                at = tuple(np.argwhere(got != wanted)[0].tolist()) if got.shape == wanted.shape else ()
                sys.exit(f"{library.npuq_backend_name(backend).decode()}, {what}: {name} {got.shape}{list(at)} is "
                         f"{got[at]}, by NumPy {wanted.shape} {wanted[at]}; NPUQ_TEST_SEED={SEED}")


def check(x, axis, options, dtype):
    compare(lambda: dict(zip(("y", "mxscale"), quantise(x, axis, options, dtype))),
            dynamic_mx_quant(x, axis, options[0] or 32, *options[1:], dtype),
            f"x {x.dtype} {x.shape}, axis {axis}, {dtype}, options {options}")


def dequantise(x, mxscale, axis, block, dtype, bits, order):
    """The bits of y, in the integers that have as many."""
    shape = (*x.shape[:-1], x.shape[-1] * (2 if MX_TYPES[dtype] == 7 else 1))
    y = np.full(shape, 0xA5, f"u{np.dtype(bits).itemsize}", order)
    operands = [ctypes.byref(tensor(x, dtype)), ctypes.byref(tensor(mxscale, "float8_e8m0fnu"))]
    status = library.npuq_anti_mx_quant(*operands, axis, ctypes.byref(Options(block)), ctypes.byref(tensor(y, bits)),
                                        None)
    assert status == 0, library.npuq_last_error()
    return y


def check_back(x, mxscale, axis, block, dtype, bits, order="C"):
    y_dtype = {"f4": "float32", "f2": "float16", "u2": "bfloat16"}[bits]
    wanted = anti_mx_quant(x, mxscale, axis, block or 32, dtype, y_dtype)
    compare(lambda: {"y": dequantise(x, mxscale, axis, block, dtype, bits, order)},
            [wanted.view(f"u{wanted.itemsize}")],
            f"back from {dtype} {x.shape}, axis {axis}, block {block}, to {y_dtype}, order {order}")


# ---- every largest magnitude ----


def float32_boundaries():
    """Each exponent with mantissas where an algorithm rounds up, or a half does, and up to two units beside them."""
    at = [0, 0x100000, 0x200000, 0x400000, 0x408000, 0x410000, 0x600000, 0x608000, 0x610000, 0x680000, 0x7F8000]
    mantissas = np.unique((np.array(at)[:, None] + np.arange(-2, 3)).ravel() & 0x7FFFFF)
    return (np.arange(256)[:, None] << 23 | mantissas).ravel().astype(np.uint32).view(f4)


HALVES = np.arange(0x8000, dtype=np.uint16)
MAXIMA = {"bfloat16": HALVES, "float16": HALVES.view(np.float16), "float32": float32_boundaries()}


def groups_of(largest):
    """Of each magnitude, a group of three: that, one not above it, with any signs and order, and a zero."""
    bits = largest.view(f"u{largest.itemsize}")
    reach = np.where(rng.random(len(bits)) < 0.5, bits, bits >> 4).astype(np.int64)  # often not much below
    less = bits - rng.integers(0, reach, endpoint=True).astype(bits.dtype)
    groups = np.stack([bits, less, np.zeros_like(bits)], axis=1)
    groups |= rng.integers(0, 2, size=groups.shape).astype(bits.dtype) << (8 * bits.itemsize - 1)
    return rng.permuted(groups, axis=1).view(largest.dtype)


def spread(groups, columns):
    """The places of the groups' elements in groups of as many columns as a whole block has, two in a row."""
    first = rng.integers(0, 32, size=len(groups))
    return np.arange(len(groups))[:, None] // 2, (np.arange(len(groups)) % 2 * 32)[:, None] + (
        first[:, None] + columns) % 32


def check_maxima(name, is_last_axis, options, dtype):
    groups = groups_of(MAXIMA[name])
    groups = groups[: len(groups) // 4 * 4]
    if is_last_axis:  # whole blocks, which have kernels
        x = np.zeros((len(groups) // 2, 64), groups.dtype)
        x[spread(groups, np.array([0, 7, 20]))] = groups
        axis = -1
    else:  # short ones, whose columns are vectors
        x, axis = np.ascontiguousarray(groups.T), 0
    check(x, axis, options, dtype)


def every_maximum():
    kinds = [(dtype, 0, 0, 0) for dtype in MX_TYPES]
    kinds += [(dtype, 1, 0, bound) for dtype in MX_TYPES if "8" in dtype for bound in (0, 2**-20 * 1.5)]
    kinds += [("float4_e2m1fn_x2", 2, most, 0) for most in DIVISORS]
    cases = list(itertools.product(MAXIMA, (True, False), range(3), kinds))
    for i, (name, is_last_axis, small_groups, (dtype, algorithm, most, bound)) in enumerate(cases):
        if (i + SEED) % SHARE == 0:
            rounding = int(rng.integers(3)) if MX_TYPES[dtype] == 7 else 0
            bad_groups = int(rng.integers(2)) if MX_TYPES[dtype] != 7 else 0
            check_maxima(name, is_last_axis, (0, rounding, algorithm, small_groups, most, bound, bad_groups), dtype)
    return len(cases[::SHARE])


# ---- every code with every scale ----


def every_code():
    """A group has 32 of the codes. Its scale is another one in each row, or in each column."""
    for dtype, bits, axis in itertools.product(MX_TYPES, BITS, (-1, 0)):
        codes, groups = (np.arange(64) % 16, 2) if MX_TYPES[dtype] == 7 else (np.arange(256), 8)
        x = np.tile(codes.astype(np.uint8), (256, 1))
        S = (np.arange(256)[:, None] + 29 * np.arange(groups)).astype(np.uint8).reshape(256, -1, 2)
        if axis == 0:
            x, S = x.T, S.swapaxes(0, 1)
        if MX_TYPES[dtype] == 7:
            x = x[:, ::2] | x[:, 1::2] << 4
        for order in "CF":
            check_back(np.ascontiguousarray(x), np.ascontiguousarray(S), axis, 0, dtype, bits, order)


# ---- random calls ----


#: Of each type, the bits of Inf, and those that the elements of most calls do not share.
BITS = {"f4": (0x7F800000, 0x80FFFFFF), "f2": (0x7C00, 0x87FF), "u2": (0x7F80, 0x80FF)}


def random_values(shape, dtype):
    """Any bits, or exponents that are alike, with none, a few or many elements that are not finite."""
    infinity, own = BITS[dtype]
    unsigned = f"u{np.dtype(dtype).itemsize}"
    bits = rng.integers(0, np.iinfo(unsigned).max, size=shape, dtype=unsigned, endpoint=True)
    if rng.random() < 0.8:
        shared = int(rng.integers(0, infinity)) & ~own
        bits = bits & np.array(own, unsigned) | np.array(shared, unsigned)
    is_special = rng.random(shape) < rng.choice([0, 0.001, 0.3])
    kept = np.where(rng.random(shape) < 0.5, 0, bits).astype(unsigned)
    return np.where(is_special, kept | np.array(infinity, unsigned), bits).view(dtype)


def random_calls(count):
    for _ in range(count):
        shape, axis, options, dtype = random_mx_call()
        x = random_values(shape, str(rng.choice(["f4", "f2", "u2"])))
        check(x, axis, options, dtype)
        shapes = (each.shape for each in quantise(x, axis, options, dtype))
        codes, scales = (rng.integers(0, 256, size=each, dtype=np.uint8) for each in shapes)
        check_back(codes, scales, axis, options[0], dtype, str(rng.choice(list(BITS))))
    return count


start = time.monotonic()
every_code()
print(f"each code with each scale, {random_calls(max(100, 800 // SHARE))} random calls, {every_maximum()} times every "
      "maximum, backends",
      *(library.npuq_backend_name(backend).decode() for backend in BACKENDS), f"{time.monotonic() - start:.1f} s")
