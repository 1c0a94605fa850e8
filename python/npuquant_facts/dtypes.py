# SPDX-License-Identifier: BSD-3-Clause
"""What is known of the types of elements."""
from __future__ import annotations

import math
from typing import Any, NamedTuple, Sequence, Tuple, Union

from ._rows import TYPES as _TYPES


class Type(NamedTuple):
    """A row of types.def."""

    name: str
    number: int  # npuq_dtype
    kind: str  # "FLOAT", "SIGNED", "UNSIGNED", "SMALL_FLOAT", "TAPERED_FLOAT", "EXPONENT" or "WORD"
    bits: int
    elements: int  # in a storage word, which shapes of arrays count
    stored: str  # NumPy's type of a storage word
    mantissa: int  # bits that a floating-point type stores
    bias: int  # of its exponent
    zeros: int  # 2 if -0 has bits of its own
    least: Union[int, float]  # of an integer or a small float
    most: Union[int, float]
    dmax: int  # what dynamic quantisation makes of the largest magnitude

    def in_values(self, shape: Sequence[Any]) -> Tuple[Any, ...]:
        """The shape in values of storage words of this shape."""
        return (*shape[:-1], self.elements * shape[-1]) if self.elements > 1 and len(shape) else tuple(shape)

    def in_words(self, shape: Sequence[Any]) -> Tuple[Any, ...]:
        return (*shape[:-1], shape[-1] // self.elements) if self.elements > 1 and len(shape) else tuple(shape)

    @property
    def is_float(self) -> bool:
        return self.kind == "FLOAT"

    @property
    def is_float_of_any_size(self) -> bool:
        return self.is_float or self.is_small_float

    @property
    def is_integer(self) -> bool:
        return self.kind in ("SIGNED", "UNSIGNED")

    @property
    def is_small_float(self) -> bool:
        return self.kind in ("SMALL_FLOAT", "TAPERED_FLOAT")

    @property
    def has_codes(self) -> bool:
        """Whether any byte may hold its values: NumPy has no such type."""
        return self.is_small_float or self.kind == "EXPONENT"

    @property
    def infinity(self) -> int:
        """The bits of a FLOAT's infinity, above which are those of NaN."""
        return (1 << self.bits - 1) - (1 << self.mantissa)

    def value(self, bits: int) -> float:
        """The value of a floating-point type with these bits."""
        if self.kind == "EXPONENT":
            return math.nan if bits == (1 << self.bits) - 1 else math.ldexp(1, bits - self.bias)
        size, one = bits & (1 << self.bits - 1) - 1, 1 << self.mantissa
        exponent = size >> self.mantissa
        value = _tapered_value(size) if self.kind == "TAPERED_FLOAT" else (
            math.ldexp(size % one + one * (exponent > 0), max(exponent, 1) - self.bias - self.mantissa))
        if bits >> self.bits - 1 == 1 and size == 0 and self.zeros == 1:
            value = math.nan  # in place of -0
        elif size >= self.infinity if self.is_float else value > self.most:
            value = math.inf if self.kind == "TAPERED_FLOAT" or size % one == 0 else math.nan
        return -value if bits >> self.bits - 1 else value


def _tapered_value(size: int) -> float:
    """Of hifloat8 without the sign. Each form has its first code, the exponent's sign, the least magnitude of the
    exponent, and the bits of the mantissa."""
    if size < 8:
        return math.ldexp(1, size - 23) if size else 0.0
    forms = ((0x60, 0x10, 8, 1), (0x40, 0x10, 4, 2), (0x20, 0x10, 2, 3), (0x10, 0x08, 1, 3), (0x08, 0, 0, 3))
    first, sign, least, mantissa = next(form for form in forms if size >= form[0])
    exponent, fraction = divmod(size - first - (size & sign), 1 << mantissa)
    exponent += least
    return math.ldexp((1 << mantissa) + fraction, (-exponent if size & sign else exponent) - mantissa)


TYPES = {name: Type._make((name, number, kind, bits, 1 << log2_elements, *rest))
         for name, (number, kind, bits, log2_elements, *rest) in _TYPES.items()}
FLOATS = tuple(name for name in TYPES if TYPES[name].is_float)
WORDS = tuple(name for name in TYPES if TYPES[name].kind == "WORD")
#: By their numbers.
NUMBERED = {each.number: each for each in TYPES.values()}
