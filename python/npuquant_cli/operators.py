# SPDX-License-Identifier: BSD-3-Clause
"""What is known of the operators. It is read without NumPy and without the library, so that a command's help is quick."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, NamedTuple, Optional, Sequence, Tuple

from ._facts import OPERATORS as _OPERATORS, OPTIONS as _OPTIONS, RULES, SHAPES


class Tensor(NamedTuple):
    """A tensor argument."""

    name: str  # in the library
    npu_name: str  # in torch_npu
    use: str  # "data": the tensor that the operator is for; "input", "optional" or "output"
    role: str  # in a diagnosis
    types: Tuple[str, ...]
    shape: str  # the name of a rule, see extents()
    least: int  # dimensions
    most: int


class Option(NamedTuple):
    """An argument that is no tensor."""

    name: str
    npu_name: str
    default: Optional[str]  # as a word
    least: float
    most: float
    numbers: Dict[str, int]  # the library's numbers of words; empty if the value is a number


class Operator(NamedTuple):
    """An operator of the library."""

    name: str
    tensors: Tuple[Tensor, ...]
    options: Tuple[Option, ...]
    traits: FrozenSet[str]

    @property
    def inputs(self) -> Tuple[Tensor, ...]:
        return tuple(tensor for tensor in self.tensors if tensor.use != "output")

    @property
    def results(self) -> Tuple[Tensor, ...]:
        return tuple(tensor for tensor in self.tensors if tensor.use == "output")


def _tensor(name: str, npu_name: str, use: str, role: str, types: Sequence[str], *rest: Any) -> Tensor:
    return Tensor(name, npu_name, use, role, tuple(map(str.lower, types)), *rest)


OPTIONS = {name: Option(name, npu_name, default or None, least, most,
                         dict(words) if name != "rule" else {rule: number for number, rule in enumerate(RULES, 1)})
           for name, (npu_name, default, least, most, words) in _OPTIONS.items()}
OPERATORS = {name: Operator(name, tuple(_tensor(*row) for row in tensors), tuple(OPTIONS[each] for each in options),
                            frozenset(traits))
             for name, (tensors, options, traits) in _OPERATORS.items()}


def extents(shape: str, x: Sequence[Any], groups: Sequence[Any] = (), per_tensor: bool = False, block: Any = 1,
            axis: int = -1) -> Tuple[Any, ...]:
    """The shape of a tensor in values, by the name of its rule. x has the shape of the data in values, as integers or
    as symbols of a compiler. groups holds the number of groups of rows, if there are any."""
    if shape == "OF_ROWS" and per_tensor:
        return (1,)
    first, last = SHAPES[shape]
    firsts = {"ROWS": x[:-1], "GROUPS": groups, "NONE": ()}[first]
    if last == "BLOCKS":
        return (*firsts, -(-x[-1] // block))
    return (*firsts, *{"COLUMNS": x[-1:], "AXIS": x[axis:][:1], "ONE": (1,), "NONE": ()}[last])
