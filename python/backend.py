# SPDX-License-Identifier: BSD-3-Clause
"""Builds the package for `pip install ./python`: meson-python, told of the folder above, where the library is."""
import os
import pathlib

try:
    import mesonpy
except ModuleNotFoundError as error:
    raise SystemExit(f"npuquant: {error.name} is missing, which builds the package (Debian: python3-mesonpy)")


def __getattr__(name):
    return getattr(mesonpy, name)


os.chdir(pathlib.Path(__file__).resolve().parents[1])
