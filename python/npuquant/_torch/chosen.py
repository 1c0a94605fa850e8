# SPDX-License-Identifier: BSD-3-Clause
"""What install() and set_scale_form() have chosen."""
from types import SimpleNamespace
from typing import Any

from .._arguments import _expect

#: What operators without values do: raise an error, return zeros, or return values that are not the device's to the bit.
VALUES = ("exact", "zeros", "near")
#: values: one of VALUES. strict: what the device refuses is refused. scale_form: of npu_dynamic_quant(), without one.
chosen = SimpleNamespace(values="exact", strict=False, scale_form="product")


def expect_strictly(condition: Any, argument: str, text: str) -> None:
    """A rule of the device that the CPU does not need."""
    if chosen.strict:
        _expect(condition, argument, text + "; the device refuses it (strict)")


def by_a_test(name: str) -> str:
    """What a message says of a function that a test can replace."""
    return f'a test can replace it: monkeypatch.setattr("{name}", ...)'
