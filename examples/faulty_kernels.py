#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the folder faulty_kernels in the current one, and writes inputs and results of faulty kernels into it. Most
kernels have one mistake. docs/diagnose.md diagnoses the results.
"""
import os

import numpy as np

FOLDER = "faulty_kernels"
f2, f4, f8 = np.float16, np.float32, np.float64


def save(**arrays):
    for name, array in arrays.items():
        np.save(os.path.join(FOLDER, name + ".npy"), array)


def half_to_even(t):
    return np.clip(np.rint(t), -128, 127).astype("i1")


def half_away(t):
    return np.clip(np.trunc(t + np.copysign(0.5, t)), -128, 127).astype("i1")


def spread(least, count, *shape):
    """Multiples of 1/64 from least on, in no order. They are exact in float16; scaling makes many of them halves."""
    i = np.arange(np.prod(shape), dtype="u8")
    return least + ((i * 2654435761 % 2**32) * count >> 32).reshape(shape).astype(f4) / 64


os.makedirs(FOLDER, exist_ok=True)

x = spread(-6, 769, 64, 256)
save(x=x.astype(f2))

# quantize, dividing by one scale
y = half_away(x / f4(0.125))
save(scales=np.array([0.125], f4), half_away=y)
y[40:44, 64:128] = 0
save(overwritten=y)
y = half_to_even(x / f4(0.125))
save(shuffled=y.reshape(4, 16, 256).swapaxes(0, 1).reshape(64, 256))
y[:, 240:] = 0
save(tail=y)
y = half_to_even(x / f4(0.125))
y[:, 240:] = half_away(x / f4(0.125))[:, 240:]
save(scalar_tail=y)
relu = np.maximum(x, 0)
save(relu=relu.astype(f2), relu_half_away=half_away(relu / f4(0.125)))

t = x / f4(0.03125)
wrapped = np.rint(t).astype("i4").astype("i1")
save(
    small_scales=np.array([0.03125], f4),
    wrapped=wrapped,
    two_mistakes=np.trunc(t + np.copysign(0.5, t)).astype("i4").astype("i1"),
    noise=half_to_even(t) ^ (np.random.default_rng(1).random(t.shape) < 0.01),
)

# quantize on a device without a mistake: 6 % of its quotients are one unit in the last place off
t = x / f4(0.1)
random = np.random.default_rng(2)
beside = np.nextafter(t, np.where(random.random(t.shape) < 0.5, f4(-np.inf), f4(np.inf)))
moved = (random.random(t.shape) < 0.06) & (t != 0)
save(device_scales=np.array([0.1], f4), device=half_to_even(np.where(moved, beside, t)))

# quantize, multiplying: the products round to integers, and the zero points cancel the integers but for a half
line = 1 + np.arange(256, dtype=f4)[None, :] / f4(257)
near = 50 + np.arange(256, dtype=f4) % 50
line_scales = near / line[0]
line_zero_points = f4(0.5) - near
fused = (line.astype(f8) * line_scales.astype(f8) + line_zero_points.astype(f8)).astype(f4)
save(line=line, line_scales=line_scales, line_zero_points=line_zero_points, fused=half_to_even(fused))

# quantize to int4, with the two int4 of a byte swapped
int4 = np.clip(np.rint(x * f4(1.25)), -8, 7).astype("i8")
nibbles = (int4 & 15).astype("u4").reshape(64, 32, 4, 2)[..., ::-1].reshape(64, 32, 8)
words = np.bitwise_or.reduce(nibbles << np.arange(0, 32, 4, dtype="u4"), axis=-1)
save(int4_scales=np.array([1.25], f4), nibbles=words.view("i4"))

# group_quant
group_scale = (3 + np.arange(4 * 256, dtype=f4).reshape(4, 256) / 97 % 5).astype(f4)
group_index = np.array([10, 10, 37, 64])
offset = np.array([0.3], f4)
rows = np.arange(64)
group = np.searchsorted(group_index, rows, side="right")
one_late = np.searchsorted(group_index, rows, side="left")
in_float16 = (x * group_scale[group]).astype(f2) + offset.astype(f2)
save(
    group_scale=group_scale,
    group_index=group_index,
    offset=offset,
    offset_in_float16=half_to_even(in_float16),
    group_one_late=half_to_even(x * group_scale[one_late] + offset),
)

# dynamic_quant_asymmetric
tokens = spread(-4, 257, 64, 256)
tokens[:, 0], tokens[:, 1] = -4.125, 0.125
high, low = tokens.max(axis=1), tokens.min(axis=1)
scale = (high - low) / f4(255)
token_offset = f4(127) - high / scale
save(
    tokens=tokens.astype(f2),
    token_scale=scale,
    token_offset=token_offset,
    divided=half_to_even(tokens / scale[:, None] + token_offset[:, None]),
)
high, low = x.max(axis=1), x.min(axis=1)
scale = (high - low) * f4(1 / 255)
save(inverse_scale=scale, inverse_offset=f4(127) - high / scale)

# dynamic_quant, with the scale in the other form
varied = x * (1 + np.arange(64, dtype=f4)[:, None] / 64)
r = f4(127) / np.abs(varied).max(axis=1)
save(varied=varied, symmetric=half_to_even(varied * r[:, None]), inverse_form=f4(1) / r)

# dynamic_quant: the largest value of a row leaves out the first 40 columns
m = np.abs(varied[:, 40:]).max(axis=1)
save(late_start=half_to_even(varied * (f4(127) / m)[:, None]), late_start_scale=m * (f4(1) / f4(127)))

# dynamic_quant: the kernel's rows lie 272 elements apart, and were saved as rows of 256
padded = np.zeros((64, 272), "i1")
padded[:, :256] = half_to_even(varied * r[:, None])
save(padded=padded.reshape(-1)[: 64 * 256].reshape(64, 256))

# requant, with one clamp instead of two
sums = (spread(-4, 513, 64, 256) * 6400).astype("i4")
channel_offset = np.tile(np.array([-200, 0, 3, 200]), 64)
words = 1 << 46 | (channel_offset & 0x1FF) << 37 | int(f4(1 / 64).view("i4"))
p = sums.astype(f4) * f4(1 / 64)
save(sums=sums, words=words, one_clamp=half_to_even(np.rint(p) + channel_offset.astype(f4)))
