# SPDX-License-Identifier: BSD-3-Clause
"""Inputs that show the known mistakes, each in its own way. Random values seldom do.

Equal seeds give equal inputs everywhere: RandomState has the same stream in all versions of NumPy, and what is done
with its numbers is exact, or rounded as IEEE 754 says. So there is no normal(), exp() or log() here.
"""
from __future__ import annotations

import functools
from operator import index
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from npuquant_facts.dtypes import TYPES
from npuquant_facts.operators import OPERATORS, extents

from .. import _native
from .._tensors import CODED, INPUTS, Result, from_float, packed, to_float

__tracebackhide__ = True  # pytest shows the line that calls the package

_MOST_DIMENSIONS = 8
_MOST_VALUES = 1 << 20  # of x: each mistake goes through all of them

_SPECIALS = np.array([
    0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 126.5, 127.5, -128.5, 128, -129, 255.5, 1e4, -1e4, 65504, 3e9, -3e9, 2.0**31,
    -2.0**31, 1e30, -1e30, 3.4028234663852886e38, np.inf, -np.inf, np.nan, 2.0**-126, 2.0**-127, -2.0**-149, 2.0**-140,
    6e-8])
_TINY = np.array([1e-3, 1e-5, 1e-6, 1e-7, 1e-9, 1e-11, 1e-13, 1e-30, 1e-36, 1e-39])
#: The largest float32 below a half: 0.5 cannot be added to it without rounding.
_BELOW_HALF = 0.5 - 2.0**-25
#: Significands at which the exponent of microscaling's scales changes by some rule, and numbers a little above.
_LIMITS = np.array([1, 1.5, 1.75, 1.875, 1.9375])
_LIMITS = np.concatenate([_LIMITS, _LIMITS + 2.0**-9, _LIMITS + 2.0**-23])
_ROW_KINDS = 16
_KINDS = {**CODED, **INPUTS}
_PASSES = 3
_DEFINITION = -1  # its number beside those of the mistakes
#: Elements to draw before two mistakes count as the same.
_TRIES = 500000

# ---- values of a type ----


def _stored(values: Any, kind: Result) -> np.ndarray:
    """Values in their type, saturated; an int4 in a byte of its own. All NaN are one: machines differ in theirs."""
    if kind.name in CODED:  # the values are codes
        return np.asarray(values).astype(np.uint8)
    values = np.asarray(values, np.float64)
    if kind.name == "bfloat16":
        return from_float(values.astype(np.float32), kind.name)
    if kind.dtype.kind == "f":
        made = values.astype(np.float32).astype(kind.dtype)
        return np.where(np.isnan(values), kind.dtype.type(np.nan), made)
    low, high = TYPES[kind.name].least, TYPES[kind.name].most
    integers = np.where(np.isnan(values), 0, np.clip(np.rint(values), low, high))
    return integers.astype(np.int8 if kind.elements > 1 else kind.dtype)


def _loaded(stored: np.ndarray) -> np.ndarray:
    """The values; bfloat16 is uint16. The scales of words."""
    if stored.dtype.itemsize == 8:
        return (stored.astype(np.uint64) & np.uint64(0xFFFFE000)).astype(np.uint32).view(np.float32).astype(np.float64)
    if stored.dtype == np.uint16:
        return to_float(stored).astype(np.float64)
    return stored.astype(np.float64)


def _packed(stored: np.ndarray, kind: Result) -> np.ndarray:
    """As an operator takes it, which is not changed later: int4 in words."""
    return packed(stored, TYPES[kind.name]) if kind.elements > 1 else stored.copy()


def _bits(stored: np.ndarray) -> np.ndarray:
    """The bits of values, of any type."""
    return stored.view(f"u{stored.dtype.itemsize}").astype(np.uint64)


class Random:
    """Arrays of random numbers."""

    def __init__(self, seed: int):
        self.state = np.random.RandomState(np.array([seed & 0xFFFFFFFF, seed >> 32], np.int64))

    def fraction(self, count: int) -> np.ndarray:
        return self.state.random_sample(count)

    def bits(self, count: int) -> np.ndarray:
        return self.state.randint(0, 2**32, count, np.uint32)

    def below(self, end: int, count: int) -> np.ndarray:
        return (self.fraction(count) * end).astype(np.intc)

    def one_in(self, number: int, count: int) -> np.ndarray:
        return self.below(number, count) == 0

    def pick(self, values: Any, count: int) -> np.ndarray:
        return np.asarray(values)[self.below(len(values), count)]

    def between(self, low: Any, high: Any, count: int) -> np.ndarray:
        return low + (high - low) * self.fraction(count)

    def half(self, end: float, count: int) -> np.ndarray:
        return np.rint(self.between(-end, end, count)) + 0.5

    def magnitude(self, low: int, high: int, count: int) -> np.ndarray:
        """From 2**low to 2**high, each power of two equally often."""
        return np.ldexp(self.between(1, 2, count), low + self.below(high - low, count))

    def normal(self, count: int) -> np.ndarray:
        """About normal, of mean 0 and variance 1."""
        total = np.full(count, -6.0)
        for _ in range(12):  # in this order: np.sum() has others
            total += self.fraction(count)
        return total

    def any(self, count: int) -> np.ndarray:
        return self.bits(count).view(np.float32).astype(np.float64)

    def near(self, values: np.ndarray) -> np.ndarray:
        """float32 that are the values, or up to two steps away."""
        near = values.astype(np.float32)
        steps = self.below(5, near.size) - 2
        ends = np.where(steps < 0, np.float32(-np.inf), np.float32(np.inf))
        for least in 1, 2:
            near = np.where(abs(steps) >= least, np.nextafter(near, ends), near)
        return near.astype(np.float64)


# ---- shapes and types ----


def _extents(shape: Any) -> Tuple[int, ...]:
    try:
        extents = tuple(shape)
    except TypeError:
        raise TypeError(f"shape: is {type(shape).__name__}; expected a tuple of integers") from None
    if not 1 <= len(extents) <= _MOST_DIMENSIONS:
        raise ValueError(f"shape: has {len(extents)} dimensions; expected 1 to {_MOST_DIMENSIONS}")
    count = 1
    for d, extent in enumerate(extents):
        if not hasattr(extent, "__index__"):
            raise TypeError(f"shape: is {type(extent).__name__}; expected an integer")
        if extent < 1:
            raise ValueError(f"shape: dimension {d} is {extent}; expected 1 or more")
        count *= index(extent)
        if count > _MOST_VALUES:
            raise ValueError(f"shape: has more values than {_MOST_VALUES}; expected fewer")
    return tuple(map(index, extents))


class Operand(NamedTuple):
    name: str
    kind: Result
    shape: Tuple[int, ...]  # in values


class Form:
    """The operands of a call by their roles. The library checks them, and the settings too."""

    def __init__(self, operator: str, shape: Any, types: Mapping[str, Optional[str]], settings: Mapping[str, Any]):
        """types: of each operand the name of its type, "" for the usual one, or None for no operand."""
        facts = OPERATORS[operator]
        self.traits, self.settings, self.shape = facts.traits, settings, _extents(shape)
        self.columns = self.shape[-1]
        self.count = int(np.prod(self.shape))
        self.rows = self.count // self.columns
        divides = settings.get("div_mode")
        self.divides = isinstance(divides, (bool, np.bool_)) and bool(divides)
        # of four groups the third is empty
        ends = [(self.rows + 3) // 4, (self.rows + 1) // 2, (self.rows + 1) // 2][:min(self.rows, 4) - 1]
        self.ends = np.array([*ends, self.rows])
        self.is_grouped = types.get("group_index") is not None
        self.row_group = np.searchsorted(self.ends, np.arange(self.rows), side="right") * self.is_grouped
        self.operands: Dict[str, Operand] = {}
        for tensor in facts.inputs:
            kind = types[tensor.npu_name]
            role = tensor.role.lower().replace("_", " ")
            like = self.operands.get({"offset": "scale", "smooth": "x"}.get(role, ""))
            if kind is not None:
                usual = [name for name in tensor.types if TYPES[name].elements == 1][-1]
                result = _KINDS[kind] if kind else like.kind if like else _KINDS[usual]
                self.operands[role] = Operand(tensor.npu_name, result, self._shape(tensor.shape))
        elements = self.operands["x"].kind.elements
        if self.columns % elements:
            hold = "bytes hold two elements" if elements == 2 else "words hold eight int4"
            raise ValueError(f"shape: dimension {len(self.shape) - 1} is {self.columns}; expected a multiple of "
                             f"{elements}, as {hold}")

    def _scaled_dimension(self) -> int:
        try:
            axis = index(self.settings.get("axis", -1))
        except TypeError:
            axis = -1
        if not (self.divides or axis == -2 or "READS_CODES" in self.traits):
            axis = -1
        axis += len(self.shape) * (axis < 0)
        return axis if 0 <= axis < len(self.shape) else 0

    def channels(self) -> np.ndarray:
        """Which of the scales each element has."""
        if "READS_CODES" in self.traits:
            return self.places_of_groups()
        columns = np.arange(self.columns)
        if self.is_grouped:
            return (self.row_group[:, np.newaxis] * self.columns + columns).ravel().astype(np.int64)
        d = self._scaled_dimension()
        channels = np.arange(self.shape[d], dtype=np.int64).reshape(-1, *[1] * (len(self.shape) - 1 - d))
        return np.broadcast_to(channels, self.shape).ravel()

    def places_of_groups(self) -> np.ndarray:
        """For each element the place of the scale of its group, in microscaling."""
        axis, length = int(self.settings["axis"]) % len(self.shape), self._length_of_groups()
        extent, inner = self.shape[axis], int(np.prod(self.shape[axis + 1:]))
        line, column = np.divmod(np.arange(self.count), inner)
        line, group = line // extent, line % extent // length
        return ((line * -(-extent // (2 * length)) + group // 2) * inner + column) * 2 + group % 2

    def _length_of_groups(self) -> int:
        length = self.settings.get("block_size", 32)
        return index(length) if hasattr(length, "__index__") and length > 0 else 32  # what is wrong, the operator says

    def _shape(self, rule: str) -> Tuple[int, ...]:
        return extents(rule, self.shape, self.ends.shape if self.is_grouped else (), block=self._length_of_groups(),
                       axis=self._scaled_dimension())

    def arrays(self, stored: Mapping[str, np.ndarray]) -> Dict[str, np.ndarray]:
        """The operands as the operator takes them, with any valid values where there are none yet."""
        arrays = {}
        for role, (name, kind, shape) in self.operands.items():
            shape = TYPES[kind.name].in_words(shape)
            if role in stored:
                arrays[name] = _packed(stored[role], kind).reshape(shape)
            elif role == "groups":
                arrays[name] = self.ends.astype(kind.dtype)
            else:  # bit 46 makes a word of them
                arrays[name] = np.full(shape, 2**46 if kind.dtype.itemsize == 8 else 0, kind.dtype)
        return arrays


# ---- values ----


class Parameters:
    """Draws the operands beside x."""

    def __init__(self, form: Form, y: str, random: Random):
        self.form, self.y, self.random = form, y, random
        self.kind = form.operands["x"].kind

    def scale(self, i: np.ndarray) -> np.ndarray:
        """Powers of two make exact halves. Some scales are very small, very large, infinite or NaN. In requant some are
        so small that sums of more than 24 bits matter."""
        random, n, traits = self.random, i.size, self.form.traits
        requant = "READS_WORDS" in traits
        multiplies = not (traits & {"FINDS_SCALES", "READS_NARROW", "READS_SUMS"} or self.form.divides)
        usual = np.ldexp(1.0, (-6 - 7 * (i // 16 % 3) * requant + 12 * multiplies).astype(np.intc))
        scale = usual * random.between(0.5, 2, n)
        k = i % 16
        cases = [(k == 0, usual), ((k == 3) | (k == 7), usual * 2),
                 ((k == 4) & requant, 2.0**-25),  # makes _BELOW_HALF from 2**24 - 1
                 (k == 5, -usual * random.between(1, 2, n)),
                 (k == 9, 2.0**-133 * random.between(1, 32, n)),  # subnormal in float32
                 (k == 11, 2.0**-126 * random.between(1, 4, n)),
                 (k == 13, 1e30 * random.between(1, 9, n)), (k == 15, np.where(i % 32 == 15, np.inf, np.nan))]
        return np.select([case for case, _ in cases], [value for _, value in cases], scale)

    def codes(self, i: np.ndarray) -> np.ndarray:
        """Codes of scales: those with rules of their own, and others by which products are small, large or usual in
        some type. Neighbours differ."""
        random, n = self.random, i.size
        near = 127 + i % 3 * 3 + random.below(3, n)
        return np.choose(np.minimum(i * 7 % 32, 11), [
            np.zeros(n), np.ones(n), random.pick([127, 128], n), np.full(n, 254), np.full(n, 255),
            2 + random.below(12, n), 240 + random.below(13, n), 96 + random.below(24, n), 128 + random.below(20, n),
            random.below(256, n), random.below(256, n), near])

    def offset(self, i: np.ndarray, kind: Result) -> np.ndarray:
        random, n = self.random, i.size
        packs = "MAKES_WORDS" in self.form.traits
        is_none = (i % 16 == 1) & TYPES[self.y].is_small_float  # a sum with another has no tiny values of many bits
        return np.where(is_none, 0, np.choose(i % 8, [
            random.between(-300, 300, n), random.between(-1, 1, n) / 16,
            random.between(2e3, 2e4, n) if kind.name == "int32" else random.between(-9, 9, n), random.half(100, n),
            np.where(i % 16 == 4, _BELOW_HALF, -_BELOW_HALF) if packs else random.between(-30, 30, n),
            np.rint(random.between(-20, 20, n)), random.pick(_SPECIALS, n) if packs else random.between(-40, 40, n),
            random.between(-30, 30, n)]))

    def drawn(self, role: str, operand: Operand) -> np.ndarray:
        random, kind = self.random, operand.kind
        n = int(np.prod(operand.shape, dtype=np.int64))
        i = np.arange(n)
        if kind.name in CODED:
            return _stored(self.codes(i), kind)
        if role == "smooth":
            # Within a group all are one number times a power of two, so a row can have equal products, to the bit. Some
            # are so large that an x that is subnormal in float32 counts.
            columns = self.form.columns
            is_wide = "float16" not in (kind.name, self.kind.name)
            factor = np.where((i % columns % 16 == 9) & is_wide, 2.0**100, np.ldexp(1.0, random.below(4, n) - 1))
            values = np.array([1.375, 1.625, 1.1875, 1.8125])[i // columns % 4] * factor
        elif role == "row scale":
            values = self.scale(i + 1) * np.ldexp(1.0, (2 - 8 * (i // 16 % 3)).astype(np.intc))
        elif role == "bias" and kind.name == "int32":
            values = np.where(i % 8 == 2, random.between(2e9, 2147483647, n), random.between(-3e4, 3e4, n))
        elif role == "bias":
            values = np.where(i % 8 == 4, 0, self.offset(i, kind))
        elif role == "offset" and n == 1:
            # A little more than a half, with a bit that float16 lacks. So sums can be halves, and a shorter type shows.
            values = np.array([2.5 + 2.0**-8 + 2.0**-11 if self.y == "quint4x2" else 20.5 + 2.0**-5 + 2.0**-8])
        elif role == "offset":
            values = self.offset(i, kind)
        elif kind.dtype.itemsize == 8:  # words
            offset = _stored(np.clip(self.offset(i, kind), -256, 255), INPUTS["int32"]).astype(np.uint64)
            low_bits = random.below(0x2000, n).astype(np.uint64)
            scale_bits = _bits(_stored(self.scale(i), INPUTS["float32"])) | low_bits
            nine_bits = (offset & np.uint64(0x1FF)) << np.uint64(37)
            return (np.uint64(1 << 46) | nine_bits | scale_bits).astype(kind.dtype)
        else:
            values = self.scale(i)
        return _stored(values, kind)


class Maker:
    """Draws the operands of a form, and changes them until mistakes show."""

    def __init__(self, form: Form, y: str, seed: int, keep: Callable[..., Any]):
        """y: the name of the type of the first result. keep(operands): the results of a call, and the call for _native."""
        self.form, self.random, self.keep, self.y = form, Random(seed), keep, y
        self.kind = form.operands["x"].kind
        # Dynamic quantisation to uint8 is that to int8, and 128 more.
        self.rounded = "int8" if "FINDS_SCALES" in form.traits and TYPES[y].kind == "UNSIGNED" else y
        self.parameters = Parameters(form, y, self.random)
        self.stored = {role: self.parameters.drawn(role, operand) for role, operand in form.operands.items()
                       if role not in ("x", "groups")}
        self.reserved = np.zeros(form.count, bool)  # elements of x that show a mistake: they stay
        self.mistakes: List[Tuple[int, int, int]] = []

    def _begin(self) -> None:
        """Draws x."""
        raise NotImplementedError

    def _separate(self, pairs: List[Tuple[int, int]]) -> None:
        """Draws anew until the mistakes of pairs differ; takes those out."""
        raise NotImplementedError

    def make(self) -> None:
        self._begin()
        hopeless: List[int] = []
        for _ in range(_PASSES):
            pairs = [pair for pair in self._compare() if pair[0] not in hopeless]
            if not pairs:
                return
            self._separate(pairs)
            hopeless += [number for number, _ in pairs]
        self._compare()

    def _target(self, n: int) -> np.ndarray:
        """t that may show a mistake: a half, a value near or beyond an end of the range, or any other; of a float type
        the middle between two neighbours, or near it, or a tiny value."""
        random, kind = self.random, TYPES[self.rounded]
        if kind.is_small_float:
            values = np.array([kind.value(code) for code in range(1 << kind.bits - 1)])
            sizes = np.sort(values[np.isfinite(values)])
            at = random.below(sizes.size - 1, n)
            middle = (sizes[at] + sizes[at + 1]) / 2
            below = np.ldexp(sizes[1] * random.fraction(n), -random.below(40, n) * random.one_in(2, n))
            beyond = np.where(random.one_in(2, n), sizes[-1] * random.between(1, 4, n), below)
            return np.where(random.one_in(8, n), beyond, middle) * random.pick([1, -1], n)
        if not kind.is_integer:
            half = np.uint32(0x8000 if self.y == "bfloat16" else 0x1000)
            exponent = np.where(random.one_in(8, n), random.below(8, n), random.below(48, n) + 96).astype(np.uint32)
            fraction = random.bits(n) & np.uint32(0x7FFFFF) & ~(half + half - np.uint32(1))
            return (exponent << np.uint32(23) | fraction | half).view(np.float32).astype(np.float64)
        end = {"quint4x2": 9, "uint8": 270, "int32": 1e5}.get(self.rounded, 140)
        target = np.choose(np.minimum(random.below(6, n), 3), [
            random.between(-end, end, n), random.between(-3 * end, 3 * end, n), random.half(8, n), random.half(end, n)])
        if "READS_WORDS" in self.form.traits:
            # Adding a half rounds. If x is not an integer, halves with x one step off give such values.
            target = np.where(random.one_in(8, n), random.pick([_BELOW_HALF, -_BELOW_HALF], n), target)
        elif self.rounded == "int32":
            target = np.where(random.one_in(8, n), random.between(-1, 1, n) * 2.0**24, target)
        if "FINDS_SCALES" not in self.form.traits:  # or an integer that some type before the clamp does not hold
            far = random.pick([-1, 1], n) * random.magnitude(14, 34, n)
            target = np.where(random.one_in(16, n), far, target)
        return target

    def _kept(self, x: Optional[np.ndarray] = None) -> Tuple[Any, Any]:
        return self.keep(self.form.arrays(self.stored if x is None else {**self.stored, "x": x}))

    def _predictions(self, x: Optional[np.ndarray] = None, trials: Any = b"") -> Callable[[int], Any]:
        """A function from the number of a mistake to the bits of the results; None if the mistake is not possible."""
        call = self._kept(x)[1]

        def predicted(number: int) -> Any:
            bits = _native.predict(call, number, trials)
            return None if bits is None else np.frombuffer(bits, np.uint64)
        return predicted

    def _compare(self) -> List[Tuple[int, int]]:
        """Finds the mistakes: number, how many elements change, and the first one with the same results. Returns pairs
        that are to differ, of a mistake and an earlier one, or the definition."""
        predicted = self._predictions()
        definition = predicted(_DEFINITION)
        first: Dict[int, int] = {}
        self.mistakes = []
        for number in range(len(_native.hypotheses())):
            bits = predicted(number)
            if bits is not None:
                changed = int(np.count_nonzero(bits != definition))
                self.mistakes.append((number, changed, first.setdefault(hash(bits.tobytes()), number)))
        return [(number, same if changed else _DEFINITION) for number, changed, same in self.mistakes
                if same != number or not changed]


class Elements(Maker):
    """Draws elements one by one: of operators that are given their scales."""

    def _begin(self) -> None:
        self.channel = self.form.channels()
        self.reserved_scales = np.zeros(self.channel.max() + 1, bool)
        self.stored["x"] = _stored(self._draw_x(np.arange(self.form.count)), self.kind)

    def _affine(self, i: np.ndarray) -> Tuple[Any, np.ndarray, Any, Any]:
        """The definition's t of element i is about (x + shift) * scale * row scale + offset."""
        form, at = self.form, self.channel[i]
        values = {role: _loaded(self.stored[role]) for role in self.stored if role != "x"}
        places = {"scale": at, "offset": at, "bias": i % form.columns, "row scale": i // form.columns}
        got = {role: values[role][places[role] if values[role].size > 1 else 0] for role in values}
        shifts = "READS_NARROW" in form.traits or ("bias" in got and form.operands["bias"].kind.name == "int32")
        offset = got.get("offset", got.get("bias", 0))
        return (*((offset, 0) if shifts else (0, offset)), 1 / got["scale"] if form.divides else got["scale"],
                got.get("row scale", 1))

    def _draw_x(self, i: np.ndarray) -> np.ndarray:
        """New values for elements of x."""
        form, random, n = self.form, self.random, i.size
        if "MAKES_WORDS" in form.traits:
            return np.where(random.one_in(2, n), random.any(n), self.parameters.scale(i))
        if "READS_NARROW" in form.traits:
            return random.between(-128.49, 127.49, n)
        if "READS_CODES" in form.traits:
            return random.below(1 << TYPES[self.kind.name].bits, n)
        shift, offset, scale, row_scale = self._affine(i)
        offset = np.where(random.one_in(4, n), 0, offset)  # a half before it is added
        x = (self._target(n) - offset) / row_scale / scale - shift
        normal = random.normal(n)
        if "READS_SUMS" in form.traits:
            ends = np.where(random.one_in(2, n), 2.0**31 - 1, -2.0**31)
            others = [random.bits(n).view(np.int32).astype(np.float64), normal * random.magnitude(0, 26, n),
                      np.where(random.one_in(4, n), ends, 2.0**24 + random.between(0, 64, n))]
        else:
            others = [random.any(n), normal * (40 / scale), random.pick(_SPECIALS, n)]
            x = random.near(x)
        return np.choose(np.minimum(random.below(8, n), 3), [*others, x])

    def _draw_scale(self, i: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Scales that give elements i a t that may show a mistake, or a product so small that adding the offset loses
        it."""
        random, n = self.random, i.size
        kind = self.form.operands["scale"].kind
        if kind.name in CODED:
            return _stored(self.parameters.codes(random.below(32, n)), kind)
        shift, offset, _, row_scale = self._affine(i)
        product = np.where(random.one_in(8, n), random.between(-1, 1, n) * 2.0**-24, self._target(n) - offset)
        scale = product / row_scale / (x + shift)
        scale = random.near(1 / scale if self.form.divides else scale)
        if kind.dtype.itemsize == 8:
            words = self.stored["scale"][self.channel[i]].astype(np.uint64)
            return (words & ~np.uint64(0xFFFFFFFF) | _bits(_stored(scale, INPUTS["float32"]))).astype(kind.dtype)
        return _stored(scale, kind)

    def _separate(self, pairs: List[Tuple[int, int]]) -> None:
        """Draws elements and their scales anew, one by one, until the mistakes of pairs differ; takes those out."""
        stored, drawn, n = self.stored, 0, 1024
        while pairs and drawn < _TRIES:
            n *= 2
            drawn += n
            i = self.random.below(self.form.count, n).astype(np.int64)
            at = self.channel[i]
            new = {"x": _stored(self._draw_x(i), self.kind)}
            redraws = np.zeros(n, bool)
            if "scale" in stored:
                redraws = self.random.one_in(3, n) & ~self.reserved_scales[at]
                new["scale"] = np.where(redraws, self._draw_scale(i, _loaded(new["x"])), stored["scale"][at])
            trials = np.array([i, _bits(new["x"]), at, _bits(new.get("scale", at))], np.uint64)
            predicted = functools.lru_cache(maxsize=None)(self._predictions(trials=trials))
            free = ~self.reserved[i]
            taken: List[int] = []
            for pair in pairs[:]:
                differ = predicted(pair[0]) != predicted(pair[1])
                found = np.flatnonzero(differ & free)
                if differ[taken].any():
                    pairs.remove(pair)
                elif found.size:
                    t = found[0]
                    pairs.remove(pair)
                    taken.append(t)
                    self.reserved[i[t]] = self.reserved_scales[at[t]] = True
                    free &= (i != i[t]) & ((at != at[t]) | ~(redraws | redraws[t]))
                    for role, place in ("x", i[t]), ("scale", at[t]):
                        if role in new:
                            stored[role][place] = new[role][t]


class Tokens(Maker):
    """Draws rows, blocks, or the whole tensor: of operators that find their scales."""

    def _dmax(self) -> float:
        divisor = "MICROSCALES" in self.form.traits  # dst_type_max is one
        return float(not divisor and self.form.settings.get("dst_type_max") or TYPES[self.rounded].most)

    def _find_tokens(self, tokens: int) -> None:
        """A token is a row, a block, or the whole tensor: the elements that share a scale. In `order` they are those of
        one token after the other: from `begin` on `length` of them, the first of which is `first`. `place` is where the
        tokens have their scales, of so many: a pair of groups may lack the second."""
        form = self.form
        self.scales, self.place = tokens, np.arange(tokens)
        if "BY_BLOCK" in form.traits:
            row, column = np.divmod(np.arange(form.count), form.columns)
            matrix = form.shape[-2] if len(form.shape) > 1 else 1
            height, width = (int(form.settings.get(f"{side}_block_size", 1)) for side in ("row", "col"))
            band = row // matrix * -(-matrix // height) + row % matrix // height
            self.token = band * -(-form.columns // width) + column // width
        elif "MICROSCALES" in form.traits:
            self.place, self.token = np.unique(form.places_of_groups(), return_inverse=True)
        else:
            self.token = np.arange(form.count) // (form.columns if tokens >= form.rows else form.count)
        self.order = np.argsort(self.token, kind="stable")
        self.length = np.bincount(self.token)
        self.begin = np.cumsum(self.length) - self.length
        self.first = self.order[self.begin]
        self.smooth = np.ones(form.count)
        if "smooth" in self.stored:
            smooth = _loaded(self.stored["smooth"]).reshape(-1, form.columns)
            self.smooth = smooth[form.row_group].ravel()

    def _draw_rows(self, kinds: np.ndarray) -> np.ndarray:
        """New values for all of x; kinds has the kind of each token."""
        form, random, at, n = self.form, self.random, self.token, self.form.count
        tokens = kinds.size
        dmax, asymmetric = self._dmax(), "ASYMMETRIC" in form.traits
        size = random.magnitude(-7, 7, tokens)
        least = float(form.settings.get("min_scale", 0))
        if least > 0:  # half of the blocks get the size where the limit begins
            size = size * random.pick([1, dmax / least / 2], tokens)
        shift = 5 * size * ((kinds == 3) * 1 - (kinds == 4))
        factor = np.where((kinds == 5) | (kinds == 6), random.pick(_TINY, tokens), 1)
        subnormal = np.full(tokens, 2.0**-128)
        if "BY_RULE" in form.traits:
            # A scale of so few units that a quotient is far beyond DMAX, or that it is 0.
            subnormal = np.where(random.one_in(2, tokens), random.magnitude(-146, -142, tokens), subnormal)
        constant = np.where(kinds == 8, random.normal(tokens) * size,
                            random.between(3e4, 65504, tokens) * random.pick([1, -1], tokens))
        # The extremes give round parameters: halves are exact. With an offset of a quarter, an x of 24 bits can make
        # _BELOW_HALF.
        quarter = asymmetric and self.kind.name == "float32"
        middle = random.pick([0, -0.75], tokens) * quarter
        top = dmax + 0.5 * asymmetric
        halves = np.rint(random.between(-2 * top, 2 * top, n)) / 2
        halves[self.order[self.begin + self.length - 1]] = middle - top
        halves[self.first] = middle + top
        normal = random.normal(n)
        even = np.ones(n)  # a power of two, which makes equal products of equal values
        if "smooth" in self.stored:
            even = np.frexp(self.smooth[self.first])[0][at] / self.smooth
        kind = kinds[at]
        x = np.select([kind == 7, (kind == 8) | (kind == 15), kind == 12, kind == 13],
                      [np.zeros(n), constant[at] * even, halves * even, normal * subnormal[at]],
                      (normal * size[at] + shift[at]) * factor[at] / np.where(kind == 1, 1, self.smooth))  # 1: large products, which float16 does not hide
        spot = self.order[self.begin + (random.fraction(tokens) * self.length).astype(np.intp)]
        for one, value in (9, np.nan), (10, np.inf), (11, -np.inf), (14, -9 * size[kinds == 14]):
            x[spot[kinds == one]] = value
        if "MICROSCALES" in form.traits:  # in half of the groups a largest magnitude at which a rule of scales changes
            largest = np.maximum.reduceat(np.nan_to_num(abs(x)[self.order], nan=0, posinf=0), self.begin)
            at_limit = random.pick(_LIMITS, tokens) * np.ldexp(1.0, np.frexp(largest)[1]) * random.pick([1, -1], tokens)
            taken = random.one_in(2, tokens) & (largest > 0) & np.isfinite(np.add.reduceat(x[self.order], self.begin))
            x[self.first[taken]] = at_limit[taken]
        return x

    def _extremes(self, x: np.ndarray) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The highest and the lowest value of each token, and which elements are the first ones. NaN is infinity."""
        asymmetric = "ASYMMETRIC" in self.form.traits
        v = (_loaded(x) * self.smooth).astype(np.float32)
        v = np.where(np.isnan(v), np.inf, v if asymmetric else abs(v)).astype(np.float64)
        of_tokens = v[self.order]
        high, low = np.maximum.reduceat(of_tokens, self.begin), np.minimum.reduceat(of_tokens, self.begin)
        are = np.zeros(v.size, bool)
        for extreme in (high, low) if asymmetric else (high,):
            at = np.flatnonzero(v == extreme[self.token])
            are[at[np.unique(self.token[at], return_index=True)[1]]] = True
        return high, low if asymmetric else -high, are

    def _begin(self) -> None:
        """Draws x. Where there are tokens enough, one of each kind stays. Otherwise the first one stays, of a kind that
        does not hide most mistakes, and of several draws the one on which most mistakes differ."""
        self._find_tokens(self._kept()[0][1].size)
        tokens = self.begin.size
        kinds = (14 + 3 * np.arange(tokens)) % _ROW_KINDS
        if tokens >= 2 * _ROW_KINDS:
            self.reserved[self.token < _ROW_KINDS] = True
            self.stored["x"] = self._draw_within(_stored(self._draw_rows(kinds), self.kind))
            return
        draws = []
        for number in range(max(1, min(8 // tokens, 2**16 // self.form.count))):
            kinds[0] = 14 if number % 2 == 0 else 5
            self.stored["x"] = self._draw_within(_stored(self._draw_rows(kinds), self.kind))
            draws.append((len(self._compare()), number, self.stored["x"]))
        self.stored["x"] = min(draws)[2]
        self.reserved = self._extremes(self.stored["x"])[2] & (self.token == 0)

    def _draw_within(self, x: np.ndarray) -> np.ndarray:
        """x with new elements whose t may show a mistake, within the ranges of their tokens, which stay."""
        form, random, at, n = self.form, self.random, self.token, self.form.count
        high, low, are_extremes = self._extremes(x)
        target, offset = self._target(n), np.zeros(self.begin.size)
        if "ASYMMETRIC" in form.traits:
            _, scale, offset = (each.ravel().astype(np.float64) for each in self._kept(x)[0])
            back = (1 / scale).astype(np.float32).astype(np.float64)
        elif "MICROSCALES" in form.traits:
            back = np.ldexp(1.0, 127 - self._kept(x)[0][1].ravel()[self.place].astype(np.intc))
        else:
            back = (self._dmax() / high).astype(np.float32).astype(np.float64)
            back = np.maximum(back, float(form.settings.get("min_scale", 0)))
        if "BY_RULE" in form.traits:
            # Or where float16 rounds it across a half: a rule may do that.
            beyond = np.ldexp(random.pick([1.0, -1.0], n), np.frexp(target)[1] - 12)
            target = target + np.where(random.one_in(2, n), beyond, 0)
        drawn = _stored(random.near((target - offset[at]) / back[at] / self.smooth), self.kind)
        signed = (_loaded(drawn) * self.smooth).astype(np.float32)
        within = (signed > low[at]) & (signed < high[at]) & ~self.reserved & ~are_extremes
        return np.where(within, drawn, x)

    def _separate(self, pairs: List[Tuple[int, int]]) -> None:
        """Draws tokens, and elements of tokens, anew until the mistakes of pairs differ; takes those out."""
        form, random, at = self.form, self.random, self.token
        tokens = self.begin.size
        x = drawn = self.stored["x"]
        for number in range(min(300, max(20, _TRIES * (1 + (tokens > 1)) // form.count))):
            if not pairs:
                break
            frozen = np.logical_or.reduceat(self.reserved[self.order], self.begin)
            if number % 2 and not frozen.all():
                drawn = _stored(self._draw_rows(random.below(_ROW_KINDS, tokens)), self.kind)
                drawn = np.where(frozen[at], x, drawn)
            else:
                drawn = self._draw_within(np.where(frozen[at], x, drawn))
            predicted = functools.lru_cache(maxsize=None)(self._predictions(drawn))
            for pair in pairs[:]:
                differ = predicted(pair[0]) != predicted(pair[1])
                elements = np.flatnonzero(differ[:form.count] & ~self.reserved)
                differs = differ[form.count:].reshape(-1, self.scales)[:, self.place].any(axis=0)
                others = np.flatnonzero(differs & ~frozen)
                elements = elements[np.argsort(~frozen[at[elements]], kind="stable")]
                for i in [*elements[::elements.size // 4 + 1], *others[:2] + form.count]:
                    token = at[i] if i < form.count else i - form.count
                    begin = self.begin[token]
                    part = np.array([i]) if frozen[token] else self.order[begin:begin + self.length[token]]
                    before = x[part].copy()
                    x[part] = drawn[part]
                    now = self._predictions()
                    i_now = i if i < form.count else np.arange(form.count + self.place[token], differ.size, self.scales)
                    if (now(pair[0]) != now(pair[1]))[i_now].any():
                        pairs.remove(pair)
                        self.reserved |= self._extremes(x)[2] & (at == token)
                        self.reserved[i:i + 1] = True
                        frozen[token] = True
                        break
                    x[part] = before


def make(form: Form, y: str, seed: int, keep: Callable[..., Any]) -> Maker:
    """Makes the operands of a form: see Maker."""
    maker = (Tokens if form.traits & {"FINDS_SCALES", "MICROSCALES"} else Elements)(form, y, seed, keep)
    maker.make()
    return maker
