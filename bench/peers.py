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


# What one writes in NumPy for each operator. The arguments are those of npuquant's function, but for the words of
# requant, of which the caller has scales and offsets.


def numpy_multiplied(x, scale, zero):
    return np.clip(np.rint(x * scale + zero), -128, 127).astype(np.int8)


def numpy_divided(x, scale, zero):
    return np.clip(np.rint(x / scale + zero), -128, 127).astype(np.int8)


def numpy_asymmetric(x):
    v = x.astype(np.float32)
    hi = v.max(axis=1, keepdims=True)
    lo = v.min(axis=1, keepdims=True)
    scale = np.maximum((hi - lo) / np.float32(255), np.float32(1e-12))
    offset = np.float32(127) - hi / scale
    return np.clip(np.rint(v * (np.float32(1) / scale) + offset), -128, 127).astype(np.int8)


def numpy_symmetric(x):
    v = x.astype(np.float32)
    r = np.float32(127) / np.abs(v).max(axis=1, keepdims=True)
    return np.clip(np.rint(v * r), -128, 127).astype(np.int8)


def numpy_blocks(x):
    return numpy_symmetric(x.reshape(-1, 128)).reshape(x.shape)


def numpy_anti_quant(x, scale, offset):
    return (x.astype(np.float32) + offset) * scale


def numpy_dequant(x, weight_scale, activation_scale):
    return (x.astype(np.float32) * weight_scale * activation_scale[:, None]).astype(np.float16)


def numpy_requant(x, scale, offset):
    q = np.clip(np.rint(x.astype(np.float32) * scale), -256, 255)
    return np.clip(q + offset, -128, 127).astype(np.int8)


# The same in PyTorch.


def torch_multiplied(x, scale, zero):
    return torch.clamp(torch.round(x * scale + zero), -128, 127).to(torch.int8)


def torch_divided(x, scale, zero):
    return torch.quantize_per_tensor(x, float(scale), int(zero), torch.qint8).int_repr()


def torch_asymmetric(x):
    v = x.to(torch.float32)
    hi = v.amax(1, keepdim=True)
    lo = v.amin(1, keepdim=True)
    scale = torch.clamp((hi - lo) / 255, min=1e-12)
    offset = 127 - hi / scale
    return torch.clamp(torch.round(v * (1 / scale) + offset), -128, 127).to(torch.int8)


def torch_symmetric(x):
    v = x.to(torch.float32)
    return torch.clamp(torch.round(v * (127 / v.abs().amax(1, keepdim=True))), -128, 127).to(torch.int8)


def torch_blocks(x):
    return torch_symmetric(x.reshape(-1, 128)).reshape(x.shape)


def torch_anti_quant(x, scale, offset):
    return (x.to(torch.float32) + offset) * scale


def torch_dequant(x, weight_scale, activation_scale):
    return (x.to(torch.float32) * weight_scale * activation_scale[:, None]).to(torch.float16)


def torch_requant(x, scale, offset):
    q = torch.clamp(torch.round(x.to(torch.float32) * scale), -256, 255)
    return torch.clamp(q + offset, -128, 127).to(torch.int8)


def cases(generator, rows, columns):
    """Of each operator: the name of the bench's case; npuquant's function with its arguments, of which the package
    and its PyTorch layer have the same; NumPy's and PyTorch's functions with theirs."""
    x = generator.uniform(-6, 6, (rows, columns)).astype(np.float32)
    half = x.astype(np.float16)
    zero = np.full(1, 3, np.float32)
    scale, divisor = np.full(1, 20.3, np.float32), np.full(1, 0.0493, np.float32)
    yield ("quantize/mul/uniform/f32-i8", "npu_quantize", (x, scale, zero, "int8", -1, False), {},
           numpy_multiplied, torch_multiplied, (x, scale, zero))
    yield ("quantize/div/uniform/f32-i8", "npu_quantize", (x, divisor, zero.astype(np.int32), "int8"), {},
           numpy_divided, torch_divided, (x, divisor, zero))
    yield ("dynamic_quant_asymmetric/token/plain/f16-i8", "npu_dynamic_quant_asymmetric", (half,), {},
           numpy_asymmetric, torch_asymmetric, (half,))
    yield "dynamic_quant/token/plain/f16-i8", "npu_dynamic_quant", (half,), {}, numpy_symmetric, torch_symmetric, (half,)

    yield ("dynamic_block_quant/block128/plain/f16-i8", "npu_dynamic_block_quant", (half,), {}, numpy_blocks,
           torch_blocks, (half,))

    weights = generator.integers(-128, 128, (rows, columns), np.int8)
    offset = np.full(columns, 3, np.float32)
    scale = generator.uniform(0.04, 0.06, columns).astype(np.float32)
    yield ("anti_quant/mul/channel/i8-f32", "npu_anti_quant", (weights, scale),
           {"offset": offset, "dst_dtype": "float32"}, numpy_anti_quant, torch_anti_quant, (weights, scale, offset))

    sums = generator.integers(-40_000_000, 40_000_000, (rows, columns), np.int32)
    scale = generator.uniform(8e-5, 1.2e-4, columns).astype(np.float32)
    row_scale = generator.uniform(0.005, 0.015, rows).astype(np.float32)
    yield ("dequant/token/channel/i32-f16", "dequant", (sums, scale, row_scale), {}, numpy_dequant, torch_dequant,
           (sums, scale, row_scale))
    words = npuquant.npu_trans_quant_param(scale / 25, offset, 1)
    short = words.astype(np.uint32).view(np.float32)
    yield ("requant/mul/channel/i32-i8", "requant", (sums, words), {}, numpy_requant, torch_requant,
           (sums, short, offset))


def pairs(generator, rows, columns):
    """Of each case and way: npuquant's call and the other's."""

    def tensor(value):
        return torch.from_numpy(value) if isinstance(value, np.ndarray) else value

    for name, function, given, keywords, in_numpy, in_torch, others in cases(generator, rows, columns):
        def ours(module, given, keywords, function=function):
            return lambda: getattr(module, function)(*given, **keywords)

        yield name, "NumPy", ours(npuquant, given, keywords), lambda f=in_numpy, a=others: f(*a)
        if torch:
            tensors = [tensor(value) for value in others]
            keywords = {key: tensor(value) for key, value in keywords.items()}
            yield (name, "PyTorch", ours(npuquant.torch, [tensor(value) for value in given], keywords),
                   lambda f=in_torch, a=tensors: f(*a))


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
