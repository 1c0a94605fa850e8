# SPDX-License-Identifier: BSD-3-Clause
"""npuquant info: what a report of a bug begins with."""
from __future__ import annotations

import os
import platform
import struct
import sys
from typing import Iterator

import numpy as np

import npuquant
from npuquant import _library, _native


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _backends() -> Iterator[str]:
    available = npuquant.available_backends()
    for _, name in _library._backends():
        state = "active" if name == npuquant.backend() else "available" if name in available else "not available"
        yield f"{name} ({state})"


def lines() -> Iterator[str]:
    said = _native.info()
    tuning = said["tuning"]
    streams = tuning["read_streams"]
    yield f"npuquant {npuquant.__version__}, library {npuquant.version()}"
    yield f"backends: {', '.join(_backends())}"
    yield f"tuning: values for {tuning['name']}"
    yield (f"  from memory (more than {tuning['cached_bytes'] >> 20} MiB): prefetch {tuning['prefetch_bytes']} bytes "
           f"ahead, read from {streams} place{'s' * (streams != 1)} at once"
           + ", rows read twice into the second-level cache" * tuning["rows_to_l2"])
    if tuning["near_prefetch_bytes"] > 0:
        yield (f"  from the caches (more than {tuning['near_bytes'] >> 20} MiB): prefetch float32 "
               f"{tuning['near_prefetch_bytes']} bytes ahead")
    yield f"CPU features: {said['features'].strip()}"
    yield f"processors: {processors()}"
    yield f"system: {platform.system()} {platform.machine()}, {sys.byteorder}-endian, {8 * struct.calcsize('P')}-bit"
    yield f"compiler: {said['compiler']}"
    yield f"Python {platform.python_version()}, NumPy {np.__version__}"
