# SPDX-License-Identifier: BSD-3-Clause
"""Calls with usual inputs: normal values, usual scales, no special values."""
import numpy as np
from calls import Call
from numpy_operators import RANGES, pack, round_to, trans_quant_param

ROWS, COLUMNS = 32, 64  # of the hard inputs that give types and shapes


def normal_call(rows, columns, seed, operator, **arguments):
    """A call of an operator with normal values as inputs."""
    words = operator == "trans_quant_param"
    call = Call(operator, (COLUMNS,) if words else (ROWS, COLUMNS), **arguments)
    lengths = {ROWS: rows, COLUMNS: columns}
    shapes = {name: [lengths.get(length, length) for length in array.shape] for name, array in call.inputs.items()}
    if not words:
        shapes["x"] = [rows, columns]  # also of int4, whose array holds words
    values = MAKERS.get(operator, of_data_alone)(call, shapes, np.random.default_rng(seed))
    call.inputs = {name: in_type(make(), call.types[name]) for name, make in values.items() if name in call.inputs}
    return call


def in_type(values, dtype):
    if dtype == "quint4x2":
        return pack(values)
    return round_to(values.astype(np.float32), dtype) if dtype == "bfloat16" else values.astype(dtype)


def factors(rng, shape, size):
    """Values that differ by up to a factor of two."""
    return rng.uniform(0.7, 1.4, shape) * size


def zero_points(rng, shape, around=0):
    """Whole numbers, as toolkits make them."""
    return rng.integers(around - 8, around + 9, shape)


def steps(call):
    """Four standard deviations reach the positive end of the range: some values saturate."""
    low, high = RANGES[call.arguments["dtype"]]
    return (high - low) / 2 / 4


def group_ends(call, shapes, rng):
    rows = shapes["x"][0]
    ends = np.sort(rng.integers(1, rows, shapes["group_index"]))
    ends[-1] = rows
    return ends


def quantize(call, shapes, rng):
    power = -1 if call.arguments["div_mode"] else 1
    middle = 128 if call.arguments["dtype"] == "uint8" else 0
    return {
        "x": lambda: rng.normal(size=shapes["x"]),
        "scales": lambda: factors(rng, shapes["scales"], steps(call)) ** power,
        "zero_points": lambda: zero_points(rng, shapes["zero_points"], middle),
    }


def group_quant(call, shapes, rng):
    return {
        "x": lambda: rng.normal(size=shapes["x"]),
        "scale": lambda: factors(rng, shapes["scale"], steps(call)),
        "group_index": lambda: group_ends(call, shapes, rng),
        "offset": lambda: zero_points(rng, shapes["offset"]),
    }


def of_data_alone(call, shapes, rng):
    """For operators that find their scales."""
    return {
        "x": lambda: rng.normal(size=shapes["x"]),
        "group_index": lambda: group_ends(call, shapes, rng),
        "smooth_scales": lambda: factors(rng, shapes["smooth_scales"], 1),
    }


def anti_quant(call, shapes, rng):
    low, high = RANGES[call.types["x"]]
    return {
        "x": lambda: np.clip(np.rint(rng.normal(size=shapes["x"]) * high / 4), low, high).astype(np.int64),
        "scale": lambda: factors(rng, shapes["scale"], 0.01),
        "offset": lambda: zero_points(rng, shapes["offset"]),
    }


def sums(call, shapes, rng):
    """Of 4096 products of int8: their standard deviation is some 100,000."""
    in_float = call.types.get("bias") != "int32"
    return {
        "x": lambda: np.rint(rng.normal(size=shapes["x"]) * 1e5),
        "weight_scale": lambda: factors(rng, shapes["weight_scale"], 1e-3),
        "activation_scale": lambda: factors(rng, shapes["activation_scale"], 0.02),
        "words": lambda: words(rng, shapes["words"]),
        "bias": lambda: rng.normal(size=shapes["bias"]) if in_float else np.rint(rng.normal(size=shapes["bias"]) * 5e4),
    }


def sum_scales(rng, shape):
    return factors(rng, shape, 127 / 4e5).astype(np.float32)


def words(rng, shape):
    return trans_quant_param(sum_scales(rng, shape), zero_points(rng, shape).astype(np.float32), 0)


def scales_and_offsets(call, shapes, rng):
    return {
        "scale": lambda: sum_scales(rng, shapes["scale"]),
        "offset": lambda: zero_points(rng, shapes["offset"]),
    }


MAKERS = {
    "quantize": quantize,
    "group_quant": group_quant,
    "trans_quant_param": scales_and_offsets,
    "anti_quant": anti_quant,
    "dequant": sums,
    "requant": sums,
}
