# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in the product of npu_quant_matmul(): other sums, from which the library makes the results."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from .. import _native
from .._matmul import factors_of, product
from .._tensors import arrays
from .._threads import Kept, keeping, run
from .reports import Facts

#: Rows and columns of the results at most on which each mistake is tried first.
_TRIED = 8, 64
#: Of all that is probable, the mistakes in the product have 2^-3.
_SHARE = 3

_Matrices = Tuple[np.ndarray, np.ndarray]
#: From x1, x2 and the bits of their elements to the matrices that are multiplied; None if the call rules the mistake out.
_Inputs = Callable[[np.ndarray, np.ndarray, int], Optional[_Matrices]]


class _Mistake(NamedTuple):
    name: str
    commonness: int  # 16, 4 or 1
    what: str
    advice: str
    inputs: _Inputs
    sums: Callable[[np.ndarray, np.ndarray], np.ndarray]  # of the matrices that inputs gives


def _exact(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """The sums, modulo 2^32. Values of more than eight bits are added as two halves: see _matmul."""
    shape = (*np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), x1.shape[-2], x2.shape[-1])

    def halves(x: np.ndarray) -> List[np.ndarray]:
        return [x] if x.dtype == np.int8 else [x - x // 2, x // 2]

    y = np.zeros(shape, np.int32)
    for a in halves(x1):
        for b in halves(x2):
            y += product(a, b, shape)
    return y


def _int16(sums: np.ndarray) -> np.ndarray:
    return sums.clip(-2**15, 2**15 - 1)


def _saturated_each(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    y: Any = np.int32(0)
    for k in range(x1.shape[-1]):
        y = _int16(y + x1[..., k, None].astype(np.int32) * x2[..., None, k, :])
    return y


def _of_k(columns: Callable[[np.ndarray], np.ndarray]) -> _Inputs:
    """Takes some columns of x1 with the same rows of x2."""
    def inputs(x1: np.ndarray, x2: np.ndarray, _: int) -> Optional[_Matrices]:
        k = np.arange(x1.shape[-1])
        taken = columns(k)
        return (x1[..., taken], x2[..., taken, :]) if 0 < len(taken) != len(k) else None

    return inputs


def _tail(tile: int, overlaps: bool) -> _Inputs:
    """Leaves out what does not fill a tile, or lets the last tile begin earlier and repeat what is before it."""
    def columns(k: np.ndarray) -> np.ndarray:
        whole = len(k) // tile * tile
        return np.r_[k[:whole], k[-tile:]] if overlaps and 0 < whole < len(k) else k[:whole]

    return _of_k(columns)


def _same(x1: np.ndarray, x2: np.ndarray, _: int) -> _Matrices:
    return x1, x2


def _unsigned(x: np.ndarray, bits: int) -> np.ndarray:
    return x.astype(np.int16) & 2**bits - 1


def _plus_half(x: np.ndarray, bits: int) -> np.ndarray:
    return x.astype(np.int16) + 2**(bits - 1)


def _transposed(x1: np.ndarray, x2: np.ndarray, _: int) -> Optional[_Matrices]:
    return (x1, x2.swapaxes(-1, -2)) if x2.shape[-1] == x2.shape[-2] else None


_WIDTH = "Keep the sums in int32: the products of int8 need more than 16 bits."
_ENDS = "Compare K with the tiles in which the kernel reads x1 and x2."
_SIGN = "Read x1 and x2 as signed, or subtract the zero point times the sums of the other matrix."

_MISTAKES = (
    _Mistake("sums-saturated", 4, "saturates the sums to 16 bits after each product", _WIDTH, _same, _saturated_each),
    _Mistake("sums-saturated-last", 4, "saturates the complete sums to 16 bits", _WIDTH, _same,
             lambda x1, x2: _int16(_exact(x1, x2))),
    _Mistake("sums-wrapped", 4, "keeps the low 16 bits of the sums", _WIDTH, _same,
             lambda x1, x2: _exact(x1, x2).astype(np.int16).astype(np.int32)),
    *(_Mistake(f"k-tail-{tile}-left-out", 16, f"leaves out the last columns of x1 that do not fill {tile}", _ENDS,
               _tail(tile, False), _exact) for tile in (16, 32, 64)),
    *(_Mistake(f"k-tail-{tile}-overlaps", 4, f"adds some columns of x1 twice, as its last {tile} columns overlap with "
               "those before", _ENDS, _tail(tile, True), _exact) for tile in (16, 32, 64)),
    _Mistake("k-first-left-out", 4, "leaves out the first column of x1", _ENDS, _of_k(lambda k: k[1:]), _exact),
    _Mistake("k-last-left-out", 4, "leaves out the last column of x1", _ENDS, _of_k(lambda k: k[:-1]), _exact),
    _Mistake("k-twice", 4, "adds the whole product twice", "Set the sums to 0 before the first product.",
             _of_k(lambda k: np.r_[k, k]), _exact),
    _Mistake("x1-unsigned", 16, "reads x1 as unsigned", _SIGN, lambda x1, x2, bits: (_unsigned(x1, bits), x2),
             _exact),
    _Mistake("x2-unsigned", 16, "reads x2 as unsigned", _SIGN, lambda x1, x2, bits: (x1, _unsigned(x2, bits)),
             _exact),
    _Mistake("x1-zero-point", 16, "adds 128 (int4: 8) to x1, and does not subtract 128 times the sums of x2", _SIGN,
             lambda x1, x2, bits: (_plus_half(x1, bits), x2), _exact),
    _Mistake("x2-zero-point", 16, "adds 128 (int4: 8) to x2, and does not subtract 128 times the sums of x1", _SIGN,
             lambda x1, x2, bits: (x1, _plus_half(x2, bits)), _exact),
    _Mistake("x2-transposed", 16, "takes x2 as transposed",
             "Check the order in which x2 is stored, and whether the kernel transposes it.", _transposed, _exact),
)


def _said(mistake: _Mistake) -> Dict[str, str]:
    return {"name": mistake.name, "what": mistake.what, "advice": mistake.advice}


#: As _native.hypotheses() lists others.
HYPOTHESES = [(_said(mistake), ["quant_matmul"]) for mistake in _MISTAKES]


def _made(kept: Kept, sums: np.ndarray) -> Tuple[np.ndarray, Any]:
    """The results of the step after the product, and its call for _native."""
    y = np.empty_like(kept.arguments[-2])
    with keeping() as made:
        run(kept.function, np.ascontiguousarray(sums, np.int32), *kept.arguments[1:-2], y, kept.arguments[-1])
    return y, made[0].call


def _tried(differs: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Some rows, and some columns, of a matrix; if possible, such as differ."""
    order = (np.argsort(~differs.any(axis=axis), kind="stable") for axis in (1, 0))
    rows, columns = (each[:most] for each, most in zip(order, _TRIED))
    return rows[:, None], columns


def _findings(kept: Kept, given: Mapping[str, Any], actual: np.ndarray,
              facts: Facts) -> Iterator[Tuple[Dict[str, Any], Any]]:
    """For each mistake that gives the dump its finding, and the call of the step after the product. Each is tried on some
    rows and columns first."""
    def bits_of(y: np.ndarray) -> np.ndarray:
        return y.view(f"u{y.itemsize}").reshape(shape)

    stored = arrays(given, ("x1", "x2"))
    x1, x2 = factors_of(**stored)
    bits = 8 if x1 is stored["x1"] else 4
    shape, right = actual.shape, kept.arguments[0]
    theirs = bits_of(actual)
    differs = theirs != bits_of(kept.arguments[-2])
    batch = tuple(np.argwhere(differs)[0][:-2])
    rows, columns = _tried(differs[batch])
    place = (*batch, rows, columns)
    for mistake in _MISTAKES:
        inputs = mistake.inputs(x1, x2, bits)
        if not inputs:
            continue
        a, b = (np.broadcast_to(each, (*shape[:-2], *each.shape[-2:])) for each in inputs)
        sums = right.reshape(shape).copy()
        sums[place] = mistake.sums(a[batch][rows[:, 0]], b[batch][:, columns])
        if (bits_of(_made(kept, sums.reshape(right.shape))[0])[place] != theirs[place]).any():
            continue
        y, call = _made(kept, mistake.sums(a, b).reshape(right.shape))
        if (bits_of(y) == theirs).all():
            prior = math.log2(mistake.commonness / sum(each.commonness for each in _MISTAKES)) - _SHARE
            yield {"hypotheses": [_said(mistake)], "explained": int(differs.sum()), "unexplained": 0, "newly_wrong": 0,
                   "prior": prior, "gained": facts["worth"], "score": prior + facts["worth"], "numbers": {},
                   "layout": None, "part": None}, call


def weigh(facts: Facts, kept: Kept, given: Mapping[str, Any], actual: Any) -> Facts:
    """The facts with the mistakes in the product that give every element, and the verdict with them.

    given: the arguments of npu_quant_matmul(); actual: the dump."""
    if facts["verdict"] == "equal":
        return facts
    found = list(_findings(kept, given, actual, facts))
    if not found:
        return facts
    exact = [finding for finding, _ in found] + list(facts["findings"][:facts["first_place"]])
    exact.sort(key=lambda finding: -finding["prior"])
    best = exact[0]
    exact = [finding for finding in exact if finding["prior"] >= best["prior"] - facts["rare"]]
    said = {**facts, "first_place": len(exact), "findings": [*exact, *facts["findings"][facts["first_place"]:]]}
    for finding, call in found:
        if finding is best:
            is_sure = best["score"] >= facts["proof"] and not facts["is_one_value"]
            element = facts["element"]
            flat = int(np.ravel_multi_index(element["index"], actual.shape))
            said["verdict"] = "explained" if is_sure else "possible"
            said["rivals"] = {"is_sure": not facts["is_one_value"], "is_single": True, "has_rest": False, "device": None}
            said["element"] = {**element, "hypothesis": _native.explain(call, flat)["definition"]}
    return said
