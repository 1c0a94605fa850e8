# SPDX-License-Identifier: BSD-3-Clause
"""What a command line may not say, before any file is read."""
from __future__ import annotations

import argparse
import math
from typing import Any, Mapping, Sequence

from npuquant_facts.dtypes import TYPES, WORDS
from npuquant_facts.operators import OPERATORS

from .errors import CommandError

MOST_VALUES = 2**20  # of hard inputs
MOST_ELEMENTS = 64  # that --at names


def check_compared(mode: str, command: str, given: Mapping[str, Any]) -> None:
    """An option of comparisons without a file to compare with: the status would look like an answer."""
    compared = command == "compare" or given.keys() & {"expect", "expect-scale", "expect-offset"}
    if mode == "diagnose" and not compared:
        raise CommandError("no --expect given; see --help")
    if mode == "hard-inputs" and "json" in given and "run" not in given:
        raise CommandError("--json: nothing is diagnosed; expected --run, too")
    for name in ("max-diff", "max-ulp", "max-diffs", "layout"):
        if name in given and not compared:
            raise CommandError(f"--{name}: nothing is compared; expected --expect, too")


def check(arguments: argparse.Namespace, required: Sequence[str]) -> None:
    """Checks what goes together. `required`: the names of the inputs that the operator needs."""
    operator = OPERATORS.get(arguments.command.replace("-", "_"))
    if arguments.div_mode is not None:
        check_quantize(arguments)
    if operator and len({TYPES[name].is_float_of_any_size for name in operator.results[0].types}) == 2:
        check_tolerance(arguments, arguments.dtype)  # it has both tolerances
    if arguments.command == "quant-matmul":
        check_quant_matmul(arguments)
    if arguments.admissible:
        check_admissible(arguments)
    if arguments.mode == "hard-inputs":
        check_hard_inputs(arguments, required)
    if len(arguments.at) > MOST_ELEMENTS:
        raise CommandError(f"--at: is given more than {MOST_ELEMENTS} times")
    check_stdin(arguments)
    for name in sorted(arguments.bf16 - arguments.files.keys()):
        raise CommandError(f"--bf16 {name}: no --{name} given")


def check_quantize(arguments: argparse.Namespace) -> None:
    """The library says the same of y, which is no option's name."""
    dtype = arguments.dtype
    if arguments.div_mode and dtype == "quint4x2":
        raise CommandError("--dtype: quint4x2 (int4) needs --div-mode false; expected another type without")
    if not arguments.div_mode and dtype in ("uint8", "int32"):
        raise CommandError(f"--dtype: {dtype} needs --div-mode true; expected another type without")


def check_tolerance(arguments: argparse.Namespace, dtype: str) -> None:
    """Whether the tolerances suit a result of the type."""
    is_float = TYPES[dtype].is_float_of_any_size
    wrong, right = ("max-diff", "max-ulp") if is_float else ("max-ulp", "max-diff")
    given = {"max-diff": arguments.max_diff, "max-ulp": arguments.max_ulp}
    if dtype in WORDS and any(given.values()):
        raise CommandError(f"--max-diff, --max-ulp: do not apply to {dtype}: words are compared as bits")
    if given[wrong]:
        raise CommandError(f"--{wrong}: does not apply to a result of type {dtype}; expected --{right}")


def check_quant_matmul(arguments: argparse.Namespace) -> None:
    """What npu_quant_matmul does with the sums needs some inputs, and takes no others."""
    dtype = arguments.dtype
    if dtype == "int32" and arguments.mode:
        raise CommandError("--dtype: int32 results are the sums of products themselves, with no steps behind them; "
                           "expected another type")
    for name in ("scale", "offset", "pertoken-scale"):
        if dtype == "int32" and name in arguments.inputs:
            raise CommandError(f"--{name}: is not applied to the sums, which are the result with --dtype int32; "
                               "expected none")
    if dtype != "int32" and "scale" not in arguments.inputs:
        raise CommandError("no --scale given; only --dtype int32 needs none")
    if dtype == "int8" and "pertoken-scale" in arguments.inputs:
        raise CommandError("--pertoken-scale: cannot be applied with --dtype int8; expected --dtype float16, bfloat16 "
                           "or float32")
    if dtype != "int8" and "offset" in arguments.inputs:
        raise CommandError(f"--offset: cannot be applied with --dtype {dtype}; expected --dtype int8")
    check_tolerance(arguments, dtype)


def divides(arguments: argparse.Namespace) -> bool:
    """Whether the device's vector unit divides in this operator."""
    operator = OPERATORS.get(arguments.command.replace("-", "_"))
    return bool(operator and (arguments.div_mode or "SYMMETRIC" in operator.traits)
                and arguments.rule != "grouped_swiglu")


def check_admissible(arguments: argparse.Namespace) -> None:
    command = arguments.command
    if not divides(arguments):
        name = command + " --div-mode false" * (arguments.div_mode is False)
        name += f" --rule {arguments.rule}" * (arguments.rule is not None)
        raise CommandError(f"--admissible: {name} has no division on the device's vector unit: every bit must be equal")
    if not arguments.expect:
        raise CommandError("--admissible: nothing is compared; expected --expect FILE")
    if arguments.max_diff or arguments.max_ulp:
        raise CommandError("--admissible: given with --max-diff or --max-ulp; expected one of them")


def check_hard_inputs(arguments: argparse.Namespace, required: Sequence[str]) -> None:
    shape = arguments.shape
    for name in required:
        if name in arguments.without:
            raise CommandError(f"--without: {name} is required")
    if math.prod(shape) > MOST_VALUES:
        raise CommandError(f"--shape: has more values than {MOST_VALUES}; expected fewer")
    given = (arguments.type.get("x"), arguments.dtype)
    elements = max((TYPES[name].elements for name in given if name in TYPES), default=1)
    if shape[-1] % elements != 0:
        raise CommandError(f"--shape: dimension {len(shape) - 1} is {shape[-1]}; expected a multiple of {elements}, "
                           "as words hold eight int4")


def check_stdin(arguments: argparse.Namespace) -> None:
    """A stream is read once, from its beginning to its end."""
    readers = [name for name, path in arguments.files.items() if path == "-" or path.startswith("-:")]
    if len(readers) > 1:
        raise CommandError(f"stdin (-): is named for {readers[0]} and for {readers[1]}; expected one of them")
