# SPDX-License-Identifier: BSD-3-Clause
"""What install() has chosen."""
from types import SimpleNamespace
from typing import Any

from .._arguments import _expect

#: values: "exact", or "zeros" for what is not computed. strict: what the device refuses is refused.
chosen = SimpleNamespace(values="exact", strict=False)


def expect_strictly(condition: Any, argument: str, text: str) -> None:
    """A rule of the device that the CPU does not need."""
    if chosen.strict:
        _expect(condition, argument, text + "; the device refuses it (strict)")
