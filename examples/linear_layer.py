#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the inputs of linear_layer.c: activations as after SiLU or GELU, of which one channel in 128 is much larger than
the others, weights, the same weights smoothed, smooth scales, a bias, and the layer's result in float32.

usage: linear_layer.py FILE [TOKENS INPUTS OUTPUTS]     64 1024 512 if not given, the sizes of the C program
"""
import sys

import numpy as np

f4 = np.float32
tokens, inputs, outputs = map(int, sys.argv[2:5] or (64, 1024, 512))
random = np.random.RandomState(1)  # the same numbers with every version of NumPy


def activations():
    """None is far below 0."""
    channels = np.where(np.arange(inputs) % 128 == 5, f4(60), f4(1))
    return (random.random_sample((tokens, inputs)).astype(f4) ** 3 * 4 - f4(0.25)) * channels


def weights(*shape):
    return (random.random_sample(shape) + random.random_sample(shape) - 1).astype(f4)


x, calibration = activations(), activations()
w, bias = weights(outputs, inputs) / 16, weights(outputs)

# SmoothQuant, formula 4 with alpha = 0.5.
x_max, w_max = np.abs(calibration).max(axis=0), np.abs(w).max(axis=0)
s = np.sqrt(x_max / w_max)

with open(sys.argv[1], "wb") as file:
    for array in x, w, w * s, 1 / s, bias, x @ w.T + bias:
        array.tofile(file)
