# SPDX-License-Identifier: BSD-3-Clause
"""The operators of the library on arrays, and products of matrices with them."""
from __future__ import annotations

import inspect
from operator import index
from typing import Any, Dict, Optional, Tuple, Union

import numpy as np

from npuquant_facts.dtypes import TYPES
from npuquant_facts.operators import OPTIONS

from . import _native
from ._arguments import (ArgumentError, ArgumentTypeError, _of, _options, check_quant_matmul, check_quant_scatter,
                         listed, names_operator, shown)
from ._matmul import product
from ._tensors import (FLOAT8, INT8, MX, PRODUCTS, QUANTISED, REQUANTISED, SOURCES, Out, Result, TensorLike, arrays,
                       codes_of, described, name_of, output, outputs, result_of, result_type, returned, tensor,
                       to_array, words_shape)
from ._threads import run

__tracebackhide__ = True  # pytest shows the line that calls the package

_INT4, _INT64 = TYPES["quint4x2"], np.dtype(np.int64)


def _one_of(name: str, value: Any, other_name: str, other: Any) -> Any:
    """The value of an argument that has two names."""
    if value is not None and other is not None:
        raise ArgumentTypeError(f"{name}: is given as {other_name} too; expected one of the two")
    return other if value is None else value


def _number(name: str, value: Any) -> int:
    """The library's number of an option's value; a ValueError if the option has no such value."""
    numbers = OPTIONS[name].numbers
    number = numbers.get(value) if isinstance(value, str) else None
    if number is None:
        raise ArgumentError(f"{OPTIONS[name].npu_name}: is {shown(value)}; expected {listed([*map(repr, numbers)])}")
    return number


def _only(name: str, value: Any, only: Any, why: str) -> None:
    """Refuses all values but one: the others select types and blocks that are not defined here."""
    if not isinstance(value, (int, float, str)) or value != only:
        raise ArgumentError(f"{name}: is {shown(value)}; expected {only!r}{why}")


_NO_FLOAT8 = ": others are for types of the series Ascend 950, which npuquant does not implement"


#: What npu_quantize() makes, in messages, by div_mode.
_TO = {mode: f"{listed([*integers, *FLOAT8])}, as div_mode is {str(mode).lower()}"
       for mode, integers in ((True, ("int8", "uint8", "int32")), (False, ("int8", "quint4x2")))}


@names_operator
def npu_quantize(
    input: TensorLike,
    scales: TensorLike,
    zero_points: Optional[TensorLike],
    dtype: Any,
    axis: int = 1,
    div_mode: bool = True,
    *,
    out: Optional[Out] = None,
) -> Union[np.ndarray, Out]:
    """Quantises with given scales and zero points.

    Each step is one float32 operation; sat clamps to the range of dtype, and NaN becomes 0::

        t = input / scales    (div_mode)  or  input * scales
        t = t + zero_points   (unless None)
        y = sat(round half to even(t))

    float8_e4m3fn, float8_e5m2 and hifloat8 take the nearest value of their type; docs/semantics.md says which of two.

    Args:
        input: float32, float16 or bfloat16, 1 to 8 dimensions. The library's messages call it x.
        scales: float32, float16 or bfloat16; 1-D, with 1 element or the extent along the axis. With div_mode=False also
            as many dimensions as input, all 1 except the axis.
        zero_points: None, or the shape of scales. With div_mode=True int8, uint8, int32, float32, float16 or bfloat16;
            with div_mode=False the type of scales.
        dtype: with div_mode=True int8, uint8 or int32; with div_mode=False int8 or quint4x2; with both float8_e4m3fn,
            float8_e5m2 or hifloat8.
        axis: with div_mode=True the dimension that scales run along. With div_mode=False -2 is the last dimension but
            one, and every axis of -1 or more is the last, as on the device. So the default, 1, fits an input of one
            dimension.
        div_mode: True divides by the scales, False multiplies by them.
        out: None, or the array or tensor to write to.

    Returns:
        out, or a new array, of dtype and of the shape of input. For quint4x2 it is int32, with an eighth of the last
        extent. For float8_e4m3fn, float8_e5m2 and hifloat8 it is uint8, with the codes of the type.

    >>> x = np.array([[-1.5, 0.5, 2.5], [100, -100, np.nan]], np.float32)
    >>> npu_quantize(x, np.array([1, 0.5, 2], np.float32), np.array([1, 0, 0], np.int32), np.int8)
    array([[   0,    1,    1],
           [ 101, -128,    0]], dtype=int8)
    """
    if div_mode is not True and div_mode is not False and not isinstance(div_mode, np.bool_):
        raise ArgumentTypeError(f"div_mode: is {type(div_mode).__name__}; expected a bool")
    x = tensor("input", input)
    kind = result_type("dtype", dtype, QUANTISED, _TO[bool(div_mode)])
    y, = outputs("quantize", x.shape, kind, out)
    run(_native.quantize, x, scales, zero_points, axis, bool(div_mode), y, kind.number)
    return returned(y, out)


@names_operator
def npu_group_quant(
    x: TensorLike,
    scale: TensorLike,
    group_index: TensorLike,
    *,
    offset: Optional[TensorLike] = None,
    dst_dtype: Any = None,
    out: Optional[Out] = None,
) -> Union[np.ndarray, Out]:
    """Quantises groups of rows, each group with its own scales.

    Group e owns the rows from group_index[e-1] (0 for e = 0) up to, not including, group_index[e]. Each step is one
    float32 operation::

        t = x * scale[e]
        t = t + offset        (unless None)
        y = sat(round half to even(t))

    Args:
        x: float32, float16 or bfloat16, [S, H].
        scale: float32, float16 or bfloat16, [E, H].
        group_index: int32 or int64, [E]; never decreases, and ends with S.
        offset: None, or one element of the type of scale.
        dst_dtype: int8 (also if None) or quint4x2.
        out: None, or the array or tensor to write to.

    Returns:
        out, or a new array: int8 [S, H], or for quint4x2 int32 [S, H / 8].

    >>> x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    >>> scale = np.array([[1, 1], [10, -10]], np.float32)
    >>> npu_group_quant(x, scale, np.array([1, 3]), offset=np.float32(0.5))
    array([[  2,   2],
           [ 30, -40],
           [ 50, -60]], dtype=int8)
    """
    x = tensor("x", x)
    kind = result_of("group_quant", "dst_dtype", dst_dtype, optional=True)
    y, = outputs("group_quant", x.shape, kind, out)
    run(_native.group_quant, x, scale, group_index, offset, y, kind.number)
    return returned(y, out)


@names_operator
def npu_trans_quant_param(
    scale: TensorLike,
    offset: Optional[TensorLike] = None,
    round_mode: Optional[int] = 0,
    *,
    out: Optional[Out] = None,
) -> Union[np.ndarray, Out]:
    """Packs scales and offsets into the 64-bit words that the matrix unit's requantisation takes.

    Bits 31..0 are the scale's, with the low 13 bits 0. Bits 45..37 are the offset, rounded half to even and clamped to
    -256..255. Bit 46 is 1, and all other bits are 0.

    Args:
        scale: float32, 1-D or 2-D, not empty.
        offset: None, or float32, 1-D or (1, n), with as many elements as scale, or one of the two has one element. If
            scale has the shape (g, n) with g above 1, offset must be None.
        round_mode: 0 (also if None) clears the low 13 bits of a scale; 1 rounds half to even at bit 13 first.
        out: None, or the array or tensor to write to.

    Returns:
        out, or a new array of int64. It has the shape of scale if offset is None, if scale is 2-D, or if scale.shape[0]
        is larger than offset.shape[0]; otherwise the shape of offset. A scale of (1, 1) with an offset of (n,) gives
        (1, n).

    >>> npu_trans_quant_param(np.array([1, 0.1], np.float32), np.array([0, 1.5], np.float32))
    array([70369809530880, 70644658913280])
    """
    scale = tensor("scale", scale)
    offset = None if offset is None else tensor("offset", offset)
    words = output(out, words_shape(scale.shape, None if offset is None else offset.shape), _INT64)
    run(_native.trans_quant_param, scale, offset, 0 if round_mode is None else round_mode, words, TYPES["int64"].number)
    return returned(words, out)


def _dynamic(operator: str, x: Any, kind: Result, quant_mode: Any, out: Any) -> Tuple[int, Any, int]:
    """Of dynamic operators: the library's quant_mode, the results, and the number of the first one's type."""
    if len(x.shape) == 1:  # the library takes it, the device does not
        raise ArgumentError("x: has 1 dimension; expected 2 to 8")
    mode = _number("quant_mode", quant_mode)
    return mode, outputs(operator, x.shape, kind, out, quant_mode == "pertensor"), kind.number


@names_operator
def npu_dynamic_quant_asymmetric(
    x: Optional[TensorLike] = None,
    *,
    smooth_scales: Optional[TensorLike] = None,
    group_index: Optional[TensorLike] = None,
    dst_type: Any = None,
    quant_mode: str = "pertoken",
    dst_type_max: float = 0.0,
    input: Optional[TensorLike] = None,
    out: Optional[Tuple[Out, Out, Out]] = None,
) -> Union[Tuple[np.ndarray, np.ndarray, np.ndarray], Tuple[Out, Out, Out]]:
    """Quantises with scales and offsets found from the data, per row (token) or for the whole tensor.

    Each step is one float32 operation; DMAX and RANGE are 127 and 255 for int8, 7 and 15 for quint4x2::

        v = x                             (x * smooth_scales, unless None)
        hi, lo = max(v), min(v)           over the row, or the tensor; NaN if any v is
        d = (hi - lo) / RANGE
        scale = d if d > 1e-12 else 1e-12
        offset = DMAX - (hi / scale)
        y = sat(round half to even(v * (1 / scale) + offset))

    Args:
        x: float32, float16 or bfloat16, 2 to 8 dimensions, [..., H].
        smooth_scales: None, or float32, float16 or bfloat16: [H], or with group_index [E, H], E up to 1024.
        group_index: None, or int32 or int64, [E], per token only: groups of x's S rows as in npu_group_quant().
        dst_type: int8 (also if None) or quint4x2.
        quant_mode: "pertoken" or "pertensor". The device computes per token only. "pertensor" is an extension: the
            arithmetic of a row for the whole tensor. No device defines its bits.
        dst_type_max: 0.0: other values select types that are not defined here.
        input: another name for x, as versions of torch_npu differ.
        out: None, or the three arrays or tensors to write to.

    Returns:
        The three of out, or new arrays:
        y: int8 of the shape of x; for quint4x2 int32 with an eighth of the last extent.
        scale, offset: float32, per token of shape x.shape[:-1], per tensor [1].

    >>> y, scale, offset = npu_dynamic_quant_asymmetric(np.array([[0, 1, 2, 255], [1, 2, 3, 4]], np.float32))
    >>> y
    array([[-128, -127, -126,  127],
           [-128,  -43,   42,  127]], dtype=int8)
    >>> scale, offset
    (array([1.        , 0.01176471], dtype=float32), array([-128., -213.], dtype=float32))
    """
    x = tensor("x", _one_of("x", x, "input", input))
    kind = result_of("dynamic_quant_asymmetric", "dst_type", dst_type, optional=True)
    _only("dst_type_max", dst_type_max, 0.0, _NO_FLOAT8)
    mode, made, number = _dynamic("dynamic_quant_asymmetric", x, kind, quant_mode, out)
    run(_native.dynamic_quant_asymmetric, x, smooth_scales, group_index, mode, *made, number)
    return returned(made, out)


@names_operator
def npu_dynamic_quant(
    input: TensorLike,
    *,
    smooth_scales: Optional[TensorLike] = None,
    group_index: Optional[TensorLike] = None,
    dst_type: Any = None,
    quant_mode: str = "pertoken",
    dst_type_max: float = 0.0,
    scale_form: str = "product",
    out: Optional[Tuple[Out, Out]] = None,
) -> Union[Tuple[np.ndarray, np.ndarray], Tuple[Out, Out]]:
    """Quantises with scales found from the data, per row (token) or for the whole tensor; symmetric, without offsets.

    Each step is one float32 operation; DMAX is 127 for int8 and uint8, 7 for quint4x2::

        v = input                         (input * smooth_scales, unless None)
        m = max(|v|)                      over the row, or the tensor; NaN if any v is
        r = DMAX / m
        y = sat(round half to even(v * r))    (uint8: of int8, plus 128)
        scale = m * (1 / DMAX)            ("product")  or  1 / r  ("inverse")

    Args:
        input: float32, float16 or bfloat16, 2 to 8 dimensions, [..., H]. The library's messages call it x.
        smooth_scales, group_index, quant_mode: as for npu_dynamic_quant_asymmetric().
        dst_type: int8 (also if None), quint4x2, or uint8, which is an extension. Or float8_e4m3fn, float8_e5m2 or
            hifloat8: see dynamic_quant_float8().
        dst_type_max: 0.0; for hifloat8 as for dynamic_quant_float8().
        scale_form: "product" for CANN 9.0 and later and rows of up to about 16,000 elements without groups; otherwise
            "inverse". y is the same in both: see docs/operators/dynamic_quant.md, "The two forms of the scale".
        out: None, or the two arrays or tensors to write to.

    Returns:
        The two of out, or new arrays:
        y: int8 or uint8 of the shape of input; for quint4x2 int32 with an eighth of the last extent.
        scale: float32, per token of shape input.shape[:-1], per tensor [1].

    >>> y, scale = npu_dynamic_quant(np.array([[0.5, -1.25, 3, 0], [254, 2, -4, 1]], np.float32))
    >>> y
    array([[ 21, -53, 127,   0],
           [127,   1,  -2,   0]], dtype=int8)
    >>> scale
    array([0.02362205, 2.        ], dtype=float32)
    """
    form = _number("scale_form", scale_form)
    x = tensor("input", input)
    kind = result_of("dynamic_quant", "dst_type", dst_type, optional=True)
    if kind.name in FLOAT8:
        _only("scale_form", scale_form, "product", f", as y is {kind.name}")
        return _dynamic_quant_float8(x, smooth_scales=smooth_scales, group_index=group_index, dst_type=dst_type,
                                     quant_mode=quant_mode, dst_type_max=dst_type_max, out=out)
    _only("dst_type_max", dst_type_max, 0.0, f", as y is {kind.name}")
    mode, made, number = _dynamic("dynamic_quant", x, kind, quant_mode, out)
    run(_native.dynamic_quant, x, smooth_scales, group_index, mode, form, *made, number)
    return returned(made, out)


@names_operator
def dynamic_quant_float8(
    input: TensorLike,
    *,
    smooth_scales: Optional[TensorLike] = None,
    group_index: Optional[TensorLike] = None,
    dst_type: Any = "float8_e4m3fn",
    quant_mode: str = "pertoken",
    dst_type_max: float = 0.0,
    out: Optional[Tuple[Out, Out]] = None,
) -> Union[Tuple[np.ndarray, np.ndarray], Tuple[Out, Out]]:
    """Quantises to 8-bit floats with scales found from the data, per row (token) or for the whole tensor.

    npu_dynamic_quant() calls it for these types, as the Ascend 950 has them. Each step is one float32 operation; DMAX
    is 448 for float8_e4m3fn, 57344 for float8_e5m2, and dst_type_max or 32768 for hifloat8::

        v = input                         (input * smooth_scales, unless None)
        m = max(|v|)                      over the row, or the tensor; NaN if any v is
        scale = m * (1 / DMAX)
        y = sat(v / scale)                subnormal operands and quotients are zeros

    Args:
        input, smooth_scales, group_index, quant_mode: as for npu_dynamic_quant().
        dst_type: float8_e4m3fn, float8_e5m2 or hifloat8.
        dst_type_max: what the largest magnitude becomes in hifloat8; 0.0 means 32768. For the other types 0.0.
        out: None, or the two arrays or tensors to write to.

    Returns:
        The two of out, or new arrays:
        y: uint8, the codes of the type, of the shape of input.
        scale: float32, per token of shape input.shape[:-1], per tensor [1].

    >>> x = np.array([[0.5, -1.25, 3, 0]], np.float32)
    >>> y, scale = dynamic_quant_float8(x, dst_type="hifloat8", dst_type_max=15)
    >>> y
    array([[ 18, 164,  47,   0]], dtype=uint8)
    >>> scale
    array([0.20000002], dtype=float32)
    """
    x = tensor("input", input)
    kind = result_of("dynamic_quant_float8", "dst_type", dst_type)
    mode, made, number = _dynamic("dynamic_quant_float8", x, kind, quant_mode, out)
    run(_native.dynamic_quant_float8, x, smooth_scales, group_index, mode, dst_type_max, *made, number)
    return returned(made, out)


_dynamic_quant_float8 = inspect.unwrap(dynamic_quant_float8)  # whose refusals name the function that was called


def _extent(value: Any) -> int:
    """That of a block. The extension and the library say what is wrong with it."""
    try:
        return max(index(value), 1)
    except TypeError:
        return 1


def _block(kind: Result, rows: Any, columns: Any, round_mode: Any, dst_type_max: Any) -> Dict[str, Any]:
    """A block as extents() takes it. Refuses what the type of y does not have."""
    why = f", as y is {kind.name}"
    _only("round_mode", round_mode, "round" if kind.name == "hifloat8" else "rint", why)
    if kind.name not in FLOAT8:
        _only("row_block_size", rows, 1, why)
        _only("dst_type_max", dst_type_max, 0.0, why)
    return {"row_block": _extent(rows), "block": _extent(columns)}


@names_operator
def npu_dynamic_block_quant(
    x: TensorLike,
    *,
    min_scale: float = 0.0,
    round_mode: str = "rint",
    dst_type: Any = 1,
    row_block_size: int = 1,
    col_block_size: int = 128,
    dst_type_max: float = 0.0,
    out: Optional[Tuple[Out, Out]] = None,
) -> Union[Tuple[np.ndarray, np.ndarray], Tuple[Out, Out]]:
    """Quantises with a scale for each block of columns, found from the block; symmetric, without offsets.

    A block is col_block_size columns of one row, and the last block of a row may be shorter. Each step is one float32
    operation; DMAX is 127 for int8 and uint8, 7 for quint4x2::

        m = max(|x|)                            over the block; NaN if any x is
        q = (1 / m) * DMAX
        scale = m * (1 / DMAX)
        q = max(q, min_scale)                   (if min_scale > 0)
        scale = min(scale, 1 / min_scale)       (if min_scale > 0)
        y = sat(round half to even(x * q))      (uint8: of int8, plus 128)

    Args:
        x: float32, float16 or bfloat16, 1 to 8 dimensions, [..., N]. float32 is an extension.
        min_scale: the least q, finite; 0 sets no limit.
        round_mode: "rint"; for hifloat8 "round".
        dst_type: int8, whose number is 1. quint4x2 and uint8 are extensions. Or float8_e4m3fn, float8_e5m2 or hifloat8:
            see dynamic_block_quant_float8().
        row_block_size: 1; for 8-bit floats as for dynamic_block_quant_float8().
        col_block_size: the columns of a block; 128 on the device. For quint4x2 a multiple of 8, or at least N. The
            library's messages call it block.
        dst_type_max: 0.0; for hifloat8 as for dynamic_block_quant_float8().
        out: None, or the two arrays or tensors to write to.

    Returns:
        The two of out, or new arrays:
        y: int8 or uint8 of the shape of x; for quint4x2 int32 with an eighth of the last extent.
        scale: float32, of the shape of x, with the number of blocks of a row as the last extent.

    >>> y, scale = npu_dynamic_block_quant(np.array([[0.5, -1.25, 3, 0, 254, 2, -4, 1]], np.float32), col_block_size=4)
    >>> y
    array([[ 21, -53, 127,   0, 127,   1,  -2,   0]], dtype=int8)
    >>> scale
    array([[0.02362205, 2.        ]], dtype=float32)
    """
    x = tensor("x", x)
    kind = result_of("dynamic_block_quant", "dst_type", dst_type)
    block = _block(kind, row_block_size, col_block_size, round_mode, dst_type_max)
    if kind.name in FLOAT8:
        return _dynamic_block_quant_float8(x, min_scale=min_scale, dst_type=dst_type, row_block_size=row_block_size,
                                           col_block_size=col_block_size, dst_type_max=dst_type_max, out=out)
    made = outputs("dynamic_block_quant", x.shape, kind, out, **block)
    run(_native.dynamic_block_quant, x, col_block_size, min_scale, *made, kind.number)
    return returned(made, out)


@names_operator
def dynamic_block_quant_float8(
    x: TensorLike,
    *,
    min_scale: float = 0.0,
    dst_type: Any = "float8_e4m3fn",
    row_block_size: int = 1,
    col_block_size: int = 128,
    dst_type_max: float = 0.0,
    out: Optional[Tuple[Out, Out]] = None,
) -> Union[Tuple[np.ndarray, np.ndarray], Tuple[Out, Out]]:
    """Quantises to 8-bit floats with a scale for each block of rows and columns, found from the block.

    npu_dynamic_block_quant() calls it for these types, as the Ascend 950 has them. Blocks begin anew in each matrix
    [M, N] of x, and the last ones may be smaller. Each step is one float32 operation; DMAX is 448 for float8_e4m3fn,
    57344 for float8_e5m2, and dst_type_max or 32768 for hifloat8. Subnormal operands and quotients are zeros::

        m = max(|x|)                            over the block; NaN if any x is
        scale = m / DMAX
        scale = min(scale, 1 / min_scale)       (if min_scale > 0; infinity and NaN stay)
        y = sat(x / scale)

    Args:
        x: float32, float16 or bfloat16, 2 to 8 dimensions, [..., M, N]. More than 3 are an extension.
        min_scale: no scale is above 1 / min_scale; finite, and 0 sets no limit.
        dst_type: float8_e4m3fn, float8_e5m2 or hifloat8.
        row_block_size, col_block_size: the rows and columns of a block, 1 or more. The device has 1, 64, 128, 256 and
            512 rows, and 64, 128, 192 and 256 columns. The library's messages call them row_block and column_block.
        dst_type_max: what the largest magnitude becomes in hifloat8: 15, 56, 224 or 32768; 0.0 means 32768. For the
            other types 0.0.
        out: None, or the two arrays or tensors to write to.

    Returns:
        The two of out, or new arrays:
        y: uint8, the codes of the type, of the shape of x.
        scale: float32, of the shape of x, with the numbers of blocks as the last two extents.

    >>> x = np.array([[0.5, -1.25, 3, 0], [2.75, -0.375, 1.5, -2]], np.float32)
    >>> y, scale = dynamic_block_quant_float8(x, dst_type="hifloat8", row_block_size=64, dst_type_max=15)
    >>> y
    array([[ 18, 165,  47,   0],
           [ 46, 143,  39, 170]], dtype=uint8)
    >>> scale
    array([[0.2]], dtype=float32)
    """
    x = tensor("x", x)
    kind = result_of("dynamic_block_quant_float8", "dst_type", dst_type)
    made = outputs("dynamic_block_quant_float8", x.shape, kind, out, block=_extent(col_block_size),
                   row_block=_extent(row_block_size))
    run(_native.dynamic_block_quant_float8, x, row_block_size, col_block_size, min_scale, dst_type_max, *made,
        kind.number)
    return returned(made, out)


_dynamic_block_quant_float8 = inspect.unwrap(dynamic_block_quant_float8)


def _groups(axis: Any, block_size: Any) -> Dict[str, Any]:
    """An axis and a block as extents() takes them. The extension and the library say what is wrong with them."""
    return {"axis": index(axis) if isinstance(axis, (int, np.integer)) else -1,
            "block": _extent(32 if isinstance(block_size, int) and block_size == 0 else block_size)}


@names_operator
def dynamic_mx_quant(
    input: TensorLike,
    *,
    axis: int = -1,
    round_mode: str = "rint",
    dst_type: Any = 296,
    block_size: int = 32,
    scale_alg: Optional[int] = 0,
    dst_type_max: float = 0.0,
    max_low_bound: float = 0.0,
    small_groups: int = 0,
    bad_groups: int = 0,
    out: Optional[Tuple[Out, Out]] = None,
) -> Union[Tuple[np.ndarray, np.ndarray], Tuple[Out, Out]]:
    """Quantises to 8- and 4-bit floats in groups along an axis, with a power of two as the scale of each group.

    Microscaling (MX), as npu_dynamic_mx_quant of torch_npu on the Ascend 950. docs/operators/dynamic_mx_quant.md says
    how the code S of a scale is found. mx.options() gives the keywords that make the bits of other libraries::

        a = max(|input|)                  over the group
        S = from a                        by scale_alg
        y = sat(input * 2^(127 - S))      rounded by round_mode

    Args:
        input: float32, float16 or bfloat16, 1 to 7 dimensions. The library's messages call it x.
        axis: the dimension that groups run along, counted from the end if negative.
        round_mode: "rint" (half to even); to 4 bits also "round" (half away from zero) or "floor".
        dst_type: float4_e2m1fn_x2, whose number is 296, float4_e1m2fn_x2, float8_e4m3fn or float8_e5m2.
        block_size: the elements of a group, a multiple of 32 up to 1024. The last group of a row may be shorter.
        scale_alg: 0 (also if None); to 8 bits also 1; to float4_e2m1fn_x2 also 2.
        dst_type_max: 0.0, or 6 to 12: what the largest magnitude is divided by with scale_alg 2, where 0.0 means 6.
        max_low_bound: with scale_alg 1, no largest magnitude counts as less, except 0.
        small_groups: when a group with S = 0 becomes zeros: 0, always, as on the device; 1, if the exponent field that
            S is made from is 0, as the operator's relatives do; 2, never, as OCP's microscaling has it.
        bad_groups: what y is in a group with a NaN or an infinity: 0, zeros, as on the device; 1, to 8 bits, NaN.
        out: None, or the two arrays or tensors to write to.

    Returns:
        The two of out, or new arrays:
        y: uint8, the codes of the type, of the shape of input. To 4 bits with half of the last extent: two codes in a
            byte, the first in the low half.
        mxscale: uint8, the codes of the scales. Its shape is that of input, with the number of pairs of groups as the
            axis' extent, and behind it 2. Without its second group, a pair has 0 there.

    >>> x = np.array([[0.5, -1.25, 3, 0, 2.75, -0.375, 1.5, -2]], np.float32)
    >>> y, mxscale = dynamic_mx_quant(x, dst_type="float8_e4m3fn")
    >>> y
    array([[104, 242, 124,   0, 123, 228, 116, 248]], dtype=uint8)
    >>> mxscale
    array([[[120,   0]]], dtype=uint8)
    """
    x = tensor("input", input)
    kind = result_of("dynamic_mx_quant", "dst_type", dst_type)
    rounding = _number("rounding", round_mode)
    made = outputs("dynamic_mx_quant", x.shape, kind, out, **_groups(axis, block_size))
    run(_native.dynamic_mx_quant, x, axis, block_size, rounding, 0 if scale_alg is None else scale_alg, small_groups,
        dst_type_max, max_low_bound, bad_groups, *made, kind.number)
    return returned(made, out)


@names_operator
def anti_mx_quant(
    x: TensorLike,
    mxscale: TensorLike,
    *,
    axis: int = -1,
    dst_type: Any = 15,
    src_type: Any = 292,
    block_size: int = 32,
    out: Optional[Out] = None,
) -> Union[np.ndarray, Out]:
    """Dequantises what dynamic_mx_quant() makes: y is the value of x, times that of its group's scale.

    npu_anti_mx_quant of torch_npu. The product is one float32 operation, and is rounded half to even to dst_type.

    Args:
        x: uint8, the codes of src_type, or an array or tensor of that type; 1 to 7 dimensions. With 4 bits two codes in
            a byte, the first in the low half.
        mxscale: uint8, the codes of the scales, or a tensor of float8_e8m0fnu: see dynamic_mx_quant().
        axis: the dimension that groups run along.
        dst_type: bfloat16, whose number is 15, float16 or float32.
        src_type: float8_e4m3fn, whose number is 292, float8_e5m2, float4_e2m1fn_x2 or float4_e1m2fn_x2.
        block_size: the elements of a group, a multiple of 32 up to 1024.
        out: None, or the array or tensor to write to.

    Returns:
        out, or a new array, of dst_type and of the shape of x, with 4 bits twice the last extent. NumPy has no
        bfloat16: the array is uint16, with the bits.

    >>> x = np.array([[104, 242, 124, 0, 123, 228, 116, 248]], np.uint8)
    >>> anti_mx_quant(x, np.array([[[120, 0]]], np.uint8), dst_type=np.float32)
    array([[ 0.5  , -1.25 ,  3.   ,  0.   ,  2.75 , -0.375,  1.5  , -2.   ]],
          dtype=float32)
    """
    source = result_type("src_type", src_type, MX)
    kind = result_of("anti_mx_quant", "dst_type", dst_type)
    given = name_of(getattr(x, "dtype", None))
    if given in MX and given != source.name:
        raise ArgumentTypeError(f"src_type: is {described(src_type)}; expected {given} for an x of {given}")
    x = tensor("x", codes_of(x, source.name))
    y, = outputs("anti_mx_quant", TYPES[source.name].in_values(x.shape), kind, out)
    run(_native.anti_mx_quant, x, codes_of(mxscale, "float8_e8m0fnu"), axis, block_size, 0, 0, 0, 0.0, 0.0, 0, y,
        kind.number, source.number)
    return returned(y, out)


@names_operator
def npu_anti_quant(
    x: TensorLike,
    scale: TensorLike,
    *,
    offset: Optional[TensorLike] = None,
    dst_dtype: Any = None,
    src_dtype: Any = None,
    out: Optional[Out] = None,
) -> Union[np.ndarray, Out]:
    """Dequantises int8 or int4 values, such as stored weights.

    Each step is one float32 operation, and the result is rounded half to even to dst_dtype::

        t = x + offset        (unless None)
        t = t * scale

    Args:
        x: int8, up to 8 dimensions, or int32, 1 to 8 dimensions: words of eight int4 (quint4x2).
        scale: float32, float16 or bfloat16, 1-D, with one element or as many as the last dimension of x has numbers.
            For an x of two dimensions also (G, N), an extension: each of G equal groups of rows has a scale for each of
            the N columns.
        offset: None, or of the shape and type of scale.
        dst_dtype: float16 (also if None), bfloat16 or float32.
        src_dtype: None, or the type of x: int8, or quint4x2 for int32.
        out: None, or the array or tensor to write to.

    Returns:
        out, or a new array, of dst_dtype and of the shape of x, with eight times the last extent for int32.

    >>> npu_anti_quant(np.array([1, 2, 3, 4], np.int8), np.array([2], np.float32), offset=np.array([2], np.float32))
    array([ 6.,  8., 10., 12.], dtype=float16)

    Two groups of two rows:

    >>> npu_anti_quant(np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.int8), np.array([[1, 10], [2, 20]], np.float32))
    array([[  1.,  20.],
           [  3.,  40.],
           [ 10., 120.],
           [ 14., 160.]], dtype=float16)
    """
    x = tensor("x", x)
    kind = result_of("anti_quant", "dst_dtype", dst_dtype, optional=True)
    packed = x.dtype == np.int32 if type(x) is np.ndarray else _native.torch_type(x) == "int32"
    source = "quint4x2" if packed else "int8"
    if src_dtype is not None and result_type("src_dtype", src_dtype, SOURCES, source) != SOURCES[source]:
        raise ArgumentTypeError(f"src_dtype: is {described(src_dtype)}; expected {source} for an x of "
                                + str(x.dtype).replace("torch.", ""))
    shape = x.shape
    if packed and shape:
        shape = _INT4.in_values(shape)
    y, = outputs("anti_quant", shape, kind, out)
    run(_native.anti_quant, x, scale, offset, y, kind.number)
    return returned(y, out)


@names_operator
def dequant(
    x: TensorLike,
    weight_scale: TensorLike,
    activation_scale: Optional[TensorLike] = None,
    bias: Optional[TensorLike] = None,
    *,
    dtype: Any = "float16",
    out: Optional[Out] = None,
) -> Union[np.ndarray, Out]:
    """Dequantises the int32 sums of a product of int8 matrices: one output stage of npu_quant_matmul().

    An int32 bias is added first, modulo 2^32. Each later step is one float32 operation, and the result is rounded half
    to even to dtype::

        t = x * weight_scale                  (x as float32, rounded half to even)
        t = t * activation_scale              (unless None)
        t = t + bias                          (unless int32)

    Args:
        x: int32, 1 to 8 dimensions, [..., N].
        weight_scale: float32, float16 or bfloat16, [1] or [N].
        activation_scale: None, or float32 of shape x.shape[:-1], or with a last dimension of 1: the scale of
            npu_dynamic_quant().
        bias: None, or int32, float32, float16 or bfloat16, [N].
        dtype: float16, bfloat16 or float32.
        out: None, or the array or tensor to write to.

    Returns:
        out, or a new array, of dtype and of the shape of x.

    >>> sums = np.array([[100, -200], [300, 400]], np.int32)
    >>> dequant(sums, np.array([0.5, 0.25], np.float32), np.array([1, 3], np.float32), dtype=np.float32)
    array([[ 50., -50.],
           [450., 300.]], dtype=float32)
    """
    x = tensor("x", x)
    kind = result_of("dequant", "dtype", dtype)
    y, = outputs("dequant", x.shape, kind, out)
    run(_native.dequant, x, weight_scale, activation_scale, bias, y, kind.number)
    return returned(y, out)


@names_operator
def requant(
    x: TensorLike,
    words: TensorLike,
    bias: Optional[TensorLike] = None,
    *,
    dtype: Any = "int8",
    out: Optional[Out] = None,
) -> Union[np.ndarray, Out]:
    """Requantises the int32 sums of a product of int8 matrices: the other output stage of npu_quant_matmul().

    M is the float32 of the low 32 bits of a word, with the low 13 bits as 0, and o the signed number in bits 45..37.
    The bias is added to x first, modulo 2^32::

        p = x * M                             (x as float32, rounded half to even)
        q = clamp(round half to even(p), -256, 255)     (0 if p is NaN)
        y = clamp(q + o, -128, 127)           int8
        y = p rounded half to even            float16

    Args:
        x: int32, 1 to 8 dimensions, [..., N].
        words: int64 or uint64, [1], [N] or [1, N]: the result of npu_trans_quant_param(). For float16 the bits of a
            float32 scale are a word, too: scale.view(np.uint32).astype(np.int64).
        bias: None, or int32, [N].
        dtype: int8 or float16.
        out: None, or the array or tensor to write to.

    Returns:
        out, or a new array, of dtype and of the shape of x.

    >>> words = npu_trans_quant_param(np.array([1, 0.5], np.float32), np.array([-200, 0], np.float32))
    >>> requant(np.array([[600, 5], [-600, 7]], np.int32), words)
    array([[  55,    2],
           [-128,    4]], dtype=int8)
    """
    x = tensor("x", x)
    kind = result_of("requant", "dtype", dtype)
    y, = outputs("requant", x.shape, kind, out)
    run(_native.requant, x, words, bias, y, kind.number)
    return returned(y, out)


@names_operator
def npu_quant_matmul(
    x1: TensorLike,
    x2: TensorLike,
    scale: TensorLike,
    *,
    offset: Optional[TensorLike] = None,
    pertoken_scale: Optional[TensorLike] = None,
    bias: Optional[TensorLike] = None,
    output_dtype: Any = None,
    out: Optional[Out] = None,
) -> Union[np.ndarray, Out]:
    """Multiplies int8 or int4 matrices, and requantises or dequantises the sums.

    The sums are exact, in int32 and modulo 2^32. output_dtype decides the next step:

    - int8, and float16 without pertoken_scale: requant(). A float32 scale goes through npu_trans_quant_param() with
      offset first.
    - int32: no step; the result is the sums, with bias.
    - all others: dequant(), with pertoken_scale as activation_scale.

    Args:
        x1: int8, 2 to 8 dimensions, [..., M, K]; or int32, words of eight int4 (quint4x2), [..., M, K / 8].
        x2: the type of x1, 2 to 8 dimensions: int8, [..., K, N]; or int32, with words along N, [..., K, N / 8], or
            along K, [..., K / 8, N], as in the transpose of a weight [N, K / 8]. The batch dimensions of x1 and x2 are
            broadcast.
        scale: [1] or [N]. For requant() float32, or its words as int64 or uint64, also [1, N]; otherwise float32 or
            bfloat16.
        offset: None, or float32, [1] or [N]; for int8 only. If scale has words, offset has no effect, as on the device:
            the words have offsets.
        pertoken_scale: None, or float32, [M], or [..., M] with the batch dimensions of the result: the scale of
            npu_dynamic_quant(). For dequant() only.
        bias: None, or int32, or for dequant() also float32, float16 or bfloat16; [N], or for a result of three
            dimensions also [batch, 1, N].
        output_dtype: int8 (also if None), float16, bfloat16, float32 or int32.
        out: None, or the array or tensor to write to.

    Returns:
        out, or a new array, of output_dtype and of the shape [..., M, N].

    >>> x1, x2 = np.array([[1, -2, 3]], np.int8), np.array([[10, 1], [20, 2], [30, 3]], np.int8)
    >>> npu_quant_matmul(x1, x2, np.array([0.5, 2], np.float32), offset=np.array([1], np.float32))
    array([[31, 13]], dtype=int8)
    >>> npu_quant_matmul(x1, x2, np.array([0.5], np.float32), pertoken_scale=np.array([10], np.float32),
    ...                  output_dtype=np.float16)
    array([[300.,  30.]], dtype=float16)
    """
    kind = result_type("output_dtype", "int8" if output_dtype is None else output_dtype, PRODUCTS,
                       "int8, float16, bfloat16, float32 or int32")
    given = arrays(locals(), ("x1", "x2", "scale"), ("offset", "pertoken_scale", "bias"))
    shape = check_quant_matmul(**given, output=kind.name)
    left, right, scales, offsets, row_scale, terms = given.values()
    if row_scale is not None:
        row_scale = np.broadcast_to(row_scale, shape[:-1])
    if terms is not None and terms.shape == (1, 1, shape[-1]):  # the same for all rows
        terms = terms[0, 0]
    requantised = row_scale is None and kind in REQUANTISED.values()
    words = scales.dtype != np.float32
    made = output(out, shape, kind.dtype)
    y: Any = to_array("out", made, write=True)
    if y.shape != shape:
        raise ArgumentError(f"out: has the shape {y.shape}; expected {shape}")

    if requantised and not words:
        # requant() ignores the lower 13 bits of a scale; a diagnosis sees a kernel that does not.
        low_bits = np.ascontiguousarray(scales).view(np.uint32) & 0x1FFF
        scales = npu_trans_quant_param(scales, offsets) | low_bits
    sums = product(left, right, shape)

    def finish(index: Any, bias: Any, y: np.ndarray) -> None:
        parameters = (scales,) if requantised else (scales, None if row_scale is None else row_scale[index])
        run(_native.requant if requantised else _native.dequant, sums[index], *parameters, bias, y, kind.number)

    if kind.dtype == np.int32:
        y[...] = sums if terms is None else sums + terms
    elif terms is None or terms.ndim == 1:
        finish(..., terms, y)
    else:
        parts = np.empty(shape, kind.dtype)  # what out shares with another argument must not change half-way
        for batch in range(shape[0]):
            finish(batch, terms[batch, 0], parts[batch])
        y[...] = parts
    return returned(made, out)


@names_operator
def row_quant(v: TensorLike, rule: str) -> Tuple[np.ndarray, np.ndarray]:
    """Quantises rows as a fused operator of torch_npu does at its end; symmetric, with a scale for each row.

    m is the largest abs(v) of a row, NaN if any is, and C is the float32 value of 1 / 127. Each step is one float32
    operation; half() rounds to float16, half to even::

        rule               y = sat(round half to even(t)) of    scale
        "dynamic_quant"    t = v * (127 / m)                    m * C
        "swiglu"           t = v * (127 / m)                    127 / m
        "add_rms_norm"     t = v * (127 / m)                    1 / (127 / m)
        "dequant_swiglu"   t = v / scale                        m * C
        "moe_routing"      t = v / scale                        m / 127
        "moe_routing_8_5"  t = v / scale, see below             m / 127
        "grouped_swiglu"   t = half(v * (1 / scale))            m / 127

    "moe_routing_8_5" converts t to float16 towards zero, and then rounds halves away from zero. A row of zeros, with an
    infinity or with NaN has zeros for y.

    Args:
        v: float32, float16 or bfloat16, 1 to 8 dimensions, [..., H]: what the operator has computed before.
        rule: "dynamic_quant", as npu_dynamic_quant; "swiglu", as npu_swiglu_quant; "add_rms_norm", as
            npu_add_rms_norm_dynamic_quant; "dequant_swiglu", as npu_dequant_swiglu_quant; "moe_routing", as
            npu_moe_init_routing_v2 and _v3 of CANN 9.0 and later; "moe_routing_8_5", as those of CANN 8.5 and
            earlier, and of split rows; "grouped_swiglu", as npu_grouped_matmul_swiglu_quant.

    Returns:
        y: int8 of the shape of v.
        scale: float32 of shape v.shape[:-1].

    >>> row_quant(np.array([[31.75, -17.125, -4.75, 28.75]], np.float16), "moe_routing_8_5")
    (array([[127, -69, -19, 115]], dtype=int8), array([0.25], dtype=float32))
    """
    rows: Any = to_array("v", v)
    _of("v", rows, "float32", "float16", "bfloat16")
    number = _number("rule", rule)
    if not 1 <= rows.ndim <= 8:
        raise ArgumentError(f"v: has {rows.ndim} dimensions; expected 1 to 8")
    if rows.shape[-1] == 0 and 0 not in rows.shape[:-1]:
        raise ArgumentError(f"v: has the shape {rows.shape}; expected an element or more in a row")
    y, scale = np.empty(rows.shape, np.int8), np.empty(rows.shape[:-1], np.float32)
    run(_native.row_quant, np.require(rows, requirements=("C", "ALIGNED")), number, y, scale, TYPES["int8"].number)
    return y, scale


@_options
def npu_quant_scatter(
    input: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    quant_scales: TensorLike,
    quant_zero_points: Optional[TensorLike] = None,
    axis: int = -2,
    quant_axis: int = -1,
    reduce: str = "update",
    dst_type: Any = None,
    round_mode: Optional[str] = "rint",
) -> np.ndarray:
    """Quantises updates, and writes them into a copy of a tensor, such as a cache of keys and values.

    updates[i] is quantised as npu_quantize() does with div_mode, and goes to input[i], from indices[i] on along axis.

    Args:
        input: int8, 3 to 8 dimensions.
        indices: int32 or int64, [n]. The device does not check whether an index is outside of input.
        updates: float32, float16 or bfloat16, the shape of input, or less in the first dimension, which is n, and along
            the axis.
        quant_scales, quant_zero_points: any shape, with as many elements as the last dimension of updates has. The
            types are those of npu_quantize().
        axis: neither the first dimension nor the last.
        quant_axis: the last dimension.
        reduce: has no effect, as on the device.
        dst_type: None or int8.
        round_mode: "rint" or None.

    Returns:
        A new array, int8, of the shape of input.

    >>> cache, updates = np.zeros((2, 3, 2), np.int8), np.array([[[1, 2]], [[3, 4]]], np.float32)
    >>> npu_quant_scatter(cache, np.array([0, 2]), updates, np.array([0.5, 0.25], np.float32)).tolist()
    [[[2, 8], [0, 0], [0, 0]], [[0, 0], [0, 0], [6, 16]]]
    """
    given = arrays(locals(), ("input", "indices", "updates", "quant_scales"), ("quant_zero_points",))
    axis = check_quant_scatter(**given, axis=axis, quant_axis=quant_axis, round_mode=round_mode)
    result_type("dst_type", "int8" if dst_type is None else dst_type, INT8)
    into, places, source, scales, zero_points = given.values()
    rows = source.shape[axis]
    last = into.shape[axis] - rows
    outside = np.flatnonzero((places < 0) | (places > last))
    if outside.size:
        raise ArgumentError(f"indices: [{outside[0]}] is {places[outside[0]]}; expected 0 to {last}, as input has "
                            f"{into.shape[axis]} and updates {rows} along dimension {axis}")
    zero_points = None if zero_points is None else zero_points.reshape(-1)
    values = npu_quantize(source, scales.reshape(-1), zero_points, "int8", -1)
    y = into.copy()
    for i, place in enumerate(places.tolist()):
        np.moveaxis(y[i], axis - 1, 0)[place:place + rows] = np.moveaxis(values[i], axis - 1, 0)
    return y
