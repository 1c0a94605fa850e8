# SPDX-License-Identifier: BSD-3-Clause
"""Microscaling: which conventions a kernel has, by the package's one table of them, and in which form its scales are."""
from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from npuquant_facts.operators import extents

from ..mx import CONVENTIONS, Convention, encode, in_pairs
from .remainder import Call, Word
from .reports import Facts


def named(hypothesis: Mapping[str, str], dtype: str = "") -> Dict[str, str]:
    """A hypothesis whose words say which conventions do so, for this type of elements or for any."""
    owners: Dict[str, str] = {}
    for row in CONVENTIONS:
        if row.mistake == hypothesis["name"] and (not dtype or dtype in row.types):
            owners.setdefault(row.name, row.owned)
    does = f", as {' and '.join(owners.values())} do{'es' * (len(owners) == 1)}" if owners else ""
    return {**hypothesis, "what": hypothesis["what"] + does}


def _fitting(call: Call, actual: Sequence[Optional[np.ndarray]]) -> List[Convention]:
    """The conventions whose options, those of mx.options(), give all of the dump."""
    rows: Dict[str, Convention] = {}
    for row in CONVENTIONS:
        if row.options is not None and call.dtype in row.types:
            rows.setdefault(row.name, row)
    asked = {name: call.arguments[name] for name in ("input", "axis", "dst_type", "block_size")}

    def fits(row: Convention) -> bool:
        made = call.function(**asked, **(row.options or {}))
        return all(theirs is None or np.array_equal(theirs, ours) for theirs, ours in zip(actual, made))

    return list(filter(fits, rows.values()))


def add(facts: Facts, call: Call, actual: Sequence[Optional[np.ndarray]]) -> Facts:
    """With the conventions that have the mistakes, and those that have the whole dump."""
    if facts["verdict"] == "equal":
        return facts
    findings = [{**finding, "hypotheses": [named(each, call.dtype) for each in finding["hypotheses"]]}
                for finding in facts["findings"]]
    return {**facts, "findings": findings, "conventions": _fitting(call, actual)}


def words(facts: Facts) -> List[Word]:
    """For a kernel that has all that a convention has, where that takes several mistakes."""
    text = "The bits are those of another convention."
    return [Word("convention", text, True, 0)] if facts.get("conventions") else []


# ---- the forms of scales ----


def _described(scales: np.ndarray) -> str:
    """Of which bytes floats are the values, or of which size numbers are: bytes and exponents are seen then."""
    try:
        codes = encode(scales.astype(np.float32), "float8_e8m0fnu")
    except ValueError:
        return f"no powers of two, but {scales.min():g} to {scales.max():g}"
    return f"the powers of two for {codes.min()} to {codes.max()}: npuquant.mx.encode() makes the bytes"


class Scales(NamedTuple):
    """The scales of a call: what a kernel may have in their place."""

    values: Tuple[int, ...]  # the shape of x
    axis: int
    block: int

    @classmethod
    def of(cls, y: np.ndarray, elements: int, arguments: Mapping[str, Any]) -> Scales:
        """By the operator's result and arguments; so many elements are in a byte of y."""
        return cls((*y.shape[:-1], y.shape[-1] * elements), arguments.get("axis", -1), arguments.get("block_size") or 32)

    def alone(self, length: int, count: int = 1) -> Tuple[int, ...]:
        """The shape of one scale for each group of this length, or of so many."""
        at = self.axis % len(self.values)
        return tuple(-(-n // length) * count if d == at else n for d, n in enumerate(self.values))

    def paired(self, scales: np.ndarray) -> np.ndarray:
        """In pairs, if there is one for each group, with or without the one that fills up the last pair."""
        is_alone = scales.shape in (self.alone(self.block), self.alone(2 * self.block, 2))
        return in_pairs(scales, axis=self.axis) if is_alone else scales

    def hint(self, scales: Any, dtype: str) -> str:
        """What others are, probably: an array, or something else with a shape."""
        halves = self.alone(16), extents("OF_PAIRS", self.values, block=16, axis=self.axis)
        if dtype == "float8_e4m3fn" or (self.block > 16 and scales.shape in halves):
            return ("; NVFP4 has groups of 16 with scales of float8_e4m3fn and another of the tensor: two levels of scales "
                    "are no MX")
        if isinstance(scales, np.ndarray) and scales.dtype.kind in "fi" and scales.dtype.name == dtype and scales.size:
            return f"; a scale is a byte that stands for 2^(byte - 127), and these are {_described(scales)}"
        groups = self.alone(self.block)
        tiles = -(-math.prod(groups[:-1]) // 128) * 128 * -(-groups[-1] // 4) * 4
        if math.prod(scales.shape) == tiles != math.prod(groups):
            return "; as many are in tiles of 128 rows and 4 groups: bring them into the order of rows"
        return ""
