# SPDX-License-Identifier: BSD-3-Clause
"""From files to tensors and back: NumPy's .npy and .npz files, and files of elements alone.

Files may come from anywhere. No number in a file decides how much memory is taken: a regular file is mapped, and what a
pipe or a compressed member has is read until it is longer than its header promises.
"""
from __future__ import annotations

import contextlib
import io
import itertools
import math
import mmap
import operator
import os
import re
import signal
import stat
import struct
import sys
import warnings
import zipfile
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import (IO, Any, BinaryIO, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple,
                    Type, Union)

import numpy as np

from npuquant._causes.reports import format_value
from npuquant._tensors import packed, to_float
from npuquant_facts.dtypes import FLOATS, TYPES, WORDS

from .errors import CommandError, printable, reason

#: NumPy's stubs give these functions no types.
_npy: Any = np.lib.format

#: npuquant's name of each type that a file may have. NumPy has no bfloat16: writers use any 16-bit type for its bits.
_DTYPES = {
    "f4": "float32", "f2": "float16", "i1": "int8", "u1": "uint8", "i4": "int32", "i8": "int64", "u8": "uint64",
    "u2": "bfloat16", "i2": "bfloat16", "V2": "bfloat16",
}
#: NumPy's name of each type as results are stored.
_STORED = {name: np.dtype(kind.stored).str[1:] for name, kind in TYPES.items()}
_STORED["int4"] = _STORED["quint4x2"]


_EXPECTED_TYPES = "expected one of " + " ".join(_DTYPES)
_MOST_DIMENSIONS = 8
#: NumPy takes no longer headers by itself.
_MOST_HEADER = 10000
_PREFIX = _MOST_HEADER + 12  # the longest beginning of a file that is read for its header

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
    is_bfloat16: bool  # by its name
    mapped: Optional[mmap.mmap] = None
    taken: str = ""  # the line about another type or shape

    def check_whole(self) -> None:
        """Raises an error if the file has been cut short: the rest of a page that was cut reads as zeros."""
        if self.mapped is not None and self.mapped.size() < len(self.mapped):
            raise CommandError(f"{self.path}: was cut short while it was in use")


def numpy_type(dtype: str) -> str:
    """NumPy's name of a type as results are stored."""
    return _STORED[dtype]


def show_shape(shape: Sequence[Any]) -> str:
    return str([int(extent) for extent in shape])


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
    name = "stdin" if path == "-" else printable(path)
    source, rest = _open(path, name)
    with source:
        mapped = _map(source)
        try:
            array = _read(source, mapped, rest)
        except Exception as error:  # of many kinds, from NumPy, ast, tokenize, zipfile, zlib: for files that lie
            raise CommandError(f"{name}: {reason(error)}") from None
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
            raise CommandError(f"{shown}: {reason(refusal)}")
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
    version = _npy.read_magic(io.BytesIO(prefix))
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError("version %d.%d of the .npy format; expected 1.0, 2.0 or 3.0" % version)
    begin = 10 if version == (1, 0) else 12
    length = int.from_bytes(prefix[8:begin], "little")
    if length > _MOST_HEADER:
        raise ValueError(f"a header of {length} bytes; expected at most {_MOST_HEADER}")
    # Python 3.13 refuses a literal that blanks follow on a new line.
    text = prefix[begin:begin + length]
    stream = io.BytesIO(prefix[:begin] + text.rstrip().ljust(len(text)))
    stream.seek(8)
    # Version 3.0 has other text only in the names of structures.
    read = _npy.read_array_header_1_0 if version == (1, 0) else _npy.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that Python 2 has written the header
        try:
            shape, fortran_order, dtype = read(stream)
        except MemoryError:  # is what Python's parser raises
            raise ValueError("a header that is nested too deeply") from None
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


# ---- other types and shapes ----


def _values(array: np.ndarray, dtype: str) -> np.ndarray:
    """Integers as they are, and floats as float32, which has the values of all float types."""
    return to_float(array, dtype) if dtype in FLOATS else array


def _of_values(values: np.ndarray, dtype: str) -> np.ndarray:
    """Values in a type that has them; others become anything."""
    if dtype == "bfloat16":
        return np.asarray(values.astype("f4", copy=False).view("u4") >> 16).astype("u2")
    return values.astype("i1" if TYPES[dtype].elements > 1 else _STORED[dtype], copy=False)


def convert(file: File, dtype: str) -> None:
    """Converts to another type, if every value is exact in it. Between floats the bits of a NaN count, too. Integers
    have no NaN, and one zero. The values of quint4x2 are not packed yet."""
    if file.dtype == dtype:
        return
    values = _values(file.array, file.dtype)
    with np.errstate(all="ignore"):  # an overflow is not exact
        converted = _of_values(values, dtype)
        if TYPES[dtype].is_integer:
            exact = (values >= TYPES[dtype].least) & (values < TYPES[dtype].most + 1) & (values == np.trunc(values))
        elif file.dtype in FLOATS:
            exact = _values(converted, dtype).view("u4") == values.view("u4")
        else:  # float64 does not tell larger integers apart
            wide = values.astype("f8")
            exact = (_values(converted, dtype) == wide) & (np.abs(wide) <= 2**53)
    if not exact.all():
        index = np.unravel_index(int(exact.argmin()), exact.shape)
        value = file.array[index]
        shown = format_value(file.dtype, int(value.view(f"u{value.itemsize}"))) if file.dtype in FLOATS else value
        raise CommandError(f"{file.path}: {show_shape(index)} is {shown}, which no "
                           f"{'int4' if dtype == 'quint4x2' else dtype} is")
    file.array, file.dtype = converted, dtype


def _without_ones(shape: Sequence[int]) -> List[int]:
    return [extent for extent in shape if extent != 1]


def is_plain(given: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether two shapes differ only in extents of 1, or the given one is flat."""
    extents = _without_ones(given)
    return extents == _without_ones(wanted) or (len(extents) == 1 and math.prod(given) == math.prod(wanted))


class _Order(NamedTuple):
    """How an array holds one of another shape. Dimensions are split, exchanged and merged, and padding is cut."""

    split: Sequence[int]
    axes: Sequence[int]
    padded: Sequence[int]
    shape: Sequence[int]

    def read(self, array: np.ndarray) -> np.ndarray:
        padded = array.reshape(self.split).transpose(self.axes).reshape(self.padded)
        return padded[tuple(map(slice, self.shape))]


def _transposed(given: Sequence[int], wanted: Sequence[int]) -> Iterator[_Order]:
    """With two dimensions exchanged: the last two if the shapes are the same."""
    split, target = _without_ones(given), _without_ones(wanted)
    if len(split) != len(target) or len(split) < 2:
        return
    last = len(split) - 1
    unlike = [i for i in range(last + 1) if split[i] != target[i]] or [last - 1, last]
    axes = list(range(last + 1))
    axes[unlike[0]], axes[unlike[-1]] = unlike[-1], unlike[0]
    if [split[axis] for axis in axes] == target:
        yield _Order(split, axes, target, target)


def _fractal_nz(given: Sequence[int], wanted: Sequence[int], c0: int) -> Iterator[_Order]:
    """[..., columns / c0, rows / 16, 16, c0], padded. With one block of columns and no padding it is in C order."""
    *batch, rows, columns = wanted
    split = [*batch, -(-columns // c0), -(-rows // 16), 16, c0]
    padded = [*batch, split[-3] * 16, split[-4] * c0]
    if split == list(given) and (columns > c0 or padded != list(wanted)):
        first = len(batch)
        yield _Order(split, [*range(first), first + 1, first + 2, first, first + 3], padded, wanted)


def _forms(shape: Sequence[int]) -> Sequence[Sequence[int]]:
    """The shape, and that of a matrix: dimensions before the last may count as one."""
    return (shape, [math.prod(shape[:-1]), shape[-1]]) if len(shape) > 1 else (shape,)


def layouts(given: Sequence[int], wanted: Sequence[int], c0: int) -> Dict[str, _Order]:
    """The layouts that fit, by the words of --layout. Values do not count.

    Args:
        c0: the columns of a block of FRACTAL_NZ.
    """
    found: Dict[str, _Order] = {}
    # More dimensions are in C order only if they are those of `wanted`, some of them split.
    ends, wanted_ends = (set(itertools.accumulate(shape, operator.mul)) for shape in (given, wanted))
    if math.prod(given) == math.prod(wanted) and (
            len(_without_ones(given)) <= len(_without_ones(wanted)) or wanted_ends <= ends):
        found["reshaped"] = _Order(given, range(len(given)), wanted, wanted)
    for shape in _forms(wanted) if len(wanted) > 1 else ():
        found.update(("transposed", order) for order in _transposed(given, shape))
        found.update(("fractal-nz", order) for order in _fractal_nz(given, shape, c0))
    return found


def take(file: File, dtype: str, shape: Sequence[int], name: str, layout: Optional[str] = None) -> None:
    """Takes a file as a result, if its values are exact in the type of the result, and one layout fits.

    Args:
        name: of the result, for errors.
        layout: what to choose if several layouts fit.
    """
    given = file.array.shape
    found: Dict[str, _Order] = {}
    # Where a word has several values, a file may have words, bytes, or values: so many for each word.
    kind, word = TYPES[dtype], np.dtype(TYPES[dtype].stored)
    parts = [1]
    if kind.elements > 1 and not kind.has_codes:
        holders = {1: (kind.stored,), word.itemsize: ("int8", "uint8"), kind.elements: tuple(_DTYPES.values())}
        parts = [part for part, dtypes in holders.items() if file.dtype in dtypes]
    for part in parts:
        wanted = [*shape[:-1], shape[-1] * part] if part > 1 else list(shape)
        found = layouts(given, wanted, 32 // word.itemsize * part)
        if found:
            break
    is_unnamed = file.dtype == "bfloat16" != dtype and not file.is_bfloat16
    holders_of_bits = WORDS if dtype in WORDS else ("uint8", "int8") if kind.has_codes else (file.dtype,)
    if not found or is_unnamed or file.dtype not in holders_of_bits:
        raise CommandError(f"{file.path}: holds {file.type} {show_shape(given)}; expected {numpy_type(dtype)} "
                           f"{show_shape(shape)} to compare with {name}, which is {dtype}")
    # A square is not transposed without being asked for.
    plain = any(is_plain(given, form) for form in _forms(wanted))
    if layout not in found and not plain and (layout or len(found) > 1):
        raise CommandError(f"{file.path}: has the shape {show_shape(given)} in place of {show_shape(wanted)}; expected "
                           + " or ".join(f"--layout {word}" for word in found))
    default = "reshaped" if plain else next(iter(found))
    chosen = layout if layout and layout in found else default
    holds_bits = kind.elements > 1 or dtype in WORDS or kind.has_codes
    has = dtype if part == 1 and holds_bits else file.dtype
    has_values = part == kind.elements and not kind.has_codes
    if has_values and has != dtype:
        convert(file, dtype)
    array = found[chosen].read(file.array).reshape(wanted)
    if has_values:
        array = packed(array, kind)
    elif part > 1:
        array = np.ascontiguousarray(array).view(word.newbyteorder("<")).astype(word, copy=False)
    file.array, file.dtype = array, dtype
    if has != dtype or list(given) != list(shape) or chosen == "transposed":
        file.taken = (f"{file.path}: {has} {show_shape(given)}, taken as {dtype} "
                      f"{'FRACTAL_NZ of ' * (chosen == 'fractal-nz')}{show_shape(shape)}"
                      f"{', transposed' * (chosen == 'transposed')}\n")


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
    if (stat.S_ISFIFO(about.st_mode) or names_open) and os.path.samestat(about, os.fstat(1)):
        return "stdout"
    if stat.S_ISCHR(about.st_mode) or stat.S_ISFIFO(about.st_mode) or (stat.S_ISREG(about.st_mode) and names_open):
        return "stream"
    return "file" if stat.S_ISREG(about.st_mode) else ""


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
        self._folder: Optional[str] = None  # that is new
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
            with contextlib.suppress(OSError):  # it has its name, or has never been made
                os.unlink(temporary)
        if self._folder is not None:
            with contextlib.suppress(OSError):  # it has the outputs
                os.rmdir(self._folder)

    def add_folder(self, path: str) -> None:
        """Makes a folder for outputs, unless there is one."""
        if os.path.isdir(path):
            return
        self._folder = path  # before it exists: a signal may come in between
        try:
            os.mkdir(path)
        except OSError as error:
            raise CommandError(f"{path}: cannot be made: {reason(error)}") from None

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
        temporary = os.path.join(os.path.dirname(place), f".npuquant-{os.urandom(16).hex()}.tmp")
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
            raise CommandError(f"{path}: cannot be written: {reason(error)}") from None

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
        raise CommandError(f"{path}: cannot be written: {reason(error)}{written}") from None
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
        raise CommandError(f"{shown}: cannot be written: {reason(error)}") from None
    return shown
