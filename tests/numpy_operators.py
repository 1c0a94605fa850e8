# SPDX-License-Identifier: BSD-3-Clause
"""The operators in NumPy, and random inputs for them: what the results of the tool and of the Python module must be.

NPUQ_TEST_SEED repeats a run.
"""
import os

import numpy as np

SEED = int(os.environ.get("NPUQ_TEST_SEED") or 20261120)

f4 = np.float32
rng = np.random.default_rng(SEED)
np.seterr(all="ignore")
# Step by step in float32 means every step: NumPy must not compute in float64 where one operand is a scalar.
one = f4(1)


# ---- what the results must be ----


def floats(array):
    """Any input as float32; u2 is bfloat16."""
    if array.dtype == np.uint16:
        return (array.reshape(-1).astype(np.uint32) << 16).view(f4).reshape(array.shape)
    return array.astype(f4)


RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 1), "quint4x2": (-8, 7)}


def saturate(t, dtype):
    low, high = RANGES[dtype]
    assert t.dtype == f4
    rounded = np.nan_to_num(np.rint(t).astype(np.float64), nan=0.0, posinf=high, neginf=low)
    values = np.clip(rounded, low, high).astype(np.int64)
    return pack(values) if dtype == "quint4x2" else values.astype(dtype)


def pack(values):
    """Eight int4 in a word, the first in the lowest bits."""
    nibbles = (values & 0xF).astype(np.uint32).reshape(values.shape[:-1] + (values.shape[-1] // 8, 8))
    shifted = nibbles << np.arange(0, 32, 4, dtype=np.uint32)
    return np.bitwise_or.reduce(shifted, axis=-1).astype(np.uint32).view(np.int32)


def quantize(x, scales, zero_points, axis, div_mode, dtype):
    x = floats(x)
    if div_mode:
        dimension = axis % x.ndim
    else:
        dimension = x.ndim - 2 if axis == -2 else x.ndim - 1
    shape = [1] * x.ndim
    shape[dimension if scales.size > 1 else -1] = scales.size
    s = floats(scales).reshape(shape)
    t = x / s if div_mode else x * s
    if zero_points is not None:
        t = t + floats(zero_points).reshape(shape)
    return saturate(t, dtype)


def group_of_rows(group_index, rows):
    return np.searchsorted(group_index, np.arange(rows), side="right")


def group_quant(x, scale, group_index, offset, dtype):
    t = floats(x) * floats(scale)[group_of_rows(group_index, len(x))]
    if offset is not None:
        t = t + floats(offset).reshape(())
    return saturate(t, dtype)


def trans_quant_param(scale, offset, round_mode):
    bits = scale.view(np.uint32).astype(np.uint64)
    exponent = bits >> 23 & 0xFF
    if round_mode == 1:
        rounded = bits + 0xFFF + (bits >> 13 & 1)
        bits = np.where(exponent == 255, bits, np.where(exponent == 0, bits & 0x80000000, rounded))
    low = bits & 0xFFFFE000
    if offset is None:
        return low | 1 << 46
    whole = np.nan_to_num(np.rint(offset).astype(np.float64), nan=0.0, posinf=255, neginf=-256)
    high = np.clip(whole, -256, 255).astype(np.int64).astype(np.uint64) & 0x1FF
    return low | high << 37 | 1 << 46


def dynamic(x, smooth, group_index, per_tensor, dtype):
    greatest, extent = (f4(7), f4(15)) if dtype == "quint4x2" else (f4(127), f4(255))
    rows = floats(x).reshape(-1, x.shape[-1])
    if smooth is not None:
        factors = floats(smooth)
        rows = rows * (factors if group_index is None else factors[group_of_rows(group_index, len(rows))])
    tokens = rows.reshape(1, -1) if per_tensor else rows
    high, low = tokens.max(axis=1), tokens.min(axis=1)
    d = (high - low) / extent
    scale = np.where(d > f4(1e-12), d, f4(1e-12)).astype(f4)
    offset = greatest - (high / scale)
    back = one / scale
    y = saturate(((tokens * back[:, None]) + offset[:, None]).reshape(x.shape), dtype)
    shape = (1,) if per_tensor else x.shape[:-1]
    return y, scale.reshape(shape), offset.reshape(shape)


# ---- random inputs ----

SPECIAL = np.array([0, -0.0, 0.5, 1.5, 2.5, -0.5, -127.5, 126.5, 1e-7, -65504, 3e4, np.inf, -np.inf, np.nan], f4)


def random_shape(least_ndim, most_ndim, last_multiple=1):
    shape = [int(n) for n in rng.integers(1, 6, size=rng.integers(least_ndim, most_ndim + 1))]
    shape[-1] = int(rng.integers(1, 6 if last_multiple > 1 else 40)) * last_multiple
    return tuple(shape)


def as_dtype(values, dtype):
    if dtype == "u2":  # bfloat16, truncated
        return (np.ascontiguousarray(values, f4).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(dtype)


def random_floats(shape, dtype=None, size=20.0, special=0.1):
    values = rng.normal(scale=size, size=shape).astype(f4)
    values = np.where(rng.random(shape) < 0.2, np.rint(values) + f4(0.5), values)
    values = np.where(rng.random(shape) < special, rng.choice(SPECIAL, size=shape), values).astype(f4)
    return as_dtype(values, dtype or rng.choice(["f4", "f2", "u2"]))


def random_ends(groups, rows):
    ends = np.sort(rng.integers(0, rows + 1, size=groups))
    ends[-1] = rows
    return ends.astype(rng.choice(["i4", "i8"]))
