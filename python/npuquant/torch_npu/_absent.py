# SPDX-License-Identifier: BSD-3-Clause
"""What is said of a name that the stand-in does not have."""
from __future__ import annotations

from typing import Any, Callable


class Absent(NotImplementedError, AttributeError):
    """The stand-in does not have it. AttributeError too, so that hasattr() says no."""


def absent_from(module: str) -> Callable[[str], Any]:
    """The __getattr__ of a module that stands in for one."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise Absent(f"{module}.{name} is not in npuquant's stand-in for torch_npu, which has the quantisation "
                     "operators and what scripts need around them (docs/torch.md lists it)")

    return get
