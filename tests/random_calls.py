# SPDX-License-Identifier: BSD-3-Clause
"""Random calls of each operator, with the results that NumPy computes, for tests of the command and of the package."""
import math
from typing import Any, Callable, Dict, NamedTuple

import numpy as np
from npuquant_facts.operators import OPERATORS
from numpy_operators import (ROUNDINGS, SMALL, anti_mx_quant, anti_quant, dequant, dynamic,
                             dynamic_block_quant, dynamic_block_quant_float8, dynamic_mx_quant, dynamic_quant,
                             dynamic_quant_float8, f4, group_quant, pack, quant_matmul, quantize, random_ends,
                             random_floats, random_integers, random_mx_call, random_shape, random_words, requant, rng,
                             trans_quant_param)

FLOATS = ("float16", "bfloat16", "float32")


class RandomCall(NamedTuple):
    """Inputs by the names of the command and the package; None is an optional input that is left out."""

    inputs: Dict[str, Any]
    options: Dict[str, Any]
    results: Dict[str, np.ndarray]


def choose(*values):
    return values[rng.integers(len(values))]


def of_columns(columns):
    """The number of a parameter's elements: one for each column, or one."""
    return columns if rng.random() < 0.8 else 1


def random_quantize():
    div_mode = choose(False, True)
    dtype = choose(*SMALL) if rng.random() < 0.5 else (
        choose("int8", "uint8", "int32") if div_mode else choose("int8", "quint4x2"))
    x = random_floats(random_shape(1, 8 if rng.random() < 0.1 else 4, 8 if dtype == "quint4x2" else 1))
    axis = int(rng.integers(-x.ndim if div_mode else -min(2, x.ndim), x.ndim))
    dimension = axis % x.ndim if div_mode else x.ndim - (2 if axis == -2 else 1)
    shape = [of_columns(x.shape[dimension])]
    if not div_mode and rng.random() < 0.3:
        shape = [shape[0] if d == dimension else 1 for d in range(x.ndim)]
    scales = random_floats(shape, size=2.0, special=0.05)
    zero_points = None
    if rng.random() < 0.7:
        if div_mode and rng.random() < 0.5:
            zero_points = rng.integers(0, 100, size=shape).astype(choose("i1", "u1", "i4"))
        else:
            zero_points = random_floats(shape, scales.dtype.str if not div_mode else None, special=0)
    return RandomCall({"x": x, "scales": scales, "zero_points": zero_points},
                      {"axis": axis, "div_mode": div_mode, "dtype": dtype},
                      {"y": quantize(x, scales, zero_points, axis, div_mode, dtype)})


def random_group_quant():
    dtype = choose("int8", "quint4x2")
    x = random_floats(random_shape(2, 2, 8))
    groups = int(rng.integers(1, 6))
    scale = random_floats((groups, x.shape[1]), size=3.0)
    ends = random_ends(groups, len(x))
    offset = random_floats(choose((), 1), scale.dtype.str) if rng.random() < 0.5 else None
    return RandomCall({"x": x, "scale": scale, "group_index": ends, "offset": offset}, {"dtype": dtype},
                      {"y": group_quant(x, scale, ends, offset, dtype)})


def random_trans_quant_param():
    count = int(rng.integers(1, 50))
    bits = rng.integers(0, 2**32, size=count, dtype=np.uint32)
    ties = rng.random(count) < 0.5  # between two scales of round_mode 1
    scale = np.where(ties, bits & 0xFFFFE000 | 0x1000, bits).astype(np.uint32).view(f4)
    offset = random_floats(count, "f4", size=200.0)
    row = (1, -1)
    scale, offset, shape = choose(
        (scale, offset, (-1,)), (scale, None, (-1,)), (scale[:1], offset, (-1,)), (scale, offset[:1], (-1,)),
        (scale.reshape(row), offset.reshape(row), row), (scale.reshape(row), offset, row),
        (scale[:1].reshape(row), offset, row), (scale[:1], offset.reshape(row), row),
        (scale, offset.reshape(row), row if count == 1 else (-1,)), (scale.reshape(-1, 1), None, (-1, 1)))
    mode = int(rng.integers(2))
    return RandomCall({"scale": scale, "offset": offset}, {"round_mode": mode},
                      {"y": trans_quant_param(scale, offset, mode).astype("i8").reshape(shape)})


def random_dynamic(*types):
    """x, smooth_scales, group_index, whether the call is per tensor, and the type of y, perhaps one of types."""
    x = random_floats(random_shape(2, 4, 8), special=choose(0, 0.02))
    smooth = ends = None
    kind = choose("plain", "smooth", "groups", "per tensor")
    if kind == "smooth":
        smooth = random_floats(x.shape[-1], size=2.0, special=0.01)
    elif kind == "groups":
        groups = int(rng.integers(1, 5))
        smooth = random_floats((groups, x.shape[-1]), size=2.0, special=0.01)
        ends = random_ends(groups, math.prod(x.shape[:-1]))
    return x, smooth, ends, kind == "per tensor", choose("int8", "quint4x2", *types)


def dynamic_call(x, smooth, ends, per_tensor, dtype, results, **options):
    return RandomCall({"x": x, "smooth_scales": smooth, "group_index": ends},
                      {"quant_mode": "pertensor" if per_tensor else "pertoken", "dtype": dtype, **options},
                      dict(zip(("y", "scale", "offset"), results)))


def random_dynamic_quant():
    *arguments, dtype = random_dynamic("uint8")
    form = choose("product", "inverse")
    return dynamic_call(*arguments, dtype, dynamic_quant(*arguments, form, dtype), scale_form=form)


def random_dynamic_quant_float8():
    *arguments, _ = random_dynamic()
    dtype = choose(*SMALL)
    most = float(choose(0, 15, f4(0.1))) if dtype == "hifloat8" else 0.0
    return dynamic_call(*arguments, dtype, dynamic_quant_float8(*arguments, most, dtype), dst_type_max=most)


def random_dynamic_quant_asymmetric():
    arguments = random_dynamic()
    return dynamic_call(*arguments, dynamic(*arguments))


def random_dynamic_block_quant():
    dtype = choose("int8", "quint4x2", "uint8")
    x = random_floats(random_shape(1, 4, 8), special=choose(0, 0.02))
    block = choose(8, 16, 32, 64, 128) if dtype == "quint4x2" else int(rng.integers(1, x.shape[-1] + 9))
    min_scale = float(choose(0, f4(2.0) ** rng.integers(-12, 8), 50))
    y, scale = dynamic_block_quant(x, block, min_scale, dtype)
    return RandomCall({"x": x}, {"block": block, "min_scale": min_scale, "dtype": dtype}, {"y": y, "scale": scale})


def random_dynamic_block_quant_float8():
    dtype = choose(*SMALL)
    x = random_floats(random_shape(2, 4), special=choose(0, 0.02))
    row_block, block = (int(rng.integers(1, extent + 3)) for extent in x.shape[-2:])
    min_scale = float(choose(0, f4(2.0) ** rng.integers(-12, 8), 50))
    most = float(choose(0, 15, 56, 224, 32768)) if dtype == "hifloat8" else 0.0
    results = dynamic_block_quant_float8(x, row_block, block, min_scale, most, dtype)
    return RandomCall({"x": x}, {"row_block": row_block, "block": block, "min_scale": min_scale, "dst_type_max": most,
                                 "dtype": dtype}, dict(zip(("y", "scale"), results)))


def random_dynamic_mx_quant():
    shape, axis, (block, rounding, *others), dtype = random_mx_call()
    x = random_floats(shape, special=choose(0, 0.02))
    results = dynamic_mx_quant(x, axis, block or 32, rounding, *others, dtype)
    names = "scale_alg", "small_groups", "dst_type_max", "max_low_bound", "bad_groups"
    return RandomCall({"x": x}, {"axis": axis, "block_size": block or 32, "round_mode": ROUNDINGS[rounding],
                                 **dict(zip(names, others)), "dtype": dtype}, dict(zip(("y", "mxscale"), results)))


def random_anti_mx_quant():
    """Of any codes and scales, in the shapes that the way there gives."""
    call, dtype = random_dynamic_mx_quant(), choose(*FLOATS)
    axis, block, source = (call.options[name] for name in ("axis", "block_size", "dtype"))
    x, mxscale = (rng.integers(0, 256, size=made.shape, dtype=np.uint8) for made in call.results.values())
    return RandomCall({"x": x, "mxscale": mxscale},
                      {"axis": axis, "block_size": block, "src_type": source, "dtype": dtype},
                      {"y": anti_mx_quant(x, mxscale, axis, block, source, dtype)})


def random_anti_quant():
    dtype = choose(*FLOATS)
    x = random_integers(random_shape(1, 4), choose("i1", "i4"))  # int32: words of int4
    columns = x.shape[-1] * (8 if x.dtype == np.int32 else 1)
    groups = math.gcd(len(x), int(rng.integers(1, 7)))
    shape = (groups, columns) if x.ndim == 2 and rng.random() < 0.5 else of_columns(columns)
    scale = random_floats(shape, size=10.0 ** rng.integers(-6, 4))
    offset = random_floats(shape, scale.dtype.str) if rng.random() < 0.7 else None
    return RandomCall({"x": x, "scale": scale, "offset": offset}, {"dtype": dtype},
                      {"y": anti_quant(x, scale, offset, dtype)})


def random_dequant():
    dtype = choose(*FLOATS)
    x = random_integers(random_shape(1, 4), "i4")
    columns = x.shape[-1]
    scale = random_floats(of_columns(columns), size=10.0 ** rng.integers(-9, 1))
    rows = random_floats(x.shape[:-1], "f4", size=2.0) if rng.random() < 0.5 else None
    bias = choose(None, random_integers(columns, "i4"), random_floats(columns))
    return RandomCall({"x": x, "weight_scale": scale, "activation_scale": rows, "bias": bias}, {"dtype": dtype},
                      {"y": dequant(x, scale, rows, bias, dtype)})


def random_words_of(columns, dtype):
    """In each shape that words may have."""
    words = random_words(of_columns(columns), dtype)
    return words[None] if len(words) == columns and rng.random() < 0.3 else words


def random_requant():
    dtype = choose("int8", "float16")
    x = random_integers(random_shape(1, 4), "i4")
    words = random_words_of(x.shape[-1], dtype)
    bias = random_integers(x.shape[-1], "i4") if rng.random() < 0.5 else None
    return RandomCall({"x": x, "words": words, "bias": bias}, {"dtype": dtype}, {"y": requant(x, words, bias, dtype)})


def random_matrices(multiples):
    """With batch dimensions of all kinds that can be broadcast, and the shape of the product."""
    rows, terms, columns = (int(extent) for extent in rng.integers(0 if rng.random() < 0.1 else 1, 9, size=3))
    terms, columns = terms * multiples[0], columns * multiples[1]
    batch = tuple(int(extent) for extent in rng.integers(1, 4, size=rng.integers(0, 4)))
    batches = []
    for _ in range(2):
        ones = [1 if rng.random() < 0.3 else extent for extent in batch]
        batches.append(tuple(ones[rng.integers(len(batch) + 1):] if rng.random() < 0.5 else ones))
    x1, x2 = random_integers((*batches[0], rows, terms), "i1"), random_integers((*batches[1], terms, columns), "i1")
    return x1, x2, (*np.broadcast_shapes(*batches), rows, columns)


def pack_columns(values):
    """Words of eight int4 that run along the columns: the transpose of words along the rows."""
    return np.swapaxes(pack(np.swapaxes(values, -1, -2)), -1, -2)


def random_quant_matmul():
    """Of int8, or of int4 whose words run along K or N in x2."""
    kind = choose("int8", "int4, x2 along K", "int4, x2 along N")
    x1, x2, shape = random_matrices({"int8": (1, 1), "int4, x2 along K": (8, 1), "int4, x2 along N": (8, 8)}[kind])
    given = x1, x2
    if kind != "int8":
        x1, x2 = x1 >> 4, x2 >> 4
        # Without terms the shape is that of words along K.
        given = pack(x1), (pack if "N" in kind and x1.shape[-1] > 0 else pack_columns)(x2)
    dtype = choose("int8", "int32", *FLOATS)
    pertoken = offset = bias = None
    if dtype in FLOATS and rng.random() < 0.6:
        pertoken = random_floats(choose(shape[-2], shape[:-1]), "f4", special=0.05)
    requantised = dtype == "int8" or (dtype == "float16" and pertoken is None)
    count = max(1, of_columns(shape[-1]))
    if requantised and rng.random() < 0.5:
        scale = random_words_of(shape[-1], dtype)
    else:
        scale = random_floats(count, "f4" if requantised else choose("f4", "u2"), size=1e-2, special=0.05)
    if dtype == "int8" and rng.random() < 0.5:  # beside words too, where it changes nothing
        offset = random_floats(choose(1, count), "f4", size=200.0, special=0.05)
    if rng.random() < 0.6:
        bias = random_integers(shape[-1], "i4")
        bias = bias if requantised or dtype == "int32" else choose(bias, random_floats(shape[-1], special=0.05))
        if len(shape) == 3 and rng.random() < 0.5:
            bias = np.stack([np.roll(bias[None], n) for n in range(shape[0])])
    others = {"scale": scale, "offset": offset, "pertoken_scale": pertoken, "bias": bias}
    return RandomCall({"x1": given[0], "x2": given[1], **others}, {"dtype": dtype},
                      {"y": quant_matmul(x1, x2, **others, dtype=dtype)})


#: By the operator's name in the library.
RANDOM_CALLS: Dict[str, Callable[[], RandomCall]] = {
    name: globals()[f"random_{name}"] for name, facts in OPERATORS.items() if "BY_RULE" not in facts.traits}
