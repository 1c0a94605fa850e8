# SPDX-License-Identifier: BSD-3-Clause
"""The operators in NumPy, and random inputs for them: what the results of the command and of the Python module must be.

NPUQ_TEST_SEED repeats a run.
"""
import os
import pathlib
import re

import numpy as np

SEED = int(os.environ.get("NPUQ_TEST_SEED") or 20261120)

f4 = np.float32
rng = np.random.default_rng(SEED)
np.seterr(all="ignore")
# Every step is float32: NumPy must not compute in float64 with a scalar operand.
one = f4(1)


# ---- what the results must be ----


def floats(array):
    """Any input as float32; u2 is bfloat16."""
    if array.dtype == np.uint16:
        return (array.reshape(-1).astype(np.uint32) << 16).view(f4).reshape(array.shape)
    return array.astype(f4)


RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 1), "quint4x2": (-8, 7)}


#: The bits of the mantissa, and the bias of the exponent.
FORMATS = {"float8_e4m3fn": (3, 7), "float8_e5m2": (2, 15), "float4_e2m1fn_x2": (1, 1), "float4_e1m2fn_x2": (2, 1)}


def small_value(dtype, code):
    """The value of a code without its sign: of a type above, and hifloat8, whose letters stand for bits."""
    if dtype != "hifloat8":
        mantissa, bias = FORMATS[dtype]
        exponent, fraction = divmod(code, 2**mantissa)
        return (fraction + 2**mantissa * (exponent > 0)) * 2.0 ** (max(exponent, 1) - bias - mantissa)
    letters = f"{code:07b}"
    prefix, exponents, mantissa = next(
        form for form in (("11", 3, 1), ("10", 2, 2), ("01", 1, 3), ("001", 0, 3), ("0001", None, 3), ("0000", None, 3))
        if letters.startswith(form[0]))
    if prefix == "0000":
        return 2.0 ** (code - 23) if code else 0.0
    rest = letters[len(prefix):]
    size = 0 if exponents is None else int("1" + rest[1:1 + exponents], 2)
    exponent = -size if exponents is not None and rest[0] == "1" else size
    return (1 + int(rest[-mantissa:], 2) / 2**mantissa) * 2.0**exponent


#: Of each type, the code of the largest finite value without its sign.
SMALL = {"float8_e4m3fn": 0x7E, "float8_e5m2": 0x7B, "hifloat8": 0x6E}
MX_TYPES = {"float8_e4m3fn": 0x7E, "float8_e5m2": 0x7B, "float4_e2m1fn_x2": 7, "float4_e1m2fn_x2": 7}


def small_values(dtype):
    """The finite values from 0 on, in their order, and their codes."""
    most = {**SMALL, **MX_TYPES}[dtype]
    codes = [code for code in range(128) if code <= most or (dtype == "hifloat8" and code != 0x6F)]
    values = np.array([small_value(dtype, code) for code in codes])
    order = np.argsort(values)
    return values[order], np.array(codes, np.uint8)[order]


def to_small(t, dtype, rounding="rint"):
    """The nearest code. Of two, the even one, and the larger value of hifloat8 and with "round". "floor": the largest
    value that is not above t. What is beyond the largest value becomes that, and NaN 0. A negative value keeps its sign
    where it becomes 0, except in hifloat8."""
    values, codes = small_values(dtype)
    size = np.minimum(np.abs(np.nan_to_num(t.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)), values[-1])
    above = np.searchsorted(values, size)
    below = np.maximum(above - 1, 0)
    middle = (values[below] + values[above]) / 2
    is_away = dtype == "hifloat8" or rounding == "round"
    up = np.where(size == middle, is_away | (codes[above] % 2 == 0), size > middle)
    if rounding == "floor":
        up = np.signbit(t) | (size == values[above])
    found = codes[np.where(up, above, below)]
    is_negative = np.signbit(t) & ~np.isnan(t) & ((found != 0) | (dtype != "hifloat8"))
    return found | (is_negative * (8 if MX_TYPES.get(dtype) == 7 else 0x80)).astype(np.uint8)


def divided(x, s):
    """x / s as the Ascend 950 divides to small floats: subnormal operands and quotients count as zeros."""
    least = np.float64(2.0**-126)
    x, s = (np.where(np.abs(each) < least, np.copysign(f4(0), each), each).astype(f4) for each in (x, s))
    quotient = x / s
    vanishes = np.abs(x.astype(np.float64)) < np.abs(s.astype(np.float64)) * least
    return np.where(vanishes, np.copysign(f4(0), quotient), quotient)


def saturate(t, dtype):
    assert t.dtype == f4
    if dtype in SMALL:
        return to_small(t, dtype)
    low, high = RANGES[dtype]
    rounded = np.nan_to_num(np.rint(t).astype(np.float64), nan=0.0, posinf=high, neginf=low)
    values = np.clip(rounded, low, high).astype(np.int64)
    return pack(values) if dtype == "quint4x2" else values.astype(dtype)


def saturate_symmetric(t, dtype):
    """uint8 is int8 plus 128, also for NaN."""
    return saturate(t, "int8").view(np.uint8) + np.uint8(128) if dtype == "uint8" else saturate(t, dtype)


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
    t = (divided(x, s) if dtype in SMALL else x / s) if div_mode else x * s
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


def smoothed_tokens(x, smooth, group_index, per_tensor):
    """A row for each scale: those of x, or all of x in one."""
    rows = floats(x).reshape(-1, x.shape[-1])
    if smooth is not None:
        factors = floats(smooth)
        rows = rows * (factors if group_index is None else factors[group_of_rows(group_index, len(rows))])
    return rows.reshape(1, -1) if per_tensor else rows


def dynamic(x, smooth, group_index, per_tensor, dtype):
    greatest, extent = (f4(7), f4(15)) if dtype == "quint4x2" else (f4(127), f4(255))
    tokens = smoothed_tokens(x, smooth, group_index, per_tensor)
    high, low = tokens.max(axis=1), tokens.min(axis=1)
    d = (high - low) / extent
    scale = np.where(d > f4(1e-12), d, f4(1e-12)).astype(f4)
    offset = greatest - (high / scale)
    back = one / scale
    y = saturate(((tokens * back[:, None]) + offset[:, None]).reshape(x.shape), dtype)
    shape = (1,) if per_tensor else x.shape[:-1]
    return y, scale.reshape(shape), round_to(offset, "float32").reshape(shape)


def dynamic_quant(x, smooth, group_index, per_tensor, scale_form, dtype):
    greatest, inverse = (f4(7), 0x3E124925) if dtype == "quint4x2" else (f4(127), 0x3C010204)
    tokens = smoothed_tokens(x, smooth, group_index, per_tensor)
    largest = np.abs(tokens).max(axis=1)
    back = greatest / largest
    y = saturate_symmetric((tokens * back[:, None]).reshape(x.shape), dtype)
    scale = one / back if scale_form == "inverse" else largest * np.uint32(inverse).view(f4)
    return y, round_to(scale, "float32").reshape((1,) if per_tensor else x.shape[:-1])


def dynamic_quant_float8(x, smooth, group_index, per_tensor, most, dtype):
    greatest = f4(most or small_value(dtype, SMALL[dtype]))
    tokens = smoothed_tokens(x, smooth, group_index, per_tensor)
    scale = np.abs(tokens).max(axis=1) * (one / greatest)
    y = to_small(divided(tokens, scale[:, None]), dtype)
    return y.reshape(x.shape), round_to(scale, "float32").reshape((1,) if per_tensor else x.shape[:-1])


def dynamic_block_quant(x, block, min_scale, dtype):
    greatest, inverse = (f4(7), 0x3E124925) if dtype == "quint4x2" else (f4(127), 0x3C010204)
    values = floats(x)
    starts = np.arange(0, x.shape[-1], block)
    largest = np.maximum.reduceat(np.abs(values), starts, axis=-1)
    back = (one / largest) * greatest
    scale = largest * np.uint32(inverse).view(f4)
    if min_scale > 0:
        back = np.maximum(back, f4(min_scale))
        scale = np.minimum(scale, one / f4(min_scale))
    lengths = np.diff(np.append(starts, x.shape[-1]))
    return saturate_symmetric(values * np.repeat(back, lengths, axis=-1), dtype), round_to(scale, "float32")


def dynamic_block_quant_float8(x, row_block, block, min_scale, most, dtype):
    greatest = f4(most or small_value(dtype, SMALL[dtype]))
    values = floats(x)
    largest, lengths = np.abs(values), {}
    for axis, size in (-2, row_block), (-1, block):
        starts = np.arange(0, x.shape[axis], size)
        largest = np.maximum.reduceat(largest, starts, axis=axis)
        lengths[axis] = np.diff(np.append(starts, x.shape[axis]))
    scale = divided(largest, greatest)
    if min_scale > 0:
        scale = np.where(np.isfinite(scale), np.minimum(scale, divided(one, f4(min_scale))), scale)
    each = np.repeat(np.repeat(scale, lengths[-2], axis=-2), lengths[-1], axis=-1)
    return to_small(divided(values, each), dtype), round_to(scale, "float32")


ROUNDINGS = ("rint", "round", "floor")


def mx_scales(a, from_float32, is_last_axis, algorithm, small_groups, most, bound, dtype):
    """The code of the scale, and what elements are multiplied by, for the bits of each largest magnitude."""
    is_zero = a == 0
    S, field = a >> 23, None
    if algorithm == 0:
        field = S
        emax = {"float8_e4m3fn": 8, "float8_e5m2": 15, "float4_e2m1fn_x2": 2, "float4_e1m2fn_x2": 0}[dtype]
        S = np.maximum(S.astype(np.int64) - emax, 0)
    elif algorithm == 2 and most in (0, 6, 7):
        if not (from_float32 and is_last_axis):
            a = a + 0x7FFF + (a >> 16 & 1)
        half = a >> 16
        field = half >> 7
        S = np.where(field < 2, 0, ((half + (0x1F if most == 7 else 0x3F) & 0x7F80) // 128).astype(np.int64) - 2)
    else:
        c = {"float8_e4m3fn": 0x3B124925, "float8_e5m2": 0x37924925}
        factor = np.uint32(c[dtype]).view(f4) if algorithm == 1 else f4(1.0 / float(f4(most)))
        bounded = np.where(is_zero, 0, np.maximum(a, f4(bound).view(np.uint32))).astype(np.uint32)
        t = (bounded.view(f4) * factor).view(np.uint32)
        exponent, mantissa = t >> 23, t & 0x7FFFFF
        goes_up = (exponent > 0) & (exponent < 254) & (mantissa > 0)
        if algorithm == 1:
            goes_up |= (exponent == 0) & (mantissa > 0x400000)
        S = (exponent + goes_up).astype(np.int64)
    S = np.where(a >= 0x7F800000, 255, S)
    is_small = is_zero if field is None else [S == 0, field == 0, None][small_groups]
    R = np.ldexp(np.ones(S.shape, f4), (127 - S).astype(np.int32))
    return S.astype(np.uint8), R if small_groups == 2 else np.where(is_small, f4(0), R)


def dynamic_mx_quant(x, axis, block, rounding, algorithm, small_groups, most, bound, bad_groups, dtype):
    values = np.ascontiguousarray(floats(x))
    axis %= x.ndim
    starts = np.arange(0, x.shape[axis], block)
    lengths = np.diff(np.append(starts, x.shape[axis]))
    a = np.maximum.reduceat(values.view(np.uint32) & 0x7FFFFFFF, starts, axis=axis)
    S, R = mx_scales(a, x.dtype == f4, axis == x.ndim - 1, algorithm, small_groups, most, bound, dtype)
    p = values * np.repeat(R, lengths, axis=axis)
    if x.dtype == np.uint16:
        p = floats(round_to(p, "bfloat16"))
    of_nan = np.where(np.isnan(values) & np.signbit(values), 0xFF, 0x7F) if bad_groups else 0
    is_bad = np.repeat(S == 255, lengths, axis=axis)
    codes = np.where(is_bad, of_nan, to_small(p, dtype, ROUNDINGS[rounding])).astype(np.uint8)
    if MX_TYPES[dtype] == 7:
        codes = codes[..., ::2] | codes[..., 1::2] << 4
    S = np.concatenate([S, np.zeros_like(S.take([0], axis=axis))], axis=axis)[
        (slice(None),) * axis + (slice(0, (len(starts) + 1) // 2 * 2),)]
    pairs = S.reshape(*S.shape[:axis], -1, 2, *S.shape[axis + 1:])
    return codes, np.moveaxis(pairs, axis + 1, -1)


def dynamic_block_mx_quant(x, rounding, algorithm, most, dtype):
    """Each element by itself, with the largest magnitude of its block."""
    values = np.ascontiguousarray(floats(x))
    bits, shape = values.view(np.uint32) & 0x7FFFFFFF, values.shape[-2:]
    a, starts = bits, [np.arange(0, extent, 32) for extent in shape]
    for axis in -2, -1:
        a = np.maximum.reduceat(a, starts[axis], axis=axis)
    S, R = mx_scales(a, False, True, algorithm, 1, most, 0, dtype)
    S, R = (each[..., np.arange(shape[0])[:, None] // 32, np.arange(shape[1]) // 32] for each in (S, R))
    p = values * R
    if x.dtype == np.uint16:
        p = floats(round_to(p, "bfloat16"))
    codes = np.where(S == 255, 0, to_small(p, dtype, ROUNDINGS[rounding])).astype(np.uint8)
    if MX_TYPES[dtype] == 7:
        codes = codes[..., ::2] | codes[..., 1::2] << 4
    scales = []
    for axis, extent in (-1, shape[1]), (-2, shape[0]):
        each = np.moveaxis(S, axis, -1)[..., ::32]
        filled = np.zeros((*each.shape[:-1], -(-extent // 64) * 2), np.uint8)
        filled[..., :each.shape[-1]] = each
        scales.append(np.moveaxis(filled.reshape(*each.shape[:-1], -1, 2), -2, axis - 1))
    return (codes, *scales)


def grouped_dynamic_mx_quant(x, ends, rounding, algorithm, most, dtype):
    begins = np.append(0, ends[:-1]).astype(int)
    made = [dynamic_mx_quant(x[begin:end], 0, 32, rounding, algorithm, int(algorithm == 2), most, 0, 0, dtype)
            if end > begin else None for begin, end in zip(begins, ends)]
    y = np.zeros((len(x), x.shape[1] // (2 if MX_TYPES[dtype] == 7 else 1)), np.uint8)
    mxscale = np.zeros((len(x) // 64 + len(ends), x.shape[1], 2), np.uint8)
    for i, (begin, results) in enumerate(zip(begins, made)):
        if results:
            y[begin:begin + len(results[0])] = results[0]
            for j, pair in enumerate(results[1]):
                mxscale[begin // 64 + i + j] = pair
    return y, mxscale


def dynamic_dual_level_mx_quant(x, smooth, rounding):
    dtype = "bfloat16" if x.dtype == np.uint16 else "float16"
    values = floats(x)
    if smooth is not None:
        values = floats(round_to(values * floats(smooth), dtype))
    scales, t = [], []
    for part in np.split(values, range(512, x.shape[-1], 512), axis=-1):
        bits = part.view(np.uint32) & 0x7FFFFFFF
        a = np.where(bits < 0x7F800000, bits, 0).max(axis=-1, keepdims=True).view(f4)
        scale = a * np.uint32(0x3E2AAAAB).view(f4)
        scales.append(np.where(scale < f4(2.0**-126), f4(0), scale))
        t.append(np.where(part == 0, part, divided(part, scales[-1])))
    t = round_to(np.concatenate(t, axis=-1), dtype)
    y, mxscale = dynamic_mx_quant(t, -1, 32, rounding, 0, 1, 0, 0, 0, "float4_e2m1fn_x2")
    return y, np.concatenate(scales, axis=-1), mxscale


#: The names of mx_examples.def.
MX_NAMES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "E4M3": "float8_e4m3fn", "E5M2": "float8_e5m2",
            "E2M1": "float4_e2m1fn_x2", "E1M2": "float4_e1m2fn_x2"}


def mx_elements(text, dtype):
    """The bits of x or y, whose groups of 32 are filled with zeros."""
    groups = []
    for group in text.split("|"):
        found = np.zeros(16 if MX_TYPES.get(dtype) == 7 else 32, {"float32": "u4"}.get(dtype, "u2"))
        for i, word in enumerate(group.split()):
            if word[0] == "#" or dtype in MX_TYPES:
                found[i] = int(word.lstrip("#"), 16)
            else:
                value = f4(float.fromhex(word) if "x" in word else float(word))
                found[i] = round_to(np.array([value]), dtype).view(found.dtype)[0]
        groups.append(found)
    return np.concatenate(groups)


def mx_examples():
    """A name, x, the arguments of the package, y and mxscale of each example. One of another axis than the last has two
    columns that are alike."""
    text = re.sub(r"/\*.*?\*/|\\\n", "", pathlib.Path(__file__).with_name("mx_examples.def").read_text(), flags=re.S)
    named = dict(re.findall(r"#define (\w+)\s+(.*)", text))
    row = r'^{"(.*?)", (\w+), (\w+), (\w+), OPTIONS\((\w+), (\d), (\w), (\d+), (\d+)\), (.*?),\s+"(.*?)",\s+(.*?)},$'
    rows = re.findall(row, text, flags=re.M | re.S)
    assert len(rows) == text.count("OPTIONS(")
    for name, axes, x_name, y_name, how, algorithm, rule, most, bound, *texts in rows:
        from_x, scales, to_y = (re.sub(r'"(\s+")?', "", named.get(each, each)) for each in texts)
        x_dtype, y_dtype = MX_NAMES[x_name], MX_NAMES[y_name]
        x, y = mx_elements(from_x, x_dtype), mx_elements(to_y, y_dtype).astype(np.uint8)
        x = x.view(np.uint16 if x_dtype == "bfloat16" else x_dtype)
        S = [*bytes.fromhex(scales)]
        pairs = np.array(S + [0] * (len(S) % 2), np.uint8).reshape(1, -1, 2)
        arguments = {"round_mode": how.lower(), "dst_type": y_dtype, "scale_alg": int(algorithm),
                     "small_groups": "SEN".index(rule), "dst_type_max": float(most), "max_low_bound": float(bound)}
        if axes in ("LAST", "ANY"):
            yield name, x[None], {"axis": -1, **arguments}, y[None], pairs
        if axes in ("OTHER", "ANY"):
            if len(y) < len(x):
                y = np.stack([y & 15, y >> 4], axis=-1).ravel() * np.uint8(17)
            columns = y[:, None] if MX_TYPES[y_dtype] == 7 else np.stack([y, y], axis=-1)
            yield name, np.stack([x, x], axis=-1), {"axis": 0, **arguments}, columns, np.stack([pairs[0]] * 2, axis=1)


def random_mx_call():
    """The shape of x, and the arguments of a call; a block of 0 stands for 32."""
    dtype = str(rng.choice(list(MX_TYPES)))
    has_8_bits = MX_TYPES[dtype] != 7
    shape = rng.integers(1, 6, size=rng.integers(1, 8 if rng.random() < 0.1 else 4))
    axis = int(rng.integers(-len(shape), len(shape)))
    shape[axis] = rng.integers(1, 200)
    if not has_8_bits:
        shape[-1] += shape[-1] % 2
    algorithm = int(rng.choice([0, 1] if has_8_bits else [0, 2] if dtype == "float4_e2m1fn_x2" else [0]))
    bound = float(f4(rng.choice([0, 1e-4, 1, 2**-130, 3e38]))) if algorithm == 1 else 0.0
    options = (int(rng.choice([0, 32, 64, 96, 1024])), 0 if has_8_bits else int(rng.integers(3)), algorithm,
               int(rng.integers(3)), float(f4(rng.choice([0, 6, 7, rng.uniform(6, 12)]))), bound,
               int(rng.integers(2)) if has_8_bits else 0)
    return tuple(map(int, shape)), axis, options, dtype


def values_of_codes(dtype):
    """Of each code as float32, in their order: what is above a type's largest finite value is its infinity or NaN."""
    count = 8 if MX_TYPES[dtype] == 7 else 128
    values = np.array([small_value(dtype, code) for code in range(count)], f4)
    values[MX_TYPES[dtype] + 1:] = np.nan
    if dtype == "float8_e5m2":
        values[0x7C] = np.inf
    return np.concatenate([values, -values])


def anti_mx_quant(x, mxscale, axis, block, x_dtype, y_dtype):
    if MX_TYPES[x_dtype] == 7:
        x = np.stack([x & 15, x >> 4], axis=-1).reshape(*x.shape[:-1], -1)
    axis %= x.ndim
    pairs = np.moveaxis(mxscale, -1, axis + 1)
    S = pairs.reshape(*pairs.shape[:axis], -1, *pairs.shape[axis + 2:])
    scale = np.where(S == 255, f4(np.nan), np.ldexp(one, S.astype(np.int32) - 127))
    each = np.repeat(scale, block, axis=axis).take(np.arange(x.shape[axis]), axis=axis)
    return round_to(values_of_codes(x_dtype)[x] * each, y_dtype)


def half_towards_zero(t):
    half = t.astype(np.float16)
    return np.where(np.abs(half) > np.abs(t), np.nextafter(half, np.float16(0)), half).astype(f4)


ROW_RULES = ("dynamic_quant", "swiglu", "add_rms_norm", "dequant_swiglu", "moe_routing", "moe_routing_8_5",
             "grouped_swiglu")


def row_quant(v, rule, moved=lambda quotient: quotient):
    """moved: what the device's vector unit makes of its quotients."""
    values = floats(v)
    m = np.abs(values).max(axis=-1, keepdims=True)
    divided = rule.startswith("moe_routing") or rule == "grouped_swiglu"
    scale = m / f4(127) if divided else m * np.uint32(0x3C010204).view(f4)
    factor = moved(f4(127) / m)
    if rule == "grouped_swiglu":
        t = (values * (one / scale)).astype(np.float16).astype(f4)
    else:
        t = moved(values / scale) if divided or rule == "dequant_swiglu" else values * factor
    if rule == "moe_routing_8_5":
        half = half_towards_zero(t)
        t = np.copysign(np.floor(np.abs(half) + f4(0.5)), half)
    returned = {"swiglu": factor, "add_rms_norm": one / factor}.get(rule, scale)
    return saturate(t, "int8"), round_to(returned[..., 0], "float32")


def round_to(t, dtype):
    """In a floating-point type with one NaN; bfloat16 as its bits."""
    assert t.dtype == f4
    if dtype == "bfloat16":
        bits = np.ascontiguousarray(t).view(np.uint32)
        half_to_even = bits + 0x7FFF + (bits >> 16 & 1) >> 16
        return np.where(np.isnan(t), 0x7FC0, half_to_even).astype(np.uint16).reshape(t.shape)
    return np.where(np.isnan(t), np.array(np.nan, dtype), t.astype(dtype))


def unpack(words):
    nibbles = words.view(np.uint32)[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & 0xF
    values = nibbles.astype(np.int8).reshape(words.shape[:-1] + (words.shape[-1] * 8,))
    return np.where(values > 7, values - 16, values)


def anti_quant(x, scale, offset, dtype):
    """An int32 x holds int4 words. 2-D parameters belong to groups of rows."""
    t = (unpack(x) if x.dtype == np.int32 else x).astype(f4)

    def of_rows(parameters):
        values = floats(parameters)
        return np.repeat(values, len(x) // len(values), axis=0) if values.ndim == 2 else values

    if offset is not None:
        t = t + of_rows(offset)
    return round_to(t * of_rows(scale), dtype)


def add_wrapping(x, y):
    return (x.view(np.uint32) + y.view(np.uint32)).view(np.int32)


def dequant(x, weight_scale, activation_scale, bias, dtype):
    whole_bias = bias is not None and bias.dtype == np.int32
    t = (add_wrapping(x, bias) if whole_bias else x).astype(f4)
    t = t * floats(weight_scale)
    if activation_scale is not None:
        t = t * activation_scale[..., None]
    if bias is not None and not whole_bias:
        t = t + floats(bias)
    return round_to(t, dtype)


def requant(x, words, bias, dtype):
    words = words.reshape(-1).view(np.uint64)
    factor = (words & 0xFFFFE000).astype(np.uint32).view(f4)
    offset = (words >> 37 & 0x1FF).astype(np.int64)
    product = (x if bias is None else add_wrapping(x, bias)).astype(f4) * factor
    if dtype == "float16":
        return round_to(product, dtype)
    whole = np.nan_to_num(np.rint(product).astype(np.float64), nan=0.0, posinf=255, neginf=-256)
    first = np.clip(whole, -256, 255).astype(np.int64)
    return np.clip(first + np.where(offset > 255, offset - 512, offset), -128, 127).astype(np.int8)


def quant_matmul(x1, x2, scale, offset, pertoken_scale, bias, dtype):
    exact = np.matmul(x1.astype(np.int64), x2.astype(np.int64))
    sums = (exact & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    if dtype == "int32":
        return sums if bias is None else add_wrapping(sums, bias)
    if dtype == "int8" or (dtype == "float16" and pertoken_scale is None):
        words = trans_quant_param(scale, offset, 0) if scale.dtype == f4 else scale
        return requant(sums, words, bias, dtype)
    return dequant(sums, scale, pertoken_scale, bias, dtype)


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


def random_integers(shape, dtype):
    limits = np.iinfo(dtype)
    values = rng.integers(limits.min, limits.max, size=shape, dtype=limits.dtype, endpoint=True)
    values >>= rng.integers(0, limits.bits, size=shape, dtype=limits.dtype)
    return np.where(rng.random(shape) < 0.05, rng.choice([limits.min, limits.max], size=shape), values).astype(dtype)


def random_words(count, dtype):
    """Words of trans_quant_param, with random bits where requant to this dtype ignores them."""
    scale = random_floats(count, "f4", size=10.0 ** rng.integers(-8, 1))
    words = trans_quant_param(scale, random_floats(count, "f4", size=200.0), int(rng.integers(2)))
    ignored = np.uint64(0x1FFF | 0x1FFFF << 47 | (0x3FF << 37 if dtype == "float16" else 0))
    noise = 0 if rng.random() < 0.3 else rng.integers(0, 2**64, size=count, dtype=np.uint64) & ignored
    return (words & ~ignored | noise).astype(rng.choice(["u8", "i8"]))


def random_ends(groups, rows):
    ends = np.sort(rng.integers(0, rows + 1, size=groups))
    ends[-1] = rows
    return ends.astype(rng.choice(["i4", "i8"]))
