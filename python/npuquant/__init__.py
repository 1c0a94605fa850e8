# SPDX-License-Identifier: BSD-3-Clause
"""The quantisation operators of Ascend NPUs on CPUs, with the device's bits.

The four operators have the names and arguments that they have in torch_npu. Inputs are NumPy arrays or anything with
__dlpack__ (a torch.Tensor, for instance) in CPU memory, in any strided layout; they are read where they are, but an
input that repeats one element throughout is copied. bfloat16 is a uint16 array of its bits, an ml_dtypes.bfloat16
array, or a tensor of that type. Results are new NumPy arrays in C order, or go to the arrays of the argument out. What
the library refuses is an NpuquantError with the library's message; what cannot be handed to it is a TypeError or
ValueError that begins with the name of the argument.
"""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

try:
    from . import _native
except ImportError as error:
    raise ImportError(
        f"npuquant: the compiled part of the package is missing or for another Python ({error}); install the package "
        "with pip, or take it from the folder python of a build"
    ) from error
from ._library import NpuquantError, __version__, available_backends, backend, set_backend, version
from ._tensors import TensorLike, output, result, result_type, tensor
from ._threads import get_num_threads, run, set_num_threads

__all__ = [
    "NpuquantError",
    "__version__",
    "available_backends",
    "backend",
    "get_num_threads",
    "npu_dynamic_quant_asymmetric",
    "npu_group_quant",
    "npu_quantize",
    "npu_trans_quant_param",
    "qint32",
    "qint8",
    "quint4x2",
    "quint8",
    "set_backend",
    "set_num_threads",
    "version",
]

#: PyTorch's quantised types, for those who have no PyTorch.
qint8 = "qint8"
quint8 = "quint8"
qint32 = "qint32"
#: Eight int4 in each int32 word, the first in the lowest bits.
quint4x2 = "quint4x2"

_QUANT_MODES = {"pertoken": 0, "pertensor": 1}
_INT64, _FLOAT32 = np.dtype(np.int64), np.dtype(np.float32)


def __dir__() -> List[str]:
    return __all__


def _one_of(name: str, value: Any, other_name: str, other: Any) -> Any:
    """The value of an argument that has two names."""
    if value is not None and other is not None:
        raise TypeError(f"{name}: is given as {other_name} too; expected one of the two")
    return other if value is None else value


def npu_quantize(
    input: TensorLike,
    scales: TensorLike,
    zero_points: Optional[TensorLike],
    dtype: Any,
    axis: int = 1,
    div_mode: bool = True,
    *,
    out: Optional[np.ndarray] = None,
) -> np.ndarray:
    """Quantises with given scales and zero points.

    Each step is one float32 operation; sat clamps to the range of dtype, and NaN becomes 0::

        t = input / scales    (div_mode)  or  input * scales
        t = t + zero_points   (unless None)
        y = sat(round half to even(t))

    Args:
        input: float32, float16 or bfloat16, 1 to 8 dimensions. The library's messages call it x.
        scales: float32, float16 or bfloat16; 1-D of size 1 or of the extent along the axis. Without div_mode also with
            as many dimensions as input, all 1 but that of the axis.
        zero_points: None, or the shape of scales. div_mode: int8, uint8, int32, float32, float16 or bfloat16; without
            it the type of scales.
        dtype: div_mode: int8, uint8 or int32. Without it int8 or quint4x2.
        axis: div_mode: the dimension that scales run along. Without it -2 means the last but one, and -1 and all that
            is larger the last, as on the device: so the default does for an input of one dimension too.
        div_mode: divide by the scales, or multiply by them.
        out: None, or the array to write to.

    Returns:
        out, or a new array, of dtype and of the shape of input; for quint4x2 int32 with an eighth of the last extent.

    >>> x = np.array([[-1.5, 0.5, 2.5], [100, -100, np.nan]], np.float32)
    >>> npu_quantize(x, np.array([1, 0.5, 2], np.float32), np.array([1, 0, 0], np.int32), np.int8)
    array([[   0,    1,    1],
           [ 101, -128,    0]], dtype=int8)
    """
    if not isinstance(div_mode, (bool, np.bool_)):
        raise TypeError(f"div_mode: is {type(div_mode).__name__}; expected a bool")
    x = tensor("input", input)
    kind = result_type("dtype", dtype, "int8, uint8 or int32" if div_mode else "int8 or quint4x2")
    y = result(x, kind, out)
    run(_native.quantize, x, scales, zero_points, axis, bool(div_mode), y, kind.words)
    return y


def npu_group_quant(
    x: TensorLike,
    scale: TensorLike,
    group_index: TensorLike,
    *,
    offset: Optional[TensorLike] = None,
    dst_dtype: Any = None,
    out: Optional[np.ndarray] = None,
) -> np.ndarray:
    """Quantises groups of rows, each group with its own scales.

    Group e owns the rows from group_index[e-1] (0 for e = 0) up to, not including, group_index[e]. Each step is one
    float32 operation::

        t = x * scale[e]
        t = t + offset        (unless None)
        y = sat(round half to even(t))

    Args:
        x: float32, float16 or bfloat16, [S, H].
        scale: float32, float16 or bfloat16, [E, H].
        group_index: int32 or int64, [E]; does not decrease, and ends with S.
        offset: None, or one element of the type of scale.
        dst_dtype: int8 (also if None) or quint4x2.
        out: None, or the array to write to.

    Returns:
        out, or a new array: int8 [S, H], or for quint4x2 int32 [S, H / 8].

    >>> x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    >>> scale = np.array([[1, 1], [10, -10]], np.float32)
    >>> npu_group_quant(x, scale, np.array([1, 3]), offset=np.float32(0.5))
    array([[  2,   2],
           [ 30, -40],
           [ 50, -60]], dtype=int8)
    """
    x = tensor("x", x)
    kind = result_type("dst_dtype", "int8" if dst_dtype is None else dst_dtype)
    y = result(x, kind, out)
    run(_native.group_quant, x, scale, group_index, offset, y, kind.words)
    return y


def npu_trans_quant_param(
    scale: TensorLike,
    offset: Optional[TensorLike] = None,
    round_mode: Optional[int] = 0,
    *,
    out: Optional[np.ndarray] = None,
) -> np.ndarray:
    """Packs scales and offsets into the 64-bit words that the matrix unit's requantisation takes.

    Bits 31..0 are those of scale with the low 13 cleared, bits 45..37 the offset, rounded half to even and clamped to
    -256..255, bit 46 is 1 and all others are 0.

    Args:
        scale: float32, 1-D or 2-D, not empty.
        offset: None, or float32. With a scale of shape (g, n) and g above 1 None; else 1-D or (1, n), of as many elements
            as scale, or one of the two has one element.
        round_mode: 0 (also if None) clears the low 13 bits of a scale, 1 rounds half to even at bit 13 first.
        out: None, or the array to write to.

    Returns:
        out, or a new array: int64, of the shape of scale if there is no offset, scale is 2-D, or scale.shape[0] is larger
        than offset.shape[0]; otherwise of the shape of offset. A scale of (1, 1) with an offset of (n,) gives (1, n).

    >>> npu_trans_quant_param(np.array([1, 0.1], np.float32), np.array([0, 1.5], np.float32))
    array([70369809530880, 70644658913280])
    """
    scale = tensor("scale", scale)
    shape = scale.shape
    if offset is not None:
        offset = tensor("offset", offset)
        if len(shape) == 1 and not shape > offset.shape[:1]:
            shape = offset.shape
        elif shape == (1, 1) and len(offset.shape) == 1:  # torch_npu's shape has no room for all words
            shape = (1, *offset.shape)
    words = output(out, shape, _INT64)
    _native.trans_quant_param(scale, offset, 0 if round_mode is None else round_mode, words, False, None)
    return words


def npu_dynamic_quant_asymmetric(
    x: Optional[TensorLike] = None,
    *,
    smooth_scales: Optional[TensorLike] = None,
    group_index: Optional[TensorLike] = None,
    dst_type: Any = None,
    quant_mode: str = "pertoken",
    input: Optional[TensorLike] = None,
    out: Optional[Tuple[np.ndarray, np.ndarray, np.ndarray]] = None,
) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quantises with scales and offsets found from the data, per row (token) or for the whole tensor.

    Each step is one float32 operation; DMAX and RANGE are 127 and 255 for int8, 7 and 15 for quint4x2::

        v = x                             (x * smooth_scales, unless None)
        hi, lo = max(v), min(v)           over the row, or the tensor; NaN if any v is
        d = (hi - lo) / RANGE
        scale = d if d > 1e-12 else 1e-12
        offset = DMAX - (hi / scale)
        y = sat(round half to even(v * (1 / scale) + offset))

    Args:
        x: float32, float16 or bfloat16, 2 to 8 dimensions, [..., H]; its rows are S in number.
        smooth_scales: None, or float32, float16 or bfloat16: [H], or with group_index [E, H], E up to 1024.
        group_index: None, or int32 or int64, [E], per token only: groups of rows as in npu_group_quant().
        dst_type: int8 (also if None) or quint4x2.
        quant_mode: "pertoken" or "pertensor". The device computes per token only: "pertensor" is its arithmetic over the
            whole tensor, an extension, and not the bits of any device.
        input: another name for x, as versions of torch_npu differ.
        out: None, or the three arrays to write to.

    Returns:
        Those of out, or new arrays.
        y: int8 of the shape of x, or for quint4x2 int32 with an eighth of the last extent.
        scale, offset: float32, per token of shape x.shape[:-1], per tensor [1].

    >>> y, scale, offset = npu_dynamic_quant_asymmetric(np.array([[0, 1, 2, 255], [1, 2, 3, 4]], np.float32))
    >>> y
    array([[-128, -127, -126,  127],
           [-128,  -43,   42,  127]], dtype=int8)
    >>> scale, offset
    (array([1.        , 0.01176471], dtype=float32), array([-128., -213.], dtype=float32))
    """
    if not isinstance(quant_mode, str) or quant_mode not in _QUANT_MODES:
        raise ValueError(f"quant_mode: is {quant_mode!r}; expected 'pertoken' or 'pertensor'")
    x = tensor("x", _one_of("x", x, "input", input))
    kind = result_type("dst_type", "int8" if dst_type is None else dst_type)
    if out is None:
        out = None, None, None
    elif not isinstance(out, tuple) or len(out) != 3:
        raise TypeError(f"out: is {type(out).__name__}; expected a tuple of three arrays, y, scale and offset")
    shape = x.shape[:-1] if quant_mode == "pertoken" else (1,)
    y, scale, offset = result(x, kind, out[0]), output(out[1], shape, _FLOAT32), output(out[2], shape, _FLOAT32)
    run(_native.dynamic_quant_asymmetric, x, smooth_scales, group_index, _QUANT_MODES[quant_mode], y, scale, offset,
        kind.words)
    return y, scale, offset
