# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that the diagnosis has no name for: it must not name them.

None of these mistakes becomes a hypothesis. If one gets a name after all, it leaves the list, and another comes. Each
function takes a call and a random generator and returns results, or None where its mistake is impossible. A mistake
changes an input, a parameter or the result.
"""
import copy

import numpy as np
from kernels import run
from numpy_operators import MX_TYPES, RANGES, floats, pack, round_to, unpack


def with_input(call, name, change):
    """The right results for another input of the same type."""
    changed = copy.copy(call)
    array = call.inputs.get(name)
    if array is None:
        return None
    dtype = call.types[name]
    if dtype == "quint4x2":
        values = np.clip(np.rint(change(unpack(array).astype(np.float64))), -8, 7).astype(np.int64)
        array = pack(values)
    elif "src_type" in call.arguments:  # codes: those of large numbers begin anew
        array = np.rint(change(array.astype(np.float64))).astype(np.int64).astype(np.uint8)
    elif dtype in ("int8", "uint8", "int32"):
        array = np.clip(np.rint(change(array.astype(np.float64))), *RANGES[dtype]).astype(array.dtype)
    elif dtype in ("int64", "uint64"):
        return None  # a word holds both scale and offset
    else:
        array = round_to(change(floats(array)).astype(np.float32), dtype)
    changed.inputs = {**call.inputs, name: array}
    return run(changed, set())


def with_y(call, change):
    """The right results with a changed y: as integers of its type, or as the bits of a float."""
    results = run(call, set())
    y = results["y"]
    if y.ndim < 1:
        return None
    dtype = call.arguments.get("dtype")
    if MX_TYPES.get(dtype) == 7:  # four bytes of two codes are a word of eight
        codes = np.clip(change(unpack(y.view("<i4")).astype(np.int64)), -8, 7)
        results["y"] = pack(codes).view(np.uint8)
        return results if np.any(codes & 7) else None  # zeros alone: a y that is never more than 0
    if dtype == "quint4x2":
        results["y"] = pack(np.clip(change(unpack(y).astype(np.int64)), -8, 7))
        return results
    is_integer = y.dtype in (np.int8, np.uint8, np.int32)
    stored = y if is_integer else y.view(f"i{y.itemsize}")
    limits = np.iinfo(stored.dtype)
    results["y"] = np.clip(change(stored.astype(np.int64)), limits.min, limits.max).astype(stored.dtype).view(y.dtype)
    return results


def significand(values, bits):
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.rint(fraction * 2**bits) / 2**bits, exponent)


def rows_of(values):
    return values.reshape(-1, values.shape[-1])


# ---- x ----


def of_x(change):
    return lambda call, rng: None if call.operator == "trans_quant_param" else with_input(
        call, "x", lambda x: change(x, rng))


def only(where, change):
    def changed(values, rng):
        values = values.copy()
        values[where] = change(values, rng)[where]
        return values
    return changed


def clipped(x, rng):
    finite = np.abs(x[np.isfinite(x)])
    most = np.quantile(finite, 0.8) if finite.size else 1
    return np.clip(x, -most, most)


def beside(distance):
    return lambda values, rng: np.roll(values, distance, axis=-1)


def noisy(x, rng):
    return x * (1 + rng.normal(size=x.shape) / 256)


OF_X = {
    "x clipped": clipped,
    "x without sign": lambda x, rng: np.abs(x),
    "x negated": lambda x, rng: -x,
    "x doubled": lambda x, rng: x * 2,
    "x one percent larger": lambda x, rng: x * 1.01,
    "x of the column two before": beside(2),
    "x of the column 16 further": beside(-16),
    "x reversed in a row": lambda x, rng: x[..., ::-1],
    "x with noise": noisy,
    "x of six bits": lambda x, rng: significand(x, 6),
    "x of three bits": lambda x, rng: significand(x, 3),
    "x plus a hundredth of its deviation": lambda x, rng: x + np.nanstd(np.where(np.isfinite(x), x, 0)) / 100,
    "x averaged with its neighbour": lambda x, rng: x / 2 + np.roll(x, 1, axis=-1) / 2,
    "x doubled in odd rows": only(np.s_[1::2], lambda x, rng: x * 2),
    "x negated in every eighth column": only(np.s_[..., ::8], lambda x, rng: -x),
    "x negated in the last columns": only(np.s_[..., -5:], lambda x, rng: -x),
    "x of another row in a tile": only(np.s_[..., 16:32], lambda x, rng: x[::-1]),
    "x sorted in a row": lambda x, rng: np.sort(x, axis=-1),
    "x without its mean": lambda x, rng: x - np.mean(np.where(np.isfinite(x), x, 0), axis=-1, keepdims=True),
    "x through SiLU": lambda x, rng: x / (1 + np.exp(-np.clip(x, -80, 80))),
}

# ---- parameters ----

SCALES = "scales", "scale", "weight_scale", "mxscale"
OFFSETS = "zero_points", "offset", "bias"


def of_parameter(names, change):
    def results(call, rng):
        for name in names:
            if name in call.inputs:
                return with_input(call, name, lambda values: change(values, rng))
        return None
    return results


def halves_exchanged(values, rng):
    return np.roll(values, values.shape[-1] // 2, axis=-1)


OF_SCALES = {
    "scale one percent larger": lambda s, rng: s * 1.01,
    "scale doubled": lambda s, rng: s * 2,
    "scale squared": lambda s, rng: s * np.abs(s),
    "scale a power of two": lambda s, rng: significand(s, 1),
    "scale of four bits": lambda s, rng: significand(s, 4),
    "scale of the column four further": beside(-4),
    "scale of every second column": lambda s, rng: np.repeat(s[..., ::2], 2, axis=-1)[..., : s.shape[-1]],
    "scale of the other half": halves_exchanged,
    "scale reversed": lambda s, rng: s[..., ::-1],
    "scale is the median": lambda s, rng: np.full_like(s, np.median(s[np.isfinite(s)])),
    "scale wrong in one column": only(np.s_[..., 3:4], lambda s, rng: s * 3),
}
OF_OFFSETS = {
    "offset doubled": lambda z, rng: z * 2,
    "offset halved": lambda z, rng: z / 2,
    "offset plus one": lambda z, rng: z + 1,
    "offset reversed": lambda z, rng: z[..., ::-1],
    "offset of the column two before": beside(2),
    "offset of the other half": halves_exchanged,
    "offset is the median": lambda z, rng: np.full_like(z, np.median(z[np.isfinite(z)])),
}
OF_SMOOTH = {
    "smooth scale twice": lambda s, rng: s * s,
    "smooth scale's root": lambda s, rng: np.sqrt(np.abs(s)),
    "smooth scale of the column eight further": beside(-8),
}

# ---- y ----


def some(y, count, rng, change):
    flat = y.reshape(-1)
    hit = rng.choice(flat.size, min(count, flat.size), replace=False)
    flat[hit] = change(flat[hit])
    return y


def tile(y, change):
    rows = rows_of(y)
    rows[8:24, 16:32] = change(rows[8:24, 16:32])
    return y


OF_Y = {
    "y plus one": lambda y, rng: y + 1,
    "y minus one": lambda y, rng: y - 1,
    "y even": lambda y, rng: y & ~1,
    "y odd": lambda y, rng: y | 1,
    "y with bits 0 and 1 exchanged": lambda y, rng: y & ~3 | (y & 1) << 1 | y >> 1 & 1,
    "y halved": lambda y, rng: y >> 1,
    "y as Gray code": lambda y, rng: y ^ y >> 1,
    "y with bits 0 and 2 flipped": lambda y, rng: y ^ 5,
    "y one more in one of three": lambda y, rng: y + (rng.random(y.shape) < 1 / 3),
    "y one more or less at random": lambda y, rng: y + rng.integers(-1, 2, y.shape),
    "y one less where positive": lambda y, rng: y - (y > 0),
    "y of four bits less": lambda y, rng: y & ~15,
    "y doubled": lambda y, rng: y * 2,
    "y one element late": lambda y, rng: np.roll(y.reshape(-1), 1).reshape(y.shape),
    "y plus the parity of the column": lambda y, rng: y + np.arange(y.shape[-1]) % 2,
    "y plus its neighbour": lambda y, rng: y + np.roll(y, 1, axis=-1),
    "y the larger of two neighbours": lambda y, rng: np.maximum(y, np.roll(y, 1, axis=-1)),
    "y averaged with the row above": lambda y, rng: y + np.roll(y, 1, axis=0) >> 1,
    "y wrong in three elements": lambda y, rng: some(y, 3, rng, lambda part: part ^ 3),
    "y wrong in one of fifty": lambda y, rng: some(y, y.size // 50 + 1, rng, lambda part: part - 2),
    "y three less in a column": only(np.s_[..., 5], lambda y, rng: y - 3),
    "y shuffled in a tile": lambda y, rng: tile(y, lambda part: rng.permuted(part, axis=1)),
    "y one more in every fourth row": only(np.s_[::4], lambda y, rng: y + 1),
    "y of random bits in a row": only(np.s_[1:2], lambda y, rng: y ^ rng.integers(0, 8, y.shape)),
}


def of_y(change):
    return lambda call, rng: with_y(call, lambda y: change(y, rng))


# ---- codes of scales ----

OF_CODES = {
    "S one more in one of three": lambda S, rng: S + (rng.random(S.shape) < 1 / 3),
    "S of three places on": lambda S, rng: np.roll(S, -3),
    "S in reverse order": lambda S, rng: S.ravel()[::-1].reshape(S.shape),
    "S even": lambda S, rng: S & ~1,
    "S one less in the second of a pair": only(np.s_[..., 1], lambda S, rng: S - 1),
    "S with bits 0 and 2 flipped": lambda S, rng: S ^ 5,
}


def of_codes(change):
    def results(call, rng):
        if "mxscale" in call.inputs:
            return with_input(call, "mxscale", lambda S: change(S.astype(int), rng))
        made = run(call, set())
        if "mxscale" not in made:
            return None
        return {**made, "mxscale": np.clip(change(made["mxscale"].astype(int), rng), 0, 255).astype(np.uint8)}
    return results


MISTAKES = {
    **{name: of_x(change) for name, change in OF_X.items()},
    **{name: of_parameter(SCALES, change) for name, change in OF_SCALES.items()},
    **{name: of_parameter(OFFSETS, change) for name, change in OF_OFFSETS.items()},
    **{name: of_parameter(["smooth_scales"], change) for name, change in OF_SMOOTH.items()},
    **{name: of_y(change) for name, change in OF_Y.items()},
    **{name: of_codes(change) for name, change in OF_CODES.items()},
}
