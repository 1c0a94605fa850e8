# SPDX-License-Identifier: BSD-3-Clause
"""Views of NumPy arrays and DLPack objects as npuq_tensor. Nothing is copied."""
from __future__ import annotations

import ctypes
from typing import Any, Dict, Iterable, Optional, Protocol, Tuple, Union

import numpy as np

from ._library import MAX_NDIM, Tensor

# npuq_dtype of inputs, by NumPy's names. NumPy has no bfloat16: uint16 stands for its bits; ml_dtypes has it by name.
DTYPES = {
    "float32": 0,
    "float16": 1,
    "bfloat16": 27,
    "uint16": 27,
    "int8": 2,
    "uint8": 4,
    "int32": 3,
    "int64": 9,
}
QUINT4X2 = 256

# What a result may be: npuq_dtype, and the type of the array that holds it.
RESULTS: Dict[str, Tuple[int, np.dtype]] = {
    "int8": (DTYPES["int8"], np.dtype(np.int8)),
    "uint8": (DTYPES["uint8"], np.dtype(np.uint8)),
    "int32": (DTYPES["int32"], np.dtype(np.int32)),
    "quint4x2": (QUINT4X2, np.dtype(np.int32)),
}
# PyTorch's names for quantised types of the same bits.
ALIASES = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}


class SupportsDLPack(Protocol):
    """An object of the DLPack protocol: a torch.Tensor, for instance."""

    def __dlpack__(self, *arguments: Any, **keywords: Any) -> Any:
        ...

    def __dlpack_device__(self) -> Tuple[int, int]:
        ...


TensorLike = Union[np.ndarray, np.generic, SupportsDLPack]


def result_type(argument: str, dtype: Any) -> Tuple[int, np.dtype]:
    """A dtype of NumPy or PyTorch, or a name, as a value of RESULTS."""
    name = str(dtype)
    # PyTorch need not be installed to be understood.
    name = name[len("torch."):] if name.startswith("torch.") else name
    name = ALIASES.get(name, name)
    if name not in RESULTS:
        try:
            described = np.dtype(dtype)
            name = described.name if described.isnative else name
        except Exception:  # NumPy says no in several of them, SyntaxError among them
            pass
    # np.dtype(None) is float64, which is not here either.
    if name not in RESULTS:
        raise TypeError(f"{argument}: is {dtype!r}; expected int8, uint8, int32 or quint4x2")
    return RESULTS[name]


def _tensor(owner: Any, data: Optional[int], dtype: int, shape: Iterable[int], strides: Iterable[int]) -> Tensor:
    shape, strides = tuple(shape), tuple(strides)
    tensor = Tensor(data, dtype, len(shape), shape[:MAX_NDIM], strides[:MAX_NDIM])
    tensor.owner = owner
    return tensor


def array_tensor(argument: str, array: np.ndarray, dtype: Optional[int] = None) -> Tensor:
    """A view of an array, as another type of the same size if dtype is given."""
    if dtype is None:
        dtype = DTYPES.get(array.dtype.name)
    if dtype is None:
        raise TypeError(f"{argument}: is {array.dtype}; expected one of {', '.join(DTYPES)}")
    if not array.dtype.isnative:
        raise TypeError(f"{argument}: is in the other byte order; expected this machine's")
    size = array.itemsize
    if array.size > 0 and any(stride % size for extent, stride in zip(array.shape, array.strides) if extent > 1):
        raise ValueError(f"{argument}: strides are {array.strides} bytes; expected multiples of {size}")
    return _tensor(array, array.ctypes.data, dtype, array.shape, (stride // size for stride in array.strides))


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensor, in capsules named dltensor."""

    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]


class _ManagedVersioned(ctypes.Structure):
    """DLManagedTensorVersioned, in capsules named dltensor_versioned: DLPack 1.0 and later."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


# A capsule refers to its name without copying it, so the names must live as long as any capsule does.
_CAPSULES = (
    (b"dltensor_versioned", b"used_dltensor_versioned", _ManagedVersioned),
    (b"dltensor", b"used_dltensor", _Managed),
)
_DLPACK_MAJOR = 1

# DLPack's devices whose memory the CPU reads: its own, and what CUDA and ROCm have pinned of it.
_HOSTS = (1, 3, 11)
_DLPACK_KINDS = ("int", "uint", "float", "handle", "bfloat", "complex", "bool")
# DLPack's type codes and bits. uint16 is taken for bfloat16 as in NumPy arrays.
_DLPACK_DTYPES = {
    (2, 32): "float32",
    (2, 16): "float16",
    (4, 16): "bfloat16",
    (1, 16): "uint16",
    (0, 8): "int8",
    (1, 8): "uint8",
    (0, 32): "int32",
    (0, 64): "int64",
}

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


class _Consumed:
    """The content of a capsule, given back to its producer when nothing refers to this object any more."""

    managed: Any = None

    def __init__(self, argument: str, capsule: Any):
        for name, used, structure in _CAPSULES:
            if _is_valid(capsule, name):
                self.address = _get_pointer(capsule, name)
                _set_name(capsule, used)
                self.managed = structure.from_address(self.address)
                return
        raise TypeError(f"{argument}: __dlpack__() returned {capsule!r}; expected a capsule named dltensor")

    def __del__(self) -> None:
        if self.managed is not None and self.managed.deleter:
            self.managed.deleter(self.address)


def _dlpack_tensor(argument: str, value: SupportsDLPack) -> Tensor:
    # A producer says no in an exception of its choice: a tensor that requires its gradient, one on an odd device.
    try:
        device = int(value.__dlpack_device__()[0])
    except Exception as error:
        raise ValueError(f"{argument}: cannot be read through DLPack: {error}") from error
    if device not in _HOSTS:
        raise ValueError(f"{argument}: is on a device (DLPack's number {device}); expected the CPU")
    try:
        try:
            capsule = value.__dlpack__(max_version=(_DLPACK_MAJOR, 0))
        except TypeError:  # a producer older than DLPack 1.0
            capsule = value.__dlpack__()
    except Exception as error:
        raise ValueError(f"{argument}: cannot be read through DLPack: {error}") from error

    owner = _Consumed(argument, capsule)
    if getattr(owner.managed, "major", _DLPACK_MAJOR) != _DLPACK_MAJOR:
        raise ValueError(f"{argument}: is DLPack {owner.managed.major}; expected {_DLPACK_MAJOR}")
    view = owner.managed.tensor
    if view.device_type not in _HOSTS:
        raise ValueError(f"{argument}: is on a device (DLPack's number {view.device_type}); expected the CPU")
    dtype = _DLPACK_DTYPES.get((view.code, view.bits)) if view.lanes == 1 else None
    if dtype is None:
        kind = _DLPACK_KINDS[view.code] if view.code < len(_DLPACK_KINDS) else f"DLPack type code {view.code}, bits "
        lanes = "" if view.lanes == 1 else f" with {view.lanes} lanes"
        raise TypeError(f"{argument}: is {kind}{view.bits}{lanes}; expected one of {', '.join(DTYPES)}")
    if view.ndim < 0 or (view.ndim > 0 and not view.shape):
        raise ValueError(f"{argument}: has {view.ndim} dimensions{'' if view.shape else ' and no shape'}")
    shape = view.shape[:view.ndim]
    if view.strides:
        strides = view.strides[:view.ndim]
    else:  # C order
        strides = np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1].tolist() if shape else []
    if not view.data and 0 not in shape:
        raise ValueError(f"{argument}: data is null; expected the tensor's elements")
    data = view.data + view.byte_offset if view.data else 0  # an offset from nothing leads nowhere
    if data >= 1 << 8 * ctypes.sizeof(ctypes.c_void_p):
        raise ValueError(f"{argument}: byte_offset is {view.byte_offset}; expected an address when added to data")
    return _tensor(owner, data, DTYPES[dtype], shape, strides)


def tensor(argument: str, value: TensorLike) -> Tensor:
    """A view of an input."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{argument}: is a masked array; expected one without a mask, such as what its filled() gives")
    if isinstance(value, (np.ndarray, np.generic)):
        return array_tensor(argument, np.asarray(value))
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _dlpack_tensor(argument, value)
    raise TypeError(f"{argument}: is {type(value).__name__}; expected a NumPy array or an object with __dlpack__")


def optional_tensor(argument: str, value: Optional[TensorLike]) -> Optional[Tensor]:
    return None if value is None else tensor(argument, value)
