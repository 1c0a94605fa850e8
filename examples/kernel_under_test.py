#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A kernel as `npuquant hard-inputs quantize --run` calls it: with the name of the manifest. It reads the inputs that
the manifest names, and writes its result beside them. In place of a kernel this one has NumPy, with one mistake.
"""
import json
import os
import sys

import numpy as np

folder = os.path.dirname(sys.argv[1])
with open(sys.argv[1], encoding="utf-8") as file:
    manifest = json.load(file)


def load(name):
    return np.load(os.path.join(folder, manifest["inputs"][name]["file"]))


x, scales, zero_points = load("x"), load("scales"), load("zero_points")
with np.errstate(all="ignore"):  # there are infinities, NaN and scales of every size
    t = x * (np.float32(1) / scales) + zero_points
y = np.where(np.isnan(t), 0, np.clip(np.rint(t), -128, 127)).astype("i1")
np.save(os.path.join(folder, manifest["outputs"]["y"]["file"]), y)
