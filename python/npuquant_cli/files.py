# SPDX-License-Identifier: BSD-3-Clause
"""From files to tensors and back: NumPy's .npy and .npz files, and files of elements alone.

Files may come from anywhere. No number in a file decides how much memory is taken: a regular file is mapped, and what a
pipe or a compressed member has is read until it is longer than its header promises.
"""
from __future__ import annotations

import io
import math
import mmap
import os
import re
import signal
import stat
import struct
import sys
import textwrap
import uuid
import warnings
import zipfile
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import IO, Any, BinaryIO, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, Union

import numpy as np

from .errors import CommandError

#: NumPy's stubs give these functions no types.
_npy: Any = np.lib.format

#: npuquant's name of each type that a file may have. NumPy has no bfloat16: writers use any 16-bit type for its bits.
_DTYPES = {
    "f4": "float32", "f2": "float16", "i1": "int8", "u1": "uint8", "i4": "int32", "i8": "int64", "u8": "uint64",
    "u2": "bfloat16", "i2": "bfloat16", "V2": "bfloat16",
}
#: NumPy's name of each type as results are stored.
_STORED = {**{dtype: stored for stored, dtype in _DTYPES.items()}, "bfloat16": "u2", "quint4x2": "i4"}

_EXPECTED_TYPES = "expected one of " + " ".join(_DTYPES)
_MOST_DIMENSIONS = 8
#: The longest beginning of a file that is read for its header; NumPy takes no longer headers by itself.
_PREFIX = 10000

_OF_PYTORCH = " but PyTorch's; write it with numpy.save(path, tensor.cpu().numpy())"
#: How files of other kinds begin, where, and how to make a .npy file of them. The first match counts.
_OTHER_KINDS: Tuple[Tuple[Union[bytes, Tuple[bytes, ...]], int, str], ...] = (
    (b"\x1f\x8b", 0, " but gzip; gunzip it first"),
    (b"\x80\2\x8a\x0a\x6c\xfc\x9c\x46", 0, _OF_PYTORCH),
    ((b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5"), 0,
     " but a pickle; load it where it was made and write numpy.save(path, array)"),
    (b"\x89HDF\r\n", 0, " but HDF5; write it with numpy.save(path, dataset[...])"),
    # The upper bytes of the length of a JSON header, then the header.
    (b"\0\0\0\0{", 4, " but safetensors; write it with numpy.save(path, safetensors.numpy.load_file(file)[name])"),
)


@dataclass
class Tensor:
    """An array, and the type of its elements by npuquant's name."""

    array: np.ndarray
    dtype: str


@dataclass
class File(Tensor):
    """A tensor from a file: a view of the mapped file, or a copy."""

    path: str
    type: str
    is_bfloat16: bool
    mapped: Optional[mmap.mmap] = None

    def check_whole(self) -> None:
        """Raises an error if the file has been cut short: the rest of a page that was cut reads as zeros."""
        if self.mapped is not None and self.mapped.size() < len(self.mapped):
            raise CommandError(f"{self.path}: was cut short while it was in use")


def numpy_type(dtype: str) -> str:
    """NumPy's name of a type as results are stored."""
    return _STORED[dtype]


def show_shape(shape: Sequence[Any]) -> str:
    return str([int(extent) for extent in shape])


def _reason(error: Exception) -> str:
    """What an exception says, in one line."""
    text = getattr(error, "strerror", None) or textwrap.shorten(str(error), 400, placeholder=" ...")
    return text or type(error).__name__


# ---- reading ----


class _Layout(NamedTuple):
    """How the elements lie in a file."""

    dtype: np.dtype
    shape: Tuple[int, ...]
    is_fortran: bool
    begin: int

    @property
    def end(self) -> int:
        return self.begin + math.prod(self.shape) * self.dtype.itemsize


def load(path: str) -> File:
    """Loads a .npy file, a member of a .npz archive (file.npz:NAME), or a file of elements alone (file:TYPE:SHAPE)."""
    name = "stdin" if path == "-" else path
    source, rest = _open(path, name)
    with source:
        mapped = _map(source)
        try:
            array = _read(source, mapped, rest)
        except Exception as error:  # of many kinds, from NumPy, ast, tokenize, zipfile, zlib: for files that lie
            raise CommandError(f"{name}: {_reason(error)}") from None
    stored = array.dtype.str[1:]
    if _DTYPES[stored] == "bfloat16":
        array = array.view("u2")
    is_bfloat16 = rest is not None and rest.startswith("bfloat16:")
    return File(array, _DTYPES[stored], name, stored, is_bfloat16, mapped)


def _open(path: str, shown: str) -> Tuple[BinaryIO, Optional[str]]:
    """Opens the file whose name is the path, or ends at one of its colons; returns also the text after the name."""
    name, rest, refusal = path, None, None
    while True:
        try:
            return open(0 if name == "-" else name, "rb", closefd=name != "-"), rest
        except OSError as error:
            refusal = refusal or error
        if ":" not in name:
            raise CommandError(f"{shown}: {_reason(refusal)}")
        name = name.rpartition(":")[0]
        rest = path[len(name) + 1:]


def _map(source: BinaryIO) -> Optional[mmap.mmap]:
    """Maps a regular file; None if it has to be read. Windows cannot replace a mapped file by an output."""
    try:
        # If a program before this one has read from stdin, the rest is not a whole file.
        if os.name == "nt" or not stat.S_ISREG(os.fstat(source.fileno()).st_mode) or source.tell() != 0:
            return None
        return mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # ValueError: an empty file
        return None


def _read(source: BinaryIO, mapped: Optional[mmap.mmap], rest: Optional[str]) -> np.ndarray:
    """The array of an open file, in native byte order and aligned. Raises any exception if there is none."""
    data: Any = source.read(_PREFIX) if mapped is None else mapped
    if rest is not None and ":" in rest:
        layout = _parse_words(*rest.split(":", 1))
    elif data[:4] in (b"PK\3\4", b"PK\5\6"):
        if mapped is None:
            data += source.read()
            source = io.BytesIO(data)
        return _read_member(source, memoryview(data), rest)
    elif rest is not None:
        raise ValueError(f"is not an .npz archive, and has no member {rest}")
    else:
        layout = _parse_header(data[:_PREFIX], "; for a file of elements alone, add :TYPE:N,N, as :float16:32,4096")
    if mapped is None:
        data = _read_to(layout.end, source, data)
    return _array_of(layout, data)


def _read_to(end: int, source: IO[bytes], prefix: bytes) -> bytearray:
    """Reads on, until one byte more than expected is there, or the file ends. Memory grows with the data, since a
    header can promise anything."""
    data = bytearray(prefix)
    while len(data) <= end:
        part = source.read(min(end + 1 - len(data), 1 << 24))
        if not part:
            break
        data += part
    return data


def _read_member(source: BinaryIO, data: memoryview, name: Optional[str]) -> np.ndarray:
    """The array of an archive that has the name, with or without .npy; without a name, the only array."""
    with zipfile.ZipFile(source) as archive:
        member = archive.getinfo(_find_member(archive.namelist(), name))
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:  # 1: is encrypted, which open() refuses
            with archive.open(member) as packed:
                prefix = packed.read(_PREFIX)
                layout = _parse_header(prefix)
                return _array_of(layout, _read_to(layout.end, packed, prefix))
    # The member's own record has 30 bytes, its name, and a field whose length only this record tells.
    if data[member.header_offset:member.header_offset + 4] != b"PK\3\4":
        raise ValueError(f"malformed zip archive: {member.filename} is not where the directory says")
    begin = member.header_offset + 30 + sum(struct.unpack_from("<HH", data, member.header_offset + 26))
    end = begin + member.compress_size
    if end > len(data):
        raise ValueError(f"malformed zip archive: {member.filename} does not end inside the file")
    return _array_of(_parse_header(bytes(data[begin:min(end, begin + _PREFIX)])), data[begin:end])


def _find_member(members: List[str], name: Optional[str]) -> str:
    arrays = [member for member in members if member.endswith(".npy")]
    if name is None:
        called = arrays if len(arrays) == 1 else []
    else:
        called = [member for member in members if member in (name, f"{name}.npy")]
    if called and members.count(called[0]) == 1:
        return called[0]
    if called:
        raise ValueError(f"{members.count(called[0])} members are called {called[0]}; expected one")
    if not arrays:
        is_pytorch = any(member.endswith("/data.pkl") for member in members)
        raise ValueError("not a .npy file" + (_OF_PYTORCH if is_pytorch else " but a zip archive without one"))
    first = arrays[0][:-len(".npy")]
    if name is not None:
        raise ValueError(f"no such member; the first of {len(arrays)} is {first}")
    raise ValueError(f"an archive of {len(arrays)} arrays; name one behind a colon, such as :{first}")


def _parse_words(dtype: str, shape: str) -> _Layout:
    """The layout of elements alone, from a type, as in a file or of npuquant, and extents."""
    stored = _STORED.get(dtype, dtype)
    if re.sub("^[<>=|]", "", stored) not in _DTYPES:
        raise ValueError(f"elements of type '{dtype:.15}'; {_EXPECTED_TYPES}")
    extents = shape.split(",")
    if not all(re.fullmatch(" *[0-9]{1,40} *", extent) for extent in extents):
        raise ValueError(f"shape '{shape:.60}': expected numbers, separated by commas")
    return _checked(_Layout(np.dtype(stored), tuple(map(int, extents)), False, 0))


def _parse_header(prefix: bytes, otherwise: str = "") -> _Layout:
    """The layout that the header of a .npy file tells. `otherwise` ends the message about files of no known kind."""
    if not prefix.startswith(_npy.MAGIC_PREFIX):
        hints = (hint for magic, offset, hint in _OTHER_KINDS if prefix.startswith(magic, offset))
        raise ValueError("not a .npy file" + next(hints, otherwise))
    stream = io.BytesIO(prefix)
    version = _npy.read_magic(stream)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError("version %d.%d of the .npy format; expected 1.0, 2.0 or 3.0" % version)
    # Version 3.0 has other text only in the names of structures.
    read = _npy.read_array_header_1_0 if version == (1, 0) else _npy.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that Python 2 has written the header
        shape, fortran_order, dtype = read(stream)
    descr = _npy.dtype_to_descr(dtype)
    if not isinstance(descr, str) or descr[1:] not in _DTYPES or dtype.subdtype is not None:
        hint = "; float64 becomes f4 with astype(np.float32)" if descr[1:] == "f8" else ""
        raise ValueError(f"elements of type {descr!r}; {_EXPECTED_TYPES}{hint}")
    return _checked(_Layout(dtype, shape, fortran_order, stream.tell()))


def _checked(layout: _Layout) -> _Layout:
    """The layout, if NumPy has arrays of the shape."""
    if len(layout.shape) > _MOST_DIMENSIONS:
        raise ValueError(f"more than {_MOST_DIMENSIONS} dimensions")
    if any(extent < 0 for extent in layout.shape):
        raise ValueError(f"negative extent in shape {show_shape(layout.shape)}")
    if math.prod(extent or 1 for extent in layout.shape) * layout.dtype.itemsize > sys.maxsize:
        raise ValueError("shape is too large: it does not fit in the address space")
    return layout


def _array_of(layout: _Layout, data: Any) -> np.ndarray:
    """The elements in the data of a whole file, copied only if they are not aligned or in the other byte order."""
    expected, found = layout.end - layout.begin, len(data) - layout.begin
    if expected != found:
        raise ValueError(f"{'truncated' if found < expected else 'too long'}: the "
                         f"{'header' if layout.begin > 0 else 'shape'} promises {expected} "
                         f"byte{'' if expected == 1 else 's'} of data, the file has {found}")
    array: np.ndarray = np.ndarray(layout.shape, layout.dtype, data, layout.begin,
                                   order="F" if layout.is_fortran else "C")
    return np.require(array, layout.dtype.newbyteorder("="), "A")


# ---- other types ----


def _refuse_first(file: File, wrong: np.ndarray, show: Callable[[Any], str], why: str) -> None:
    """Raises an error about the first wrong element, if there is one."""
    if wrong.any():
        index = np.unravel_index(int(wrong.argmax()), wrong.shape)
        raise CommandError(f"{file.path}: {show_shape(index)} is {show(file.array[index])}, which no {why}")


def to_bfloat16(file: File) -> None:
    """Converts float32 to bfloat16, if every element is one."""
    bits = file.array.view(np.uint32)
    _refuse_first(file, np.asarray(bits & 0xFFFF != 0), lambda value: f"{value:.9g} (0x{value.view('u4'):08X})",
                  "bfloat16 is: its lower 16 bits are not 0")
    file.array = np.asarray(bits >> 16, np.uint16)
    file.dtype = "bfloat16"


def to_quint4x2(file: File, shape: Sequence[int]) -> None:
    """Converts int8 values, or bytes of two values, the first in the lower bits, to words of the shape; leaves others.
    """
    array = file.array
    if file.dtype not in ("int8", "uint8") or array.shape[:-1] != tuple(shape[:-1]) or array.ndim == 0:
        return
    if array.shape[-1] == 8 * shape[-1] > 0 and file.dtype == "int8":
        _refuse_first(file, (array < -8) | (array > 7), str, "int4 is: these are -8..7")
        array = array[..., ::2] & 15 | array[..., 1::2] << 4
    elif array.shape[-1] != 4 * shape[-1]:
        return
    file.array = np.ascontiguousarray(array).view("<i4").astype("i4", copy=False)
    file.dtype = "quint4x2"


# ---- writing ----


def _kind(path: str) -> str:
    """What becomes of an output: a "file" replaces the one of the name; a "stream", or "stdout", is written; "" cannot
    be written."""
    # These paths name open files, which may be regular, but nobody can replace a file there.
    names_open = path.startswith(("/dev/fd/", "/proc/")) or path == "/dev/stderr"
    if path in ("-", "/dev/stdout", "/dev/fd/1"):
        return "stdout"
    try:
        about = os.stat(path)
    except OSError:
        return "file"  # if it cannot be written, creating it fails later
    if (stat.S_ISFIFO(about.st_mode) or names_open) and _is_stdout(about):
        return "stdout"
    if stat.S_ISCHR(about.st_mode) or stat.S_ISFIFO(about.st_mode) or (stat.S_ISREG(about.st_mode) and names_open):
        return "stream"
    return "file" if stat.S_ISREG(about.st_mode) else ""


def _is_stdout(about: os.stat_result) -> bool:
    try:
        return os.path.samestat(about, os.fstat(1))
    except OSError:  # stdout is closed
        return False


def check_outputs(paths: Mapping[str, str]) -> bool:
    """Checks the paths of outputs, by option, before anything is computed. Returns whether stdout takes one."""
    places = []
    for path in paths.values():
        kind = _kind(path)
        if not kind:
            raise CommandError(f"{path}: cannot be written: it is neither a file, a pipe nor a character device")
        if kind != "stream":  # /dev/null may be named twice
            places.append("stdout" if kind == "stdout" else os.path.realpath(path))
            if places[-1] in places[:-1]:
                raise CommandError(f"{path}: named for two outputs")
    return "stdout" in places


#: The signals that end a program, and can be caught, as far as the system has them.
_ENDING = [getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGPIPE", "SIGALRM", "SIGXCPU",
                                              "SIGUSR1", "SIGUSR2") if hasattr(signal, name)]


class Outputs:
    """Results on their way to their files.

    A file gets its name when all files are complete. Leaving the context without commit(), or a signal that ends the
    program, removes what is incomplete.
    """

    def __init__(self) -> None:
        self._streams: List[Tuple[str, np.ndarray]] = []
        self._files: List[Tuple[str, str, str]] = []  # the output's path, its place, and its temporary file
        self._caught: List[int] = []
        self._is_naming = False
        self._ended_by: Optional[int] = None

    def __enter__(self) -> Outputs:
        for number in _ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:  # others stay as they are: nohup ignores SIGHUP
                signal.signal(number, self._end)
                self._caught.append(number)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._remove()
        for number in self._caught:
            signal.signal(number, signal.SIG_DFL)

    def _end(self, number: int, frame: Optional[FrameType]) -> None:
        """Ends the program by the signal: its parent learns which one. No signal separates named files from others."""
        self._ended_by = number
        if not self._is_naming:
            self._remove()
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    def _remove(self) -> None:
        for _, _, temporary in self._files:
            try:
                os.unlink(temporary)
            except OSError:  # it has its name, or has never been made
                pass

    def add(self, path: str, array: np.ndarray) -> None:
        """Writes an array to a temporary file beside path. For a stream the array waits for commit()."""
        if _kind(path) == "file":
            self._stage(path, lambda stream: _write(stream, array))
        else:
            self._streams.append((path, array))

    def add_text(self, path: str, text: str) -> None:
        self._stage(path, lambda stream: stream.write(text.encode()))

    def _stage(self, path: str, write: Callable[[IO[bytes]], Any]) -> None:
        place = os.path.realpath(path)  # a symbolic link stays
        temporary = os.path.join(os.path.dirname(place), f".npuquant-{uuid.uuid4().hex}.tmp")
        self._files.append((path, place, temporary))  # before it exists: a signal may come in between
        try:
            mode = _mode_of(place)
            with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode or 0o666)) as stream:
                if mode is not None:
                    os.chmod(temporary, mode)  # without the umask
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise CommandError(f"{path}: cannot be written: {_reason(error)}") from None

    def commit(self) -> None:
        """Writes the streams, then names all files."""
        # After a failure here nothing has its name, and a reader that blocks can be given up on.
        done = [_write_stream(path, array) for path, array in self._streams]
        self._is_naming = True
        try:
            for path, place, temporary in self._files:
                _name(temporary, place, path, done)
        finally:
            self._is_naming = False
            if self._ended_by is not None:
                self._end(self._ended_by, None)


def _name(temporary: str, place: str, path: str, done: List[str]) -> None:
    """Gives an output its name; `done` has the outputs before it."""
    try:
        os.replace(temporary, place)
    except OSError as error:
        written = f"; written before: {', '.join(done)}" if done else ""
        raise CommandError(f"{path}: cannot be written: {_reason(error)}{written}") from None
    done.append(path)


def _mode_of(place: str) -> Optional[int]:
    """The mode of the file that an output replaces; None if there is no file."""
    try:
        os.close(os.open(place, os.O_WRONLY))  # the system says why a file is read-only
    except FileNotFoundError:
        return None
    return stat.S_IMODE(os.stat(place).st_mode)


def _write(stream: IO[bytes], array: np.ndarray) -> None:
    """Writes an array as a .npy file of version 1.0 in C order."""
    # numpy.save() writes to a file by tofile(), which does not tell that a disk is full, and to others in copies.
    array = np.asarray(array, order="C")
    _npy.write_array_header_1_0(stream, _npy.header_data_from_array_1_0(array))
    stream.write(array.data)


def _write_stream(path: str, array: np.ndarray) -> str:
    """Writes an array to a pipe or a device, and returns its name for messages."""
    is_stdout = _kind(path) == "stdout"
    shown = "stdout" if is_stdout else path
    try:
        with open(1 if is_stdout else path, "ab", closefd=not is_stdout) as stream:
            _write(stream, array)
    except OSError as error:
        raise CommandError(f"{shown}: cannot be written: {_reason(error)}") from None
    return shown
