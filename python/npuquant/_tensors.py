# SPDX-License-Identifier: BSD-3-Clause
"""Tensors and types of the operators: as NumPy arrays of the same memory, and as NumPy's types."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple, TypeVar, Union

import numpy as np

from npuquant_facts.dtypes import TYPES, Type
from npuquant_facts.operators import OPERATORS, READ, TAKEN, extents

from . import _native
from ._arguments import BFLOAT16, ArgumentError, ArgumentTypeError, listed, shown, unless_implemented

__tracebackhide__ = True  # pytest shows the line that calls the package


class SupportsDLPack(Protocol):
    """An object of the DLPack protocol: a torch.Tensor, for instance."""

    def __dlpack__(self, *arguments: Any, **keywords: Any) -> Any:
        ...

    def __dlpack_device__(self) -> Tuple[int, int]:
        ...


TensorLike = Union[np.ndarray, np.generic, SupportsDLPack]
#: The type of out is also the type of the return value.
Out = TypeVar("Out", bound=Union[np.ndarray, SupportsDLPack])


class Result(NamedTuple):
    """The type of a result, or of an input that hard_inputs() makes."""

    name: str
    dtype: np.dtype  # of a storage word
    number: int  # in the extension
    elements: int  # in a storage word


Results = Dict[Any, Result]
_NAMED: Results = {name: Result(name, np.dtype(kind.stored), kind.number, kind.elements)
                   for name, kind in TAKEN.items()}
#: Of the type of an array; uint16 has the bits of bfloat16. Codes of small floats are uint8, but uint8 may be anything.
NAMES = {result.dtype: name for name, result in _NAMED.items()
         if result.elements == 1 and not TYPES[name].has_codes}
# The numbers of PyTorch's scalar types, which torch_npu takes too: dst_type of npu_dynamic_quant_asymmetric() is one in
# op_plugin/ops/opapi/DynamicQuantKernelNpuOpApi.cpp of Ascend/op-plugin, where int4 is that of quint4x2;
# op_plugin/python/meta/_meta_registrations.py there lists them. AntiQuantKernelNpuOpApi.cpp and
# QuantMatmulKernelNpuOpApi.cpp, beside the first, have dst_dtype and output_dtype.
_NUMBERS = {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64",
            11: "bool", 12: "qint8", 13: "quint8", 14: "qint32", 15: "bfloat16", 16: "quint4x2", 23: "float8_e5m2",
            24: "float8_e4m3fn", 44: "float8_e8m0fnu", 45: "float4_e2m1fn_x2"}
#: torch_npu's own types, which are numbers: aclDataType + 256, as in torch_npu/csrc/custom_dtype/Init.cpp of
#: Ascend/pytorch.
DEVICE_TYPES = dict(sorted({
    **{256 + kind.number: name for name, kind in TYPES.items() if kind.number < 256},
    262: "int16", 263: "uint16", 264: "uint32", 267: "float64", 268: "bool", 269: "string", 272: "complex64",
    273: "complex128", 285: "int4", 286: "uint1", 289: "complex32", 294: "float6_e3m2", 295: "float6_e2m3",
}.items()))


FLOAT8, FLOAT4 = ([name for name, kind in TYPES.items() if kind.is_small_float and kind.bits == bits]
                   for bits in (8, 4))
_ELSEWHERE = {*_NUMBERS.values(), *DEVICE_TYPES.values()} - {*NAMES.values(), "quint4x2", "int4", "qint8", "quint8",
                                                              "qint32"}


def to_float(array: np.ndarray, name: Optional[str] = None) -> np.ndarray:
    """float32 of a floating-point array, or of the bits of bfloat16. The array says its type, or the name."""
    if (name or NAMES.get(array.dtype)) == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32, copy=False)


def from_float(array: np.ndarray, kind: str) -> np.ndarray:
    """float32 rounded half to even to a type; bfloat16 as its bits."""
    if kind != "bfloat16":
        return array.astype(kind, copy=False)
    bits = np.ascontiguousarray(array).view(np.uint32)
    return np.where(np.isnan(array), 0x7FC0, bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)


def unpacked(stored: np.ndarray, kind: Type) -> np.ndarray:
    """The values of storage words, in their order along the last dimension; of unsigned words, the bits of the values.
    Where each word has one value, the array itself."""
    if kind.elements == 1:
        return stored
    values = np.empty((*stored.shape, kind.elements), np.int8 if stored.dtype.kind == "i" else np.uint8)
    last = kind.bits * (kind.elements - 1)
    for n in range(kind.elements):
        values[..., n] = stored << last - kind.bits * n >> last
    return values.reshape(kind.in_values(stored.shape))


def packed(values: np.ndarray, kind: Type) -> np.ndarray:
    """Storage words of values, the first in the lowest bits of a word."""
    if kind.elements == 1:
        return values
    word = np.dtype(kind.stored)
    bits = (values.astype(np.uint8) & np.uint8((1 << kind.bits) - 1)).astype(f"u{word.itemsize}")
    bits = bits.reshape(*kind.in_words(values.shape), kind.elements)
    return np.bitwise_or.reduce(bits << np.arange(0, 8 * word.itemsize, kind.bits, bits.dtype), axis=-1).view(word)


def _results(*names: str) -> Results:
    """The types of _NAMED with these names. The keys are the names, PyTorch's names for quantised types with the same
    bits, NumPy's types, and int4 for quint4x2, so that a usual type is found at once."""
    named = {name: _NAMED[name] for name in names}
    quantised = {"q" + name: named[name] for name in names if TYPES[name].is_integer and TYPES[name].elements == 1}
    int4 = {"int4": named["quint4x2"]} if "quint4x2" in names else {}
    types = {getattr(np, name): named[name] for name in names if hasattr(np, name)}
    return {**named, **quantised, **int4, **types}


def _results_of(operator: str) -> Results:
    return _results(*OPERATORS[operator].results[0].types)


QUANTISED, FLOATING, REQUANTISED, MX = map(_results_of, ("quantize", "anti_quant", "requant", "dynamic_mx_quant"))
INTEGERS = _results(*(name for name in OPERATORS["quantize"].results[0].types if TYPES[name].is_integer))
INT8 = _results("int8")
ON_DEVICE = _results("int8", "quint4x2")  # what it makes with scales that it finds from the data
PRODUCTS = _results("int8", "float16", "bfloat16", "float32", "int32")
INPUTS = _results(*READ)
#: What decode() and encode() of mx.py take.
CODED = _results(*(name for name, kind in TYPES.items() if kind.has_codes))
# What may be said of x of npu_anti_quant(). torch_npu.int4, a number, is no type of a result on the device.
_INT4 = 285
SOURCES: Results = {**INTEGERS, (int, _INT4): _NAMED["quint4x2"]}


def _number(dtype: Any) -> Optional[int]:
    return int(dtype) if isinstance(dtype, (int, np.integer)) and not isinstance(dtype, bool) else None


def described(dtype: Any) -> str:
    """A dtype in a message: a number with the name of the type that the number stands for."""
    number = _number(dtype)
    if number is None:
        return shown(dtype)
    if number in DEVICE_TYPES:
        return f"torch_npu.{DEVICE_TYPES[number]} ({number})"
    return f"{number} ({_NUMBERS[number]})" if number in _NUMBERS else str(number)


def name_of(dtype: Any) -> str:
    """The name of a type of NumPy or PyTorch, or of a number of PyTorch's or torch_npu's; other values as text."""
    name = str(dtype)
    name = name[len("torch."):] if name.startswith("torch.") else name  # PyTorch need not be installed
    number = _number(dtype)
    if number is not None:
        return DEVICE_TYPES.get(number, _NUMBERS.get(number, name))
    if name not in INPUTS:  # among them qint8, which NumPy does not know: no compiler can trace how NumPy says no
        with contextlib.suppress(Exception):  # NumPy says no in several of them, SyntaxError among them
            native = np.dtype(dtype)
            return native.name if native.isnative else name
    return name


def result_type(argument: str, dtype: Any, results: Results, expected: Optional[str] = None) -> Result:
    """The value in results for a dtype of NumPy or PyTorch, a name, or a number of PyTorch's or torch_npu's.

    The library says which types its operator has; expected, or the names of results, is for other types.
    """
    key = (int, dtype) if type(dtype) is int else dtype  # True is equal to 1, and is no number of a type
    try:
        return results[key]
    except (KeyError, TypeError):  # TypeError: has no hash
        pass
    # torch_npu.int4, a number, is no type of a result. np.dtype(None) is float64, which is not here either.
    name = str(dtype) if _number(dtype) == _INT4 else name_of(dtype)
    if name not in results:
        of_torch = type(dtype).__module__ == "torch" and name not in _NAMED
        missing = dtype is not None and (name in _ELSEWHERE or (of_torch and name[0] != "q"))
        why = unless_implemented(name) if missing else ""
        text = (f"{argument}: is {described(dtype)}{why}; expected "
                + (expected or listed([result.name for result in results.values()])))
        raise ArgumentTypeError(text, (argument, name) if name in FLOAT8 else None)
    if type(dtype) is int or type(dtype).__module__ == "torch":
        results[key] = results[name]  # from now on it is found at once
    return results[name]


class Maker(NamedTuple):
    """In place of out: results are what this function makes of a shape and a type."""

    empty: Callable[[Tuple[int, ...], np.dtype], Any]


_NUMPY = Maker(np.empty)


def _maker(out: Any) -> Optional[Maker]:
    """What makes new results; None if out has the memory."""
    return _NUMPY if out is None else out if type(out) is Maker else None


def returned(made: Any, out: Any) -> Any:
    """What an operator returns: new results, or the object that the caller gave for them."""
    return out if _maker(out) is None else made


def output(out: Any, shape: Tuple[int, ...], dtype: np.dtype) -> Any:
    """The memory of a result: a new one, or out as an array, or as a PyTorch tensor that the extension takes. The
    library checks the shape."""
    maker = _maker(out)
    if maker is not None:
        # NumPy is slow with PyTorch's shapes.
        return maker.empty(shape if type(shape) is tuple else tuple(shape), dtype)
    array = out
    if type(out) is not np.ndarray or out.dtype != dtype:
        if _native.torch_type(out) == NAMES[dtype] and not out.requires_grad:
            return out
        array = to_array("out", out, write=True)
        if str(array.dtype) != dtype.name:
            raise ArgumentTypeError(f"out: is {array.dtype}; expected {BFLOAT16 if dtype == np.uint16 else dtype}")
    if not array.flags.writeable:
        raise ArgumentError("out: is read-only; expected an array that can be written to")
    return array


def codes_of(value: Any, name: str) -> Any:
    """The codes of an array or tensor of this type, as uint8 in the same memory; other values unchanged."""
    if TYPES[name].has_codes and str(getattr(value, "dtype", "")).replace("torch.", "") == name:
        return value.view(np.uint8 if isinstance(value, np.ndarray) else sys.modules["torch"].uint8)
    return value


_FLOAT32: np.dtype = np.dtype(np.float32)
_UINT8: np.dtype = np.dtype(np.uint8)


@functools.lru_cache(maxsize=None)
def _types_of(operator: str) -> Tuple[Results, str, str]:
    """What an operator's first result may be, the usual type, and the words of a message for the types."""
    types = types_made(operator)
    made = {name: kind for name, kind in QUANTISED.items() if kind.name in types}
    kinds = (FLOATING if "float32" in types else REQUANTISED if "float16" in types else
             MX if "float4_e2m1fn_x2" in types else made if "hifloat8" in types else INTEGERS)
    return kinds, types[0], listed(types)


def types_made(operator: str) -> Tuple[str, ...]:
    """The types of an operator's first result. torch_npu has one operator where the library has another for 8-bit
    floats."""
    operators = [OPERATORS[name] for name in (operator, f"{operator}_float8") if name in OPERATORS]
    return tuple(name for each in operators for name in each.results[0].types)


def operator_to(operator: str, kind: Result) -> str:
    """The library's operator that makes this type."""
    return operator if kind.name in OPERATORS[operator].results[0].types else f"{operator}_float8"


def result_of(operator: str, argument: str, dtype: Any, optional: bool = False) -> Result:
    """The type of an operator's first result; None stands for the usual one where the argument is optional."""
    kinds, usual, expected = _types_of(operator)
    return kinds[usual] if dtype is None and optional else result_type(argument, dtype, kinds, expected)


def outputs(operator: str, shape: Tuple[int, ...], kind: Result, out: Any, per_tensor: bool = False, block: int = 1,
            row_block: int = 1, axis: int = -1) -> Any:
    """The memory of an operator's results, of which the first is of this type: new ones, or those of out. The shape
    is that of the data in values; see extents() for what else the shapes depend on."""
    results, maker = OPERATORS[operator].results, _maker(out)
    first = shape
    if maker is not None and kind.elements > 1 and shape:
        first = (*shape[:-1], shape[-1] // kind.elements)
    if len(results) == 1:
        made = output(codes_of(out, kind.name), first, kind.dtype) if maker is None else None
        return (maker.empty(tuple(first), kind.dtype) if maker else made,)
    others = extents(results[1].shape, shape, (), per_tensor, block, axis, row_block)  # all others have this shape
    dtype = _UINT8 if results[1].name == "mxscale" else _FLOAT32
    if maker is not None:
        y, scale = maker.empty(tuple(first), kind.dtype), maker.empty(others, dtype)
        return (y, scale) if len(results) == 2 else (y, scale, maker.empty(others, _FLOAT32))  # a loop costs more
    if not isinstance(out, tuple) or len(out) != len(results) or type(None) in map(type, out):
        names = listed([result.name for result in results]).replace(" or ", " and ")
        raise ArgumentTypeError(f"out: is {type(out).__name__}; expected a tuple of "
                                f"{('two', 'three')[len(results) - 2]} arrays, {names}")
    return (output(codes_of(out[0], kind.name), first, kind.dtype),
            *[output(codes_of(one, result.types[0]), others, dtype) for one, result in zip(out[1:], results[1:])])


def words_shape(scale: Tuple[int, ...], offset: Optional[Tuple[int, ...]]) -> Tuple[int, ...]:
    """The shape of what npu_trans_quant_param() returns for a scale and an offset of these shapes."""
    if offset is not None:
        if len(scale) == 1 and not scale > offset[:1]:
            return offset
        if scale == (1, 1) and len(offset) == 1:  # torch_npu's shape has no room for all words
            return (1, *offset)
    return scale


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
_DLPACK_READ_ONLY = 1

# DLPack's devices whose memory the CPU reads: its own, and what CUDA and ROCm have pinned of it.
_HOSTS = (1, 3, 11)
_DLPACK_KINDS = ("int", "uint", "float", "handle", "bfloat", "complex", "bool")
# What becomes of DLPack's type codes and bits. NumPy has no bfloat16: its bits are uint16.
_DLPACK_DTYPES = {(0, 8): "i1", (1, 8): "u1", (0, 32): "i4", (0, 64): "i8", (1, 16): "u2", (1, 64): "u8", (2, 32): "f4",
                  (2, 16): "f2", (4, 16): "u2"}

# Those that NumPy does not have at all, by code, bits and lanes.
_DLPACK_SMALL = {(10, 8, 1): "float8_e4m3fn", (12, 8, 1): "float8_e5m2", (14, 8, 1): "float8_e8m0fnu",
                 (17, 4, 2): "float4_e2m1fn_x2"}

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


class _Consumed:
    """The content of a capsule. The producer gets it back when nothing refers to this object any more."""

    managed: Any = None
    __array_interface__: Dict[str, Any]

    def __init__(self, argument: str, capsule: Any):
        for name, used, structure in _CAPSULES:
            if _is_valid(capsule, name):
                self.address = _get_pointer(capsule, name)
                _set_name(capsule, used)
                self.managed = structure.from_address(self.address)
                return
        raise ArgumentTypeError(f"{argument}: __dlpack__() returned {capsule!r}; expected a capsule named dltensor")

    def __del__(self) -> None:
        if self.managed is not None and self.managed.deleter:
            self.managed.deleter(self.address)


class Unknown(NamedTuple):
    """A tensor of a type that NumPy does not have, until the library says which types it expected."""

    dtype: str
    shape: Tuple[int, ...] = ()


def _dlpack_array(argument: str, value: SupportsDLPack, write: bool) -> Union[np.ndarray, Unknown]:
    # A producer says no in an exception of its choice: a tensor that requires its gradient, one on an odd device.
    try:
        device = int(value.__dlpack_device__()[0])
    except Exception as error:
        raise ArgumentError(f"{argument}: cannot be read through DLPack: {error}") from error
    if device not in _HOSTS:
        raise ArgumentError(f"{argument}: is on a device (DLPack's number {device}); expected the CPU")
    try:
        try:
            capsule = value.__dlpack__(max_version=(_DLPACK_MAJOR, 0))
        except TypeError:  # a producer older than DLPack 1.0
            capsule = value.__dlpack__()
    except Exception as error:
        raise ArgumentError(f"{argument}: cannot be read through DLPack: {error}") from error

    owner = _Consumed(argument, capsule)
    if getattr(owner.managed, "major", _DLPACK_MAJOR) != _DLPACK_MAJOR:
        raise ArgumentError(f"{argument}: is DLPack {owner.managed.major}; expected {_DLPACK_MAJOR}")
    view = owner.managed.tensor
    if view.device_type not in _HOSTS:
        raise ArgumentError(f"{argument}: is on a device (DLPack's number {view.device_type}); expected the CPU")
    dtype = _DLPACK_DTYPES.get((view.code, view.bits)) if view.lanes == 1 else None
    if dtype is None:
        kind = _DLPACK_KINDS[view.code] if view.code < len(_DLPACK_KINDS) else f"DLPack type code {view.code}, bits "
        lanes = "" if view.lanes == 1 else f" with {view.lanes} lanes"
        return Unknown(_DLPACK_SMALL.get((view.code, view.bits, view.lanes), f"{kind}{view.bits}{lanes}"))
    if view.ndim < 0 or (view.ndim > 0 and not view.shape):
        raise ArgumentError(f"{argument}: has {view.ndim} dimensions{'' if view.shape else ' and no shape'}")
    shape = tuple(view.shape[:view.ndim])
    if not view.data:
        if 0 in shape:
            return np.empty(shape, dtype)
        raise ArgumentError(f"{argument}: data is null; expected the tensor's elements")
    data = view.data + view.byte_offset
    if data >= 1 << 8 * ctypes.sizeof(ctypes.c_void_p):
        raise ArgumentError(f"{argument}: byte_offset is {view.byte_offset}; expected an address when added to data")
    size = np.dtype(dtype).itemsize
    owner.__array_interface__ = {
        "version": 3,
        "typestr": np.dtype(dtype).str,
        "data": (data, not write or bool(getattr(owner.managed, "flags", 0) & _DLPACK_READ_ONLY)),
        "shape": shape,
        "strides": tuple(stride * size for stride in view.strides[:view.ndim]) if view.strides else None,
    }
    try:
        return np.asarray(owner)
    except Exception as error:
        raise ArgumentError(f"{argument}: {error}") from error


def to_array(argument: str, value: Any, write: bool = False) -> Union[np.ndarray, Unknown]:
    """An input, or with write an output, as an array of the same memory."""
    if isinstance(value, Unknown):
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(f"{argument}: is a masked array; expected one without a mask, such as what its filled() "
                                "gives")
    if isinstance(value, np.ndarray) or (isinstance(value, np.generic) and not write):
        array = np.asarray(value)
        return array.view(np.uint16) if array.dtype.name == "bfloat16" else array  # of the package ml_dtypes
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        if type(value) is getattr(sys.modules.get("torch"), "Tensor", None):
            _native.bind_torch(sys.modules["torch"])  # from now on the extension reads such tensors itself
        # PyTorch exports the memory of a negated view, which has the numbers before they are negated.
        if getattr(value, "is_neg", bool)():
            if write:
                raise ArgumentError(f"{argument}: is a negated view; expected a tensor whose memory has its values")
            value = value.resolve_neg()
        # A parameter of a PyTorch module is read like any tensor: what it is to its gradient does not matter then.
        parameter = getattr(value, "requires_grad", False) and not write
        return _dlpack_array(argument, value.detach() if parameter else value, write)
    raise ArgumentTypeError(f"{argument}: is {type(value).__name__}; expected a NumPy array or an object with "
                            "__dlpack__")


def arrays(given: Mapping[str, Any], required: Sequence[str], optional: Sequence[str] = ()) -> Dict[str, Any]:
    """Some of a function's arguments as arrays, by their names. Those that are optional may be None."""
    return {name: None if given[name] is None and name in optional else to_array(name, given[name])
            for name in (*required, *optional)}


def tensor(argument: str, value: Any) -> Any:
    """An input with a shape: an array, or a PyTorch tensor that the extension takes."""
    return value if type(value) is np.ndarray or _native.torch_type(value) else to_array(argument, value)
