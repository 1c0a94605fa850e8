# SPDX-License-Identifier: BSD-3-Clause
"""The operators around the products of a mixture of experts: to the experts, and back.

A function without npu_ in its name has the rules of an operator: it checks the arguments, which are arrays or tensors,
and returns the shapes and types of the results. So it is also right for tensors without values.
"""
from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import _native
from ._arguments import _ceiling, _expect, _of, _one_of, _options, _shape, _type_of, listed
from ._tensors import FLOAT4, INPUTS, TensorLike, arrays, described, from_float, name_of, to_float
from ._unset import mark

__tracebackhide__ = True  # pytest shows the line that calls the package

_FLOATS = ("float32", "float16", "bfloat16")


class Made(NamedTuple):
    """The shape of a result, and the name of its type."""

    shape: Tuple[Any, ...]
    type: str

    def zeros(self) -> np.ndarray:
        return np.zeros(self.shape, INPUTS[self.type].dtype)


def _read(given: Dict[str, Any], required: Sequence[str], optional: Sequence[str]) -> SimpleNamespace:
    """A function's arguments, by name, with arrays for those that are named."""
    return SimpleNamespace(**{**given, **arrays(given, required, optional)})


def exactly(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose arithmetic does not depend on the caller's rounding mode and treatment of subnormals."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return _native.exactly(function, *args)

    return call


def _within(argument: str, indices: np.ndarray, rows: int, least: int = 0) -> None:
    """Indices that the device would take for addresses."""
    if indices.size:
        found = indices.min() if indices.min() < least else indices.max()
        _expect(least <= found < rows, argument, f"has {found}; expected {least} to {rows - 1}")


# ---- npu_moe_init_routing_v2 -----------------------------------------------------------------------------------------

#: By quant_mode: the type of expanded_x, and how many elements have a scale; 0: a row has one. The modes 2 and 3 are of
#: the series Ascend 950: their blocks come in pairs, and only the shapes of results are known here.
_ROUTED = {-1: (None, 0), 0: ("int8", 0), 1: ("int8", 0), 2: ("float8_e5m2", 32), 3: ("float8_e4m3fn", 32)}


def undefined_routing(a: Any) -> str:
    """What of a call's arguments selects values that are not known; "" if nothing does."""
    if a.quant_mode > 1:
        return f"quant_mode {a.quant_mode}"
    is_read = a.quant_mode == -1 and a.x_dtype is not None
    return f"x_dtype {described(a.x_dtype)}" if is_read and name_of(a.x_dtype) != _type_of(a.x) else ""


def experts_of(a: Any) -> Tuple[Any, Any]:
    """The experts whose tokens are taken: the first, and the one behind the last."""
    first, end = a.active_expert_range or (0, a.expert_num)
    return first, end


def init_routing(a: Any, meta: bool = False) -> List[Made]:
    """meta: results are tensors without values, of which torch_npu makes some with fewer dimensions."""
    _of("x", a.x, *_FLOATS, "int8")
    _shape("x", a.x, None, None)
    _of("expert_idx", a.expert_idx, "int32")
    _shape("expert_idx", a.expert_idx, a.x.shape[0], None)
    _one_of("drop_pad_mode", a.drop_pad_mode, 0, 1)
    _one_of("expert_tokens_num_type", a.expert_tokens_num_type, 0, 1, 2)
    _one_of("row_idx_type", a.row_idx_type, 0, 1)
    if a.quant_mode not in _ROUTED:
        raise NotImplementedError(f"quant_mode: is {a.quant_mode}; npuquant knows the shapes of -1 to 3")
    _expect(a.quant_mode != 1 or a.x_dtype is None or name_of(a.x_dtype) != "int4", "x_dtype",
            "is int4; expected another type with quant_mode 1")
    tokens, columns = a.x.shape
    limit = 5120 if a.expert_tokens_num_type == 2 else 10240
    _expect(1 <= a.expert_num <= limit, "expert_num", f"is {a.expert_num}; expected 1 to {limit}")
    _expect(len(a.active_expert_range) in (0, 2), "active_expert_range",
            f"has {len(a.active_expert_range)} numbers; expected 2, or none")
    first, end = experts_of(a)
    _expect(0 <= first < end <= a.expert_num, "active_expert_range",
            f"is {[first, end]}; expected an increasing range within 0 to {a.expert_num}, which is expert_num")
    _expect(a.active_num >= -1, "active_num", f"is {a.active_num}; expected -1 or more")
    _init_scales(a, end - first)

    total = tokens * a.expert_idx.shape[1]
    rows: Tuple[Any, ...] = (total if a.active_num <= 0 else min(a.active_num, total),)
    if a.drop_pad_mode == 1:
        _expect(1 <= a.expert_capacity <= tokens, "expert_capacity",
                f"is {a.expert_capacity}; expected 1 to {tokens}, which is the number of rows of x")
        _expect(a.expert_num * a.expert_capacity <= 2**31 - 1, "expert_capacity", f"is {a.expert_capacity}; expected "
                f"at most {(2**31 - 1) // a.expert_num}, as the numbers of all experts' rows are int32")
        _expect(first == 0 and end == a.expert_num, "active_expert_range",
                f"is {[first, end]}; expected all experts with drop_pad_mode 1")
        _expect(a.row_idx_type == 0, "row_idx_type", "is 1; expected 0 with drop_pad_mode 1")
        _expect(not a.expert_tokens_num_flag or a.expert_tokens_num_type == 1, "expert_tokens_num_type",
                f"is {a.expert_tokens_num_type}; expected 1 with drop_pad_mode 1")
        rows = a.expert_num, a.expert_capacity
    kind, block = _ROUTED[a.quant_mode]
    scales = Made((rows[0] if len(rows) == 1 else rows[0] * rows[1],), "float32")
    if block:
        scales = Made((*scales.shape, 2 * _ceiling(columns, 2 * block)), "float8_e8m0fnu")
    elif meta and a.quant_mode == 0:
        scales = Made((), "float32")
    counts: Tuple[Any, ...] = (a.expert_num, 2) if a.expert_tokens_num_type == 2 else (end - first,)
    return [Made((*rows, columns), kind or _type_of(a.x)), Made((total,), "int32"),
            Made(() if meta and not a.expert_tokens_num_flag else counts, "int64"), scales]


def _init_scales(a: Any, experts: Any) -> None:
    """The rules of scale and offset of npu_moe_init_routing_v2."""
    if a.quant_mode != -1:
        _of("x", a.x, *_FLOATS, why=f" with quant_mode {a.quant_mode}")
    if a.quant_mode in (-1, 0, 1):
        _of("scale", a.scale, "float32")
    if a.quant_mode == -1:
        _shape("scale", a.scale, a.x.shape[0])
    elif a.quant_mode == 0:
        for name, tensor in ("scale", a.scale), ("offset", a.offset):
            _expect(tensor is not None, name, "is None; quant_mode 0 needs it")
            _of(name, tensor, "float32")
            _shape(name, tensor, 1)
    elif a.quant_mode == 1 and a.scale is not None:
        expected, columns = [experts, 1], a.x.shape[1]
        _expect(len(a.scale.shape) == 2 and a.scale.shape[0] in expected and a.scale.shape[1] == columns, "scale",
                f"has the shape {list(a.scale.shape)}; expected [{experts}, {columns}] or [1, {columns}]")


def _row_rule(a: Any, software: str) -> str:
    """The rule by which the device quantises rows; software is the first version of CANN with the kernel, 9.0 or 8.5."""
    columns = a.x.shape[1]
    if a.drop_pad_mode == 1:
        return "moe_routing"
    if software == "9.0":  # the kernel for rows that it has to cut into parts is the former one
        return "moe_routing" if columns <= 9300 else "moe_routing_8_5"
    is_one = (a.x.shape[0] == 1 and columns == 7168 and a.expert_idx.shape[1] == 8 and a.expert_tokens_num_type == 2
              and _type_of(a.x) == "bfloat16" and a.scale is not None and tuple(a.scale.shape) == (256, 7168))
    return "moe_routing" if is_one else "moe_routing_8_5"


@exactly
def _scaled(x: np.ndarray, scale: Any) -> np.ndarray:
    return to_float(x) * scale


def _row_quant(a: Any, tokens: np.ndarray, groups: np.ndarray, rule: str) -> Tuple[np.ndarray, np.ndarray]:
    """int8 and scales of the tokens, which belong to groups, each with its own row of scale."""
    from . import row_quant  # it is made after this module

    if a.scale is None or len(a.scale) == 1:  # a token has one result, for whichever experts
        y, scale = row_quant(_scaled(a.x, np.float32(1) if a.scale is None else a.scale), rule)
        return y[tokens], scale[tokens]
    y, scale = np.empty((len(tokens), a.x.shape[1]), np.int8), np.empty(len(tokens), np.float32)
    for begin in range(0, len(tokens), 256):  # the float32 of all rows would take memory four times
        part = slice(begin, begin + 256)
        y[part], scale[part] = row_quant(_scaled(a.x[tokens[part]], a.scale[groups[part]]), rule)
    return y, scale


def _count_tokens(a: Any, made: Made, counts: np.ndarray, first: int) -> np.ndarray:
    """expert_tokens: sums up to each expert, counts, or pairs of an expert and its count."""
    if not a.expert_tokens_num_flag:
        return mark(made.zeros(), True)
    if a.expert_tokens_num_type < 2:
        return mark((counts if a.expert_tokens_num_type else np.cumsum(counts)).astype(np.int64), False)
    pairs, some = made.zeros(), np.flatnonzero(counts)
    pairs[:len(some), 0], pairs[:len(some), 1] = some + first, counts[some]
    return mark(pairs, np.arange(len(pairs)) > len(counts))


@_options
def npu_moe_init_routing_v2(
    x: TensorLike, expert_idx: TensorLike, *, scale: Optional[TensorLike] = None, offset: Optional[TensorLike] = None,
    active_num: int = -1, expert_capacity: int = -1, expert_num: int = -1, drop_pad_mode: int = 0,
    expert_tokens_num_type: int = 0, expert_tokens_num_flag: bool = False, quant_mode: int = -1,
    active_expert_range: Sequence[int] = (), row_idx_type: int = 0, x_dtype: Any = None, cann: str = "9.0",
) -> Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Brings the rows of tokens into the order of their experts, and quantises them if quant_mode says so.

    Token t goes to the experts expert_idx[t]: position p = t * k + j is its slot j. The positions are sorted by expert,
    and those of one expert stay in order. With active_expert_range only the positions of these experts count.

    Args:
        x: [n, H], float32, float16, bfloat16, or with quant_mode -1 int8.
        expert_idx: int32 [n, k].
        scale: float32; with quant_mode -1 None or [n], 0 [1], 1 None, [1, H] or a row for each active expert.
        offset: float32 [1] with quant_mode 0.
        active_num: how many rows expanded_x has at most; -1 and 0 set no limit.
        expert_capacity: with drop_pad_mode 1 how many rows each expert has, 1 to n.
        expert_num: how many experts there are.
        drop_pad_mode: 0, or 1: each expert has expert_capacity rows. What is missing is 0, what is too much is dropped.
        expert_tokens_num_type: what expert_tokens has: 0 sums of counts up to each expert, 1 counts, 2 pairs of an
            expert and its count for those with tokens.
        expert_tokens_num_flag: False leaves expert_tokens unset.
        quant_mode: -1 none; 0 npu_quantize() with div_mode=False; 1 row_quant() of x * scale.
        active_expert_range: the first expert and the one behind the last; empty for all.
        row_idx_type: 0: expanded_row_idx has the row of each position, -1 if there is none. 1: the position of each row.
        x_dtype: None, or the type of x: others are of the series Ascend 950.
        cann: the software whose rounding of rows is meant, "9.0" for this version and later, or "8.5" for this and
            earlier. With 9.0, too, rows of more than 9,300 columns are rounded as with 8.5, since the device cuts them.
            The device does so from about 14,000 columns on if it sorts on one core.

    Returns:
        expanded_x [R, H] (with drop_pad_mode 1 [expert_num, expert_capacity, H]), expanded_row_idx int32 [n * k],
        expert_tokens int64, expanded_scale float32 [R]. unset() says what the device does not write of them.

    >>> x, experts = np.array([[1, 2], [3, 4]], np.float32), np.array([[1, 0], [1, 2]], np.int32)
    >>> rows, index, counts, _ = npu_moe_init_routing_v2(x, experts, expert_num=3, expert_tokens_num_type=1,
    ...                                                  expert_tokens_num_flag=True)
    >>> rows
    array([[1., 2.],
           [1., 2.],
           [3., 4.],
           [3., 4.]], dtype=float32)
    >>> index, counts
    (array([1, 0, 2, 3], dtype=int32), array([1, 2, 1]))
    """
    from . import npu_quantize  # it is made after this module

    a = _read(locals(), ("x", "expert_idx"), ("scale", "offset"))
    expanded, index, counted, scales = init_routing(a)
    if undefined_routing(a):
        raise NotImplementedError(f"npu_moe_init_routing_v2 with {undefined_routing(a)}: npuquant does not define its "
                                  "values")
    _one_of("cann", a.cann, "9.0", "8.5")
    first, end = experts_of(a)
    ids, k = a.expert_idx.reshape(-1), a.expert_idx.shape[1]
    if not a.active_expert_range:
        _within("expert_idx", ids, a.expert_num)

    order = np.argsort(ids, kind="stable")
    before, active = np.count_nonzero(ids < first), np.count_nonzero((ids >= first) & (ids < end))
    behind, order = order[before + active:], order[before:before + active]
    groups = ids[order] - first
    counts = np.bincount(groups, minlength=end - first)
    if a.drop_pad_mode:
        slots = np.arange(active) - (np.cumsum(counts) - counts)[groups]
        kept = slots < a.expert_capacity
        places = (groups * a.expert_capacity + slots)[kept]
    else:
        kept = slice(0, expanded.shape[0])
        places = np.arange(active)

    row_index = index.zeros()
    if a.row_idx_type:
        row_index[...] = np.concatenate([order, behind, np.flatnonzero(ids < first)])
    else:
        row_index[...] = -1
        row_index[order[kept] if a.drop_pad_mode else order] = places

    tokens, rows = order[kept] // max(k, 1), expanded.zeros()
    filled = rows.reshape(-1, rows.shape[-1]) if rows.size else rows
    expanded_scale, places = scales.zeros(), places[:len(tokens)]
    if rows.size == 0:
        pass
    elif a.quant_mode == 1:
        filled[places], expanded_scale[places] = _row_quant(a, tokens, groups[kept], _row_rule(a, a.cann))
    elif a.quant_mode == 0:
        filled[places] = npu_quantize(a.x, a.scale, a.offset, "int8", -1, False)[tokens]
    else:
        filled[places] = a.x[tokens]
    if a.quant_mode == -1 and a.scale is not None:
        expanded_scale[places] = a.scale[tokens]
    unset = False if a.drop_pad_mode else np.arange(len(rows)) >= active
    has_scale = a.quant_mode == 1 or (a.quant_mode == -1 and a.scale is not None)
    return (mark(rows, unset), mark(row_index, a.row_idx_type == 1 and np.arange(len(row_index)) >= active),
            _count_tokens(a, counted, counts, first), mark(expanded_scale, unset if has_scale else True))


# ---- npu_moe_re_routing ----------------------------------------------------------------------------------------------


#: What tokens' bytes may be.
_BYTES = ("hifloat8", *FLOAT4)


def re_routing(a: Any) -> List[Made]:
    if a.tokens_dtype is None:
        _of("tokens", a.tokens, *_FLOATS, "int8")
    else:
        name = name_of(a.tokens_dtype)
        _expect(name in _BYTES, "tokens_dtype", f"is {described(a.tokens_dtype)}; expected None, or "
                f"{listed(_BYTES)}")
        _of("tokens", a.tokens, "uint8", "int8", why=f", the bytes of {name}")
    _shape("tokens", a.tokens, None, None)
    _of("expert_token_num_per_rank", a.expert_token_num_per_rank, "int32", "int64")
    _shape("expert_token_num_per_rank", a.expert_token_num_per_rank, None, None)
    rows = a.tokens.shape[0]
    _of("per_token_scales", a.per_token_scales, "float32")
    _shape("per_token_scales", a.per_token_scales, rows)
    _one_of("expert_token_num_type", a.expert_token_num_type, 1)
    _one_of("idx_type", a.idx_type, 0)
    kind = _type_of(a.tokens) if a.tokens_dtype is None else "uint8"
    return [Made(tuple(a.tokens.shape), kind), Made((rows,), "float32"), Made((rows,), "int32"),
            Made((a.expert_token_num_per_rank.shape[1],), _type_of(a.expert_token_num_per_rank))]


@_options
def npu_moe_re_routing(
    tokens: TensorLike, expert_token_num_per_rank: TensorLike, *, per_token_scales: Optional[TensorLike] = None,
    expert_token_num_type: int = 1, idx_type: int = 0, tokens_dtype: Any = None,
) -> Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Brings rows that came by rank and expert into the order of experts and ranks. Rows of one of each stay in order.

    Args:
        tokens: [A, H], float32, float16, bfloat16 or int8; with a tokens_dtype uint8 or int8.
        expert_token_num_per_rank: int32 or int64 [N, E]: how many rows of each rank each expert has.
        per_token_scales: None, or float32 [A].
        expert_token_num_type: 1.
        idx_type: 0.
        tokens_dtype: None, or "hifloat8", "float4_e2m1fn_x2" or "float4_e1m2fn_x2" for bytes of these types, which
            come as uint8.

    Returns:
        The rows, their scales, the row of tokens that each comes from (int32), and how many rows each expert has.
        unset() says what the device does not write of them: the scales without per_token_scales, and rows behind the
        sum of the counts.

    >>> rows, _, index, counts = npu_moe_re_routing(np.array([[1], [2], [3]], np.float32), np.array([[1, 1], [1, 0]]))
    >>> rows.tolist(), index.tolist(), counts.tolist()
    ([[1.0], [3.0], [2.0]], [0, 2, 1], [2, 1])
    """
    a = _read(locals(), ("tokens", "expert_token_num_per_rank"), ("per_token_scales",))
    rows, scales, index, sums = (one.zeros() for one in re_routing(a))
    counts, argument = a.expert_token_num_per_rank, "expert_token_num_per_rank"
    _expect(not counts.size or counts.min() >= 0, argument, "has a negative number; expected 0 or more")
    used = sum(counts.reshape(-1).tolist())  # NumPy's sum has 64 bits
    _expect(used <= len(rows), argument, f"has the sum {used}; expected at most {len(rows)}, which is tokens' rows")
    begins = (np.cumsum(counts.reshape(-1)) - counts.reshape(-1)).reshape(counts.shape)
    by_expert = [np.arange(begin, begin + count) for begin, count in zip(begins.T.flat, counts.T.flat)]
    source = np.concatenate([np.zeros(0, np.int64), *by_expert])
    sums[...] = counts.sum(axis=0)
    rows[:used], index[:used] = a.tokens.view(rows.dtype)[source], source
    if a.per_token_scales is not None:
        scales[:used] = a.per_token_scales[source]
    behind = np.arange(len(rows)) >= used
    return mark(rows, behind), mark(scales, behind | (a.per_token_scales is None)), mark(index, behind), mark(sums, False)


# ---- npu_moe_token_unpermute -----------------------------------------------------------------------------------------


def token_unpermute(a: Any) -> List[Made]:
    _of("permuted_tokens", a.permuted_tokens, *_FLOATS)
    _shape("permuted_tokens", a.permuted_tokens, None, None)
    _of("sorted_indices", a.sorted_indices, "int32")
    _shape("sorted_indices", a.sorted_indices, None)
    _expect(not a.padded_mode, "padded_mode", "is True; expected False")
    count = a.sorted_indices.shape[0]
    if a.probs is None:
        n = count
    else:
        _of("probs", a.probs, *_FLOATS)
        _shape("probs", a.probs, None, None)
        n, k = a.probs.shape
        _expect(k <= 512, "probs", f"has {k} columns; expected at most 512")
        _expect(n * k == count, "sorted_indices", f"has {count} elements; expected {n * k}, as probs has")
    return [Made((n, a.permuted_tokens.shape[1]), _type_of(a.permuted_tokens))]


@exactly
def _sum_slots(tokens: np.ndarray, indices: np.ndarray, probs: Optional[np.ndarray]) -> np.ndarray:
    """Sums of a token's rows, slot by slot, in float32. A slot without a row, or with the probability 0, is skipped."""
    total = np.zeros((len(indices), tokens.shape[1]), np.float32)
    for slot in range(indices.shape[1]):
        taken = indices[:, slot] < len(tokens)
        if probs is not None:
            taken &= probs[:, slot] != 0
        rows = to_float(tokens[indices[taken, slot]])
        if probs is not None:
            rows = rows * probs[taken, slot, None]
        total[taken] = rows if slot == 0 else total[taken] + rows
    return from_float(total, _type_of(tokens))


@_options
def npu_moe_token_unpermute(
    permuted_tokens: TensorLike, sorted_indices: TensorLike, probs: Optional[TensorLike] = None,
    padded_mode: bool = False, restore_shape: Optional[Sequence[int]] = None,
) -> np.ndarray:
    """Sums the k rows of each token, each times its probability, in float32; the sum is rounded once at the end.

    Slot j of token t is row sorted_indices[t * k + j]. The slots are added in their order. A slot whose index is beyond
    the rows, or whose probability is 0, is skipped::

        sum = sum + row * prob        (two operations, each rounded; the first slot sets the sum)

    Args:
        permuted_tokens: float32, float16 or bfloat16 [P, H].
        sorted_indices: int32 [n * k], not negative unless the slot's probability is 0.
        probs: None, which means k = 1 and no product, or float32, float16 or bfloat16 [n, k], k at most 512.
        padded_mode: False.
        restore_shape: has no effect, as on the device.

    Returns:
        [n, H], of the type of permuted_tokens.

    >>> npu_moe_token_unpermute(np.array([[2048], [1], [1]], np.float16), np.arange(3, dtype=np.int32),
    ...                         np.ones((1, 3), np.float16))
    array([[2050.]], dtype=float16)
    """
    a = _read(locals(), ("permuted_tokens", "sorted_indices"), ("probs",))
    made = token_unpermute(a)[0]
    probs = None if a.probs is None else to_float(a.probs)
    indices = a.sorted_indices.reshape(made.shape[0], 1 if probs is None else probs.shape[1])
    _within("sorted_indices", indices if probs is None else indices[probs != 0], 2**31)
    return _sum_slots(a.permuted_tokens, indices, probs)


# ---- npu_moe_finalize_routing ----------------------------------------------------------------------------------------


def finalize_routing(a: Any) -> List[Made]:
    rows, kind = a.expanded_permuted_rows, _type_of(a.expanded_permuted_rows)
    _one_of("drop_pad_mode", a.drop_pad_mode, 0, 1, 2, 3)
    _of("expanded_permuted_rows", rows, *_FLOATS)
    _shape("expanded_permuted_rows", rows, *[None] * (3 if a.drop_pad_mode in (1, 3) else 2))
    _of("expanded_src_to_dst_row", a.expanded_src_to_dst_row, "int32")
    _shape("expanded_src_to_dst_row", a.expanded_src_to_dst_row, None)
    if a.scales is not None:
        _of("scales", a.scales, *dict.fromkeys([kind, *["float32"] * (kind == "bfloat16")]))
        _shape("scales", a.scales, None, None)
    count, columns = a.expanded_src_to_dst_row.shape[0], rows.shape[-1]
    k = a.k if a.scales is None else a.scales.shape[1]
    _expect(k >= 1 and count % k == 0, "expanded_src_to_dst_row",
            f"has {count} elements; expected a multiple of {k}, the number of rows of a token")
    n = count // k
    _shape("scales", a.scales, n, k)
    if a.drop_pad_mode in (0, 2):
        _shape("expanded_permuted_rows", rows, count, None)
    _expect(a.skip1 is not None or a.skip2 is None, "skip1", "is None; expected a tensor, as skip2 is given")
    for name, tensor in ("skip1", a.skip1), ("skip2", a.skip2), ("bias", a.bias):
        _of(name, tensor, kind)
        _shape(name, tensor, None if name == "bias" else n, columns)
    experts = a.export_for_source_row
    _expect(a.bias is None or experts is not None, "export_for_source_row", "is None; bias needs it")
    _of("export_for_source_row", experts, "int32")
    _shape("export_for_source_row", experts, n, k)
    return [Made((n, columns), kind)]


@exactly
def _finalize(a: Any, rows: np.ndarray, indices: np.ndarray) -> np.ndarray:
    # NumPy rounds each step of float16, as the device does. bfloat16 is rounded once, at the end.
    work = np.float16 if rows.dtype == np.float16 else np.float32

    def widened(array: np.ndarray) -> np.ndarray:
        return to_float(array).astype(work, copy=False)

    n, k = indices.shape
    total = np.zeros((n, rows.shape[-1]), work)
    if a.skip1 is not None:
        total = widened(a.skip1) + (work(0) if a.skip2 is None else widened(a.skip2))
    for slot in range(k):
        taken = np.flatnonzero(indices[:, slot] >= 0)  # a slot that was dropped adds nothing
        values = widened(rows[indices[taken, slot]])
        if a.bias is not None:
            values = values + widened(a.bias[a.export_for_source_row[taken, slot]])
        if a.scales is not None:
            values = values * widened(a.scales[taken, slot, None])
        total[taken] = values if slot == 0 and a.skip1 is None else total[taken] + values
    return from_float(total, _type_of(rows))


@_options
def npu_moe_finalize_routing(
    expanded_permuted_rows: TensorLike, skip1: Optional[TensorLike], skip2: Optional[TensorLike],
    bias: Optional[TensorLike], scales: Optional[TensorLike], expanded_src_to_dst_row: TensorLike,
    export_for_source_row: Optional[TensorLike], drop_pad_mode: Optional[int] = 0, k: Optional[int] = 1,
) -> np.ndarray:
    """Sums the k rows of each token, with the bias of the expert and a scale, onto what skips the experts.

    The slots are added in their order. float16 rounds each step to float16. bfloat16 computes in float32 and rounds once
    at the end::

        sum = skip1 + skip2               (without skip1 the first slot sets the sum)
        v = row + bias[expert]            (unless None)
        v = v * scale                     (unless None)
        sum = sum + v

    Args:
        expanded_permuted_rows: float32, float16 or bfloat16; with drop_pad_mode 0 and 2 [n * k, H], with 1 and 3
            [experts, capacity, H].
        skip1, skip2: None, or of the type of the rows, [n, H]; skip2 only with skip1.
        bias: None, or of the type of the rows, [experts, H].
        scales: None, or of the type of the rows, for bfloat16 also float32, [n, k].
        expanded_src_to_dst_row: int32 [n * k]: the row of slot j of token t, at j * n + t with drop_pad_mode 0 and 1, at
            t * k + j, as npu_moe_init_routing_v2() returns it, with 2 and 3. -1 with 1 and 3: the slot was dropped, and
            adds nothing.
        export_for_source_row: the experts of the slots, int32 [n, k], for bias. torch_npu spells the name so.
        drop_pad_mode: 0 to 3.
        k: the number of rows of a token, if scales is None.

    Returns:
        [n, H], of the type of the rows.

    >>> npu_moe_finalize_routing(np.array([[2048], [1], [1]], np.float16), None, None, None,
    ...                          np.ones((1, 3), np.float16), np.arange(3, dtype=np.int32), None, 2)
    array([[2048.]], dtype=float16)
    """
    a = _read(locals(), ("expanded_permuted_rows", "expanded_src_to_dst_row"),
              ("skip1", "skip2", "bias", "scales", "export_for_source_row"))
    made = finalize_routing(a)[0]
    rows = a.expanded_permuted_rows
    rows = rows.reshape(rows.shape[0] * rows.shape[1] if rows.ndim == 3 else rows.shape[0], rows.shape[-1])
    n, slots = made.shape[0], a.k if a.scales is None else a.scales.shape[1]
    indices = a.expanded_src_to_dst_row
    indices = indices.reshape(slots, n).T if a.drop_pad_mode < 2 else indices.reshape(n, slots)
    _within("expanded_src_to_dst_row", indices, len(rows), -1 if a.drop_pad_mode % 2 else 0)
    if a.bias is not None:
        _within("export_for_source_row", a.export_for_source_row, len(a.bias))
    return _finalize(a, rows, indices)
