#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the activations of a large layer in float16, with the operators' parameters for them, as .npy files: heavy-tailed
values, tokens of different size, and a few outlier channels that are tens of times larger, as in large language models.

usage: make_activations.py FOLDER [ROWS COLUMNS]
"""
import argparse
import os

import numpy as np

GROUPS, BLOCK = 8, 64
f4 = np.float32


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("folder")
    parser.add_argument("rows", nargs="?", type=int, default=4096)
    parser.add_argument("columns", nargs="?", type=int, default=11008)
    options = parser.parse_args()
    rows, columns = options.rows, options.columns
    rng = np.random.default_rng(1)

    def path(name):
        return os.path.join(options.folder, f"{name}.npy")

    def save(name, array, dtype="<f4"):
        np.save(path(name), array.astype(dtype))

    is_outlier = rng.random(columns) < 1 / 200
    channels = rng.uniform(0.25, 0.75, columns) * np.where(is_outlier, rng.uniform(10, 100, columns), 1)
    x = np.lib.format.open_memmap(path("x"), mode="w+", dtype="<f2", shape=(rows, columns))
    for begin in range(0, rows, BLOCK):
        count = min(BLOCK, rows - begin)
        x[begin:begin + BLOCK] = rng.standard_t(5, (count, columns)) * channels * rng.uniform(0.5, 1.5, (count, 1))
    x.flush()

    # Static scales and zero points by channel, as calibration would find them. The inverses are for a kernel that
    # multiplies where the operator divides, a common mistake: 1 / scale is rounded, so that some results differ.
    scales = (channels * 4 / 127).astype(f4)
    save("scales", scales)
    save("inverse_scales", f4(1) / scales)
    save("zero_points", rng.integers(-10, 11, columns), "<i4")

    # Factors for each group and channel, and groups of uneven sizes.
    save("group_scale", rng.uniform(0.75, 1.25, (GROUPS, 1)) * 127 / (channels * 4))
    save("group_index", np.array([rows * e * (e + 1) // (GROUPS * (GROUPS + 1)) for e in range(1, GROUPS + 1)]), "<i8")

    # What smoothing would take off the outliers, and the scales of a matrix multiplication's output.
    save("smooth_scales", 1 / np.sqrt(channels))
    save("scale", channels / 4096)


if __name__ == "__main__":
    main()
