# SPDX-License-Identifier: BSD-3-Clause
"""The first version of routing to experts, and its neighbours: they move rows and count, and compute nothing.

A function without npu_ in its name has the rules of an operator, as in experts.py.
"""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from npuquant_facts.dtypes import FLOATS

from .._arguments import _dimensions, _expect, _of, _options, _shape, _type_of
from .._tensors import TensorLike
from .experts import Made, _read, _within

__tracebackhide__ = True  # pytest shows the line that calls the package

#: Ids of experts are compared as float32, which has every integer up to this one.
_IDS = 2**24


def _order(ids: np.ndarray) -> np.ndarray:
    """The positions by id; those of one id stay in order."""
    return np.argsort(ids.reshape(-1), kind="stable")


def _places(order: np.ndarray) -> np.ndarray:
    """Where an order puts each position."""
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order))
    return places


# ---- npu_moe_init_routing --------------------------------------------------------------------------------------------


def init_routing(a: Any) -> List[Made]:
    _of("x", a.x, *FLOATS)
    _shape("x", a.x, None, None)
    for name, tensor in ("row_idx", a.row_idx), ("expert_idx", a.expert_idx):
        _of(name, tensor, "int32")
    _shape("row_idx", a.row_idx, a.x.shape[0], None)
    _shape("expert_idx", a.expert_idx, *a.row_idx.shape)
    _expect(a.active_num >= 0, "active_num", f"is {a.active_num}; expected 0 or more")
    n, k = a.row_idx.shape
    return [Made((min(n, a.active_num) * k, a.x.shape[1]), _type_of(a.x)), Made((n * k,), "int32"),
            Made((n * k,), "int32")]


@_options
def npu_moe_init_routing(x: TensorLike, row_idx: TensorLike, expert_idx: TensorLike,
                         active_num: int) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Brings the rows of tokens into the order of their experts, as the first version of the operator does.

    Position p = t * k + j is slot j of token t. The positions are sorted by expert, and those of one expert stay in
    order. Where the sort puts a position, its number in row_idx counts: row i is that of the token number % n.

    Args:
        x: float32, float16 or bfloat16 [n, H].
        row_idx: int32 [n, k]: the numbers 0 to n * k - 1, each once. Callers give j * n + t.
        expert_idx: int32 [n, k].
        active_num: how many tokens expanded_x has at most; with each come k rows.

    Returns:
        expanded_x [min(n, active_num) * k, H]; expanded_row_idx int32 [n * k], which has at each number of row_idx the
        row; and the sorted experts, int32 [n * k].

    >>> x, row_idx = np.array([[1], [2]], np.float32), np.array([[0, 2], [1, 3]], np.int32)
    >>> rows, index, experts = npu_moe_init_routing(x, row_idx, np.array([[1, 0], [1, 2]], np.int32), 2)
    >>> rows[:, 0].tolist(), index.tolist(), experts.tolist()
    ([1.0, 1.0, 2.0, 2.0], [1, 2, 0, 3], [0, 1, 1, 2])
    """
    a = _read(locals(), ("x", "row_idx", "expert_idx"), ())
    expanded, *_ = init_routing(a)
    _within("row_idx", a.row_idx, a.row_idx.size)
    order = _order(a.expert_idx)
    numbers = a.row_idx.reshape(-1)[order]
    rows = a.x[numbers[:expanded.shape[0]] % max(len(a.x), 1)]
    return np.ascontiguousarray(rows), _places(numbers), a.expert_idx.reshape(-1)[order]


# ---- npu_moe_compute_expert_tokens -----------------------------------------------------------------------------------


def compute_expert_tokens(a: Any) -> List[Made]:
    ids = a.sorted_expert_for_source_row
    _of("sorted_expert_for_source_row", ids, "int32")
    _shape("sorted_expert_for_source_row", ids, None)
    _expect(ids.shape[0] <= _IDS, "sorted_expert_for_source_row",
            f"has {ids.shape[0]} elements; expected at most {_IDS}")
    _expect(1 <= a.num_expert <= 2048, "num_expert", f"is {a.num_expert}; expected 1 to 2048")
    return [Made((a.num_expert,), "int32")]


@_options
def npu_moe_compute_expert_tokens(sorted_expert_for_source_row: TensorLike, num_expert: int) -> np.ndarray:
    """Counts the rows of the experts up to each: the row behind its last.

    Args:
        sorted_expert_for_source_row: int32 [A], not negative, rising: the third result of npu_moe_init_routing(). Larger
            experts than the last, num_expert - 1, are not counted if num_expert is more than 256. Otherwise only
            num_expert itself may be there, and only if A is at most 12,000: the device writes outside of its memory.
        num_expert: 1 to 2048.

    Returns:
        int32 [num_expert].

    >>> npu_moe_compute_expert_tokens(np.array([0, 0, 0, 2, 2, 3], np.int32), 4)
    array([3, 3, 5, 6], dtype=int32)
    """
    a = _read(locals(), ("sorted_expert_for_source_row",), ())
    compute_expert_tokens(a)
    ids = a.sorted_expert_for_source_row
    largest = np.inf if num_expert > 256 else num_expert if len(ids) <= 12000 else num_expert - 1
    if ids.size:
        found = ids.min() if ids.min() < 0 else ids.max()
        _expect(0 <= found <= largest, "sorted_expert_for_source_row", f"has {found}; expected 0 to {largest}")
    return np.cumsum(np.bincount(ids[ids < num_expert], minlength=num_expert)).astype(np.int32)


# ---- npu_moe_token_permute -------------------------------------------------------------------------------------------


def token_permute(a: Any) -> List[Made]:
    _of("tokens", a.tokens, *FLOATS, "int8")
    _shape("tokens", a.tokens, None, None)
    _of("indices", a.indices, "int32", "int64")
    _dimensions("indices", a.indices, 1, 2)
    n, k = a.tokens.shape[0], a.indices.shape[1] if len(a.indices.shape) == 2 else 1
    _shape("indices", a.indices, n, *[None] * (len(a.indices.shape) - 1))
    _expect(not a.padded_mode, "padded_mode", "is True; expected False")
    _expect(k <= 512, "indices", f"has {k} columns; expected at most 512")
    _expect(n * k < _IDS - 1, "indices", f"has {n * k} elements; expected less than {_IDS - 1}")
    wanted = a.num_out_tokens or 0
    _expect(wanted >= 0 or n * k + wanted > 0, "num_out_tokens", f"is {wanted}; expected {1 - n * k} or more")
    rows = n * k + wanted if wanted <= 0 else min(wanted, n * k)
    return [Made((rows, a.tokens.shape[1]), _type_of(a.tokens)), Made((n * k,), "int32")]


@_options
def npu_moe_token_permute(tokens: TensorLike, indices: TensorLike, num_out_tokens: Optional[int] = None,
                          padded_mode: bool = False) -> Tuple[np.ndarray, np.ndarray]:
    """Brings the rows of tokens into the order of their experts. npu_moe_token_unpermute() brings them back.

    Position p = t * k + j is slot j of token t. The positions are sorted by expert, and those of one expert stay in
    order.

    Args:
        tokens: float32, float16, bfloat16 or int8 [n, H].
        indices: int32 or int64 [n, k], or [n] for a k of 1; k at most 512. The experts of the slots.
        num_out_tokens: how many rows there are at most. 0 and None set no limit; a negative number leaves out as many.
        padded_mode: False.

    Returns:
        The rows, and int32 [n * k]: the row of each position, also if that row is left out.

    >>> rows, index = npu_moe_token_permute(np.array([[1], [2]], np.float32), np.array([[1, 0], [1, 2]]), 3)
    >>> rows[:, 0].tolist(), index
    ([1.0, 1.0, 2.0], array([1, 0, 2, 3], dtype=int32))
    """
    a = _read(locals(), ("tokens", "indices"), ())
    permuted, _ = token_permute(a)
    order, k = _order(a.indices), a.indices.shape[1] if a.indices.ndim == 2 else 1
    return np.ascontiguousarray(a.tokens[order[:permuted.shape[0]] // max(k, 1)]), _places(order)
