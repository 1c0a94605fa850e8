# SPDX-License-Identifier: BSD-3-Clause
"""Files of the tests of the command, in the current folder."""
import numpy as np


def save(positional=1, **arrays):
    """Saves inputs; returns the words that name them."""
    given = {name: array for name, array in arrays.items() if array is not None}
    words = []
    for i, (name, array) in enumerate(given.items()):
        np.save(f"{name}.npy", array)
        words += [f"--{name.replace('_', '-')}"] * (i >= positional) + [f"{name}.npy"]
    names = ",".join(name for name, array in given.items() if array.dtype == np.uint16)
    return words + ["--bf16", names] * bool(names)


def assert_saved(name, array):
    """Also the sign of zeros, and NaN."""
    saved = np.load(f"{name}.npy")
    assert (saved.dtype, saved.shape, saved.tobytes()) == (array.dtype, array.shape, array.tobytes()), name
