# SPDX-License-Identifier: BSD-3-Clause
"""diagnose() and explain() for the operators of a mixture of experts, which are computed in Python.

A hypothesis changes the operator's own call, Routing or Sums for example: what it moves, or how it adds. The results of
the changed call are those of a kernel with the mistake.
"""
from __future__ import annotations

import math
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from npuquant_facts.operators import OPTIONS

from .. import _native
from .._arguments import _type_of
from .._operators import row_quant
from .._serving.experts import (ReRouting, Routing, Sums, _count_tokens, experts_of, npu_moe_finalize_routing,
                                npu_moe_init_routing_v2, npu_moe_re_routing, npu_moe_token_unpermute, re_route, route)
from .._serving.grouped import Grouped, is_stacked, npu_grouped_matmul, plan
from .._tensors import from_float, to_float
from .._threads import get_num_threads, keeping
from .remainder import Matrix, bits_of, constant_lines, float_orders, lines_of, moved_lines, values_of

__tracebackhide__ = True  # pytest shows the line that calls the package

#: The numbers of docs/verdicts.md, in bits, and how often a device moves a quotient: docs/device.md.
RARE, USUAL, COMMON, _PROOF, _RARE, _NEWLY_WRONG, _MOST_OF_VALUE, _MOVED = itemgetter(
    "RARE", "USUAL", "COMMON", "proof", "rare", "newly_wrong", "value", "moved")(_native.weights())
_MOST_LEFT = 0.25
_MOST_FINDINGS = 10
_LOOKED_AT = 1024
#: In very large dumps, elements at most that are evidence.
_MOST_WEIGHED = 2**18
#: Rows at most, of those that differ and of the others, that a hypothesis has to give first.
_SAMPLED = 8


#: Of a call, and perhaps the dump's results: the changed call, or None if the call cannot have the mistake.
_Change = Callable[..., Any]


class Found(NamedTuple):
    """A call that is read off the dump in part."""

    call: Any
    bits: float  # that it takes to say what is read
    what: str


class Cause(NamedTuple):
    """A hypothesis, and how often kernels have the mistake."""

    name: str
    commonness: int
    what: str
    advice: str
    change: _Change
    reads_dump: bool
    is_place: bool  # takes something from elsewhere: then each row tells something

    def facts(self, what: Optional[str] = None) -> Dict[str, str]:
        return {"name": self.name, "what": what or self.what, "advice": self.advice}


#: By the function's name: the function that these hypotheses are for, the names of its results, and the hypotheses.
FUNCTIONS: Dict[str, Callable[..., Any]] = {}
_RESULTS: Dict[str, Tuple[str, ...]] = {}
_CAUSES: Dict[str, List[Cause]] = {}


def _causes(results: Sequence[str], *functions: Callable[..., Any]) -> Callable[..., Callable[[_Change], _Change]]:
    """Declares the results of functions; returns what declares a hypothesis of all of them, above the function that
    makes the changed call."""
    for function in functions:
        FUNCTIONS[function.__name__] = function
        _RESULTS[function.__name__] = tuple(results)
        _CAUSES.setdefault(function.__name__, [])

    def declare(name: str, commonness: int, what: str, advice: str,
                is_place: bool = True) -> Callable[[_Change], _Change]:
        def add(change: _Change) -> _Change:
            cause = Cause(name, commonness, what, advice, change, change.__code__.co_argcount > 1, is_place)
            for function in functions:
                _CAUSES[function.__name__].append(cause)
            return change
        return add

    return declare


def causes_of(function: str) -> List[Dict[str, str]]:
    return [cause.facts() for cause in _CAUSES[function]]


# ---- sums of a token's rows ------------------------------------------------------------------------------------------

_unpermuted = _causes(["y"], npu_moe_token_unpermute)
_finalized = _causes(["y"], npu_moe_finalize_routing)
_sums = _causes(["y"], npu_moe_token_unpermute, npu_moe_finalize_routing)


def _reordered(s: Sums, order: np.ndarray) -> Sums:
    """The slots of each token in another order."""
    def by_slot(array: Optional[np.ndarray]) -> Any:
        return None if array is None else np.take_along_axis(array, order, axis=1)

    return s._replace(indices=by_slot(s.indices), weights=by_slot(s.weights), experts=by_slot(s.experts))


def _turned(array: np.ndarray, is_by_slot: bool) -> np.ndarray:
    """[n, k] whose memory was read as [k, n], or the other way round."""
    n, k = array.shape
    return array.T.reshape(n, k) if is_by_slot else array.reshape(k, n).T


def _is_wide(s: Sums) -> bool:
    """Whether there are several slots of several tokens."""
    return min(s.indices.shape) > 1


def _step(type_of_sum: bool, type_of_product: bool, name: str, what: str, commonness: int) -> None:
    @_sums(name, commonness, what, "Add in float32, and round once at the end.", is_place=False)
    def change(s: Sums) -> Optional[Sums]:
        kind = _type_of(s.rows)
        if s.sum_type == kind or (type_of_product and s.weights is None) or (not type_of_product and not s.adds()):
            return None
        return s._replace(sum_type=kind if type_of_sum else s.sum_type,
                          product_type=kind if type_of_product else s.product_type)


_step(True, True, "steps-rounded", "rounds each product and each sum to the type of the rows", COMMON)
_step(True, False, "sums-rounded", "rounds each sum to the type of the rows", COMMON)
_step(False, True, "products-rounded", "rounds each product to the type of the rows, and adds in float32", COMMON)


@_finalized("steps-float32", COMMON, "computes in float32 and rounds once at the end, as npu_moe_token_unpermute does",
       "Round each product and each sum to float16, as the device does.", is_place=False)
def _steps_float32(s: Sums) -> Optional[Sums]:
    return s._replace(sum_type="float32", product_type="float32") if s.sum_type != "float32" else None


@_finalized("sums-float32", USUAL, "rounds each product to float16, but adds in float32",
            "Round each sum to float16, as the device does.", is_place=False)
def _sums_float32(s: Sums) -> Optional[Sums]:
    return s._replace(sum_type="float32") if s.sum_type != "float32" and s.weights is not None else None


@_sums("fused", USUAL, "rounds product and sum once, as a fused multiply-add does",
       "Compile with -ffp-contract=off, or use a multiply and an add that the compiler cannot join.", is_place=False)
def _fused(s: Sums) -> Optional[Sums]:
    return s._replace(way="fused") if s.weights is not None and s.sum_type == "float32" and s.adds() else None


@_sums("slots-reversed", USUAL, "adds the slots of a token from the last to the first", "Add them from the first on: "
       "sums of floats depend on the order.", is_place=False)
def _slots_reversed(s: Sums) -> Optional[Sums]:
    k = s.indices.shape[1]
    return _reordered(s, np.tile(np.arange(k)[::-1], (len(s.indices), 1))) if k > 1 else None


@_sums("slots-by-row", USUAL, "adds the slots of a token in the order of their rows, as a loop over experts does",
       "Add them from the first slot on: sums of floats depend on the order.", is_place=False)
def _slots_by_row(s: Sums) -> Optional[Sums]:
    return _reordered(s, np.argsort(s.indices, axis=1, kind="stable")) if s.indices.shape[1] > 1 else None


@_sums("pairwise", USUAL, "adds pairs of slots, and then pairs of these sums",
       "Add the slots one after the other: sums of floats depend on the order.", is_place=False)
def _pairwise(s: Sums) -> Optional[Sums]:
    return s._replace(way="pairwise") if s.indices.shape[1] > 2 else None


@_sums("weights-left-out", COMMON, "does not multiply by the weights", "Multiply each row by its slot's weight.", False)
def _weights_left_out(s: Sums) -> Optional[Sums]:
    return s._replace(weights=None) if s.weights is not None else None


def _weights_as(kind: str) -> None:
    @_sums(f"weights-{kind}", COMMON, f"rounds the weights to {kind}", "Take the weights as they are given.", False)
    def change(s: Sums) -> Optional[Sums]:
        if s.weights is None or _type_of(s.weights) == kind:
            return None
        return s._replace(weights=to_float(from_float(to_float(s.weights), kind)))


_weights_as("bfloat16")
_weights_as("float16")


@_sums("weights-by-row", COMMON, "takes the weight at the place of the row, not of the slot",
       "The weights lie by token and slot: permute them as the rows, or take them by slot.")
def _weights_by_row(s: Sums) -> Optional[Sums]:
    if s.weights is None:
        return None
    return s._replace(weights=s.weights.reshape(-1)[np.clip(s.indices, 0, max(s.weights.size - 1, 0))])


@_sums("weights-by-slot", USUAL, "reads the weight of slot j of token t at j * n + t, as if the slots came first",
       "The weights are [n, k], by token.")
def _weights_by_slot(s: Sums) -> Optional[Sums]:
    return s._replace(weights=_turned(s.weights, False)) if s.weights is not None and _is_wide(s) else None


def _weights_of(name: str, by: int, which: str) -> None:
    @_sums(name, USUAL, f"takes the weights of the token {which}", "Check where the weights of a token begin.")
    def change(s: Sums) -> Optional[Sums]:
        if s.weights is None or len(s.weights) < 2:
            return None
        return s._replace(weights=np.roll(s.weights, by, axis=0))


_weights_of("weights-of-token-before", 1, "before")
_weights_of("weights-of-token-behind", -1, "behind")


@_sums("index-inverse", COMMON, "takes the index for its inverse: it scatters where the operator gathers",
       "The index has the row of each slot, not the slot of each row.")
def _index_inverse(s: Sums) -> Optional[Sums]:
    flat = (s.indices.T if s.is_by_slot else s.indices).reshape(-1)
    if len(flat) != len(s.rows) or (np.sort(flat) != np.arange(len(flat))).any():
        return None
    inverse = np.argsort(flat).astype(flat.dtype)
    n, k = s.indices.shape
    return s._replace(indices=inverse.reshape(k, n).T if s.is_by_slot else inverse.reshape(n, k))


@_sums("index-turned", COMMON, "reads the index as [n, k] where it is [k, n], or the other way round",
       "Slot j of token t is at j * n + t with the drop_pad_mode 0 and 1 of finalize_routing, and else at t * k + j.")
def _index_turned(s: Sums) -> Optional[Sums]:
    return s._replace(indices=_turned(s.indices, s.is_by_slot)) if _is_wide(s) else None


def _index_off(name: str, by: int, what: str) -> None:
    @_sums(name, USUAL, f"takes the row {what} the one that the index says", "The index counts rows from 0 on.")
    def change(s: Sums) -> Optional[Sums]:
        if len(s.rows) < 2:
            return None
        return s._replace(indices=np.where(s.is_row(), np.clip(s.indices + by, 0, len(s.rows) - 1), s.indices))


_index_off("index-one-less", -1, "before")
_index_off("index-one-more", 1, "behind")


def _dropped(s: Sums, row: int) -> Optional[Sums]:
    """Slots without a row take this one."""
    if s.is_row().all() or not len(s.rows):
        return None
    return s._replace(indices=np.where(s.is_row(), s.indices, row % len(s.rows)))


@_sums("dropped-last", COMMON, "takes the last row for a slot that was dropped, as -1 does in Python",
       "Skip slots whose index is no row.")
def _dropped_last(s: Sums) -> Optional[Sums]:
    return _dropped(s, -1)


@_sums("dropped-first", USUAL, "takes the first row for a slot that was dropped", "Skip slots whose index is no row.")
def _dropped_first(s: Sums) -> Optional[Sums]:
    return _dropped(s, 0)


@_finalized("dropped-bias", COMMON, "adds the bias for a slot that was dropped, too", "Such a slot adds nothing.")
def _dropped_bias(s: Sums) -> Optional[Sums]:
    if s.bias is None or s.is_row().all():
        return None
    rows = np.concatenate([s.rows, np.zeros_like(s.rows, shape=(1, s.rows.shape[1]))])
    return s._replace(rows=rows, indices=np.where(s.is_row(), s.indices, len(s.rows)))


@_unpermuted("zero-weight-added", RARE, "adds the product with a weight of 0, which is NaN for infinite rows",
       "Skip slots with the weight 0.", False)
def _zero_weight_added(s: Sums) -> Optional[Sums]:
    return s._replace(skips_zero=False) if s.weights is not None and (to_float(s.weights) == 0).any() else None


@_finalized("bias-after-weight", COMMON, "multiplies by the weight first, and then adds the bias",
       "Add the bias to the row, and multiply their sum.", False)
def _bias_after_weight(s: Sums) -> Optional[Sums]:
    return s._replace(bias_is_last=True) if s.bias is not None and s.weights is not None else None


@_finalized("bias-left-out", COMMON, "does not add the bias", "Add the bias of the slot's expert to each row.", False)
def _bias_left_out(s: Sums) -> Optional[Sums]:
    return s._replace(bias=None) if s.bias is not None else None


@_finalized("experts-by-slot", USUAL, "reads the expert of slot j of token t at j * n + t, as if the slots came first",
       "export_for_source_row is [n, k], by token.")
def _experts_by_slot(s: Sums) -> Optional[Sums]:
    is_read = s.bias is not None and s.experts is not None and _is_wide(s)
    return s._replace(experts=_turned(s.experts, False)) if is_read else None  # type: ignore[arg-type]


def _bias_of(name: str, by: int, which: str) -> None:
    @_finalized(name, USUAL, f"takes the bias of the expert {which}", "Check where the bias of an expert begins.")
    def change(s: Sums) -> Optional[Sums]:
        return s._replace(bias=np.roll(s.bias, by, axis=0)) if s.bias is not None and len(s.bias) > 1 else None


_bias_of("bias-of-expert-before", 1, "before")
_bias_of("bias-of-expert-behind", -1, "behind")


@_finalized("skips-last", USUAL, "adds what skips the experts behind the last slot",
            "Begin with skip1 + skip2: sums of floats depend on the order.", False)
def _skips_last(s: Sums) -> Optional[Sums]:
    return s._replace(skips_are_last=True) if s.skips else None


@_finalized("skips-left-out", USUAL, "does not add what skips the experts", "Begin with skip1 + skip2.", False)
def _skips_left_out(s: Sums) -> Optional[Sums]:
    return s._replace(skips=()) if s.skips else None


@_finalized("skip2-left-out", USUAL, "adds skip1 alone", "Begin with skip1 + skip2.", False)
def _skip2_left_out(s: Sums) -> Optional[Sums]:
    return s._replace(skips=s.skips[:1]) if len(s.skips) > 1 else None


# ---- routing ---------------------------------------------------------------------------------------------------------

_routing = _causes(["expanded_x", "expanded_row_idx", "expert_tokens", "expanded_scale"], npu_moe_init_routing_v2)


def _ids(r: Routing) -> Tuple[np.ndarray, np.ndarray]:
    """The expert of each position, and the positions."""
    ids = r.a.expert_idx.reshape(-1)
    return ids, np.arange(len(ids))


def _with_counts(r: Routing, other: Routing) -> Routing:
    """Another plan, with the counts that are right."""
    return other._replace(counts=r.counts)


@_routing("equal-last-first", COMMON, "takes the positions of an expert from the last to the first",
          "Positions of one expert stay in order: sort with a stable sort.")
def _equal_last_first(r: Routing) -> Routing:
    ids, positions = _ids(r)
    return route(r.a, np.lexsort((-positions, ids)))


@_routing("equal-by-slot", COMMON, "takes the positions of an expert by slot first, and then by token",
          "Positions are t * k + j for slot j of token t.")
def _equal_by_slot(r: Routing) -> Optional[Routing]:
    ids, positions = _ids(r)
    k = r.a.expert_idx.shape[1]
    return route(r.a, np.lexsort((positions // k, positions % k, ids))) if min(r.a.expert_idx.shape) > 1 else None


@_routing("equal-in-any-order", COMMON, "takes the positions of an expert in another order, as an unstable sort does",
          "Positions of one expert stay in order: sort with a stable sort.")
def _equal_in_any_order(r: Routing, theirs: Sequence[Optional[np.ndarray]]) -> Optional[Found]:
    ids, positions = _ids(r)
    index = theirs[1]
    if index is None:
        return None
    key = np.full(len(ids), len(ids), np.int64)  # where each position is; those that are nowhere come last
    if r.a.row_idx_type:
        found = index[:len(r.order)]
        found = np.where((found >= 0) & (found < len(ids)), found, 0)
        key[found] = np.arange(len(found))
    else:
        key = np.where(index < 0, np.iinfo(np.int32).max, index)
    other = route(r.a, np.lexsort((positions, key, ids)))
    if (other.order == r.order).all():
        return None
    return Found(other, sum(math.lgamma(n + 1) for n in np.bincount(r.groups)) / math.log(2), "")


@_routing("experts-descending", USUAL, "sorts the experts from the last to the first", "Sort by rising expert.")
def _experts_descending(r: Routing) -> Optional[Routing]:
    ids, positions = _ids(r)
    return _with_counts(r, route(r.a, np.lexsort((positions, -ids)))) if not r.a.drop_pad_mode else None


@_routing("unsorted", USUAL, "leaves the positions in their order", "Sort the positions by expert.")
def _unsorted(r: Routing) -> Optional[Routing]:
    return None if r.a.drop_pad_mode else route(r.a, _ids(r)[1])


@_routing("token-modulo", COMMON, "takes the row of token p % n for position p, as if the slots came first",
          "The token of position p is p / k, rounded down.")
def _token_modulo(r: Routing) -> Optional[Routing]:
    if min(r.a.expert_idx.shape) < 2:
        return None
    tokens = r.order % len(r.a.x)
    return r._replace(tokens=tokens, scales=tokens if r.a.quant_mode == -1 else r.scales)


def _capacity(name: str, commonness: int, what: str, advice: str, slots: Callable[..., np.ndarray]) -> None:
    @_routing(name, commonness, what, advice)
    def change(r: Routing) -> Optional[Routing]:
        if not r.a.drop_pad_mode:
            return None
        return route(r.a, slots_kept=lambda slot, count: slots(slot, count, r.a.expert_capacity))


_capacity("capacity-one-less", USUAL, "drops the last row that an expert may have",
          "An expert has expert_capacity rows.", lambda slot, count, most: np.where(slot < most - 1, slot, -1))
_capacity("capacity-one-more", USUAL, "keeps a row more than an expert may have, in the first row of the next",
          "An expert has expert_capacity rows.", lambda slot, count, most: np.where(slot <= most, slot, -1))
_capacity("capacity-unchecked", COMMON, "drops no rows: those that are too many lie in the rows of the next experts",
          "Drop the rows of an expert from expert_capacity on.", lambda slot, count, most: slot)
_capacity("capacity-first-dropped", COMMON, "drops the first rows of an expert, not the last",
          "Keep the first expert_capacity rows.", lambda slot, count, most: slot - np.maximum(count - most, 0))


@_routing("dropped-numbered", COMMON, "gives the row in expanded_row_idx that a dropped position would have",
          "expanded_row_idx has -1 for it.")
def _dropped_numbered(r: Routing) -> Optional[Routing]:
    if not r.a.drop_pad_mode:
        return None
    return r._replace(row_index=route(r.a, slots_kept=lambda slot, count: slot).row_index)


@_routing("dropped-zero", COMMON, "leaves 0 in expanded_row_idx where a position has no row",
          "expanded_row_idx has -1 for it.")
def _dropped_zero(r: Routing) -> Optional[Routing]:
    return r._replace(row_index=np.maximum(r.row_index, 0)) if (r.row_index < 0).any() else None


@_routing("index-inverse", COMMON, "returns the position of each row where the row of each position is wanted, or the "
          "other way round", "row_idx_type 0 means the row of each position, and 1 the position of each row.")
def _index_inverted(r: Routing) -> Optional[Routing]:
    if r.a.drop_pad_mode:
        return None
    return r._replace(row_index=route(SimpleNamespace(**{**vars(r.a), "row_idx_type": 1 - r.a.row_idx_type})).row_index)


@_routing("index-by-slot", USUAL, "has slot j of token t at j * n + t in expanded_row_idx", "Its place is t * k + j.")
def _index_by_slot(r: Routing) -> Optional[Routing]:
    n, k = r.a.expert_idx.shape
    is_read = min(n, k) > 1 and not r.a.row_idx_type
    return r._replace(row_index=r.row_index.reshape(n, k).T.reshape(-1)) if is_read else None


@_routing("index-of-tokens", USUAL, "has the token of each row in expanded_row_idx, not its position",
          "The position is t * k + j for slot j of token t.")
def _index_of_tokens(r: Routing) -> Optional[Routing]:
    k = r.a.expert_idx.shape[1]
    return r._replace(row_index=r.row_index // k) if r.a.row_idx_type and k > 1 else None


def _counts(r: Routing, **arguments: Any) -> Routing:
    """expert_tokens as another call has them."""
    a = SimpleNamespace(**{**vars(r.a), **arguments})
    counts = np.bincount(r.groups, minlength=len(r.counts))
    made = SimpleNamespace(zeros=lambda: np.zeros_like(r.counts))
    return r._replace(counts=_count_tokens(a, made, counts, experts_of(a)[0]))  # type: ignore[arg-type]


def _has_counts(r: Routing, kind: int) -> bool:
    return r.a.expert_tokens_num_flag and r.a.expert_tokens_num_type == kind


@_routing("ends-for-counts", COMMON, "returns the ends of the experts' rows where the counts are wanted",
          "expert_tokens_num_type 1 means counts, and 0 ends.")
def _ends_for_counts(r: Routing) -> Optional[Routing]:
    return _counts(r, expert_tokens_num_type=0) if _has_counts(r, 1) else None


@_routing("counts-for-ends", COMMON, "returns the counts of the experts' rows where the ends are wanted",
          "expert_tokens_num_type 0 means ends, and 1 counts.")
def _counts_for_ends(r: Routing) -> Optional[Routing]:
    return _counts(r, expert_tokens_num_type=1) if _has_counts(r, 0) else None


@_routing("begins-for-ends", USUAL, "returns the first row of each expert where the row behind its last is wanted",
          "An expert's own rows belong to its sum.")
def _begins_for_ends(r: Routing) -> Optional[Routing]:
    return r._replace(counts=np.append(0, r.counts[:-1])) if _has_counts(r, 0) else None


@_routing("ends-of-all", USUAL, "counts the rows of experts before the first active one, too",
          "The sums begin with the first active expert.")
def _ends_of_all(r: Routing) -> Optional[Routing]:
    before = np.count_nonzero(_ids(r)[0] < experts_of(r.a)[0])
    return r._replace(counts=r.counts + before) if before and _has_counts(r, 0) else None


@_routing("counts-of-kept", COMMON, "counts only the rows that are kept", "expert_tokens counts dropped rows, too.")
def _counts_of_kept(r: Routing) -> Optional[Routing]:
    kept = r.a.drop_pad_mode and r.a.expert_tokens_num_flag
    return r._replace(counts=np.minimum(r.counts, r.a.expert_capacity)) if kept else None


@_routing("pairs-from-zero", USUAL, "numbers the experts of expert_tokens from the first active one on",
          "The pairs have the experts' own numbers.")
def _pairs_from_zero(r: Routing) -> Optional[Routing]:
    first, end = experts_of(r.a)
    is_shifted = first > 0 and _has_counts(r, 2)
    return _counts(r, active_expert_range=[0, end - first]) if is_shifted else None


def _scale_of(name: str, commonness: int, which: str, groups: Callable[[np.ndarray, int, int], np.ndarray]) -> None:
    @_routing(name, commonness, f"takes the scale of {which}",
              "Row e of scale belongs to the expert e of those that are active.")
    def change(r: Routing) -> Optional[Routing]:
        if r.a.quant_mode != 1 or r.a.scale is None or len(r.a.scale) < 2:
            return None
        return r._replace(scales=groups(r.groups, len(r.a.scale), experts_of(r.a)[0]))


_scale_of("scale-of-expert-before", USUAL, "the expert before", lambda groups, count, first: (groups - 1) % count)
_scale_of("scale-of-expert-behind", USUAL, "the expert behind", lambda groups, count, first: (groups + 1) % count)
_scale_of("scale-of-first-expert", COMMON, "the first expert for all", lambda groups, count, first: groups * 0)
_scale_of("scale-by-number", USUAL, "the expert's own number, which is beyond the active ones",
          lambda groups, count, first: np.minimum(groups + first, count - 1))


@_routing("scale-left-out", COMMON, "does not multiply by scale",
          "Multiply x by scale before the row is quantised.", False)
def _scale_left_out(r: Routing) -> Optional[Routing]:
    if r.a.quant_mode != 1 or r.a.scale is None:
        return None
    return r._replace(a=SimpleNamespace(**{**vars(r.a), "scale": None}))


@_routing("scale-unmoved", COMMON, "leaves the scales in the order of the tokens",
          "Each row has the scale of its token.")
def _scale_unmoved(r: Routing) -> Optional[Routing]:
    if r.a.quant_mode != -1 or r.a.scale is None:
        return None
    return r._replace(scales=np.maximum(r.places, 0) % max(len(r.a.scale), 1))


def _rule(facts: Dict[str, str]) -> None:
    """A rule of row_quant() that the operator may not follow."""
    @_routing(facts["name"], USUAL, facts["what"], facts["advice"], False)
    def change(r: Routing) -> Optional[Routing]:
        rule = facts["name"].replace("-", "_")
        return r._replace(rule=rule) if r.rule not in ("", rule) else None


for _facts, _operators in _native.hypotheses():
    if "row_quant" in _operators and _facts["name"].replace("-", "_") in OPTIONS["rule"].numbers:
        _rule(_facts)


# ---- re-routing ------------------------------------------------------------------------------------------------------

_re_routing = _causes(["tokens", "scales", "permute_token_idx", "counts"], npu_moe_re_routing)


def _blocks(name: str, commonness: int, what: str, advice: str, blocks: Callable[[List[Any]], List[Any]]) -> None:
    @_re_routing(name, commonness, what, advice)
    def change(r: ReRouting) -> Optional[ReRouting]:
        return re_route(r.a, blocks)


_blocks("unsorted", COMMON, "leaves the rows in the order of ranks", "Rows come by rank, and go by expert.",
        lambda blocks: blocks)
_blocks("ranks-descending", USUAL, "takes the ranks of an expert from the last to the first",
        "Ranks of an expert rise.", lambda blocks: sorted(blocks, key=lambda block: (block[0], -block[1])))
_blocks("experts-descending", USUAL, "takes the experts from the last to the first", "Experts rise.",
        lambda blocks: sorted(blocks, key=lambda block: (-block[0], block[1])))
_blocks("equal-last-first", COMMON, "takes the rows of one rank and expert from the last to the first",
        "They stay in order: sort with a stable sort.",
        lambda blocks: [(*block[:2], block[2][::-1]) for block in sorted(blocks, key=lambda block: block[:2])])


@_re_routing("counts-turned", COMMON, "reads the counts by expert and rank where they lie by rank and expert",
             "expert_token_num_per_rank is [ranks, experts].")
def _counts_turned(r: ReRouting) -> Optional[ReRouting]:
    counts = r.a.expert_token_num_per_rank
    return re_route(r.a, counts=counts.reshape(counts.shape[::-1]).T) if min(counts.shape) > 1 else None


@_re_routing("index-inverse", COMMON, "returns where each row goes, not where it comes from",
             "permute_token_idx has the row of tokens that each row comes from.")
def _source_inverse(r: ReRouting) -> ReRouting:
    return r._replace(row_index=np.argsort(r.source))


@_re_routing("scales-unmoved", COMMON, "leaves the scales where they are", "A scale goes with its row.")
def _scales_unmoved(r: ReRouting) -> Optional[ReRouting]:
    return r._replace(scales=np.arange(len(r.source))) if r.a.per_token_scales is not None else None


@_re_routing("ends-for-counts", COMMON, "returns the ends of the experts' rows", "The last result has counts.")
def _ends_of_experts(r: ReRouting) -> ReRouting:
    return r._replace(counts=np.cumsum(r.counts))


@_re_routing("counts-of-ranks", COMMON, "returns the counts of the ranks",
             "Sum the counts of an expert over the ranks.")
def _counts_of_ranks(r: ReRouting) -> Optional[ReRouting]:
    counts = r.a.expert_token_num_per_rank
    return r._replace(counts=counts.sum(axis=1)) if counts.shape[0] == counts.shape[1] > 1 else None


# ---- grouped products ------------------------------------------------------------------------------------------------

_grouped = _causes(["y"], npu_grouped_matmul)
#: Products that are tried at most to find out whose weights a group has.
_MOST_PRODUCTS = 4096
_FIRST_COLUMNS = slice(0, 64)


def _numbers(g: Grouped, kind: int) -> Optional[np.ndarray]:
    """The group_list of one result, if it is of this kind."""
    is_older = isinstance(g.a.group_list, (list, tuple))
    if g.a.split_item not in (2, 3) or len(g.a.x) != 1 or g.a.group_list is None:
        return None
    return np.asarray(g.a.group_list, np.int64) if kind == (0 if is_older else g.a.group_list_type) else None


def _regrouped(g: Grouped, experts: Iterable[int], begins: Iterable[int], ends: Iterable[int]) -> Grouped:
    """The products of other groups, as far as there are rows and experts."""
    rows, count = len(g.a.x[0]), g.a.weight[0].shape[0] if is_stacked(g.a) else len(g.a.weight)
    cut = [(int(expert), max(int(begin), 0), min(int(end), rows)) for expert, begin, end in zip(experts, begins, ends)]
    return plan(g.a, g.made, [each for each in cut if each[1] < each[2] and 0 <= each[0] < count])


def _read_as(name: str, commonness: int, kind: int, bounds: Callable[[np.ndarray, int], Tuple[Any, Any]], what: str,
             advice: str) -> None:
    """bounds: of the numbers of group_list, and the count of rows, where the groups begin and end."""
    @_grouped(name, commonness, what, advice)
    def change(g: Grouped) -> Optional[Grouped]:
        numbers = _numbers(g, kind)
        return None if numbers is None else _regrouped(g, range(len(numbers)), *bounds(numbers, len(g.a.x[0])))


_read_as("ends-for-counts", COMMON, 1, lambda n, rows: (np.append(0, n[:-1]), n),
         "reads the counts of group_list as the rows behind the last of each expert",
         "group_list_type 1 means counts, and 0 ends.")
_read_as("counts-for-ends", COMMON, 0, lambda n, rows: (np.cumsum(n) - n, np.cumsum(n)),
         "reads the ends of group_list as the counts of the experts' rows", "group_list_type 0 means ends, and 1 counts.")
_read_as("begins-for-ends", USUAL, 0, lambda n, rows: (n, np.append(n[1:], rows)),
         "reads group_list as the first row of each expert", "A group ends before the row that group_list has for it.")


@_grouped("pairs-by-place", COMMON, "takes the expert of the pair's place, not of its number",
          "A pair of group_list has the expert and its count.")
def _pairs_by_place(g: Grouped) -> Optional[Grouped]:
    if _numbers(g, 2) is None:
        return None
    begins = [part.begin for part in g.parts]
    return _regrouped(g, range(len(begins)), begins, [part.begin + len(part.rows) for part in g.parts])


@_grouped("empty-skipped", COMMON, "counts only experts with rows: those behind an empty one get another's weight",
          "An expert without rows has its weight, too.")
def _empty_skipped(g: Grouped) -> Optional[Grouped]:
    if not g.parts or g.a.group_list is None or g.parts[-1].weight == len(g.parts) - 1:
        return None
    return g._replace(parts=[part._replace(weight=i, scale=i, bias=i) for i, part in enumerate(g.parts)])


def _shifted(name: str, by: int, what: str) -> None:
    @_grouped(name, USUAL, f"begins each group but the first one row {what}",
              "A group begins with the row behind the last of the one before.")
    def change(g: Grouped) -> Optional[Grouped]:
        if g.a.split_item not in (2, 3) or len(g.a.x) != 1 or len(g.parts) < 2:
            return None
        begins = [part.begin for part in g.parts] + [g.parts[-1].begin + len(g.parts[-1].rows)]
        moved = [begins[0], *(begin + by for begin in begins[1:-1]), begins[-1]]
        return _regrouped(g, [part.weight for part in g.parts], moved[:-1], moved[1:])


_shifted("group-late", 1, "late")
_shifted("group-early", -1, "early")


def _elsewhere(name: str, fields: Sequence[str], which: str) -> None:
    @_grouped(name, COMMON, f"takes {which} of another expert",
              "Check how the kernel finds an expert's weight, scale and bias.")
    def change(g: Grouped, theirs: Sequence[Optional[np.ndarray]]) -> Optional[Found]:
        count = g.a.weight[0].shape[0] if is_stacked(g.a) else len(g.a.weight)
        given = [field for field in fields if getattr(g.a, field)]
        if count < 2 or len(g.parts) * count > _MOST_PRODUCTS or not given or (len(fields) == 1 and not (
                g.a.scale or g.a.bias)):
            return None
        parts, moved = [], []
        for part in g.parts:
            dump = theirs[part.result]
            found = part
            if dump is not None and dump.ndim == 2 and len(part.rows):
                one = part._replace(rows=part.rows[:1], token_scales=part.token_scales if part.token_scales is None
                                    else part.token_scales[:1])
                wanted = dump[part.begin:part.begin + 1, _FIRST_COLUMNS]
                for expert in (part.weight, *range(count)):
                    other = one._replace(**dict.fromkeys(given, expert))
                    y = np.empty_like(wanted)
                    if all(g.of_expert(field, expert).shape == g.of_expert(field, part.weight).shape
                           for field in given):
                        g.multiply(other, y, _FIRST_COLUMNS)
                        if _is_same(y, wanted).all():
                            found = part._replace(**dict.fromkeys(given, expert))
                            moved += [(part.weight, expert)] * (expert != part.weight)
                            break
            parts.append(found)
        if not moved:
            return None
        more = ", and so on" if len(moved) > 1 else ""
        return Found(g._replace(parts=parts), len(moved) * math.log2(count * len(g.parts)),
                     f"takes {which} of expert {moved[0][1]} for the rows of expert {moved[0][0]}{more}")


_elsewhere("expert-elsewhere", ("weight", "scale", "bias"), "all")
_elsewhere("weight-elsewhere", ("weight",), "the weight")
_elsewhere("scale-elsewhere", ("scale",), "the scale")
_elsewhere("bias-elsewhere", ("bias",), "the bias")


def _token_scales(name: str, commonness: int, what: str, advice: str, scales: Callable[[np.ndarray, Any], Any]) -> None:
    @_grouped(name, commonness, what, advice)
    def change(g: Grouped) -> Optional[Grouped]:
        if not g.parts or any(part.token_scales is None for part in g.parts):
            return None
        given = g.a.per_token_scale[0]
        return g._replace(parts=[part._replace(token_scales=scales(given, part)) for part in g.parts])


_token_scales("token-scales-left-out", COMMON, "does not multiply by per_token_scale",
              "Multiply by the row's scale, too.", lambda scales, part: None)
_token_scales("token-scales-in-group", COMMON, "takes the scales of the first rows for each group",
              "Row i has the element i of per_token_scale, whatever its group.",
              lambda scales, part: scales[:len(part.rows)])
_token_scales("token-scales-before", USUAL, "takes the scale of the row before", "Row i has the element i of "
              "per_token_scale.", lambda scales, part: np.roll(scales, 1)[part.begin:part.begin + len(part.rows)])
_token_scales("token-scales-behind", USUAL, "takes the scale of the row behind", "Row i has the element i of "
              "per_token_scale.", lambda scales, part: np.roll(scales, -1)[part.begin:part.begin + len(part.rows)])


@_grouped("weight-turned", COMMON, "reads the weight as if it was transposed", "The weight of an expert is [K, N].")
def _weight_turned(g: Grouped) -> Grouped:
    return g._replace(is_turned=True)


def _finished(name: str, way: str, commonness: int, what: str, advice: str, needs: Sequence[str]) -> None:
    @_grouped(name, commonness, what, advice, is_place=False)
    def change(g: Grouped) -> Optional[Grouped]:
        is_float = all(made.type in ("float16", "bfloat16") for made in g.made)
        return g._replace(way=way) if is_float and all(getattr(g.a, need) for need in needs) else None


_finished("bias-moved", "bias-moved", COMMON, "adds the bias before the scales where the operator adds it behind, or "
          "the other way round", "An int32 bias is added to the sums, and a bfloat16 bias behind the scales.",
          ("bias",))
_finished("scales-first", "scales-first", USUAL, "multiplies the two scales first, and then the sum",
          "Multiply the sum by the expert's scale, and then by the row's.", ("per_token_scale",))
_finished("rounded-between", "rounded-between", USUAL, "rounds to the type of the result between the two scales",
          "Compute in float32, and round once.", ("per_token_scale",))
_finished("sums-rounded", "sums-rounded", COMMON, "rounds the sums to the type of the result before the scales",
          "Sums are int32; they become float32 for the scales.", ())


@_grouped("bias-left-out", COMMON, "does not add the bias", "Add the expert's bias.", False)
def _no_bias(g: Grouped) -> Optional[Grouped]:
    return g._replace(a=SimpleNamespace(**{**vars(g.a), "bias": None})) if g.a.bias else None


# ---- what they explain -----------------------------------------------------------------------------------------------


class _Compared(NamedTuple):
    """A result that is compared; flat, without what the device leaves unset."""

    name: str
    kind: str  # the name of the type
    shape: Tuple[int, ...]
    at: np.ndarray  # the elements that are compared
    ours: np.ndarray
    theirs: np.ndarray
    differs: np.ndarray

    def is_same(self, values: np.ndarray) -> np.ndarray:
        return _is_same(values, self.theirs)

    def taken(self, result: np.ndarray) -> np.ndarray:
        return result.reshape(-1)[self.at]


def _is_same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of equal bits, or both NaN: of a computed NaN the device's bits are not known."""
    if a.dtype == np.uint16 or a.dtype.kind == "f":
        return (bits_of(a) == bits_of(b)) | (np.isnan(to_float(a)) & np.isnan(to_float(b)))
    return a == b


def _compared(name: str, ours: np.ndarray, theirs: np.ndarray, unset: np.ndarray) -> _Compared:
    at = np.flatnonzero(~unset.reshape(-1))
    pair = ours.reshape(-1)[at], theirs.reshape(-1)[at]
    return _Compared(name, _type_of(ours), ours.shape, at, *pair, ~_is_same(*pair))


def _orders(values: np.ndarray) -> np.ndarray:
    return float_orders(values) if values.dtype == np.uint16 or values.dtype.kind == "f" else values.astype(np.int64)


def _moved(result: _Compared) -> np.ndarray:
    """Which rows of a dump are rows that belong elsewhere."""
    columns = result.shape[-1] if len(result.shape) > 1 else 1
    if columns < 2 or len(result.at) % columns:
        return np.zeros(1 + len(result.at) // columns, np.bool_)
    ours, theirs = (np.ascontiguousarray(each).reshape(-1, columns) for each in (result.ours, result.theirs))
    known = {hash(row.tobytes()) for row in ours}
    return np.array([hash(row.tobytes()) in known for row in theirs], np.bool_)


class _Evidence:
    """What it is worth to give the values of a result that differ."""

    def __init__(self, result: _Compared):
        self.at = np.flatnonzero(result.differs)
        self.at = self.at[::1 + len(self.at) // _MOST_WEIGHED]  # fewer weigh less: no name comes of that
        ours, theirs = result.ours[self.at], result.theirs[self.at]
        apart = np.abs(_orders(ours).astype(np.float64) - _orders(theirs).astype(np.float64))
        worth = np.clip(np.frexp(np.maximum(apart, 1))[1], 1, _MOST_OF_VALUE)
        _, self.value = np.unique(bits_of(theirs), return_inverse=True)
        columns = result.shape[-1] if len(result.shape) > 1 else 1
        rows = result.at[self.at] // max(columns, 1)
        # Elements with the same right value and the same wrong one are one observation of arithmetic. Of a mistake
        # about places, each row has its own. A row that holds another is one observation, as so many rows there are.
        moved = _moved(result)[self.at // max(columns, 1)]
        most = int(np.frexp(max(result.at.size // max(columns, 1), 1))[1])
        self.worth = [worth, np.where(moved, np.minimum(worth, most), worth)]
        pair = bits_of(ours).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ bits_of(theirs).astype(np.uint64)
        mixed = np.where(moved, np.uint64(0), (pair ^ pair >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9))
        self.value = [self.value, np.where(moved, rows % (self.value.max(initial=0) + 1), self.value)]
        self.seen = [np.unique(key, return_inverse=True)[1] for key in (pair, mixed + rows.astype(np.uint64))]

    def bits(self, is_given: np.ndarray, is_place: bool) -> float:
        """is_given: which of all elements an explanation gives."""
        given = is_given[self.at]
        if not given.any():
            return 0
        seen = np.count_nonzero(np.bincount(self.seen[is_place][given]))
        value, worth = self.value[is_place][given], self.worth[is_place][given]
        table = np.bincount(value * 9 + worth, minlength=9).astype(bool)
        table = np.pad(table, (0, -len(table) % 9)).reshape(-1, 9)
        most = np.where(table.any(axis=1), 8 - table[:, ::-1].argmax(axis=1), 1)
        return float(seen + (most - 1).sum())


class _Sample:
    """Rows of a large first result, to find out soon what a hypothesis is not."""

    def __init__(self, compared: Sequence[Optional[_Compared]]):
        result, self.rows = compared[0], np.zeros(0, np.int64)
        if result is None or len(result.shape) < 2 or len(result.at) <= _MOST_WEIGHED:
            return
        is_set, differs, theirs = (np.zeros(math.prod(result.shape), dtype) for dtype in (
            np.bool_, np.bool_, result.theirs.dtype))
        is_set[result.at], differs[result.at], theirs[result.at] = True, result.differs, result.theirs
        is_set, differs, theirs = (each.reshape(-1, result.shape[-1]) for each in (is_set, differs, theirs))
        is_wrong = differs.any(axis=1)
        rows = [np.flatnonzero(is_wrong), np.flatnonzero(is_set.all(axis=1) & ~is_wrong)]
        self.rows = np.concatenate([each[::1 + len(each) // _SAMPLED] for each in rows])
        self.is_set, self.differs, self.theirs = (each[self.rows] for each in (is_set, differs, theirs))

    def refutes(self, call: Any) -> bool:
        """Whether the call gives less than half of the sample, or changes more that is right."""
        if not len(self.rows):
            return False
        given = _is_same(call.some(self.rows), self.theirs)
        explained, differing = np.count_nonzero(given & self.differs), np.count_nonzero(self.differs)
        return 2 * explained < differing or np.count_nonzero(~given & ~self.differs & self.is_set) > explained


class _Tried(NamedTuple):
    """A hypothesis that was tried, with the fields of a finding."""

    cause: Cause
    what: str
    call: Any
    explained: int
    unexplained: int
    newly_wrong: int
    prior: float
    gained: float

    @property
    def score(self) -> float:
        return self.prior + self.gained - _NEWLY_WRONG * self.newly_wrong

    @property
    def is_exact(self) -> bool:
        return not self.unexplained and not self.newly_wrong

    def facts(self) -> Dict[str, Any]:
        counts = {name: getattr(self, name) for name in (
            "explained", "unexplained", "newly_wrong", "prior", "gained", "score")}
        return {"hypotheses": [self.cause.facts(self.what)], **counts, "numbers": {}, "layout": None, "part": None}


def _try(function: str, call: Any, theirs: Sequence[Optional[np.ndarray]],
         compared: Sequence[Optional[_Compared]]) -> List[_Tried]:
    """All hypotheses that give some of the dump: first those that give all of it, each kind the best first."""
    with np.errstate(all="ignore"):
        possible = [(cause, cause.change(*(call, theirs)[:1 + cause.reads_dump])) for cause in _CAUSES[function]]
        evidence, sample = [result and _Evidence(result) for result in compared], _Sample(compared)
        all_bits = math.log2(sum(cause.commonness for cause, changed in possible if changed is not None) or 1)
        tried = []
        for cause, changed in possible:
            if changed is None:
                continue
            found = changed if isinstance(changed, Found) else Found(changed, 0, "")
            if sample.refutes(found.call):
                continue
            made = found.call.results()
            counts, gained = np.zeros(3, np.int64), 0.0
            for result, worth, values in zip(compared, evidence, made):
                if result and worth:
                    given = result.is_same(result.taken(values))
                    counts += [np.count_nonzero(given & result.differs), np.count_nonzero(~given & result.differs),
                               np.count_nonzero(~given & ~result.differs)]
                    gained += worth.bits(given, cause.is_place)
            prior = math.log2(cause.commonness) - all_bits - 1 - found.bits
            if counts[0]:
                explained, unexplained, newly_wrong = counts.tolist()
                tried.append(_Tried(cause, found.what, found.call, explained, unexplained, newly_wrong, prior, gained))
    return sorted(tried, key=lambda each: (not each.is_exact, -(each.prior if each.is_exact else each.score)))


def _rivals(best: _Tried, is_one_value: bool, device: float) -> Dict[str, Any]:
    """What the first finding is compared with."""
    left = best.unexplained + best.newly_wrong
    share = left / (best.explained + left)
    other_cause = 2 * math.log2(share) if 0 < share <= _MOST_LEFT else 0.0
    return {"is_sure": not is_one_value, "is_single": True, "has_rest": False, "device": device, "other_cause": other_cause}


def _verdict(tried: Sequence[_Tried], differing: int, rivals: Optional[Dict[str, Any]]) -> str:
    if not differing:
        return "equal"
    if not rivals:
        return "none"
    best = tried[0]
    if best.is_exact:
        return "explained" if best.score >= _PROOF and rivals["is_sure"] else "possible"
    is_rest = rivals["other_cause"] < -_RARE and rivals["is_sure"]
    return "partly" if is_rest and best.score >= _PROOF + _RARE else "none"


def _admission(call: Any, theirs: Sequence[Optional[np.ndarray]], differs: bool) -> Optional[Dict[str, Any]]:
    """What the device's division may make of the rows of routing, as of row_quant(); None without a division. If nothing
    differs, one row says in what units it counts."""
    if not isinstance(call, Routing) or not call.rule or theirs[0] is None or not theirs[0].size:
        return None
    places, v = call.quantised()
    if not len(places):
        return None
    if not differs:
        places, v = places[:1], v[:1]
    with keeping() as kept:
        row_quant(v, call.rule)
    y, scale = (None if each is None else np.ascontiguousarray(each.reshape(-1, *shape)[places])
                for each, shape in ((theirs[0], v.shape[1:]), (theirs[3], ())))
    return _native.admission(kept[0].call, (y, scale), get_num_threads())


def _weigh_device(admission: Optional[Dict[str, Any]]) -> float:
    """log2 of the probability that a device without a mistake makes these moves."""
    if admission is None or admission["wrong"] or not admission["differing"]:
        return -math.inf
    made = admission["made"] + admission["exact_made"]
    kept = admission["possible"] + admission["exact_possible"] - made
    return made * math.log2(_MOVED / 2) + kept * math.log2(1 - _MOVED)


def _notes(call: Any, result: int, index: Tuple[int, ...]) -> List[Tuple[str, str, Any]]:
    lines = []

    def note(step: str, kind: str, value: Any) -> None:
        lines.append((step, kind, np.asarray(value).reshape(-1)[0].item()))

    call.note(result, index, note)
    return lines


def _kind(array: np.ndarray) -> str:
    """The type of an element in a report: words and counts are both int64."""
    return "count" if array.dtype == np.int64 else _type_of(array)


def _trace(call: Any, values: np.ndarray, result: int, index: Tuple[int, ...]) -> Dict[str, Any]:
    return {"steps": _notes(call, result, index), "bits": int(bits_of(values)[index])}


def explain(function: str, call: Any, index: Tuple[int, ...], result: int = 0, other: Any = None,
            dump: Optional[np.ndarray] = None) -> Dict[str, Any]:
    """An element of a result, step by step; other is a changed call to compare with."""
    with np.errstate(all="ignore"):
        results = call.results()
        ours = results[result]
        return {"result": [*_names(function, results)][result], "index": index, "dtype": _kind(ours),
                "definition": _trace(call, ours, result, index),
                "hypothesis": other and _trace(other, other.results()[result], result, index),
                "dump": None if dump is None else int(bits_of(dump)[index])}


def _shown(compared: Sequence[Optional[_Compared]],
           made: Optional[Sequence[np.ndarray]]) -> Tuple[int, Tuple[int, ...]]:
    """The element that differs least: of the first ones that an explanation gives, if there is one."""
    for number, result in enumerate(compared):
        if result:
            given = result.differs if made is None else result.differs & result.is_same(result.taken(made[number]))
            at = np.flatnonzero(given)[:_LOOKED_AT]
            if len(at):
                apart = np.abs(_orders(result.ours[at]) - _orders(result.theirs[at]))
                place = np.unravel_index(result.at[at[np.argmin(apart)]], result.shape)
                return number, tuple(int(i) for i in place)
    return _shown(compared, None)


def _rest(compared: Sequence[Optional[_Compared]], made: Optional[Sequence[np.ndarray]]) -> Dict[str, Any]:
    """Where the elements are that nothing explains, and sentences about them."""
    said: Dict[str, Any] = {"words": [], "clues": []}
    for number, result in enumerate(compared):
        if not result:
            continue
        expected = result.ours if made is None else result.taken(made[number])
        differs = ~result.is_same(expected)
        said[result.name] = {"elements": int(np.count_nonzero(differs))}
        if differs.any():
            columns = result.shape[-1] if len(result.shape) > 1 else 1
            where, dump, right = (np.zeros(math.prod(result.shape), each.dtype)
                                  for each in (differs, result.theirs, expected))
            where[result.at], dump[result.at], right[result.at] = differs, result.theirs, expected
            where = where.reshape(-1, columns)
            said[result.name]["rows"] = lines_of(where.any(axis=1))
            if len(result.shape) > 1:
                said[result.name]["columns"] = lines_of(where.any(axis=0))
                dump, right = (values_of(each, result.kind, columns) for each in (dump, right))
                held = Matrix(result.name, result.kind, dump, right, where)
                said["clues"] += [word.text for word in (*constant_lines(held, "row"), *moved_lines(held, "row"))]
    return said


def diagnose(function: str, call: Any, ours: Sequence[np.ndarray], theirs: Sequence[Optional[np.ndarray]],
             unset: Sequence[np.ndarray]) -> Dict[str, Any]:
    """The facts of a diagnosis, as _native finds them for other operators."""
    compared = [None if each is None else _compared(name, right, each, mask)
                for name, right, each, mask in zip(_names(function, ours), ours, theirs, unset)]
    results = [{"name": each.name, "elements": len(each.at), "differing": int(np.count_nonzero(each.differs))}
               for each in compared if each]
    differing = sum(int(np.count_nonzero(each.differs)) for each in compared if each)
    tried = _try(function, call, theirs, compared) if differing else []
    constant = next((each.name for each in compared if each and np.count_nonzero(each.differs) > 1
                     and np.all(bits_of(each.theirs) == bits_of(each.theirs)[0])), None)
    admission = _admission(call, theirs, differing > 0)
    # A right device may move quotients; nothing else moves then.
    is_by_division = admission is not None and not any(
        each.differs.any() for number, each in enumerate(compared) if each and number)
    device = _weigh_device(admission) if is_by_division else -math.inf
    rivals = _rivals(tried[0], constant is not None, device) if tried else None
    verdict = _verdict(tried, differing, rivals)
    if device > -math.inf and not (tried[:1] and tried[0].is_exact and tried[0].prior - _PROOF >= device):
        verdict = "none" if admission and admission["too_many"] else "admissible"
    best = tried[0] if verdict in ("explained", "possible", "partly") else None
    made = best and best.call.results()
    exact = [each for each in tried if each.is_exact]
    facts: Dict[str, Any] = {
        "operator": function, "verdict": verdict, "results": results, "admissible": admission, "device": device,
        "first_place": sum(each.prior > exact[0].prior - _RARE for each in exact), "untried_pairs": 0,
        "proof": _PROOF, "rare": _RARE, "rivals": rivals,
        "findings": [each.facts() for each in tried[:_MOST_FINDINGS]], "is_one_value": constant, "quotient": None,
        "tokens": 2, "remainder": _rest(compared, made), "element": None}
    if verdict == "admissible":
        facts["remainder"]["clues"] = []
    if differing:
        result, index = _shown(compared, made)
        facts["element"] = explain(function, call, index, result, best and best.call, theirs[result])
    return facts


def _names(function: str, ours: Sequence[np.ndarray]) -> Iterator[str]:
    """The names of results; a list has numbers."""
    names = _RESULTS[function]
    return iter(names if len(ours) == len(names) else [f"{names[0]}[{i}]" for i in range(len(ours))])
