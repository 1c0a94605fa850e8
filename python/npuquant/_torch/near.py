# SPDX-License-Identifier: BSD-3-Clause
"""values="near": operators with a function that npuquant does not define to the bit, computed with PyTorch's function.

Each function here writes the results of an operator, which are zeros before. The operator's own function, such as silu
or the norm, is float32. What follows is the device's to the bit: one rounding to the type of the result, or
quantisation. A function returns which rows of each result the device leaves unset, if there are any.

Sources: docs/zh/custom_APIs/torch_npu and test/test_custom_ops of Ascend/op-plugin (2026-08-21, 517f2e7d), and the
kernels of the series A2 in cann/ops-nn (2026-08-22, e5c3fa93) and cann/ops-transformer (2025-11-15, c29bc106), of the
Ascend 950 where there is microscaling. A function names what only the kernel says.
"""
from __future__ import annotations

import os
import sys
from multiprocessing.util import Finalize
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import gelu as _gelu
from torch.nn.functional import silu as _silu

from npuquant_facts.dtypes import TYPES

from .. import mx
from .._arguments import _ceiling, _type_of, listed
from .._operators import row_quant
from .._serving.casts import npu_dtype_cast
from .._serving.microscaling import dynamic_mx_quant
from .._serving.unset import mark
from .._tensors import FLOAT4, codes_of
from .arguments import _name
from .chosen import chosen
from .tensors import array_of

# ---- calls, and the report of them -----------------------------------------------------------------------------------

#: By the operator and the line: how many calls since the last report.
_calls: Dict[str, Dict[str, int]] = {}
_LINES = 3  # so many does the report show
#: Top packages whose frames are no lines of a script; "": code that a compiler made.
_BETWEEN = ("torch", "npuquant", "")


Unset = Sequence[Any]


def computed(name: str, near: Callable[..., Optional[Unset]], a: Any, made: Any) -> Any:
    """The results of an operator, written by its function here."""
    results = [made] if isinstance(made, Tensor) else made
    for one in results:
        one.zero_()
    with torch.no_grad():
        unset = near(a, *results) or [False] * len(results)
    for one, rows in zip(results, unset):
        mark(array_of(codes_of(one, _type_of(one))), rows, one, nan=0xFF)
    frame: Any = sys._getframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _BETWEEN:
        frame = frame.f_back
    line = "an unknown line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
    add_calls({name: {line: 1}})
    return made


def add_calls(calls: Dict[str, Dict[str, int]]) -> None:
    """Adds calls to those that the next report shows."""
    if calls and not _calls:
        Finalize(None, _write_report, exitpriority=0)  # at the end of a worker of multiprocessing, too
    for name, lines in calls.items():
        counts = _calls.setdefault(name, {})
        for line, count in lines.items():
            counts[line] = counts.get(line, 0) + count


def take_calls() -> Dict[str, Dict[str, int]]:
    """The calls since the last report, which no report here shows any more."""
    calls = dict(_calls)
    _calls.clear()
    return calls


def take_report() -> str:
    """The report of the calls since the last one; empty if there were none."""
    calls = take_calls()
    if not calls:
        return ""
    text = "npuquant computed these operators with PyTorch's functions (values=\"near\"):"
    for name, lines in sorted(calls.items()):
        count, more = sum(lines.values()), len(lines) - _LINES
        text += (f"\n  {name}: {count} call{'s' * (count > 1)}, {', '.join(list(lines)[:_LINES])}"
                 f"{f' and {more} more' if more > 0 else ''}")
    return f"{text}\nWhat depends on their results is not the device's to the bit."


def _write_report() -> None:
    text = take_report()
    if text and sys.stderr is not None:
        print(text, file=sys.stderr)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_calls.clear)  # the parent reports its own


# ---- parts -----------------------------------------------------------------------------------------------------------


def _only(argument: str, value: Any, *known: Any) -> None:
    if value not in known:
        raise NotImplementedError(f"{argument}: is {value!r}; npuquant has near values of "
                                  f"{listed([*map(repr, known)])} only")


def _only_int8(argument: str, dtype: Any) -> None:
    _only(argument, _name(argument, dtype, "int8"), "int8", "qint8")


def _rounded(t: Tensor) -> Tensor:
    """int8 numbers: rounded half to even, saturated, 0 for NaN."""
    return t.round().clamp(-128, 127).nan_to_num(0).to(torch.int8)


def _quantise_rows(v: Tensor, rule: str, y: Tensor, scale: Tensor) -> None:
    for into, array in zip((y, scale), row_quant(v.numpy(), rule)):
        into.copy_(torch.from_numpy(array).reshape(into.shape))


def _write_codes(array: np.ndarray, into: Tensor) -> None:
    into.view(torch.uint8).copy_(torch.from_numpy(array).reshape(into.shape))


def _microscale(v: Tensor, a: Any, y: Tensor, mxscale: Tensor, **options: Any) -> None:
    for into, array in zip((y, mxscale), dynamic_mx_quant(array_of(v), dst_type=a.dst_type, **options)):
        _write_codes(array, into)


def _behind(count: int, rows: int, *shape: int) -> Tensor:
    """Which rows are behind those that are computed."""
    return (torch.arange(rows) >= count).reshape(shape or (rows,))


def groups_of(groups: Tensor, ends: bool = False) -> Tuple[Tensor, Tensor]:
    """The experts of groups of rows, and the sizes of these groups.

    groups has the size of each, or its end, or pairs of an expert and a size.
    """
    experts, sizes = torch.arange(len(groups)), groups
    if groups.dim() == 2:
        experts, sizes = groups.unbind(1)
        sizes = sizes * (sizes > 0).cumprod(0)  # the first size that is not positive ends the pairs
    elif ends:
        sizes = groups.diff(prepend=groups.new_zeros(1))
    return experts, sizes.clamp(min=0)


def _experts(groups: Optional[Tensor], rows: int, ends: bool = False) -> Tensor:
    """The expert of each row that has one. The rows behind these belong to no expert."""
    return torch.zeros(rows, dtype=torch.int64) if groups is None else torch.repeat_interleave(*groups_of(groups, ends))


# ---- activations -----------------------------------------------------------------------------------------------------


def gelu(a: Any, y: Tensor) -> None:
    y.copy_(_gelu(a.self.float(), approximate=a.approximate))


def swiglu(a: Any, y: Tensor) -> None:
    first, second = a.self.float().chunk(2, a.dim)
    y.copy_(_silu(first) * second)


def _gated(v: Tensor, a: Any, dim: int = -1) -> Tensor:
    if a.swiglu_mode == 1:
        gate, other = v[..., ::2], v[..., 1::2]
    else:
        halves = v.chunk(2, dim)
        gate, other = halves[not a.activate_left], halves[a.activate_left]
    if a.swiglu_mode == 0:
        return _silu(gate) * other
    other = other.clamp(-a.clamp_limit, a.clamp_limit)
    if a.swiglu_mode == 3:
        return _silu(gate).clamp(max=a.clamp_limit) * other
    gate = gate.clamp(max=a.clamp_limit)
    return gate * torch.sigmoid(a.glu_alpha * gate) * (other + a.glu_bias)


def swiglu_quant(a: Any, y: Tensor, scale: Tensor) -> None:
    """The kernel leaves out smooth scales and offsets for rows behind the groups, and writes 0 for static scales."""
    _only_int8("dst_type", a.dst_type)
    halves = a.x.float().flatten(0, -2).chunk(2, -1)
    v = _silu(halves[not a.activate_left]) * halves[a.activate_left]
    experts = _experts(a.group_index, len(v), ends=a.group_list_type == 0)
    if a.smooth_scales is not None:
        if a.quant_mode == 1:  # the kernel reads a row for each group
            _only("smooth_scales.dim()", a.smooth_scales.dim(), 2)
        rows = v[:len(experts)]
        rows *= a.smooth_scales.reshape(len(a.smooth_scales), -1)[experts]
        if a.quant_mode == 0:
            rows += a.offsets.reshape(len(a.offsets), -1)[experts]
    if a.quant_mode == 1:
        _quantise_rows(v, "swiglu", y, scale)
    else:
        y.copy_(_rounded(v).reshape(y.shape))


def dequant_swiglu_quant(a: Any, y: Tensor, scale: Tensor) -> Unset:
    """Only int32 x is dequantised. A bias of int32 is added before, another one after.

    The kernel divides by static scales of the columns, and multiplies by the reciprocal of one scale. It writes no
    static scale, and nothing for rows behind the groups.
    """
    if not chosen.strict:  # the series A2 and A3 ignore them
        _only_int8("dst_type", a.dst_type)
        _only("round_mode", a.round_mode, None, 0)
        _only("activate_dim", a.activate_dim, None, -1, a.x.dim() - 1)
    experts = _experts(a.group_index, a.x.shape[:-1].numel())
    count, groups = len(experts), 1 if a.group_index is None else len(a.group_index)
    behind = _behind(count, a.x.shape[:-1].numel(), *y.shape[:-1])

    def of_rows(tensor: Tensor) -> Tensor:
        return tensor.reshape(groups, -1)[experts]

    v = a.x.flatten(0, -2)[:count]
    if v.dtype == torch.int32:
        if a.bias is not None and a.bias.dtype == torch.int32:
            v = v + of_rows(a.bias)
        v = v.float() * of_rows(a.weight_scale)
        if a.activation_scale is not None:
            v = v * a.activation_scale.reshape(-1, 1)[:count]
        if a.bias is not None and a.bias.dtype != torch.int32:
            v = v + of_rows(a.bias).float()
    v = _gated(v.float(), a)
    y, scale = y.flatten(0, -2)[:count], scale.flatten()[:count]
    if a.quant_mode == 1:
        _quantise_rows(v if a.quant_scale is None else v * of_rows(a.quant_scale).float(), "dequant_swiglu", y, scale)
        return behind, behind
    if a.quant_scale is not None:
        by = of_rows(a.quant_scale)
        v = v * (1 / by) if by.shape[1] == 1 else v / by
        if a.quant_offset is not None:
            v = v + of_rows(a.quant_offset).float()
    y.copy_(_rounded(v))
    return behind, True


def swiglu_mx_quant(a: Any, y: Tensor, mxscale: Tensor) -> Optional[Unset]:
    """The kernel takes the sizes of groups, whatever group_mode is. Along the columns, the scales of a group begin
    right behind those of the group before."""
    v = _gated(a.x.float(), a, a.activate_dim).to(a.x.dtype)
    options = {"scale_alg": a.scale_alg, "round_mode": a.round_mode, "small_groups": 1}
    if a.group_index is None:
        _microscale(v, a, y, mxscale, axis=a.axis, **options)
        return None
    _only("group_mode", a.group_mode, 0)
    along_rows, sizes = a.axis % v.dim() == v.dim() - 1, groups_of(a.group_index)[1].tolist()
    count, rows, used = sum(sizes), v.shape[:-1].numel(), 0
    behind = _behind(count, rows, *v.shape[:-1])
    v, codes = v.flatten(0, -2)[:count], y.flatten(0, -2)[:count]
    if along_rows:
        _microscale(v, a, codes, mxscale.flatten(0, -3)[:count], **options)
        return behind, behind
    for size, part, of_part in zip(sizes, v.split(sizes), codes.split(sizes)):
        first, used = used, used + _ceiling(size, 64)
        _microscale(part, a, of_part, mxscale[first:used], axis=0, **options)
    return behind, _behind(used, len(mxscale))


def swiglu_group_quant(a: Any, y: Tensor, scale: Tensor, origin: Tensor) -> Unset:
    """The kernel of quant_mode 0 and 1 adds 0, so that -0 becomes 0, unless y has 4 bits. In quant_mode 0 an infinity
    or a NaN does not count in the scale, and stays one if the type has it. float16 to 4 bits truncates small numbers.

    Unless round_scale is true, quant_mode 0 divides: y is what the correctly rounded quotient gives. That numbers
    beyond the range of hifloat8 become its largest one is not attested.
    """
    _only("quant_mode", a.quant_mode, 0, 1, 2)
    name = _name("dst_type", a.dst_type, "")
    if a.quant_mode == 1 and name in FLOAT4:
        _only("x.dtype", a.x.dtype, torch.bfloat16)
    gate, other = a.x.float().flatten(0, -2).chunk(2, -1)
    if a.clamp_limit != -1:
        gate, other = gate.clamp(max=a.clamp_limit), other.clamp(-a.clamp_limit, a.clamp_limit)
    v = _silu(gate) * other
    if a.weight is not None:
        v = v * a.weight.reshape(-1, 1)
    if a.output_origin:
        origin.copy_(v.reshape(origin.shape))
    experts = _experts(a.group_index, len(v))
    count, behind = len(experts), _behind(len(experts), len(v), *y.shape[:-1])
    v, codes = v[:count], y.flatten(0, -2)[:count]
    if a.quant_mode == 2:  # behind the groups y is 0
        _write_codes(mx.encode((v * a.scale[experts, None]).numpy(), "hifloat8"), codes)
        return False, False, False
    if a.quant_mode == 1:
        scales = scale.flatten(0, -3)[:count]
        if name in FLOAT4:
            _microscale(v.bfloat16(), a, codes, scales, small_groups=1)
        elif v.isfinite().all():  # a group of zeros has the scale of the least bound, as one of small numbers
            _microscale(v.masked_fill(v == 0, 2.0**-126), a, codes, scales, scale_alg=1, max_low_bound=1e-4)
        else:
            raise NotImplementedError("x: its activation has NaN or an infinity; npuquant does not know the groups of "
                                      "such elements with quant_mode 1")
    else:
        blocks, most = (v + 0).unflatten(-1, (v.shape[-1] // 128, 128)), torch.tensor(float(TYPES[name].most))
        largest = blocks.abs().masked_fill(~blocks.isfinite(), 0).amax(-1, keepdim=True).clamp(min=1e-4)
        scales, factors = largest * (1 / most), most / largest
        if a.round_scale:  # up to a power of two
            exponents = scales.view(torch.int32) + 0x7FFFFF >> 23
            scales, factors = ((each << 23).view(torch.float32) for each in (exponents, 254 - exponents))
        _write_codes(npu_dtype_cast((blocks * factors).flatten(-2).numpy(), name), codes)
        scale.flatten(0, -2)[:count] = scales.squeeze(-1)
    return behind, behind, False


# ---- norms -----------------------------------------------------------------------------------------------------------


def _norm(x: Tensor, a: Any, beta: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    """The normalised x, which is float32, and the reciprocal of its root mean square."""
    rstd = 1 / (x.square().mean(tuple(range(-a.gamma.dim(), 0)), keepdim=True) + a.epsilon).sqrt()
    v = x * rstd * a.gamma.float()
    return v if beta is None else v + beta.float(), rstd


def _norm_of_sum(a: Any, x: Tensor, beta: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    """The norm of x1 + x2, and the sum itself, rounded to the type of x."""
    added = a.x1.float() + a.x2.float()
    x.copy_(added)
    return _norm(added, a, beta)


def rms_norm(a: Any, y: Tensor, rstd: Tensor) -> None:
    for into, values in zip((y, rstd), _norm(a.self.float(), a)):
        into.copy_(values)


def add_rms_norm(a: Any, y: Tensor, rstd: Tensor, x: Tensor) -> None:
    for into, values in zip((y, rstd), _norm_of_sum(a, x)):
        into.copy_(values)


def rms_norm_quant(a: Any, y: Tensor) -> None:
    """The kernel multiplies by the reciprocal of the scale, where torch_npu's page multiplies by the scale itself. It
    rounds to float16 before it rounds to an integer."""
    _only_int8("dst_dtype", a.dst_dtype)
    t = _norm(a.x.float(), a, a.beta)[0] * (1 / a.scale.float()) + a.offset.float()
    y.copy_(_rounded(t.half().float()))


def add_rms_norm_quant(a: Any, y1: Tensor, y2: Tensor, x: Tensor) -> Unset:
    _only_int8("dst_type", a.dst_type)
    v = _norm_of_sum(a, x, a.beta)[0]
    for y, scales, zero_points in (y1, a.scales1, a.zero_points1), (y2, a.scales2, a.zero_points2):
        if scales is not None:
            t = v / scales.float() if a.div_mode else v * scales.float()
            y.copy_(_rounded(t if zero_points is None else t + zero_points.float()))
    return False, a.scales2 is None, False


def add_rms_norm_dynamic_quant(a: Any, y1: Tensor, y2: Tensor, x: Tensor, scale1: Tensor, scale2: Tensor) -> None:
    _only_int8("y_dtype", a.y_dtype)
    v = _norm_of_sum(a, x, a.beta)[0]
    for y, scale, smooth in (y1, scale1, a.smooth_scale1), (y2, scale2, a.smooth_scale2):
        if y.dim() > 0:  # it is wanted
            _quantise_rows(v if smooth is None else v * smooth.float(), "add_rms_norm", y, scale)


def _microscale_norm(v: Tensor, rstd: Tensor, a: Any, x: Tensor, y: Tensor, mxscale: Tensor, into: Tensor) -> None:
    _microscale(v.to(x.dtype), a, y, mxscale, scale_alg=a.scale_alg, round_mode=a.round_mode)
    into.copy_(rstd)


def rms_norm_dynamic_mx_quant(a: Any, y: Tensor, mxscale: Tensor, rstd: Tensor) -> None:
    _microscale_norm(*_norm(a.x.float(), a, a.beta), a, a.x, y, mxscale, rstd)


def add_rms_norm_dynamic_mx_quant(a: Any, y: Tensor, x: Tensor, mxscale: Tensor, rstd: Tensor) -> None:
    _microscale_norm(*_norm_of_sum(a, x, a.beta), a, x, y, mxscale, rstd)


# ---- mixtures of experts ---------------------------------------------------------------------------------------------


def _largest(scores: Tensor, k: int) -> Tensor:
    """Where the k largest scores of each row are, the largest first. Of equal scores the first comes first."""
    return torch.sort(scores, dim=-1, descending=True, stable=True).indices[..., :k]


def moe_gating_top_k_softmax(a: Any, y: Tensor, expert_idx: Tensor, row_idx: Tensor) -> None:
    """A finished row has the number of experts for an expert, and y as other rows have."""
    scores = a.x.float().softmax(-1)
    experts = _largest(scores, a.k)
    y.copy_(scores.gather(-1, experts))
    expert_idx.copy_(experts if a.finished is None else experts.masked_fill(a.finished[..., None], scores.shape[-1]))
    row_idx.copy_(torch.arange(y.numel()).reshape(a.k, -1).t().reshape(y.shape))


def moe_gating_top_k(a: Any, y: Tensor, expert_idx: Tensor, norm_out: Tensor) -> Unset:
    """The bias chooses experts, and does not change their weights."""
    if a.input_ids is not None:
        raise NotImplementedError("input_ids: is given; npuquant has near values of None only")
    scores = a.x.float()
    scores = scores.softmax(-1) if a.norm_type == 0 else scores.sigmoid()
    choice = scores if a.bias is None else scores + a.bias.float()
    if a.group_count > 1:
        of_group = choice.unflatten(-1, (a.group_count, -1))
        best = of_group.amax(-1) if a.group_select_mode == 0 else of_group.topk(2).values.sum(-1)
        others = torch.ones_like(best, dtype=torch.bool).scatter(-1, _largest(best, a.k_group), False)
        choice = of_group.masked_fill(others[..., None], -torch.inf).flatten(-2)
    experts = _largest(choice, a.k)
    weights = scores.gather(-1, experts)
    if a.norm_type == 1:
        weights = weights / (weights.sum(-1, keepdim=True) + a.eps)
    y.copy_(weights * a.routed_scaling_factor)
    expert_idx.copy_(experts)
    if a.out_flag:
        norm_out.copy_(scores)
    return False, False, not a.out_flag
