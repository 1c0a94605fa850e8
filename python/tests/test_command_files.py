# SPDX-License-Identifier: BSD-3-Clause
"""How the command reads and writes files: every accepted form, files that lie, and what interrupts writing."""
import contextlib
import ctypes
import errno
import functools
import gzip
import io
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import zipfile

import npuquant_cli.files as files
import numpy as np
import pytest
from command_inputs import FULL, read, saved, write
from npuquant_cli.errors import CommandError

X = np.arange(12, dtype="f4").reshape(3, 4)
pytestmark = pytest.mark.usefixtures("folder")


def header(descr="'<f4'", order="False", shape="(2,)"):
    return "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n" % (descr, order, shape)


def npy(text, data=bytes(8), version=(1, 0), length=None):
    """A file with any header."""
    text = text.encode("latin-1")
    size = (len(text) if length is None else length).to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + bytes(version) + size + text + data


def zipped(*members, method=zipfile.ZIP_STORED, comment=b""):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name) if name in archive.namelist() else name, data)
        archive.comment = comment
    return stream.getvalue()


@contextlib.contextmanager
def fifo(data):
    """A FIFO that somebody writes to."""
    os.mkfifo("fifo")

    def write():
        with contextlib.suppress(BrokenPipeError), open("fifo", "wb") as stream:
            stream.write(data)

    writer = threading.Thread(target=write)
    writer.start()
    yield "fifo"
    writer.join()
    os.unlink("fifo")


def refused(path):
    """The one line about a file that cannot be loaded."""
    with pytest.raises(CommandError) as caught:
        files.load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def names():
    return sorted(os.listdir("."))


def assert_loaded(file, array, dtype, stored):
    assert (file.dtype, file.type, file.array.shape) == (dtype, stored, array.shape)
    assert file.array.dtype.isnative and file.array.flags.aligned
    np.testing.assert_array_equal(file.array, array)


# ---- reading ----


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("byte_order", "<>")
@pytest.mark.parametrize("stored, dtype", files._DTYPES.items())
def test_arrays(stored, dtype, byte_order, order, version):
    bits = np.random.default_rng(1).integers(0, 256, 12 * int(stored[1]), "u1")
    array = np.asarray(bits.view(byte_order + stored).reshape(3, 4), order=order)
    with open("x.npy", "wb") as stream:
        np.lib.format.write_array(stream, array, version)
    expected = array.view("u2") if stored == "V2" else array.astype(stored).view("u2" if stored == "i2" else stored)
    file = files.load("x.npy")
    assert_loaded(file, expected, dtype, stored)
    assert not file.is_bfloat16
    # Native data is mapped, and keeps its order.
    swapped = byte_order != "<" and stored[1] != "1" and stored != "V2"
    assert file.array.flags.writeable == swapped
    assert file.array.flags.f_contiguous == (order == "F")
    with fifo(read("x.npy")) as name:
        assert_loaded(files.load(name), expected, dtype, stored)


@pytest.mark.parametrize("text", [
    header(), "{'descr':'<f4','fortran_order':False,'shape':(2,)}",
    '{"shape" : ( 2 , ) ,\n "fortran_order":\tTrue, "descr":"<f4"}   \n',
    "{ 'shape': (2L,), 'descr': '<f4', 'fortran_order': False }", header("'=f4'"), header("'|f4'"), header("'f4'"),
    header() + " " * 9939,
])
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("padding", range(4))
def test_spellings(text, version, padding, recwarn):
    """Also of Python 2, and with data that is not aligned."""
    write("x.npy", npy(text + " " * padding, np.array([1, -2.5], "<f4").tobytes(), version))
    assert_loaded(files.load("x.npy"), np.array([1, -2.5], "f4"), "float32", "f4")
    assert not recwarn


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 2**31, 2), (1,) * 8])
def test_shapes(shape):
    size = 0 if 0 in shape else 4
    write("x.npy", npy(header(shape=str(shape)), bytes(size)))
    file = files.load("x.npy")
    assert (file.array.shape, files.show_shape(file.array.shape)) == (shape, str(list(shape)))


@pytest.mark.parametrize("data, says", [
    (b"", "not a .npy file"),
    (b"x" * 200, "not a .npy file; for a file of elements alone, add :TYPE:N,N, as :float16:32,4096"),
    (npy(header())[:6], ""), (npy(header())[:9], ""), (npy(header())[:10], "EOF: reading array header"),
    (npy(header())[:40], "EOF: reading array header"),
    (npy(header())[:-1], "truncated: the header promises 8 bytes of data, the file has 7"),
    (npy(header("'|i1'", shape="(1,)"), b""), "truncated: the header promises 1 byte of data, the file has 0"),
    (npy(header()) + b"\0", "too long: the header promises 8 bytes of data, the file has 9"),
    (npy(header(), version=(0, 0)), "version 0.0 of the .npy format; expected 1.0, 2.0 or 3.0"),
    (npy(header(), version=(4, 0)), "version 4.0"), (npy(header(), version=(1, 1)), "version 1.1"),
    (npy(header(), length=10000), "EOF: reading array header"),
    (npy(header(), version=(2, 0), length=2**32 - 1), "a header of 4294967295 bytes; expected at most 10000"),
    (npy(header() + " " * 9943), "a header of 10001 bytes; expected at most 10000"),
    (npy("[]"), "Header is not a dictionary"), (npy("{}"), ""), (npy("{'x': 1}"), ""), (npy("{'descr"), ""),
    (npy("{'descr': '<f4', 'fortran_order': False}"), ""), (npy("{'shape': (1, "), ""), (npy(header() + "{}"), ""),
    (npy("{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}"), ""), (npy("{\0}"), ""),
    (npy("{'a\nb': 1}"), ""), (npy(header("{}")), ""), (npy(header("()")), ""), (npy(header("'(2,)u1'")), "elements"),
    (npy("-" * 9000 + "1"), "a header that is nested too deeply"), (npy("1+" * 4500 + "1"), ""),
    (npy("[" * 90 + "]" * 90), "Header is not a dictionary"),
    (npy("(" * 9000), ""), (npy("{" * 9000), ""), (npy("9" * 9000), ""), (npy("'" * 9001), ""), (npy("é" * 4000), ""),
    (npy(header(order="0")), "fortran_order is not a valid bool"), (npy(header(shape="(2)")), "shape is not valid"),
    (npy(header(shape="(-2,)")), "negative extent in shape [-2]"), (npy(header(shape="(0, -2)"), b""), "negative"),
    (npy(header(shape="(a,)")), ""), (npy(header(shape="(2.0,)")), "shape is not valid"),
    (npy(header(shape=str((1,) * 9))), "more than 8 dimensions"),
    (npy(header(shape=f"({2**64},)")), "shape is too large"), (npy(header(shape=f"({2**32}, {2**32})")), "too large"),
    (npy(header(shape=f"({2**62},)")), "too large"), (npy(header(shape=f"(0, {2**62}, 4)"), b""), "too large"),
    (npy(header(shape="(1000000000000,)")), "truncated: the header promises 4000000000000 bytes "),
    (npy(header("[('a', '<f4')]")), "elements of type [('a', '<f4')]; expected one of f4 f2 i1 "),
    (npy(header("[('a', 'u1'), ('b', 'u1')]")), "elements of type ["), (npy(header("'|O'")), "elements of type '|O'"),
    (npy(header("'<f8'")), "float64 becomes f4 with astype(np.float32)"), (npy(header("'<'")), ""),
    (npy(header("'<U1'")), "elements of type '<U1'"), (npy(header("'<M8[s]'")), "elements of type '<M8[s]'"),
    (npy(header("'%s'" % ("<f4" * 100))), ""), (npy(header("'%s'" % ("u1," * 2500))), "elements of type "),
    (zipped(("archive/data.pkl", b"\x80\x02.")), "PyTorch's; write it with numpy.save(path, tensor.cpu().numpy())"),
    (bytes.fromhex("80028a0a6cfc9c46f9206aa850192e"), "PyTorch's; write it"),
    (gzip.compress(saved(X)), "but gzip; gunzip it first"), (b"\x89HDF\r\n\x1a\n" + bytes(40), "but HDF5; "),
    *((pickle.dumps(X, protocol), "but a pickle; load it") for protocol in range(2, 6)),
    (bytes([40, 0, 0, 0, 0, 0, 0, 0]) + b'{"x":{"dtype"', "but safetensors; write it with numpy.save("),
    (zipped(), "not a .npy file but a zip archive without one"), (zipped(("x.npy", b"no array")), "not a .npy file"),
    (zipped(("x.npy", b"no array"), method=zipfile.ZIP_DEFLATED), "not a .npy file"),
    (zipped(("x.npy", saved(X)[:-1])), "truncated"), (zipped(("x.npy", saved(X.astype("f8")))), "of type '<f8'"),
    (zipped(("x.npy", saved(X)), ("s.npy", saved(X))), "an archive of 2 arrays; name one behind a colon, such as :x"),
    (zipped(("x.npy", npy(header(shape="(100000000,)"), bytes(1000))), method=zipfile.ZIP_DEFLATED), "truncated"),
    (zipped(("x.npy", npy(header(), bytes(10**8))), method=zipfile.ZIP_DEFLATED), "too long: the header promises 8 "),
])
def test_hostile_files(data, says):
    """The same from a mapped file and from a pipe. NumPy and Python word what has no text here."""
    write("bad.npy", data)
    line = refused("bad.npy")
    assert line.startswith("bad.npy: ") and says in line and len(line) < 450
    with fifo(data) as name:
        assert refused(name).startswith("fifo: ")
    for length in range(0, min(len(data), 60), 3):  # the beginnings of all kinds
        write("bad.npy", data[:length])
        assert refused("bad.npy").startswith("bad.npy: ")


@pytest.mark.parametrize("count", [0, 1, 16400, 100_000])
@pytest.mark.parametrize("byte_order", "<>")
def test_long_pipes(count, byte_order):
    array = np.arange(count, dtype=byte_order + "f4")
    with fifo(saved(array)) as name:
        assert_loaded(files.load(name), array.astype("f4"), "float32", "f4")
    for data, says in ((saved(array)[:-1], "truncated: "), (saved(array) + b"\0", "too long: ")):
        with fifo(data) as name:
            assert says in refused(name) or count == 0


def test_pipes_are_read_no_further_than_promised():
    if os.path.exists("/dev/zero"):
        assert refused("/dev/zero").startswith("/dev/zero: not a .npy file")
        says = "/dev/zero:f4:2: too long: the shape promises 8 bytes of data, the file has "
        assert refused("/dev/zero:f4:2").startswith(says)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_files(seed):
    """A loaded array, or one line."""
    rng = np.random.default_rng(seed)
    packed = zipped(("x.npy", saved(X)), method=zipfile.ZIP_DEFLATED)
    for good in (saved(X), zipped(("x.npy", saved(X))), packed):
        for _ in range(20):
            damaged = np.frombuffer(good, "u1").copy()
            damaged[rng.integers(0, len(good), rng.integers(1, 4))] = rng.choice([0, 1, 127, 255, rng.integers(256)])
            write("bad", damaged[:rng.choice([len(good), rng.integers(len(good))])].tobytes())
            with contextlib.suppress(CommandError):
                files.load("bad")


@pytest.mark.parametrize("path, says", [
    ("none.npy", "none.npy: No such file or directory"), (".", ".: Is a directory"), ("x" * 3000, "File name too long"),
    ("none.npz:x", "none.npz:x: No such file or directory"), ("", ": No such file or directory"),
    ("x.npy:x", "x.npy:x: is not an .npz archive, and has no member x"),
])
def test_missing_files(path, says):
    np.save("x.npy", X)
    assert says in refused(path)


# ---- archives ----


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_members(save):
    arrays = {"x": X, "f": np.asfortranarray(X), "b": X.astype(">f4"), "long" * 3: X, "e": X[:0], "n": X[0, 0]}
    save("all.npz", **arrays)
    for name, array in arrays.items():
        for path in (f"all.npz:{name}", f"./all.npz:{name}.npy"):
            assert_loaded(files.load(path), array, "float32", "f4")
    save("one.npz", x=X)
    assert_loaded(files.load("one.npz"), X, "float32", "f4")
    assert (files.load("one.npz").mapped is None) == (os.name == "nt")
    with fifo(read("one.npz")) as name:
        assert_loaded(files.load(name), X, "float32", "f4")
    with fifo(read("all.npz")) as name:
        assert_loaded(files.load(f"{name}:b"), X, "float32", "f4")
    os.rename("one.npz", "all.npz:x")  # the whole name of a file comes first
    os.rename("all.npz", "a:b:c.npz")
    assert_loaded(files.load("all.npz:x"), X, "float32", "f4")
    assert_loaded(files.load("a:b:c.npz:f"), X, "float32", "f4")


@pytest.mark.parametrize("length", range(1, 9))
def test_stored_members_are_mapped(length):
    """Without a copy where the data is aligned, which the member's name decides."""
    np.savez("one.npz", **{"x" * length: X})
    begin = read("one.npz").index(X.tobytes())
    file = files.load("one.npz")
    assert_loaded(file, X, "float32", "f4")
    assert file.array.flags.writeable == (begin % 4 != 0)


@pytest.mark.parametrize("comment", [b"", b"PK\1\2" * 10, bytes(65535)])
def test_other_writers_of_zip(comment):
    write("made.npz", zipped(("notes.txt", b"no array"), ("x.npy", saved(X)), comment=comment))
    assert_loaded(files.load("made.npz"), X, "float32", "f4")
    stream = io.BytesIO()
    stream.seekable = lambda: False  # the sizes follow the data
    with zipfile.ZipFile(stream, "w") as archive, archive.open("x.npy", "w", force_zip64=True) as member:
        member.write(saved(X))
    write("made.npz", stream.getvalue())
    assert_loaded(files.load("made.npz:x"), X, "float32", "f4")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("path, says", [
    ("all.npz:z", "all.npz:z: no such member; the first of 2 is x"), ("all.npz:", "all.npz:: no such member; "),
    ("two.npz:x", "two.npz:x: 2 members are called x.npy; expected one"),
    ("two.npz", "two.npz: an archive of 2 arrays; name one behind a colon, such as :x"),
    ("secret.npz", "is encrypted"), ("moved.npz", "malformed zip archive: x.npy is not where the directory says"),
    ("long.npz", "malformed zip archive: x.npy does not end inside the file"), ("cut.npz", "not a zip file"),
    ("sum.npz", "Bad CRC-32"), ("method.npz", "compression"),
])
def test_archives_that_are_refused(path, says):
    np.savez("all.npz", x=X, s=X)
    one, packed = (zipped(("x.npy", saved(X)), method=method) for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    entry = one.rindex(b"PK\1\2")
    write("two.npz", zipped(("x.npy", saved(X)), ("x.npy", saved(X))))
    write("cut.npz", one[:-1])
    for name, data, place, byte in (("secret", one, entry + 8, 1), ("moved", one, entry + 42, 1),
                                    ("long", one, entry + 21, 9), ("sum", packed, packed.rindex(b"PK\1\2") + 16, 0),
                                    ("method", one, entry + 10, 77)):
        write(f"{name}.npz", data[:place] + bytes([byte]) + data[place + 1:])
    assert says in refused(path)


# ---- elements alone ----


@pytest.mark.parametrize("words, stored, dtype", [
    ("float16", "f2", "float16"), ("f2", "f2", "float16"), (">f2", ">f2", "float16"), ("bfloat16", "u2", "bfloat16"),
    ("u2", "u2", "bfloat16"), ("V2", "u2", "bfloat16"), ("int8", "i1", "int8"), ("uint64", "u8", "uint64"),
    ("quint4x2", "i4", "int32"), ("int4", "i4", "int32"),
])
def test_elements_alone(words, stored, dtype):
    array = np.arange(12).reshape(3, 4).astype(stored)
    array.tofile("x.bin")
    for shape in ("3,4", " 3, 4 "):
        file = files.load(f"x.bin:{words}:{shape}")
        assert_loaded(file, array, dtype, "V2" if words == "V2" else stored[-2:])
        assert file.is_bfloat16 == (words == "bfloat16")
    with fifo(read("x.bin")) as name:
        assert_loaded(files.load(f"{name}:{words}:3,4"), array, dtype, "V2" if words == "V2" else stored[-2:])


@pytest.mark.parametrize("words, says", [
    ("", "x.bin: not a .npy file; for a file of elements alone, add :TYPE:N,N, as :float16:32,4096"),
    (":float16", "x.bin:float16: is not an .npz archive, and has no member float16"),
    (":float8:4,16", "elements of type 'float8'; expected one of f4 f2 "), (":f8:4,16", "elements of type 'f8'; "),
    ("::4,16", "elements of type ''; "), (":" + "f" * 100 + ":4,16", "elements of type 'fffffffffffffff'; "),
    (":<<f2:4,16", "elements of type '<<f2'; "), (":f2,f2:4,16", "elements of type 'f2,f2'; "),
    (":float16:", "shape '': expected numbers, separated by commas"), (":float16:4,", "shape '4,': expected numbers"),
    (":float16:4,,16", "shape '4,,16': "), (":float16:4x16", "shape '4x16': "), (":float16:-4,-16", "shape '-4,-16': "),
    (":float16:4:16", "shape '4:16': "), (":float16:1_0", "shape '1_0': "), (":float16:" + "9" * 5000, "expected num"),
    (":float16:" + ",".join("1" * 9), "more than 8 dimensions"), (f":float16:{2**64}", "shape is too large: "),
    (f":float16:{2**32},{2**32}", "shape is too large: "),
    (":float16:4,17", "truncated: the shape promises 136 bytes of data, the file has 128"),
    (":float16:4,15", "too long: the shape promises 120 bytes of data, the file has 128"),
])
def test_elements_alone_that_are_refused(words, says):
    write("x.bin", bytes(128))
    assert says in refused("x.bin" + words)


def test_archives_of_elements_are_not_opened():
    write("x.bin", b"PK\3\4" + bytes(4))
    assert files.load("x.bin:f4:2").array.shape == (2,)


# ---- stdin ----


@pytest.fixture
def stdin():
    """Puts a file in place of stdin; None closes it."""
    before = os.dup(0)
    yield lambda file: os.close(0) if file is None else os.dup2(file.fileno(), 0)
    os.dup2(before, 0)
    os.close(before)


@pytest.mark.parametrize("path, kind, begin", [
    ("-", "npy", b""), ("-", "npy", b"read before"), ("-:x", "npz", b""), ("-:f4:4", "bin", b""),
])
def test_stdin(path, kind, begin, stdin):
    """A pipe, and a file, of which a program before this one may have read a part."""
    np.savez("x.npz", x=X[0], s=X)
    data = {"npy": saved(X[0]), "npz": read("x.npz"), "bin": X[0].tobytes()}[kind]
    write("x", begin + data)
    with open("x", "rb", buffering=0) as regular, fifo(data) as name, open(name, "rb") as pipe:
        regular.read(len(begin))
        for given, is_mapped in (regular, begin == b""), (pipe, False):
            stdin(given)
            file = files.load(path)
            assert (file.path, file.mapped is not None) == ("stdin" if path == "-" else path, is_mapped)
            assert_loaded(file, X[0], "float32", "f4")


def test_stdin_that_is_refused(stdin):
    with open(os.devnull, "rb") as empty:
        stdin(empty)
    assert refused("-").startswith("stdin: not a .npy file")
    stdin(None)
    assert refused("-") == "stdin: Bad file descriptor"


# ---- inputs that change ----


def test_cut_input():
    """The rest of the last page reads as zeros, which only the size tells."""
    np.save("x.npy", X)
    file = files.load("x.npy")
    file.check_whole()
    os.truncate("x.npy", len(read("x.npy")) - 1)
    with pytest.raises(CommandError, match=r"\Ax\.npy: was cut short while it was in use\Z"):
        file.check_whole()


def test_output_over_input():
    np.save("x.npy", X)
    file = files.load("x.npy")
    with files.Outputs() as outputs:
        outputs.add("x.npy", X + 1)
        outputs.commit()
    file.check_whole()
    np.testing.assert_array_equal(file.array, X)
    np.testing.assert_array_equal(np.load("x.npy"), X + 1)


# ---- other types and shapes ----

NAN = np.array([0x7FC00000, 0xFFFFE000], "u4").view("f4")
LONG_NAN = np.array([0x7F800001], "u4").view("f4")
HALVES = np.array([65504, 2.0**-24, -0.0, np.inf], "f2")


def floats(*values):
    return np.array(values, "f4")


def taken(array, dtype, shape=None, layout=None, is_bfloat16=False):
    np.save("x.npy", array)
    file = files.load("x.npy")
    file.is_bfloat16 = is_bfloat16
    files.take(file, dtype, array.shape if shape is None else shape, "y", layout)
    assert file.dtype == dtype
    return file


@pytest.mark.parametrize("array, dtype, wrong", [
    # Codes, and the first value that is not exact.
    (floats(-128, 127, -0.0), "int8", None), (floats(1, 127.5), "int8", "[1] is 127.5 (0x42FF0000), which no int8 is"),
    (floats(128), "int8", "[0] is 128 (0x43000000), "), (NAN, "int8", "[0] is nan (0x7FC00000), which no int8 is"),
    (floats(-np.inf), "int32", "[0] is -inf "), (HALVES[3:], "int32", "[0] is inf "), (HALVES[:1], "int32", None),
    (floats(-2.0**31, 2.0**31 - 128), "int32", None), (floats(2.0**31), "int32", "[0] is 2.14748365e+09 "),
    (HALVES[:2], "int32", "[1] is 5.9605e-08 "), (np.array([2**31]), "int32", "[0] is 2147483648, "),
    (np.array([[1, -129]]), "int8", "[0, 1] is -129, which no int8 is"), (np.array([-128, 127]), "int8", None),
    (np.array([2**64 - 1], "u8"), "int8", "[0] is 18446744073709551615, "), (np.array([7], "u8"), "uint8", None),
    (np.array([-1], "i1"), "uint8", "[0] is -1, which no uint8 is"), (np.array([255, 0], "u1"), "int32", None),
    (np.array([255], "u1"), "int8", "[0] is 255, "),
    # Floats keep the sign of a zero, and the bits of a NaN.
    (HALVES, "float32", None), (HALVES.astype("f4"), "float16", None), (HALVES[1:], "bfloat16", None),
    (HALVES, "bfloat16", "[0] is 65504 (0x7BFF), which no bfloat16 is"), (NAN, "float16", None),
    (NAN[:1], "bfloat16", None), (NAN, "bfloat16", "[1] is -nan (0xFFFFE000), which no bfloat16 is"),
    (LONG_NAN, "float16", "[0] is nan (0x7F800001), "), (LONG_NAN, "bfloat16", "[0] is nan (0x7F800001), "),
    (floats(65536), "float16", "[0] is 65536 "), (floats(0.1), "float16", "[0] is 0.1"),
    # Offsets that are integers.
    (np.array([-5, 2**24], "i4"), "float32", None), (np.array([2**24 + 1], "i4"), "float32", "[0] is 16777217, "),
    (np.array([2**63 - 1]), "float32", "[0] is 9223372036854775807, "), (np.array([255], "u1"), "bfloat16", None),
    (np.array([257], "i4"), "bfloat16", "[0] is 257, "), (np.array([65520], "i4"), "float16", "[0] is 65520, "),
    # One int4 in each element.
    (floats(*range(-8, 8)), "quint4x2", None), (np.full((2, 8), 8), "quint4x2", "[0, 0] is 8, which no int4 is"),
])
def test_types(array, dtype, wrong):
    """The values of another type, in both memory orders; NumPy's conversion has the result."""
    array = np.asarray(array, order="F")
    shape = (*array.shape[:-1], array.shape[-1] // 8) if dtype == "quint4x2" else array.shape
    if wrong:
        with pytest.raises(CommandError, match=re.escape(f"x.npy: {wrong}")):
            taken(array, dtype, shape)
        return
    file = taken(array, dtype, shape)
    assert re.fullmatch(rf"x\.npy: \w+ \[.*], taken as {dtype} \[.*]\n", file.taken)
    if dtype == "bfloat16":
        np.testing.assert_array_equal(file.array, array.astype("f4").view("u4") >> 16)
    elif dtype == "quint4x2":
        assert file.array.tolist() == [0x0FEDCBA98 - 2**32, 0x76543210]
    else:
        assert file.array.tobytes() == array.astype(dtype).tobytes()


def test_bfloat16_for_other_types():
    """Only if it is said that the 16 bits are bfloat16."""
    bits = np.array([0x3F80, 0x4000], "u2")
    assert taken(bits, "int8", is_bfloat16=True).array.tolist() == [1, 2]
    assert taken(bits, "float32", is_bfloat16=True).array.tolist() == [1, 2]
    assert taken(bits.view("V2"), "bfloat16").taken == ""
    with pytest.raises(CommandError, match=r"x\.npy: holds i2 \[2\]; expected f4 \[2\] to compare with y, which is "):
        taken(bits.view("i2"), "float32")
    with pytest.raises(CommandError, match=r"x\.npy: holds i1 \[2\]; expected i8 \[2\] to compare with y, which is "):
        taken(bits.astype("i1"), "int64")


def fractal_nz(array, c0):
    """By its definition: element [c, r, i, j] is row 16 r + i and column c0 c + j."""
    padded = np.zeros((-(-array.shape[0] // 16) * 16, -(-array.shape[1] // c0) * c0), array.dtype)
    padded[:array.shape[0], :array.shape[1]] = array
    blocks = np.split(padded, padded.shape[1] // c0, 1)
    return np.stack([np.stack(np.split(block, len(padded) // 16)) for block in blocks])


@pytest.mark.parametrize("dtype, shape, make, layout, said", [
    ("int8", (3, 4), lambda y: y, None, ""), ("int8", (3, 4), np.asfortranarray, None, ""),
    ("int8", (3, 4), lambda y: y.reshape(1, 3, 1, 4), None, "[1, 3, 1, 4], taken as int8 [3, 4]"),
    ("int8", (3, 4), lambda y: y.reshape(12, 1), None, "[12, 1], taken as int8 [3, 4]"),
    ("int8", (3, 4), lambda y: y.reshape(6, 2), None, "[6, 2], taken as int8 [3, 4]"),
    ("int8", (12,), lambda y: y.reshape(1, 12), "transposed", "[1, 12], taken as int8 [12]"),
    ("int8", (6, 4), lambda y: y.reshape(2, 3, 4), None, "[2, 3, 4], taken as int8 [6, 4]"),
    ("int8", (2, 3, 4), lambda y: y.reshape(6, 4), None, "[6, 4], taken as int8 [2, 3, 4]"),
    ("int8", (), lambda y: y.reshape(1, 1), None, "[1, 1], taken as int8 []"),
    ("int8", (0, 3), lambda y: y.reshape(0), None, "[0], taken as int8 [0, 3]"),
    # The shape of a square says nothing: it is the same one.
    ("int8", (4, 4), lambda y: y, None, ""), ("int8", (4, 4), np.transpose, "transposed", "[4, 4], transposed"),
    ("int8", (2, 2, 4), lambda y: y.reshape(4, 4), None, "[4, 4], taken as int8 [2, 2, 4]"),
    ("int8", (3, 4), lambda y: y, "transposed", ""),
    ("int8", (3, 4), np.transpose, "transposed", "[4, 3], taken as int8 [3, 4], transposed"),
    ("int8", (3, 4), lambda y: y.reshape(4, 3), "reshaped", "[4, 3], taken as int8 [3, 4]"),
    ("int8", (1, 3, 4), lambda y: y[0].T, "transposed", "[4, 3], taken as int8 [1, 3, 4], transposed"),
    ("int8", (2, 3, 4), lambda y: y.swapaxes(0, 1), "transposed", "[3, 2, 4], taken as int8 [2, 3, 4], transposed"),
    ("int8", (2, 3, 4), lambda y: y.reshape(6, 4).T, "transposed", "[4, 6], taken as int8 [2, 3, 4], transposed"),
    # FRACTAL_NZ has blocks of columns, 32 bytes wide. One block, not padded, is in the order of the rows.
    ("int8", (64, 96), lambda y: fractal_nz(y, 32), None, "[3, 4, 16, 32], taken as int8 FRACTAL_NZ of [64, 96]"),
    ("float16", (20, 40), lambda y: fractal_nz(y, 16), None, "[3, 2, 16, 16], taken as float16 FRACTAL_NZ of [20, 40]"),
    ("float32", (16, 7), lambda y: fractal_nz(y, 8), None, "[1, 1, 16, 8], taken as float32 FRACTAL_NZ of [16, 7]"),
    ("int8", (64, 32), lambda y: fractal_nz(y, 32), None, "[1, 4, 16, 32], taken as int8 [64, 32]"),
    ("int8", (2, 16, 64), lambda y: fractal_nz(y.reshape(32, 64), 32), None, "FRACTAL_NZ of [2, 16, 64]"),
    ("int8", (2, 16, 64), lambda y: np.stack([fractal_nz(each, 32) for each in y]), None, "FRACTAL_NZ of [2, 16, 64]"),
    ("int8", (16, 512), lambda y: fractal_nz(y, 32), "fractal-nz", "FRACTAL_NZ of [16, 512]"),
    ("int8", (16, 512), lambda y: y.reshape(16, 1, 16, 32), "reshaped", "[16, 1, 16, 32], taken as int8 [16, 512]"),
])
def test_shapes_of_results(dtype, shape, make, layout, said):
    y = (np.arange(np.prod(shape)) % 101).astype(dtype).reshape(shape)
    file = taken(make(y), dtype, shape, layout)
    np.testing.assert_array_equal(file.array, y)
    assert file.array.shape == shape and file.taken.endswith(f"{said}\n" if said else "")
    assert ("taken as" in file.taken) == bool(said)
    if "transposed" not in said and "FRACTAL" not in said:  # it is the mapped file
        assert not file.array.flags.writeable


@pytest.mark.parametrize("shape, given, layout, says", [
    ((3, 4), (11,), None, "holds i1 [11]; expected i1 [3, 4] to compare with y, which is int8"),
    ((5,), (1,), None, "holds i1 [1]; expected i1 [5] to compare with y, which is int8"),
    ((3, 4), (2, 3, 2), None, "holds i1 [2, 3, 2]; expected i1 [3, 4] to compare with y, which is int8"),
    ((3, 4), (4, 3), None, "x.npy: has the shape [4, 3] in place of [3, 4]; expected --layout reshaped or --layout "
                           "transposed"),
    ((2, 3, 4), (4, 6), None, "expected --layout reshaped or --layout transposed"),
    ((16, 512), (16, 1, 16, 32), None, "expected --layout reshaped or --layout fractal-nz"),
    ((3, 4), (6, 2), "transposed", "has the shape [6, 2] in place of [3, 4]; expected --layout reshaped"),
    ((64, 64), (2, 4, 16, 32), "reshaped", "in place of [64, 64]; expected --layout fractal-nz"),
])
def test_shapes_that_do_not_tell(shape, given, layout, says):
    with pytest.raises(CommandError, match=re.escape(says) + r"\Z"):
        taken(np.zeros(given, "i1"), "int8", shape, layout)


@pytest.mark.parametrize("shape", [(40, 24), (2, 3, 16), (8,), (0, 8), (3, 0), (32, 128)])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, np.ravel, fractal_nz])
def test_layouts_of_int4(shape, make):
    """Values, bytes of two values, and words of eight, which need no line."""
    spread = np.random.default_rng(3).integers(-8, 8, shape, "i1")
    nibbles = (spread & 15).astype("u4").reshape(*shape[:-1], shape[-1] // 8, 8)
    words = np.bitwise_or.reduce(nibbles << np.arange(0, 32, 4, dtype="u4"), axis=-1).astype("u4").view("i4")
    packed = (spread[..., ::2] & 15 | spread[..., 1::2] << 4)
    for theirs, c0 in ((spread, 64), (spread.astype("f4"), 64), (packed, 32), (packed.view("u1"), 32), (words, 8)):
        if make is fractal_nz:
            theirs = fractal_nz(theirs.reshape(-1, theirs.shape[-1]), c0) if 128 in shape else theirs
        else:
            theirs = make(theirs)
        file = taken(theirs, "quint4x2", words.shape)
        np.testing.assert_array_equal(file.array, words)
        assert (file.array.dtype, file.taken == "") == ("i4", theirs.dtype == "i4" and theirs.shape == words.shape)


@pytest.mark.parametrize("shape, dtype", [((40, 13), "i1"), ((40, 10), "u1"), ((39, 12), "u1"), ((40, 12), "i4"),
                                          ((40, 0), "u1"), ((), "u1")])
def test_others_do_not_become_int4(shape, dtype):
    with pytest.raises(CommandError, match=re.escape("expected i4 [40, 3] to compare with y, which is quint4x2")):
        taken(np.zeros(shape, dtype), "quint4x2", (40, 3))


def test_names_of_types():
    dtypes = ("float32", "bfloat16", "quint4x2", "int32")
    assert [files.numpy_type(dtype) for dtype in dtypes] == ["f4", "u2", "i4", "i4"]


# ---- writing ----


def run(script, *words, **options):
    """Runs a script that has the module, as the command does."""
    start = ("import sys, signal, numpy as np, npuquant_cli.files as files\n"
             "from npuquant_cli.errors import CommandError, print_text\n"
             "for name in ('SIGINT', 'SIGPIPE'): signal.signal(getattr(signal, name), signal.SIG_DFL)\n")
    words = [sys.executable, "-c", start + script, *words]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(files.__file__))}
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.run(words, stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, check=False,
                          timeout=60, env=environment, **options)


OUTPUTS = """
with files.Outputs() as outputs:
    try:
        for path in sys.argv[1:]: outputs.add(path, np.zeros(10, 'f4'))
        print_text('text\\n', sys.stderr if files.check_outputs(dict(enumerate(sys.argv[1:]))) else sys.stdout)
        outputs.commit()
    except CommandError as error: sys.exit(str(error))
"""


def write_all(**arrays):
    with files.Outputs() as outputs:
        for name, array in arrays.items():
            outputs.add(name, array)
        outputs.commit()


@pytest.mark.parametrize("array", [X, np.asfortranarray(X), X[::2, ::2], X[0, 0, ...], X[:0], np.ones((1,) * 8, "f4")])
def test_outputs(array):
    write_all(y=array)
    data = read("y")
    assert data[:8] == b"\x93NUMPY\1\0" and b"'fortran_order': False" in data
    assert (len(data) - array.nbytes) % 64 == 0
    np.testing.assert_array_equal(np.load("y"), array)
    assert np.load("y").shape == array.shape and names() == ["y"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o777])
def test_the_mode_stays(mode):
    """That of a file that is replaced; other files are as new ones."""
    write("y", b"before")
    os.chmod("y", mode)
    before = os.umask(0o027)
    try:
        write_all(y=X, new=X)
    finally:
        os.umask(before)
    assert (os.stat("y").st_mode & 0o777, os.stat("new").st_mode & 0o777) == (mode, 0o640)


def test_text():
    with files.Outputs() as outputs:
        outputs.add_text("manifest.json", "{}\n")
        assert "manifest.json" not in names()
        outputs.commit()
    assert (read("manifest.json"), names()) == (b"{}\n", ["manifest.json"])


@pytest.mark.parametrize("before", [b"before", None])
def test_links(before):
    """An output follows a symbolic link, which stays."""
    os.mkdir("there")
    if before:
        write("there/y", before)
    os.symlink("there/y", "link")
    write_all(link=X)
    np.testing.assert_array_equal(np.load("there/y"), X)
    assert os.path.islink("link") and os.listdir("there") == ["y"]


def not_written(*paths):
    """The one line about outputs that cannot be written; what was there stays."""
    before = names(), read("y")
    with pytest.raises(CommandError) as caught, files.Outputs() as outputs:
        for path in paths:
            outputs.add(path, X)
        outputs.commit()
    assert "\n" not in str(caught.value)
    assert (names(), read("y")) == before
    return str(caught.value)


@pytest.mark.parametrize("path, says", [
    ("none/y", "none/y: cannot be written: No such file or directory"),
    ("o" * 300, f"{'o' * 300}: cannot be written: File name too long"),
    ("loop", "loop: cannot be written: Too many levels of symbolic links"),
    pytest.param("/dev/full", "/dev/full: cannot be written: No space left on device", marks=FULL),
])
def test_refused_outputs(path, says):
    write("y", b"before")
    os.symlink("loop", "loop")
    assert not_written("y", path) == not_written(path, "y") == says


@pytest.mark.parametrize("path", ["locked", "theirs/y"])
def test_what_nobody_may_write(path):
    """A file that is read-only, and one in such a folder."""
    def as_others_are():  # root may write anywhere, by CAP_DAC_OVERRIDE, until PR_CAPBSET_DROP and exec()
        getattr(ctypes.CDLL(None), "prctl", lambda *arguments: None)(24, 1, 0, 0, 0)

    os.mkdir("theirs")
    for name in ("y", "locked", "theirs/y"):
        write(name, b"before")
    os.chmod("locked", 0o400)
    os.chmod("theirs", 0o500)
    if subprocess.run(["test", "-w", "locked"], check=False, preexec_fn=as_others_are).returncode == 0:
        pytest.skip("root cannot give up that it may write anywhere")
    done = run(OUTPUTS, "y", path, preexec_fn=as_others_are)
    assert done.stderr.decode() == f"{path}: cannot be written: Permission denied\n"
    assert (names(), os.listdir("theirs")) == (["locked", "theirs", "y"], ["y"])
    assert read("y") == read(path) == b"before"


def test_a_file_too_large():
    """As a full disk: Python has told the system to send no signal."""
    write("y", b"before")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        assert not_written("y") == "y: cannot be written: File too large"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_refused_rename_names_what_is_written(monkeypatch):
    replace = os.replace

    def refuse(temporary, place):
        if place.endswith("s"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(temporary, place)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(CommandError) as caught:
        write_all(**{"/dev/null": X, "y": X, "s": X, "o": X})
    assert str(caught.value) == "s: cannot be written: Input/output error; written before: /dev/null, y"
    assert names() == ["y"]


def test_leaving_without_commit():
    with files.Outputs() as outputs:
        outputs.add("y", X)
        assert len(names()) == 1 and names()[0].startswith(".npuquant-") and names()[0].endswith(".tmp")
    assert names() == []


@pytest.mark.parametrize("paths, says", [
    (("y", "y"), "y: named for two outputs"), (("y", "./y"), "./y: named for two outputs"),
    (("link", "y"), "y: named for two outputs"), (("there/y", "y"), "y: named for two outputs"),
    (("-", "-"), "-: named for two outputs"), (("-", "/dev/stdout"), "/dev/stdout: named for two outputs"),
    (("y", "."), ".: cannot be written: it is neither a file, a pipe nor a character device"),
    (("y", "s"), False), (("-", "s"), True), (("y", "/dev/stdout"), True), (("/dev/null", "/dev/null"), False),
    ((), False),
])
def test_paths(paths, says):
    """Whether one is stdout, or what is said of them."""
    os.symlink("y", "link")
    os.symlink(".", "there")
    try:
        said = files.check_outputs(dict(zip(("y", "scale"), paths)))
    except CommandError as error:
        said = str(error)
    assert said == says


# ---- streams ----


def test_pipes_and_devices():
    os.mkfifo("pipe")
    with subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE) as reader:
        write_all(**{"pipe": X, "/dev/null": X, "y": X})
        assert reader.communicate(timeout=60)[0] == saved(X) == read("y")
    with open("open", "wb") as stream:
        write_all(**{f"/dev/fd/{stream.fileno()}": X})
    assert read("open") == saved(X)


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_stdout(name):
    if name.startswith("/proc") and not os.path.exists(name):
        pytest.skip("no /proc")
    expected = saved(np.zeros(10, "f4"))
    done = run(OUTPUTS, name)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, b"text\n")
    with open("redirected", "wb") as stream:  # no other file replaces this one
        done = run(OUTPUTS, name, "y", stdout=stream)
    assert (done.returncode, read("redirected"), read("y")) == (0, expected, expected)


@FULL
def test_full_stdout():
    """Text or an output that stdout does not take: no file has its name."""
    write("y", b"before")
    for words, says in ((("y",), b"cannot write to stdout\n"),
                        (("y", "-"), b"text\nstdout: cannot be written: No space left on device\n")):
        with open("/dev/full", "wb") as full:
            done = run(OUTPUTS, *words, stdout=full)
        assert (done.returncode, done.stderr, names(), read("y")) == (1, says, ["y"], b"before")


@pytest.mark.parametrize("words", [("y",), ("y", "-")])
def test_unread_stdout(words):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe:
        done = run(OUTPUTS, *words, stdout=pipe)
    assert (done.returncode, names()) == (-signal.SIGPIPE, [])
    assert b"Traceback" not in done.stderr


# ---- signals ----


WAIT = """
signals = [getattr(signal, name) for name in sys.argv[1].split(',')]
with files.Outputs() as outputs:
    outputs.add_folder('new')
    outputs.add('y', np.zeros(10, 'f4'))
    {wait}
    outputs.commit()
sys.exit(3)
"""
RAISE = "signal.raise_signal(signals[0])"
RAISING = f"""
class Raising:
    def __array__(self, *types, **options): {RAISE}; return np.ones(3)
"""
WRITING = "outputs.add('s', Raising())"
BETWEEN = f"""outputs.add('s', np.zeros(3)); import os; replace = os.replace
    os.replace = lambda *paths: ({RAISE}, replace(*paths))"""


def with_signals(action):
    """What a process does before it runs the script."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in files._ENDING:
        signal.signal(number, action)


@pytest.mark.parametrize("name, action, wait, left", [
    # With temporary files, and in the middle of writing one.
    *((number.name, signal.SIG_DFL, wait, []) for number in files._ENDING for wait in (RAISE, WRITING)),
    # Between two outputs: all have their names.
    ("SIGTERM", signal.SIG_DFL, BETWEEN, ["s", "y"]), ("SIGHUP", signal.SIG_IGN, RAISE, ["y"]),
])
def test_signals(name, action, wait, left):
    write("y", b"before")
    done = run(RAISING + WAIT.format(wait=wait), name, preexec_fn=functools.partial(with_signals, action))
    assert (done.returncode, done.stderr) == (3 if action == signal.SIG_IGN else -getattr(signal, name), b"")
    assert (names(), read("y") == b"before") == (left or ["y"], not left)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_signals_while_a_reader_blocks(name):
    """The program waits inside the system for somebody who reads the pipe."""
    os.mkfifo("pipe")
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(files.__file__))}
    script = ("import numpy as np, npuquant_cli.files as files\nwith files.Outputs() as outputs:\n"
              "    outputs.add('y', np.zeros(3)); outputs.add('pipe', np.zeros(3)); outputs.commit()")
    with subprocess.Popen([sys.executable, "-c", script], env=environment) as process:
        deadline = time.monotonic() + 30
        while len(names()) == 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(getattr(signal, name))
        assert process.wait(timeout=30) == -getattr(signal, name)
    assert len(names()) == (1 if name == "SIGTERM" else 2)  # the pipe, and what nobody can remove


def test_signals_are_as_before():
    """Outside an Outputs, the default action ends the program."""
    before = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    try:
        with files.Outputs():
            assert signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGUSR1, before)
