# SPDX-License-Identifier: BSD-3-Clause
"""Exact products of int8 or int4 matrices, by NumPy's float32 product, which is that of its BLAS."""
from __future__ import annotations

import math
from typing import Tuple

import numpy as np

from npuquant_facts.dtypes import TYPES

from ._tensors import unpacked

__tracebackhide__ = True  # pytest shows the line that calls the package

# Matrices are converted to float32 in blocks of 1024 by 1024. A product of two int8 is at most 2^14, so the sum of 1024
# products is at most 2^24, and float32 has every integer up to 2^24. So the sums of a block are exact, in any order of
# the BLAS. Blocks also limit the memory for float32.
BLOCK = 1024
_INT4 = TYPES["quint4x2"]


def _add_product(x1: np.ndarray, x2: np.ndarray, y: np.ndarray) -> None:
    """y += x1 @ x2, for matrices."""
    for k in range(0, x2.shape[0], BLOCK):
        for n in range(0, x2.shape[1], BLOCK):
            right = x2[k:k + BLOCK, n:n + BLOCK].astype(np.float32)
            for m in range(0, x1.shape[0], BLOCK):
                left = x1[m:m + BLOCK, k:k + BLOCK].astype(np.float32)
                y[m:m + BLOCK, n:n + BLOCK] += np.matmul(left, right).astype(np.int32)


def factors_of(x1: np.ndarray, x2: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """The values of two matrices: both are int8, or both are int32 words of int4."""
    if x1.dtype != np.int32:
        return x1, x2
    if x2.shape[-2] == x1.shape[-1]:  # words along K: see product_columns()
        return unpacked(x1, _INT4), unpacked(x2.swapaxes(-1, -2), _INT4).swapaxes(-1, -2)
    return unpacked(x1, _INT4), unpacked(x2, _INT4)


def product(x1: np.ndarray, x2: np.ndarray, shape: Tuple[int, ...]) -> np.ndarray:
    """x1 @ x2 as int32, modulo 2^32, of the product's shape. Both are int8, or both are int32 words of int4."""
    x1, x2 = factors_of(x1, x2)
    y = np.zeros(shape, np.int32)
    K, N = x2.shape[-2:]
    if math.prod(x2.shape[:-2]) == 1:  # one matrix for all rows
        rows = math.prod(shape[:-1])
        _add_product(x1.reshape(rows, K), x2.reshape(K, N), y.reshape(rows, N))
    else:
        x1, x2 = np.broadcast_to(x1, (*shape[:-1], K)), np.broadcast_to(x2, (*shape[:-2], K, N))
        for index in np.ndindex(*shape[:-2]):
            _add_product(x1[index], x2[index], y[index])
    return y
