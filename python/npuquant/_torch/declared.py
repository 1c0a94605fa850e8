# SPDX-License-Identifier: BSD-3-Clause
"""Operators of torch_npu that npuquant.torch has not: their schemas, and the shapes and types of results.

Each row is torch_npu's schema, and a function from the arguments to results without values. The function refuses what
no device accepts. With install(strict=True) it also refuses what devices of the series A2 and A3 refuse.

Source of a row, if the row names no other: Ascend/op-plugin of 2026-08-21 (517f2e7d). Schemas are those of
op_plugin_functions.yaml. Shapes and limits are those of op_plugin/python/meta and docs/zh/custom_APIs/torch_npu.
"""
from __future__ import annotations

import math
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from npuquant_facts.dtypes import TYPES

from .._arguments import (_PRODUCTS_ON_DEVICE, ArgumentError, ArgumentTypeError, _ceiling, _check_product_types,
                          _dimensions, _expect, _of, _one_of, _shape, _shapes, _type_of, is_transposed, listed,
                          names_operator, shown)
from .._serving import casts as _casts, experts as _experts, grouped as _grouped, microscaling as _microscaling, moves as _moves
from .._tensors import FLOAT4, FLOAT8, MX, codes_of, described, result_of, result_type
from . import near as _near
from .arguments import _name, _stored, QUANT_SCATTER, UNDEFINED, bound, quant_scatter_checks
from .chosen import by_a_test, cann, chosen, expect_strictly as _strict
from .registered import operator_of, refuse_none, register
from .tensors import array_of, tensor_of

Results = Union[Tensor, Sequence[Tensor]]

# ---- rows ------------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """An operator: its schemas, overloads after the first, and what its results are. near writes values that are not
    the device's to the bit."""

    schemas: Sequence[str]
    results: Callable[[Any], Results]
    values: Optional[Callable[[Any], Union[Results, str]]]  # or a text: what selects values that are not known
    near: Optional[Callable[..., Any]]


ROWS: Dict[str, Row] = {}


def _row(*schemas: str, values: Optional[Callable[[Any], Union[Results, str]]] = None,
         near: Optional[Callable[..., Any]] = None) -> Callable[..., Any]:
    """Adds a row: the decorated function takes the arguments by their names. values computes the results, and near
    writes them."""

    def add(results: Callable[[Any], Results]) -> Callable[[Any], Results]:
        ROWS[schemas[0].partition("(")[0]] = Row(schemas, results, values, near)
        return results

    return add


def _empties(x: Tensor, argument: str, made: Sequence[_experts.Made]) -> List[Tensor]:
    """Results without values; the argument chooses their types."""
    return [x.new_empty(one.shape, dtype=_stored(argument, one.type)) for one in made]


def _computed(function: Callable[..., Any], a: Any, **more: Any) -> Results:
    """The results of the package's function on the tensors' memory."""
    arrays = {name: [array_of(one) for one in value] if isinstance(value, list) else array_of(value)
              for name, value in vars(a).items()}
    made = function(**arrays, **more)
    return [tensor_of(one) for one in made] if isinstance(made, (list, tuple)) else tensor_of(made)


def _quantised(x: Tensor, shape: Sequence[int], argument: str, dtype: Any, default: str = "int8") -> Tensor:
    """A result of that shape: int4 in words of eight, 4-bit floating point in bytes of two."""
    name = _name(argument, dtype, default)
    words = TYPES.get("quint4x2" if name == "int4" else name)
    per_element = words.elements if words else 1
    _expect(shape[-1] % per_element == 0, argument, f"is {name}, with {per_element} elements in each stored one; "
            f"expected a last dimension that is a multiple of {per_element}, not {shape[-1]}")
    stored = _stored(argument, words.stored if words and words.elements > 1 else name)
    return x.new_empty((*shape[:-1], shape[-1] // per_element), dtype=stored)


def _floats(x: Tensor, *shape: int) -> Tensor:
    return x.new_empty(shape, dtype=torch.float32)


def _halved(x: Tensor, dim: int, argument: str) -> List[int]:
    """The shape with half of a dimension: what a gated activation returns."""
    shape = list(x.shape)
    _expect(-len(shape) <= dim < len(shape), argument, f"has {len(shape)} dimensions; expected dimension {dim}")
    _expect(shape[dim] % 2 == 0, argument, f"has the shape {shape}; expected an even dimension {dim}")
    shape[dim] //= 2
    return shape


def _mx_scales(x: Tensor, axis: int = -1, block: int = 32) -> Tensor:
    """The scales of microscaling: a byte for each block, in pairs along the axis."""
    shape = [*x.shape, 2]
    shape[axis % x.dim()] = _ceiling(_ceiling(x.shape[axis], block), 2)
    return x.new_empty(shape, dtype=torch.uint8)


def _mx_name(a: Any) -> str:
    return result_of("dynamic_mx_quant", "dst_type", a.dst_type).name


def _mx_codes(x: Tensor, a: Any) -> Tensor:
    """What microscaling makes of x."""
    return _quantised(x, x.shape, "dst_type", 256 + TYPES[_mx_name(a)].number)


def _mx_halves(name: str, x: Tensor, *dimensions: int) -> None:
    """What relatives of dynamic_mx_quant() take."""
    _of(name, x, "float16", "bfloat16")
    _dimensions(name, x, *dimensions)


def _rows_of(x: Tensor) -> Tuple[int, ...]:
    return tuple(x.shape[:-1])


# ---- activations -----------------------------------------------------------------------------------------------------


@_row("npu_gelu(Tensor self, *, str approximate='none') -> Tensor", near=_near.gelu)
def _gelu(a: Any) -> Results:
    _one_of("approximate", a.approximate, "none", "tanh")
    return torch.empty_like(a.self)


@_row("npu_swiglu(Tensor self, int dim=-1) -> Tensor", near=_near.swiglu)
def _swiglu(a: Any) -> Results:
    return a.self.new_empty(_halved(a.self, a.dim, "input"))


@_row("npu_clipped_swiglu(Tensor x, *, Tensor? group_index=None, int dim=-1, float alpha=1.702, float limit=7.0,"
      " float bias=1.0, bool interleaved=True) -> Tensor")
def _clipped_swiglu(a: Any) -> Results:
    return a.x.new_empty(_halved(a.x, a.dim, "x"))


_GROUP = ", one number for each group of rows"


def _check_groups(groups: Optional[Tensor], x: Tensor, counts: bool) -> None:
    """The ends of groups of rows, or with counts their sizes, where their values can be looked at."""
    if groups is not None and not groups.is_meta and groups.numel():
        ends = groups.cumsum(0) if counts else groups
        rows = x.numel() // max(x.shape[-1], 1)
        expected = "sizes of 0 or more" if counts else "ends that never decrease"
        _expect(bool((ends.diff(prepend=ends.new_zeros(1)) >= 0).all()), "group_index",
                f"is {shown(groups.tolist())}; expected {expected}")
        _expect(int(ends[-1]) <= rows, "group_index", f"ends with row {int(ends[-1])}; expected at most {rows}")


def _check_gate(a: Any, *modes: int) -> None:
    _dimensions("x", a.x, 2, 8)
    _one_of("swiglu_mode", a.swiglu_mode, *modes)
    _expect(math.isfinite(a.clamp_limit) and a.clamp_limit > 0, "clamp_limit",
            f"is {a.clamp_limit}; expected a finite number above 0")
    for name in "glu_alpha", "glu_bias":
        _expect(math.isfinite(getattr(a, name)), name, f"is {getattr(a, name)}; expected a finite number")


@_row("npu_swiglu_quant(Tensor x, *, Tensor? smooth_scales=None, Tensor? offsets=None, Tensor? group_index=None,"
      " bool activate_left=False, int quant_mode=0, int group_list_type=0, int? dst_type=None) -> (Tensor, Tensor)",
      near=_near.swiglu_quant)
def _swiglu_quant(a: Any) -> Results:
    _one_of("quant_mode", a.quant_mode, 0, 1)
    _one_of("group_list_type", a.group_list_type, 0, 1)
    _dimensions("x", a.x, 2, 8)
    _of("x", a.x, "float32", "float16", "bfloat16")
    half = _halved(a.x, -1, "x")
    _expect(a.x.shape[-1] <= 8192, "x", f"has {a.x.shape[-1]} columns; expected at most 8192")
    _of("group_index", a.group_index, "int32")
    _shapes("group_index", a.group_index, [None], why=_GROUP)
    groups = None if a.group_index is None else a.group_index.shape[0]
    for name, tensor in ("smooth_scales", a.smooth_scales), ("offsets", a.offsets):
        _of(name, tensor, "float32")
        _shapes(name, tensor, [groups, half[-1]], [groups])
    if a.quant_mode == 0:
        shapes = [None if one is None else list(one.shape) for one in (a.smooth_scales, a.offsets)]
        _expect(shapes[0] == shapes[1], "offsets", f"has the shape {shapes[1]}; expected that of smooth_scales, "
                f"{shapes[0]}, as quant_mode is 0")
    _check_groups(a.group_index, a.x, a.group_list_type == 1)
    name = _name("dst_type", a.dst_type, "int8")
    _one_of("dst_type", name, "int8", "qint8", "quint4x2", "int4")
    if name in ("quint4x2", "int4"):  # two in a byte
        _expect(half[-1] % 2 == 0, "x", f"has {a.x.shape[-1]} columns; expected a multiple of 4 for {name}")
        half[-1] //= 2
    return a.x.new_empty(half, dtype=torch.int8), _floats(a.x, *_rows_of(a.x))


@_row("npu_swiglu_group_quant(Tensor x, *, Tensor? weight=None, Tensor? group_index=None, Tensor? scale=None,"
      " int dst_type=291, int quant_mode=0, int block_size=0, bool round_scale=False, float clamp_limit=-1.0,"
      " float dst_type_max=15.0, bool output_origin=False) -> (Tensor, Tensor, Tensor)", near=_near.swiglu_group_quant)
def _swiglu_group_quant(a: Any) -> Results:
    """activation/swiglu_group_quant/README.md of cann/ops-nn (2026-08-22, e5c3fa93): torch_npu has no page of it yet,
    and makes results of quant_mode 2 and 3 only. These are hifloat8, 0 has blocks of columns, 1 is microscaling."""
    _one_of("quant_mode", a.quant_mode, 0, 1, 2, 3)
    mode, hifloat8, rows = a.quant_mode, a.quant_mode > 1, a.x.numel() // max(a.x.shape[-1], 1)
    _of("x", a.x, "float16", "bfloat16", *["float32"] * hifloat8)
    _dimensions("x", a.x, 2, 7 if mode == 1 else 8)
    _expect(a.x.shape[-1] % 256 == 0, "x", f"has {a.x.shape[-1]} columns; expected a multiple of 256")
    _expect(a.clamp_limit == -1 or a.clamp_limit > 0, "clamp_limit",
            f"is {a.clamp_limit}; expected a number above 0, or -1 for none")
    _of("weight", a.weight, "float32")
    if a.weight is not None:
        _expect(a.weight.numel() == rows, "weight", f"has {a.weight.numel()} elements; expected {rows}, as x has rows")
    _of("group_index", a.group_index, "int64")
    _shapes("group_index", a.group_index, [None], why=_GROUP)
    half = a.x.new_empty(_halved(a.x, -1, "x"))
    if hifloat8:
        groups = 1 if a.group_index is None else len(a.group_index)
        _check_groups(a.group_index, a.x, True)
        _expect(mode == 3 or a.scale is not None, "scale", "is None; quant_mode 2 needs it")
        _of("scale", a.scale, "float32")
        _shapes("scale", a.scale, [groups])
        return (half.new_empty(half.shape, dtype=torch.uint8), _floats(a.x, 0 if mode == 2 else groups),
                half if a.output_origin else half.new_empty([0]))
    _expect(not a.output_origin, "output_origin", f"is True; expected False with quant_mode {mode}")
    _one_of("block_size", a.block_size, 0, 32 if mode == 1 else 128)
    if mode == 1:
        _expect(a.round_scale, "round_scale", "is False; expected True with quant_mode 1")
        return _mx_codes(half, a), _mx_scales(half), half.new_empty([0])
    _one_of("dst_type", _name("dst_type", a.dst_type, ""), "float8_e4m3fn", "float8_e5m2")
    return (_quantised(half, half.shape, "dst_type", a.dst_type),
            _floats(a.x, *_rows_of(half), half.shape[-1] // 128), half.new_empty([0]))


@_row("npu_swiglu_clip_quant(Tensor x, Tensor group_index, Tensor group_alpha, *, bool activate_left=False,"
      " int quant_mode=1, int clamp_mode=1) -> (Tensor, Tensor)")
def _swiglu_clip_quant(a: Any) -> Results:
    """cann-recipes-infer adds it to torch_npu: torch_ops_extension/.../npu_swiglu_clip_quant.md there."""
    _shape("x", a.x, None, None)
    _of("x", a.x, "bfloat16")
    _one_of("quant_mode", a.quant_mode, 1)
    _one_of("clamp_mode", a.clamp_mode, 1)
    _of("group_index", a.group_index, "int64")
    _of("group_alpha", a.group_alpha, "float32")
    _shapes("group_index", a.group_index, [None], why=_GROUP)
    _shape("group_alpha", a.group_alpha, a.group_index.shape[0])
    half = _halved(a.x, -1, "x")
    _check_groups(a.group_index, a.x, True)
    return a.x.new_empty(half, dtype=torch.int8), _floats(a.x, half[0])


@_row("npu_swiglu_mx_quant(Tensor x, *, Tensor? group_index=None, int activate_dim=-1, bool activate_left=False,"
      " int swiglu_mode=0, float clamp_limit=7.0, float glu_alpha=1.702, float glu_bias=1.0, int group_mode=0,"
      " int axis=-1, int dst_type=296, str round_mode=\"rint\", int scale_alg=0, float max_dtype_value=0)"
      " -> (Tensor, Tensor)", near=_near.swiglu_mx_quant)
def _swiglu_mx_quant(a: Any) -> Results:
    """A later torch_npu has swiglu_mode 2 and 3, along the last axis."""
    _check_gate(a, 0, 1, 2, 3)
    _mx_halves("x", a.x, 2, 7)
    count = a.x.dim()
    for name, dim in ("activate_dim", a.activate_dim), ("axis", a.axis):
        _one_of(name, dim, -1, -2, count - 1, count - 2)
    half, last = a.x.new_empty(_halved(a.x, a.activate_dim, "x")), a.axis % count == count - 1
    _expect(a.swiglu_mode == 0 or a.activate_dim % count == count - 1, "swiglu_mode",
            f"is {a.swiglu_mode}; expected 0, as activate_dim is not the last")
    _expect(a.swiglu_mode < 2 or last, "swiglu_mode", f"is {a.swiglu_mode}; expected 0 or 1, as axis is not the last")
    scales = _mx_scales(half, a.axis)
    if a.group_index is not None:
        _of("group_index", a.group_index, "int64")
        _shapes("group_index", a.group_index, [None], why=_GROUP)
        _check_groups(a.group_index, half, True)
        if not last or a.activate_dim % count != count - 1:
            _dimensions("x", a.x, 2, 2)
        if not last:  # each group begins a block
            scales = scales.new_empty((half.shape[0] // 64 + len(a.group_index), *scales.shape[1:]))
    return _mx_codes(half, a), scales


_DEQUANT_SWIGLU = (
    "(Tensor x, *, Tensor? weight_scale=None, Tensor? activation_scale=None,"
    " Tensor? bias=None, Tensor? quant_scale=None, Tensor? quant_offset=None, Tensor? group_index=None,"
    " bool activate_left=False, int quant_mode=0, int? dst_type=None, int? round_mode=None, int? activate_dim=None,"
    " int swiglu_mode=0, float clamp_limit=7.0, float glu_alpha=1.702, float glu_bias=1.0) -> (Tensor, Tensor)")


@_row("npu_dequant_swiglu_clamp_quant" + _DEQUANT_SWIGLU)  # cann-recipes-infer adds it to torch_npu
@_row("npu_dequant_swiglu_quant" + _DEQUANT_SWIGLU, near=_near.dequant_swiglu_quant)
def _dequant_swiglu_quant(a: Any) -> Results:
    """The series A2 and A3 ignore dst_type, round_mode and activate_dim; so does strict."""
    _of("x", a.x, "int32", "float16", "bfloat16")
    _one_of("quant_mode", a.quant_mode, 0, 1)
    _check_gate(a, 0, 1, 2)
    dst_type, dim = (None, -1) if chosen.strict else (a.dst_type, -1 if a.activate_dim is None else a.activate_dim)
    half = _halved(a.x, dim, "x")
    rows = a.x.numel() // max(a.x.shape[-1], 1)
    _of("weight_scale", a.weight_scale, "float32")
    _of("activation_scale", a.activation_scale, "float32")
    _of("quant_scale", a.quant_scale, "float32", *["float16", "bfloat16"] * (a.quant_mode == 1))
    _of("group_index", a.group_index, "int64")
    if a.activation_scale is not None:
        _expect(a.activation_scale.numel() == rows, "activation_scale",
                f"has {a.activation_scale.numel()} elements; expected {rows}, one for each row of x")
    _strict(a.x.dtype != torch.int32 or a.activation_scale is not None, "activation_scale",
            "is None; expected one for int32 x")
    _expect(a.x.dtype != torch.int32 or a.weight_scale is not None, "weight_scale", "is None; expected one for int32 x")
    if a.group_index is not None:
        _check_swiglu_groups(a, half[-1])
    for name, scale, columns in (("weight_scale", a.weight_scale, a.x.shape[-1]),
                                 ("quant_scale", a.quant_scale, half[-1])):
        if scale is not None and a.group_index is None:
            _expect(scale.shape[-1] in (columns, 1), name,
                    f"has the shape {list(scale.shape)}; expected {columns} in the last dimension")
    return _quantised(a.x, half, "dst_type", dst_type), _floats(a.x, *half[:-1])


def _check_swiglu_groups(a: Any, columns: int) -> None:
    """The rules of group_index, of the values that can be looked at, and of scales with a row for each group."""
    _shapes("group_index", a.group_index, [None], [None, 2],
            why=": the size of each group of rows, or its expert and size")
    groups, last, static = a.group_index.shape[0], a.x.shape[-1], a.quant_mode == 0
    if a.group_index.dim() == 2:
        _expect(a.x.dtype == torch.int32 and a.bias is None and a.swiglu_mode == 0, "group_index",
                "has pairs; expected sizes, unless x is int32, bias is None and swiglu_mode is 0")
    _shapes("weight_scale", a.weight_scale, [groups, last], *[[last]] * (groups == 1))
    for name, tensor in ("quant_scale", a.quant_scale), ("quant_offset", a.quant_offset):
        _shapes(name, tensor, [groups, columns], *[[groups]] * static, *[[columns]] * (groups == 1))
    _strict(a.x.dtype in (torch.int32, torch.bfloat16), "x", f"is {_type_of(a.x)}; expected int32 or bfloat16 with "
            "group_index")
    _strict(not static or a.quant_offset is not None, "quant_offset", "is None; quant_mode 0 needs it with group_index")
    # A row, with what is computed for each of its elements, lies in the memory of one core.
    bytes_each = 37 + 8 * (a.bias is not None) + 5 * (a.swiglu_mode != 0) + 4 * static
    longest = 195228 // (32 * bytes_each) * 64
    _strict(last % 64 == 0 and last <= longest, "x",
            f"has {last} columns; expected a multiple of 64, at most {longest}, with group_index")
    if not a.group_index.is_meta:
        experts, sizes = _near.groups_of(a.group_index)
        total, rows = int(sizes.sum()), a.x.numel() // max(last, 1)
        _expect(total <= rows, "group_index", f"has {total} rows; expected at most {rows}, as x has")
        used = experts[sizes > 0].tolist()
        _expect(all(0 <= expert < groups for expert in used), "group_index",
                f"has the experts {shown(used)}; expected 0 to {groups - 1}")


@_row("npu_gelu_quant(Tensor self, *, Tensor? input_scale=None, Tensor? input_offset=None, str approximate='none',"
      " str quant_mode='dynamic', int? dst_type=None, str round_mode='rint') -> (Tensor, Tensor)")
def _gelu_quant(a: Any) -> Results:
    _one_of("quant_mode", a.quant_mode, "dynamic", "static")
    static = a.quant_mode == "static"
    _expect(not static or a.input_scale is not None, "input_scale", "is None; quant_mode 'static' needs it")
    return _quantised(a.self, a.self.shape, "dst_type", a.dst_type), _floats(a.self, *([0] if static
                                                                                       else _rows_of(a.self)))


# ---- norms -----------------------------------------------------------------------------------------------------------


def _norm(x: Tensor, gamma: Tensor, *others: Tuple[str, Optional[Tensor]]) -> None:
    """gamma and what lies beside it belong to the last dimensions of x."""
    last = list(x.shape[x.dim() - gamma.dim():])
    for name, tensor in ("gamma", gamma), *others:
        _shapes(name, tensor, last, *[[1, x.shape[-1]]] * (gamma.dim() == 2))


def _rstd(x: Tensor, gamma: Tensor) -> Tensor:
    return _floats(x, *x.shape[:x.dim() - gamma.dim()], *[1] * gamma.dim())


@_row("npu_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)", near=_near.rms_norm)
def _rms_norm(a: Any) -> Results:
    _norm(a.self, a.gamma)
    return torch.empty_like(a.self), _rstd(a.self, a.gamma)


@_row("npu_add_rms_norm(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor, Tensor)",
      near=_near.add_rms_norm)
def _add_rms_norm(a: Any) -> Results:
    _shape("x2", a.x2, *a.x1.shape)
    _norm(a.x1, a.gamma)
    return torch.empty_like(a.x1), _rstd(a.x1, a.gamma), torch.empty_like(a.x1)


@_row("npu_rms_norm_quant(Tensor x, Tensor gamma, Tensor beta, Tensor scale, Tensor offset, float epsilon=1e-06, *,"
      " int? dst_dtype=None) -> Tensor", near=_near.rms_norm_quant)
def _rms_norm_quant(a: Any) -> Results:
    _norm(a.x, a.gamma, ("beta", a.beta))
    return _quantised(a.x, a.x.shape, "dst_dtype", a.dst_dtype)


@_row("npu_add_rms_norm_quant(Tensor x1, Tensor x2, Tensor gamma, Tensor scales1, Tensor? zero_points1,"
      " Tensor? beta=None, Tensor? scales2=None, Tensor? zero_points2=None, *, int axis=-1, float epsilon=1e-06,"
      " bool div_mode=True, int? dst_type=None) -> (Tensor, Tensor, Tensor)", near=_near.add_rms_norm_quant)
def _add_rms_norm_quant(a: Any) -> Results:
    _expect(a.axis == -1, "axis", f"is {a.axis}; expected -1")
    _shape("x2", a.x2, *a.x1.shape)
    _norm(a.x1, a.gamma, ("beta", a.beta))
    y = _quantised(a.x1, a.x1.shape, "dst_type", a.dst_type)
    return y, torch.empty_like(y), torch.empty_like(a.x1)


@_row("npu_add_rms_norm_dynamic_quant(Tensor x1, Tensor x2, Tensor gamma, *, Tensor? smooth_scale1=None,"
      " Tensor? smooth_scale2=None, Tensor? beta=None, float epsilon=1e-6, bool[2]? output_mask=None,"
      " int? y_dtype=None) -> (Tensor, Tensor, Tensor, Tensor, Tensor)", near=_near.add_rms_norm_dynamic_quant)
def _add_rms_norm_dynamic_quant(a: Any) -> Results:
    """What is not wanted has no dimension on the device, and an empty one where only shapes are computed."""
    _dimensions("x1", a.x1, 2, 8)
    _shape("x2", a.x2, *a.x1.shape)
    _norm(a.x1, a.gamma, ("beta", a.beta), ("smooth_scale1", a.smooth_scale1), ("smooth_scale2", a.smooth_scale2))
    if chosen.strict:
        _by_rules(_add_rms_norm_dynamic_rules, a)
    made = a.output_mask or [True, a.smooth_scale1 is not None and a.smooth_scale2 is not None]
    _expect(any(made), "output_mask", f"is {a.output_mask}; expected a True, for a result")
    none = [0] if a.x1.is_meta else []
    y = [_quantised(a.x1, a.x1.shape, "y_dtype", a.y_dtype) for _ in made]
    scale = [_floats(a.x1, *(_rows_of(a.x1) if one else none)) for one in made]
    y = [one if is_made else one.new_empty(none) for one, is_made in zip(y, made)]
    return (*y, torch.empty_like(a.x1), *scale)


def _add_rms_norm_dynamic_rules(a: Any) -> None:
    _of("x1", a.x1, "float16", "bfloat16")
    _shape("gamma", a.gamma, None)
    for name in "x2", "gamma", "beta", "smooth_scale1", "smooth_scale2":
        _of(name, getattr(a, name), _type_of(a.x1))


def _mx_of_norm(name: str, x: Tensor, a: Any) -> Sequence[Tensor]:
    _one_of("scale_alg", a.scale_alg, 0, 1)
    _mx_halves(name, x, 1, 7)
    _norm(x, a.gamma, ("beta", a.beta))
    return _mx_codes(x, a), _mx_scales(x), _rstd(x, a.gamma)


@_row("npu_rms_norm_dynamic_mx_quant(Tensor x, Tensor gamma, *, Tensor? beta=None, float epsilon=1e-06,"
      " int scale_alg=0, str round_mode=\"rint\", int dst_type=296) -> (Tensor, Tensor, Tensor)",
      near=_near.rms_norm_dynamic_mx_quant)
def _rms_norm_dynamic_mx_quant(a: Any) -> Results:
    return _mx_of_norm("x", a.x, a)


@_row("npu_add_rms_norm_dynamic_mx_quant(Tensor x1, Tensor x2, Tensor gamma, *, Tensor? beta=None,"
      " float epsilon=1e-06, int scale_alg=0, str round_mode=\"rint\", int dst_type=296)"
      " -> (Tensor, Tensor, Tensor, Tensor)", near=_near.add_rms_norm_dynamic_mx_quant)
def _add_rms_norm_dynamic_mx_quant(a: Any) -> Results:
    _of("x2", a.x2, _type_of(a.x1), why=", as x1 is")
    _shape("x2", a.x2, *a.x1.shape)
    y, *others = _mx_of_norm("x1", a.x1, a)
    return (y, torch.empty_like(a.x1), *others)


# ---- quantisation ----------------------------------------------------------------------------------------------------


def _mx_computed(function: Callable[..., Any], *codes: int) -> Callable[[Any], Results]:
    """The values of a quantiser of microscaling. These results have the type of codes, if PyTorch has it."""

    def values(a: Any) -> Results:
        made = list(_computed(function, a))
        for i in codes:
            made[i] = made[i].view(_stored("dst_type", _mx_name(a)))
        return made

    return values


@_row("npu_dynamic_mx_quant(Tensor input, *, int axis=-1, str round_mode=\"rint\", int dst_type=296,"
      " int block_size=32, int? scale_alg=0, float dst_type_max=0.0, float max_low_bound=0.0) -> (Tensor, Tensor)",
      values=_mx_computed(_microscaling.dynamic_mx_quant, 0))
def _dynamic_mx_quant(a: Any) -> Results:
    _dimensions("input", a.input, 1, 7)
    _expect(-a.input.dim() <= a.axis < a.input.dim(), "axis", f"is {a.axis}; input has {a.input.dim()} dimensions")
    _expect(a.block_size % 32 == 0 and 0 < a.block_size <= 1024, "block_size",
            f"is {a.block_size}; expected a multiple of 32, at most 1024")
    _one_of("scale_alg", a.scale_alg, 0, 1, 2)
    return _mx_codes(a.input, a), _mx_scales(a.input, a.axis, a.block_size)


@_row("npu_dynamic_mx_quant_with_dual_axis(Tensor input, *, str round_mode=\"rint\", int dst_type=296, int scale_alg=0,"
      " float? dst_type_max=0.0) -> (Tensor, Tensor, Tensor, Tensor)",
      values=_mx_computed(_microscaling.with_dual_axis, 0, 2))
def _dynamic_mx_quant_with_dual_axis(a: Any) -> Results:
    _mx_halves("input", a.input, 2, 7)
    _one_of("scale_alg", a.scale_alg, 0, 1, 2)
    return [made for axis in (-1, -2) for made in (_mx_codes(a.input, a), _mx_scales(a.input, axis))]


def _grouped_mx_values(a: Any) -> Union[Results, str]:
    if a.scale_alg == 2 and _mx_name(a) == "float4_e1m2fn_x2":
        return "scale_alg 2 and dst_type float4_e1m2fn_x2"
    return _mx_computed(_microscaling.grouped, 0)(a)


@_row("npu_grouped_dynamic_mx_quant(Tensor x, Tensor group_index, *, str round_mode=\"rint\", int dst_type=23,"
      " int blocksize=32, int? scale_alg=0, float? dst_type_max=0.0) -> (Tensor, Tensor)", values=_grouped_mx_values)
def _grouped_dynamic_mx_quant(a: Any) -> Results:
    _mx_halves("x", a.x, 2, 2)
    _of("group_index", a.group_index, "int32")
    _shape("group_index", a.group_index, None)
    _one_of("blocksize", a.blocksize, 32)
    _one_of("scale_alg", a.scale_alg, 0, 1, 2)
    rows, columns = a.x.shape
    return _mx_codes(a.x, a), a.x.new_empty((rows // 64 + a.group_index.shape[0], columns, 2), dtype=torch.uint8)


@_row("npu_dynamic_block_mx_quant(Tensor input, *, str round_mode=\"rint\", int dst_type=296, int scale_alg=0,"
      " float dst_type_max=0.0) -> (Tensor, Tensor, Tensor)", values=_mx_computed(_microscaling.in_blocks, 0))
def _dynamic_block_mx_quant(a: Any) -> Results:
    _mx_halves("input", a.input, 2, 3)
    _one_of("scale_alg", a.scale_alg, 0, 2)
    _one_of("dst_type_max", a.dst_type_max, 0.0, 6.0, 7.0)
    return _mx_codes(a.input, a), _mx_scales(a.input), _mx_scales(a.input, -2)


def _grouped_block_values(a: Any) -> Union[Results, str]:
    if a.round_mode == "hybrid":
        return "round_mode 'hybrid'"
    if a.dst_type_max not in (0, 15, 56, 224, 32768):
        return f"dst_type_max {a.dst_type_max}"
    name = _name("dst_type", a.dst_type, "")
    y, scale = _microscaling.grouped_blocks(
        array_of(a.x), array_of(a.group_list), dst_type=name, min_scale=a.min_scale, row_block_size=a.row_block_size,
        col_block_size=a.col_block_size, dst_type_max=a.dst_type_max)
    return tensor_of(y).view(_stored("dst_type", name)), tensor_of(scale)


@_row("npu_grouped_dynamic_block_quant(Tensor x, Tensor group_list, *, float min_scale=0.0, str round_mode=\"rint\","
      " int dst_type=291, int row_block_size=1, int col_block_size=128, int group_list_type=0, float dst_type_max=0.0)"
      " -> (Tensor, Tensor)", values=_grouped_block_values)
def _grouped_dynamic_block_quant(a: Any) -> Results:
    _mx_halves("x", a.x, 2, 3)
    _of("group_list", a.group_list, "int32")
    _shape("group_list", a.group_list, None)
    name = _name("dst_type", a.dst_type, "")
    _one_of("dst_type", name, "float8_e4m3fn", "float8_e5m2", "hifloat8")
    _one_of("round_mode", a.round_mode, *(["round", "hybrid"] if name == "hifloat8" else ["rint"]))
    _one_of("row_block_size", a.row_block_size, 1, 128, 256, 512)
    _one_of("col_block_size", a.col_block_size, 64, 128, 192, 256)
    _one_of("group_list_type", a.group_list_type, 0)
    most = 32768 if name == "hifloat8" else 0
    _expect(0 <= a.dst_type_max <= most, "dst_type_max",
            f"is {a.dst_type_max}; expected {'0 to 32768' if most else '0'}")
    *batch, rows, columns = a.x.shape
    return (a.x.new_empty(a.x.shape, dtype=_stored("dst_type", name)),
            _floats(a.x, *batch, rows // a.row_block_size + len(a.group_list), _ceiling(columns, a.col_block_size)))


@_row("npu_dynamic_dual_level_mx_quant(Tensor input, *, Tensor? smooth_scale=None, str round_mode=\"rint\")"
      " -> (Tensor, Tensor, Tensor)", values=lambda a: _computed(_microscaling.dual_level, a))
def _dynamic_dual_level_mx_quant(a: Any) -> Results:
    _mx_halves("input", a.input, 1, 7)
    shape = list(a.input.shape)
    _expect(0 not in shape, "input", f"has the shape {shape}; expected no empty dimension")
    _expect(shape[-1] % 2 == 0, "input", f"has {shape[-1]} columns; expected an even number, as y has two in a byte")
    _of("smooth_scale", a.smooth_scale, _type_of(a.input), why=", as input is")
    _shapes("smooth_scale", a.smooth_scale, [shape[-1]])
    _one_of("round_mode", a.round_mode, "rint", "round", "floor")
    return (_quantised(a.input, shape, "input", 296), _floats(a.input, *shape[:-1], _ceiling(shape[-1], 512)),
            _mx_scales(a.input))


def _mx_values(a: Any) -> Results:
    source = result_type("src_type", a.src_type, MX).name
    a.x, a.mxscale = codes_of(a.x, source), codes_of(a.mxscale, "float8_e8m0fnu")
    return _computed(_microscaling.anti_mx_quant, a)


@_row("npu_anti_mx_quant(Tensor x, Tensor mxscale, *, int? axis=-1, int? dst_type=15, int? src_type=292) -> Tensor",
      values=_mx_values)
def _anti_mx_quant(a: Any) -> Results:
    source, made = result_type("src_type", a.src_type, MX).name, result_of("anti_mx_quant", "dst_type", a.dst_type).name
    _of("x", a.x, "uint8", source, why=", as src_type is " + source)
    _of("mxscale", a.mxscale, "uint8", "float8_e8m0fnu")
    _dimensions("x", a.x, 1, 7)
    _expect(-a.x.dim() <= a.axis < a.x.dim(), "axis", f"is {a.axis}; x has {a.x.dim()} dimensions")
    y = a.x.new_empty(TYPES[source].in_values(a.x.shape), dtype=_stored("dst_type", made))
    _shape("mxscale", a.mxscale, *_mx_scales(y, a.axis).shape)
    return y


def _cast_values(a: Any) -> Results:
    made, own = _casts.dtype_cast(a.self, a.dtype, a.input_dtype)[1], _type_of(a.self)
    a.input, a.input_dtype = codes_of(a.self, own), own if own in _casts.CODED else a.input_dtype
    del a.self
    y: Any = _computed(_casts.npu_dtype_cast, a)
    return y.view(_stored("dtype", made.type))


@_row("npu_dtype_cast(Tensor self, int dtype, int? input_dtype=None) -> Tensor", values=_cast_values)
def _dtype_cast(a: Any) -> Results:
    return _empties(a.self, "dtype", [_casts.dtype_cast(a.self, a.dtype, a.input_dtype)[1]])[0]


@_row("npu_kronecker_quant(Tensor x, Tensor kronecker_p1, Tensor kronecker_p2, float? clip_ratio=None,"
      " int? dst_dtype=None, float? dst_type_max=None) -> (Tensor out, Tensor quant_scale)")
def _kronecker_quant(a: Any) -> Results:
    _shape("x", a.x, None, None, None)
    _shape("kronecker_p1", a.kronecker_p1, a.x.shape[1], a.x.shape[1])
    _shape("kronecker_p2", a.kronecker_p2, a.x.shape[2], a.x.shape[2])
    name = _name("dst_dtype", a.dst_dtype, "int32")
    _one_of("dst_dtype", name, "int32", "float4_e2m1fn_x2")
    if name == "int32":
        return _quantised(a.x, a.x.shape, "dst_dtype", 285), _floats(a.x, a.x.shape[0])
    flat = a.x.new_empty((a.x.shape[0], a.x.shape[1] * a.x.shape[2]))
    return _quantised(flat, flat.shape, "dst_dtype", a.dst_dtype), _mx_scales(flat)


def _quant_scattered(a: Any) -> Tensor:
    return a.self.copy_(torch.ops.npuquant.npu_quant_scatter(**vars(a)))


@_row("npu_quant_scatter_" + QUANT_SCATTER.format("(a!)", "(a!)"), values=_quant_scattered)
def _quant_scatter_(a: Any) -> Results:
    quant_scatter_checks(a)
    if chosen.strict:
        _by_rules(_scatter_rules, a)
    return a.self


# ---- scatter: only moves elements ------------------------------------------------------------------------------------


def _scatter_nd(a: Any) -> Results:
    depth = a.indices.shape[-1]
    _of("updates", a.updates, _type_of(a.self))
    _shape("updates", a.updates, *a.indices.shape[:-1], *a.self.shape[depth:])
    return torch.empty_like(a.self)


def _scattered(a: Any, into: Tensor) -> Tensor:
    into[tuple(a.indices.long().unbind(-1))] = a.updates
    return into


_row("npu_scatter_nd_update(Tensor self, Tensor indices, Tensor updates) -> Tensor",
     values=lambda a: _scattered(a, a.self.clone()))(_scatter_nd)


@_row("npu_scatter_nd_update_(Tensor(a!) self, Tensor indices, Tensor updates) -> Tensor(a!)",
      values=lambda a: _scattered(a, a.self))
def _scatter_nd_(a: Any) -> Results:
    _scatter_nd(a)
    return a.self


# ---- products --------------------------------------------------------------------------------------------------------


def _columns(weight: Tensor, x: Tensor, float4: bool = False) -> int:
    """N of a weight [.., K, N], of which an element has eight int4 in a word, or two float4 in a byte, along the
    dimension that is contiguous."""
    words = weight.dtype == torch.int32 or (weight.dtype == torch.float32 and x.dtype != torch.float32)
    return weight.shape[-1] * (1 if is_transposed(weight) else 2 if float4 else 8 if words else 1)


_GROUPED = ("(Tensor[] x, Tensor[] weight, *, Tensor[]? bias=None, Tensor[]? scale=None, Tensor[]? offset=None,"
            " Tensor[]? antiquant_scale=None, Tensor[]? antiquant_offset=None, Tensor[]? per_token_scale=None,"
            " {} group_list=None, Tensor[]? activation_input=None, Tensor[]? activation_quant_scale=None,"
            " Tensor[]? activation_quant_offset=None, int? split_item=0, int? group_type=None,"
            " int? group_list_type=0, int? act_type=0, {}) -> Tensor[]")


@_row("npu_grouped_matmul" + _GROUPED.format(
      "Tensor?", "int[]? tuning_config=None, int? output_dtype=None, int? x_dtype=None, int? weight_dtype=None,"
      " int? scale_dtype=None, int? per_token_scale_dtype=None"),
      "npu_grouped_matmul.List" + _GROUPED.format("int[]?", "int? output_dtype=None"),
      values=lambda a: _grouped.undefined(a) or _computed(_grouped.npu_grouped_matmul, a))
def _grouped_matmul(a: Any) -> Results:
    if not _grouped.undefined(a):
        return _empties(a.x[0], "output_dtype", _grouped.grouped(a))
    _grouped.check_form(a)
    x, name = a.x, _name("output_dtype", a.output_dtype, str(a.x[0].dtype)[len("torch."):])
    dtype = _stored("output_dtype", name)
    one = _grouped.is_stacked(a)
    float4 = all(_name(argument, getattr(a, argument, None), "") in FLOAT4 for argument in ("x_dtype", "weight_dtype"))
    if float4:
        _one_of("split_item", a.split_item, 2, 3)
        _expect(x[0].shape[-1] > 1, "x[0]", "has one column; expected more: of float4 two elements are in a byte")
    for i, tensor in enumerate(x):
        weight = a.weight[0 if len(a.weight) == 1 else min(i, len(a.weight) - 1)]
        if float4 and a.group_type != 2:
            rows = tensor.shape[-1] * (1 if is_transposed(weight) else 2)
            _expect(weight.shape[-2] == rows, f"weight[{min(i, len(a.weight) - 1)}]",
                    f"has {weight.shape[-2]} rows; expected {rows}, as x[{i}] has {tensor.shape[-1]} bytes in a row")
            continue
        unpacked = tensor.dtype == weight.dtype or tensor.dtype in (torch.float16, torch.bfloat16)
        if a.group_type != 2 and unpacked and weight.dtype not in (torch.int32, torch.float32):
            _expect(tensor.shape[-1] == weight.shape[-2], "weight",
                    f"has {weight.shape[-2]} rows; x has {tensor.shape[-1]} columns")
    if a.per_token_scale:
        rows = sum(tensor.shape[0] for tensor in x)
        if a.per_token_scale[0].dim() == 1:
            _shape("per_token_scale", a.per_token_scale[0], rows)
        _strict(x[0].dim() == 2, "x", f"has {x[0].dim()} dimensions; expected 2 with per-token scales")
    if a.split_item in (0, 1) and a.group_type != 2:
        if a.split_item == 1:
            ends = [0, *(int(end) for end in a.group_list)]
            return [x[0].new_empty((end - begin, _columns(a.weight[0 if one else i], x[0])), dtype=dtype)
                    for i, (begin, end) in enumerate(zip(ends, ends[1:]))]
        return [tensor.new_empty((*tensor.shape[:-1], _columns(a.weight[0 if one else i], tensor)), dtype=dtype)
                for i, tensor in enumerate(x)]
    shape: Tuple[int, ...] = (sum(tensor.shape[0] for tensor in x), _columns(a.weight[0], x[0], float4))
    if a.group_type == 2 and a.split_item in (0, 1):
        return [x[0].new_empty((x[0].shape[0], _columns(weight, x[0])), dtype=dtype) for weight in a.weight]
    return [x[0].new_empty((a.group_list.shape[0], *shape) if a.group_type == 2 else shape, dtype=dtype)]


@_row("npu_grouped_matmul_finalize_routing(Tensor x, Tensor w, Tensor group_list, *, Tensor? scale=None,"
      " Tensor? bias=None, Tensor? offset=None, Tensor? pertoken_scale=None, Tensor? shared_input=None,"
      " Tensor? logit=None, Tensor? row_index=None, int? dtype=None, float? shared_input_weight=1.0,"
      " int? shared_input_offset=0, int? output_bs=0, int? group_list_type=1, int[]? tuning_config=None,"
      " int? x_dtype=None, int? w_dtype=None, int? scale_dtype=None, int? pertoken_scale_dtype=None) -> Tensor")
def _grouped_matmul_finalize_routing(a: Any) -> Results:
    _shape("x", a.x, None, None)
    _shape("w", a.w, None, None, None)
    _one_of("dtype", _name("dtype", a.dtype, "float32"), "float32")
    return _floats(a.x, a.output_bs or a.x.shape[0], _columns(a.w, a.x))


@_row("npu_grouped_matmul_swiglu_quant(Tensor x, Tensor weight, Tensor group_list, Tensor weight_scale,"
      " Tensor x_scale, *, Tensor? bias=None, Tensor? offset=None) -> (Tensor, Tensor, Tensor)")
def _grouped_matmul_swiglu_quant(a: Any) -> Results:
    _of("x", a.x, "int8")
    _shape("x", a.x, None, None)
    _shape("x_scale", a.x_scale, a.x.shape[0])
    columns = a.weight_scale.shape[-1]
    _expect(columns % 2 == 0, "weight_scale", f"has {columns} columns; expected an even number")
    return a.x.new_empty((a.x.shape[0], columns // 2)), _floats(a.x, a.x.shape[0]), _floats(a.x)


@_row("npu_grouped_matmul_swiglu_quant_v2(Tensor x, Tensor[] weight, Tensor[] weight_scale, Tensor x_scale,"
      " Tensor group_list, *, Tensor? smooth_scale=None, Tensor[]? weight_assist_matrix=None, Tensor? bias=None,"
      " int? dequant_mode=0, int? dequant_dtype=0, int? quant_mode=0, int? quant_dtype=1, int? group_list_type=0,"
      " int[]? tuning_config=None, int? x_dtype=None, int? weight_dtype=None, int? weight_scale_dtype=None,"
      " int? x_scale_dtype=None) -> (Tensor, Tensor)")
def _grouped_matmul_swiglu_quant_v2(a: Any) -> Results:
    for name, tensors in ("weight", a.weight), ("weight_scale", a.weight_scale):
        _expect(len(tensors) == 1, name, f"has {len(tensors)} tensors; expected one")
    mx = a.weight_scale_dtype is not None
    if mx:
        _shape("weight_scale", a.weight_scale[0], None, None, None, 2)
    columns = a.weight_scale[0].shape[2 if mx else -1]
    _expect(columns % 2 == 0 and columns > 0, "weight_scale", f"has {columns} columns; expected an even number")
    y = _quantised(a.x, (a.x.shape[0], columns // 2), "quant_dtype", a.quant_dtype)
    return y, _mx_scales(a.x.new_empty((a.x.shape[0], columns // 2))) if mx else _floats(a.x, a.x.shape[0])


def _dequantised(a: Any, ndim: int) -> Tensor:
    """A product of float16 x, which the operator quantises, and of int8 [.., N, K] with a scale for each row of it."""
    _of("x", a.x, "float16")
    _of("quantized_weight", a.quantized_weight, "int8")
    _of("weight_scale", a.weight_scale, "float32")
    _shape("x", a.x, None, None)
    _shape("quantized_weight", a.quantized_weight, *[None] * (ndim - 1), a.x.shape[1])
    _shape("weight_scale", a.weight_scale, *a.quantized_weight.shape[:-1])
    return a.x.new_empty((a.x.shape[0], a.weight_scale.shape[-1]))


@_row("npu_quant_matmul_dequant(Tensor x, Tensor quantized_weight, Tensor weight_scale, *, Tensor? bias=None,"
      " Tensor? x_scale=None, Tensor? x_offset=None, Tensor? smooth_scale=None, str? quant_mode='pertoken') -> Tensor")
def _quant_matmul_dequant(a: Any) -> Results:
    return _dequantised(a, 2)


@_row("npu_quant_grouped_matmul_dequant(Tensor x, Tensor quantized_weight, Tensor weight_scale, Tensor group_list, *,"
      " Tensor? bias=None, Tensor? x_scale=None, Tensor? x_offset=None, Tensor? smooth_scale=None,"
      " str? quant_mode='pertoken') -> Tensor")
def _quant_grouped_matmul_dequant(a: Any) -> Results:
    return _dequantised(a, 3)


@_row("npu_quant_matmul_reduce_sum(Tensor x1, Tensor x2, *, Tensor? x1_scale=None, Tensor? x2_scale=None) -> Tensor")
def _quant_matmul_reduce_sum(a: Any) -> Results:
    _shape("x1", a.x1, None, None, None)
    _shape("x2", a.x2, a.x1.shape[0], None, None)
    return a.x1.new_empty((a.x1.shape[1], a.x2.shape[2]), dtype=torch.bfloat16)


@_row("npu_weight_quant_batchmatmul(Tensor x, Tensor weight, Tensor antiquant_scale, Tensor? antiquant_offset=None,"
      " Tensor? quant_scale=None, Tensor? quant_offset=None, Tensor? bias=None, int antiquant_group_size=0,"
      " int inner_precise=0, int? weight_dtype=None) -> Tensor")
def _weight_quant_batchmatmul(a: Any) -> Results:
    _shape("x", a.x, None, None)
    _shape("weight", a.weight, None, None)
    for name in "x", "weight", "antiquant_scale":
        shape = list(getattr(a, name).shape)
        _expect(0 not in shape, name, f"has the shape {shape}; expected no empty dimension")
    _of("x", a.x, "float16", "bfloat16")
    _one_of("inner_precise", a.inner_precise, 0, 1)
    k, columns, size, turned = a.x.shape[1], _columns(a.weight, a.x), a.antiquant_group_size, is_transposed(a.weight)
    eight = 8 if _type_of(a.weight) in ("int32", "float32") else 1
    rows = a.weight.shape[0] * (eight if turned else 1)
    other_way = "; it looks like [N, K], whose transpose is expected" if a.weight.shape[1] * eight == k else ""
    _expect(rows == k, "weight", f"has the shape {list(a.weight.shape)}, {'' if turned else 'not '}transposed, so K is "
            f"{rows}; x has K {k}{other_way}")
    _expect(size == 0 or (size >= 32 and size % 32 == 0 and size < k), "antiquant_group_size",
            f"is {size}; expected 0, or a multiple of 32 that is less than K, {k}")
    for name, extent in ("K", k), ("N", columns):
        _strict(extent <= 65535, "weight", f"has {name} {extent}; expected at most 65535")
    of_column = [[columns], [1, columns]]
    _shapes("bias", a.bias, *of_column)
    for name, tensor in ("quant_scale", a.quant_scale), ("quant_offset", a.quant_offset):
        _shapes(name, tensor, [1], *of_column)
    _of("quant_scale", a.quant_scale, "float32", "int64")
    _of("quant_offset", a.quant_offset, "float32")
    _expect(a.quant_scale is not None or a.quant_offset is None, "quant_offset",
            "is given; expected None, as quant_scale is None")
    if a.quant_offset is not None:
        _shape("quant_offset", a.quant_offset, *a.quant_scale.shape)
    _strict(_type_of(a.weight) in ("int8", "int32"), "weight", f"is {_type_of(a.weight)}; expected int8 or int32")
    if _type_of(a.weight) in ("int8", "int32"):  # other types, and their scales, are those of the series Ascend 950
        _check_antiquant(a, k, columns, turned)
    return a.x.new_empty((a.x.shape[0], columns), dtype=a.x.dtype if a.quant_scale is None else torch.int8)


def _check_antiquant(a: Any, k: int, columns: int, turned: bool) -> None:
    """The scales of an int8 or int4 weight, and what belongs to them."""
    kind, size, words = _type_of(a.x), a.antiquant_group_size, _type_of(a.antiquant_scale) == "int64"
    _of("bias", a.bias, "float16" if kind == "float16" else "float32", why=f", as x is {kind}")
    _of("antiquant_scale", a.antiquant_scale, kind, "int64", why=f", as x is {kind}")
    if words:
        _of("x", a.x, "float16", why=", as antiquant_scale is int64")
        _of("weight", a.weight, "int8", why=", as antiquant_scale is int64")
        _expect(a.quant_scale is None, "quant_scale", "is given; expected None, as antiquant_scale is int64")
        _strict(turned and a.x.shape[0] <= 96 and k % 64 == 0 and columns % 64 == 0, "antiquant_scale",
                "is int64; expected it only with a transposed weight, an M of at most 96, and a K and an N that are "
                "multiples of 64")
    of_group, of_column = [[_ceiling(k, size), columns]] if size else [], [[columns], [1, columns]]
    _shapes("antiquant_scale", a.antiquant_scale, *(of_group or [*of_column, *[[1], [1, 1]] * (not words)]))
    _of("antiquant_offset", a.antiquant_offset, "int32" if words else kind)
    _shape("antiquant_offset", a.antiquant_offset, *a.antiquant_scale.shape)
    if size and 1 not in a.antiquant_scale.shape:
        for name, tensor in ("antiquant_scale", a.antiquant_scale), ("antiquant_offset", a.antiquant_offset):
            if tensor is not None:
                _expect(is_transposed(tensor) == turned, name, f"is {'not ' if turned else ''}transposed; weight is "
                        f"{'' if turned else 'not '}transposed, and expected to be alike")


@_row("npu_transpose_quant_batchmatmul(Tensor x1, Tensor x2, int dtype, *, Tensor? bias=None, Tensor? x1_scale=None,"
      " Tensor? x2_scale=None, int[]? group_sizes=None, int[]? perm_x1=None, int[]? perm_x2=None, int[]? perm_y=None,"
      " int? batch_split_factor=1, int? x1_dtype=None, int? x2_dtype=None) -> Tensor")
def _transpose_quant_batchmatmul(a: Any) -> Results:
    first, second = a.perm_x1 or [0, 1, 2], a.perm_x2 or [0, 1, 2]
    _shape("x1", a.x1, None, None, None)
    _shape("x2", a.x2, None, None, None)
    batch, rows, k = (a.x1.shape[first[i]] for i in range(3))
    _expect(a.x2.shape[second[1]] == k, "x2", f"has K {a.x2.shape[second[1]]}; x1 has K {k}")
    _expect(a.x2.shape[second[0]] == batch, "x2", f"has {a.x2.shape[second[0]]} matrices; x1 has {batch}")
    return a.x1.new_empty((rows, batch, a.x2.shape[second[2]]), dtype=_stored("dtype", _name("dtype", a.dtype, "")))


@_row("npu_matmul_compress_dequant(Tensor x1, Tensor x2, Tensor compress_index, Tensor bias, Tensor scale, *,"
      " Tensor? offsetW=None, int? offsetX=None) -> Tensor")
def _matmul_compress_dequant(a: Any) -> Results:
    for name, tensor, dtype, ndim in (("x1", a.x1, "int8", 2), ("x2", a.x2, "int8", 1),
                                      ("compress_index", a.compress_index, "int8", 1),
                                      ("bias", a.bias, "int32", 2)):
        _of(name, tensor, dtype)
        _shape(name, tensor, *[None] * ndim)
    return a.x1.new_empty((a.x1.shape[0], a.bias.shape[1]), dtype=torch.float16)


# ---- mixtures of experts ---------------------------------------------------------------------------------------------


@_row("npu_moe_init_routing(Tensor x, Tensor row_idx, Tensor expert_idx, int active_num) -> (Tensor, Tensor, Tensor)",
      values=lambda a: _computed(_moves.npu_moe_init_routing, a))
def _moe_init_routing(a: Any) -> Results:
    return _empties(a.x, "x", _moves.init_routing(a))


@_row("npu_moe_compute_expert_tokens(Tensor sorted_expert_for_source_row, int num_expert) -> Tensor",
      values=lambda a: _computed(_moves.npu_moe_compute_expert_tokens, a))
def _moe_compute_expert_tokens(a: Any) -> Results:
    ids = a.sorted_expert_for_source_row
    if not ids.is_meta:  # there torch_npu checks nothing
        _moves.compute_expert_tokens(a)
    return ids.new_empty((a.num_expert,), dtype=torch.int32)


@_row("npu_moe_token_permute(Tensor tokens, Tensor indices, int? num_out_tokens=None, bool padded_mode=False)"
      " -> (Tensor, Tensor)", values=lambda a: _computed(_moves.npu_moe_token_permute, a))
def _moe_token_permute(a: Any) -> Results:
    return _empties(a.tokens, "tokens", _moves.token_permute(a))


def _init_routing_values(a: Any) -> Union[Results, str]:
    undefined = _experts.undefined_routing(a, cann())
    if undefined:
        return undefined
    made = list(_computed(_experts.npu_moe_init_routing_v2, a, cann=cann()))
    made[0] = made[0].view(_stored("quant_mode", _experts.init_routing(a)[0].type))  # the package has codes
    return made


@_row("npu_moe_init_routing_v2(Tensor x, Tensor expert_idx, *, Tensor? scale=None, Tensor? offset=None,"
      " int active_num=-1, int expert_capacity=-1, int expert_num=-1, int drop_pad_mode=0,"
      " int expert_tokens_num_type=0, bool expert_tokens_num_flag=False, int quant_mode=-1,"
      " int[2] active_expert_range=[], int row_idx_type=0, int? x_dtype=None) -> (Tensor, Tensor, Tensor, Tensor)",
      values=_init_routing_values)
def _moe_init_routing_v2(a: Any) -> Results:
    made = _experts.init_routing(a, a.x.is_meta)
    _strict(a.quant_mode <= 1, "quant_mode", f"is {a.quant_mode}; expected -1, 0 or 1")
    if cann() == "8.5":
        total = a.expert_idx.shape[0] * a.expert_idx.shape[1]
        for name, expected in (("active_num", (-1, total)), ("expert_tokens_num_type", (1, 2)),
                               ("expert_tokens_num_flag", (True,)), ("drop_pad_mode", (0,)), ("quant_mode", (-1, 1))):
            value = getattr(a, name)
            _strict(value in expected, name, f"is {value}; expected {listed([*map(str, expected)])} with CANN 8.5")
    return _empties(a.x, "quant_mode", made)


@_row("npu_moe_re_routing(Tensor tokens, Tensor expert_token_num_per_rank, *, Tensor? per_token_scales=None,"
      " int expert_token_num_type=1, int idx_type=0, int? tokens_dtype=None) -> (Tensor, Tensor, Tensor, Tensor)",
      values=lambda a: _computed(_experts.npu_moe_re_routing, a))
def _moe_re_routing(a: Any) -> Results:
    _strict(a.tokens_dtype is None and _type_of(a.tokens) != "float32", "tokens",
            f"is {_type_of(a.tokens)}; expected float16, bfloat16 or int8, and no tokens_dtype")
    return _empties(a.tokens, "tokens", _experts.re_routing(a))


@_row("npu_moe_token_unpermute(Tensor permuted_tokens, Tensor sorted_indices, Tensor? probs=None,"
      " bool padded_mode=False, int[]? restore_shape=None) -> Tensor",
      values=lambda a: _computed(_experts.npu_moe_token_unpermute, a))
def _moe_token_unpermute(a: Any) -> Results:
    return _empties(a.permuted_tokens, "permuted_tokens", _experts.token_unpermute(a))[0]


@_row("npu_moe_finalize_routing(Tensor expanded_permuted_rows, Tensor? skip1, Tensor? skip2, Tensor? bias,"
      " Tensor? scales, Tensor expanded_src_to_dst_row, Tensor? export_for_source_row, int? drop_pad_mode=0,"
      " int? k=1) -> Tensor", values=lambda a: _computed(_experts.npu_moe_finalize_routing, a))
def _moe_finalize_routing(a: Any) -> Results:
    return _empties(a.expanded_permuted_rows, "expanded_permuted_rows", _experts.finalize_routing(a))[0]


def _gating(a: Any, *dimensions: int) -> Results:
    _dimensions("x", a.x, *dimensions)
    _of("x", a.x, "float32", "float16", "bfloat16")
    _expect(1 <= a.k <= a.x.shape[-1], "k", f"is {a.k}; expected 1 to {a.x.shape[-1]}, the columns of x")
    y = a.x.new_empty((*_rows_of(a.x), a.k))
    return y, torch.empty_like(y, dtype=torch.int32)


@_row("npu_moe_gating_top_k_softmax(Tensor x, Tensor? finished=None, int k=1) -> (Tensor, Tensor, Tensor)",
      near=_near.moe_gating_top_k_softmax)
def _moe_gating_top_k_softmax(a: Any) -> Results:
    y, indices = _gating(a, 2, 3)
    _of("finished", a.finished, "bool")
    _shape("finished", a.finished, *_rows_of(a.x))
    return y, indices, torch.empty_like(indices)


@_row("npu_moe_gating_top_k(Tensor x, int k, *, Tensor? bias=None, Tensor? input_ids=None, Tensor? tid2eid=None,"
      " int k_group=1, int group_count=1, int group_select_mode=0, int renorm=0, int norm_type=0, bool out_flag=False,"
      " float routed_scaling_factor=1.0, float eps=1e-20) -> (Tensor, Tensor, Tensor)", near=_near.moe_gating_top_k)
def _moe_gating_top_k(a: Any) -> Results:
    y, indices = _gating(a, 2, 2)
    rows, experts = a.x.shape
    _of("bias", a.bias, _type_of(a.x), why=", as x is")
    _shape("bias", a.bias, experts)
    _expect((a.input_ids is None) == (a.tid2eid is None), "tid2eid", "is given without input_ids, or the other way "
            "round; expected both or neither")
    for name, tensor, shape in ("input_ids", a.input_ids, [rows]), ("tid2eid", a.tid2eid, [None, a.k]):
        _of(name, tensor, "int32", "int64")
        _shape(name, tensor, *shape)
    _one_of("group_select_mode", a.group_select_mode, 0, 1)
    _one_of("renorm", a.renorm, 0)
    _one_of("norm_type", a.norm_type, 0, 1)
    least = 1 + a.group_select_mode
    _expect(a.group_count > 0 and experts % a.group_count == 0 and experts // a.group_count >= least, "group_count",
            f"is {a.group_count}; expected a divisor of {experts}, the columns of x, with {least} or more in a group")
    _expect(1 <= a.k_group <= a.group_count, "k_group", f"is {a.k_group}; expected 1 to group_count, {a.group_count}")
    most = experts // a.group_count * a.k_group
    _expect(a.k <= most, "k", f"is {a.k}; expected at most {most}, the experts of k_group groups")
    return y, indices, _floats(a.x, rows, experts)


_RANKS = ("str group_ep, int ep_world_size, int ep_rank_id, int moe_expert_num, *,")
_SHARED = (" str group_tp=\"\", int tp_world_size=0, int tp_rank_id=0, int expert_shard_type=0,"
           " int shared_expert_num=1, int shared_expert_rank_num=0,")
_SEVEN = " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"


def _ranks(a: Any) -> None:
    _expect(0 <= a.ep_rank_id < a.ep_world_size, "ep_rank_id",
            f"is {a.ep_rank_id}; expected 0 to {a.ep_world_size - 1}")
    _expect(0 <= a.shared_expert_rank_num < a.ep_world_size, "shared_expert_rank_num",
            f"is {a.shared_expert_rank_num}; expected 0 to {a.ep_world_size - 1}")


def _dispatched(a: Any, dtype: torch.dtype, indices: Callable[[int, int], int],
                shared_rows: Callable[[int], int]) -> Results:
    """What a rank receives at most; indices says how many int32 the third result has, shared_rows how many rows a rank
    of a shared expert receives."""
    _ranks(a)
    _shape("x", a.x, None, None)
    _shape("expert_ids", a.expert_ids, a.x.shape[0], None)
    k, shared = a.expert_ids.shape[1], a.shared_expert_rank_num
    total = a.global_bs or a.x.shape[0] * a.ep_world_size
    if a.ep_rank_id < shared:
        experts, rows = 1, shared_rows(total)
    else:
        experts = a.moe_expert_num // (a.ep_world_size - shared)
        rows = total * min(experts, k)
    received, times = a.ep_world_size * experts, max(a.tp_world_size, 1)
    if a.expert_scales is None:
        counts, scales = received * (2 if a.tp_world_size == 2 else 1), 0
    else:  # behind the counts is what the hierarchical exchange needs
        counts, scales = received + 2 * total * k * (a.ep_world_size // 8), rows
    return (a.x.new_empty((rows * times, a.x.shape[1]), dtype=dtype), _floats(a.x, rows * times),
            a.x.new_empty((indices(a.x.shape[0] * k, rows),), dtype=torch.int32),
            a.x.new_empty((experts,), dtype=torch.int64),
            a.x.new_empty((counts,), dtype=torch.int32),
            a.x.new_empty((a.tp_world_size,), dtype=torch.int32), _floats(a.x, scales))


@_row("npu_moe_distribute_dispatch(Tensor x, Tensor expert_ids, " + _RANKS + " Tensor? scales=None,"
      " Tensor? x_active_mask=None, Tensor? expert_scales=None," + _SHARED +
      " int quant_mode=0, int global_bs=0, int expert_token_nums_type=1)" + _SEVEN)
def _moe_distribute_dispatch(a: Any) -> Results:
    quantised = a.scales is not None or a.quant_mode != 0
    return _dispatched(a, torch.int8 if quantised else a.x.dtype, lambda routed, rows: routed,
                       lambda total: total // a.shared_expert_rank_num)


@_row("npu_moe_distribute_dispatch_v2(Tensor x, Tensor expert_ids, " + _RANKS + " Tensor? scales=None,"
      " Tensor? x_active_mask=None, Tensor? expert_scales=None, Tensor? elastic_info=None,"
      " Tensor? performance_info=None," + _SHARED + " int quant_mode=0, int global_bs=0, int expert_token_nums_type=1,"
      " str comm_alg=\"\", int zero_expert_num=0, int copy_expert_num=0, int const_expert_num=0, int? y_dtype=None,"
      " int? x_dtype=None, int? scales_dtype=None)" + _SEVEN)
def _moe_distribute_dispatch_v2(a: Any) -> Results:
    _one_of("expert_token_nums_type", a.expert_token_nums_type, 0, 1)
    if a.elastic_info is not None or a.quant_mode not in (0, 1, 2) or a.y_dtype is not None:
        raise NotImplementedError("npuquant knows no shapes of npu_moe_distribute_dispatch_v2 with elastic_info, "
                                  "y_dtype, or a quant_mode that is not 0, 1 or 2")
    experts, ranks = a.shared_expert_num, a.shared_expert_rank_num
    _expect((experts in (0, 1) and ranks == 0) or (experts > 0 and ranks >= experts and ranks % experts == 0),
            "shared_expert_rank_num", f"is {ranks}; expected a multiple of shared_expert_num, {experts}, above 0")
    return _dispatched(a, a.x.dtype if a.quant_mode == 0 else torch.int8,
                       lambda routed, rows: max(routed, 128 * rows),
                       lambda total: total // a.ep_world_size * _ceiling(a.ep_world_size, ranks // experts))


def _combined(a: Any) -> Results:
    _ranks(a)
    _shape("expand_x", a.expand_x, None, None)
    _shape("expert_scales", a.expert_scales, *a.expert_ids.shape)
    return a.expand_x.new_empty((a.expert_ids.shape[0], a.expand_x.shape[1]))


_row("npu_moe_distribute_combine(Tensor expand_x, Tensor expert_ids, Tensor expand_idx, Tensor ep_send_counts,"
     " Tensor expert_scales, " + _RANKS + " Tensor? tp_send_counts=None, Tensor? x_active_mask=None,"
     " Tensor? activation_scale=None, Tensor? weight_scale=None, Tensor? group_list=None, Tensor? expand_scales=None,"
     " Tensor? shared_expert_x=None," + _SHARED +
     " int global_bs=0, int out_dtype=0, int comm_quant_mode=0, int group_list_type=0) -> Tensor")(_combined)
_row("npu_moe_distribute_combine_v2(Tensor expand_x, Tensor expert_ids, Tensor assist_info_for_combine,"
     " Tensor ep_send_counts, Tensor expert_scales, " + _RANKS + " Tensor? tp_send_counts=None,"
     " Tensor? x_active_mask=None, Tensor? expand_scales=None, Tensor? shared_expert_x=None,"
     " Tensor? elastic_info=None, Tensor? ori_x=None, Tensor? const_expert_alpha_1=None,"
     " Tensor? const_expert_alpha_2=None, Tensor? const_expert_v=None, Tensor? performance_info=None," + _SHARED +
     " int global_bs=0, int comm_quant_mode=0, str comm_alg=\"\", int zero_expert_num=0, int copy_expert_num=0,"
     " int const_expert_num=0) -> Tensor")(_combined)

# ---- rules of operators that npuquant computes -----------------------------------------------------------------------
# Each is what the page of the operator in docs/zh/custom_APIs/torch_npu says of the series A2 and A3.


def _dynamic_rules(a: Any) -> None:
    _of("input", a.input, "float16", "bfloat16")
    _expect(a.input.dim() > 1, "input", "has one dimension; expected more")
    _of("smooth_scales", a.smooth_scales, "float16", "bfloat16")
    _of("group_index", a.group_index, "int32")


def _symmetric_rules(a: Any) -> None:
    _dynamic_rules(a)
    name = _name("dst_type", a.dst_type, "int8")
    _expect(name not in FLOAT8, "dst_type", f"is {name}; expected int8 or quint4x2")


def _asymmetric_rules(a: Any) -> None:
    _dynamic_rules(a)
    _of("smooth_scales", a.smooth_scales, _type_of(a.input))
    groups = 1 if a.group_index is None else a.group_index.shape[0]
    _expect(1 <= groups <= 1024, "group_index", f"has {groups} groups; expected 1 to 1024")


def _group_rules(a: Any) -> None:
    _of("offset", a.offset, _type_of(a.scale))
    _expect(a.scale.shape[0] > 0, "scale", "has no groups; expected one or more")


def _product_rules(a: Any) -> None:
    if any(getattr(a, name) is not None for name in UNDEFINED):
        return
    output = _name("output_dtype", a.output_dtype, "int8")
    _one_of("output_dtype", output, "int8", "float16", "bfloat16", "int32")
    _check_product_types(a.scale, a.pertoken_scale, a.bias, output, _PRODUCTS_ON_DEVICE)
    _shapes("scale", a.scale, [1], [None])
    _shapes("pertoken_scale", a.pertoken_scale, [None])
    for name, matrix in ("x1", a.x1), ("x2", a.x2):
        _dimensions(name, matrix, 2, 6)
        _expect(matrix.shape[-1] <= 65535, name, f"has {matrix.shape[-1]} columns; expected at most 65535")
    if a.pertoken_scale is not None:
        _expect(a.x1.dim() == 2, "x1", f"has {a.x1.dim()} dimensions; expected 2 with per-token scales")


def _scatter_rules(a: Any) -> None:
    if _type_of(a.updates) == "float16":
        _of("quant_scales", a.quant_scales, "float32")
        _of("quant_zero_points", a.quant_zero_points, "int32")
    else:
        for name in "updates", "quant_scales", "quant_zero_points":
            _of(name, getattr(a, name), "bfloat16")
    _expect(a.updates.shape[-1] % 16 == 0, "updates", f"has {a.updates.shape[-1]} columns; expected a multiple of 16")


def _quantize_rules(a: Any) -> None:
    _expect(_name("dtype", a.dtype, "") not in FLOAT8, "dtype",
            f"is {described(a.dtype)}; expected {'int8, uint8 or int32' if a.div_mode else 'int8 or quint4x2'}")
    if a.div_mode:
        _of("scales", a.scales, "float32", "bfloat16")
        _of("zero_points", a.zero_points, "int8", "uint8", "int32", "bfloat16")
    else:
        _of("scales", a.scales, _type_of(a.self), why=", as input is")
        _of("zero_points", a.zero_points, _type_of(a.scales), why=", as scales is")


def _anti_quant_rules(a: Any) -> None:
    _of("scale", a.scale, "float32", "bfloat16")
    _shape("scale", a.scale, None)
    _one_of("dst_dtype", _name("dst_dtype", a.dst_dtype, "float16"), "float16", "bfloat16")


def _trans_quant_rules(a: Any) -> None:
    for name, tensor in ("scale", a.scale), ("offset", a.offset):
        _expect(tensor is None or tensor.is_contiguous(), name, "is not contiguous; expected a contiguous tensor")


def _block_rules(a: Any) -> None:
    _of("x", a.x, "float16", "bfloat16")
    _dimensions("x", a.x, 2, 3)
    _one_of("dst_type", _name("dst_type", a.dst_type, "int8"), "int8")
    _one_of("col_block_size", a.col_block_size, 128)


RULES: Dict[str, Callable[[Any], None]] = {
    "npu_quantize": _quantize_rules,
    "npu_anti_quant": _anti_quant_rules,
    "npu_trans_quant_param": _trans_quant_rules,
    "npu_dynamic_block_quant": _block_rules,
    "npu_dynamic_quant": _symmetric_rules,
    "npu_dynamic_quant_asymmetric": _asymmetric_rules,
    "npu_group_quant": _group_rules,
    "npu_quant_matmul": _product_rules,
    "npu_quant_scatter": _scatter_rules,
}


def _by_rules(rules: Callable[[Any], None], a: Any) -> None:
    try:
        rules(a)
    except (ArgumentError, ArgumentTypeError) as error:
        raise type(error)(f"{error}; the device refuses it (strict)") from None


def float8_results(name: str, shapes: Callable[..., Any], values: Sequence[Any], keywords: Dict[str, Any],
                   error: ArgumentTypeError) -> Results:
    """What npu_quant_scatter() returns with 8-bit floating point as its type, which the series Ascend 950 has. Of other
    operators the error stays."""
    if error.float8 is None or name != "npu_quant_scatter":
        raise error
    argument, dtype = error.float8
    a = bound(getattr(torch.ops.npuquant, name).default._schema, values, keywords)
    _strict(False, argument, f"is {dtype}; expected int8")
    made = shapes(**{**vars(a), argument: 1})  # as int8
    y = made.new_empty(made.shape, dtype=_stored(argument, dtype))
    return y if y.is_meta else zeros_for(f"{name} with {argument} {dtype}", y)


def check(name: str, values: Sequence[Any], keywords: Dict[str, Any]) -> Any:
    """Checks an operator's arguments by its rules, and returns the arguments by their names."""
    a = bound(getattr(torch.ops.npuquant, name).default._schema, values, keywords)
    if chosen.strict and name in RULES:
        _by_rules(RULES[name], a)
    return a


# ---- PyTorch's operators ---------------------------------------------------------------------------------------------

_warned = set()


def not_computed(name: str) -> NotImplementedError:
    operator = name.partition(" ")[0]
    near = operator in ROWS and ROWS[operator].near is not None
    computes = "install(values=\"near\") computes them in float32, not to the bit; " if near else ""
    return NotImplementedError(f"torch_npu.{name}: npuquant knows the shapes and types of its results, not their "
                               f"values; {computes}install(values=\"zeros\") returns zeros for them; "
                               f"{by_a_test(f'torch_npu.{operator}')}")


def zeros_for(name: str, results: Results) -> Results:
    """Zeros in place of values, if install() was told to return them; otherwise an error."""
    if chosen.values != "zeros":
        raise not_computed(name)
    if name not in _warned:
        _warned.add(name)
        warnings.warn(f"torch_npu.{name} returns zeros: npuquant does not compute its values", stacklevel=4)
    return results.zero_() if isinstance(results, Tensor) else [one.zero_() for one in results]


def operator(name: str) -> Any:
    """The operator of a row, which PyTorch knows from the first use on."""
    if not hasattr(torch.ops.npuquant, name):
        for schema in ROWS[name].schemas:
            _define(name, schema, ROWS[name])
        operator_of(ROWS[name].schemas[0])
    return getattr(torch.ops.npuquant, name)


def _define(name: str, schema: str, row: Row) -> None:
    parsed = torch._C.parse_schema(f"npuquant::{schema}")
    is_tuple, in_place = schema.endswith(")") and "-> (" in schema, "(a!)" in schema

    required = [argument.name for argument in parsed.arguments if str(argument.type) == "Tensor"]

    def bind(values: Sequence[Any], keywords: Dict[str, Any]) -> Any:
        a = bound(parsed, values, keywords)
        refuse_none(required, [getattr(a, argument) for argument in required])
        return a

    def shapes(*values: Any, **keywords: Any) -> Any:
        results = row.results(bind(values, keywords))
        return tuple(results) if is_tuple else results

    def kernel(*values: Any, **keywords: Any) -> Any:
        a = bind(values, keywords)
        made = row.results(a)
        computed = "" if row.values is None else row.values(a)
        if not isinstance(computed, str):
            made = computed
        elif chosen.values == "near" and row.near is not None:
            made = _near.computed(name, row.near, a, made)
        elif not in_place or chosen.values != "zeros":
            made = zeros_for(f"{name} with {computed}" if computed else name, made)
        return tuple(made) if is_tuple else made

    register(schema, names_operator(kernel, name), names_operator(shapes, name))
