# SPDX-License-Identifier: BSD-3-Clause
"""The shared library: where it is found, what its functions take, and how its failures become exceptions."""
from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import os
import sys
from typing import Iterator, Tuple

__version__ = "0.1.0"

# The names of the library with the ABI that is declared below; Windows compilers disagree on the prefix.
if sys.platform == "win32":
    NAMES = ("npuquant-0.dll", "libnpuquant-0.dll")
elif sys.platform == "darwin":
    NAMES = ("libnpuquant.0.dylib",)
else:
    NAMES = ("libnpuquant.so.0",)

MAX_NDIM = 8


class Tensor(ctypes.Structure):
    """npuq_tensor. An instance's attribute owner keeps the memory alive that data points to."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("ndim", ctypes.c_int32),
        ("shape", ctypes.c_int64 * MAX_NDIM),
        ("strides", ctypes.c_int64 * MAX_NDIM),
    ]


TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, TASK, ctypes.c_void_p)


class Executor(ctypes.Structure):
    """npuq_executor."""

    _fields_ = [("parallel_for", PARALLEL_FOR), ("context", ctypes.c_void_p)]


TENSOR = ctypes.POINTER(Tensor)
EXECUTOR = ctypes.POINTER(Executor)
ENUM = ctypes.c_int
FUNCTIONS = {
    "npuq_quantize": (ENUM, [TENSOR, TENSOR, TENSOR, ctypes.c_int32, ctypes.c_bool, TENSOR, EXECUTOR]),
    "npuq_group_quant": (ENUM, [TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, EXECUTOR]),
    "npuq_trans_quant_param": (ENUM, [TENSOR, TENSOR, ENUM, TENSOR]),
    "npuq_dynamic_quant_asymmetric": (ENUM, [TENSOR, TENSOR, TENSOR, ENUM, TENSOR, TENSOR, TENSOR, EXECUTOR]),
    "npuq_status_name": (ctypes.c_char_p, [ENUM]),
    "npuq_last_error": (ctypes.c_char_p, []),
    "npuq_active_backend": (ENUM, []),
    "npuq_backend_name": (ctypes.c_char_p, [ENUM]),
    "npuq_backend_available": (ctypes.c_bool, [ENUM]),
    "npuq_set_backend": (ENUM, [ENUM]),
    "npuq_version": (ctypes.c_char_p, []),
}


def _candidates() -> Iterator[str]:
    """Paths and names to try: what the user names, and nothing else then, or what the system may have."""
    named = os.environ.get("NPUQUANT_LIBRARY")
    if named:
        yield os.path.abspath(named)
        return
    yield from NAMES
    for name in NAMES if sys.platform == "win32" else ("npuquant",):
        found = ctypes.util.find_library(name)
        if found and found not in NAMES:
            yield found


def _open(name: str) -> ctypes.CDLL:
    """Loads a library and declares its functions; ImportError says what is wrong with it."""
    try:
        loaded = ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"{name} ({error})") from error
    try:
        for function, (result, arguments) in FUNCTIONS.items():
            getattr(loaded, function).restype = result
            getattr(loaded, function).argtypes = arguments
    except AttributeError as error:
        raise ImportError(f"{name} (not libnpuquant: {error})") from error
    # Before 1.0.0 a minor version may change anything.
    found = loaded.npuq_version().decode()
    if found.split(".")[:2] != __version__.split(".")[:2]:
        raise ImportError(f"{name} (is version {found}; this module is for {__version__})")
    return loaded


def _load() -> ctypes.CDLL:
    tried = []
    for name in _candidates():
        try:
            return _open(name)
        except ImportError as error:
            tried.append(str(error))
    raise ImportError(
        "npuquant: no usable library; install libnpuquant, or set NPUQUANT_LIBRARY to its path. Tried: "
        + "; ".join(tried)
    )


library = _load()


class NpuquantError(ValueError):
    """The library refused a call.

    The text is the library's: one line that names the operator and the argument, what was found and what was expected.
    The attribute status is the name of the status, such as "NPUQ_ERROR_SHAPE". Nothing has been computed.
    """

    __module__ = "npuquant"

    def __init__(self, message: str, status: str = ""):
        super().__init__(message)
        self.status = status


def check(status: int) -> None:
    """Raises what a status stands for; must run on the thread of the call, where the message is."""
    if status != 0:
        message = library.npuq_last_error().decode(errors="replace")
        raise NpuquantError(message, library.npuq_status_name(status).decode())


def _backends() -> Iterator[Tuple[int, str]]:
    """Numbers and names of the backends that the library knows."""
    for number in itertools.count():
        name = library.npuq_backend_name(number).decode()
        if name == "unknown":
            return
        yield number, name


def version() -> str:
    """The version of the library, such as "0.1.0"."""
    return library.npuq_version().decode()


def backend() -> str:
    """The name of the backend that calls use: "ref", "avx2", "avx512" or "neon"."""
    return library.npuq_backend_name(library.npuq_active_backend()).decode()


def available_backends() -> Tuple[str, ...]:
    """The names of the backends that are built in and run on this CPU.

    >>> "ref" in available_backends()
    True
    """
    return tuple(name for number, name in _backends() if library.npuq_backend_available(number))


def set_backend(name: str) -> None:
    """Chooses the backend for the whole process; results never change, only speed.

    NpuquantError (NPUQ_ERROR_BACKEND) if it is not built in or does not run on this CPU.
    """
    numbers = {known: number for number, known in _backends()}
    if not isinstance(name, str) or name not in numbers:
        raise ValueError(f"name: {name!r}; expected one of {', '.join(numbers)}")
    check(library.npuq_set_backend(numbers[name]))
