# SPDX-License-Identifier: BSD-3-Clause
"""What is known of the types of elements."""
from __future__ import annotations

import math
from typing import Any, NamedTuple, Sequence, Tuple

from ._rows import TYPES as _TYPES


class Type(NamedTuple):
    """A row of types.def."""

    name: str
    number: int  # npuq_dtype
    kind: str  # "FLOAT", "SIGNED", "UNSIGNED" or "WORD"
    bits: int
    elements: int  # in a storage word, which shapes of arrays count
    stored: str  # NumPy's type of a storage word
    mantissa: int  # bits that a floating-point type stores
    least: int  # of an integer
    most: int
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
    def is_integer(self) -> bool:
        return self.kind in ("SIGNED", "UNSIGNED")

    @property
    def infinity(self) -> int:
        """The bits of infinity, above which are those of NaN."""
        return (1 << self.bits - 1) - (1 << self.mantissa)

    def value(self, bits: int) -> float:
        """The value of a floating-point type with these bits."""
        size, one = bits & (1 << self.bits - 1) - 1, 1 << self.mantissa
        if size >= self.infinity:
            value = math.inf if size == self.infinity else math.nan
        else:
            exponent = size >> self.mantissa
            unit = max(exponent, 1) - (self.infinity >> self.mantissa + 1) - self.mantissa
            value = math.ldexp(size % one + one * (exponent > 0), unit)
        return -value if bits >> self.bits - 1 else value


TYPES = {name: Type._make((name, number, kind, bits, 1 << log2_elements, *rest))
         for name, (number, kind, bits, log2_elements, *rest) in _TYPES.items()}
FLOATS = tuple(name for name in TYPES if TYPES[name].is_float)
WORDS = tuple(name for name in TYPES if TYPES[name].kind == "WORD")
#: By their numbers.
NUMBERED = {each.number: each for each in TYPES.values()}
