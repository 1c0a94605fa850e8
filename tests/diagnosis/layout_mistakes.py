# SPDX-License-Identifier: BSD-3-Clause
"""Right values in wrong places or codes. Words of int4 count as their values."""
import numpy as np
from numpy_operators import MX_TYPES, pack, unpack


def tail_untouched(y, is_int4):
    return _untouched(y, np.s_[..., y.shape[-1] - y.shape[-1] // 4 - 1:], is_int4)


def rows_untouched(y, is_int4):
    return _untouched(y, np.s_[y.shape[0] - y.shape[0] // 4 - 1:], is_int4)


def rows_overwritten(y, is_int4):
    """Codes of the row before, beyond its end."""
    values = (unpack(y) if is_int4 else y).reshape(-1, (8 if is_int4 else 1) * y.shape[-1]).copy()
    values[1:, :values.shape[1] // 4 + 1] = 0
    return (pack(values) if is_int4 else values).reshape(y.shape)


def _untouched(y, where, is_int4):
    """Memory that was never written holds one value."""
    y = y.copy()
    y[where] = np.frombuffer((b"\x55" if is_int4 else b"\xA5") * y.itemsize, y.dtype)[0]
    return y


def transposed(y, is_int4):
    values = unpack(y) if is_int4 else y
    swapped = np.ascontiguousarray(values.reshape(-1, values.shape[-1]).T).reshape(values.shape)
    return pack(swapped) if is_int4 else swapped


def rows_permuted(y, is_int4):
    """The halves of each block of eight rows change places."""
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


AWQ = [0, 2, 4, 6, 1, 3, 5, 7]


def awq_order(y, is_int4):
    values = unpack(y)
    return pack(values.reshape(-1, 8)[:, AWQ].reshape(values.shape))


def halves(length):
    def interleaved(y, is_int4):
        """The first half of each group of int4 in the low halves of bytes, the second half in the high ones."""
        values = unpack(y)
        return pack(values.reshape(-1, 2, length // 2).swapaxes(1, 2).reshape(values.shape))

    return interleaved


def fractal_nz(y, is_int4):
    values = unpack(y) if is_int4 else y
    width = 64 if is_int4 else 32 // y.itemsize
    blocks = values.reshape(-1, values.shape[-1] // width, width)
    stored = np.ascontiguousarray(blocks.swapaxes(0, 1)).reshape(values.shape)
    return pack(stored) if is_int4 else stored


def plus_128(y, is_int4):
    return (y.astype(np.int64) + 128).astype(np.uint8).view(y.dtype)


def minus_128(y, is_int4):
    return (y.astype(np.int64) - 128).astype(np.int8).view(y.dtype)


# In the order of the changes: memory that was never written has no code.
LAYOUTS = {function.__name__.replace("_", "-"): function for function in (
    plus_128, minus_128, tail_untouched, rows_untouched, rows_overwritten, transposed, rows_permuted, nibbles_swapped,
    words_reversed, bytes_swapped, awq_order, fractal_nz)}
LAYOUTS.update({f"halves-of-{length}": halves(length) for length in (8, 32)})


def misplaced(results, mistakes, call):
    """The results with these mistakes, as far as they are mistakes of layout."""
    for mistake in [name for name in LAYOUTS if name in mistakes]:
        dtype, y = call.arguments.get("dtype"), results["y"]
        has_4_bits = dtype == "quint4x2" or MX_TYPES.get(dtype) == 7  # four bytes of two are a word of eight
        changed = LAYOUTS[mistake](y.view("<i4") if has_4_bits else y, has_4_bits)
        results["y"] = np.ascontiguousarray(changed).view(y.dtype)
    return results
