# SPDX-License-Identifier: BSD-3-Clause
"""Products of int8 matrices, exactly, with the float32 product that NumPy has from its BLAS."""
from __future__ import annotations

import math
from typing import Tuple

import numpy as np

# Matrices are converted to float32 in blocks of 1024 by 1024. A product of two int8 is at most 2^14, so the sum of 1024
# of them is at most 2^24, and float32 has every integer up to that: within a block nothing is rounded, in whatever
# order the BLAS adds. Blocks also bound the memory that float32 takes.
BLOCK = 1024


def _add_product(x1: np.ndarray, x2: np.ndarray, y: np.ndarray) -> None:
    """y += x1 @ x2, for matrices."""
    for k in range(0, x2.shape[0], BLOCK):
        for n in range(0, x2.shape[1], BLOCK):
            right = x2[k:k + BLOCK, n:n + BLOCK].astype(np.float32)
            for m in range(0, x1.shape[0], BLOCK):
                left = x1[m:m + BLOCK, k:k + BLOCK].astype(np.float32)
                y[m:m + BLOCK, n:n + BLOCK] += np.matmul(left, right).astype(np.int32)


def product(x1: np.ndarray, x2: np.ndarray, shape: Tuple[int, ...]) -> np.ndarray:
    """x1 @ x2 as int32, modulo 2^32; both are int8, and shape is that of the product."""
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
