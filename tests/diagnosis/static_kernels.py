# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of quantize, group_quant and trans_quant_param with mistakes."""
import numpy as np
from numeric import (Machine, for_tensor_cores, groups, kept, kernel_of_y, of_other_dimension, packed, read_parameter,
                     read_x, represented, reused, rounded, to_floats, to_integers, with_offset)
from numpy_operators import SMALL

# ---- parameters ----


def read_scale(array, mistakes):
    return for_tensor_cores(read_parameter(array, "scale", mistakes, "operands"), mistakes)


def read_offset(array, mistakes):
    """The offsets as float32; None if the kernel adds none."""
    if array is None or "offset-left-out" in mistakes:
        return None
    values = read_parameter(array, "offset", mistakes, "operands")
    if "offset-integer" in mistakes:
        values = np.rint(values)
    return -values if "offset-negated" in mistakes else values


def taken(index, count, what, mistakes):
    """The index of the scale or offset that is read for each index."""
    if f"{what}-of-first" in mistakes:
        return np.zeros_like(index)
    return (index + (f"{what}-of-next" in mistakes) - (f"{what}-of-one-before" in mistakes)) % count


def channels(shape, dimension, what, mistakes):
    """Indices along a dimension; by mistake, rows instead of columns, or other columns."""
    last = len(shape) - 1
    other = of_other_dimension(shape, mistakes)
    if other is not None:
        return other
    if "other-axis" in mistakes or f"{what}-by-other-axis" in mistakes:
        if dimension == last:
            return np.arange(np.prod(shape[:-1])).reshape(*shape[:-1], 1)
        dimension = last
    return np.arange(shape[dimension]).reshape(-1, *[1] * (last - dimension))


# ---- elements ----


def scaled(x, s, divides, machine, mistakes):
    if "reciprocal" in mistakes:
        return machine.compute(np.multiply, x, machine.compute(np.divide, 1, s))
    if "division" in mistakes:
        return machine.compute(np.divide, x, machine.compute(np.divide, 1, s))
    return machine.compute(np.divide if divides != ("opposite" in mistakes) else np.multiply, x, s)


def quantised(x, s, z, divides, dtype, mistakes):
    """x divided or multiplied by s, plus z, in a type."""
    machine = Machine(mistakes)
    machine.divides_for(dtype)
    if z is not None and "offset-before-scaling" in mistakes:
        x, z = kept(machine.compute(np.add, x, z), mistakes, "sum", "all", "operands"), None
    t = kept(scaled(x, s, divides, machine, mistakes), mistakes, "product", "all", "operands")
    if z is not None:
        t = with_offset(x, t, s, z, dtype, machine, mistakes)
    if dtype in SMALL:
        return to_floats(t, dtype, mistakes)
    whole = represented(to_integers(t, dtype, mistakes), dtype, mistakes)
    return packed(whole, mistakes) if dtype == "quint4x2" else whole.astype(dtype)


# ---- operators ----


def quantize(call, mistakes):
    x = read_x(call.inputs["x"], mistakes)
    scales = read_scale(call.inputs["scales"], mistakes)
    z = read_offset(call.inputs.get("zero_points"), mistakes)
    divides, axis = call.arguments["div_mode"], call.arguments["axis"]
    dimension = axis % x.ndim if divides or axis == -2 else x.ndim - 1

    def of_elements(values, what):
        index = reused(channels(x.shape, dimension, what, mistakes) % values.size, mistakes)
        return values[taken(index, values.size, what, mistakes)]

    s = of_elements(scales, "scale")
    z = None if z is None else of_elements(z, "offset")
    return quantised(x, s, z, divides, call.arguments["dtype"], mistakes)


def group_quant(call, mistakes):
    x = read_x(call.inputs["x"], mistakes)
    scale = read_scale(call.inputs["scale"], mistakes)
    begin = groups(call.inputs["group_index"], len(x), mistakes)[:, None] * x.shape[1]
    if "scale-of-first" not in mistakes:
        begin = taken(begin + reused(np.arange(x.shape[1]), mistakes), scale.size, "scale", mistakes)
    z = read_offset(call.inputs.get("offset"), mistakes)
    return quantised(x, scale.reshape(-1)[begin], z, False, call.arguments["dtype"], mistakes)


def trans_quant_param(call, mistakes):
    scale = call.inputs["scale"]
    bits = (1 / scale if "reciprocal" in mistakes else scale).view(np.uint32).astype(np.uint64)
    if "all-scale-bits" not in mistakes:
        nearest = (call.arguments["round_mode"] == 1) != ("other-round-mode" in mistakes)
        bits = (to_19_bits(bits) if nearest else bits) & 0xFFFFE000
    word = bits | (0 if "no-flag" in mistakes else 1 << 46)
    offset = read_offset(call.inputs.get("offset"), mistakes)
    if offset is not None:
        index = taken(np.arange(offset.size), offset.size, "offset", mistakes)
        whole = rounded(offset.reshape(-1)[index].reshape(offset.shape), mistakes)
        range_ = (-256, 255)
        if "offset-wraps" in mistakes:
            range_ = (-(2**31), 2**31 - 1)  # the conversion saturates to this
        if "offset-int8" in mistakes:
            range_ = (-128, 127)
        field = np.where(np.isnan(whole), 0, np.clip(whole, *range_)).astype(np.int64).astype(np.uint64) & 0x1FF
        word = word | field << 37
    if "halves-swapped" in mistakes:
        word = word << 32 | word >> 32
    return word.view(np.int64)


def to_19_bits(bits):
    """float32 bits rounded half to even at bit 13. Infinities and NaN stay; subnormals become zero."""
    exponent = bits >> 23 & 0xFF
    nearest = bits + 0xFFF + (bits >> 13 & 1)
    return np.where(exponent == 255, bits, np.where(exponent == 0, bits & 0x80000000, nearest))


KERNELS = {operator.__name__: kernel_of_y(operator) for operator in (quantize, group_quant, trans_quant_param)}
