# SPDX-License-Identifier: BSD-3-Clause
"""Files of the tests of the command, in the current folder."""
import io
import os

import numpy as np
import pytest

FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")


def save(positional=1, **arrays):
    """Saves inputs; returns the words that name them."""
    given = {name: array for name, array in arrays.items() if array is not None}
    words = []
    for i, (name, array) in enumerate(given.items()):
        np.save(f"{name}.npy", array)
        words += [f"--{name.replace('_', '-')}"] * (i >= positional) + [f"{name}.npy"]
    names = ",".join(name for name, array in given.items() if array.dtype == np.uint16)
    return words + ["--bf16", names] * bool(names)


def save_example(line, begin=""):
    """Saves what the examples of the help name, under names that begin so. y, and theirs, is different."""
    ones, is_grouped = np.ones(8, "f4"), line.startswith("group-quant")
    arrays = {"x": np.ones((4, 8), "u2" if is_grouped else "f4"), "s": ones[None] if is_grouped else ones, "z": ones,
              "scale": ones, "offset": ones, "smooth": ones, "rows": ones[:4], "ends": np.array([4]),
              "sums": np.ones((4, 8), "i4"), "words": np.full(8, 1 << 46), "x1": np.ones((4, 8), "i1"),
              "weight": np.ones((8, 8), "i1"), "y": np.ones((4, 8), "i1"), "ours": ones, "theirs": ones + 1,
              "codes": np.ones((4, 8), "u1"), "groups": np.full((4, 1, 2), 127, "u1")}
    for name, array in arrays.items():
        np.save(f"{begin}{name}.npy", array)


def assert_saved(name, array):
    """Also the sign of zeros, and NaN."""
    ours = np.load(f"{name}.npy")
    assert (ours.dtype, ours.shape, ours.tobytes()) == (array.dtype, array.shape, array.tobytes()), name


def saved(array):
    """The bytes of a file."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
