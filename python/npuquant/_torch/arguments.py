# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of PyTorch's operators: for the operators of npuquant.torch, and for those of the stand-in for torch_npu."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, Sequence

import torch
from torch import Tensor

from .._arguments import _ceiling, _expect, _shape, check_quant_scatter, is_transposed
from .._tensors import DEVICE_TYPES, FLOAT4, INT8, _NUMBERS, described, result_type


def bound(schema: Any, values: Sequence[Any], keywords: Dict[str, Any]) -> SimpleNamespace:
    """The arguments by name, with the defaults, which PyTorch leaves out, and which None stands for."""
    arguments = {argument.name: argument.default_value for argument in schema.arguments}
    given = {**dict(zip(arguments, values)), **keywords}
    return SimpleNamespace(**{**arguments, **{name: value for name, value in given.items() if value is not None}})


_BYTES = ("hifloat8", "float8_e8m0fnu", *FLOAT4)
_NAMES = {**_NUMBERS, **DEVICE_TYPES}


def _name(argument: str, dtype: Any, default: str) -> str:
    """The name of a type, from PyTorch's type, its number, or torch_npu's number."""
    if dtype is None:
        return default
    name = str(dtype)[len("torch."):] if isinstance(dtype, torch.dtype) else _NAMES.get(dtype)
    _expect(name, argument, f"is {described(dtype)}; expected a type of PyTorch, or a number of torch_npu's types")
    return str(name)


def _stored(argument: str, name: str) -> torch.dtype:
    """PyTorch's type for elements of a type: bytes for types that no PyTorch has, and for 8-bit floats in PyTorch 1."""
    dtype = torch.uint8 if name in _BYTES else getattr(torch, name, torch.uint8 if name.startswith("float8") else None)
    if dtype is None:
        raise NotImplementedError(f"{argument}: is {name}, which PyTorch {torch.__version__} does not have")
    return dtype


#: The arguments of npu_quant_scatter, and of the stand-in's npu_quant_scatter_.
QUANT_SCATTER = ("(Tensor{} self, Tensor indices, Tensor updates, Tensor quant_scales, Tensor? quant_zero_points=None,"
                 " int axis=-2, int quant_axis=-1, str reduce='update', int? dst_type=None, str? round_mode='rint')"
                 " -> Tensor{}")


def quant_scatter_checks(a: SimpleNamespace) -> None:
    """Checks the arguments of both by their names."""
    check_quant_scatter(a.self, a.indices, a.updates, a.quant_scales, a.quant_zero_points, a.axis, a.quant_axis,
                        a.round_mode)
    result_type("dst_type", "int8" if a.dst_type is None else a.dst_type, INT8)


#: Arguments of npu_quant_matmul that select types and groups which npuquant does not define.
UNDEFINED = ("x1_dtype", "x2_dtype", "pertoken_scale_dtype", "scale_dtype", "group_sizes", "y_scale")


def quant_matmul_undefined(a: Any) -> Tensor:
    """npu_quant_matmul of types that npuquant does not define. Of 4-bit matrices two elements are in a byte, along the
    dimension that is contiguous. With microscaling there is a scale for each 32 elements of K, in pairs.

    The rule that scales have K / 64 pairs, rounded up, is the device's own check (vllm-ascend pull request 12201).
    """
    packed = [_name(name, dtype, "") in FLOAT4 for name, dtype in (("x1_dtype", a.x1_dtype), ("x2_dtype", a.x2_dtype))]
    turned = is_transposed(a.x2)
    k = a.x1.shape[-1] * (2 if packed[0] else 1)
    rows = a.x2.shape[-2] * (2 if packed[1] and turned else 1)
    columns = a.x2.shape[-1] * (2 if packed[1] and not turned else 1)
    _expect(rows == k, "x2", f"has the shape {list(a.x2.shape)}, {'' if turned else 'not '}transposed, so K is {rows}; "
            f"x1 has K {k}")
    if "float8_e8m0fnu" in (_name("scale_dtype", a.scale_dtype, ""),
                            _name("pertoken_scale_dtype", a.pertoken_scale_dtype, "")):
        _check_mx_scales(a, k, columns, turned)
    return a.x1.new_empty((*a.x1.shape[:-1], columns),
                          dtype=_stored("output_dtype", _name("output_dtype", a.output_dtype, "bfloat16")))


def _check_mx_scales(a: Any, k: int, columns: int, turned: bool) -> None:
    pairs = _ceiling(k, 64)
    _shape("scale", a.scale, *([pairs, columns, 2] if turned or a.scale.shape[0] == pairs else [columns, pairs, 2]))
    _shape("pertoken_scale", a.pertoken_scale, a.x1.shape[-2], pairs, 2)
    if a.group_sizes:
        sizes = list(a.group_sizes)  # 0: the device finds it from the shapes
        _expect(len(sizes) == 3 and all(size in (0, only) for size, only in zip(sizes, (1, 1, 32))), "group_sizes",
                f"is {sizes}; expected [1, 1, 32], of which each may be 0")
