# SPDX-License-Identifier: BSD-3-Clause
"""Right values in wrong places: what is done to a right y. The values of words of int4 are those in them."""
import numpy as np
from numpy_operators import pack, unpack


def tail_untouched(y, is_int4):
    return _untouched(y, np.s_[..., y.shape[-1] - y.shape[-1] // 4 - 1:], is_int4)


def rows_untouched(y, is_int4):
    return _untouched(y, np.s_[y.shape[0] - y.shape[0] // 4 - 1:], is_int4)


def _untouched(y, where, is_int4):
    """Every value of memory that was never written to is the same."""
    y = y.copy()
    y[where] = np.frombuffer((b"\x55" if is_int4 else b"\xA5") * y.itemsize, y.dtype)[0]
    return y


def transposed(y, is_int4):
    values = unpack(y) if is_int4 else y
    swapped = np.ascontiguousarray(values.reshape(-1, values.shape[-1]).T).reshape(values.shape)
    return pack(swapped) if is_int4 else swapped


def rows_permuted(y, is_int4):
    """The two halves of each block of eight rows change places."""
    rows = y.reshape(-1, 2, 4, y.shape[-1])
    return np.ascontiguousarray(rows[:, ::-1]).reshape(y.shape)


def nibbles_swapped(y, is_int4):
    values = unpack(y)
    return pack(values.reshape(*values.shape[:-1], -1, 2)[..., ::-1].reshape(values.shape))


def words_reversed(y, is_int4):
    values = unpack(y)
    return pack(values.reshape(*values.shape[:-1], -1, 8)[..., ::-1].reshape(values.shape))


def bytes_swapped(y, is_int4):
    return y.byteswap()


LAYOUTS = {function.__name__.replace("_", "-"): function for function in (
    tail_untouched, rows_untouched, transposed, rows_permuted, nibbles_swapped, words_reversed, bytes_swapped)}


def misplaced(results, mistakes, call):
    """The results with those of the mistakes that are here."""
    for mistake in mistakes & LAYOUTS.keys():
        results["y"] = LAYOUTS[mistake](results["y"], call.arguments.get("dtype") == "quint4x2")
    return results
