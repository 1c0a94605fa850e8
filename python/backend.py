# SPDX-License-Identifier: BSD-3-Clause
"""Builds the package for `pip install ./python`: meson-python, told of the folder above, where the library is."""
import os
import pathlib

try:
    from mesonpy import *
except ModuleNotFoundError as error:
    raise SystemExit(f"npuquant: {error.name} is missing, which builds the package (Debian: python3-mesonpy)")

os.chdir(pathlib.Path(__file__).resolve().parents[1])
