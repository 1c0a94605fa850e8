# SPDX-License-Identifier: BSD-3-Clause
"""Compares a result of npuquant with a file, or two files: how far apart the two are, and where."""
from __future__ import annotations

from itertools import islice
from math import prod
from typing import Iterator, List, NamedTuple, Tuple

import numpy as np

from npuquant._causes.remainder import order_of_infinity, orders_of
from npuquant._causes.reports import format_value
from npuquant._tensors import unpacked
from npuquant_facts.dtypes import TYPES, WORDS

from .files import Tensor

#: How many elements are compared at a time. A block and what is computed of it fit in a cache. With larger arrays the
#: C library takes their memory from the system each time.
_BLOCK = 2**14

_OFFSET_BITS = 0x1FF << 37
#: The parts of a word of trans-quant-param.
_FIELDS = {"the scale": 2**32 - 1, "the offset": _OFFSET_BITS, "other bits": 2**64 - 2**32 - _OFFSET_BITS}

_MOST_BARS = 8
_BAR_WIDTH = 40
_MOST_RANGES = 8
_MOST_MOVED = 3


# ---- values ----------------------------------------------------------------------------------------------------------


def _format_element(dtype: str, bits: int) -> str:
    """The value, and the fields of a word."""
    if dtype not in WORDS:
        return format_value(dtype, bits)
    offset = bits >> 37 & 0x1FF
    return (f"{format_value(dtype, bits)} (scale {format_value('float32', bits & 0xFFFFFFFF).split()[0]}, "
            f"offset {offset if offset < 256 else offset - 512})")


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}")


def _mix(values: np.ndarray) -> np.ndarray:
    """Spreads values over all 64-bit numbers, so that sums of different values differ."""
    values = (values ^ values >> 30) * 0xBF58476D1CE4E5B9
    values = (values ^ values >> 27) * 0x94D049BB133111EB
    return values ^ values >> 31


def _blocks(ours: np.ndarray, theirs: np.ndarray) -> Iterator[Tuple[int, np.ndarray, np.ndarray]]:
    """Blocks of elements in C order, whatever the layout of the two; each with the number of its first element."""
    start = 0
    for our_block, their_block in np.nditer([ours, theirs], ["buffered", "external_loop", "zerosize_ok"], order="C",
                                            buffersize=_BLOCK):
        yield start, our_block, their_block
        start += our_block.size


# ---- how far ---------------------------------------------------------------------------------------------------------


class _Bar(NamedTuple):
    """How many differences there are of some sizes, the least of them and the greatest."""

    elements: int
    least: int
    most: int

    def __str__(self) -> str:
        return f"{self.least:+d}" if self.least == self.most else f"{self.least:+d}..{self.most:+d}"


class _Histogram:
    """Differences by sign and power of 2: those from 2^i on are at 32 + i, and those from -2^i down at 31 - i. All are
    below 2^32."""

    def __init__(self) -> None:
        limits = np.iinfo(np.int64)
        self.counts = np.zeros(64, np.int64)
        self.least = np.full(64, limits.max)
        self.most = np.full(64, limits.min)

    def add(self, steps: np.ndarray) -> None:
        """Adds differences. Zeros of different signs, which a tolerance allows, are 0 apart and go with -1."""
        if steps.size == 0:
            return
        exponents = np.frexp(steps)[1]
        bars = np.where(steps < 0, 32 - exponents, 31 + exponents).astype(np.uint8)
        counts = np.bincount(bars, minlength=64)
        filled = np.flatnonzero(counts)
        grouped = steps[np.argsort(bars, kind="stable")]
        starts = (np.cumsum(counts) - counts)[filled]
        self.counts += counts
        self.least[filled] = np.minimum(self.least[filled], np.minimum.reduceat(grouped, starts))
        self.most[filled] = np.maximum(self.most[filled], np.maximum.reduceat(grouped, starts))

    def bars(self, width: int) -> List[_Bar]:
        """Joins `width` powers of 2 to a bar, and drops empty bars; the least first."""
        counts = self.counts.reshape(-1, width).sum(axis=1)
        least = self.least.reshape(-1, width).min(axis=1)
        most = self.most.reshape(-1, width).max(axis=1)
        return [_Bar(*bar) for bar in zip(counts.tolist(), least.tolist(), most.tolist()) if bar[0] > 0]

    def all(self) -> _Bar:
        """The sum, if there are differences."""
        return self.bars(64)[0]

    def lines(self) -> Iterator[str]:
        """The bars, unless one has all differences: the conclusion says that."""
        bars = next(bars for bars in map(self.bars, (1, 2, 4, 8, 16)) if len(bars) <= _MOST_BARS)
        if len(bars) < 2:
            return
        most = max(bar.elements for bar in bars)
        label_width = max(len(str(bar)) for bar in bars)
        count_width = len(str(most))
        for bar in bars:
            length = 1 + int(bar.elements / most * (_BAR_WIDTH - 1))
            yield f"  {bar!s:>{label_width}}  {bar.elements:>{count_width}}  {'#' * length}"


# ---- where -----------------------------------------------------------------------------------------------------------


def _ranges(chosen: np.ndarray) -> str:
    """The chosen indices: the first ranges of them, and the number of the others."""
    others = ~chosen
    extent, count = chosen.size, np.count_nonzero(chosen)
    ranges: List[str] = []
    shown = end = 0
    while shown < count and len(ranges) < _MOST_RANGES:
        begin = end + int(chosen[end:].argmax())
        end = begin + int(others[begin:].argmax()) if others[begin:].any() else extent
        shown += end - begin
        text = str(begin) if end - begin == 1 else f"{begin}..{end - 1}"
        if end - begin == count > 1 and (begin == 0 or end == extent):
            text += f" (the {'first' if begin == 0 else 'last'} {count})"
        ranges.append(text)
    return ", ".join(ranges) + (f", and {count - shown} more" if shown < count else "")


def _regular_steps(hits: np.ndarray) -> str:
    """The indices with differences, if there are three or more, and neighbours have the same distance, more than 1."""
    count = np.count_nonzero(hits)
    if count < 3:
        return ""
    first = int(hits.argmax())
    step = 1 + int(hits[first + 1:].argmax())
    last = first + (count - 1) * step
    is_regular = step > 1 and last < hits.size and hits[first:last + 1:step].all()
    return f"{first}..{last} in steps of {step}" if is_regular else ""


def _hits_line(name: str, hits: np.ndarray) -> Iterator[str]:
    """The line about the indices of a dimension with differences; none for an extent of 1."""
    extent, count = hits.size, np.count_nonzero(hits)
    if extent == 1:
        return
    if count == extent:
        yield f"  {name}: all {extent} hit"
        return
    where = _regular_steps(hits) or (_ranges(hits) if count <= extent // 2 else f"all but {_ranges(~hits)}")
    yield f"  {name}: {count} of {extent} hit: {where}"


# ---- all of it -------------------------------------------------------------------------------------------------------


def _share(count: int, total: int) -> str:
    """A percentage: small shares have two digits, and only all elements are 100."""
    percent = 100 * count / total
    if percent < 0.0001:
        return " (less than 0.0001 %)"
    return f" ({percent:.2g} %)" if percent < 10 else f" ({int(percent)} %)"


def _differ(count: int) -> str:
    return "differs" if count == 1 else "differ"


class _Differences(NamedTuple):
    """Some of the elements that differ."""

    places: np.ndarray  # among all values, in C order
    ours: np.ndarray  # the bits
    theirs: np.ndarray
    steps: np.ndarray  # theirs - ours: in ulps for floats, 0 for words
    infinite: np.ndarray  # one is NaN or an infinity: steps means nothing

    def of(self, which: np.ndarray) -> _Differences:
        return _Differences(*(part[which] for part in self))


class Comparison:
    """A pair of the same type and shape, and the sum of its differences. int8 goes with uint8.

    Args:
        ours: npuquant's result, or the first of two files.
        theirs: the file.
        tolerance: the steps that elements may be apart.
        is_parameter: True for a scale or an offset: an element for each row of x, compared as values. -0 equals 0, and
            NaN equals NaN.
        our_name, their_name: in the report.
    """

    def __init__(self, ours: Tensor, theirs: Tensor, tolerance: int = 0, is_parameter: bool = False,
                 our_name: str = "npuquant", their_name: str = "file") -> None:
        self._dtype = ours.dtype
        # A file may not tell its type, but int8 and uint8 stay.
        self._their_dtype = theirs.dtype if theirs.dtype in ("int8", "uint8") else ours.dtype
        self._ours, self._theirs = _bits(ours.array), _bits(theirs.array)
        self._tolerance = tolerance
        self._is_parameter = is_parameter
        self._our_name, self._their_name = our_name, their_name
        self._kind = TYPES[ours.dtype]
        self._shape = self._kind.in_values(ours.array.shape)
        self._elements = prod(self._shape)
        #: The number of elements that differ beyond the tolerance.
        self.differ = 0
        self._infinite = self._zeros = 0
        self._histogram, self._tolerated = _Histogram(), _Histogram()
        self._fields = dict.fromkeys(_FIELDS, 0)
        if self._elements > 0:  # other extents may be anything
            self._sum()

    @property
    def _is_float(self) -> bool:
        return self._kind.is_float_of_any_size

    @property
    def _unit(self) -> str:
        return " ulp" if self._is_float else ""

    # -- single differences --

    def _unequal(self) -> Iterator[Tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Blocks of elements with different bits, or of two types with different numbers: places and bits."""
        for start, ours, theirs in _blocks(self._ours, self._theirs):
            if self._dtype == self._their_dtype:
                places = np.flatnonzero(ours != theirs)
            else:
                places = np.flatnonzero(orders_of(self._dtype, ours) != orders_of(self._their_dtype, theirs))
            if places.size == 0:
                continue
            ours, theirs = ours[places], theirs[places]
            places += start
            if self._kind.elements > 1:
                ours, theirs = unpacked(ours, self._kind), unpacked(theirs, self._kind)
                differ = ours != theirs
                places = (self._kind.elements * places[:, np.newaxis] + np.arange(self._kind.elements)).ravel()[differ]
                ours, theirs = ours[differ], theirs[differ]
            yield places, ours, theirs

    def _measure(self, places: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> _Differences:
        """The distances of unequal elements. Parameters with the same value are left out."""
        if self._dtype in WORDS:
            return _Differences(places, ours, theirs, np.zeros_like(places), np.zeros(places.size, bool))
        our_order, their_order = orders_of(self._dtype, ours), orders_of(self._their_dtype, theirs)
        steps = their_order - our_order
        if not self._is_float:
            return _Differences(places, ours, theirs, steps, np.zeros(places.size, bool))
        infinity = order_of_infinity(self._dtype)
        sizes = np.abs(our_order), np.abs(their_order)
        found = _Differences(places, ours, theirs, steps, np.maximum(*sizes) >= infinity)
        if not self._is_parameter:
            return found
        are_nan = np.minimum(*sizes) > infinity
        return found.of((steps != 0) & ~are_nan)

    def _differences(self) -> Iterator[Tuple[_Differences, np.ndarray]]:
        """Blocks of differences beyond the tolerance, each with the steps of those within it."""
        for places, ours, theirs in self._unequal():
            found = self._measure(places, ours, theirs)
            if self._tolerance == 0:
                yield found, found.steps[:0]
                continue
            near = (np.abs(found.steps) <= self._tolerance) & ~found.infinite
            yield found.of(~near), found.steps[near]

    def _sum(self) -> None:
        row_shape = self._shape if self._is_parameter else self._shape[:-1]
        length = self._elements // prod(row_shape)
        self._rows = np.zeros(row_shape, bool)
        self._columns = np.zeros(length, bool)
        for found, tolerated in self._differences():
            self._tolerated.add(tolerated)
            self.differ += found.places.size
            rows = found.places // length
            self._rows.reshape(-1)[rows] = True
            self._columns[found.places - rows * length] = True
            if self._dtype in WORDS:
                for name, mask in _FIELDS.items():
                    self._fields[name] += np.count_nonzero((found.ours ^ found.theirs) & np.uint64(mask))
                continue
            zeros = found.steps == 0
            self._infinite += np.count_nonzero(found.infinite)
            self._zeros += np.count_nonzero(zeros)
            self._histogram.add(found.steps[~(found.infinite | zeros)])

    # -- the report --

    def _steps(self, histogram: _Histogram) -> str:
        return f", by {histogram.all()}{self._unit} ({self._their_name} - {self._our_name})"

    def _accepted(self) -> str:
        """The conclusion without differences beyond the tolerance."""
        elements = f"all {self._elements} element{'' if self._elements == 1 else 's'}"
        if not self._tolerated.counts.any():
            return f"{elements} equal"
        count = self._tolerated.all().elements
        return (f"{elements} within {self._tolerance}{self._unit}: {count} {_differ(count)}"
                f"{_share(count, self._elements)}{self._steps(self._tolerated)}")

    def _conclusion(self) -> str:
        text = f"{self.differ} of {self._elements} element{'' if self._elements == 1 else 's'} {_differ(self.differ)}"
        if self._tolerance > 0:
            text += f" by more than {self._tolerance}{self._unit}"
        text += _share(self.differ, self._elements)
        if self._dtype in WORDS:
            text += ": " + ", ".join(f"{name} in {count}" for name, count in self._fields.items() if count > 0)
        elif self._histogram.counts.any():
            text += self._steps(self._histogram)
        if self._infinite > 0:
            text += f"; NaN or an infinity against another value in {self._infinite}"
        if self._zeros > 0:
            text += f"; zeros of the other sign in {self._zeros}"
        if self._tolerated.counts.any():
            text += f"; {self._tolerated.all().elements} more by no more than {self._tolerance}"
        return text

    def _place_lines(self) -> Iterator[str]:
        yield from _hits_line("rows", self._rows.reshape(-1))
        dimensions = range(self._rows.ndim)
        for dimension in dimensions if len(dimensions) > 1 else ():
            hits = self._rows.any(axis=tuple(other for other in dimensions if other != dimension))
            if not hits.all():
                yield from _hits_line(f"dimension {dimension}", hits)
        yield from _hits_line("columns" if len(self._shape) > 1 else "elements", self._columns)

    def _difference_lines(self) -> Iterator[str]:
        for found, _ in self._differences():
            for place, ours, theirs, steps, infinite in zip(*(part.tolist() for part in found)):
                index = ", ".join(map(str, np.unravel_index(place, self._shape)))
                ulps = f", {steps:+d} ulp" if self._is_float and not infinite and steps != 0 else ""
                yield (f"  [{index}]: {self._our_name} {_format_element(self._dtype, ours)}, "
                       f"{self._their_name} {_format_element(self._their_dtype, theirs)}{ulps}")

    def _lines(self, name: str, max_diffs: int) -> Iterator[str]:
        if self.differ == 0:
            yield f"{name}: {self._accepted()}"
            return
        yield f"{name}: {self._conclusion()}"
        yield from self._histogram.lines()
        yield from self._place_lines()
        yield from islice(self._difference_lines(), max_diffs)
        if 0 < max_diffs < self.differ:
            yield f"  ... and {self.differ - max_diffs} more (see --max-diffs)"

    def report(self, name: str, max_diffs: int) -> str:
        """The summary, the conclusion first, and at most max_diffs single differences."""
        return "".join(f"{line}\n" for line in self._lines(name, max_diffs))

    # -- two dumps --

    def _same_values(self) -> bool:
        """Whether both have the same values in any order."""
        surplus = 0
        for _, ours, theirs in self._unequal():
            if self._dtype != self._their_dtype:
                ours, theirs = orders_of(self._dtype, ours), orders_of(self._their_dtype, theirs)
            surplus += int(_mix(ours.astype(np.uint64)).sum()) - int(_mix(theirs.astype(np.uint64)).sum())
        return surplus % 2**64 == 0

    def _row_hashes(self) -> np.ndarray:
        """A hash for each of our rows, and for each of theirs."""
        hashes = np.zeros((2, self._rows.size), np.uint64)
        length = self._ours.size // self._rows.size
        for start, *blocks in _blocks(self._ours, self._theirs):
            rows, columns = np.divmod(np.arange(start, start + blocks[0].size), length)
            starts = np.flatnonzero(np.diff(rows, prepend=-1))
            for sums, block in zip(hashes, blocks):
                sums[rows[starts]] += np.add.reduceat(_mix(_mix(columns.astype(np.uint64)) + block), starts)
        return hashes

    def _moved_rows(self) -> str:
        """The differing rows, if each is another row of ours."""
        our_hashes, their_hashes = self._row_hashes()
        unlike = np.flatnonzero(our_hashes != their_hashes)
        here = unlike[np.argsort(our_hashes[unlike], kind="stable")]
        there = unlike[np.argsort(their_hashes[unlike], kind="stable")]
        ours, theirs = our_hashes[here], their_hashes[there]
        # Of rows with the same values, the first goes with the first.
        at = np.searchsorted(ours, theirs) + np.arange(theirs.size) - np.searchsorted(theirs, theirs)
        found = at < ours.size
        found[found] = ours[at[found]] == theirs[found]
        row_of = np.arange(self._rows.size)
        row_of[there[found]] = here[at[found]]
        hit = np.flatnonzero(self._rows)
        if (row_of[hit] == hit).any() or np.count_nonzero(~found) > self._rows.size // 8:
            return ""
        moves = (f"row {row} of {self._their_name} is row {row_of[row]} of {self._our_name}"
                 for row in hit[:_MOST_MOVED])
        return f": {hit.size} of {self._rows.size} rows moved; {', '.join(moves)}"

    def _remark_lines(self) -> Iterator[str]:
        if self.differ == 0:
            return
        ends = {abs(end) for bar in self._histogram.bars(1) for end in (bar.least, bar.most)}
        if not self._is_float and ends == {128} and not self._tolerated.counts.any():
            yield "  every difference is 128: one is int8, the other uint8"
        if self._is_float and ends <= {1} and self._infinite == 0:
            yield "  no difference is more than one unit in the last place"
        if self._same_values():
            yield f"  the same values in another order{self._moved_rows()}"

    def remarks(self) -> str:
        """How two different dumps may be related: a line for each way that fits."""
        return "".join(f"{line}\n" for line in self._remark_lines())
