# SPDX-License-Identifier: BSD-3-Clause
"""npu_dtype_cast between floating-point types."""
from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from npuquant_facts.dtypes import FLOATS, TYPES

from .. import mx
from .._arguments import _expect, _of, _options, _type_of
from .._tensors import FLOAT4, FLOAT8, TensorLike, codes_of, from_float, name_of, to_array, to_float
from .experts import Made

__tracebackhide__ = True  # pytest shows the line that calls the package

#: Types of PyTorch or of the package ml_dtypes whose arrays and tensors are read as codes.
CODED = (*FLOAT8, "float8_e8m0fnu")
_NUMBERS = (*FLOATS, *FLOAT8, *FLOAT4)
#: The least float32 that is rounded to more than the largest number, and the codes of that and of NaN.
_BEYOND = {"float8_e4m3fn": (464 + 2**-15, 0x7F, 0x7F), "float8_e5m2": (61440, 0x7C, 0x7F),
           "hifloat8": (40960, 0x6F, 0x80)}


def dtype_cast(input: Any, dtype: Any, input_dtype: Any) -> Tuple[str, Made]:
    """The type of what is cast, and the result."""
    source, to = _type_of(input) if input_dtype is None else name_of(input_dtype), name_of(dtype)
    for argument, name, known in (("dtype", to, _NUMBERS), ("input_dtype", source, (*_NUMBERS, *CODED))):
        if name not in known:
            raise NotImplementedError(f"{argument}: is {name}; npuquant casts between floating-point types")
    _of("input", input, source, *["uint8"] * (source not in FLOATS), why=", as input_dtype says")
    values = TYPES[source].in_values(input.shape)
    if TYPES[to].elements > 1:
        _expect(len(values) > 0 and values[-1] % 2 == 0, "input",
                f"has the shape {list(input.shape)}; expected an even last extent, as two codes of {to} are in a byte")
    return source, Made(TYPES[to].in_words(values), to)


@_options
def npu_dtype_cast(input: TensorLike, dtype: Any, input_dtype: Any = None) -> np.ndarray:
    """Casts between floating-point types. To 4 bits a value is rounded to bfloat16 first.

    What is beyond the range becomes NaN in float8_e4m3fn, and an infinity in float8_e5m2 and hifloat8; NaN stays NaN.
    That is the device's mode which torch_npu sets, and no public dump attests it. With 4 bits it becomes the largest
    number, and NaN 0. Within the range the quantisation operators cast alike.

    Args:
        input: float32, float16, bfloat16, or an array or tensor of an 8-bit float; uint8 for codes of input_dtype, which
            may also be float8_e8m0fnu, the type of the scales of microscaling.
        dtype: the type of the result: one of these, hifloat8, float4_e2m1fn_x2 or float4_e1m2fn_x2.
        input_dtype: the type of input, if its codes are bytes.

    Returns:
        An array of dtype; uint8 for the codes of 8- and 4-bit floats, of 4 bits two in a byte, the first in the low
        half. NumPy has no bfloat16: the array is uint16, with the bits.

    >>> npu_dtype_cast(np.array([1.1, -500], np.float32), "float8_e4m3fn")
    array([ 57, 255], dtype=uint8)
    >>> npu_dtype_cast(np.array([57, 255], np.uint8), "float32", "float8_e4m3fn")
    array([1.125,   nan], dtype=float32)
    """
    own = name_of(getattr(input, "dtype", None))
    if own in CODED:
        input, input_dtype = codes_of(input, own), own if input_dtype is None else input_dtype
    array: Any = to_array("input", input)
    source, made = dtype_cast(array, dtype, input_dtype)
    x = to_float(array, source) if source in FLOATS else mx.decode(array, source)
    if made.type in FLOATS:
        return from_float(x, made.type)
    if made.type in FLOAT4:
        return mx.encode(from_float(x, "bfloat16"), made.type)
    codes = mx.encode(x, made.type)
    least, largest, nan = _BEYOND[made.type]
    special = np.where(np.isnan(x), nan, largest) | np.where(np.signbit(x), 0x80, 0)
    return np.where(np.abs(x) < least, codes, special).astype(np.uint8)
