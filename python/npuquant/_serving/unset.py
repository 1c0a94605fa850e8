# SPDX-License-Identifier: BSD-3-Clause
"""Results that the device writes in part only."""
from __future__ import annotations

import atexit
import sys
import weakref
from types import SimpleNamespace
from typing import Any, Callable, List, NamedTuple, Optional

import numpy as np

from .._arguments import ArgumentError, ArgumentTypeError, _type_of

__tracebackhide__ = True  # pytest shows the line that calls the package

#: What fills elements that the device does not write: "zeros", or "nan", which also means the most negative integer.
FILLS = ("zeros", "nan")
#: What the stand-in for torch_npu has chosen.
chosen = SimpleNamespace(unset="zeros")


class _Mark(NamedTuple):
    """The memory of a result."""

    address: int
    size: int  # bytes of an element
    unset: np.ndarray  # bool, one for each element
    array: Optional[Callable[[], Any]]  # a weak reference to the owner of the memory, if it is an array
    storage: Any  # the same if it is a storage of PyTorch: views keep a storage alive, not always its tensor


_marks: List[_Mark] = []
atexit.register(_marks.clear)  # PyTorch's references to storages need PyTorch


def _is_alive(mark: _Mark) -> bool:
    """Whether no other object can have the memory."""
    return not mark.storage.expired() if mark.array is None else mark.array() is not None


def _add(mark: _Mark) -> None:
    _marks[:] = [*filter(_is_alive, _marks), mark]


def _find(address: int, storage: Optional[int] = None) -> Optional[_Mark]:
    """The result in whose memory an address is. A storage that was resized is not where it was."""
    for mark in _marks:
        if 0 <= address - mark.address < mark.size * mark.unset.size and _is_alive(mark) and (
                mark.array is not None or mark.storage.cdata == storage):
            return mark
    return None


def _memory(array: np.ndarray, rows: np.ndarray, tensor: Any) -> _Mark:
    if tensor is None:
        return _Mark(array.ctypes.data, array.itemsize, rows, weakref.ref(array), None)
    from torch.multiprocessing.reductions import StorageWeakRef  # the package does without PyTorch

    return _Mark(array.ctypes.data, array.itemsize, rows, None, StorageWeakRef(_storage(tensor)))


def mark(result: np.ndarray, rows: Any, tensor: Any = None, nan: int = 0x80) -> np.ndarray:
    """Remembers which rows or elements of a new result the device leaves as the memory was, and fills them. The result
    may be the memory of a tensor. nan: a byte that is NaN, if the result has codes; that of hifloat8 is usual."""
    rows = np.asarray(rows, np.bool_)
    unset = np.broadcast_to(rows.reshape(rows.shape + (1,) * (result.ndim - rows.ndim)), result.shape)
    if chosen.unset == "nan" and rows.any():
        kind = _type_of(result)
        result[unset] = 0x7FC0 if kind == "bfloat16" else np.nan if result.dtype.kind == "f" else (
            np.iinfo(result.dtype).min or nan)
    if result.size:
        _add(_memory(result, unset, tensor))
    return result


def mark_copy(copy: np.ndarray, tensor: Any, result: np.ndarray) -> None:
    """Remembers of a tensor, whose memory has a copy of a result, what is known of the result."""
    found = _find(result.ctypes.data) if result.size else None
    if found is not None:
        _add(_memory(copy, found.unset, tensor))


def mask_of(result: np.ndarray) -> np.ndarray:
    """Which elements of a new result are unset; of a result that is not marked, none."""
    found = _find(result.ctypes.data) if result.size else None
    return np.zeros(result.shape, np.bool_) if found is None else found.unset


def _storage(tensor: Any) -> Any:
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()


def unset(result: Any) -> Any:
    """Which elements of a result the device does not write: they are what the memory was before, and zeros here. After
    npuquant.torch_npu.install(unset="nan") they are NaN or the most negative integer.

    A comparison with a dump of the device leaves these elements out.

    Args:
        result: what npu_moe_init_routing_v2(), npu_moe_re_routing(), npu_grouped_matmul(), or an operator with near
            values returned: an array, a PyTorch tensor, or a view of one. Of a copy it is not known, and an error.

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
    is_array = isinstance(result, np.ndarray)
    if not is_array and not hasattr(result, "data_ptr"):
        raise ArgumentTypeError(f"result: is {type(result).__name__}; expected an array or a tensor")
    if 0 in result.shape:  # it has no memory
        mask = np.zeros(tuple(result.shape), np.bool_)
    else:
        address, strides = ((result.ctypes.data, result.strides) if is_array else
                            (result.data_ptr(), [n * result.element_size() for n in result.stride()]))
        found = _find(address, None if is_array else _storage(result)._cdata)
        if found is None:
            raise ArgumentError("result: is no result that may be unset in part, or a copy of one: what is unset is not "
                                "known of a copy")
        # An element is unset if one of its bytes is: a view may have elements of another size.
        size = result.itemsize if is_array else result.element_size()
        unset = np.repeat(found.unset.reshape(-1), found.size)[address - found.address:]
        mask = np.lib.stride_tricks.as_strided(unset, (*result.shape, size), (*strides, 1)).any(axis=-1)
    return mask if is_array else sys.modules["torch"].tensor(mask)
