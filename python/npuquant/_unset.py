# SPDX-License-Identifier: BSD-3-Clause
"""Results that the device writes in part only."""
from __future__ import annotations

import sys
import weakref
from typing import Any, Dict, Tuple

import numpy as np

from ._arguments import _expect

__tracebackhide__ = True  # pytest shows the line that calls the package

#: By the address of a result: its shape, and which of its rows or elements the device does not write.
_marks: Dict[int, Tuple[Tuple[int, ...], np.ndarray]] = {}


def _forget(address: int) -> None:
    _marks.pop(address, None)


def mark(result: np.ndarray, rows: Any) -> np.ndarray:
    """Remembers, as long as the result lives, which of its rows or elements the device leaves as the memory was."""
    rows = np.asarray(rows, np.bool_)
    if result.size and rows.any():
        address = result.ctypes.data
        _marks[address] = result.shape, rows
        weakref.finalize(result, _forget, address).atexit = False
    return result


def unset(result: Any) -> Any:
    """Which elements of a result the device does not write: they are what the memory was before, and zeros here.

    A comparison with a dump of the device leaves these elements out.

    Args:
        result: what npu_moe_init_routing_v2(), npu_moe_re_routing() or npu_grouped_matmul() returned: an array, or a
            PyTorch tensor. A copy does not tell.

    Returns:
        An array, or for a tensor a tensor, of bool, with the shape of result. True: the device does not write this.

    >>> from npuquant import npu_moe_init_routing_v2
    >>> x, experts = np.array([[5], [6]], np.float32), np.array([[0], [2]], np.int32)
    >>> rows, *_ = npu_moe_init_routing_v2(x, experts, expert_num=3, active_expert_range=[1, 3])
    >>> rows, unset(rows)
    (array([[6.],
           [0.]], dtype=float32), array([[False],
           [ True]]))
    """
    tensor = not isinstance(result, np.ndarray)
    shape, address = tuple(result.shape), result.data_ptr() if tensor else result.ctypes.data
    marked, rows = shape, np.zeros((), np.bool_)
    if 0 not in shape:  # what has no elements has no address of its own
        marked, rows = _marks.get(address, (marked, rows))
    _expect(marked == shape, "result", f"has the shape {list(shape)}; expected the whole result, {list(marked)}")
    mask = np.broadcast_to(rows.reshape(rows.shape + (1,) * (len(shape) - rows.ndim)), shape).copy()
    return sys.modules["torch"].from_numpy(mask) if tensor else mask
