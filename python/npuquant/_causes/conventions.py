# SPDX-License-Identifier: BSD-3-Clause
"""Microscaling: which conventions a kernel has, by the package's one table of them."""
from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence

import numpy as np

from ..mx import CONVENTIONS, Convention
from .remainder import Call
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
