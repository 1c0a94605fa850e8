# SPDX-License-Identifier: BSD-3-Clause
"""Checks of arguments: of NumPy's arrays and of PyTorch's tensors, with values or without."""
from __future__ import annotations

from typing import Any, Optional

__tracebackhide__ = True  # pytest shows the line that calls the package


class ArgumentError(ValueError, RuntimeError):
    """An operator refuses an argument, whose name begins the message. torch_npu raises a RuntimeError then."""

    __module__ = "npuquant"


def _expect(condition: Any, argument: str, text: str) -> None:
    if not condition:
        raise ArgumentError(f"{argument}: {text}")


def _type_of(tensor: Any) -> str:
    """The name of the type of an array or tensor. An array of uint16 has the bits of bfloat16."""
    name = str(tensor.dtype)
    return "bfloat16" if name == "uint16" else name.replace("torch.", "")


def _shape(argument: str, tensor: Optional[Any], *extents: Any) -> None:
    """The shape of a tensor, if it is given; an extent of None may be any."""
    if tensor is not None:
        same = len(tensor.shape) == len(extents) and all(
            extent is None or size == extent for size, extent in zip(tensor.shape, extents))
        expected = ", ".join("any" if extent is None else str(extent) for extent in extents)
        _expect(same, argument, f"has the shape {list(tensor.shape)}; expected [{expected}]")


def _of(argument: str, tensor: Optional[Any], *types: str) -> None:
    """The type of a tensor, if it is given, by its name."""
    if tensor is not None:
        _expect(_type_of(tensor) in types, argument, f"is {_type_of(tensor)}; expected {' or '.join(types)}")


def _one_of(argument: str, value: Any, *expected: Any) -> None:
    _expect(value in expected, argument, f"is {value!r}; expected {' or '.join(map(repr, expected))}")


def _ceiling(extent: int, of: int) -> int:
    return (extent + of - 1) // of


def is_transposed(matrix: Any) -> bool:
    """Whether the last two dimensions lie in memory the other way round."""
    strides = matrix.stride() if hasattr(matrix, "stride") else [n // matrix.itemsize for n in matrix.strides]
    return len(strides) > 1 and strides[-2] == 1 and strides[-1] == matrix.shape[-2]
