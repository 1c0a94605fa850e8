# SPDX-License-Identifier: BSD-3-Clause
"""Microscaling (MX) under the names that it has elsewhere.

quantize() takes a format's name, such as "mxfp8", and that of a rule for the scales, such as "FLOOR". options() gives
the keywords of dynamic_mx_quant() for them. CONVENTIONS says which library has which rule, and where its bits differ
from those that the keywords give. decode() and encode() convert codes to values and back.
"""
from __future__ import annotations

import functools
import importlib
import math
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import numpy as np

from npuquant_facts.dtypes import FLOATS, TYPES, Type

from ._arguments import ArgumentError, ArgumentTypeError, listed, names_operator, shown
from ._operators import dynamic_mx_quant
from ._tensors import (CODED, MX, NAMES, TensorLike, codes_of, name_of, packed, result_type, tensor, to_array,
                       to_float, unpacked)

__tracebackhide__ = True  # pytest shows the line that calls the package

__all__ = ["CONVENTIONS", "Convention", "FORMATS", "decode", "encode", "from_ml_dtypes", "in_pairs", "options",
           "quantize", "to_ml_dtypes"]

_E4M3, _E5M2, _E2M1 = "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2"
_INFINITY = 0x7F800000
#: The types of elements by the names of their formats.
FORMATS = {"mxfp8": _E4M3, "mxfp8_e4m3": _E4M3, "mxfp8_e5m2": _E5M2, "mxfp4": _E2M1, "mxfp4_e2m1": _E2M1}


# ---- the conventions -------------------------------------------------------------------------------------------------


def _bits(a: np.ndarray) -> np.ndarray:
    return np.asarray(a, np.float32).view(np.uint32).astype(np.int64) & 0x7FFFFFFF


def _codes(a: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Biased exponents as codes; 255 for a that is no finite number."""
    return np.where(_bits(a) < _INFINITY, np.clip(exponents, 0, 255), 255).astype(np.uint8)


def _largest_power(kind: Type) -> int:
    """The exponent of the type's largest value."""
    return math.frexp(kind.most)[1] - 1


def _raised(a: np.ndarray, kind: Type, added: int) -> np.ndarray:
    """The exponent of a, after this was added to its bits, less that of the type's largest value."""
    return _codes(a, (_bits(a) + added >> 23) - _largest_power(kind))


def _floor(a: np.ndarray, kind: Type) -> np.ndarray:
    return _raised(a, kind, 0)


def _ceil(a: np.ndarray, kind: Type) -> np.ndarray:
    return _raised(a, kind, 0x7FFFFF)


def _even(a: np.ndarray, kind: Type) -> np.ndarray:
    """FLOOR of a with the type's mantissa, halves away from zero."""
    half = 1 << 22 - kind.mantissa
    return np.where(_bits(a) + half < _INFINITY, _raised(a, kind, half), 255).astype(np.uint8)


def _even_below(a: np.ndarray, kind: Type) -> np.ndarray:
    """Half a step of the mantissa does not go up."""
    return _raised(a, kind, (1 << 22 - kind.mantissa) - 1)


def _rceil(a: np.ndarray, kind: Type) -> np.ndarray:
    """The least power of two that is not below a over the type's largest value. 2^-127 is subnormal."""
    t = _bits(np.asarray(a, np.float32) * np.float32(1 / kind.most))
    return _codes(a, (t >> 23) + ((t & 0x7FFFFF) > np.where(t >> 23 == 0, 0x400000, 0)))


def _transformer_engine(a: np.ndarray, kind: Type) -> np.ndarray:
    return np.where(_bits(a) == _INFINITY, 254, _rceil(a, kind)).astype(np.uint8)


def _nearest(a: np.ndarray, kind: Type) -> np.ndarray:
    """The power of two whose logarithm is the nearest."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.rint(np.log2(np.abs(np.asarray(a, np.float64)) / kind.most))
    return _codes(a, np.nan_to_num(np.clip(exponents, -127, 127)).astype(np.int64) + 127)


def _round_scale(a: np.ndarray, kind: Type) -> np.ndarray:
    """FLOOR, but up above 1.75 times a power of two, and 0 for zeros only."""
    bits = _bits(a)
    exponents = (bits >> 23) - _largest_power(kind)
    raised = np.where(exponents > 0, exponents + ((bits >> 16 & 0x7F) > 0x60), 1)
    return _codes(a, np.where(bits == 0, 0, raised))


def _above_floor(a: np.ndarray, kind: Type) -> np.ndarray:
    return _codes(a, _floor(a, kind).astype(np.int64) + 1)


class Convention(NamedTuple):
    """How a specification or a library finds the scales of groups, for some types of elements."""

    name: str
    types: Tuple[str, ...]  # of elements
    libraries: str  # that have it
    options: Optional[Dict[str, Any]]  # the keywords of dynamic_mx_quant() for it; None: no keywords give its bits
    mistake: str  # the name of what a kernel with the convention's rule does, for diagnose()
    but: Tuple[str, ...]  # where its bits differ from those that the options give, or else from FLOOR's
    rule: Callable[[np.ndarray, Type], np.ndarray]

    @property
    def owned(self) -> str:
        """The name, and who has it."""
        return self.name if self.libraries == self.name else f"{self.name} ({self.libraries})"

    def codes(self, a: np.ndarray, dtype: Any) -> np.ndarray:
        """The codes of the scales of groups whose largest magnitudes these are, as float32."""
        return self.rule(a, TYPES[_element_type(dtype)])


_FLOOR8: Dict[str, Any] = {"scale_alg": 0, "small_groups": 2, "bad_groups": 1}
_RCEIL8: Dict[str, Any] = {"scale_alg": 1, "bad_groups": 1}
_FLOOR4: Dict[str, Any] = {"scale_alg": 0, "small_groups": 2}
_RCEIL4: Dict[str, Any] = {"scale_alg": 2, "dst_type_max": 6.0, "small_groups": 2}
_EVEN4: Dict[str, Any] = {"scale_alg": 2, "dst_type_max": 7.0, "small_groups": 2}

_SMALL = "codes differ with small_groups 1 where a is subnormal, and with 0 wherever S is 0"
_NO_NAN = "codes of a group with S = FF are +0 here: float4_e2m1 has no NaN"
_4_BITS = _SMALL, _NO_NAN
_LESS = "S is 1 less here for a / 2^e in"
_LAST, _OTHER = "float32 along the last axis", "float16, or float32 along another axis"
_INFINITE = "float32 along another axis: S is FF here from 7F7F8000 on"

#: In their words a is the largest magnitude of a group, S the code of its scale, and e is at least -125. Of several for
#: a name and a type, options() gives the first.
CONVENTIONS = (
    Convention("FLOOR", (_E4M3, _E5M2), "OCP's MX 1.0, torchao", _FLOOR8, "scale-floor", (_SMALL,), _floor),
    Convention("FLOOR", (_E2M1,), "OCP's MX 1.0, torchao", _FLOOR4, "scale-floor", _4_BITS, _floor),
    Convention("FLOOR", (_E2M1,), "OCP's MX 1.0, torchao", {"scale_alg": 2, "dst_type_max": 8.0}, "scale-floor",
               ("S is 1 less here for a = 2^e, e from -123 on",
                "S is 1 less here for a from 2^-124 to below 2^-123, except the float32 01FFFFFF", _NO_NAN), _floor),
    Convention("RCEIL", (_E4M3, _E5M2), "torchao, cuBLAS", _RCEIL8, "scale-rceil", (), _rceil),
    Convention("RCEIL", (_E2M1,), "torchao", _RCEIL4, "scale-rceil",
               (f"{_LAST}: {_LESS} (1.5, 1.5078125)", f"{_OTHER}: {_LESS} (1.5, 1.50390625]", _INFINITE, *_4_BITS), _rceil),
    Convention("EVEN", (_E2M1,), "torchao", _EVEN4, "scale-even",
               ("bfloat16: S is 1 less here for a = 1.75 * 2^e", f"{_LAST}: {_LESS} [1.75, 1.7578125)",
                f"{_OTHER}: {_LESS} [1.75, 1.75390625]", "EVEN has S = FF from 1.75 * 2^127 on", *_4_BITS), _even),
    Convention("EVEN", (_E4M3, _E5M2), "torchao", None, "scale-even", (), _even),
    Convention("CEIL", (_E4M3, _E5M2, _E2M1), "torchao", None, "scale-ceil", (), _ceil),
    Convention("Transformer Engine", (_E4M3, _E5M2), "Transformer Engine", _RCEIL8, "scale-rceil",
               ("an infinity has S = FE there", "codes of a group with S = 0 are zeros there"), _transformer_engine),
    Convention("FBGEMM EVEN", (_E2M1,), "FBGEMM", _EVEN4, "scale-even-below",
               (f"{_LAST}: {_LESS} (1.75, 1.7578125)", f"{_OTHER}: {_LESS} (1.75, 1.75390625]", _INFINITE, *_4_BITS),
               _even_below),
    Convention("microxcaling", (_E2M1,), "microxcaling, nearest", {**_FLOOR4, "round_mode": "round"}, "half-away",
               ("its floor is towards zero, and round_mode floor is not", *_4_BITS), _floor),
    Convention("microxcaling", (_E4M3, _E5M2), "microxcaling, nearest", None, "half-away", ("halves go away from zero",),
               _floor),
    Convention("ggml", (_E2M1,), "ggml's mxfp4", None, "half-to-zero",
               ("halves go towards zero", "byte j of a group has the elements j and j + 16"), _floor),
    Convention("MLX", (_E4M3, _E2M1), "MLX before August 2026", None, "scale-nearest", (), _nearest),
    Convention("NKI", (_E4M3, _E5M2), "AWS's nki.isa.quantize_mx", None, "scale-floor-plus-1", (), _above_floor),
    Convention("RoundScale", (_E4M3, _E5M2), "npu_moe_init_routing_v2 after CANN 9.1", None, "scale-round-scale", (),
               _round_scale),
)
# What is called alike, and is no microscaling.
_OTHERS = {"NVFP4": "has two levels of scales, and is not MX"}


def _element_type(dtype: Any) -> str:
    """Of a format's name, or of a type in any form."""
    name = FORMATS.get(dtype.lower()) if isinstance(dtype, str) else None
    if isinstance(dtype, str) and dtype.upper() in _OTHERS:
        raise ArgumentError(f"format: is {shown(dtype)}, which {_OTHERS[dtype.upper()]}; expected {listed([*FORMATS])}")
    return name or result_type("format", dtype, MX, f"{listed([*FORMATS])}, or a type of dynamic_mx_quant()").name


@names_operator
def options(scale: str, format: Any) -> Dict[str, Any]:
    """The keywords of dynamic_mx_quant() that give the bits of a convention, but for what the convention's row says.

    Args:
        scale: "FLOOR", "RCEIL", "EVEN" or another name of a row in CONVENTIONS.
        format: "mxfp8" (float8_e4m3fn), "mxfp8_e5m2", "mxfp4" (float4_e2m1), or a type, as dst_type has it.

    >>> options("FLOOR", "mxfp4")
    {'dst_type': 'float4_e2m1fn_x2', 'scale_alg': 0, 'small_groups': 2}
    >>> options("CEIL", "mxfp8")
    Traceback (most recent call last):
    npuquant.ArgumentError: scale: is 'CEIL', which no options give for float8_e4m3fn; expected FLOOR, RCEIL or \
Transformer Engine [options]
    """
    dtype = _element_type(format)
    rows = [row for row in CONVENTIONS if dtype in row.types]
    named = [row for row in rows if row.name.lower() == str(scale).lower()]
    for row in named:
        if row.options is not None:
            return {"dst_type": dtype, **row.options}
    raise ArgumentError(f"scale: is {shown(scale)}{f', which no options give for {dtype}' if named else ''}; expected "
                        + (listed([row.name for row in rows if row.options is not None]) or "a format other than "
                           f"{dtype}, which only Ascend NPUs have"))


@names_operator
def quantize(x: TensorLike, format: Any, *, scale: str = "FLOOR", axis: int = -1,
             block_size: int = 32) -> Tuple[np.ndarray, np.ndarray]:
    """Quantises in groups along an axis: dynamic_mx_quant() with options(scale, format).

    Returns:
        codes: uint8, of the shape of x. To mxfp4 with half of the last extent: two codes in a byte, the first in the
            low half.
        scales: uint8, a code of float8_e8m0 for each group, where dynamic_mx_quant() has pairs of groups. The shape is
            that of x with the number of groups as the axis' extent.

    >>> codes, scales = quantize(np.array([[0.5, -1.25, 3, 0]], np.float32), "mxfp8")
    >>> codes, scales
    (array([[104, 242, 124,   0]], dtype=uint8), array([[120]], dtype=uint8))
    >>> decode(codes, "mxfp8") * decode(scales, "float8_e8m0fnu")
    array([[ 0.5 , -1.25,  3.  ,  0.  ]], dtype=float32)
    """
    codes, pairs = dynamic_mx_quant(x, axis=axis, block_size=block_size, **options(scale, format))
    axis %= pairs.ndim - 1
    scales = np.moveaxis(pairs, -1, axis + 1).reshape(*pairs.shape[:axis], -1, *pairs.shape[axis + 1:-1])
    groups = -(-np.shape(tensor("x", x))[axis] // (block_size or 32))  # without the one that fills up a pair
    return codes, scales[(slice(None),) * axis + (slice(groups),)]


@names_operator
def in_pairs(scales: TensorLike, *, axis: int = -1) -> np.ndarray:
    """A code for each group, as quantize() and other libraries return scales, in the pairs of groups that
    dynamic_mx_quant() returns and anti_mx_quant() takes: 0 for the group that is missing in the last pair.

    >>> in_pairs(np.array([[120, 121, 122]], np.uint8)).tolist()
    [[[120, 121], [122, 0]]]
    """
    codes = _codes_of(scales, TYPES["float8_e8m0fnu"], "scales")
    codes = np.moveaxis(codes, axis, -1)
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, codes.shape[-1] % 2)])
    pairs = codes.reshape(*codes.shape[:-1], codes.shape[-1] // 2, 2)
    return np.ascontiguousarray(np.moveaxis(pairs, -2, axis % codes.ndim))


# ---- codes and values ------------------------------------------------------------------------------------------------

_ONE_IN_A_BYTE = "float4_e2m1fn"  # the name of ml_dtypes


def _coded_type(dtype: Any, argument: str = "dtype") -> Type:
    name = FORMATS.get(dtype) if isinstance(dtype, str) else None
    return TYPES[name or result_type(argument, dtype, CODED).name]


def _codes_of(codes: TensorLike, kind: Type, argument: str = "codes") -> np.ndarray:
    array = to_array(argument, codes_of(codes, kind.name))
    if not isinstance(array, np.ndarray) or array.dtype != np.uint8:
        raise ArgumentTypeError(f"{argument}: is {array.dtype}; expected uint8 or {kind.name}")
    return array


@functools.lru_cache(maxsize=None)
def _values(kind: Type) -> np.ndarray:
    """Of all codes, in their order."""
    return np.array([kind.value(code) for code in range(1 << kind.bits)], np.float32)


@names_operator
def decode(codes: TensorLike, dtype: Any = None) -> np.ndarray:
    """The values of codes as float32.

    Args:
        codes: uint8, or an array or tensor that has the type itself. With 4 bits two codes in a byte.
        dtype: float8_e4m3fn, float8_e5m2, hifloat8, float8_e8m0fnu (the type of scales), float4_e2m1fn_x2,
            float4_e1m2fn_x2, or a format's name. None: that of codes.

    >>> decode(np.array([0x7E, 0x81, 0x7F], np.uint8), "mxfp8")
    array([ 4.480000e+02, -1.953125e-03,           nan], dtype=float32)
    >>> decode(np.array([[0xF2]], np.uint8), "mxfp4")
    array([[ 1., -6.]], dtype=float32)
    """
    kind = _coded_type(name_of(getattr(codes, "dtype", None)) if dtype is None else dtype)
    return _values(kind)[unpacked(_codes_of(codes, kind), kind)]


def _hybrid(x: np.ndarray) -> np.ndarray:
    """Values of hifloat8, or of exponents to 3 what is left to round: up where the 14 bits below the last one that is
    kept are at least the last 14 of x. Of the exponent -23 no bit is kept."""
    bits = x.view(np.uint32).astype(np.int64)
    exponent = (bits >> 23 & 0xFF) - 127
    size = abs(exponent)
    kept = np.where(size < 8, 2, np.where(size < 16, 1, np.where(exponent >= -22, 0, -1)))
    significand, last = bits & 0x7FFFFF | 0x800000, 23 - kept
    rounded = (significand >> last) + (significand >> last - 14 & 0x3FFF >= bits & 0x3FFF)
    made = np.where(exponent < -23, 0, np.ldexp(rounded.astype(np.float64), exponent - kept))
    return np.where((size <= 3) | (exponent > 15), x, np.copysign(made, x)).astype(np.float32)


@names_operator
def encode(values: TensorLike, dtype: Any, *, hybrid: bool = False) -> np.ndarray:
    """The codes of the nearest values, as the operators round: halves go to the even code, and in hifloat8 away from
    zero. What is beyond the largest value becomes that, and NaN 0. To float8_e8m0fnu nothing is rounded, and NaN is FF.

    Args:
        values: float32, float16 or bfloat16. To 4 bits with an even last extent.
        dtype: as for decode().
        hybrid: to hifloat8, the Ascend 950's rounding of this name, which depends on the last bits of a float32.

    >>> encode(np.array([448, -0.002, 1e9], np.float32), "mxfp8").tobytes().hex(" ")
    '7e 81 7e'
    """
    kind = _coded_type(dtype)
    array = to_array("values", values)
    if not isinstance(array, np.ndarray) or NAMES.get(array.dtype) not in FLOATS:
        raise ArgumentTypeError(f"values: is {array.dtype}; expected {listed(FLOATS)}")
    x = to_float(array)
    if hybrid:
        if kind.kind != "TAPERED_FLOAT" or NAMES[array.dtype] == "float16":
            raise ArgumentError(f"hybrid: is true; expected false for {kind.name} of {NAMES[array.dtype]}")
        x = _hybrid(x)
    if kind.kind == "EXPONENT":
        mantissa, exponent = np.frexp(x)
        codes = np.where(np.isnan(x), 255, exponent + (kind.bias - 1))
        if not np.all(np.isnan(x) | ((mantissa == 0.5) & (codes >= 0) & (codes < 255))):
            raise ArgumentError("values: has others; expected powers of two from 2^-127 to 2^127, or NaN")
        return codes.astype(np.uint8)
    if kind.elements > 1 and (x.ndim == 0 or x.shape[-1] % 2 != 0):
        raise ArgumentError(f"values: has the shape {x.shape}; expected an even last extent, as dtype is {kind.name}")
    positive = _values(kind)[:1 << kind.bits - 1].astype(np.float64)
    order = np.argsort(positive)[:np.isfinite(positive).sum()]  # infinities and NaN are the last
    middles = (positive[order][1:] + positive[order][:-1]) / 2
    size = np.abs(x.astype(np.float64))
    low, high = order[np.searchsorted(middles, size, "left")], order[np.searchsorted(middles, size, "right")]
    codes = high if kind.kind == "TAPERED_FLOAT" else np.where(low % 2 == 0, low, high)
    codes = np.where(np.signbit(x) & ((codes > 0) | (kind.zeros == 2)), codes + (1 << kind.bits - 1), codes)
    return packed(np.where(np.isnan(x), 0, codes).astype(np.uint8), kind)


@names_operator
def to_ml_dtypes(codes: TensorLike, dtype: Any) -> Any:
    """Codes as an array of the type of the package ml_dtypes, which has neither hifloat8 nor float4_e1m2. It is a view,
    except of float4_e2m1: ml_dtypes has one element in a byte."""
    kind = _coded_type(dtype)
    found = getattr(importlib.import_module("ml_dtypes"), _ONE_IN_A_BYTE if kind.name == _E2M1 else kind.name, None)
    if found is None:
        raise ArgumentTypeError(f"dtype: is {kind.name}; expected a type that ml_dtypes has")
    return unpacked(_codes_of(codes, kind), kind).view(found)


@names_operator
def from_ml_dtypes(array: np.ndarray) -> np.ndarray:
    """The codes of an array of such a type, as dynamic_mx_quant() and anti_mx_quant() have them: of float4_e2m1 two in
    a byte."""
    name = str(getattr(array, "dtype", None))
    kind = _coded_type(_E2M1 if name == _ONE_IN_A_BYTE else name, "array")
    return packed(np.asarray(array.view(np.uint8)), kind)
