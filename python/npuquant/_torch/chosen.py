# SPDX-License-Identifier: BSD-3-Clause
"""What install() and set_scale_form() have chosen."""
from types import SimpleNamespace
from typing import Any

from .._arguments import _expect

#: What operators without values do: raise an error, return zeros, or return values that are not the device's to the bit.
VALUES = ("exact", "zeros", "near")
#: The device's software, as npu_moe_init_routing_v2() of the package names it, and a version of it.
CANN = {"9.0": "9.0.0", "9.2": "9.2.0", "8.5": "8.5.0"}
#: values: one of VALUES. strict: what the device refuses is refused. scale_form: of npu_dynamic_quant(), without one.
#: cann: one of CANN, or None: the one with this scale_form.
chosen = SimpleNamespace(values="exact", strict=False, scale_form="product", cann=None)


def cann() -> str:
    """The device's software that is meant."""
    return chosen.cann or ("8.5" if chosen.scale_form == "inverse" else "9.0")


def expect_strictly(condition: Any, argument: str, text: str) -> None:
    """A rule of the device that the CPU does not need."""
    if chosen.strict:
        _expect(condition, argument, text + "; the device refuses it (strict)")


def by_a_test(name: str) -> str:
    """What a message says of a function that a test can replace."""
    return f'a test can replace it: monkeypatch.setattr("{name}", ...)'
