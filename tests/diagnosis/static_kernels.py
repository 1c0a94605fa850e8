# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of quantize, group_quant and trans_quant_param that can be told which mistakes to make.

Each is written from the definition of its operator and from the words of the table of mistakes.
"""
import numpy as np
from numeric import f4, f8, flushed, fused, in_type, rounded
from numpy_operators import RANGES, floats, group_of_rows, pack

ROUNDING = {"half-away", "half-up", "half-down", "truncate", "floor", "ceiling"}
OFFSET = {"offset-left-out", "offset-negated", "offset-of-next", "offset-of-one-before", "offset-of-first"}
SCALED = ROUNDING | OFFSET | {
    "fused", "division", "opposite", "float64", "product-float16", "product-bfloat16", "sum-float16", "sum-bfloat16",
    "all-float16", "x-float16", "x-bfloat16", "x-other-half", "scale-float16", "scale-bfloat16", "offset-float16",
    "offset-bfloat16", "offset-integer", "round-first", "clamp-first", "symmetric-range", "wrap", "unsigned-int4",
    "indefinite", "nan-low", "nan-high", "flush-inputs", "scale-of-next", "scale-of-one-before", "scale-of-first"}
QUANTIZE = SCALED | {"reciprocal", "other-axis"}
GROUP_QUANT = SCALED | {"group-late", "group-early", "group-first", "group-last", "group-counts"}
TRANS_QUANT_PARAM = ROUNDING | OFFSET | {
    "all-scale-bits", "other-round-mode", "no-flag", "offset-wraps", "offset-int8", "halves-swapped", "reciprocal"}


def refuse_unknown(mistakes, known):
    if mistakes - known:
        raise ValueError(f"mistakes that this kernel cannot make: {sorted(mistakes - known)}")


# ---- operands ----


def read(array, operand, mistakes):
    """An operand, "x", "scale" or "offset", as float32."""
    if operand == "x" and "x-other-half" in mistakes:
        array = array.view(np.float16 if array.dtype == np.uint16 else np.uint16)
    values = floats(array)
    for dtype in "float16", "bfloat16":
        if f"{operand}-{dtype}" in mistakes:
            values = in_type(values, dtype)
    return values


def read_offset(array, mistakes):
    """The offsets as float32; None if there are none, or none that the kernel adds."""
    if array is None or "offset-left-out" in mistakes:
        return None
    values = read(array, "offset", mistakes)
    if "offset-integer" in mistakes:
        values = np.rint(values)
    return -values if "offset-negated" in mistakes else values


def taken(index, count, operand, mistakes):
    """Which of so many parameters in a row of memory the kernel takes for these indices."""
    if f"{operand}-of-first" in mistakes:
        return index * 0
    step = (f"{operand}-of-next" in mistakes) - (f"{operand}-of-one-before" in mistakes)
    return (index + step) % count


# ---- from x to integers ----


def quantised(x, s, z, divides, dtype, mistakes):
    """x divided or multiplied by s, plus z, in integers of a type."""
    operand = flushed if "flush-inputs" in mistakes else np.asarray
    x, s, z = (None if value is None else operand(value.astype(f8 if "float64" in mistakes else f4))
               for value in (x, s, z))
    t = in_halves(scaled(x, s, divides, operand, mistakes), "product", mistakes)
    if z is not None:
        if "fused" in mistakes:
            t = fused(x, s, z)
        elif "round-first" in mistakes:
            t = rounded(t, mistakes).astype(t.dtype) + z
        elif "clamp-first" in mistakes:
            t = to_integers(t, dtype, mistakes).astype(t.dtype) + z
        else:
            t = operand(t) + z
        t = in_halves(t, "sum", mistakes)
    values = to_integers(t, dtype, mistakes)
    return pack(values) if dtype == "quint4x2" else values.astype(dtype)


def scaled(x, s, divides, operand, mistakes):
    if "reciprocal" in mistakes:
        return x * operand(1 / s)
    if "division" in mistakes:
        return x / operand(1 / s)
    return x / s if divides != ("opposite" in mistakes) else x * s


def in_halves(t, step, mistakes):
    """The result of a step, "product" or "sum", in the type in which it is kept."""
    for half in "float16", "bfloat16":
        if {f"{step}-{half}", f"all-{half}"} & mistakes:
            t = in_type(t, half)
    return t


def to_integers(t, dtype, mistakes):
    """Rounded and clamped to the range of a type."""
    low, high = (0, 15) if "unsigned-int4" in mistakes else RANGES[dtype]
    low += "symmetric-range" in mistakes
    nan = low if {"nan-low", "indefinite"} & mistakes else high if "nan-high" in mistakes else 0
    whole = rounded(t, mistakes)
    if "indefinite" in mistakes:
        whole = np.where((whole < -(2.0**31)) | (whole >= 2.0**31), low, whole)
    if "wrap" in mistakes:  # the conversion to int32 saturates; the low bits of that are stored
        low, high = RANGES["int32"]
    return np.where(np.isnan(t), nan, np.clip(whole, low, high)).astype(np.int64)


# ---- operators ----


def quantize(call, mistakes):
    refuse_unknown(mistakes, QUANTIZE)
    x = read(call.inputs["x"], "x", mistakes)
    scales = read(call.inputs["scales"], "scale", mistakes)
    zero_points = read_offset(call.inputs.get("zero_points"), mistakes)
    divides, axis = call.arguments["div_mode"], call.arguments["axis"]
    index = channels(x.shape, axis % x.ndim if divides or axis == -2 else x.ndim - 1, mistakes) % scales.size
    s = scales[taken(index, scales.size, "scale", mistakes)]
    z = None if zero_points is None else zero_points[taken(index, scales.size, "offset", mistakes)]
    return {"y": quantised(x, s, z, divides, call.arguments["dtype"], mistakes)}


def channels(shape, dimension, mistakes):
    """Indices along a dimension; of the wrong dimension, those of rows for columns, or of columns for others."""
    last = len(shape) - 1
    if "other-axis" in mistakes and dimension == last:
        return np.arange(np.prod(shape[:-1])).reshape(*shape[:-1], 1)
    if "other-axis" in mistakes:
        dimension = last
    return np.arange(shape[dimension]).reshape(-1, *[1] * (last - dimension))


def group_quant(call, mistakes):
    refuse_unknown(mistakes, GROUP_QUANT)
    x = read(call.inputs["x"], "x", mistakes)
    scale = read(call.inputs["scale"], "scale", mistakes)
    offset = read_offset(call.inputs.get("offset"), mistakes)
    begins = groups(call.inputs["group_index"], len(x), mistakes)[:, None] * scale.shape[1]
    if "scale-of-first" in mistakes:
        s = scale.reshape(-1)[begins]
    else:
        s = scale.reshape(-1)[taken(begins + np.arange(scale.shape[1]), scale.size, "scale", mistakes)]
    return {"y": quantised(x, s, offset, False, call.arguments["dtype"], mistakes)}


def groups(group_index, rows, mistakes):
    """Each row's group."""
    if "group-first" in mistakes or "group-last" in mistakes:
        return np.full(rows, 0 if "group-first" in mistakes else len(group_index) - 1)
    if "group-counts" in mistakes:
        group_index = np.cumsum(group_index)
    late = int("group-late" in mistakes) - int("group-early" in mistakes)
    return np.minimum(group_of_rows(group_index + late, rows), group_of_rows(group_index, rows).max())


def trans_quant_param(call, mistakes):
    refuse_unknown(mistakes, TRANS_QUANT_PARAM)
    scale = call.inputs["scale"]
    offset = read_offset(call.inputs.get("offset"), mistakes)
    bits = (1 / scale if "reciprocal" in mistakes else scale).view(np.uint32).astype(np.uint64)
    if "all-scale-bits" not in mistakes:
        nearest = (call.arguments["round_mode"] == 1) != ("other-round-mode" in mistakes)
        bits = (to_19_bits(bits) if nearest else bits) & 0xFFFFE000
    word = bits | (0 if "no-flag" in mistakes else 1 << 46)
    if offset is not None:
        low, high = ((-(2**31), 2**31 - 1) if "offset-wraps" in mistakes else
                     (-128, 127) if "offset-int8" in mistakes else (-256, 255))
        index = np.arange(offset.size).reshape(offset.shape)
        z = rounded(offset.reshape(-1)[taken(index, offset.size, "offset", mistakes)], mistakes)
        whole = np.where(np.isnan(z), 0, np.clip(z, low, high)).astype(np.int64)
        word = word | (whole.astype(np.uint64) & 0x1FF) << 37
    if "halves-swapped" in mistakes:
        word = word << 32 | word >> 32
    return {"y": word.astype(call.outputs["y"]["dtype"])}


def to_19_bits(bits):
    """The bits of float32 numbers rounded half to even at bit 13. Infinities and NaN stay, subnormals become zero."""
    exponent = bits >> 23 & 0xFF
    nearest = bits + 0xFFF + (bits >> 13 & 1)
    return np.where(exponent == 255, bits, np.where(exponent == 0, bits & 0x80000000, nearest))


KERNELS = {"quantize": quantize, "group-quant": group_quant, "trans-quant-param": trans_quant_param}
