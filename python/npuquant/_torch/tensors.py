# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's tensors as NumPy's arrays, and the other way round."""
from __future__ import annotations

import contextlib
from typing import Any, Tuple

import numpy as np
import torch
from torch import Tensor

from .._serving.unset import mark_copy
from .._tensors import FLOATING, INPUTS, Maker, Unknown

_BITS = FLOATING["bfloat16"].dtype
_OF_NUMPY = {result.dtype: getattr(torch, result.name) for result in INPUTS.values()
             if hasattr(torch, result.name) and result.elements == 1}
_UINT16 = getattr(torch, "uint16", None)


class _Memory:
    """A tensor's memory for NumPy. After Tensor.numpy() PyTorch would refuse to resize the tensor's storage."""

    def __init__(self, tensor: Tensor, dtype: np.dtype) -> None:
        self.tensor = tensor
        self.__array_interface__ = {"version": 3, "typestr": dtype.str, "data": (tensor.data_ptr(), False),
                                    "shape": tuple(tensor.shape),
                                    "strides": tuple(stride * dtype.itemsize for stride in tensor.stride())}


def array_of(value: Any) -> Any:
    """An array of a tensor's memory, uint16 for bfloat16; other values unchanged.

    It is for tensors that the extension does not read itself.
    """
    if not isinstance(value, Tensor):
        return value
    if value.is_cpu and value.layout == torch.strided and value.dtype != _UINT16:
        with contextlib.suppress(RuntimeError, TypeError):  # it has no memory, or NumPy does not have its type
            dtype = _BITS if value.dtype == torch.bfloat16 else np.dtype(str(value.dtype)[len("torch."):])
            if value.numel() == 0:
                return np.empty(tuple(value.shape), dtype)
            return np.asarray(_Memory(value.detach().resolve_conj().resolve_neg(), dtype))
    return Unknown(f"{value.dtype}, {value.layout}, on {value.device}".replace("torch.", ""))


#: By NumPy's type, what makes a tensor of a shape. It takes less time than torch.empty(), which a script may replace.
_EMPTY = {dtype: torch.empty(0, dtype=of_torch, device="cpu").new_empty for dtype, of_torch in _OF_NUMPY.items()}


def _new(shape: Tuple[int, ...], dtype: np.dtype) -> Tensor:
    """Memory for a result, of which PyTorch is the owner: so scripts can resize and share it."""
    return _EMPTY[dtype](shape)


NEW = Maker(_new)


def tensor_of(array: np.ndarray) -> Tensor:
    """A copy of a result of the package, for the same reason."""
    made = _new(array.shape, array.dtype)
    copy = array_of(made)
    copy[...] = array
    mark_copy(copy, made, array)
    return made
