# SPDX-License-Identifier: BSD-3-Clause
"""Calls with usual inputs: normal values, usual scales, no special values."""
import numpy as np
from calls import Call
from npuquant_facts.operators import OPERATORS, extents
from numpy_operators import MX_TYPES, RANGES, SMALL, pack, round_to, small_value, to_small, trans_quant_param

ROWS, COLUMNS = 32, 64  # of the hard inputs that give types and shapes
IN_GROUPS = 128, 256  # the same, where scales may be in tiles
ROLES = ("X", "SCALE", "GROUPS", "OFFSET", "SMOOTH", "ROW_SCALE", "BIAS")  # in this order they are drawn


def normal_call(rows, columns, seed, operator, **arguments):
    """A call of an operator with normal values as inputs."""
    data, *others = OPERATORS[operator].inputs
    words = "MAKES_WORDS" in OPERATORS[operator].traits
    in_groups = OPERATORS[operator].traits & {"MICROSCALES", "READS_CODES"}
    call = Call(operator, (COLUMNS,) if words else IN_GROUPS if in_groups else (ROWS, COLUMNS), **arguments)
    lengths, rng = {ROWS: rows, COLUMNS: columns}, np.random.default_rng(seed)
    names = {"X": next(iter(call.inputs)), **{row.role: row.name for row in others if row.name in call.inputs}}
    for role in ROLES:
        if role in names:
            name = names[role]
            shape = [lengths.get(length, length) for length in call.inputs[name].shape]
            if role == "X" and not words:
                shape = [rows, columns]  # also of int4, whose array holds words
            if name == "mxscale":
                shape = extents("OF_PAIRS", (rows, columns), block=call.arguments["block_size"], axis=call.arguments["axis"])
            values = DRAW[role](call, OPERATORS[operator].traits, shape, rng)
            call.inputs[name] = in_type(values, call.types[name])
    return call


def in_type(values, dtype):
    if dtype == "quint4x2":
        return pack(values)
    return round_to(values.astype(np.float32), dtype) if dtype == "bfloat16" else values.astype(dtype)


def factors(rng, shape, size):
    """Values that differ by up to a factor of two."""
    return rng.uniform(0.7, 1.4, shape) * size


def sum_scales(rng, shape):
    return factors(rng, shape, 127 / 4e5).astype(np.float32)


def x(call, traits, shape, rng):
    if "MAKES_WORDS" in traits:
        return sum_scales(rng, shape)
    values = rng.normal(size=shape)
    if "READS_SUMS" in traits:  # of 4096 products of int8: their standard deviation is some 100,000
        return np.rint(values * 1e5)
    if "READS_NARROW" in traits:
        low, high = RANGES[call.types["x"]]
        return np.clip(np.rint(values * high / 4), low, high).astype(np.int64)
    if "READS_CODES" in traits:
        codes = to_small(values.astype(np.float32), call.arguments["src_type"], "rint")
        return codes[..., ::2] | codes[..., 1::2] << 4 if MX_TYPES[call.arguments["src_type"]] == 7 else codes
    return values


def scale(call, traits, shape, rng):
    if "READS_WORDS" in traits:
        return trans_quant_param(sum_scales(rng, shape), offset(call, traits, shape, rng).astype(np.float32), 0)
    if "READS_CODES" in traits:
        return rng.integers(118, 123, shape)
    if "READS_SUMS" in traits:
        return factors(rng, shape, 1e-3)
    if "READS_NARROW" in traits:
        return factors(rng, shape, 0.01)
    # Four standard deviations reach the positive end of the range: some values saturate.
    dtype = call.arguments["dtype"]
    low, high = RANGES[dtype] if dtype in RANGES else np.multiply([-1, 1], small_value(dtype, SMALL[dtype]))
    return factors(rng, shape, (high - low) / 2 / 4) ** (-1 if call.arguments.get("div_mode") else 1)


def offset(call, traits, shape, rng):
    """Whole numbers, as toolkits make them."""
    return rng.integers(-8, 9, shape) + (128 if call.arguments["dtype"] == "uint8" else 0)


def group_ends(call, traits, shape, rng):
    rows = len(call.inputs["x"])
    ends = np.sort(rng.integers(1, rows, shape))
    ends[-1] = rows
    return ends


def bias(call, traits, shape, rng):
    values = rng.normal(size=shape)
    return np.rint(values * 5e4) if call.types["bias"] == "int32" else values


DRAW = {"X": x, "SCALE": scale, "GROUPS": group_ends, "OFFSET": offset, "BIAS": bias,
        "SMOOTH": lambda call, traits, shape, rng: factors(rng, shape, 1),
        "ROW_SCALE": lambda call, traits, shape, rng: factors(rng, shape, 0.02)}
