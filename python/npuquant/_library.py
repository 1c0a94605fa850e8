# SPDX-License-Identifier: BSD-3-Clause
"""The shared library: where it is found, how its failures become exceptions, and its settings."""
from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import os
import pathlib
import re
import sys
from typing import Any, Iterator, Optional, Tuple

import numpy as np

from . import _native
from ._arguments import BFLOAT16, ArgumentError, ArgumentTypeError, shown, wrong_type
from ._tensors import to_array

__tracebackhide__ = True  # pytest shows the line that calls the package

__version__: str = _native.VERSION

# The library that a wheel has beside this file, and the names that the system's loader knows the library by; Windows
# compilers disagree on the prefix.
_SUFFIX = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")
BUNDLED = pathlib.Path(__file__).with_name(f"libnpuquant.{_SUFFIX}")
if sys.platform == "win32":
    NAMES: Tuple[str, ...] = tuple(f"{prefix}npuquant-{_native.ABI_VERSION}.dll" for prefix in ("", "lib"))
elif sys.platform == "darwin":
    NAMES = (f"libnpuquant.{_native.ABI_VERSION}.dylib",)
else:
    NAMES = (f"libnpuquant.so.{_native.ABI_VERSION}",)

# The value of NPUQUANT_LIBRARY that selects the system's library, even if the package has its own.
SYSTEM = "system"


def _candidates() -> Iterator[str]:
    """Paths and names to try: only the one that the user names; or the package's; or the system's."""
    named = os.environ.get("NPUQUANT_LIBRARY")
    if named and named != SYSTEM:
        yield os.path.abspath(named)
        return
    if not named and BUNDLED.exists():
        yield str(BUNDLED)
        return
    yield from NAMES
    for name in NAMES if sys.platform == "win32" else ("npuquant",):
        found = ctypes.util.find_library(name)
        if found and found not in NAMES:
            yield found


def _open(name: str) -> ctypes.CDLL:
    """Loads a library. An ImportError says what is wrong with the library."""
    try:
        loaded = ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"{name} ({error})") from error
    try:
        for function in _native.FUNCTIONS:
            getattr(loaded, function)
        for function in ("npuq_version", "npuq_last_error", "npuq_status_name", "npuq_backend_name"):
            getattr(loaded, function).restype = ctypes.c_char_p
        loaded.npuq_backend_available.restype = ctypes.c_bool
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


class NpuquantError(ValueError, RuntimeError):
    """The library refused a call. The class is a RuntimeError, too, as the errors of torch_npu.

    The text is the library's: one line that names the operator and the argument, what was found and what was expected.
    The attribute status is the name of the status, such as "NPUQ_ERROR_SHAPE". Nothing has been computed.
    """

    __module__ = "npuquant"

    def __init__(self, message: str, status: str = ""):
        super().__init__(message)
        self.status = status


#: Python's names of what C has in npuq_mx.
_MEMBERS = {"block": "block_size", "rounding": "round_mode", "scale_algorithm": "scale_alg"}


def _refuse(status: str, message: str, argument: Optional[str] = None, array: Any = None) -> None:
    """Raises the library's error. argument and array are the first whose type the library does not have."""
    if argument is not None and "dtype is -1," in message:
        if not getattr(array.dtype, "isnative", True):
            raise ArgumentTypeError(f"{argument}: is in the other byte order; expected this machine's")
        # The library's message lists the types that the argument takes.
        expected = message.partition("; expected ")[2].lower()
        expected = expected.replace("bfloat16", BFLOAT16).replace("quint4x2", "int32 (words of eight int4)")
        raise wrong_type(argument, array.dtype, expected)
    # What C's users do is of no use here, nor how they call the members of a structure.
    message = re.sub(r"\boptions\.(\w+)", lambda member: _MEMBERS.get(member[1], member[1]), message)
    message = message.replace("such as with the strides that npuq_tensor_contiguous() sets",
                              "such as numpy.empty() makes for out")
    raise NpuquantError(message, status)


def _bind(loaded: Any) -> None:
    """Makes the operators call this library."""
    addresses = (ctypes.cast(getattr(loaded, function), ctypes.c_void_p).value for function in _native.FUNCTIONS)
    _native.bind(tuple(addresses), np.ndarray, to_array, _refuse, ArgumentError, ArgumentTypeError)


library = _load()
_bind(library)


def _backends() -> Iterator[Tuple[int, str]]:
    """Numbers and names of the backends that the library knows."""
    for number in itertools.count():
        name = library.npuq_backend_name(number).decode()
        if name == "unknown":
            return
        yield number, name


def version() -> str:
    """The version of the library, such as "0.2.0"."""
    return library.npuq_version().decode()


def backend() -> str:
    """The name of the backend that calls use: "ref", "avx2", "avx512", "neon" or "generic"."""
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
        raise ValueError(f"name: {shown(name)}; expected one of {', '.join(numbers)}")
    status = library.npuq_set_backend(numbers[name])
    if status != 0:
        _refuse(library.npuq_status_name(status).decode(), library.npuq_last_error().decode())
