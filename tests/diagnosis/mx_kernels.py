# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of microscaling with mistakes."""
import re

import integer_kernels
import numpy as np
from npuquant_facts.dtypes import TYPES
from numeric import LESSER, Mistakes, cast, f4, flushed, kept, kernel_of_y, reused
from numpy_operators import MX_TYPES, floats, mx_scales, round_to

from npuquant import mx

#: The rules of the package's table that no options have.
CONVENTIONS = {row.mistake: row for row in mx.CONVENTIONS if row.mistake[:6] == "scale-" and row.options is None}
EMAX = {"float8_e4m3fn": 8, "float8_e5m2": 15, "float4_e2m1fn_x2": 2, "float4_e1m2fn_x2": 0}


def scales(a, call, mistakes):
    """The code of the scale, and what elements are multiplied by, for the bits of each largest magnitude."""
    given, dtype = call.arguments, call.arguments["dtype"]
    rule, algorithm, most = given["small_groups"], given["scale_alg"], given["dst_type_max"]
    bound = 0 if "max-low-bound-ignored" in mistakes else given["max_low_bound"]
    rule = next((n for n, name in enumerate(("zero", "subnormal", "kept")) if f"small-groups-{name}" in mistakes), rule)
    for name in "float16", "bfloat16":
        if f"largest-{name}" in mistakes:
            a = floats(round_to(a.view(f4), name)).view("u4")
    if "least-m-1e-4" in mistakes:
        a = np.maximum(a, f4(1e-4).view("u4"))
    for name, options in (("floor", (0, 0)), ("rceil", (1 + (MX_TYPES[dtype] == 7), 0)), ("even-below", (2, 7))):
        if f"scale-{name}" in mistakes:
            (algorithm, most), bound = options, 0
    exponent, emax, S = (a >> 23).astype(int), EMAX[dtype], None
    for name, row in CONVENTIONS.items():
        if name in mistakes:
            S = row.codes(a.view(f4), dtype).astype(int)
    if "scale-emax-less" in mistakes:
        S = np.maximum(exponent - (emax - 1), 0)
    if "scale-emax-more" in mistakes:
        S = np.maximum(exponent - (emax + 1), 0)
    if "scale-240" in mistakes and algorithm == 1:
        bounded = np.where(a == 0, 0, np.maximum(a, f4(bound).view("u4"))).astype("u4").view(f4)
        t = (bounded * (f4(1) / f4(LESSER[dtype]))).view("u4")
        S = (t >> 23) + np.where(t >> 23 > 0, t & 0x7FFFFF > 0, t > 0x400000)
        exponent = np.where(a == 0, 0, np.maximum(exponent, 1))  # groups of zeros alone are small
        rule = max(rule, 1)
    if S is None:
        axis = given["axis"] % call.inputs["x"].ndim
        is_last = axis == call.inputs["x"].ndim - 1
        S, R = mx_scales(a, call.types["x"] == "float32", is_last, algorithm, rule, most, bound, dtype)
        S = S.astype(int)
    else:
        S = np.where(exponent == 255, 255, S).astype(int)
        is_small = [S == 0, exponent == 0, np.zeros_like(S, bool)][rule]
        R = np.where(is_small, f4(0), np.ldexp(f4(1), (127 - S).astype(np.int32)))
    if "infinity-is-fe" in mistakes:
        is_infinite = a == 0x7F800000
        S, R = np.where(is_infinite, 254, S), np.where(is_infinite, f4(2.0**-127), R)
    return S, R


#: The groups whose scales a kernel takes for those of an array [lines, groups].
PLACES = {
    "next-group": lambda groups: np.roll(groups, -1),
    "group-before": lambda groups: np.roll(groups, 1),
    "first-group": lambda groups: groups[:, :1] + 0 * groups,
    "next-group-but-last": lambda groups: np.concatenate([groups[:, 1:], groups[:, -1:]], axis=1),
    "group-before-but-first": lambda groups: np.concatenate([groups[:, :1], groups[:, :-1]], axis=1),
}
#: The order of the dimensions [outer, pairs, inner, 2] in which a kernel stores scales.
ORDERS = {"in-planes": (3, 0, 1, 2), "in-planes-of-lines": (0, 3, 1, 2), "not-paired": (0, 1, 3, 2),
          "groups-first": (1, 3, 0, 2), "lines-first": (0, 2, 1, 3)}


def at_other_place(scales, prefix, mistakes):
    """Scales [..., groups] as a kernel takes those of other groups."""
    lines = np.arange(scales.size).reshape(-1, scales.shape[-1])
    for name, place in PLACES.items():
        if prefix + name in mistakes:
            lines = place(lines)
    return scales.ravel()[lines].reshape(scales.shape)


def stored(scales, axis, mistakes):
    """Scales [outer, pairs, inner, 2], whose shape stays, in the order of a kernel."""
    pairs = scales.reshape(int(np.prod(scales.shape[:axis])), scales.shape[axis], -1, 2)
    if "scales-swapped" in mistakes:
        pairs = pairs[..., ::-1]
    for name, order in ORDERS.items():
        if f"scales-{name}" in mistakes:
            pairs = pairs.transpose(order)
    if "scales-in-tiles" in mistakes:  # of 4 times 32 rows and 4 groups
        pairs = pairs.reshape(pairs.shape[0] // 128, 4, 32, -1, 4).transpose(0, 3, 2, 1, 4)
    if "scales-without-padding" in mistakes:
        groups = pairs.reshape(pairs.shape[0], -1)
        pairs = np.append(groups[:, :-1], groups[:, -1])
    return np.ascontiguousarray(pairs).reshape(scales.shape)


def dynamic_mx_quant(call, names):
    mistakes = Mistakes(names)
    given, dtype, x = call.arguments, call.arguments["dtype"], call.inputs["x"]
    own_axis, own_length, last = given["axis"] % x.ndim, given["block_size"], x.ndim - 1
    axis = own_axis
    if "other-axis" in mistakes:
        axis = last - 1 if axis == last else last
    length = next((n for n in (16, 32, 64, 128) if f"groups-of-{n}" in mistakes), own_length)
    values = np.moveaxis(floats(x), axis, -1)
    for name in "float16", "bfloat16":
        if f"x-{name}" in mistakes:
            values = floats(round_to(values, name))
    if "flush-inputs" in mistakes:
        values = np.where(abs(values) < 2.0**-126, np.copysign(f4(0), values), values)
    at = np.arange(values.shape[-1])
    sizes = np.ascontiguousarray(values).view("u4") & 0x7FFFFFFF
    if "range-ignores-nan" in mistakes:
        sizes = np.where(sizes > 0x7F800000, 0, sizes).astype("u4")
    S, R = scales(np.maximum.reduceat(sizes, at[::length], axis=-1), call, mistakes)
    returned = at_other_place(at_other_place(S, "returned-of-", mistakes), "range-of-", mistakes)
    used = [at_other_place(at_other_place(each, "scale-of-", mistakes), "range-of-", mistakes) for each in (S, R)]
    S, R, returned = (each[..., at // length] for each in (*used, returned))
    if "flush-inputs" in mistakes:
        R = np.where(R < 2.0**-126, f4(0), R)
    p = kept(values * R, mistakes, "product")
    if call.types["x"] == "bfloat16":
        p = floats(round_to(p, "bfloat16"))
    makes_nan = bool(given["bad_groups"])
    makes_nan = "bad-groups-nan" in mistakes or (makes_nan and "bad-groups-zero" not in mistakes)
    of_bad = np.where(np.isnan(values) & np.signbit(values), 0xFF, 0x7F) if makes_nan else 0
    codes = np.where(S == 255, of_bad, cast(p, dtype, given["round_mode"], mistakes)).astype(np.uint8)
    codes, returned = (np.moveaxis(each, -1, axis) for each in (codes, returned))
    if MX_TYPES[dtype] == 7:
        codes = codes[..., ::2] | codes[..., 1::2] << 4
    S = np.moveaxis(returned, own_axis, -1)[..., ::own_length].astype(np.uint8)
    if "returned-without-bias" in mistakes:
        S = S - np.uint8(127)
    if "returned-inverse" in mistakes:
        S = np.where(S == 255, 255, 254 - S).astype(np.uint8)
    S = np.concatenate([S, np.zeros((*S.shape[:-1], S.shape[-1] % 2), np.uint8)], axis=-1)
    pairs = stored(np.moveaxis(S.reshape(*S.shape[:-1], -1, 2), -2, own_axis), own_axis, mistakes)
    mistakes.refuse_unknown()
    return {"y": np.ascontiguousarray(codes), "mxscale": pairs}


# ---- back from codes ----

#: Mistakes at one step, of which a kernel makes one: groups and their neighbours, the order of scales, what codes stand for.
AT_ONE_STEP = [re.compile(names) for names in (
    "groups-of|other-axis", "scale-of-(?!first$)", "scales-|first-|scale-of-first$", "scale-(?!of-|read|float16)",
    "scale-(read|float16)", "x-(read|fnuz|without)", "x-(nibbles|halves|fractal)")]


def scale_of_codes(S, mistakes):
    """The values of codes of scales, as float64: 2^128 is beyond float32."""
    S = S.astype(int)
    for name, values in (("uint8", S.astype(float)), ("e4m3fn", of_codes("float8_e4m3fn")[S])):
        if f"scale-read-as-{name}" in mistakes:
            return values
    if "scale-left-out" in mistakes:
        return np.ones(S.shape)
    as_int8 = "scale-signed" in mistakes or "scale-signed-unbiased" in mistakes
    unbiased = "scale-unbiased" in mistakes or "scale-signed-unbiased" in mistakes
    bias = 0 if unbiased else 126 if "scale-bias-126" in mistakes else 128 if "scale-bias-128" in mistakes else 127
    scale = np.ldexp(1.0, np.where(as_int8 & (S > 127), S - 256, S) - bias)
    if "scale-ff-number" in mistakes:
        return scale
    with np.errstate(over="ignore"):
        scale = scale.astype(f4).astype(float)
    if not as_int8 and not unbiased:
        scale[S == 255] = np.nan
    if "scale-negative" in mistakes:
        return (S.astype(np.int8).astype(np.int32) << 23).view(f4).astype(float)
    if "scale-00-is-zero" in mistakes or "scale-shifted" in mistakes:
        scale[S == 0] = 0
    if "scale-ff-infinite" in mistakes or "scale-shifted" in mistakes:
        scale[S == 255] = np.inf
    return kept(scale, mistakes, "scale").astype(float) if "scale-float16" in mistakes else scale


def of_codes(dtype):
    """The values of all codes, as float64."""
    return np.array([TYPES[dtype].value(code) for code in range(1 << TYPES[dtype].bits)])


def values_of(codes, dtype, mistakes):
    """The values of codes, as float64."""
    kind, other = TYPES[dtype], dtype
    if "x-read-as-uint8" in mistakes:
        return codes.astype(float)
    for name in "float8_e4m3fn", "float8_e5m2", "hifloat8", "float4_e2m1fn_x2", "float4_e1m2fn_x2":
        if "x-read-as-" + name.replace("float8_", "").replace("float4_", "").replace("fn_x2", "") in mistakes:
            other = name
    values = of_codes(other)[codes]
    bits = kind.bits - 1
    sign, size = np.where(codes >> bits, -1.0, 1.0), codes & (1 << bits) - 1
    exponent, fraction = size >> kind.mantissa, size & (1 << kind.mantissa) - 1
    if "x-without-subnormals" in mistakes:
        values = np.where(exponent == 0, np.copysign(0, sign), values)
    numbers = sign * np.where(exponent > 0, np.ldexp(1.0 + np.ldexp(1.0 * fraction, -kind.mantissa), exponent - kind.bias),
                              np.ldexp(1.0 * fraction, 1 - kind.bias - kind.mantissa))
    if "x-without-specials" in mistakes:
        values = numbers
    if "x-fnuz" in mistakes:
        values = np.where(codes == 1 << bits, np.nan, numbers / 2)
    return values


def anti_mx_quant(call, mistakes):
    if any(sum(bool(names.match(name)) for name in mistakes.names) > 1 for names in AT_ONE_STEP):
        raise ValueError("the kernel makes one mistake at a step")
    given, codes = call.arguments, call.inputs["x"].astype(int)
    source = given["src_type"]
    if MX_TYPES[source] == 7:
        codes = np.stack([codes & 15, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)
    shape, last = codes.shape, codes.ndim - 1
    if "x-nibbles-swapped" in mistakes:
        codes = codes.reshape(-1, 2)[:, ::-1].reshape(shape)
    if "x-halves-of-32" in mistakes:
        pairs = codes.reshape(-1, 16, 2)
        codes = np.concatenate([pairs[..., 0], pairs[..., 1]], axis=1).reshape(shape)
    if "x-fractal-nz" in mistakes:
        width = 32 << (MX_TYPES[source] == 7)
        codes = codes.reshape(-1, codes.size // shape[-1], width).swapaxes(0, 1).reshape(shape)
    x = values_of(codes, source, mistakes)
    axis, length = given["axis"] % codes.ndim, given["block_size"]
    if "other-axis" in mistakes:
        axis = last - 1 if axis == last else last
    length = next((n for n in (16, 32, 64, 128) if f"groups-of-{n}" in mistakes), length)
    group = np.indices(shape)[axis] // length
    inner, pairs = int(np.prod(shape[axis + 1:])), -(-shape[axis] // (2 * length))
    line, column = np.divmod(np.arange(codes.size).reshape(shape), inner)
    S = read_scales(call.inputs["mxscale"], given["axis"] % codes.ndim, shape[given["axis"]], given["block_size"], mistakes)
    place = ((line // shape[axis] * pairs + group // 2) * inner + column) * 2 + group % 2
    place = placed(place % S.size, S.size, mistakes)
    scale = scale_of_codes(S[place], mistakes)
    flushes = {name for name in ("flush-results", "flush-all") if name in mistakes}
    scale = flushed(scale) if "flush-all" in flushes else scale
    t = (x / scale if "opposite" in mistakes else x * scale).astype(f4)
    t = flushed(t) if flushes else t
    return integer_kernels.stored(t, given["dtype"], mistakes)


def placed(place, count, mistakes):
    """Places of scales in memory: the first one, or the first ones again."""
    return place * 0 if "scale-of-first" in mistakes else reused(place, mistakes)


def read_scales(memory, axis, extent, length, mistakes):
    """Scales in the order of their places, as a kernel reads them that looks for them in another order."""
    shape = int(np.prod(memory.shape[:axis])), memory.shape[axis], int(np.prod(memory.shape[axis + 1:-1])), 2
    pairs, count = memory.reshape(shape), -(-extent // length)
    if "scales-swapped" in mistakes:
        pairs = pairs[..., ::-1]
    for name, order in ORDERS.items():
        if f"scales-{name}" in mistakes:
            pairs = memory.reshape([shape[d] for d in order]).transpose(np.argsort(order))
    if "scales-in-tiles" in mistakes:
        pairs = memory.reshape(shape[0] // 128, -1, 32, 4, 4).transpose(0, 3, 2, 1, 4).reshape(shape)
    groups = np.array(pairs.transpose(0, 2, 1, 3).reshape(shape[0], shape[2], -1))
    if "scales-without-padding" in mistakes:
        groups[..., :count] = memory.ravel()[:shape[0] * count].reshape(shape[0], 1, count)
    groups[..., :count] = at_other_place(groups[..., :count], "scale-of-", mistakes)
    return groups.reshape(shape[0], shape[2], shape[1], 2).transpose(0, 2, 1, 3).ravel()


KERNELS = {"dynamic_mx_quant": dynamic_mx_quant, "anti_mx_quant": kernel_of_y(anti_mx_quant)}
