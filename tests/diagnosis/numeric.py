# SPDX-License-Identifier: BSD-3-Clause
"""Shared by faulty kernels of several operators."""
import numpy as np
from numpy_operators import (FORMATS, RANGES, SMALL, divided, floats, group_of_rows, pack, round_to, small_value,
                             small_values)

f4, f8 = np.float32, np.float64


def in_type(t, dtype):
    """float32 values rounded to a type, "float16" or "bfloat16", and back."""
    return floats(round_to(t.astype(f4), dtype))


def to_tf32(t):
    """float32 values with ten fraction bits: the nearest, halves away from zero."""
    wide = t.astype(f8)
    unit = np.ldexp(1.0, np.maximum(np.frexp(wide)[1], -125) - 11)
    nearest = np.copysign(np.floor(np.abs(wide) / unit + 0.5) * unit, wide)
    return np.where(np.isfinite(wide), nearest, wide).astype(f4)


def to_odd(high, low):
    """The sum of two float64, whose first is their rounded sum, as a float64 that rounds to float32 like the exact
    sum: where bits are cut off, the last bit is 1."""
    bits = high.view(np.int64)
    away = (low < 0) == np.signbit(high)  # the exact sum lies on that side of high
    inexact = np.isfinite(high) & (low != 0) & (bits & 1 == 0)
    return np.where(inexact, bits + np.where(away, 1, -1), bits).view(f8)


def fused(a, b, c):
    """a * b + c of float32 arrays, rounded once."""
    a, b, c = np.broadcast_arrays(*(np.asarray(value, f4).astype(f8) for value in (a, b, c)))
    product = a * b  # exact: 48 bits
    total = product + c
    part = total - product
    error = (product - (total - part)) + (c - part)
    return to_odd(np.ascontiguousarray(total), np.nan_to_num(error)).astype(f4)


def float64_to_type(t, dtype):
    """Rounds float64 values once to "float32", "float16" or "bfloat16"; returns them as round_to() does."""
    if dtype != "bfloat16":
        return np.where(np.isnan(t), np.array(np.nan, dtype), t.astype(dtype))
    return round_to(to_odd_float32(t), dtype)


def to_odd_float32(t):
    """float32 values that a second rounding, to fewer bits, makes what it makes of t itself."""
    single = t.astype(f4)
    nearest = single.astype(f8)
    error = t - nearest
    bits = single.view(np.int32)
    away = (error < 0) == np.signbit(nearest)  # of a zero, too
    inexact = np.isfinite(nearest) & (error != 0) & (bits & 1 == 0)
    return np.where(inexact, bits + np.where(away, 1, -1), bits).astype(np.int32).view(f4)


ROUNDINGS = {
    "half-away": lambda t: np.copysign(np.floor(np.abs(t) + 0.5), t),
    "half-up": lambda t: np.floor(t + 0.5),
    "half-down": lambda t: np.ceil(t - 0.5),
    "truncate": np.trunc,
    "floor": np.floor,
    "ceiling": np.ceil,
}

# These add in the type of t, which rounds the sum.
HALF_ADDED = {
    "half-added-up": lambda t: np.floor(t + t.dtype.type(0.5)),
    "half-added-away": lambda t: np.trunc(t + np.copysign(t.dtype.type(0.5), t)),
}


def rounded(t, mistakes):
    """To whole numbers, as float64: half to even, or as one of the mistakes says."""
    if "float64-to-float32" in mistakes:
        t = t.astype(f4)
    for name, adds in HALF_ADDED.items():
        if name in mistakes:
            return adds(np.asarray(t)).astype(f8)
    way = next((ROUNDINGS[name] for name in ROUNDINGS if name in mistakes), np.rint)
    return way(np.asarray(t).astype(f8))  # float64 adds 0.5 exactly


def flushed(t):
    """Replaces numbers that are subnormal in float32 by zeros of their signs."""
    return np.where(np.abs(t) < f4(2.0**-126), np.copysign(t.dtype.type(0), t), t)


def in_bits(values, bits):
    """Whole numbers, as an integer of so many bits holds them; infinities are 0."""
    rest = np.mod(np.where(np.isfinite(values), values, 0), 2.0**bits)
    return np.where(np.isnan(values), values, np.where(rest < 2.0**(bits - 1), rest, rest - 2.0**bits))


def before_clamp(whole, mistakes):
    """Whole numbers in the integer type of a kernel that clamps later."""
    return next((in_bits(whole, bits) for bits in (16, 24, 32) if f"wrap-{bits}" in mistakes), whole)


def represented(whole, dtype, mistakes):
    """Integers whose bits a kernel stores for those of a type."""
    if "negated" in mistakes:
        return -whole
    if "ones-complement" in mistakes:
        return np.where(whole < 0, ~-whole, whole)
    if "sign-magnitude" in mistakes:
        sign = RANGES[dtype][1] + 1
        return np.where(whole < 0, -whole % sign | sign, whole)
    return np.abs(whole) if "magnitude" in mistakes else whole


def to_integers(t, dtype, mistakes):
    """Rounded and clamped to the range of a type, NaN as 0."""
    low, high = RANGES[dtype]
    if {"int8": "unsigned-int8", "quint4x2": "unsigned-int4"}.get(dtype) in mistakes:
        low, high = 0, high - low
    low = -high if "symmetric-range" in mistakes else low
    nan = low if "nan-low" in mistakes else high if "nan-high" in mistakes else 0
    whole = rounded(t, mistakes)
    if "indefinite" in mistakes:  # x86 has one integer for all values beyond int32
        whole = np.where((whole >= -(2.0**31)) & (whole < 2.0**31), whole, -(2.0**31))
    if "wrap" in mistakes:
        low, high = RANGES["int32"]
    if "negative-wraps" in mistakes:
        low = RANGES["int32"][0]
    whole = before_clamp(whole, mistakes)
    return np.clip(np.where(np.isnan(whole), nan, whole), low, high).astype(np.int64)


def packed(whole, mistakes):
    """Integers as words of int4; mistakes leave out the masks."""
    whole = whole + 8 if "plus-8" in mistakes else whole
    pairs = whole.reshape(*whole.shape[:-1], -1, 2)
    low, high = pairs[..., 0], pairs[..., 1] << 4
    words = whole.reshape(*whole.shape[:-1], -1, 8) << np.arange(0, 32, 4)
    if "words-unmasked" in mistakes:
        return np.bitwise_or.reduce(words, axis=-1).astype(np.int32)
    if "words-added" in mistakes:
        return words.sum(axis=-1).astype(np.int32)
    if "bytes-unmasked" in mistakes:
        return np.ascontiguousarray(low | high).astype(np.int8).view(np.int32)
    if "bytes-added" in mistakes:
        return np.ascontiguousarray(low + high).astype(np.int8).view(np.int32)
    if "bytes-saturated" in mistakes:
        return np.clip(low + high, -128, 127).astype(np.int8).view(np.int32)
    return pack(whole)


def to_floats(t, dtype, mistakes):
    """Codes of an 8-bit float."""
    t = t.astype(f4) if "float64-to-float32" in mistakes else t
    return cast(t, dtype, "round" if dtype == "hifloat8" else "rint", mistakes)


#: The largest value that kernels have which take another type for this one.
LESSER = {"float8_e4m3fn": 240, "float8_e5m2": 49152}
OTHER_SMALL = {"float8_e4m3fn": "float8_e5m2", "float4_e2m1fn_x2": "float4_e1m2fn_x2"}
OTHER_SMALL.update({other: dtype for dtype, other in OTHER_SMALL.items()})
WAYS = {"half-even": "rint", "half-away": "round", "floor": "floor", "truncate": "truncate", "half-to-zero": "to-zero"}


def cast(t, dtype, how, mistakes):
    """Codes of a small float. how: as to_small() rounds."""
    is_fnuz, is_hifloat8 = "fnuz" in mistakes, dtype == "hifloat8"
    made = OTHER_SMALL[dtype] if "other-small-float" in mistakes else dtype
    values, codes = small_values(made)
    if is_fnuz:
        codes = np.arange(128)
        values = np.array([small_value(dtype, code) for code in codes]) / 2
    how = next((way for name, way in WAYS.items() if name in mistakes), how)
    nan = 0x80 if is_fnuz or is_hifloat8 else 0x7F
    is_nan, nan = np.isnan(t), nan if "nan-kept" in mistakes else 0
    if "nan-low" in mistakes or "nan-high" in mistakes:
        t, is_nan = np.where(is_nan, -np.inf if "nan-low" in mistakes else np.inf, t), np.zeros(t.shape, bool)
    is_negative = np.signbit(t)
    exact = np.where(is_nan, 0, np.abs(t)).astype(f8)
    size = np.minimum(exact, values[-1])
    if "clamp-240" in mistakes:
        size = np.minimum(size, LESSER[dtype])
    above = np.searchsorted(values, size)
    below = np.maximum(above - 1, 0)
    middle = (values[below] + values[above]) / 2
    is_value = size == values[above]
    is_up = {"rint": (size > middle) | ((size == middle) & (codes[above] % 2 == 0)), "round": size >= middle,
             "floor": is_negative | is_value, "truncate": is_value, "to-zero": size > middle}[how]
    found = codes[np.where(is_up, above, below)].astype(int)
    if "overflows" in mistakes:
        middle = values[-1] + (2**14 if is_hifloat8 else values[-1] - values[-2]) / 2
        is_beyond = (exact > middle) | ((exact == middle) & (is_hifloat8 or codes[-1] % 2 == 1))
        found = np.where(is_beyond, codes[-1].astype(int) + 1, found)
    if "shift-wraps" in mistakes:
        found = shifted(np.where(is_nan, 0, t), found, made, how)
    if "result-flushed" in mistakes:
        found = np.where(found < (8 if is_hifloat8 else 2 ** FORMATS[made][0]), 0, found)
    keeps = is_hifloat8 == ("zero-sign-kept" in mistakes) and not is_fnuz and "zero-sign-lost" not in mistakes
    sign = np.where(is_negative & ((found != 0) | keeps), 8 if made in FORMATS and codes[-1] == 7 else 0x80, 0)
    return np.where(is_nan, nan, found | sign).astype(np.uint8)


def shifted(t, codes, dtype, how):
    """The codes, or where t is below the type's least exponent, what a shift by the low bits of its places gives."""
    bits = to_odd_float32(t.astype(f8)).view(np.int32)
    mantissa, bias = FORMATS[dtype]
    depth = 1 - bias - ((bits >> 23 & 0xFF) - 127)
    significand = (bits & 0x7FFFFF) | 0x800000
    units = np.ldexp(significand.astype(f8), -((23 - mantissa + depth) & 31))
    units = {"rint": np.rint(units), "round": np.floor(units + 0.5), "truncate": np.floor(units),
             "to-zero": np.ceil(units - 0.5), "floor": np.where(bits < 0, np.ceil(units), np.floor(units))}[how]
    wraps = (depth > 0) & (bits & 0x7FFFFFFF != 0)
    return np.where(wraps, units.astype(int) & (7 if dtype.startswith("float4") else 0x7F), codes)


def kept(t, mistakes, *what):
    """Keeps values in a shorter type for a mistake such as "sum-float16"."""
    for dtype in "float16", "bfloat16":
        if any(f"{name}-{dtype}" in mistakes for name in what):
            return in_type(t, dtype)
    return t


class Mistakes:
    """The mistakes of a kernel. A mistake that the kernel never asks for is one that it cannot make."""

    def __init__(self, names):
        self.names = names
        self.unknown = set(names)

    def __contains__(self, name):
        self.unknown.discard(name)
        return name in self.names

    def refuse_unknown(self):
        if self.unknown:
            raise ValueError(f"the kernel does not make these mistakes here: {sorted(self.unknown)}")


def kernel_of_y(operator):
    """A kernel whose only result is what operator(call, mistakes) returns."""

    def kernel(call, names):
        mistakes = Mistakes(names)
        y = operator(call, mistakes)
        mistakes.refuse_unknown()
        return {"y": y}

    return kernel


def is_wide(mistakes):
    return "float64" in mistakes or "float64-to-float32" in mistakes


class Machine:
    """Computes in float32 or in float64, perhaps with subnormals as zero. every_step: the mistake that rounds each
    step to a shorter type."""

    def __init__(self, mistakes, every_step=()):
        self.type = f8 if is_wide(mistakes) else f4
        self.keeps = lambda t: kept(t, mistakes, *every_step)
        self.most = np.inf  # of a scale, in kernels by other definitions
        self.divide = np.divide
        self.reads = flushed if "flush-inputs" in mistakes or "flush-all" in mistakes else np.asarray
        self.writes = flushed if "flush-results" in mistakes or "flush-all" in mistakes else np.asarray

    def divides_for(self, dtype):
        """Divides as the device does where it makes the type."""
        self.divide = divided if dtype in SMALL and self.type is f4 else np.divide

    def compute(self, operation, *operands):
        operation = self.divide if operation is np.divide else operation
        return self.keeps(self.writes(operation(*(self.reads(np.asarray(operand, self.type)) for operand in operands))))


def read_as(array, what, mistakes):
    """An operand, whose memory a mistake such as "x-read-as-float16" takes for another type."""
    for dtype in "float32", "float16", "bfloat16", "int32", "int8", "uint8":
        if f"{what}-read-as-{dtype}" in mistakes:
            values = np.ascontiguousarray(array).reshape(-1).view(dtype.replace("bfloat16", "uint16"))
            return values[: array.size].reshape(array.shape)
    return array


def read_parameter(array, what, mistakes, *others):
    """others: names under which a mistake rounds the operand, too."""
    return kept(floats(read_as(array, what, mistakes)), mistakes, what, *others)


def read_x(x, mistakes):
    x = for_tensor_cores(read_parameter(x, "x", mistakes, "operands"), mistakes)
    return np.where(x < 0, f4(0), x) if "relu" in mistakes else x


def for_tensor_cores(values, mistakes):
    return to_tf32(values) if "tf32" in mistakes else values


def groups(group_index, rows, mistakes):
    """The group of each row."""
    if "group-first" in mistakes or "group-last" in mistakes:
        return np.full(rows, 0 if "group-first" in mistakes else len(group_index) - 1)
    if "group-counts" in mistakes:
        return np.minimum(group_of_rows(np.cumsum(group_index), rows), len(group_index) - 1)
    group = group_of_rows(group_index, rows)
    if "group-next" in mistakes:
        return (group + 1) % len(group_index)
    if "empty-groups-skipped" in mistakes:
        return np.unique(group, return_inverse=True)[1]
    if "index-as-int32" in mistakes:
        begin = 0
        for number, end in enumerate(group_index.view(np.int32)[: len(group_index)]):
            group[begin:max(begin, end)] = number
            begin = end
        return group
    shift = ("group-late" in mistakes) - ("group-early" in mistakes)
    return group[np.clip(np.arange(rows) - shift, 0, rows - 1)]


def reused(index, mistakes):
    """Indices of columns or the like; by mistake, the first parameters are used again and again."""
    for count in 16, 32, 64:
        if f"first-{count}-reused" in mistakes:
            return index % count
    return index


def of_other_dimension(shape, mistakes):
    """An index for each element, by a dimension that is not that of the scales; None without such a mistake."""
    order = np.arange(np.prod(shape)).reshape(shape)
    if "channels-last" in mistakes:
        return order
    if "channels-first" in mistakes:
        return order // np.prod(shape[1:-1])
    return next((np.indices(shape)[d] for d in range(len(shape) - 1) if f"by-dimension-{d}" in mistakes), None)


def with_offset(v, t, factor, offset, dtype, machine, mistakes):
    """The offset added to the scaled values."""
    if "nan-before-offset" in mistakes:
        v, t, factor = (np.where(np.isnan(t), machine.type(0), values) for values in (v, t, factor))
    if "fused" in mistakes:
        return machine.compute(fused, v, factor, offset)
    if "round-first" in mistakes:
        t = rounded(t, mistakes)
    if "clamp-first" in mistakes:
        t = to_integers(t, dtype, mistakes)
    return kept(machine.compute(np.add, t, offset), mistakes, "sum", "all", "operands")


def placed(parameter, prefixes, what, mistakes):
    """The parameter of another row or block, of one of the mistakes with these prefixes."""
    flat, last = np.arange(parameter.size), parameter.size - 1
    places = {f"next-{what}": np.roll(flat, -1), f"{what}-before": np.roll(flat, 1), f"first-{what}": flat * 0,
              f"next-{what}-but-last": (flat + 1).clip(0, last), f"{what}-before-but-first": (flat - 1).clip(0, last)}
    for name, places_of in places.items():
        if any(f"{prefix}-of-{name}" in mistakes for prefix in prefixes):
            return parameter.ravel()[places_of].reshape(parameter.shape)
    return parameter
