# SPDX-License-Identifier: BSD-3-Clause
"""Where a dump differs from what is expected, and what its values look like there."""
from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from npuquant_facts.dtypes import TYPES, WORDS
from npuquant_facts.operators import Operator

from .._tensors import NAMES, arrays, from_float, to_float, unpacked
from .reports import Facts, lines_text

_RESULTS = "y", "scale", "offset"
#: In very large dumps, elements at most for sums and for sorting.
_MOST_DIFFERING = 2**20


class Call(NamedTuple):
    """What a kernel's results are compared with."""

    function: Callable[..., Any]  # of the package
    arguments: Mapping[str, Any]
    ours: Sequence[np.ndarray]  # its results
    dtype: str  # of the first one
    operator: Operator  # whose steps these are the results of


class Word(NamedTuple):
    """What a dump holds where it differs."""

    name: str
    text: str
    explains_all: bool  # all elements that differ
    parameters: int  # free numbers: a value, a distance, or where each row comes from


class Matrix(NamedTuple):
    """A result that was compared, in rows and columns; the columns of scales are the blocks of a row."""

    name: str
    dtype: str
    theirs: np.ndarray
    expected: np.ndarray
    differs: np.ndarray

    def turned(self) -> Matrix:
        """With columns as rows."""
        turned = (np.ascontiguousarray(each.T) for each in (self.theirs, self.expected, self.differs))
        return Matrix(self.name, self.dtype, *turned)

    def pairs(self, places: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Some elements of the dump, and as they are expected."""
        return self.theirs.ravel()[places], self.expected.ravel()[places]


def values_of(array: np.ndarray, dtype: str, columns: int) -> np.ndarray:
    return np.ascontiguousarray(unpacked(array, TYPES[dtype])).reshape(-1, columns)


def bits_of(values: np.ndarray) -> np.ndarray:
    return values.view(f"u{values.itemsize}")


def are_same(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """In scales and offsets NaN equals NaN, and -0 equals 0."""
    if name == "y":
        return bits_of(a) == bits_of(b)
    return (a == b) | (np.isnan(a) & np.isnan(b))


@functools.lru_cache(maxsize=None)
def _values_of_codes(dtype: str) -> np.ndarray:
    return np.array([TYPES[dtype].value(code) for code in range(1 << TYPES[dtype].bits)])


def _numbers(dtype: str, values: np.ndarray) -> np.ndarray:
    if TYPES[dtype].has_codes:
        return _values_of_codes(dtype)[values]
    return (to_float(values, dtype) if TYPES[dtype].is_float else values).astype(np.float64)


def float_orders(values: np.ndarray) -> np.ndarray:
    """Numbers floats, or their bits, in their order: neighbours differ by 1, and both zeros are 0."""
    signed = values.view(f"i{values.itemsize}")
    size = signed & np.iinfo(signed.dtype).max
    return np.where(signed < 0, -size, size).astype(np.int64)


@functools.lru_cache(maxsize=None)
def _orders_of_codes(dtype: str) -> Tuple[np.ndarray, int]:
    """The order of each code, and the first one that no finite value has."""
    numbers = _values_of_codes(dtype)
    sizes = np.unique(abs(numbers[np.isfinite(numbers)]))
    if TYPES[dtype].kind == "SMALL_FLOAT":
        above = 8 - TYPES[dtype].bits
        return float_orders(np.arange(len(numbers), dtype=np.uint8) << above) >> above, len(sizes)
    orders = np.searchsorted(sizes, abs(numbers)) + np.isnan(numbers)
    return np.where(numbers < 0, -orders, orders), len(sizes)


def orders_of(dtype: str, values: np.ndarray) -> np.ndarray:
    """Numbers values, or their bits, in their order: neighbours differ by 1, and both zeros are 0. An integer is
    itself."""
    kind = TYPES[dtype]
    if kind.is_small_float:
        return _orders_of_codes(dtype)[0][values]
    if kind.is_float:
        return float_orders(values)
    order, sign = values.astype(np.int64), 1 << kind.bits - 1
    return order if values.dtype.kind == "i" or kind.kind in ("UNSIGNED", "EXPONENT") else (order ^ sign) - sign


def order_of_infinity(dtype: str) -> int:
    """The first order that no finite value has."""
    return _orders_of_codes(dtype)[1] if TYPES[dtype].is_small_float else TYPES[dtype].infinity


def _median(numbers: np.ndarray) -> float:
    middle = len(numbers) // 2
    return float(np.partition(numbers, middle)[middle])


def _is_most(count: int, of: int) -> bool:
    """Whether count is nine tenths or more: then a fit looks like the cause."""
    return count * 10 >= of * 9


def _percent(count: int, of: int) -> int:
    """Rounded, but 100 of all only."""
    rounded = round(count * 100 / of)
    return 99 if rounded == 100 and count < of else rounded


# ---- rows and columns ----


def _periods(hit: np.ndarray) -> Iterator[Tuple[int, int, int]]:
    """Periods, and which remainders the lines leave; only what chance would seldom place so."""
    divisor = int(np.gcd.reduce(hit - hit[0]))
    for period in [divisor] * (divisor > 1) + [8, 16, 32, 64]:
        rest = hit % period
        begin, end = int(rest.min()), int(rest.max())
        by_chance = period * ((end - begin + 1) / period)**(len(hit) - 1)
        if by_chance <= 0.001 and hit[-1] - hit[0] >= 2 * period:
            yield period, begin, end


def lines_of(is_hit: np.ndarray) -> Dict[str, Any]:
    """Which of the rows differ, or of the columns. step: from each to the next, or 0; only lines without a step have a
    period: each is "from" to "to" more than a multiple of it."""
    hit = np.flatnonzero(is_hit)
    steps = np.diff(hit)
    is_even = (steps == steps[:1]).all()
    lines: Dict[str, Any] = {"of": len(is_hit), "count": len(hit), "first": hit[:4].tolist(), "last": int(hit[-1]),
                             "step": int(steps[0]) if is_even and len(steps) else 0}
    if not is_even:
        closest = min(_periods(hit), key=lambda each: (each[2] - each[1] + 1) / each[0], default=None)
        lines.update(zip(("period", "from", "to"), closest or ()))
    return lines


def _tile_clue(differs: np.ndarray) -> Iterator[str]:
    """Where y differs, as tiles; nothing if tiles say no more than rows and columns, or have few elements each."""
    size = 16
    tiles = differs
    for axis, extent in enumerate(differs.shape):
        tiles = np.logical_or.reduceat(tiles, range(0, extent, size), axis=axis)
    count = np.count_nonzero(tiles)
    if 2 * count <= tiles.any(axis=0).sum() * tiles.any(axis=1).sum() and count * size <= np.count_nonzero(differs):
        row, column = size * np.argwhere(tiles)[0]
        yield (f"They are in {count} of {tiles.size} tiles of {size} rows and columns, the first from row {row} and "
               f"column {column} on.")


# ---- words for what the dump holds ----

#: Fewer differing elements may hold anything by chance.
LEAST_HELD = 8
#: Fewer bytes that tell a stride may be as expected by chance.
_LEAST_TOLD = 12


def _value_text(dtype: str, value: np.ndarray) -> str:
    return f"{_numbers(dtype, np.reshape(value, 1))[0]:.9g}" if TYPES[dtype].is_float_of_any_size else str(value)


def constant_lines(result: Matrix, unit: str) -> Iterator[Word]:
    """Rows, or columns, of one value; not those that are expected to have one."""
    held = np.count_nonzero(result.differs, axis=1)
    is_one, is_usual = ((bits == bits[:, :1]).all(axis=1) for bits in map(bits_of, (result.theirs, result.expected)))
    constant = is_one & ~is_usual & (held >= LEAST_HELD)
    if constant.any() and len(np.unique(bits_of(result.theirs)[constant, 0])) == 1:
        is_are = f"is a {unit}" if np.count_nonzero(constant) == 1 else f"are {unit}s"
        value = _value_text(result.dtype, result.theirs[constant][0, 0])
        yield Word(f"constant-{unit}s", f"In {result.name} {lines_text(unit, lines_of(constant))} {is_are} of {value}.",
                   bool(held[constant].sum() == held.sum()), 1)


def _moved_text(unit: str, moved: Sequence[Tuple[int, int]], of: int) -> Tuple[str, int]:
    """How lines that hold others are said, and the numbers it takes. moved: lines, and which ones they hold."""
    at, other = moved[0]
    if len(moved) == 1:
        return f"{unit} {at} holds {unit} {other}", 1
    if len({this - that for this, that in moved}) == 1:
        held = np.isin(np.arange(of), [this for this, _ in moved])
        side = "before" if at > other else "after"
        far = f"{abs(at - other)} {side}" if abs(at - other) > 1 else side
        return f"{lines_text(unit, lines_of(held))} hold the {unit} {far}", 2
    more = ", and so on" if len(moved) > 3 else ""
    said = ", ".join(f"{unit} {this} holds {unit} {that}" for this, that in moved[:3])
    return f"{len(moved)} of {of} {unit}s hold others: {said}{more}", len(moved)


def _sources(theirs: np.ndarray, expected: np.ndarray, differing: np.ndarray) -> Iterator[Tuple[int, int]]:
    """Differing lines, and the lines that they seem to hold: if possible, each the one at the same distance."""
    there, here = (np.array([hash(line.tobytes()) for line in lines]) for lines in (theirs[differing], expected))
    for distance in sorted(range(-64, 65), key=abs)[1:]:
        exists = (differing + distance >= 0) & (differing + distance < len(here))
        if exists.sum() > 1 and (there[exists] == here[differing[exists] + distance]).all():
            yield from ((at, at + distance) for at in differing[exists].tolist())
            return
    first = {line: at for at, line in reversed(list(enumerate(here.tolist())))}
    yield from ((at, first[line]) for at, line in zip(differing.tolist(), there.tolist()) if line in first)


def moved_lines(result: Matrix, unit: str) -> Iterator[Word]:
    """Rows, or columns, that hold others. A line of one value is like others by chance, and so is a single number that
    is no float."""
    theirs, expected = bits_of(result.theirs), bits_of(result.expected)
    if theirs.shape[1] > 1:
        varies = (theirs != theirs[:, :1]).any(axis=1)
    else:
        varies = np.isfinite(result.theirs[:, 0]) & (result.theirs[:, 0] != 0) & (result.name != "y")
    differing = np.flatnonzero(result.differs.any(axis=1) & varies)
    moved = [(at, other) for at, other in _sources(theirs, expected, differing)
             if (theirs[at] == expected[other]).all()]
    held = np.count_nonzero(result.differs[[at for at, _ in moved]])
    if held >= (LEAST_HELD if result.name == "y" else 1):
        text, numbers = _moved_text(unit, moved, len(theirs))
        yield Word(f"{unit}s-elsewhere", f"In {result.name} {text}.", held == np.count_nonzero(result.differs), numbers)


def _covered(flat: np.ndarray, stride: int, width: int, rows: int) -> np.ndarray:
    """What rows of this width cover that begin at multiples of the stride; the last may be cut off."""
    whole = min(rows, len(flat) // stride)
    rest = flat[whole * stride:][:width] if whole < rows else flat[:0]
    return np.concatenate([flat[:whole * stride].reshape(whole, stride)[:, :width].ravel(), rest])


def _are_right(result: Matrix, stride: int, width: int) -> bool:
    """Whether most elements between such rows are as they are expected: then they are in their places."""
    at = np.arange(result.theirs.size)
    between = (at % stride >= width) | (at // stride >= len(result.theirs))
    return bool(2 * np.count_nonzero(result.differs.ravel()[between]) < np.count_nonzero(between))


def _stride_words(result: Matrix) -> Iterator[Word]:
    """Rows of y, or single scales, that lie at other distances; all of what they cover counts as explained. Between the
    rows, and behind the last, may be anything but rows in their places."""
    flat, expected = bits_of(result.theirs).ravel(), bits_of(result.expected)
    expected = expected if result.name == "y" else expected.reshape(-1, 1)
    rows, columns = expected.shape
    probed = min(columns, 32)
    if rows < 2 or (columns > 1 and (expected[1, :probed] == expected[1, 0]).all()):
        return
    strides = np.arange(1, min(4 * columns + 64, len(flat)))
    strides = strides[strides != columns]
    for i in range(probed):  # in the second row, up to the third one
        at = strides + i
        unseen = (i >= strides) | (at >= len(flat))
        strides = strides[unseen | (flat[np.minimum(at, len(flat) - 1)] == expected[1, i])]
    for stride in strides[-64:].tolist():
        width = min(stride, columns)
        theirs, usual = (_covered(each, stride, width, rows) for each in (flat, expected.ravel()))
        right = expected[:, :width].ravel()[:len(theirs)]
        told = np.count_nonzero(right != usual)
        if told * theirs.itemsize < _LEAST_TOLD or (theirs != right).any() or _are_right(result, stride, width):
            continue
        text = f"In {result.name} rows lie {stride} apart and not {columns}"
        if result.name != "y":
            text = f"The {result.name}s lie {stride * flat.itemsize} bytes apart"
        elif stride < columns:
            text += f": the next one overwrites each from column {stride} on"
        yield Word("stride", f"{text}.", True, 1)
        return


def _clamp_words(result: Matrix) -> Iterator[Word]:
    """Elements that hold the least or the largest value of the dump, and should be beyond."""
    held = bits_of(result.theirs)[result.differs]
    others = held[held != held[0]]
    if (others != others[:1]).any():  # more than two values: seen before the numbers of all elements are made
        return
    theirs, expected = (_numbers(result.dtype, each) for each in (result.theirs, result.expected))
    low, high = np.fmin.reduce(theirs, axis=None), np.fmax.reduce(theirs, axis=None)  # NaN if all are: no warning
    below, above = (theirs == low) & (expected < low), (theirs == high) & (expected > high)
    if (below | above)[result.differs].all():
        sides = [f"{side} {value:.9g}" for side, value, held in (("less than", low, below), ("more than", high, above))
                 if held.any()]
        yield Word("clamped", f"{result.name} is never {' or '.join(sides)}, and just that where it should be.", True,
                   len(sides))


def _one_number(result: Matrix) -> Iterator[Word]:
    """A scale or offset that is the same everywhere, but should not be."""
    theirs, expected = result.theirs.ravel(), bits_of(result.expected).ravel()
    number = theirs[0]
    if np.isfinite(number) and number != 0 and (theirs == number).all() and (expected != expected[0]).any():
        unit = "block" if result.theirs.shape[1] > 1 else "row"
        text = f"Every {result.name} is {str(number)}, whatever the {unit}: one from elsewhere."
        yield Word("one-number", text, False, 1)


def _words(result: Matrix) -> List[Word]:
    rows, columns = result.theirs.shape
    words: List[Word] = list(_one_number(result)) if result.name != "y" else []
    if words:
        return words
    if (columns > 1 or result.name != "y") and rows <= 2**16:
        words += [*(constant_lines(result, "row") if columns > 1 else ()), *moved_lines(result, "row")]
    if not words and rows > 1 and columns <= 2**16:
        turned = result.turned()
        words += [*constant_lines(turned, "column"), *moved_lines(turned, "column")]
    if not any(word.explains_all for word in words):
        stride = list(_stride_words(result))
        words = stride or words
    if any(word.name == "stride" for word in words):
        return words
    held = result.theirs[result.differs]
    if not words and len(held) >= LEAST_HELD:
        words += _clamp_words(result)
    is_said = any(word.explains_all for word in words)
    if not is_said and len(held) >= LEAST_HELD and (bits_of(held) == bits_of(held)[0]).all():
        value, kind = _value_text(result.dtype, held[0]), TYPES[result.dtype]
        ends = () if kind.is_float else (kind.least, kind.most)
        saturates = _numbers(result.dtype, held[:1])[0] in ends  # so other mistakes leave the same
        right = np.unique(result.expected[result.differs])
        few = len(right) < LEAST_HELD  # then the mistake may be one of arithmetic, such as a dead zone
        said = " or ".join(_value_text(result.dtype, each) for each in right) if few else ""
        text = f"{result.name} is {value} in every element that differs{f', and should be {said}' if few else ''}."
        words.insert(0, Word("constant", text, not (saturates or few), 1))
    return words


# ---- the commonest differences ----


def _common_clue(result: Matrix, steps: np.ndarray, looked_at: int) -> Iterator[str]:
    """Of fewer than 8 elements the user can look at each. More steps of a float do not come from rounding."""
    if looked_at < 8 or not len(steps):
        return
    least = steps.min()
    if steps.max() - least < len(steps):  # faster than sorting
        counts = np.bincount(steps - least)
        found = np.flatnonzero(counts)
        found, counts = found + least, counts[found]
    else:
        found, counts = np.unique(steps, return_counts=True)
    commonest = np.argsort(-counts, kind="stable")[:3]
    is_float = TYPES[result.dtype].is_float_of_any_size
    if counts[commonest].sum() < 0.75 * looked_at or (is_float and abs(found[commonest[0]]) > 64):
        return
    shares = [(step, _percent(count, looked_at)) for step, count in zip(found[commonest], counts[commonest].tolist())]
    said = ", ".join(f"{step:+d} in {share} %" for step, share in shares if share > 0)
    unit = f", in steps of {result.dtype}" if is_float else ""
    yield f"Differences of {result.name}, dump minus expected{unit}{': ' if said else ''}{said}."


# ---- fits ----


def _is_integer(number: float) -> bool:
    """Whether float32 has the number as an integer."""
    return abs(number - round(number)) <= abs(number) * 2**-22


def _quotient(factor: float) -> str:
    """' (128 / 127)' for a factor that is such a quotient of small numbers, and no short decimal."""
    largest = 256
    if not _is_integer(factor * 1000):
        for below in range(2, largest + 1):
            above = round(factor * below)
            if 0 < above <= largest and _is_integer(factor * below):
                return f" ({above} / {below})"
    return ""


def _float_clue(result: Matrix, theirs: np.ndarray, expected: np.ndarray, of: int) -> Iterator[str]:
    """A factor of all differing elements, or an addend. Of a single element it would always fit, so it tells something
    only if the result has no other."""
    def near(fitted: np.ndarray) -> int:
        """Counts the elements that are given but for a few steps: rounded values do not give a factor more exactly."""
        largest = np.maximum(np.maximum(abs(theirs), abs(expected)), abs(fitted))
        kind = TYPES[result.dtype]
        unit = np.frexp(largest)[1] - 1 - kind.mantissa
        steps = 4.0 if result.dtype == "float32" else 1.0 if kind.is_small_float else 2.0
        return np.count_nonzero(abs(fitted - theirs) <= np.ldexp(steps, unit))

    fits: List[Tuple[np.ndarray, str]] = []
    quotients = (theirs / expected)[expected != 0]
    factor = _median(quotients) if len(quotients) else 1
    if factor not in (0, 1) and np.isfinite(factor) and (of > 1 or result.theirs.size == 1):
        fits.append((factor * expected, f"{factor:.7g}{_quotient(factor)} times what is expected"))
    if of > 1:
        addend = _median(theirs - expected)
        fits.append((expected + addend, f"{abs(addend):.7g} {'more' if addend > 0 else 'less'} than expected"))
    for fitted, size in fits:
        given = near(fitted)
        if _is_most(given, of) and 2 * near(expected) < given:
            yield f"But for its last bits, {result.name} is {size} in {given} of {of} differing elements."
            return


def _line(t: np.ndarray, codes: np.ndarray) -> Tuple[float, float]:
    """A line through the medians of slopes between points that are far apart; then the least-squares line through the
    points that it misses by one code at most."""
    order, half = t.argsort(kind="stable"), len(t) // 2
    low, high = order[:half], order[half:2 * half]
    apart = t[high] > t[low]
    slopes = (codes[high] - codes[low])[apart] / (t[high] - t[low])[apart]
    factor = _median(slopes) if len(slopes) else 1
    addend = _median(codes - factor * t)
    for _ in range(2):
        near = abs(factor * t + addend - codes) <= 1
        if np.ptp(t[near]) > 0:
            middle, mean = t[near].mean(), codes[near].mean()
            factor = float((t[near] - middle) @ (codes[near] - mean) / ((t[near] - middle)**2).sum())
            addend = float(mean - factor * middle)
    return factor, addend


def _integer_clue(result: Matrix, points: np.ndarray, shift: float) -> Iterator[str]:
    """A line that gives most elements. It does not describe noise, or a mistake that moves some elements by a code.
    Factor and addend get as few digits as give about as many elements.

    points: elements, and their values before rounding; shift: 128 if uint8 is made of int8."""
    codes, expected = (_numbers(result.dtype, each) - shift for each in result.pairs(points["at"]))
    low, high = TYPES[result.dtype].least - shift, TYPES[result.dtype].most - shift
    taken = np.isfinite(points["t"]) & (codes > low) & (codes < high)
    t, codes, expected = points["t"][taken], codes[taken], expected[taken]
    of = len(t)
    if of < 64:
        return

    def misses(line: Tuple[float, float]) -> np.ndarray:
        return abs((line[0] * t + line[1]).round().clip(low, high) - codes)

    line = _line(t, codes)
    most = np.count_nonzero(misses(line) == 0)
    shorter = [(float(f"{line[0]:.{digits}g}"), round(line[1], decimals))
               for digits in range(1, 6) for decimals in (0, 3)]
    enough = (each for each in shorter if np.count_nonzero(misses(each) == 0) >= most - most // 100)
    factor, addend = next(enough, shorter[-1])
    missed = misses((factor, addend))
    given, before = np.count_nonzero(missed == 0), np.count_nonzero(expected == codes)
    if factor != 0 and _is_most(np.count_nonzero(missed <= 1), of) and 16 <= of - before >= 2 * (of - given):
        product = f" * {factor:.5g}" if factor != 1 else ""
        total = f" {'+' if addend > 0 else '-'} {abs(addend):.6g}" if addend != 0 else ""
        yield (f"{result.name} looks like the value before rounding{product}{total}, rounded: that gives "
               f"{_percent(given, of)} % of {of} elements that do not saturate, where {_percent(before, of)} % are as "
               "expected.")


# ---- parameters ----


#: Fewer elements of a channel have some offset by chance.
_LEAST_OF_CHANNEL = 4


def _offset_clue(call: Call, y: Matrix) -> Iterator[str]:
    """If the call has no offset: integers with which the library gives all of y, one or one for each channel."""
    given = call.arguments
    names = {tensor.role: tensor.npu_name for tensor in call.operator.inputs}
    if not {"SCALE", "OFFSET"} <= names.keys() or given[names["OFFSET"]] is not None:
        return
    scales = arrays(given, (names["SCALE"],))[names["SCALE"]]
    kind = NAMES[scales.dtype]
    channels = 1 if "GROUPS" in names else scales.size
    axis = given["axis"] if given.get("div_mode") or given.get("axis") == -2 else -1

    def by_channel(values: np.ndarray) -> np.ndarray:
        values = _numbers(y.dtype, values).reshape(*call.ours[0].shape[:-1], -1)
        return np.moveaxis(values, axis if channels > 1 else -1, -1).reshape(-1, channels)

    theirs, expected = map(by_channel, (y.theirs, y.expected))
    units = to_float(scales) if "READS_NARROW" in call.operator.traits else 1
    kind_of_y = TYPES[y.dtype]
    middle = kind_of_y.most / 2 if kind_of_y.kind == "UNSIGNED" else 0  # of the range, where values saturate least
    nearest = np.where(np.isfinite(theirs - expected), abs(theirs - middle), np.inf).argmin(axis=0)
    apart = (theirs - expected)[nearest, np.arange(channels)]
    offsets = np.nan_to_num(np.rint(apart / units)).astype(np.float32)
    one = np.full_like(offsets, _median(offsets))
    for values in [one, offsets] if len(theirs) >= _LEAST_OF_CHANNEL else [one]:
        shaped = from_float(values, kind).reshape(-1 if "GROUPS" in names else scales.shape)
        made = call.function(**{**given, names["OFFSET"]: shaped})
        if are_same("y", values_of(made, y.dtype, y.theirs.shape[1]), y.theirs).all():
            for_each, said = (" for each channel", values[:4]) if values is offsets else ("", values[:1])
            more = " and so on" if for_each and channels > 4 else ""
            yield (f"The call has no {names['OFFSET'].replace('_', ' ')}{for_each}, and with "
                   f"{', '.join(f'{offset:.9g}' for offset in said)}{more} it gives all of y.")
            return


class Scales:
    """The scales that the operator of a call gives to other rows of v: x times its smooth scales."""

    def __init__(self, call: Call):
        given = dict(call.arguments)
        x_name = next(name for name in (call.operator.inputs[0].npu_name, "input") if given.get(name) is not None)
        x = arrays(given, (x_name,))[x_name]
        smooth, index = arrays({"smooth_scales": None, "group_index": None, **given}, (),
                               ("smooth_scales", "group_index")).values()
        self.shape = x.shape
        self.v = to_float(x).reshape(-1, x.shape[-1])
        if smooth is not None:
            factors = to_float(smooth)
            self.v = self.v * (factors if index is None else factors[np.searchsorted(index, range(len(self.v)), "right")])
        options = {name: value for name, value in given.items()
                   if name not in (x_name, "smooth_scales", "group_index", "quant_mode", "row_block_size")}
        self._operator = functools.partial(call.function, **options)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The scale of each row; NaN as infinity. Words need eight columns."""
        padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 8)), mode="edge")
        return _with_order(self._operator(padded)[1].reshape(len(rows), -1)[:, 0])


def _with_order(scales: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(scales), np.inf, scales)


def _least(most: int, holds: Callable[[int], bool]) -> int:
    """The least number from 1 to most where it holds, as from there on; most + 1 if it does not."""
    least = 1
    while least <= most:
        middle = (least + most) // 2
        least, most = (least, middle - 1) if holds(middle) else (middle + 1, most)
    return least


def _columns_alone(scales: Scales, theirs: np.ndarray) -> Iterator[str]:
    """The first or last columns that alone give all scales. Of several numbers of columns, takes the multiple of the
    largest power of two."""
    columns = scales.v.shape[1]
    for last in False, True:
        def given(count: int) -> np.ndarray:
            return sign * scales(scales.v[:, columns - count:] if last else scales.v[:, :count])

        sign = 1
        sign = 1 if (given(columns) >= given(1)).all() else -1  # the scale may be what x is multiplied by
        least = _least(columns, lambda count: bool((given(count) >= sign * theirs).all()))
        most = _least(columns, lambda count: bool((given(count) > sign * theirs).any())) - 1
        if least <= most:
            while most & (most - 1) >= least:
                most &= most - 1
            begin, end = (columns - most, columns) if last else (0, most)
            yield f"All scales are those that columns {f'{begin} to {end - 1}' if end - begin > 1 else begin} alone give."
            return


def _element_alone(scales: Scales, theirs: np.ndarray, symmetric: bool, own: np.ndarray,
                   near: np.ndarray) -> Tuple[str, int]:
    """The first of some elements that as an extreme gives a scale, and which extreme. Else of no extreme.

    own: the elements of the scale; near: where to look."""
    v = scales.v.ravel()
    others = {"m": v[near]} if symmetric else {"hi": v[own].min(), "lo": v[own].max()}
    found = []
    for extreme, other in others.items():
        rows = np.stack(np.broadcast_arrays(v[near], other), axis=1)
        found += [(int(hit), extreme) for hit in np.flatnonzero(scales(rows) == theirs)[:1]]
    hit, extreme = min(found, default=(0, ""))
    return extreme, int(near[hit])


def _source_clues(facts: Facts, call: Call, scale: Matrix) -> Iterator[str]:
    """Where the scales come from."""
    scales, theirs = Scales(call), _with_order(scale.theirs.ravel())
    rows, columns = scales.v.shape
    matrix = scales.shape[-2] if len(scales.shape) > 1 else 1
    height = min(call.arguments.get("row_block_size", 1), matrix)
    if len(theirs) == rows > 1 == height:
        yield from _columns_alone(scales, theirs)
    first = int(np.flatnonzero(scale.differs)[0])
    length = min(call.arguments.get("col_block_size", columns), columns)
    own = np.arange(scales.v.size)
    if len(theirs) > 1:
        bands = -(-matrix // height)
        band, block = divmod(first, len(theirs) // (rows // matrix * bands))
        in_matrix = own.reshape(-1, matrix, columns)[band // bands]
        top, left = band % bands * height, block * length
        own = in_matrix[top:top + height, left:left + length].ravel()
    begin, end = int(own[0]), int(own[-1]) + 1
    near = np.r_[own, max(begin - length, 0):begin, end:min(end + length, scales.v.size)]
    symmetric = "SYMMETRIC" in call.operator.traits
    extreme, at = _element_alone(scales, theirs[first], symmetric, own, near)
    if extreme:
        index, place = (list(map(int, np.unravel_index(flat, shape)))
                        for flat, shape in ((first, call.ours[1].shape), (at, scales.shape)))
        value = f"{'v' if facts['is_smooth'] or 'BY_RULE' in call.operator.traits else 'x'}{place}"
        yield f"scale{index} of the dump is the scale for {extreme} = {f'|{value}|' if symmetric else value}."


# ---- all of it ----


def _value_clues(facts: Facts, result: Matrix) -> Iterator[str]:
    if result.name == "y" and facts["is_one_value"]:
        return
    places = np.flatnonzero(result.differs)
    places = places[::1 + (len(places) - 1) // _MOST_DIFFERING]
    theirs, expected = result.pairs(places)
    steps = orders_of(result.dtype, theirs) - orders_of(result.dtype, expected)
    if TYPES[result.dtype].is_integer:
        yield from _common_clue(result, steps, len(places))
        points = np.dtype([("at", np.uintp), ("t", np.float64)], align=True)
        yield from _integer_clue(result, np.frombuffer(facts["remainder"]["points"], points),
                                 facts["remainder"]["shift"])
        return
    theirs, expected = _numbers(result.dtype, theirs), _numbers(result.dtype, expected)
    finite = np.isfinite(theirs) & np.isfinite(expected)
    yield from _common_clue(result, steps[finite], len(places))
    if finite.any():
        yield from _float_clue(result, theirs[finite], expected[finite], len(places))


def _clues(facts: Facts, call: Call, results: Sequence[Matrix]) -> Iterator[str]:
    for result in results:
        if result.name == "y":
            yield from _tile_clue(result.differs)
    for result in results:
        if result.dtype not in WORDS:
            yield from _value_clues(facts, result)
    for result in results:
        if result.name == "y" and not facts["remainder"]["expected"][0]:
            yield from _offset_clue(call, result)
        if result.dtype == "float32" and result.name == "scale" and not facts["remainder"]["expected"][1]:
            yield from _source_clues(facts, call, result)


@np.errstate(all="ignore")
def describe(facts: Facts, call: Call, actual: Sequence[Any], others: Sequence[Word]) -> Dict[str, Any]:
    """The places of what nothing explains, words for what is there, and clues, which are sentences, those of the words
    too; no words and clues if the dump is within the device's division.

    facts: of _native; actual: the dump's results, with None for what is not compared; others: words for all that
    differs."""
    said: Dict[str, Any] = {name: {"elements": 0} for name in _RESULTS}
    results: List[Matrix] = []
    compared = [each for each in zip(call.ours, actual, facts["remainder"]["expected"]) if each[1] is not None]
    for (right, array, given), result in zip(compared, facts["results"]):
        if not result["differing"] or facts["verdict"] in ("explained", "possible"):
            continue
        name, dtype = result["name"], result["dtype"]
        right = right if given is None else np.frombuffer(given, right.dtype)
        theirs, expected = (values_of(each, dtype, result["columns"]) for each in (array, right))
        differs = ~are_same(name, theirs, expected)
        elements = np.count_nonzero(differs)
        if elements:
            said[name] = {"elements": elements, "rows": lines_of(differs.any(axis=1)),
                          "columns": lines_of(differs.any(axis=0))}
            results.append(Matrix(name, dtype, theirs, expected, differs))
    said.update(words=[], clues=[])
    if facts["verdict"] != "admissible":
        words = [word for result in results for word in _words(result)
                 if not (result.name == "y" and facts["is_one_value"])]
        words.sort(key=lambda word: word.name != "one-number")  # the simplest statement first
        words = [word._replace(explains_all=word.explains_all and len(results) == 1) for word in words]
        said["words"] = [*words, *others]
        said["clues"] = [word.text for word in said["words"]] + list(_clues(facts, call, results))
    return said


# ---- a verdict of words ----

_ADVICE = {
    "groups-elsewhere": "Check how the ends of groups are read, and which scales each group is given.",
    "row-": "Check where each row begins and ends, and when its parameters are loaded.",
    "convention": "Compare with that convention, or check the options that the kernel has.",
    "clamped": "Check the bounds to which the kernel clamps, and whether it clamps twice.",
    "constant": "Something else wrote there, or nothing did: compare the places with the kernel's blocks.",
    "elsewhere": "Check how rows and columns are numbered where results are stored.",
    "stride": "Check the distance of rows in the tensor that was saved: a padded row is longer.",
}


def conclude(facts: Facts) -> Facts:
    """If no hypothesis is named, but one word explains all that differs, the word is the first finding."""
    words = [word for word in facts["remainder"]["words"] if word.explains_all]
    if facts["verdict"] != "none" or not words:
        return facts
    word = min(words, key=lambda each: each.parameters)
    prior = -(facts["rare"] + facts["number"] * word.parameters)
    score = prior + facts["worth"]
    if score < -facts["rare"]:
        return facts
    advice = next(advice for name, advice in _ADVICE.items() if name in word.name)
    hypothesis = {"name": word.name, "what": f"leaves this: {word.text[0].lower()}{word.text[1:-1]}", "advice": advice}
    differing = sum(result["differing"] for result in facts["results"])
    finding = {"hypotheses": [hypothesis], "explained": differing, "unexplained": 0, "newly_wrong": 0, "prior": prior,
               "gained": facts["worth"], "score": score, "numbers": {}, "layout": None, "part": None}
    rivals = {"is_sure": True, "is_single": False, "has_rest": False, "device": None, "other_cause": 0.0}
    return {**facts, "rivals": rivals, "verdict": "explained" if score >= facts["proof"] else "possible", "first_place": 1,
            "findings": [finding, *facts["findings"][facts["first_place"]:]]}
