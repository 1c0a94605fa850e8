# SPDX-License-Identifier: BSD-3-Clause
"""Words for rows that are made with the parameters of other rows, or of other groups."""
from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from npuquant_facts.dtypes import TYPES

from .._operators import npu_quantize
from .._tensors import arrays
from .remainder import LEAST_HELD, Call, Scales, Word, are_same, lines_of, values_of
from .reports import lines_text

#: Values at most that are made for all groups.
_MOST_MADE = 2**24

#: The results of a call; y has its values, and each a line for each row.
_Results = List[np.ndarray]


def _in_rows(dtype: str, results: Any) -> _Results:
    y, *others = results if isinstance(results, tuple) else (results,)
    values = values_of(y, dtype, y.shape[-1] * TYPES[dtype].elements)
    return [values, *(each.reshape(len(values), -1) for each in others)]


def _which_differ(theirs: Sequence[Optional[np.ndarray]], made: _Results) -> Iterator[np.ndarray]:
    """Where the compared results are others than those that are made."""
    for name, a, b in zip(("y", "scale", "offset"), theirs, made):
        if a is not None:
            yield ~are_same(name, a, b)


# ---- other rows ----


def _with_rows_moved(call: Call, data: str, step: int) -> Any:
    """What the operator makes of each row in the place of the row so many further."""
    x, = arrays(call.arguments, (data,)).values()

    def moved(array: np.ndarray, by: int) -> np.ndarray:
        return np.roll(array.reshape(-1, array.shape[-1]), by, axis=0).reshape(array.shape)

    return moved(call.function(**{**call.arguments, data: moved(x, step)}), -step)


def _with_factors_moved(call: Call, dtype: str, step: int) -> Any:
    """What a dynamic operator makes of each row with the factor of the row so many further."""
    v = Scales(call).v
    y, *parameters = call.ours
    if len(parameters) == 1:
        factors, offsets = np.float32(TYPES[dtype].dmax) / abs(v).max(axis=1), None
    else:
        factors, offsets = np.float32(1) / parameters[0].ravel(), np.roll(parameters[1].reshape(-1, 1), -step, axis=0)
    kind = "int8" if dtype == "uint8" else dtype
    codes = npu_quantize(v, np.roll(factors, -step)[:, None], offsets, kind, -2, False)
    codes = codes.view(np.uint8) ^ 128 if dtype == "uint8" else codes
    return (codes.reshape(y.shape), *(np.roll(each.ravel(), -step).reshape(each.shape) for each in parameters))


def _parameters_of_rows(call: Call) -> Tuple[str, str, str]:
    """What each row has of its own, the input with the rows, and what the row is for it."""
    given = call.arguments
    if call.operator.name == "quantize" and given["axis"] not in (-1, call.ours[0].ndim - 1):
        scales, = arrays(given, ("scales",)).values()
        if scales.size > 1 and (given["div_mode"] or given["axis"] == -2):
            return "scale" if given["zero_points"] is None else "scale and zero point", "input", "take"
    if call.operator.name == "dequant":
        if given["activation_scale"] is not None:
            return "activation scale", "x", "take"
    if call.operator.name in ("dynamic_quant", "dynamic_quant_asymmetric") and given["quant_mode"] == "pertoken":
        return "factor" if len(call.ours) == 2 else "factor and offset", "", "are x times"
    return "", "", ""


def _window(differs: np.ndarray, gives: np.ndarray) -> Tuple[int, int]:
    """The columns that differ, with all before them, or all behind them, where these are given, too."""
    columns, given = np.flatnonzero(differs.any(axis=0)), gives.all(axis=0)
    begin, end = int(columns[0]), int(columns[-1]) + 1
    return 0 if given[:begin].all() else begin, len(given) if given[end:].all() else end


def _row_words(call: Call, dtype: str, theirs: Sequence[Optional[np.ndarray]], ours: _Results) -> Iterator[Word]:
    """Rows, or the same columns of them, with what belongs to the row before or after."""
    what, data, verb = _parameters_of_rows(call)
    if not what or theirs[0] is None or len(ours[0]) < 2:
        return
    differs = list(_which_differ(theirs, ours))
    rows = differs[0].any(axis=1)
    if np.count_nonzero(differs[0]) < LEAST_HELD:
        return
    for step, side, end in (-1, "before", 0), (1, "after", len(rows) - 1):
        moved = _in_rows(dtype, _with_rows_moved(call, data, step) if data else
                         _with_factors_moved(call, dtype, step))
        gives = [~each for each in _which_differ(theirs, moved)]
        first, last = _window(differs[0][rows], gives[0][rows])
        if not gives[0][rows, first:last].all() or not all(given[wrong].all() for wrong, given in zip(differs, gives)):
            continue
        shows = (moved[0] != ours[0])[:, first:last].any(axis=1)
        whole = last - first == differs[0].shape[1]
        but = "" if rows[end] else f" but the {'last' if end else 'first'}"
        is_each = not (shows & ~rows)[np.arange(len(rows)) != end].any()
        said = f"each row{but}" if is_each else lines_text("row", lines_of(rows))
        numbers = 2 * (not is_each) + (first > 0) + (last < len(gives[0][0]))
        if whole:
            verb = "takes" if is_each else "take"
            yield Word(f"row-{side}", f"In y {said} {verb} the {what} of the row {side}.", True, numbers)
        else:
            columns = f"columns {first} to {last - 1}" if last - first > 1 else f"column {first}"
            yield Word(f"row-{side}", f"In y {columns} {verb} the {what} of the row {side}, in {said}.", True, numbers)
        return


# ---- other groups ----


def _orders(ends: np.ndarray, own: np.ndarray) -> Iterator[Tuple[str, np.ndarray]]:
    """The groups of rows in kernels that take them in another order."""
    last = len(ends) - 1
    sizes = np.diff(ends, prepend=0)
    yield "rows take the groups in reverse order", last - own
    yield "rows take the sizes of groups in reverse order", np.repeat(np.arange(last + 1), sizes[::-1])
    yield "each group but the first takes the scales of the group before", np.maximum(own - 1, 0)
    yield "each group but the last takes the scales of the group after", np.minimum(own + 1, last)


def _by_group(gives: np.ndarray, own: np.ndarray, wrong: np.ndarray) -> Optional[Dict[int, int]]:
    """For each group with wrong rows the group that gives all its rows; None if there is not one for each."""
    found = {}
    for group in np.unique(own[wrong]).tolist():
        others = np.flatnonzero(gives[:, own == group].all(axis=1))
        if not len(others):
            return None
        found[group] = int(others[0])
    return found


def _by_run(gives: np.ndarray, wrong: np.ndarray) -> List[Tuple[int, int, int]]:
    """Runs of wrong rows, as long as one group gives them: the first row, the last one, the group."""
    runs: List[Tuple[int, int, np.ndarray]] = []
    for row in np.flatnonzero(wrong).tolist():
        given = gives[:, row]
        if runs and row == runs[-1][1] + 1 and (given & runs[-1][2]).any():
            first, _, before = runs.pop()
            runs.append((first, row, before & given))
        else:
            runs.append((row, row, given))
    return [(first, last, int(given.argmax())) for first, last, given in runs]


def _group_words(call: Call, dtype: str, theirs: Sequence[Optional[np.ndarray]], ours: _Results) -> Iterator[Word]:
    """Rows with the scales of other groups."""
    if call.arguments.get("group_index") is None:
        return
    ends, = arrays(call.arguments, ("group_index",)).values()
    rows = np.arange(len(ours[0]))
    if len(ends) < 2 or not len(rows) or len(ends) * ours[0].size > _MOST_MADE:
        return
    own = np.searchsorted(ends, rows, "right")
    wrong = np.any([each.any(axis=1) for each in _which_differ(theirs, ours)], axis=0)
    gives = np.empty((len(ends), len(rows)), bool)
    for group in range(len(ends)):
        alone = np.where(np.arange(len(ends)) < group, 0, len(rows)).astype(ends.dtype)
        made = _in_rows(dtype, call.function(**{**call.arguments, "group_index": alone}))
        gives[group] = ~np.any([each.any(axis=1) for each in _which_differ(theirs, made)], axis=0)
    if not gives[:, wrong].any(axis=0).all():
        return
    text, numbers = next(((text, 0) for text, groups in _orders(ends, own) if gives[groups, rows].all()), ("", 0))
    if not text:
        groups = _by_group(gives, own, wrong)
        if groups:
            said = [f"group {group} takes group {other}'s scales" for group, other in groups.items()]
        else:
            said = [f"row {first} takes group {group}'s scales" if first == last else
                    f"rows {first} to {last} take group {group}'s scales"
                    for first, last, group in _by_run(gives, wrong)]
        text, numbers = ", ".join(said[:4]) + (", and so on" if len(said) > 4 else ""), len(said)
    yield Word("groups-elsewhere", f"{text[0].upper()}{text[1:]}.", True, numbers)


def words(call: Call, actual: Sequence[Optional[np.ndarray]]) -> List[Word]:
    """All that explain every element that differs from the library's results.

    actual: the dump's results, with None for what is not compared. Of blocks and groups there are no words."""
    y = call.ours[0]
    if y.ndim < 2 or not y.size or {"BY_BLOCK", "MICROSCALES"} & call.operator.traits:
        return []
    dtype = call.dtype
    with np.errstate(all="ignore"):
        ours = _in_rows(dtype, tuple(call.ours))
        given = _in_rows(dtype, tuple(b if a is None else a for a, b in zip(actual, call.ours)))
        theirs = [None if there is None else each for there, each in zip(actual, given)]
        return [*_row_words(call, dtype, theirs, ours), *_group_words(call, dtype, theirs, ours)]
