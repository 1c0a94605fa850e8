#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The operators as one calls them from Python: npuquant's functions on NumPy arrays beside NumPy's own operations, and
npuquant.torch's on tensors beside PyTorch's own. They take turns, on one thread. The output says how many times as
fast npuquant is, and how many elements differ. It takes about two minutes.

usage: bench/peers.py [--json FILE] [--filter REGEX] [--rounds N]

The package npuquant is what Python finds: for that of a build, PYTHONPATH=build/python and
NPUQUANT_LIBRARY=build/src/libnpuquant.so. Without PyTorch, its half is left out.
"""
import argparse
import json
import os
import random
import re
import statistics
import time
from functools import partial
from types import SimpleNamespace

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import npuquant

try:
    import torch

    import npuquant.torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

SHAPES = ((1, 128), (1, 4096), (512, 4096), (4096, 4096))


# What one writes for each operator, where m is NumPy or PyTorch. The arguments are those of npuquant's function, but for
# the words of requant, of which the caller has scales and offsets.
NUMPY = SimpleNamespace(abs=np.abs, at_least=np.maximum, cast=np.ndarray.astype, clip=np.clip, highest=np.ndarray.max,
                        lowest=np.ndarray.min, rint=np.rint, float16=np.float16, float32=np.float32, int8=np.int8)
TORCH = torch and SimpleNamespace(abs=torch.abs, at_least=torch.clamp, cast=torch.Tensor.to, clip=torch.clamp,
                                  highest=torch.amax, lowest=torch.amin, rint=torch.round, float16=torch.float16,
                                  float32=torch.float32, int8=torch.int8)


def multiplied(m, x, scale, zero):
    return m.cast(m.clip(m.rint(x * scale + zero), -128, 127), m.int8)


def divided(m, x, scale, zero):
    if m is NUMPY:
        return m.cast(m.clip(m.rint(x / scale + zero), -128, 127), m.int8)
    return torch.quantize_per_tensor(x, float(scale), int(zero), torch.qint8).int_repr()


def asymmetric(m, x):
    v = m.cast(x, m.float32)
    hi = m.highest(v, axis=1, keepdims=True)
    lo = m.lowest(v, axis=1, keepdims=True)
    scale = m.at_least((hi - lo) / 255, 1e-12)
    offset = 127 - hi / scale
    return m.cast(m.clip(m.rint(v * (1 / scale) + offset), -128, 127), m.int8)


def symmetric(m, x):
    v = m.cast(x, m.float32)
    return m.cast(m.clip(m.rint(v * (127 / m.highest(m.abs(v), axis=1, keepdims=True))), -128, 127), m.int8)


def blocks(m, x):
    return symmetric(m, x.reshape(-1, 128)).reshape(x.shape)


def anti_quant(m, x, scale, offset):
    return (m.cast(x, m.float32) + offset) * scale


def dequant(m, x, weight_scale, activation_scale):
    return m.cast(m.cast(x, m.float32) * weight_scale * activation_scale[:, None], m.float16)


def requant(m, x, scale, offset):
    q = m.clip(m.rint(m.cast(x, m.float32) * scale), -256, 255)
    return m.cast(m.clip(q + offset, -128, 127), m.int8)


def cases(generator, rows, columns):
    """Of each operator: the name of the bench's case; npuquant's function with its arguments, of which the package
    and its PyTorch layer have the same; the function above with its arguments."""
    x = generator.uniform(-6, 6, (rows, columns)).astype(np.float32)
    half = x.astype(np.float16)
    zero = np.full(1, 3, np.float32)
    scale, divisor = np.full(1, 20.3, np.float32), np.full(1, 0.0493, np.float32)
    yield ("quantize/mul/uniform/f32-i8", "npu_quantize", (x, scale, zero, "int8", -1, False), {},
           multiplied, (x, scale, zero))
    yield ("quantize/div/uniform/f32-i8", "npu_quantize", (x, divisor, zero.astype(np.int32), "int8"), {},
           divided, (x, divisor, zero))
    for operator, mode, function in (("dynamic_quant_asymmetric", "token", asymmetric),
                                     ("dynamic_quant", "token", symmetric), ("dynamic_block_quant", "block128", blocks)):
        yield f"{operator}/{mode}/plain/f16-i8", f"npu_{operator}", (half,), {}, function, (half,)

    weights = generator.integers(-128, 128, (rows, columns), np.int8)
    offset = np.full(columns, 3, np.float32)
    scale = generator.uniform(0.04, 0.06, columns).astype(np.float32)
    yield ("anti_quant/mul/channel/i8-f32", "npu_anti_quant", (weights, scale),
           {"offset": offset, "dst_dtype": "float32"}, anti_quant, (weights, scale, offset))

    sums = generator.integers(-40_000_000, 40_000_000, (rows, columns), np.int32)
    scale = generator.uniform(8e-5, 1.2e-4, columns).astype(np.float32)
    row_scale = generator.uniform(0.005, 0.015, rows).astype(np.float32)
    yield ("dequant/token/channel/i32-f16", "dequant", (sums, scale, row_scale), {}, dequant, (sums, scale, row_scale))
    words = npuquant.npu_trans_quant_param(scale / 25, offset, 1)
    short = words.astype(np.uint32).view(np.float32)
    yield "requant/mul/channel/i32-i8", "requant", (sums, words), {}, requant, (sums, short, offset)


def pairs(generator, rows, columns):
    """Of each case and way: npuquant's call and the other's."""

    def tensor(value):
        return torch.from_numpy(value) if isinstance(value, np.ndarray) else value

    for name, function, given, keywords, formula, others in cases(generator, rows, columns):
        yield (name, "NumPy", partial(getattr(npuquant, function), *given, **keywords), partial(formula, NUMPY, *others))
        if torch:
            keywords = {key: tensor(value) for key, value in keywords.items()}
            yield (name, "PyTorch", partial(getattr(npuquant.torch, function), *map(tensor, given), **keywords),
                   partial(formula, TORCH, *map(tensor, others)))


def sample(run):
    """Nanoseconds for one call, over about 2 ms."""
    start = time.perf_counter_ns()
    run()
    once = time.perf_counter_ns() - start
    if once > 20e6:
        return once
    repeats = max(1, int(2e6 / max(once, 1)))
    start = time.perf_counter_ns()
    for _ in range(repeats):
        run()
    return (time.perf_counter_ns() - start) / repeats


def first(result):
    return np.asarray(result[0] if isinstance(result, tuple) else result)


def main():
    parser = argparse.ArgumentParser(description="Times npuquant's Python functions beside NumPy and PyTorch.")
    parser.add_argument("--json", metavar="FILE", help="write the results to FILE, too")
    parser.add_argument("--filter", metavar="REGEX", default="", help="only the cases whose name it is found in")
    parser.add_argument("--rounds", type=int, default=9, help="how many times each takes its turn (default 9)")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    generator, shuffle = np.random.default_rng(1), random.Random(1).shuffle
    rows = []
    for shape in SHAPES:
        for kind, who, ours, other in pairs(generator, *shape):
            name = f"{kind}/{shape[0]}x{shape[1]}"
            if not re.search(arguments.filter, name):
                continue
            y, theirs = first(ours()), first(other())
            turns, times = [ours, other], {ours: [], other: []}
            for _ in range(arguments.rounds):
                shuffle(turns)
                for run in turns:
                    times[run].append(sample(run))
            ratio = statistics.median(b / a for a, b in zip(times[ours], times[other]))
            rows.append({"case": name, "who": who, "ours_ns": statistics.median(times[ours]), "ratio": ratio,
                         "elements": y.size, "differing": int(np.count_nonzero(theirs != y))})
            print(f"{name:42} {rows[-1]['ours_ns'] / 1e3:10.2f} us  beside {who:7}  npuquant is {ratio:6.2f} times as "
                  f"fast  {rows[-1]['differing']} differ", flush=True)
    if arguments.json:
        versions = {"NumPy": np.__version__, **({"PyTorch": torch.__version__} if torch else {})}
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"schema": "npuquant-peers-1", "date": time.strftime("%Y-%m-%d"), "versions": versions,
                       "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
