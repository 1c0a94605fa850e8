#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The same work in NumPy and PyTorch, as one writes it there today: timed in turns with the library; how many times as
fast the library is, and how many elements differ. It takes about a minute.

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

FLOAT32, FLOAT16, INT8, INT32 = 0, 1, 2, 3
DTYPES = {"float32": FLOAT32, "float16": FLOAT16, "int8": INT8, "int32": INT32}


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


def quantize(library, x, scale, zero, divide, y):
    views = [view(a) for a in (x, scale, zero, y)]
    pointers = [ctypes.byref(v) for v in views]
    return views, lambda: check(library.npuq_quantize(pointers[0], pointers[1], pointers[2], -1,
                                                      ctypes.c_bool(divide), pointers[3], None))


def dynamic(library, x, y, scale, offset):
    views = [view(a) for a in (x, y, scale, offset)]
    p = [ctypes.byref(v) for v in views]
    return views, lambda: check(library.npuq_dynamic_quant_asymmetric(p[0], None, None, 0, p[1], p[2], p[3], None))


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


def cases(library):
    random = np.random.default_rng(1)
    for rows in (1, 512, 4096):
        x = random.uniform(-6, 6, (rows, 4096)).astype(np.float32)
        y = np.empty(x.shape, np.int8)
        zero = np.full(1, 3, np.float32)
        scale = np.full(1, 20.3, np.float32)
        others = {"NumPy": numpy_mul(x, scale, zero)}
        if torch:
            others["PyTorch, operations"] = torch_mul(x, scale, zero)
        yield f"quantize/mul/uniform/f32-i8/{rows}x4096", quantize(library, x, scale, zero, False, y), y, others
        if torch:
            small, whole = np.full(1, 0.0493, np.float32), np.full(1, 3, np.int32)
            yield (f"quantize/div/uniform/f32-i8/{rows}x4096", quantize(library, x, small, whole, True, y), y,
                   {"PyTorch, quantize_per_tensor": torch_quantize(x, small, whole)})
        half = x.astype(np.float16)
        outputs = np.empty(rows, np.float32), np.empty(rows, np.float32)
        others = {"NumPy": numpy_dynamic(half)}
        if torch:
            others["PyTorch, operations"] = torch_dynamic(half)
        yield f"dynamic/token/plain/f16-i8/{rows}x4096", dynamic(library, half, y, *outputs), y, others


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
    for name, (_views, ours), y, others in cases(library):
        ours()
        expected = y.copy()
        times = {"": []}
        for _ in range(arguments.rounds):
            times[""].append(sample(ours))
            for who, run in others.items():
                times.setdefault(who, []).append(sample(run))
        for who, run in others.items():
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
