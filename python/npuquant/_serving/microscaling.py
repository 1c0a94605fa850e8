# SPDX-License-Identifier: BSD-3-Clause
"""Relatives of dynamic_mx_quant(): its arithmetic with groups along two axes, of rows in parts, and of square blocks,
and behind a division by a scale of more elements. And dynamic_block_quant_float8() of rows in parts.

The arguments have the names of torch_npu. Scales of groups that are not there have the code 0.
"""
from __future__ import annotations

import inspect
from typing import Any, Iterator, Optional, Tuple

import numpy as np

from .. import _operators
from .._arguments import _ceiling, _expect, _type_of
from .._tensors import from_float, to_float

__tracebackhide__ = True  # pytest shows the line that calls the package

#: Without the wrappers that add a name to refusals.
dynamic_mx_quant: Any = inspect.unwrap(_operators.dynamic_mx_quant)
anti_mx_quant: Any = inspect.unwrap(_operators.anti_mx_quant)
_block_quant: Any = inspect.unwrap(_operators.dynamic_block_quant_float8)

_BLOCK = 32
_LEVEL0 = 512
_LEAST = 2.0**-126  # of normal float32


def with_dual_axis(input: np.ndarray, **options: Any) -> Tuple[np.ndarray, ...]:
    """Along the last axis, and along the last but one."""
    along_last, across = (dynamic_mx_quant(input, axis=axis, small_groups=1, **options) for axis in (-1, -2))
    return (*along_last, *across)


def _parts(argument: str, groups: np.ndarray, rows: int, block: int) -> Iterator[Tuple[int, int, int]]:
    """Of each part of the rows the first row, the one behind the last, and where its scales begin."""
    ends = groups.tolist()
    _expect([0, *ends] == sorted([0, *ends]) and [rows, *ends][-1] <= rows, argument,
            f"is {ends}; expected ends that never decrease, up to {rows}, the number of rows")
    for i, (begin, end) in enumerate(zip([0, *ends], ends)):
        yield begin, end, begin // block + i


def grouped(x: np.ndarray, group_index: np.ndarray, *, blocksize: int, scale_alg: int,
            **options: Any) -> Tuple[np.ndarray, ...]:
    """Along the columns, where groups begin anew in each part of the rows. The scales of a part begin at a row that
    follows from its first row, so that rows may lie between. The device writes neither these nor rows of y behind the
    last part: they are zeros here."""
    rows = x.shape[0]
    empty, _ = dynamic_mx_quant(x[:0], axis=0, **options)
    y = np.zeros((rows, empty.shape[1]), np.uint8)
    mxscale = np.zeros((rows // (2 * _BLOCK) + len(group_index), x.shape[1], 2), np.uint8)
    for begin, end, first in _parts("group_index", group_index, rows, 2 * _BLOCK):
        y[begin:end], scales = dynamic_mx_quant(x[begin:end], axis=0, block_size=blocksize, scale_alg=scale_alg,
                                                small_groups=int(scale_alg == 2), **options)
        mxscale[first:first + len(scales)] = scales
    return y, mxscale


def grouped_blocks(x: np.ndarray, group_list: np.ndarray, *, row_block_size: int, col_block_size: int,
                   **options: Any) -> Tuple[np.ndarray, np.ndarray]:
    """Blocks of rows and columns that begin anew in each part of the rows, with their scales as grouped() has them."""
    *batch, rows, columns = x.shape
    y = np.zeros(x.shape, np.uint8)
    scale = np.zeros((*batch, rows // row_block_size + len(group_list), _ceiling(columns, col_block_size)), np.float32)
    for begin, end, first in _parts("group_list", group_list, rows, row_block_size):
        y[..., begin:end, :], scales = _block_quant(x[..., begin:end, :], row_block_size=row_block_size,
                                                    col_block_size=col_block_size, **options)
        scale[..., first:first + scales.shape[-2], :] = scales
    return y, scale


def in_blocks(input: np.ndarray, **options: Any) -> Tuple[np.ndarray, ...]:
    """In blocks of 32 rows and 32 columns: the operator finds their scales as those of rows of 1024 elements. y, and
    the scales as with_dual_axis() has them, each of its block's."""
    *batch, m, n = input.shape
    rows, columns = _ceiling(m, _BLOCK), _ceiling(n, _BLOCK)
    filled = np.zeros((*batch, rows * _BLOCK, columns * _BLOCK), input.dtype)
    filled[..., :m, :n] = input
    blocks = filled.reshape(*batch, rows, _BLOCK, columns, _BLOCK).swapaxes(-3, -2)
    y, scales = dynamic_mx_quant(blocks.reshape(*batch, rows, columns, _BLOCK * _BLOCK), block_size=_BLOCK * _BLOCK,
                                 small_groups=1, **options)
    width = y.shape[-1] // _BLOCK  # of a block's row in bytes
    y = y.reshape(*batch, rows, columns, _BLOCK, width).swapaxes(-3, -2).reshape(*batch, rows * _BLOCK, columns * width)
    pairs = np.zeros((*batch, rows + rows % 2, columns + columns % 2), np.uint8)
    pairs[..., :rows, :columns] = scales[..., 0, 0]
    along_last = np.repeat(pairs, _BLOCK, axis=-2)[..., :m, :].reshape(*batch, m, -1, 2)
    across = np.repeat(pairs, _BLOCK, axis=-1)[..., :n].reshape(*batch, -1, 2, n).swapaxes(-1, -2)
    return y[..., :m, :n * width // _BLOCK], along_last, across


def _normal(x: np.ndarray) -> np.ndarray:
    """As the device divides: subnormal operands and quotients are zeros."""
    return np.where(np.abs(x) < _LEAST, np.copysign(np.float32(0), x), x)


def dual_level(input: np.ndarray, smooth_scale: Optional[np.ndarray], round_mode: str) -> Tuple[np.ndarray, ...]:
    """Divides 512 elements of a row by a float32 scale, rounds to the type of input, and makes groups of the quotients.
    Infinities and NaN do not count in that scale. Returns the codes, these scales, and the groups' scales."""
    kind, x = _type_of(input), to_float(input)
    if smooth_scale is not None:
        x = to_float(from_float(x * to_float(smooth_scale), kind), kind)
    largest = np.maximum.reduceat(np.where(np.isfinite(x), np.abs(x), np.float32(0)),
                                  np.arange(0, x.shape[-1], _LEVEL0), axis=-1)
    scale = _normal(largest * np.float32(1 / 6))
    with np.errstate(all="ignore"):
        quotient = _normal(_normal(x) / np.repeat(scale, _LEVEL0, axis=-1)[..., :x.shape[-1]])
    y, mxscale = dynamic_mx_quant(from_float(np.where(x == 0, x, quotient), kind), dst_type="float4_e2m1fn_x2",
                                  round_mode=round_mode, small_groups=1)
    return y, scale, mxscale
