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

from npuquant_facts.dtypes import FLOATS, TYPES

from .. import _native
from .._arguments import _ceiling, _expect, _of, _one_of, _options, _shape, _type_of, listed
from .._operators import dynamic_mx_quant, npu_quantize, row_quant
from .._tensors import FLOAT4, TensorLike, arrays, described, from_float, name_of, to_float
from .._threads import keep
from ..mx import CONVENTIONS
from .unset import mark

__tracebackhide__ = True  # pytest shows the line that calls the package


class Made(NamedTuple):
    """The shape of a result, and the name of its type."""

    shape: Tuple[Any, ...]
    type: str

    def zeros(self) -> np.ndarray:
        return np.zeros(self.shape, TYPES[self.type].stored)


def _read(given: Dict[str, Any], required: Sequence[str], optional: Sequence[str]) -> SimpleNamespace:
    """A function's arguments, by name, with arrays for those that are named."""
    return SimpleNamespace(**{**given, **arrays(given, required, optional)})


#: A step of an element: its name, "integer", "float" or "place", and the value, which may be an array of one element.
Note = Callable[[str, str, Any], None]


def _unseen(step: str, kind: str, value: Any) -> None:
    """Nobody looks at the steps."""


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

#: By quant_mode, the type of expanded_x in groups of 32 of a row; modes of the series Ascend 950.
_IN_GROUPS = {2: "float8_e5m2", 3: "float8_e4m3fn", 9: "float4_e2m1fn_x2", 16: "float8_e5m2", 17: "float8_e4m3fn"}
#: And of all modes; None: that of x.
_ROUTED = {-1: None, 0: "int8", 1: "int8", **_IN_GROUPS}
#: The least of the largest magnitudes of groups: 0.0001, truncated to bfloat16.
_LEAST = dict.fromkeys((16, 17), 1.640625 * 2.0**-14)
_ROUND_SCALE = next(row for row in CONVENTIONS if row.name == "RoundScale")


def undefined_routing(a: Any, cann: str) -> str:
    """What of a call's arguments selects values that are not known; "" if nothing does."""
    if a.quant_mode in _IN_GROUPS and cann == "8.5":
        return f"quant_mode {a.quant_mode} and CANN 8.5"
    is_read = a.quant_mode == -1 and a.x_dtype is not None
    return f"x_dtype {described(a.x_dtype)}" if is_read and name_of(a.x_dtype) != _type_of(a.x) else ""


def experts_of(a: Any) -> Tuple[Any, Any]:
    """The experts whose tokens are taken: the first, and the one behind the last."""
    first, end = a.active_expert_range or (0, a.expert_num)
    return first, end


def init_routing(a: Any, meta: bool = False) -> List[Made]:
    """meta: results are tensors without values, of which torch_npu makes some with fewer dimensions."""
    _of("x", a.x, *FLOATS, "int8")
    _shape("x", a.x, None, None)
    _of("expert_idx", a.expert_idx, "int32")
    _shape("expert_idx", a.expert_idx, a.x.shape[0], None)
    _one_of("drop_pad_mode", a.drop_pad_mode, 0, 1)
    _one_of("expert_tokens_num_type", a.expert_tokens_num_type, 0, 1, 2)
    _one_of("row_idx_type", a.row_idx_type, 0, 1)
    if a.quant_mode not in _ROUTED:
        raise NotImplementedError(f"quant_mode: is {a.quant_mode}; npuquant knows {listed([*map(str, _ROUTED)])}")
    _expect(a.quant_mode != 1 or a.x_dtype is None or name_of(a.x_dtype) != "int4", "x_dtype",
            "is int4; expected another type with quant_mode 1")
    tokens, columns = a.x.shape
    elements = TYPES[_ROUTED[a.quant_mode] or "int8"].elements
    _expect(columns % elements == 0, "x", f"has {columns} columns; expected an even number with quant_mode "
            f"{a.quant_mode}, which has two in a byte")
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
    kind = _ROUTED[a.quant_mode] or _type_of(a.x)
    scales = Made((rows[0] if len(rows) == 1 else rows[0] * rows[1],), "float32")
    if a.quant_mode in _IN_GROUPS:
        pairs = _ceiling(columns, 64)
        scales = Made((*scales.shape, *((pairs, 2) if elements > 1 else (2 * pairs,))), "uint8")
    elif meta and a.quant_mode == 0:
        scales = Made((), "float32")
    counts: Tuple[Any, ...] = (a.expert_num, 2) if a.expert_tokens_num_type == 2 else (end - first,)
    return [Made((*rows, columns // elements), kind), Made((total,), "int32"),
            Made(() if meta and not a.expert_tokens_num_flag else counts, "int64"), scales]


def _init_scales(a: Any, experts: Any) -> None:
    """The rules of scale and offset of npu_moe_init_routing_v2."""
    if a.quant_mode != -1:
        types = ("float16", "bfloat16") if a.quant_mode in _IN_GROUPS else FLOATS
        _of("x", a.x, *types, why=f" with quant_mode {a.quant_mode}")
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
    if software != "8.5":  # the kernel for rows that it has to cut into parts is the former one
        return "moe_routing" if columns <= 9300 else "moe_routing_8_5"
    is_one = (a.x.shape[0] == 1 and columns == 7168 and a.expert_idx.shape[1] == 8 and a.expert_tokens_num_type == 2
              and _type_of(a.x) == "bfloat16" and a.scale is not None and tuple(a.scale.shape) == (256, 7168))
    return "moe_routing" if is_one else "moe_routing_8_5"


@exactly
def _scaled(x: np.ndarray, scale: Any) -> np.ndarray:
    return to_float(x) * scale


@exactly
def _round_scales(x: np.ndarray, kind: str, least: float) -> Tuple[np.ndarray, np.ndarray]:
    """Groups by the rule of what comes after CANN 9.1, RoundScale: x times the inverses of the scales, and their codes,
    in whole pairs. A product is not rounded to bfloat16 again: where that shows, the result is zero."""
    n, columns = x.shape
    values = np.zeros((n, 2 * _ceiling(columns, 64), 32), np.float32)
    values.reshape(n, -1)[:, :columns] = to_float(x)
    codes = _ROUND_SCALE.codes(np.maximum(np.abs(values).max(axis=-1, initial=0), least), kind)
    inverses = np.where(codes == 255, np.nan, np.ldexp(1.0, 127 - codes.astype(int))).astype(np.float32)
    codes[:, _ceiling(columns, 32):] = 0
    return (values * inverses[..., None]).reshape(n, -1)[:, :columns], codes


def _in_groups(a: Any) -> Tuple[np.ndarray, np.ndarray]:
    """The rows of x in groups of 32, and the scales."""
    kind = _IN_GROUPS[a.quant_mode]
    if a.quant_mode in _LEAST or (a.quant_mode != 9 and a.cann == "9.2"):
        scaled, codes = _round_scales(a.x, kind, _LEAST.get(a.quant_mode, 0))
        return npu_quantize(scaled, np.ones(1, np.float32), None, kind, -1, False), codes
    y, codes = dynamic_mx_quant(a.x, dst_type=kind, small_groups=2)
    return y, codes if TYPES[kind].elements > 1 else codes.reshape(len(codes), -1)


class Routing(NamedTuple):
    """Where npu_moe_init_routing_v2() brings which rows."""

    a: Any
    order: np.ndarray  # the positions with active experts, in the order of their rows
    groups: np.ndarray  # the expert of each, from the first that is active on
    places: np.ndarray  # the row of each; -1: it is dropped
    tokens: np.ndarray  # the token of each
    scales: np.ndarray  # which row of scale each takes
    row_index: np.ndarray  # expanded_row_idx
    counts: np.ndarray  # expert_tokens
    rule: str  # of row_quant()

    def _row_quant(self, kept: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """int8 and scales of the rows that are kept."""
        a, tokens, groups = self.a, self.tokens[kept], self.scales[kept]
        if a.scale is None or len(a.scale) == 1:  # a token has one result, for whichever experts
            y, scale = row_quant(_scaled(a.x, np.float32(1) if a.scale is None else a.scale), self.rule)
            return y[tokens], scale[tokens]
        y, scale = np.empty((len(tokens), a.x.shape[1]), np.int8), np.empty(len(tokens), np.float32)
        for begin in range(0, len(tokens), 256):  # the float32 of all rows would take memory four times
            part = slice(begin, begin + 256)
            y[part], scale[part] = row_quant(_scaled(a.x[tokens[part]], a.scale[groups[part]]), self.rule)
        return y, scale

    def results(self) -> List[np.ndarray]:
        a = self.a
        made, _, _, scales = init_routing(a)
        rows, scale = made.zeros(), scales.zeros()
        if rows.size:
            filled = rows.reshape(-1, rows.shape[-1])
            kept = (self.places >= 0) & (self.places < len(filled))
            places, tokens = self.places[kept], self.tokens[kept]
            if a.quant_mode == 1:
                filled[places], scale[places] = self._row_quant(kept)
            elif a.quant_mode in _IN_GROUPS:
                y, codes = _in_groups(a)
                filled[places], scale[places] = y[tokens], codes[tokens]
            elif a.quant_mode == 0:
                filled[places] = npu_quantize(a.x, a.scale, a.offset, "int8", -1, False)[tokens]
            else:
                filled[places] = a.x[tokens]
            if a.quant_mode == -1 and a.scale is not None:
                scale[places] = a.scale[self.scales[kept]]
        return [rows, self.row_index, self.counts, scale]

    def quantised(self) -> Tuple[np.ndarray, np.ndarray]:
        """The places of the rows that there are, and what row_quant() quantises to them."""
        a = self.a
        made = init_routing(a)[0].shape
        kept = (self.places >= 0) & (self.places < (made[0] if len(made) == 2 else made[0] * made[1]))
        scale = np.float32(1) if a.scale is None else a.scale[self.scales[kept] if len(a.scale) > 1 else 0]
        return self.places[kept], _scaled(a.x[self.tokens[kept]], scale)

    def some(self, rows: np.ndarray) -> np.ndarray:
        """Some rows of the first result."""
        kept = np.isin(self.places, rows)
        made = self._replace(places=self.places[kept], tokens=self.tokens[kept], scales=self.scales[kept]).results()[0]
        return made.reshape(-1, made.shape[-1])[rows]

    def note(self, result: int, index: Tuple[int, ...], note: Note) -> None:
        """Where an element comes from."""
        a, k = self.a, self.a.expert_idx.shape[1]
        if result == 2:
            note("expert", "integer", experts_of(a)[0] + index[0])
            return
        row = index[0] * a.expert_capacity + index[1] if len(index) == 3 else index[0]
        is_position = result == 1 and a.row_idx_type == 0
        found = np.flatnonzero((self.order if is_position else self.places) == row)
        if not len(found):
            note("position" if is_position else "row", "integer", row)
            return
        at = found[-1]  # what was written last
        position = self.order[at]
        for step, value in (("row", self.places[at]), ("position", position), ("token", self.tokens[at]),
                            ("slot", position % k), ("expert", a.expert_idx.reshape(-1)[position])):
            note(step, "integer", value)
        if result == 0 and a.quant_mode != 9:  # two elements in a byte
            x = to_float(a.x[self.tokens[at], index[-1]])
            note("x", "float", x)
            if a.quant_mode == 1:
                scale = np.ones((1, 1), np.float32) if a.scale is None else a.scale[self.scales[at] % len(a.scale)]
                if a.scale is not None:
                    note("scale", "float", scale[index[-1]])
                    note("x * scale", "float", _scaled(x, scale[index[-1]]))
                note("expanded_scale", "float", self._row_quant(np.array([at]))[1])


def route(a: Any, order: Optional[np.ndarray] = None,
          slots_kept: Optional[Callable[..., np.ndarray]] = None) -> Routing:
    """The plan of a call. order: all positions, those of an expert beside each other, if not in the right order.
    slots_kept: of numbers of slots in their experts, and of the experts' counts, the places in the experts' rows."""
    first, end = experts_of(a)
    ids, k = a.expert_idx.reshape(-1), max(a.expert_idx.shape[1], 1)
    order = np.argsort(ids, kind="stable") if order is None else order
    behind = order[ids[order] >= end]
    order = order[(ids[order] >= first) & (ids[order] < end)]
    groups = ids[order] - first
    counts, places = np.bincount(groups, minlength=end - first), np.arange(len(order))
    if a.drop_pad_mode:
        is_first = np.append(True, groups[1:] != groups[:-1])[:len(groups)]
        slots = places - np.maximum.accumulate(np.where(is_first, places, 0))
        slots = (np.where(slots < a.expert_capacity, slots, -1) if slots_kept is None
                 else slots_kept(slots, counts[groups]))
        places = np.where(slots < 0, -1, groups * a.expert_capacity + slots)

    _, made, counted, _ = init_routing(a)
    index = made.zeros()
    if a.row_idx_type:
        index[...] = np.concatenate([order, behind, np.flatnonzero(ids < first)])
    else:
        index[...] = -1
        index[order] = places
    tokens = order // k
    return Routing(a, order, groups, places, tokens, tokens if a.quant_mode == -1 else groups, index,
                   _count_tokens(a, counted, counts, first), _row_rule(a, a.cann) if a.quant_mode == 1 else "")


def _count_tokens(a: Any, made: Made, counts: np.ndarray, first: int) -> np.ndarray:
    """expert_tokens: sums up to each expert, counts, or pairs of an expert and its count."""
    if not a.expert_tokens_num_flag:
        return made.zeros()
    if a.expert_tokens_num_type < 2:
        return (counts if a.expert_tokens_num_type else np.cumsum(counts)).astype(np.int64)
    pairs, some = made.zeros(), np.flatnonzero(counts)
    pairs[:len(some), 0], pairs[:len(some), 1] = some + first, counts[some]
    return pairs


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
        quant_mode: -1 none; 0 npu_quantize() with div_mode=False; 1 row_quant() of x * scale. Groups of 32 of a row of
            float16 or bfloat16, with a power of two as scale: 2 and 16 to float8_e5m2, 3 and 17 to float8_e4m3fn, 9 to
            float4_e2m1fn_x2, two in a byte. 2, 3 and 9 are dynamic_mx_quant() with small_groups=2. 16 and 17, and with
            cann="9.2" 2 and 3, round the scale up if the largest magnitude is above 1.75 times a power of two, and 16
            and 17 take no largest magnitude as less than 1e-4.
        active_expert_range: the first expert and the one behind the last; empty for all.
        row_idx_type: 0: expanded_row_idx has the row of each position, -1 if there is none. 1: the position of each row.
        x_dtype: None, or the type of x: others are of the series Ascend 950.
        cann: the software whose rounding of rows is meant, "9.0" for this version and later, "9.2" for what comes after
            9.1, or "8.5" for this and earlier. From 9.0 on, too, rows of more than 9,300 columns are rounded as with
            8.5, since the device cuts them. The device does so from about 14,000 columns on if it sorts on one core.

    Returns:
        expanded_x [R, H] (with drop_pad_mode 1 [expert_num, expert_capacity, H]), expanded_row_idx int32 [n * k],
        expert_tokens int64, expanded_scale float32 [R]. In groups expanded_scale is uint8, a byte for each: [R, ceil(H /
        32) made even], or [R, ceil(H / 64), 2] with quant_mode 9. unset() says what the device does not write of them.

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
    a = _read(locals(), ("x", "expert_idx"), ("scale", "offset"))
    init_routing(a)
    _one_of("cann", a.cann, "9.0", "9.2", "8.5")
    undefined = undefined_routing(a, a.cann)
    if undefined:
        raise NotImplementedError(f"npu_moe_init_routing_v2 with {undefined}: npuquant does not define its values")
    if not a.active_expert_range:
        _within("expert_idx", a.expert_idx, a.expert_num)
    routing = route(a)
    keep("npu_moe_init_routing_v2", routing)
    rows, index, counts, scales = routing.results()
    active, experts = len(routing.order), len(range(*experts_of(a)))
    unset = False if a.drop_pad_mode else np.arange(len(rows)) >= active
    has_scale = a.quant_mode >= 1 or (a.quant_mode == -1 and a.scale is not None)
    no_pairs = np.arange(len(counts)) > experts if a.expert_tokens_num_type == 2 else False
    nan = 0xFF if a.quant_mode in _IN_GROUPS else 0x80
    return (mark(rows, unset, nan=nan), mark(index, a.row_idx_type == 1 and np.arange(len(index)) >= active),
            mark(counts, no_pairs if a.expert_tokens_num_flag else True),
            mark(scales, unset if has_scale else True, nan=nan))


# ---- npu_moe_re_routing ----------------------------------------------------------------------------------------------


#: What tokens' bytes may be.
_BYTES = ("hifloat8", *FLOAT4)


def re_routing(a: Any) -> List[Made]:
    if a.tokens_dtype is None:
        _of("tokens", a.tokens, *FLOATS, "int8")
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


class ReRouting(NamedTuple):
    """Where npu_moe_re_routing() takes rows from."""

    a: Any
    source: np.ndarray  # the row of tokens that each comes from
    scales: np.ndarray  # and its scale
    row_index: np.ndarray  # permute_token_idx
    counts: np.ndarray

    def results(self) -> List[np.ndarray]:
        rows, scales, index, counts = (one.zeros() for one in re_routing(self.a))
        used = len(self.source)
        rows[:used], index[:used] = self.a.tokens.view(rows.dtype)[self.source], self.row_index
        if self.a.per_token_scales is not None:
            scales[:used] = self.a.per_token_scales[self.scales]
        counts[...] = self.counts
        return [rows, scales, index, counts]

    def some(self, rows: np.ndarray) -> np.ndarray:
        """Some rows of the first result."""
        return self.results()[0][rows]

    def note(self, result: int, index: Tuple[int, ...], note: Note) -> None:
        if result == 3:
            note("expert", "integer", index[0])
            return
        source = self.scales if result == 1 else self.source
        if index[0] < len(source):
            ends = np.cumsum(self.a.expert_token_num_per_rank.reshape(-1))
            block = np.searchsorted(ends, source[index[0]], side="right")
            note("row of tokens", "integer", source[index[0]])
            for step, number in zip(("rank", "expert"), divmod(int(block), self.a.expert_token_num_per_rank.shape[1])):
                note(step, "integer", number)


def re_route(a: Any, blocks: Optional[Callable[[List[Tuple[int, int, np.ndarray]]], List[Any]]] = None,
             counts: Optional[np.ndarray] = None) -> ReRouting:
    """The plan of a call. blocks: of the blocks of rows, each with its expert and rank, their order, if it is not the
    right one. counts: what the plan takes for the counts, if not the right ones."""
    given = a.expert_token_num_per_rank
    counts = given if counts is None else counts
    ends = np.cumsum(counts.reshape(-1)).reshape(counts.shape)
    found = [(expert, rank, np.arange(ends[rank, expert] - counts[rank, expert], ends[rank, expert]))
             for rank, expert in np.ndindex(*counts.shape)]
    found = sorted(found, key=lambda block: block[:2]) if blocks is None else blocks(found)
    source = np.concatenate([np.zeros(0, np.int64), *(rows for _, _, rows in found)])
    return ReRouting(a, source, source, source, given.sum(axis=0))


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
    re_routing(a)
    counts, argument = a.expert_token_num_per_rank, "expert_token_num_per_rank"
    _expect(not counts.size or counts.min() >= 0, argument, "has a negative number; expected 0 or more")
    used, rows = sum(counts.reshape(-1).tolist()), len(a.tokens)  # NumPy's sum has 64 bits
    _expect(used <= rows, argument, f"has the sum {used}; expected at most {rows}, which is tokens' rows")
    routing = re_route(a)
    keep("npu_moe_re_routing", routing)
    behind = np.arange(rows) >= used
    return tuple(mark(result, unset) for result, unset in zip(  # type: ignore[return-value]
        routing.results(), (behind, behind | (a.per_token_scales is None), behind, False)))


# ---- npu_moe_token_unpermute -----------------------------------------------------------------------------------------


def token_unpermute(a: Any) -> List[Made]:
    _of("permuted_tokens", a.permuted_tokens, *FLOATS)
    _shape("permuted_tokens", a.permuted_tokens, None, None)
    _of("sorted_indices", a.sorted_indices, "int32")
    _shape("sorted_indices", a.sorted_indices, None)
    _expect(not a.padded_mode, "padded_mode", "is True; expected False")
    count = a.sorted_indices.shape[0]
    if a.probs is None:
        n = count
    else:
        _of("probs", a.probs, *FLOATS)
        _shape("probs", a.probs, None, None)
        n, k = a.probs.shape
        _expect(k <= 512, "probs", f"has {k} columns; expected at most 512")
        _expect(n * k == count, "sorted_indices", f"has {count} elements; expected {n * k}, as probs has")
    return [Made((n, a.permuted_tokens.shape[1]), _type_of(a.permuted_tokens))]


class Sums(NamedTuple):
    """The sums of tokens' rows, slot by slot."""

    rows: np.ndarray  # [P, H]
    indices: np.ndarray  # [n, k]: the rows of the slots; others are no rows, and add nothing
    weights: Optional[np.ndarray]  # [n, k]
    skips_zero: bool = False  # a weight of 0 adds nothing
    is_by_slot: bool = False  # the indices lie as [k, n]
    sum_type: str = "float32"  # to which each sum is rounded
    product_type: str = "float32"
    skips: Tuple[np.ndarray, ...] = ()  # one or two, which the slots are added to
    bias: Optional[np.ndarray] = None  # [E, H]
    experts: Optional[np.ndarray] = None  # [n, k]
    bias_is_last: bool = False  # is added after the product
    skips_are_last: bool = False
    way: str = "slot by slot"  # or "pairwise" or "fused"

    def is_row(self) -> np.ndarray:
        return (self.indices >= 0) & (self.indices < len(self.rows))

    def adds(self) -> bool:
        """Whether there is a sum."""
        return self.indices.shape[1] > 1 or len(self.skips) > 0

    @exactly
    def results(self, note: Note = _unseen) -> List[np.ndarray]:
        is_taken = self.is_row()
        if self.skips_zero and self.weights is not None:
            is_taken &= to_float(self.weights) != 0
        total = np.zeros((len(self.indices), self.rows.shape[1]), np.float32)
        skips = [to_float(skip) for skip in self.skips]
        skipped = total
        if skips:
            skipped = _rounded(skips[0] + (skips[1] if len(skips) > 1 else np.float32(0)), self.sum_type)
        for i, skip in enumerate(skips):
            note(f"skip{i + 1}", "float", skip)
        is_set = len(skips) > 0 and not self.skips_are_last
        total = skipped if is_set else total
        parts: List[np.ndarray] = []
        for slot in range(self.indices.shape[1]):
            taken = np.flatnonzero(is_taken[:, slot])
            note(f"slot {slot}: row", "integer", self.indices[:1, slot])
            values = self._values(slot, taken, note if len(taken) else _unseen)
            if self.way == "pairwise":
                parts.append(np.zeros_like(total))
                parts[-1][taken] = values
            elif slot == 0 and not is_set:
                total[taken] = values
            elif self.way == "fused":
                total[taken] = _odd_sum(total[taken], values)
            else:
                total[taken] = _rounded(total[taken] + values, self.sum_type)
            note(f"slot {slot}: sum", "float", total)
        while len(parts) > 1:
            last = parts[len(parts) // 2 * 2:]
            parts = [_rounded(a + b, self.sum_type) for a, b in zip(parts[::2], parts[1::2])] + last
        for part in parts:
            total = _rounded(skipped + part, self.sum_type) if is_set else part
        if self.skips and self.skips_are_last:
            total = _rounded(total + skipped, self.sum_type)
        return [from_float(total, _type_of(self.rows))]

    def _of(self, tokens: np.ndarray) -> Sums:
        """The sums of some tokens."""
        weights, experts = (None if each is None else each[tokens] for each in (self.weights, self.experts))
        return self._replace(indices=self.indices[tokens], weights=weights, experts=experts,
                             skips=tuple(skip[tokens] for skip in self.skips))

    def some(self, rows: np.ndarray) -> np.ndarray:
        """Some rows of the result."""
        return self._of(rows).results()[0]

    def _values(self, slot: int, taken: np.ndarray, note: Note) -> np.ndarray:
        """What a slot adds to the tokens that take it."""
        values = to_float(self.rows[self.indices[taken, slot]])
        note(f"slot {slot}: value", "float", values)
        bias = None
        if self.bias is not None and self.experts is not None:
            expert = self.experts[taken, slot]
            bias = to_float(self.bias[expert])
            note(f"slot {slot}: expert", "integer", expert)
            note(f"slot {slot}: bias", "float", bias)
            values = values if self.bias_is_last else _rounded(values + bias, self.sum_type)
        if self.weights is not None:
            weight = to_float(self.weights)[taken, slot, None]
            note(f"slot {slot}: weight", "float", weight)
            if self.way == "fused":
                return values.astype(np.float64) * weight
            values = _rounded(values * weight, self.product_type)
            note(f"slot {slot}: product", "float", values)
        return _rounded(values + bias, self.sum_type) if self.bias_is_last and bias is not None else values

    def note(self, result: int, index: Tuple[int, ...], note: Note) -> None:
        """The steps of an element."""
        column = slice(index[1], index[1] + 1)
        note("token", "integer", index[0])
        one = self._of(np.array(index[:1]))
        one._replace(rows=one.rows[:, column], skips=tuple(skip[:, column] for skip in one.skips),
                     bias=None if one.bias is None else one.bias[:, column]).results(note)


def _rounded(values: np.ndarray, kind: str) -> np.ndarray:
    """float32 values of a type."""
    return values if kind == "float32" else to_float(from_float(values, kind))


def _odd_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sum of float32 and a product of two, rounded once: float64 rounds to odd before."""
    wide = a.astype(np.float64)
    total = wide + b
    low = total - wide
    rest = (wide - (total - low)) + (b - low)
    is_even = (total.view(np.int64) & 1) == 0
    total = np.where(is_even & (rest != 0) & np.isfinite(total),
                     np.nextafter(total, np.where(rest > 0, np.inf, -np.inf)), total)
    return total.astype(np.float32)


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
    sums = Sums(a.permuted_tokens, indices, a.probs, skips_zero=True)
    keep("npu_moe_token_unpermute", sums)
    return sums.results()[0]


# ---- npu_moe_finalize_routing ----------------------------------------------------------------------------------------


def finalize_routing(a: Any) -> List[Made]:
    rows, kind = a.expanded_permuted_rows, _type_of(a.expanded_permuted_rows)
    _one_of("drop_pad_mode", a.drop_pad_mode, 0, 1, 2, 3)
    _of("expanded_permuted_rows", rows, *FLOATS)
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
    # A step of float16 is rounded to float16, as on the device. bfloat16 is rounded once, at the end.
    step = "float16" if rows.dtype == np.float16 else "float32"
    skips = tuple(skip for skip in (a.skip1, a.skip2) if skip is not None)
    sums = Sums(rows, indices, a.scales, False, a.drop_pad_mode < 2, step, step, skips, a.bias, a.export_for_source_row)
    keep("npu_moe_finalize_routing", sums)
    return sums.results()[0]
