# SPDX-License-Identifier: BSD-3-Clause
"""Stands in for torch_npu on a machine without the device: the quantisation operators, on the CPU, to the bit.

After install(), scripts for the device run unchanged: `import torch_npu` finds this module, and .npu(), .to("npu") and
device="npu:0" mean the CPU. uninstall() undoes all changes. The import of this module changes nothing in PyTorch except
that it registers the operators. `python -m npuquant.torch_npu script.py` runs a script in this way.

A missing operator raises a NotImplementedError with its name. docs/torch.md says what is the same as on the device.
"""
from __future__ import annotations

import re
from typing import Any, Callable, Optional, Sequence, Tuple

from .. import torch as operators
from .._arguments import ArgumentTypeError, _dimensions, _expect, _of, as_annotated, names_operator, shown
from .._serving.unset import unset
from .._tensors import DEVICE_TYPES
from .._torch.chosen import expect_strictly
from .._torch.registered import LIBRARY, operator_of, refuse_none
import torch  # after the lines above, whose error says how to get it

from . import npu
from ._absent import OPERATORS, absent_from
from ._install import declared, install, operator_of_device, uninstall

#: The operators of npuquant.torch that torch_npu has. _torch/declared.py has those for mixtures of experts, and of microscaling.
_OPERATORS = [name for name in operators.__all__ if name.startswith("npu_") and name not in operators._DECLARED]
__all__ = [
    "empty_with_format",
    "get_npu_format",
    "install",
    "npu",
    "npu_convert_weight_to_int4pack",
    "npu_format_cast",
    "npu_format_cast_",
    "npu_prefetch",
    "uninstall",
    "unset",
    *_OPERATORS,
]

#: torch_npu has the version of its PyTorch.
__version__ = torch.__version__.partition("+")[0]

_refuse = absent_from("torch_npu", OPERATORS)


def __getattr__(name: str) -> Any:
    """Operators whose shapes are known: they are imported when they are first used."""
    made = declared(name)
    if made is None:
        return _refuse(name)
    globals()[name] = made
    return made


# torch_npu's own types: torch_npu.hifloat8 and others. They are not in __all__: among them is bool.
globals().update({name: number for number, name in DEVICE_TYPES.items()})

# ---- operators: as in torch_npu the same objects as in torch.ops.npu -------------------------------------------------

_ND = 2  # the device's number of the format in which elements lie in index order


def _format_cast(self: torch.Tensor, to: Any, **others: Any) -> torch.Tensor:
    """Another tensor for another format, whose elements lie in index order. Formats of the device's memory change no
    values, and here there is one, ND, which a tensor in the place of a format has, too."""
    is_same = isinstance(to, torch.Tensor) or to == _ND
    return self if is_same else self.clone(memory_format=torch.contiguous_format)


def _format_cast_(self: torch.Tensor, to: Any, **others: Any) -> torch.Tensor:
    """The tensor itself."""
    return self


#: The bits of float32 numbers whose places are their codes in float4_e2m1fn: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
_FLOAT4 = (0, 0x3F000000, 0x3F800000, 0x3FC00000, 0x40000000, 0x40400000, 0x40800000, 0x40C00000)


def _int4pack(weight: torch.Tensor, inner_k_tiles: int = 0) -> torch.Tensor:
    """Packs int4 numbers, which are in an int32 each, into words of eight, of which the first has the lowest bits.

    Of each number only the lowest four bits count, and inner_k_tiles has no effect, as on the device. float32 numbers
    become codes of 4-bit floating point, as on the series Ascend 950: only the sign and the highest ten bits behind it
    count, and what has no code is 0.
    """
    _of("weight", weight, "int32", "float32")
    _dimensions("weight", weight, 2, 3)
    shape = list(weight.shape)
    _expect(0 not in shape and shape[-1] % 8 == 0, "weight", f"has the shape {shape}; expected no empty dimension, and "
            "a multiple of 8 in the last")
    _expect(weight.is_contiguous(), "weight", "is not contiguous; expected a contiguous tensor")
    expect_strictly(weight.dim() == 2, "weight", "has 3 dimensions; expected 2: of 3 it packs only the first matrix")
    expect_strictly(weight.dtype == torch.int32, "weight", "is float32; expected int32")
    if weight.dtype == torch.float32:
        bits, codes = weight.view(torch.int32) & -0x400000, torch.zeros_like(weight, dtype=torch.int32)
        for code, number in enumerate(_FLOAT4):
            codes += (bits == number) * code + (bits == number - 2**31) * (code + 8)
        return _int4pack_words(codes).view(torch.float32)
    return _int4pack_words(weight)


def _int4pack_words(codes: torch.Tensor) -> torch.Tensor:
    numbers = ((codes & 15) ^ 8) - 8  # the lowest four bits as a signed number
    return torch.ops.npuquant.npu_quantize(numbers.float(), codes.new_ones(1, dtype=torch.float32), None, torch.quint4x2, -1,
                                   False)


def _prefetch(self: torch.Tensor, dependency: Optional[torch.Tensor], max_size: int, offset: int = 0) -> None:
    """Nothing: the device loads these bytes into its cache, from the offset on, after the dependency is computed."""
    _expect(max_size > 0, "max_size", f"is {max_size}; expected a positive number")
    size = self.numel() * self.element_size()
    _expect(size > 0, "self", "has no elements; expected one or more")
    _expect(0 <= offset < size, "offset", f"is {offset}; expected a number from 0 to {size - 1}")


def _kernel(schema: str, function: Callable[..., Any]) -> Callable[..., Any]:
    required = re.findall(r"Tensor(?:\(a!\))? (\w+)", schema)  # they come first

    def kernel(*values: Any, **keywords: Any) -> Any:
        refuse_none(required, values)
        return function(*values, **keywords)

    return names_operator(kernel, re.split(r"\W", schema)[0])


# The schemas as in torch_npu/csrc/aten/npu_native_functions.yaml of Ascend/pytorch, and the last two as in
# op_plugin/config/op_plugin_functions.yaml of Ascend/op-plugin.
_SCHEMAS: Sequence[Tuple[str, Callable[..., Any]]] = (
    ("npu_format_cast(Tensor self, int acl_format, *, int? customize_dtype=None, int? input_dtype=None) -> Tensor",
     _format_cast),
    ("npu_format_cast.Tensor(Tensor self, Tensor dst, *, int? customize_dtype=None, int? input_dtype=None) -> Tensor",
     _format_cast),
    ("npu_format_cast_(Tensor(a!) self, Tensor src, *, int? customize_dtype=None, int? input_dtype=None)"
     " -> Tensor(a!)", _format_cast_),
    ("npu_format_cast_.acl_format(Tensor(a!) self, int acl_format, *, int? customize_dtype=None,"
     " int? input_dtype=None) -> Tensor(a!)", _format_cast_),
    ("get_npu_format(Tensor self) -> int", lambda self: _ND),
    ("npu_convert_weight_to_int4pack(Tensor weight, int inner_k_tiles=0) -> Tensor", _int4pack),
    ("npu_prefetch(Tensor self, Tensor? dependency, int max_size, int offset=0) -> ()", _prefetch),
)
for _schema, _function in _SCHEMAS:
    LIBRARY.define(_schema)
    LIBRARY.impl(_schema.partition("(")[0], _kernel(_schema, _function), "CompositeImplicitAutograd")

globals().update({re.split(r"\W", _schema)[0]: operator_of(_schema) for _schema, _ in _SCHEMAS})
globals().update({_name: operator_of_device(_name) for _name in _OPERATORS})


@names_operator
def empty_with_format(size: Sequence[int], *, dtype: Optional[torch.dtype] = None,
                      layout: Optional[torch.layout] = None, device: Any = None, pin_memory: Any = None,
                      acl_format: int = _ND, base_addr_aligned_kb: Optional[int] = None) -> torch.Tensor:
    """torch.empty(): here there is one format of memory."""
    _expect(isinstance(acl_format, int), "acl_format", f"is {acl_format!r}; expected an integer")
    try:
        return torch.empty(size, dtype=dtype, layout=layout, device=device)
    except (RuntimeError, TypeError):  # PyTorch's text has many lines
        sizes = as_annotated("size", size, "Sequence[int]")
        _expect(all(extent >= 0 for extent in sizes), "size", f"is {sizes}; expected no negative number")
        npu.expect_device(device)
        for argument, value, kind in ("dtype", dtype, torch.dtype), ("layout", layout, torch.layout):
            if value is not None and not isinstance(value, kind):
                raise ArgumentTypeError(f"{argument}: is {shown(value)}; expected a torch.{kind.__name__}") from None
        raise
