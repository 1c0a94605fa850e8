# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of anti_quant, dequant and requant with mistakes."""
import numpy as np
from layout_mistakes import AWQ
from numeric import (Machine, before_clamp, f4, f8, float64_to_type, fused, in_bits, in_type, is_wide, kept,
                     kernel_of_y, of_other_dimension, placed, read_as, read_parameter, represented, reused, rounded)
from numpy_operators import add_wrapping, floats, unpack

NINE_BITS, INT32 = (-256, 255), (-(2**31), 2**31 - 1)


# ---- arithmetic ----


class Scaling(Machine):
    """Multiplies and adds; a mistake may keep the result in a shorter type."""

    def __init__(self, mistakes):
        super().__init__(mistakes)
        self.mistakes = mistakes

    def product(self, x, s):
        return kept(self.compute(np.multiply, x, s), self.mistakes, "product", "all")

    def sum(self, x, z):
        return kept(self.compute(np.add, x, z), self.mistakes, "sum", "all")

    def fused(self, x, s, z):
        """x * s + z with one rounding."""
        return self.compute(fused if self.type == f4 else lambda x, s, z: x * s + z, x, s, z)


# ---- operands ----


def moved(values, mistakes, following, before, first):
    """Parameters read from a wrong address."""
    if following in mistakes:
        return np.roll(values, -1)
    if before in mistakes:
        return np.roll(values, 1)
    return values[:1] if first in mistakes else values


def of_columns(values, which, shape, mistakes):
    """A parameter for each column of x, whose rows are one dimension, or, by mistake, for each row."""
    values = moved(values, mistakes, f"{which}-of-next", f"{which}-of-one-before", f"{which}-of-first")
    values = values[reused(np.arange(values.size), mistakes)]
    other = of_other_dimension(shape, mistakes)
    if other is not None:
        return values[other % values.size].reshape(-1, shape[-1])
    by_rows = "other-axis" in mistakes or f"{which}-by-other-axis" in mistakes
    return values[np.arange(np.prod(shape[:-1])) % values.size, None] if by_rows else values


def read_bias(call, mistakes):
    bias = call.inputs.get("bias")
    if bias is None:
        return None
    bias = read_as(bias, "bias", mistakes)
    return moved(bias, mistakes, "bias-of-next", "bias-of-one-before", "bias-of-first")


def to_float32(x, mistakes):
    t = x.astype(f4)
    if "x-truncated" in mistakes:
        t = np.where(np.abs(t.astype(f8)) > np.abs(x.astype(f8)), np.nextafter(t, f4(0)), t)
    return in_type(t, "float16") if "x-float16" in mistakes else t


def sums(x, bias, mistakes):
    """The sums of products, with an int32 bias."""
    if bias is None or bias.dtype != np.int32 or "bias-left-out" in mistakes or "bias-after-scaling" in mistakes:
        total = x
    elif "bias-float" in mistakes:
        return to_float32(x, mistakes) + bias.astype(f4)
    elif "bias-saturates" in mistakes:
        total = np.clip(x.astype(np.int64) + bias, *INT32).astype(np.int32)
    else:
        total = add_wrapping(x, bias)
    for bits in 16, 24:
        total = in_bits(total, bits).astype(np.int32) if f"sums-wrap-{bits}" in mistakes else total
    total = np.clip(total, -(2**15), 2**15 - 1) if "sums-saturate-16" in mistakes else total
    if "x-read-as-float32" in mistakes:
        return read_as(total, "x", mistakes)
    keeps_bits = is_wide(mistakes) or any(name in mistakes for name in FIXED_POINT)
    return total.astype(f8) if keeps_bits else to_float32(total, mistakes)


def read_int4(words, mistakes):
    x = unpack(words)
    if "x-borrowed" in mistakes:
        x[..., 1::2] += x[..., ::2] < 0
    for length, mistake in (2, "x-nibbles-swapped"), (8, "x-words-reversed"):
        if mistake in mistakes:
            x = x.reshape(-1, length)[:, ::-1].reshape(x.shape)
    if "x-awq-order" in mistakes:
        x = x.reshape(-1, 8)[:, np.argsort(AWQ)].reshape(x.shape)
    for length in 8, 32:
        if f"x-halves-of-{length}" in mistakes:
            pairs = x.reshape(-1, length // 2, 2)
            x = np.concatenate([pairs[..., 0], pairs[..., 1]], axis=1).reshape(x.shape)
    if "x-minus-8" in mistakes:
        return (x & 15) - 8
    return x & 15 if "x-unsigned-int4" in mistakes else x


def read_x(call, mistakes):
    """x of anti_quant."""
    is_int4 = call.types["x"] == "quint4x2"
    x = read_int4(call.inputs["x"], mistakes) if is_int4 else call.inputs["x"]
    x = read_as(x, "x", mistakes)
    if "x-minus-128" in mistakes:
        x = x.view(np.uint8).astype(np.int16) - 128
    if "x-fractal-nz" in mistakes:
        width = 64 if is_int4 else 32
        x = x.reshape(-1, x.size // x.shape[-1], width).swapaxes(0, 1).reshape(x.shape)
    return x


# ---- fixed-point scales ----


def halved(values, shift, up):
    """int64 values by 2^shift, rounded: halves up, or away from zero."""
    half = np.int64(1) << np.minimum(shift, 62) >> 1
    sign = 1 if up else np.where(values < 0, -1, 1)
    return np.where(shift > 62, 0, sign * (sign * values + half >> np.minimum(shift, 62)))


def gemmlowp(product, shift):
    return halved(halved(product, 31, True), shift, False)


FIXED_POINT = {
    "gemmlowp": gemmlowp,
    "fixed-point-away": lambda product, shift: halved(product, 31 + shift, False),
    "fixed-point-up": lambda product, shift: halved(product, 31 + shift, True),
}


def by_fixed_point(total, scale, scaled):
    """The scale is 31 bits and a shift. One that is not finite has no such form."""
    fraction, exponent = np.frexp(np.where(np.isfinite(scale), scale, 0).astype(f8))
    x = np.clip(np.ldexp(total, np.maximum(exponent, 0)), *INT32).astype(np.int64)
    whole = scaled(x * np.ldexp(fraction, 31).astype(np.int64), np.maximum(-exponent, 0).astype(np.int64))
    return np.where(np.isfinite(scale), whole, total * scale)


# ---- results ----


def stored(t, dtype, mistakes):
    """Values in the floating-point type of the result."""
    t = (t.astype(f4) if "float64-to-float32" in mistakes else t).astype(f8)
    t = np.where(t < 0, 0.0, t) if "relu" in mistakes else t
    for other in {"float16", "bfloat16"} - {dtype}:
        if f"through-{other}" in mistakes:
            t = floats(float64_to_type(t, other)).astype(f8)
    rounded_from = t
    if "result-half-away" in mistakes:  # the smallest change that takes a half beyond the middle
        rounded_from = np.where(np.isfinite(t), (t.view(np.int64) | 1).view(f8), t)
    y = float64_to_type(rounded_from, dtype)
    bits = y.view(f"u{y.itemsize}")
    if "nan-negative" in mistakes:
        bits[np.isnan(t)] |= bits.dtype.type(1 << 8 * y.itemsize - 1)
    if dtype == "float32":
        return y
    if "result-truncated" in mistakes:
        bits -= np.abs(floats(y)) > np.abs(t)
    if "result-finite" in mistakes:
        bits -= np.isinf(floats(y))
    if "result-flushed" in mistakes:
        bits[np.abs(floats(y)) < 2**-14] &= 0x8000
    return y


def clamped(t, limits, mistakes):
    """Rounded to whole numbers within limits."""
    nan = limits[0] if "nan-low" in mistakes else limits[1] if "nan-high" in mistakes else 0
    return np.where(np.isnan(t), nan, np.clip(before_clamp(rounded(t, mistakes), mistakes), *limits))


def to_int8(p, offset, machine):
    """p of requant, rounded, with the word's offset."""
    mistakes = machine.mistakes
    int8 = (0, 255) if "unsigned-int8" in mistakes else (-127 if "symmetric-range" in mistakes else -128, 127)
    if "offset-before-rounding" in mistakes:
        q = clamped(machine.sum(p, offset), INT32, mistakes)
    else:
        limits = INT32 if "one-clamp" in mistakes else int8 if "clamp-int8-first" in mistakes else NINE_BITS
        q = clamped(p, limits, mistakes) + offset
    q = (q if "wrap" in mistakes else np.clip(q, *int8)).astype(np.int64)
    return represented(q, "int8", mistakes).astype(np.int8)


# ---- operators ----


def anti_quant(call, mistakes):
    x = read_x(call, mistakes)
    shape, x = x.shape, x.reshape(-1, x.shape[-1])
    machine = Scaling(mistakes)
    scale = of_columns(read_parameter(call.inputs["scale"], "scale", mistakes, "all"), "scale", shape, mistakes)

    def scaled(t):
        return kept(machine.compute(np.divide if "opposite" in mistakes else np.multiply, t, scale), mistakes, "all")

    if "offset" not in call.inputs or "offset-left-out" in mistakes:
        t = scaled(x)
    else:
        z = of_columns(read_parameter(call.inputs["offset"], "offset", mistakes, "all"), "offset", shape, mistakes)
        z = np.rint(z) if "offset-integer" in mistakes else -z if "offset-negated" in mistakes else z
        if "distributed" in mistakes:
            t = machine.fused(x, scale, machine.product(z, scale))
        elif "two-products" in mistakes:
            t = machine.sum(machine.product(x, scale), machine.product(z, scale))
        elif "scaled-before-offset" in mistakes:
            t = machine.sum(scaled(x), z)
        else:
            t = scaled(machine.sum(x, z))
    return stored(t, call.arguments["dtype"], mistakes).reshape(shape)


def dequant(call, mistakes):
    shape = call.inputs["x"].shape
    x = call.inputs["x"].reshape(-1, shape[-1])
    bias = read_bias(call, mistakes)
    machine = Scaling(mistakes)
    factors = [of_columns(read_parameter(call.inputs["weight_scale"], "scale", mistakes), "scale", shape, mistakes)]
    if "activation_scale" in call.inputs and "row-scale-left-out" not in mistakes:
        row_scale = call.inputs["activation_scale"].reshape(-1)
        row_scale = placed(row_scale, ["scale"], "row", mistakes)
        factors.append(row_scale[:, None])
        if "scales-first" in mistakes:
            factors = [machine.compute(np.multiply, *factors)]
        elif "row-scale-first" in mistakes:
            factors.reverse()
    t = sums(x, bias, mistakes)
    late_bias = bias is not None and (bias.dtype != np.int32 or "bias-after-scaling" in mistakes)
    if not late_bias or "bias-left-out" in mistakes:
        place = None
    elif "bias-before-scaling" in mistakes:
        place = 0
        t = machine.sum(t, floats(bias))
    else:
        place = 1 if "bias-before-row-scale" in mistakes else len(factors)
    for i, factor in enumerate(factors, 1):
        if i == place and "fused" in mistakes:
            t = machine.fused(t, factor, floats(bias))
        else:
            t = machine.product(t, factor)
            t = kept(t, mistakes, "first-product") if i == 1 else t
            t = machine.sum(t, floats(bias)) if i == place else t
    return stored(t, call.arguments["dtype"], mistakes).reshape(shape)


def requant(call, mistakes):
    shape = call.inputs["x"].shape
    x = call.inputs["x"].reshape(-1, shape[-1])
    bias = read_bias(call, mistakes)
    words = of_columns(call.inputs["words"].reshape(-1).view(np.uint64), "word", shape, mistakes)
    machine = Scaling(mistakes)
    scale = (words & (0xFFFFFFFF if "all-scale-bits" in mistakes else 0xFFFFE000)).astype(np.uint32).view(f4)
    total, scale = sums(x, bias, mistakes), kept(scale, mistakes, "scale")
    p = next((by_fixed_point(total, scale, scaled) for name, scaled in FIXED_POINT.items() if name in mistakes), None)
    p = machine.product(total, scale) if p is None else p
    if bias is not None and "bias-after-scaling" in mistakes:
        p = machine.sum(p, floats(bias))
    if call.arguments["dtype"] == "float16":
        return stored(p, "float16", mistakes).reshape(shape)
    offset = (words >> 37 & 0x1FF).astype(np.int64)
    if "offset-unsigned" not in mistakes:
        offset = np.where(offset > 255, offset - 512, offset)
    offset = moved(offset, mistakes, "offset-of-next", "offset-of-one-before", "offset-of-first")
    offset = offset * 0 if "offset-left-out" in mistakes else -offset if "offset-negated" in mistakes else offset
    return to_int8(p, offset, machine).reshape(shape)


KERNELS = {operator.__name__: kernel_of_y(operator) for operator in (anti_quant, dequant, requant)}
