# SPDX-License-Identifier: BSD-3-Clause
"""What is said of a name that the stand-in does not have."""
from __future__ import annotations

import types
from typing import Any, Callable


class Absent(NotImplementedError, AttributeError):
    """The stand-in does not have it. AttributeError too, so that hasattr() says no."""


def absent_from(module: str) -> Callable[[str], Any]:
    """The __getattr__ of a module that stands in for one."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise Absent(f"{module}.{name} is not in npuquant's stand-in for torch_npu, which has the quantisation "
                     "operators and what scripts need around them (docs/torch.md lists them)")

    return get


def module(name: str, *contents: Any, **more: Any) -> types.ModuleType:
    """A module that stands in for one, with these classes and functions, and what else is named."""
    made = types.ModuleType(name, "Part of npuquant's stand-in for torch_npu.")
    made.__dict__.update({value.__name__: value for value in contents}, __getattr__=absent_from(name))
    made.__dict__.update({"__path__": [], **more})  # a package, of which nothing else can be imported
    return made
