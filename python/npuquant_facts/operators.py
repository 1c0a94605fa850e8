# SPDX-License-Identifier: BSD-3-Clause
"""The operators: the rows of operators.def, and what follows from them."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, NamedTuple, Optional, Sequence, Tuple

from .dtypes import TYPES
from ._rows import (OPERATORS as _OPERATORS, OPTIONS as _OPTIONS, RULES, SHAPES, TYPE_NAMES)


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
    inputs: Tuple[Tensor, ...]
    results: Tuple[Tensor, ...]
    options: Tuple[Option, ...]
    traits: FrozenSet[str]  # what follows from the others, see _operator()


#: The types, in the order in which messages and helps name those of a result: the usual ones first.
_TYPES = list(dict.fromkeys(("int8", "float16", "bfloat16", "float32", *TYPES)))


def _operator(name: str, rows: Sequence[Sequence[Any]], options: Sequence[str]) -> Operator:
    tensors = [Tensor._make(row)._replace(types=tuple(sorted((TYPE_NAMES[each] for each in row[4]), key=_TYPES.index)))
               for row in rows]
    options = [option.lower() for option in options]
    x, *inputs = (tensor for tensor in tensors if tensor.use != "output")
    results = {tensor.name: tensor for tensor in tensors if tensor.use == "output"}
    traits = {
        "READS_SUMS": "int32" in x.types,  # of products
        "READS_NARROW": "int8" in x.types,  # integers, such as stored weights
        "READS_CODES": TYPES[x.types[0]].has_codes,
        "READS_WORDS": any("uint64" in tensor.types for tensor in inputs),
        "MAKES_WORDS": "uint64" in results["y"].types,
        "FINDS_SCALES": "scale" in results,  # from the data
        "SYMMETRIC": "scale" in results and "offset" not in results,
        "ASYMMETRIC": "offset" in results,  # finds offsets, too
        "BY_BLOCK": "block" in options,
        "BY_RULE": "rule" in options,
        "MICROSCALES": "mxscale" in results,  # powers of two, in groups along an axis
    }
    if traits["READS_CODES"]:  # the way back has the structure of the way there, and reads the block alone
        options = [option for option in options if option in ("axis", "block_size")]
    return Operator(name, (x, *inputs), tuple(results.values()), tuple(OPTIONS[option] for option in options),
                    frozenset(trait for trait in traits if traits[trait]))


OPTIONS = {name: Option(name, npu_name, default or None, least, most,
                         dict(words) if name != "rule" else {rule: number for number, rule in enumerate(RULES, 1)})
           for name, (npu_name, default, least, most, words) in _OPTIONS.items()}
OPERATORS = {name: _operator(name, *row) for name, row in _OPERATORS.items()}
_READ = {name for operator in OPERATORS.values() for tensor in operator.inputs for name in tensor.types}
_TAKEN = {name for operator in OPERATORS.values() for tensor in (*operator.inputs, *operator.results)
          for name in tensor.types}
#: The types that some operator takes or makes.
TAKEN = {name: kind for name, kind in TYPES.items() if name in _TAKEN}
#: Those that some operator with a diagnosis takes, and whose arrays have a type of their own.
READ = {name: kind for name, kind in TAKEN.items() if name in _READ and not kind.has_codes}


def extents(shape: str, x: Sequence[Any], groups: Sequence[Any] = (), per_tensor: bool = False, block: Any = 1,
            axis: int = -1, row_block: Any = 1) -> Tuple[Any, ...]:
    """The shape of a tensor in values, by the name of its rule. x has the shape of the data in values, as integers or
    as symbols of a compiler. groups holds the number of groups of rows, if there are any."""
    if shape == "OF_ROWS" and per_tensor:
        return (1,)
    first, last = SHAPES[shape]
    firsts = x[:-1] if first == "ROWS" else groups if first == "GROUPS" else ()
    if first == "PAIRS":
        firsts = [-(-n // (2 * block)) if d == axis % len(x) else n for d, n in enumerate(x)]
    if first == "ROW_BLOCKS":
        firsts = (*x[:-2], *[-(-rows // row_block) for rows in x[-2:-1]])
    if last == "NONE":
        return tuple(firsts)  # NumPy is slow with PyTorch's shapes
    if last == "BLOCKS":
        return (*firsts, *[-(-columns // block) for columns in x[-1:]])
    return (*firsts, *{"COLUMNS": x[-1:], "AXIS": x[axis:][:1], "ONE": (1,), "PAIR": (2,)}[last])
