# SPDX-License-Identifier: BSD-3-Clause
"""What the command does with files: an operator and the uses of its results, and the comparison of two dumps."""
from __future__ import annotations

import argparse
import contextlib
import dataclasses
import inspect
import json
import sys
import threading
import time
from math import prod
from typing import Any, Callable, Dict, Iterator, List, Mapping, TextIO

import numpy as np

import npuquant
from npuquant import _library, _native
from npuquant._causes import conventions, diagnosis, reports
from npuquant_facts.dtypes import TYPES, WORDS

from . import checks, compare, files, info, options
from .errors import CommandError, print_text
from .files import File, Tensor

#: The results of the operators, in their order.
RESULTS = tuple(options.RESULTS)
EQUAL, DIFFERENT = 0, 1  # exit statuses
# With fewer elements, a thread costs more than it saves.
ELEMENTS_PER_THREAD = 32768
#: Inputs of which a file without dimensions is one value.
MAY_BE_ONE = ("scales", "zero-points", "scale", "offset", "weight-scale", "words")


#: What the package's functions call the type of their result.
DTYPES = ("dtype", "dst_dtype", "dst_type", "output_dtype")


def function_of(command: str) -> Callable[..., Any]:
    """The function of the package that a command calls."""
    return diagnosis.function_of(command.replace("-", "_"))


def python_arguments(command: str, values: Mapping[str, Any]) -> Dict[str, Any]:
    """Values by the function's names, in place of the command's. A function may have one type of results, and no out."""
    parameters = inspect.signature(function_of(command)).parameters
    operator = options.operator_of(command)
    names = {"dtype": next((name for name in DTYPES if name in parameters), "dtype")}
    if operator:
        names.update({"x" if tensor.use == "data" else tensor.name: tensor.npu_name for tensor in operator.inputs})
        names.update({option.name: option.npu_name for option in operator.options})
    python_names = {name: names.get(name.replace("-", "_"), name.replace("-", "_")) for name in values}
    return {python_names[name]: value for name, value in values.items() if python_names[name] in parameters}


def settings_of(given: argparse.Namespace, dimensions: int) -> Dict[str, Any]:
    """The settings of the operator by the command's names."""
    names = [row.name for row in options.settings_of(given.command)]
    settings = {name: getattr(given, name.replace("-", "_")) for name in names}
    if settings.get("axis", 0) is None:
        # torch_npu's default is 1 where there is a div_mode. When dividing, a 1-D X has no dimension 1.
        settings["axis"] = -1 if given.div_mode is None else 0 if given.div_mode and dimensions == 1 else 1
    return settings


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Makes one line of what the package refuses."""
    try:
        yield
    except (TypeError, ValueError, IndexError) as error:
        raise CommandError(str(error)) from None


# ---- inputs ----


def _load(given: argparse.Namespace, option: str) -> File:
    """Loads the file of an input or an expected result; bfloat16 if --bf16 names the option."""
    file = files.load(given.files[option])
    if option in given.bf16:
        if file.dtype not in ("bfloat16", "float32"):
            raise CommandError(f"{file.path}: holds {file.type}; --bf16 {option} is for u2, i2, V2 and f4")
        files.convert(file, "bfloat16")
        file.is_bfloat16 = True
    return file


def _bits_hint(option: str, file: File) -> str:
    """The hint about 16 bits of which nothing says that they are bfloat16."""
    is_unnamed = file.dtype == "bfloat16" and not file.is_bfloat16
    return f"; if its 16 bits are bfloat16, say --bf16 {option}" if is_unnamed else ""


def _load_input(given: argparse.Namespace, option: str) -> File:
    file = _load(given, option)
    hint = _bits_hint(option, file)
    if hint:
        raise CommandError(f"{file.path}: holds {file.type}{hint}")
    return file


def _is_vector(given: argparse.Namespace, option: str) -> bool:
    """Whether the operator takes only a vector, so that extents of 1 mean nothing."""
    if option in ("scales", "zero-points"):
        return bool(given.div_mode)
    return option == "weight-scale" or (option == "smooth-scales" and "group-index" not in given.inputs)


def _interpret(given: argparse.Namespace, option: str, tensor: Tensor, inputs: Dict[str, File]) -> None:
    """Adds what a file cannot say: np.save() writes a number without dimensions, and int4 as words."""
    array = tensor.array
    operator = options.operator_of(given.command)
    known = {each.name: each for each in operator.inputs} if operator else {}
    if array.ndim == 0 and option in MAY_BE_ONE and not (option in known and known[option].least > 1):
        array = array.reshape(1)
    shape = array.shape
    if _is_vector(given, option):
        shape = (array.size,)
    if option == "activation-scale" and inputs["x"].array.ndim > 0:
        shape = inputs["x"].array.shape[:-1]
    if files.is_plain(array.shape, shape):
        array = array.reshape(shape)
    if option in known and tensor.dtype == "int32" and "quint4x2" in known[option].types:
        tensor.dtype = "quint4x2"
    tensor.array = array


def load_inputs(given: argparse.Namespace) -> Dict[str, File]:
    inputs: Dict[str, File] = {}
    for option in given.inputs:
        inputs[option] = _load_input(given, option)
        _interpret(given, option, inputs[option], inputs)
    return inputs


# ---- expected results ----


def _is_exact(file: File, dtype: str) -> bool:
    with contextlib.suppress(CommandError):
        files.convert(dataclasses.replace(file), dtype)
        return True
    return False


def _fits(file: File, ours: Tensor, dtype: str) -> bool:
    """Whether a refused file may have the result with another --dtype."""
    shape = _shape_in_values(ours.array, ours.dtype)
    if dtype in (ours.dtype, "int4"):  # int4 is another name
        return False
    kind = TYPES[dtype]
    if kind.has_codes:  # any byte is a code
        return False
    if kind.elements > 1:  # words
        return file.dtype == kind.stored and tuple(shape) == kind.in_values(kind.in_words(shape)) and (
            kind.elements * file.array.size == prod(shape))
    has_values = file.dtype != "bfloat16" or file.is_bfloat16
    return file.array.size == prod(shape) and (file.dtype == dtype or (
        has_values and dtype not in WORDS and _is_exact(file, dtype) and not _is_exact(file, ours.dtype)))


def _hint(given: argparse.Namespace, name: str, ours: Tensor, theirs: File) -> str:
    """The hint about a file that another --dtype would give, or --bf16."""
    choices = next(row.value for row in options.ROWS if row.name == "dtype" and given.command in row.commands)
    for dtype in choices.split("|") if choices and name == "y" else ():
        if _fits(theirs, ours, dtype):
            words = TYPES[dtype].elements > 1
            return (f"; if the file has {'words of eight int4' if words else dtype}, say --dtype {dtype}"
                    + " --div-mode false" * (words and given.div_mode is not None))
    return _bits_hint(options.RESULTS[name][1], theirs)


def _fit(given: argparse.Namespace, call: Call, name: str, ours: Tensor, theirs: File) -> None:
    """Gives an expected result the type and shape of ours."""
    scales, shape = None, theirs.array.shape
    if ours.dtype == "float8_e8m0fnu":
        scales = conventions.Scales.of(call.results[0].array, TYPES[call.dtype].elements, call.arguments)
        if theirs.dtype in ("uint8", "int8") and not given.layout:
            theirs.array = scales.paired(theirs.array.view(np.uint8))
    try:
        files.take(theirs, ours.dtype, ours.array.shape, name, given.layout)
    except CommandError as error:
        hint = scales.hint(theirs.array, theirs.dtype) if scales else _hint(given, name, ours, theirs)
        raise CommandError(f"{error}{hint}") from None
    if scales and not theirs.taken and theirs.array.shape != shape:
        theirs.taken = (f"{theirs.path}: {ours.dtype} {files.show_shape(shape)}, a scale for each group, taken as pairs, "
                        f"{files.show_shape(ours.array.shape)}\n")


# ---- operators ----


def _shape_in_values(array: np.ndarray, dtype: str) -> List[int]:
    return list(TYPES[dtype].in_values(array.shape))


def _token_scales(x1: np.ndarray, x2: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Scales of the product's rows. Dimensions before the last may be left out, or be 1, as those of X1 and X2."""
    if scales.shape[-1:] != x1.shape[-2:-1]:
        return scales  # which the function refuses
    with contextlib.suppress(ValueError):  # the function says what is wrong with x1 and x2
        return np.broadcast_to(scales, (*np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), *scales.shape[-1:]))
    return scales


class Call:
    """A call of an operator, and its results."""

    def __init__(self, given: argparse.Namespace, inputs: Dict[str, File]):
        first = next(iter(inputs.values()))
        settings = settings_of(given, first.array.ndim)
        self.dtype: str = given.dtype
        self.function: Callable[..., Any] = function_of(given.command)
        self.command: str = given.command
        self.arguments = python_arguments(given.command, {
            **{row.name: None for row in options.inputs_of(given.command)},
            **{name: file.array for name, file in inputs.items()}, **settings})
        if "pertoken-scale" in inputs:
            x1, x2, scales = (inputs[name].array for name in ("x1", "x2", "pertoken-scale"))
            self.arguments["pertoken_scale"] = _token_scales(x1, x2, scales)
        if "x2" in inputs and "scale" not in inputs:  # the sums need none, the function does
            self.arguments["scale"] = np.ones(1, np.float32)
        work = first.array.size * (inputs["x2"].array.shape[-1] if "x2" in inputs and inputs["x2"].array.ndim else 1)
        most = given.threads or info.processors()
        operator = options.operator_of(given.command)
        is_small = operator is not None and "MAKES_WORDS" in operator.traits
        self.threads = 1 if is_small else min(most, work // ELEMENTS_PER_THREAD + 1)
        self.seconds = float("inf")
        self.results: List[Tensor] = []

    def run(self, repeat: int = 1) -> None:
        """Computes the results; seconds is the time of the fastest of several runs."""
        out = None
        npuquant.set_num_threads(self.threads)
        for _ in range(repeat):
            started = time.perf_counter()
            with _refusals():
                out = self.function(**self.arguments, **python_arguments(self.command, {"out": out}))
            self.seconds = min(self.seconds, time.perf_counter() - started)
        arrays = out if isinstance(out, tuple) else (out,)
        operator = options.operator_of(self.command)
        types = [self.dtype, *[result.types[0] for result in (operator.results if operator else ())[1:]]]
        self.results = [Tensor(array, dtype) for array, dtype in zip(arrays, types)]
        if self.dtype == "uint64":
            self.results[0].array = self.results[0].array.view(np.uint64)

    def actual(self, expected: Dict[str, File]) -> Any:
        """What is compared, as diagnose() takes it."""
        arrays = tuple(
            expected[name].array.view(ours.array.dtype if self.dtype != "uint64" else np.int64)
            if name in expected else None for name, ours in zip(RESULTS, self.results))
        return arrays if len(arrays) > 1 else arrays[0]


def _summary(given: argparse.Namespace, call: Call, inputs: Dict[str, File]) -> str:
    name, x = next(iter(inputs.items()))
    # Each tensor counts once.
    moved = sum(tensor.array.nbytes for tensor in (*inputs.values(), *call.results))
    rate = f", {moved / call.seconds * 1e-9:.2f} GB/s" if call.seconds > 0 else ""
    return (f"{given.command}: {name} {x.dtype} {files.show_shape(x.array.shape)}, y {call.dtype}, backend "
            f"{npuquant.backend()}, {call.threads} thread{'s' * (call.threads != 1)}, {call.seconds:.6f} s{rate}")


# ---- what the results are for ----


def _comparison(given: argparse.Namespace, ours: Tensor, theirs: Tensor, **details: Any) -> compare.Comparison:
    """With the tolerance for the type."""
    tolerance = given.max_ulp if TYPES[ours.dtype].is_float_of_any_size else given.max_diff
    return compare.Comparison(ours, theirs, tolerance or 0, **details)


def _compare_outputs(given: argparse.Namespace, call: Call, expected: Dict[str, File], stream: TextIO) -> int:
    status = EQUAL
    for name, ours in zip(RESULTS, call.results):
        if name in expected:
            comparison = _comparison(given, ours, expected[name], is_parameter=name != "y")
            if comparison.differ or not given.quiet:
                print_text(expected[name].taken + comparison.report(name, given.max_diffs), stream)
            status = DIFFERENT if comparison.differ else status
    if status == EQUAL or given.max_ulp or given.max_diff or not checks.divides(given):
        return status
    if given.admissible:
        found = npuquant.diagnose(call.actual(expected), call.function, **call.arguments)
        print_text(f"{reports.verdict_text(found._facts)}\n", stream)
        return _status(given, found.verdict)
    for line in diagnosis.admission_lines(call.actual(expected), call.function, **call.arguments):
        print_text(f"{line}\n", stream)
    return status


def _status(given: argparse.Namespace, verdict: str) -> int:
    return EQUAL if verdict == "equal" or (verdict == "admissible" and given.admissible) else DIFFERENT


def _diagnose(given: argparse.Namespace, call: Call, expected: Dict[str, File], stream: TextIO) -> int:
    with _refusals():
        found = npuquant.diagnose(call.actual(expected), call.function, **call.arguments)
    taken = "".join(file.taken for file in expected.values())
    if given.json:
        said = found.to_dict()
        print_text(json.dumps({**said, "taken": taken.splitlines()} if taken else said) + "\n", stream)
    elif found.verdict != "equal" or not given.quiet:
        print_text(f"{taken}{found}\n", stream)
        if given.explain_verdict:
            print_text(f"\n{found.explain_verdict()}\n", stream)
    return _status(given, found.verdict)


def _explain(given: argparse.Namespace, call: Call, stream: TextIO) -> int:
    y = call.results[0]
    shape = _shape_in_values(y.array, y.dtype)
    for place in given.at:
        if len(place) != len(shape):
            raise CommandError(f"--at: has {len(place)} {'index' if len(place) == 1 else 'indices'}; expected "
                               f"{len(shape)}, one for each dimension of the result")
        for dimension, (index, extent) in enumerate(zip(place, shape)):
            if index >= extent:
                raise CommandError(f"--at: index {index} of dimension {dimension}; expected less than {extent}")
    with _refusals():
        found = npuquant.explain(call.function, at=given.at, **call.arguments)
    print_text(f"{json.dumps(found.to_dict()) if given.json else found}\n", stream)
    return EQUAL


def run_operator(given: argparse.Namespace) -> int:
    """Computes the results of an operator, compares, diagnoses or explains them, and writes them to files."""
    if given.backend:
        choose_backend(given.backend)
    stream = sys.stderr if files.check_outputs(given.outputs) else sys.stdout
    inputs = load_inputs(given)
    expected = {name: _load(given, options.RESULTS[name][1]) for name in given.expect}
    call = Call(given, inputs)
    with _progress(given):
        call.run(given.repeat or 1)
    for name, ours in zip(RESULTS, call.results):
        if name in expected:
            _fit(given, call, name, ours, expected[name])
    if given.mode == "diagnose":
        status = _diagnose(given, call, expected, stream)
    elif given.mode == "explain":
        status = _explain(given, call, stream)
    else:
        status = _compare_outputs(given, call, expected, stream)
    for file in (*inputs.values(), *expected.values()):
        file.check_whole()
    with files.Outputs() as outputs:
        for name, result in zip(RESULTS, call.results):
            if name in given.outputs:
                outputs.add(given.outputs[name], result.array)
        if not given.mode and not given.quiet:
            print_text(_summary(given, call, inputs) + "\n", stream)
        outputs.commit()
    return status


def compare_dumps(given: argparse.Namespace) -> int:
    """Compares two dumps without an operator."""
    ours, theirs = (_load_input(given, name) for name in ("a", "b"))
    checks.check_tolerance(given, ours.dtype)
    codes = {"int8", "uint8"}  # are compared as numbers, with or without 128 added
    dtype = theirs.dtype if {ours.dtype, theirs.dtype} == codes else ours.dtype
    files.take(theirs, dtype, ours.array.shape, ours.path, given.layout)
    comparison = _comparison(given, ours, theirs, our_name="A", their_name="B")
    if comparison.differ or not given.quiet:
        print_text(theirs.taken + comparison.report(theirs.path, given.max_diffs) + comparison.remarks())
    for file in (ours, theirs):
        file.check_whole()
    return DIFFERENT if comparison.differ else EQUAL


# ---- progress ----

QUIET_SECONDS = 0.5  # no line for short work
LINE_SECONDS = 0.1  # nor changes faster than one can read


@contextlib.contextmanager
def _progress(given: argparse.Namespace) -> Iterator[None]:
    """Shows how much of a long call is done, if stderr is a terminal."""
    if given.quiet or not sys.stderr.isatty():
        yield
        return
    finished = threading.Event()

    def show() -> None:
        shown = False
        wait = QUIET_SECONDS
        while not finished.wait(wait):
            done, count = _native.progress()
            if count:
                print(f"\r{given.command}: {100 * done / count:3.0f} %", end="", file=sys.stderr, flush=True)
                shown, wait = True, LINE_SECONDS
        if shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    line = threading.Thread(target=show)
    line.start()
    try:
        yield
    finally:
        finished.set()
        line.join()


# ---- other commands ----


def choose_backend(name: str) -> None:
    if name not in (known for _, known in _library._backends()):
        raise CommandError(f"--backend: there is no '{name}'; see npuquant info")
    with _refusals():
        npuquant.set_backend(name)


def list_hypotheses(given: argparse.Namespace) -> int:
    table = diagnosis.hypotheses_table()
    if given.json:
        print_text(json.dumps(reports.hypotheses_json(table, options.OPERATORS, given.operator)) + "\n")
    else:
        print_text(reports.hypotheses_text(table, options.OPERATORS, given.operator) + "\n")
    return EQUAL


def print_info(given: argparse.Namespace) -> int:
    print_text("".join(f"{line}\n" for line in info.lines()))
    return EQUAL
