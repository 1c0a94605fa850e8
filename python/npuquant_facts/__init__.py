# SPDX-License-Identifier: BSD-3-Clause
"""What the library's lists say, for the package npuquant and the command. It loads neither NumPy nor the library, so that
a command's help is quick."""
from ._rows import VERSION

__all__ = ["VERSION"]
