# SPDX-License-Identifier: BSD-3-Clause
"""How PyTorch gets to know operators, as torch.ops.npuquant."""
from __future__ import annotations

import re
from typing import Any, Callable, Dict, Sequence

import torch

from .._arguments import ArgumentTypeError, listed

__tracebackhide__ = True  # pytest shows the line that calls the package

LIBRARY = torch.library.Library("npuquant", "DEF")


def register(schema: str, kernel: Callable[..., Any], shapes: Callable[..., Any]) -> None:
    """Registers an operator, or an overload of one, with what computes its results, and what makes them without values.
    """
    name = schema.partition("(")[0]
    LIBRARY.define(schema)
    # On every device and in every layout: what it cannot read is refused by the argument's name.
    LIBRARY.impl(name, kernel, "CompositeExplicitAutograd")
    LIBRARY.impl(name, shapes, "Meta")
    # No gradient is defined, and none is missing: without this PyTorch 2 warns of it, and PyTorch 1 has no kernel for
    # tensors on the device "meta" whose gradient could be wanted.
    if hasattr(torch.library, "fallthrough_kernel"):
        LIBRARY.impl(name, torch.library.fallthrough_kernel, "Autograd")
    else:
        LIBRARY.impl(name, shapes, "AutogradMeta")


def refuse_none(tensors: Sequence[str], values: Sequence[Any]) -> None:
    """PyTorch lets None pass for every tensor."""
    for name, value in zip(tensors, values):
        if value is None:
            raise ArgumentTypeError(f"{name}: is None; expected a tensor")


def renamed(keywords: Dict[str, Any], former: str, name: str) -> Dict[str, Any]:
    if former in keywords and name not in keywords:
        keywords[name] = keywords.pop(former)
    return keywords


#: What PyTorch says, in many lines, of arguments that do not fit the schema; for each overload once.
_WRONG = re.compile(
    r"Expected a value of type '(.+?)' for argument '(.+?)' but instead found type '(.+?)'\.\s+Position: (\d+)")
_MISSING = re.compile("missing value for argument '(.+?)'")


class Operator(type(torch.ops.aten.add)):  # type: ignore[misc]
    """An operator that refuses arguments of another type than the schema's, and missing ones, in one line."""

    def __call__(*args: Any, **keywords: Any) -> Any:
        try:
            return args[0].op(*args[1:], **keywords)
        except RuntimeError as error:
            wrong, missing = _WRONG.findall(str(error)), _MISSING.findall(str(error))
            if not wrong and not missing:
                raise
        if wrong:
            last = max(wrong, key=lambda one: int(one[-1]))[-1]  # the overload that fits most arguments
            expected, arguments, types, _ = map(listed, zip(*(one for one in wrong if one[-1] == last)))
            refusal = ArgumentTypeError(f"{arguments}: is of the type {types}; expected {expected}")
        else:
            refusal = ArgumentTypeError(f"{listed(missing)}: is missing")
        refusal.set_operator(args[0].__name__)
        raise refusal


class OperatorOnSelf(Operator):
    """An operator that takes its first argument as self, the schema's name, and as input, the documentation's.

    In PyTorch 1 operators take neither name.
    """

    def __call__(*args: Any, **keywords: Any) -> Any:
        return Operator.__call__(*args, **renamed(keywords, "input", "self"))


def operator_of(schema: str) -> Any:
    """The operator that is registered with a schema, as one of these classes."""
    packet = getattr(torch.ops.npuquant, re.split(r"\W", schema)[0])
    packet.__class__ = OperatorOnSelf if re.search(r" self\b", schema) else Operator
    return packet
