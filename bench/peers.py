#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The same work in NumPy and PyTorch, as one writes it there today: timed in turns with the library; how many times as
fast the library is, and how many elements differ. It takes about two minutes.

usage: bench/peers.py build/src/libnpuquant.so [--json FILE] [--rounds N]
"""
import argparse
import ctypes
import json
import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

DTYPES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "int64": 9}
PER_TOKEN, SCALE_PRODUCT, ROUND_NEAREST = 0, 0, 1


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("ndim", ctypes.c_int32),
                ("shape", ctypes.c_int64 * 8), ("strides", ctypes.c_int64 * 8)]


def view(array):
    tensor = Tensor(array.ctypes.data, DTYPES[array.dtype.name], array.ndim)
    for d in range(array.ndim):
        tensor.shape[d] = array.shape[d]
        tensor.strides[d] = array.strides[d] // array.itemsize
    return tensor


def check(status):
    if status != 0:
        raise SystemExit(f"npuquant: status {status}")


def bind(library, name, *arguments):
    """Views of the arrays among the arguments, and the call. The caller keeps the arrays themselves alive."""
    views = [view(a) if isinstance(a, np.ndarray) else a for a in arguments]
    passed = [ctypes.byref(v) if isinstance(v, Tensor) else v for v in views]
    function = getattr(library, name)
    return views, lambda: check(function(*passed))


def numpy_mul(x, scale, zero):
    return lambda: np.clip(np.rint(x * scale + zero), -128, 127).astype(np.int8)


def numpy_dynamic(x):
    def run():
        v = x.astype(np.float32)
        hi = v.max(axis=1, keepdims=True)
        lo = v.min(axis=1, keepdims=True)
        scale = np.maximum((hi - lo) / np.float32(255), np.float32(1e-12))
        offset = np.float32(127) - hi / scale
        return np.clip(np.rint(v * (np.float32(1) / scale) + offset), -128, 127).astype(np.int8)

    return run


def numpy_symmetric(x):
    def run():
        v = x.astype(np.float32)
        m = np.abs(v).max(axis=1, keepdims=True)
        return np.clip(np.rint(v * (np.float32(127) / m)), -128, 127).astype(np.int8)

    return run


def numpy_anti_quant(x, scale, offset):
    return lambda: (x.astype(np.float32) + offset) * scale


def numpy_dequant(x, weight_scale, activation_scale):
    return lambda: (x.astype(np.float32) * weight_scale * activation_scale[:, None]).astype(np.float16)


def numpy_requant(x, scale, offset):
    def run():
        q = np.clip(np.rint(x.astype(np.float32) * scale), -256, 255)
        return np.clip(q + offset, -128, 127).astype(np.int8)

    return run


def torch_quantize(x, scale, zero):
    t, s, z = torch.from_numpy(x), float(scale[0]), int(zero[0])
    return lambda: torch.quantize_per_tensor(t, s, z, torch.qint8).int_repr().numpy()


def torch_mul(x, scale, zero):
    t, s, z = torch.from_numpy(x), torch.from_numpy(scale), torch.from_numpy(zero)
    return lambda: torch.clamp(torch.round(t * s + z), -128, 127).to(torch.int8).numpy()


def torch_dynamic(x):
    t = torch.from_numpy(x)

    def run():
        v = t.to(torch.float32)
        hi = v.amax(1, keepdim=True)
        lo = v.amin(1, keepdim=True)
        scale = torch.clamp((hi - lo) / 255, min=1e-12)
        offset = 127 - hi / scale
        return torch.clamp(torch.round(v * (1 / scale) + offset), -128, 127).to(torch.int8).numpy()

    return run


def torch_symmetric(x):
    t = torch.from_numpy(x)

    def run():
        v = t.to(torch.float32)
        m = v.abs().amax(1, keepdim=True)
        return torch.clamp(torch.round(v * (127 / m)), -128, 127).to(torch.int8).numpy()

    return run


def torch_dequantize(x, scale, offset):
    """Of a tensor that is quantised by channel; our offset is added, its zero point is taken off."""
    scales, zeros = torch.from_numpy(scale.astype(np.float64)), torch.from_numpy(-offset.astype(np.int64))
    t = torch._make_per_channel_quantized_tensor(torch.from_numpy(x), scales, zeros, 1)
    return lambda: t.dequantize().numpy()


def torch_dequant(x, weight_scale, activation_scale):
    t, w, a = (torch.from_numpy(array) for array in (x, weight_scale, activation_scale[:, None]))
    return lambda: (t.to(torch.float32) * w * a).to(torch.float16).numpy()


def torch_requant(x, scale, offset):
    t, s, o = (torch.from_numpy(array) for array in (x, scale, offset))

    def run():
        q = torch.clamp(torch.round(t.to(torch.float32) * s), -256, 255)
        return torch.clamp(q + o, -128, 127).to(torch.int8).numpy()

    return run


def others(numpy_run, torch_name, torch_run):
    """Who does the same; torch_run makes the function, as it needs torch."""
    runs = {"NumPy": numpy_run} if numpy_run else {}
    if torch:
        runs[f"PyTorch, {torch_name}"] = torch_run()
    return runs


def quantising_cases(library, random, rows):
    x = random.uniform(-6, 6, (rows, 4096)).astype(np.float32)
    y = np.empty(x.shape, np.int8)
    zero = np.full(1, 3, np.float32)
    scale = np.full(1, 20.3, np.float32)
    yield (f"quantize/mul/uniform/f32-i8/{rows}x4096",
           bind(library, "npuq_quantize", x, scale, zero, -1, ctypes.c_bool(False), y, None), y,
           others(numpy_mul(x, scale, zero), "operations", lambda: torch_mul(x, scale, zero)))
    small, whole = np.full(1, 0.0493, np.float32), np.full(1, 3, np.int32)
    yield (f"quantize/div/uniform/f32-i8/{rows}x4096",
           bind(library, "npuq_quantize", x, small, whole, -1, ctypes.c_bool(True), y, None), y,
           others(None, "quantize_per_tensor", lambda: torch_quantize(x, small, whole)))
    half = x.astype(np.float16)
    scales, offsets = np.empty(rows, np.float32), np.empty(rows, np.float32)
    yield (f"dynamic/token/plain/f16-i8/{rows}x4096",
           bind(library, "npuq_dynamic_quant_asymmetric", half, None, None, PER_TOKEN, y, scales, offsets, None), y,
           others(numpy_dynamic(half), "operations", lambda: torch_dynamic(half)))
    yield (f"dynamic_quant/token/plain/f16-i8/{rows}x4096",
           bind(library, "npuq_dynamic_quant", half, None, None, PER_TOKEN, SCALE_PRODUCT, y, scales, None), y,
           others(numpy_symmetric(half), "operations", lambda: torch_symmetric(half)))


def dequantising_cases(library, random, rows):
    weights = random.integers(-128, 128, (rows, 4096), np.int8)
    offset = np.full(4096, 3, np.float32)
    scale = random.uniform(0.04, 0.06, 4096).astype(np.float32)
    y = np.empty(weights.shape, np.float32)
    yield (f"anti_quant/mul/channel/i8-f32/{rows}x4096",
           bind(library, "npuq_anti_quant", weights, scale, offset, y, None), y,
           others(numpy_anti_quant(weights, scale, offset), "dequantize by channel",
                  lambda: torch_dequantize(weights, scale, offset)))
    sums = random.integers(-40_000_000, 40_000_000, (rows, 4096), np.int32)
    weight_scale = random.uniform(8e-5, 1.2e-4, 4096).astype(np.float32)
    activation_scale = random.uniform(0.005, 0.015, rows).astype(np.float32)
    half = np.empty(sums.shape, np.float16)
    yield (f"dequant/token/channel/i32-f16/{rows}x4096",
           bind(library, "npuq_dequant", sums, weight_scale, activation_scale, None, half, None), half,
           others(numpy_dequant(sums, weight_scale, activation_scale), "operations",
                  lambda: torch_dequant(sums, weight_scale, activation_scale)))
    words, back = np.empty(4096, np.int64), np.empty(sums.shape, np.int8)
    small = weight_scale / 25
    bind(library, "npuq_trans_quant_param", small, offset, ROUND_NEAREST, words)[1]()
    short = words.astype(np.uint32).view(np.float32)
    yield (f"requant/mul/channel/i32-i8/{rows}x4096",
           bind(library, "npuq_requant", sums, words, None, back, None), back,
           others(numpy_requant(sums, short, offset), "operations", lambda: torch_requant(sums, short, offset)))


def cases(library):
    random = np.random.default_rng(1)
    for rows in (1, 512, 4096):
        yield from quantising_cases(library, random, rows)
        yield from dequantising_cases(library, random, rows)


def sample(run):
    """Nanoseconds for one call, over about 2 ms."""
    start = time.perf_counter_ns()
    run()
    once = time.perf_counter_ns() - start
    repeats = max(1, int(2e6 / max(once, 1)))
    start = time.perf_counter_ns()
    for _ in range(repeats):
        run()
    return (time.perf_counter_ns() - start) / repeats


def main():
    parser = argparse.ArgumentParser(description="Times npuquant in turns with NumPy and, if it is there, PyTorch.")
    parser.add_argument("library", help="the shared library: build/src/libnpuquant.so")
    parser.add_argument("--json", metavar="FILE", help="write the results to FILE, too")
    parser.add_argument("--rounds", type=int, default=9, help="how many times each takes its turn (default 9)")
    arguments = parser.parse_args()
    library = ctypes.CDLL(os.path.abspath(arguments.library))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    rows = []
    for name, (_views, ours), y, runs in cases(library):
        ours()
        expected = y.copy()
        times = {"": []}
        for _ in range(arguments.rounds):
            times[""].append(sample(ours))
            for who, run in runs.items():
                times.setdefault(who, []).append(sample(run))
        for who, run in runs.items():
            row = {"case": name, "who": who, "ours_ns": statistics.median(times[""]),
                   "ns": statistics.median(times[who]), "elements": y.size,
                   "differing": int(np.count_nonzero(run().reshape(y.shape) != expected))}
            rows.append(row)
            print(f"{name:42} {row['ours_ns'] / 1e3:10.1f} us  {who:30} {row['ns'] / 1e3:10.1f} us  "
                  f"npuquant is {row['ns'] / row['ours_ns']:6.1f} times as fast  {row['differing']} differ")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"numpy": np.__version__, "torch": torch.__version__ if torch else None, "rows": rows}, file,
                      indent=1)


if __name__ == "__main__":
    main()
