#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the activations of a large layer, with the operators' parameters for them, as .npy files: heavy-tailed values,
tokens of different size, and a few outlier channels that are tens of times larger, as in large language models. Every
machine makes the same numbers: random numbers are integers, and each step rounds to float32.

usage: make_activations.py FOLDER [ROWS COLUMNS [f2|f4|bf16]]
"""
import argparse
import os

import numpy as np

GROUPS, OUTLIER_EVERY, BLOCK = 8, 200, 64
f4, u8 = np.float32, np.uint64


class Random:
    """SplitMix64: a counter whose bits are mixed."""

    def __init__(self):
        self.drawn = 0

    def draw(self, *shape):
        count = np.prod(shape, dtype=int)
        z = np.arange(self.drawn + 1, self.drawn + count + 1, dtype=u8) * u8(0x9E3779B97F4A7C15) + u8(1)
        self.drawn += count
        for shift, factor in (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB):
            z = (z ^ z >> u8(shift)) * u8(factor)
        return (z ^ z >> u8(31)).reshape(shape)


def fraction(bits, part):
    """16 of the bits, from 1/65536 to 1."""
    return ((bits >> u8(16 * part) & u8(0xFFFF)) + u8(1)).astype(f4) / f4(65536)


def heavy_tailed(bits):
    """About normal, divided by the fourth root of a uniform number: tails fall like the fifth power."""
    bell = fraction(bits, 0) + fraction(bits, 1) + fraction(bits, 2) - f4(1.5)
    return f4(2) * bell / np.sqrt(np.sqrt(fraction(bits, 3)))


def convert(values, dtype):
    """To the nearest, ties to even. What is below the normal float16 becomes 0, what is above the largest that one."""
    if dtype == "bf16":
        bits = values.view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
    if dtype == "f2":
        values = np.where(np.abs(values) < f4(2**-14), np.copysign(f4(0), values), np.clip(values, -65504, 65504))
    return values.astype("<" + dtype)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("folder")
    parser.add_argument("rows", nargs="?", type=int, default=4096)
    parser.add_argument("columns", nargs="?", type=int, default=11008)
    parser.add_argument("dtype", nargs="?", choices=["f2", "f4", "bf16"], default="f2")
    options = parser.parse_args()
    rows, columns = options.rows, options.columns
    random = Random()

    def path(name):
        return os.path.join(options.folder, f"{name}.npy")

    def save(name, array, dtype="<f4"):
        np.save(path(name), array.astype(dtype))

    bits = random.draw(columns)
    channels = f4(0.25) + f4(0.5) * fraction(bits, 0)
    is_outlier = (bits >> u8(32)) % u8(OUTLIER_EVERY) == 0
    channels = np.where(is_outlier, channels * (f4(10) + f4(90) * fraction(bits, 1)), channels)

    stored = "<u2" if options.dtype == "bf16" else "<" + options.dtype
    x = np.lib.format.open_memmap(path("x"), mode="w+", dtype=stored, shape=(rows, columns))
    for begin in range(0, rows, BLOCK):
        bits = random.draw(min(BLOCK, rows - begin), 1 + columns)
        token = f4(0.5) + fraction(bits[:, :1], 0)
        x[begin:begin + BLOCK] = convert(heavy_tailed(bits[:, 1:]) * channels * token, options.dtype)
    x.flush()

    # Static scales and zero points by channel, as calibration would find them. The inverses are for a kernel that
    # multiplies where the operator divides, a common mistake: 1 / scale is rounded, so that some results differ.
    scales = channels * f4(4) / f4(127)
    save("scales", scales)
    save("inverse_scales", f4(1) / scales)
    save("zero_points", (random.draw(columns) % u8(21)).astype(int) - 10, "<i4")

    # Factors for each group and channel, and groups of uneven sizes.
    group = f4(0.75) + f4(0.5) * fraction(random.draw(GROUPS, 1), 0)
    save("group_scale", group * f4(127) / (channels * f4(4)))
    save("group_index", np.array([rows * e * (e + 1) // (GROUPS * (GROUPS + 1)) for e in range(1, GROUPS + 1)]), "<i8")

    # What smoothing would take off the outliers, and the scales of a matrix multiplication's output.
    save("smooth_scales", f4(1) / np.sqrt(channels))
    save("scale", channels / f4(4096))


if __name__ == "__main__":
    main()
