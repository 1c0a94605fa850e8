# SPDX-License-Identifier: BSD-3-Clause
"""The command line. Tables have what each command takes, what its help prints, and what is checked."""
from __future__ import annotations

import argparse
import difflib
import enum
import functools
import re
import textwrap
from typing import AbstractSet, Any, Callable, List, Mapping, NamedTuple, NoReturn, Optional, Sequence, Tuple, Union

from npuquant_facts import VERSION
from npuquant_facts import operators as facts
from npuquant_facts.dtypes import TYPES

from . import checks
from .errors import CommandError

# ---- commands ----


class Operator(NamedTuple):
    """A command that runs an operator."""

    summary: str
    about: str
    example: str


class Mode(NamedTuple):
    """Another use of an operator's result than writing and comparing it."""

    summary: str
    about: str
    takes: str  # of the operator's options
    status: str
    example: str  # stands after the inputs
    example_of_1: str  # the same for an operator with a 1-D input as a rule


class Command(NamedTuple):
    """A command without an operator, or with an optional one."""

    summary: str
    about: str
    status: str
    example: str


OPERATORS = {
    "quantize": Operator(
        "quantise with given scales and zero points (npu_quantize)",
        "y = round(x / scale + zero point), or round(x * scale + zero point) with --div-mode false, clamped to the "
        "result's type.",
        "quantize x.npy --scales s.npy --zero-points z.npy --axis -1 --dtype uint8 -o y.npy"),
    "group-quant": Operator(
        "quantise with the scales of each group of rows (npu_group_quant)",
        "y = round(x * scale of the row's group + offset), clamped to the result's type.",
        "group-quant x.npy --bf16 x --scale s.npy --group-index ends.npy --dtype quint4x2 -o y.npy"),
    "trans-quant-param": Operator(
        "pack scales and offsets for the matrix unit (npu_trans_quant_param)",
        "Packs scales, shortened to 19 bits, and offsets into the 64-bit words of the matrix unit.",
        "trans-quant-param scale.npy --offset offset.npy --round-mode 1 -o words.npy"),
    "dynamic-quant": Operator(
        "quantise with scales from the data (npu_dynamic_quant)",
        "Finds the scale of each row, or of the tensor, from its largest magnitude; y = round(x * (127 / largest)), "
        "clamped to the result's type; 7 in place of 127 for quint4x2.",
        "dynamic-quant x.npy --smooth-scales smooth.npy -o y.npy --scale-output rows.npy"),
    "dynamic-quant-float8": Operator(
        "quantise to 8-bit floats with scales from the data (npu_dynamic_quant)",
        "Finds the scale of each row, or of the tensor, from its largest magnitude: largest * (1 / 448), and y = x / "
        "scale in the result's type; 57344 in place of 448 for float8_e5m2, 32768 or --dst-type-max for hifloat8.",
        "dynamic-quant-float8 x.npy --dtype hifloat8 --dst-type-max 15 -o y.npy --scale-output rows.npy"),
    "dynamic-quant-asymmetric": Operator(
        "quantise with scales and offsets from the data (npu_dynamic_quant_asymmetric)",
        "Finds scale and offset of each row, or of the tensor, from its smallest and largest value; "
        "y = round(x * (1 / scale) + offset), clamped to the result's type.",
        "dynamic-quant-asymmetric x.npy -o y.npy --scale-output scale.npy --offset-output offset.npy"),
    "dynamic-block-quant": Operator(
        "quantise with a scale for each block of columns (npu_dynamic_block_quant)",
        "Finds the scale of each block of columns of a row from its largest magnitude; "
        "y = round(x * ((1 / largest) * 127)), clamped to the result's type; 7 in place of 127 for quint4x2.",
        "dynamic-block-quant x.npy --block 64 -o y.npy --scale-output blocks.npy"),
    "dynamic-block-quant-float8": Operator(
        "quantise to 8-bit floats with a scale for each block of rows and columns (npu_dynamic_block_quant)",
        "Finds the scale of each block from its largest magnitude: largest / 448, and y = x / scale in the result's "
        "type; 57344 in place of 448 for float8_e5m2, 32768 or --dst-type-max for hifloat8.",
        "dynamic-block-quant-float8 x.npy --row-block 64 --block 256 -o y.npy --scale-output blocks.npy"),
    "dynamic-mx-quant": Operator(
        "quantise to 8- and 4-bit floats in groups with powers of two as scales (npu_dynamic_mx_quant)",
        "Finds the scale of each group of elements along an axis from its largest magnitude, a power of two; y = x / "
        "scale in the result's type. y and the scales are codes, u1 in files; with 4 bits, two in a byte.",
        "dynamic-mx-quant x.npy --dtype float8_e4m3fn -o y.npy --scale-output groups.npy"),
    "anti-mx-quant": Operator(
        "convert 8- and 4-bit floats with scales of groups back to floating point (npu_anti_mx_quant)",
        "y = x * scale of the element's group, rounded to the result's type.",
        "anti-mx-quant codes.npy --mxscale groups.npy --src-type float8_e4m3fn --dtype float16 -o x.npy"),
    "anti-quant": Operator(
        "convert int8 or int4 values back to floating point (npu_anti_quant)",
        "y = (x + offset) * scale, rounded to the result's type.",
        "anti-quant weight.npy --scale scale.npy --offset offset.npy --dtype bfloat16 -o y.npy"),
    "dequant": Operator(
        "convert int32 sums of products back to floating point (DequantBias)",
        "y = x * weight scale * activation scale + bias, rounded to the result's type. A bias of integers is added to "
        "x first.",
        "dequant sums.npy --weight-scale scale.npy --activation-scale rows.npy -o y.npy"),
    "requant": Operator(
        "convert int32 sums of products to int8 or float16, as the matrix unit does",
        "float16: y = (x + bias) * scale. int8: round((x + bias) * scale) is clamped to -256..255, the offset is "
        "added, and the sum is clamped to -128..127. Scale and offset are in the words that trans-quant-param makes.",
        "requant sums.npy --words words.npy --dtype float16 -o y.npy"),
    "quant-matmul": Operator(
        "multiply int8 matrices, then dequant or requant (npu_quant_matmul)",
        "Multiplies X1 by X2. If the result is int8, or float16 without --pertoken-scale, requant follows; where "
        "--scale is f4, trans-quant-param makes its words. If the result is bfloat16, float32, or float16 with "
        "--pertoken-scale, dequant follows. With --dtype int32 the sums, modulo 2^32, are the result.",
        "quant-matmul x1.npy weight.npy --scale scale.npy --pertoken-scale rows.npy --dtype bfloat16 -o y.npy"),
    "row-quant": Operator(
        "quantise rows as fused operators do at their end (npu_swiglu_quant and others)",
        "Finds the scale of each row from its largest magnitude, and quantises to int8 by the rule of an operator. X is "
        "what this operator has computed before. The rules differ in the scale, and in how X is divided by it.",
        "row-quant x.npy --rule moe_routing -o y.npy --scale-output rows.npy"),
}
OPERATOR_STATUS = "0 done, and equal to what was expected; 1 something differs, but outputs are written; 2 an error"

MODES = {
    "diagnose": Mode(
        "find the mistake that explains differences: diagnose OPERATOR ... --expect FILE",
        "Compares the operator's result with the FILE of --expect. If they differ, finds the mistake, or the pair of "
        "mistakes, that gives the values in FILE, and shows one element step by step.",
        "those of the operator, except --max-diff, --max-ulp, --max-diffs and --repeat",
        "0 nothing differs; 1 something differs, whether explained or not; 2 an error",
        "--expect y.npy", "--expect y.npy"),
    "explain": Mode(
        "show the steps of single elements: explain OPERATOR ... --at I,J",
        "Shows how the operator computes elements of its result, step by step, with the bits of each value. The steps "
        "of dynamic operators include scale, offset, and the places of the extremes in x.",
        "those of the operator, except --repeat and those of comparisons",
        "0 done; 2 an error",
        "--at 0,1", "--at 1"),
    "hard-inputs": Mode(
        "make inputs on which mistakes show: hard-inputs OPERATOR --shape N,N -o DIR",
        "Makes inputs on which as many known mistakes as possible change the operator's result, each in its own way. "
        "Writes them to a folder, with a manifest that names the call. With --run, has a program compute the results, "
        "and diagnoses them.",
        "the settings of the operator, such as --dtype",
        "0 done, and with --run nothing differs; 1 something differs; 2 an error",
        "--shape 64,128 -o hard", "--shape 64 -o hard"),
}

OTHERS = {
    "compare": Command(
        "compare two dumps without an operator: compare A B",
        "Compares two dumps, bit by bit, and says how many elements differ, by how much (B minus A), and where. It "
        "also says whether all differences are 128, as between int8 and uint8, whether they are at most one unit in "
        "the last place, and whether the values are the same in another order. B may have another type, if "
        "its values are exact in the type of A, and another shape. i1 and u1 are compared as numbers.",
        "0 the dumps are equal; 1 something differs; 2 an error",
        "compare ours.npy theirs.npy"),
    "hypotheses": Command(
        "list the known mistakes, with advice: hypotheses [OPERATOR]",
        "Lists the mistakes that npuquant diagnose knows, of all operators or of one: what the kernel does, advice, "
        "and the operators that can have the mistake.",
        "0 done; 2 an error",
        "hypotheses dynamic-quant"),
    "info": Command(
        "print version, backends and CPU, for bug reports",
        "Prints version, backends, CPU and system, for bug reports.",
        "0 done; 2 an error",
        "info"),
}

COMMANDS: Mapping[str, Union[Operator, Mode, Command]] = {**OPERATORS, **MODES, **OTHERS}

#: The end of the general help.
NOTES = {
    "files": {
        "FILE.npy": "versions 1 to 3, up to 8 dimensions, C or Fortran order, either byte order; f4, f2, i1, u1, i4, "
                    "i8, u8, or a type that --bf16 takes",
        "FILE.npz:NAME": "the array NAME of an archive of numpy.savez; FILE.npz, if it has one array",
        "FILE.bin:TYPE:N,N": "elements alone, in C order: x.bin:float16:32,4096",
        "-": "stdin as an input; stdout as an output, and then all messages go to stderr",
    },
    "environment": {"NPUQ_BACKEND": "the kernels to use if no --backend is given"},
    "exit status": {
        "0": "done; nothing differs by more than --max-diff, --max-ulp or --admissible allow",
        "1": "done, and outputs are written, but something differs",
        "2": "an error: one line on stderr says what and where; no output is written, unless the line names one",
        "128 + n": "in a shell: signal n has ended the command",
    },
}

# ---- options ----


class Kind(enum.Enum):
    """What a row is, and what its value may be."""

    POSITIONAL = enum.auto()  # a file of an input, without the name of an option
    INPUT = enum.auto()  # a file
    OUTPUT = enum.auto()  # a file
    EXPECTED = enum.auto()  # a file
    OPERATOR = enum.auto()  # the name of one, without the name of an option
    TEXT = enum.auto()  # a name that is checked elsewhere
    CHOICE = enum.auto()  # one of the words in the row's value, which are separated by |
    LAYOUT = enum.auto()  # the same, about expected results
    INTEGER = enum.auto()
    FRACTION = enum.auto()
    NAMES = enum.auto()  # inputs or expected results, separated by commas; repeatable
    TYPES = enum.auto()  # inputs and their types, separated by commas: x=float16; repeatable
    INDICES = enum.auto()  # of an element, separated by commas; repeatable
    SHAPE = enum.auto()
    FLAG = enum.auto()


class Row(NamedTuple):
    """An option or a positional argument of some commands."""

    kind: Kind
    commands: AbstractSet[str]  # operators, modes and others
    name: str
    value: Optional[str]  # the help's word for the value
    help: str
    default: Optional[str] = None
    required: bool = False
    least: float = 0
    most: float = 0


INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


def operator_of(command: str) -> Optional[facts.Operator]:
    """The library's operator; None for quant-matmul, which calls two."""
    return facts.OPERATORS.get(command.replace("-", "_"))


def _with_result(name: str, *types: str) -> AbstractSet[str]:
    """The commands of operators that have the result by its role, of one of these types."""
    return {operator.name.replace("_", "-") for operator in facts.OPERATORS.values() for result in operator.results
            if result.role.lower() == name and set(types).intersection(result.types)}


ALL = frozenset(OPERATORS)
SCALES = _with_result("scale", "float32", "float8_e8m0fnu")
OFFSETS = _with_result("offset", "float32")
INTEGER_RESULTS = _with_result("y", "int8", "int32") | {"quant-matmul"}
FLOAT_RESULTS = _with_result("y", *(name for name in TYPES if TYPES[name].is_float_of_any_size)) | {"quant-matmul"}
CAUSES = frozenset(MODES)

_SUMS = "the sums: i4, [..., N]"
#: The help of an operator's tensors and options, by name, or by the command and the name where these differ.
HELPS = {
    "x": "the tensor: f4, f2, or u2 with --bf16 x",
    "anti-quant x": "the tensor: i1, or i4 for words of eight int4",
    "anti-mx-quant x": "the tensor: u1, the codes of --src-type; with 4 bits two in a byte, the first in the low half",
    "mxscale": "the scales of dynamic-mx-quant, u1",
    "dequant x": _SUMS,
    "requant x": _SUMS,
    "trans-quant-param scale": "scales: f4, 1-D or 2-D",
    "scales": "one scale, or one for each index of the quantised dimension",
    "zero-points": "zero points, shaped as the scales",
    "group-quant scale": "a row of scales for each group, [E, H]",
    "anti-quant scale": "one scale, one for each column, or [G, N] for G groups of rows",
    "group-index": "where each group of rows ends, [E], i4 or i8",
    "group-quant offset": "one offset for all elements, of the type of --scale",
    "trans-quant-param offset": "offsets: f4",
    "anti-quant offset": "offsets, shaped as the scales and of their type",
    "smooth-scales": "factors of the columns, [H], or [E, H] with --group-index",
    "weight-scale": "one scale, or one for each column",
    "activation-scale": "a scale for each row, f4: those of dynamic-quant",
    "words": "one word of trans-quant-param, or one for each column: i8 or u8; with --dtype float16 also the bits of "
             "scales",
    "dequant bias": "a value for each column; i4 is added to x first, and f4, f2 or u2 last",
    "requant bias": "a value for each column, i4; it is added to x first",
    "axis": "the quantised dimension, counted from the end if negative (default 1, as in torch_npu, or 0 if X is 1-D); "
            "with --div-mode false, -2 is the last but one, and every larger number the last",
    **{f"{name} axis": "the dimension that groups run along, counted from the end if negative (default -1)"
       for name in ("dynamic-mx-quant", "anti-mx-quant")},
    "div-mode": "divide by the scales, or multiply",
    "round-mode": "truncate the scales to 19 bits, or round them",
    "dynamic-mx-quant round-mode": "to nearest, halves to even; or to 4 bits also halves away from zero, or downwards",
    "quant-mode": "parameters for each row, or for the whole tensor",
    "scale-form": "compute scales as largest * (1 / 127), as CANN 9.0 and later do, or as 1 / (127 / largest)",
    "row-block": "rows of a block; blocks begin anew in each matrix",
    "block": "columns of a block; for quint4x2 a multiple of 8, unless a row has no more columns than N",
    "dynamic-block-quant-float8 block": "columns of a block",
    "block-size": "elements of a group, a multiple of 32",
    "scale-alg": "how a scale is found: 0; to 8 bits also 1; to float4_e2m1fn_x2 also 2",
    "small-groups": "when a group whose scale has the code 0 becomes zeros: 0, always; 1, as relatives of the operator "
                    "do; 2, never",
    "bad-groups": "what y is in a group with NaN or an infinity: 0, zeros; 1, to 8 bits, NaN",
    "max-low-bound": "with --scale-alg 1, no largest magnitude counts as less, except 0",
    "dynamic-mx-quant dst-type-max":
        "0, or 6 to 12: with --scale-alg 2, what the largest magnitude is divided by; 0 means 6",
    "min-scale": "the smallest factor of x, so 1 / NUMBER is the largest scale; 0 sets no limit",
    "dst-type-max": "what the largest magnitude becomes in hifloat8; 0 means 32768, and other types take 0 only",
    "dynamic-block-quant-float8 dst-type-max":
        "what the largest magnitude becomes in hifloat8: 15, 56, 224 or 32768, which 0 means; other types take 0 only",
    "rule": "dynamic_quant, swiglu (npu_swiglu_quant), add_rms_norm (npu_add_rms_norm_dynamic_quant), dequant_swiglu "
            "(npu_dequant_swiglu_quant), moe_routing (npu_moe_init_routing_v2 and _v3), moe_routing_8_5 (the same up to "
            "CANN 8.5) or grouped_swiglu (npu_grouped_matmul_swiglu_quant)",
    **{f"{name} dtype": "type of the result; uint8 is int8 plus 128; int4 is another name of quint4x2; "
                        f"{name}-float8 makes 8-bit floats" for name in ("dynamic-quant", "dynamic-block-quant")},
    "quantize dtype": "type of the result: uint8 and int32 need --div-mode true, quint4x2 needs false; int4 is another "
                      "name of quint4x2; 8-bit floats are u1 in files",
    "trans-quant-param dtype": "type of the result; the bits are the same",
    "dynamic-mx-quant dtype": "type of the result, u1 in files; with 4 bits, two codes in a byte",
}
#: Kinds of options whose values are not some of few words, and the help's word for the value.
KINDS = {"axis": (Kind.INTEGER, "N"), "row-block": (Kind.INTEGER, "N"), "block": (Kind.INTEGER, "N"),
         "min-scale": (Kind.FRACTION, "NUMBER"), "dst-type-max": (Kind.FRACTION, "NUMBER"), "rule": (Kind.TEXT, "NAME"),
         "max-low-bound": (Kind.FRACTION, "NUMBER"),
         **{name: (Kind.INTEGER, "N") for name in ("block-size", "scale-alg", "small-groups", "bad-groups")}}
#: The types of results that a command makes unless told otherwise, where torch_npu's is not the first.
USUAL_TYPES = {"dynamic-mx-quant": "float4_e2m1fn_x2", "anti-mx-quant": "bfloat16"}


def _help(command: str, name: str) -> str:
    return HELPS.get(f"{command} {name}") or HELPS[name]


def _option_row(command: str, option: facts.Option) -> Row:
    name = "round-mode" if option.name == "rounding" else option.name.replace("_", "-")
    kind, value = KINDS.get(name, (Kind.CHOICE, "|".join(option.numbers)))
    default = None if name == "axis" else option.default  # which its help says
    return Row(kind, {command}, name, value, _help(command, name), default, required=option.default is None,
               least=option.least, most=option.most)


def _dtype_row(command: str, operator: facts.Operator) -> Row:
    types = operator.results[0].types
    is_flipped = "SYMMETRIC" in operator.traits and "uint8" in types
    names = [*types, *["int4"] * ("quint4x2" in types)]
    text = HELPS.get(f"{command} dtype") or ("type of the result" + "; uint8 is int8 plus 128" * is_flipped
                                             + "; int4 is another name of quint4x2" * ("int4" in names))
    return Row(Kind.CHOICE, {command}, "dtype", "|".join(names), text, default=USUAL_TYPES.get(command, types[0]))


def _rows_of(operator: facts.Operator) -> List[Row]:
    """The rows that follow from what is known of an operator."""
    command = operator.name.replace("_", "-")
    first, *others = (("x" if tensor.use == "data" else tensor.name.replace("_", "-"), tensor)
                      for tensor in operator.inputs)
    return [Row(Kind.POSITIONAL, {command}, first[0], first[0].upper(), _help(command, first[0])),
            *(Row(Kind.INPUT, {command}, name, "FILE", _help(command, name), required=tensor.use == "input")
              for name, tensor in others),
            *(_option_row(command, option) for option in operator.options), _dtype_row(command, operator),
            *[Row(Kind.CHOICE, {command}, "src-type", "|".join(operator.inputs[0].types), "type of X",
                  default="float8_e4m3fn")] * ("READS_CODES" in operator.traits)]


ROWS = (
    *(row for operator in facts.OPERATORS.values() for row in _rows_of(operator)),
    Row(Kind.POSITIONAL, {"quant-matmul"}, "x1", "X1", "the activations: i1, [..., M, K]"),
    Row(Kind.POSITIONAL, {"quant-matmul"}, "x2", "X2", "the weights: i1, [..., K, N]"),
    Row(Kind.POSITIONAL, {"compare"}, "a", "A", "a dump"),
    Row(Kind.POSITIONAL, {"compare"}, "b", "B", "another one, taken in the type and shape of A"),
    Row(Kind.OPERATOR, {"hypotheses"}, "operator", "[OPERATOR]", "list the mistakes of this one alone"),
    Row(Kind.INPUT, {"quant-matmul"}, "scale", "FILE",
        "one scale, or one for each column; or words of trans-quant-param, i8 or u8 (required, except with --dtype "
        "int32)"),
    Row(Kind.INPUT, {"quant-matmul"}, "offset", "FILE",
        "one offset, or one for each column, f4; only with --dtype int8 and a --scale of f4"),
    Row(Kind.INPUT, {"quant-matmul"}, "pertoken-scale", "FILE", "a scale for each row, f4: those of dynamic-quant"),
    Row(Kind.INPUT, {"quant-matmul"}, "bias", "FILE",
        "a value for each column; i4 is added to the sums first, and f4, f2 or u2 last, where dequant follows"),
    Row(Kind.CHOICE, {"quant-matmul"}, "dtype", "int8|float16|bfloat16|float32|int32",
        "type of the result", default="int8"),
    Row(Kind.NAMES, ALL, "bf16", "NAME,...",
        "the inputs and expected results that are bfloat16 (x, scales, expect-scale, ...): files of u2, i2 and V2 must "
        "be named, unless the result is bfloat16; files of f4 may be named if all values are values of bfloat16; may "
        "be repeated"),
    Row(Kind.NAMES, {"compare"}, "bf16", "NAME,...", "which files are bfloat16: a, b, or a,b"),
    Row(Kind.INDICES, {"explain"}, "at", "I,J,...",
        "the element to explain: an index from 0 for each dimension of the result, where each int4 counts; may be "
        "repeated", required=True, most=INT64_MAX),
    Row(Kind.SHAPE, {"hard-inputs"}, "shape", "N,N,...",
        "the shape of X or SCALE, in values; at most 1048576 values", required=True, least=1, most=INT64_MAX),
    Row(Kind.TYPES, {"hard-inputs"}, "type", "NAME=TYPE,...", "types of inputs, such as x=bfloat16; may be repeated"),
    Row(Kind.NAMES, {"hard-inputs"}, "without", "NAME,...", "optional inputs to leave out; may be repeated"),
    Row(Kind.INTEGER, {"hard-inputs"}, "seed", "N",
        "another seed gives other inputs, the same seed the same ones", default="1", most=INT64_MAX),
    Row(Kind.TEXT, {"hard-inputs"}, "output", "DIR",
        "the folder for the inputs and manifest.json; npuquant makes it if there is none", required=True),
    Row(Kind.TEXT, {"hard-inputs"}, "run", "COMMAND",
        "run COMMAND in a shell, with the name of the manifest as its last argument, and diagnose the results that it "
        "leaves in DIR: y.npy, and for dynamic operators scale.npy and offset.npy; its output goes to stderr"),
    Row(Kind.FLAG, CAUSES, "json", None, "print JSON"),
    Row(Kind.FLAG, {"hypotheses"}, "json", None, "print them as JSON"),
    Row(Kind.FLAG, {"diagnose", "hard-inputs"}, "explain-verdict", None,
        "print the bits for and against each explanation, too"),
    Row(Kind.OUTPUT, ALL, "output", "FILE", "where the result goes (quint4x2 as i4, bfloat16 as u2)"),
    Row(Kind.OUTPUT, SCALES, "scale-output", "FILE", "where the scales go: f4, of dynamic-mx-quant u1"),
    Row(Kind.OUTPUT, OFFSETS, "offset-output", "FILE", "where the offsets go, f4"),
    Row(Kind.EXPECTED, ALL, "expect", "FILE",
        "compare the result with FILE: print differences (FILE minus npuquant) to stdout, and exit with 1 if there "
        "are any"),
    Row(Kind.EXPECTED, SCALES, "expect-scale", "FILE", "compare the scales with FILE in the same way"),
    Row(Kind.EXPECTED, OFFSETS, "expect-offset", "FILE",
        "compare the offsets with FILE in the same way"),
    Row(Kind.LAYOUT, ALL, "layout", "reshaped|transposed|fractal-nz",
        "how expected results have their elements, if another shape than the result's does not tell"),
    Row(Kind.LAYOUT, {"compare"}, "layout", "reshaped|transposed|fractal-nz",
        "how B has its elements, if another shape than A's does not tell"),
    Row(Kind.INTEGER, INTEGER_RESULTS | {"compare"}, "max-diff", "N",
        "how far an element of an integer result may be off", default="0", most=INT32_MAX),
    Row(Kind.INTEGER, SCALES - FLOAT_RESULTS, "max-ulp", "N",
        "how many float32 steps a scale or an offset may be off; NaN equals NaN", default="0", most=INT32_MAX),
    Row(Kind.INTEGER, FLOAT_RESULTS | {"compare"}, "max-ulp", "N",
        "how many steps of its type an element of a floating-point result may be off", default="0", most=INT32_MAX),
    Row(Kind.INTEGER, ALL | {"compare"}, "max-diffs", "N",
        "how many single differences of each comparison are shown; all are counted", default="10", most=INT64_MAX),
    Row(Kind.FLAG, ALL, "admissible", None,
        "exit with 0 also if the device's vector division can make all differences; only for quantize with --div-mode "
        "true, dynamic-quant, dynamic-block-quant, both also with -float8, and row-quant except by grouped_swiglu"),
    Row(Kind.TEXT, ALL, "backend", "NAME",
        "the kernels to use, see npuquant info (default: the fastest); the result is the same"),
    Row(Kind.INTEGER, ALL, "threads", "N", "at most N threads; 0 means one for each processor", default="0", most=4096),
    Row(Kind.INTEGER, ALL, "repeat", "N",
        "do the work N times and report the fastest", default="1", least=1, most=1000000),
    Row(Kind.FLAG, ALL | {"hard-inputs", "compare"}, "quiet", None, "print errors and differences only"),
    Row(Kind.FLAG, ALL | {"hard-inputs", "compare", "hypotheses", "info"}, "help", None, "print this"),
)
LETTERS = {"output": "-o", "quiet": "-q", "help": "-h"}
#: The options that name a result's files: where it goes, and what to compare it with.
RESULTS = {
    "y": ("output", "expect"),
    "scale": ("scale-output", "expect-scale"),
    "offset": ("offset-output", "expect-offset"),
}
#: Options that no mode has: there all differences count, and no time is printed.
NOT_IN_MODES = {"max-diff", "max-ulp", "max-diffs", "repeat"}
MOST_INDICES = 8
#: What a word stands for, if not for itself.
MEANINGS: Mapping[str, object] = {"true": True, "false": False, "0": 0, "1": 1, "int4": "quint4x2"}


def is_for(row: Row, mode: str, command: str) -> bool:
    """Whether a command takes the row. hard-inputs has the settings of an operator, but none of its files."""
    if not row.commands & {mode, command}:
        return False
    if mode == "hard-inputs":
        return mode in row.commands or is_of_operator(row)
    if mode == "explain" and (row.kind in (Kind.EXPECTED, Kind.LAYOUT) or row.name == "admissible"):
        return False
    return not mode or row.name not in NOT_IN_MODES


def is_of_operator(row: Row) -> bool:
    """Whether the row is an argument of the operator that is no tensor."""
    return row.name in ("dtype", "src-type") or row.name.replace("-", "_") in facts.OPTIONS


def settings_of(command: str) -> List[Row]:
    return [row for row in ROWS if command in row.commands and is_of_operator(row)]


def is_positional(row: Row) -> bool:
    return row.kind in (Kind.POSITIONAL, Kind.OPERATOR)


def is_input(row: Row) -> bool:
    return row.kind in (Kind.POSITIONAL, Kind.INPUT)


def is_file(row: Row) -> bool:
    """Whether the value is a file that is read."""
    return is_input(row) or row.kind is Kind.EXPECTED


def inputs_of(command: str) -> List[Row]:
    return [row for row in ROWS if command in row.commands and is_input(row)]


def is_required(row: Row) -> bool:
    return row.required or row.kind is Kind.POSITIONAL


def is_setting(row: Row) -> bool:
    """Whether the value is neither a tensor's file nor a request for help."""
    return not is_file(row) and row.kind is not Kind.OUTPUT and row.name != "help"


def flags_of(row: Row) -> List[str]:
    """How the option is written: -o and --output."""
    return [LETTERS[row.name], f"--{row.name}"] if row.name in LETTERS else [f"--{row.name}"]


# ---- values ----

INTEGER = re.compile(r"\s*[+-]?[0-9]{1,19}", re.ASCII)


def is_integer(text: str, row: Row) -> bool:
    return INTEGER.fullmatch(text) is not None and row.least <= int(text) <= row.most


def read_text(row: Row, inputs: Sequence[str], text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("an empty name")
    return text


def read_choice(row: Row, inputs: Sequence[str], text: str) -> object:
    if text not in str(row.value).split("|"):
        raise argparse.ArgumentTypeError(f"'{text}' is none of {row.value}")
    return MEANINGS.get(text, text)


def read_integer(row: Row, inputs: Sequence[str], text: str) -> int:
    if not is_integer(text, row):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from {row.least} to {row.most}")
    return int(text)


def read_fraction(row: Row, inputs: Sequence[str], text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None


def read_input(inputs: Sequence[str], text: str) -> str:
    """An input's name, with hyphens or torch_npu's underscores."""
    name = text.replace("_", "-")
    if name not in inputs:
        raise argparse.ArgumentTypeError(f"there is no input called '{text}'")
    return name


def read_names(row: Row, inputs: Sequence[str], text: str) -> List[str]:
    return [read_input(inputs, word) for word in text.split(",")]


def read_types(row: Row, inputs: Sequence[str], text: str) -> List[Tuple[str, object]]:
    types = []
    for word in text.split(","):
        name, equals, dtype = word.partition("=")
        name = read_input(inputs, name)
        if not equals:
            raise argparse.ArgumentTypeError(f"no type given for {name}; expected {name}=TYPE")
        if dtype not in (*facts.READ, "int4"):
            expected = ", ".join(name for name in facts.READ if facts.READ[name].elements == 1)
            raise argparse.ArgumentTypeError(
                f"{name}: there is no type '{dtype}'; expected {expected} or quint4x2 (int4)")
        types.append((name, MEANINGS.get(dtype, dtype)))
    return types


def read_indices(row: Row, inputs: Sequence[str], text: str) -> Tuple[int, ...]:
    words = text.split(",")
    if len(words) > MOST_INDICES or not all(is_integer(word, row) for word in words):
        raise argparse.ArgumentTypeError(
            f"'{text}': expected at most {MOST_INDICES} numbers from {row.least} on, separated by commas")
    return tuple(map(int, words))


READERS: Mapping[Kind, Callable[[Row, Sequence[str], str], object]] = {
    Kind.CHOICE: read_choice,
    Kind.LAYOUT: read_choice,
    Kind.INTEGER: read_integer,
    Kind.FRACTION: read_fraction,
    Kind.NAMES: read_names,
    Kind.TYPES: read_types,
    Kind.INDICES: read_indices,
    Kind.SHAPE: read_indices,
}
ACTIONS = {Kind.NAMES: "extend", Kind.TYPES: "extend", Kind.INDICES: "append"}


def reader(row: Row, inputs: Sequence[str]) -> Callable[[str], object]:
    """The function that checks and converts a value."""
    return functools.partial(READERS.get(row.kind, read_text), row, inputs)


# ---- help ----

WIDTH = 80  # on every terminal


def fill(text: str, first: str = "", other: str = "") -> str:
    """The text in lines. Options are not broken at their hyphens."""
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=other, break_on_hyphens=False)


def entry(name: str, text: str) -> str:
    return fill(text, f"  {name:<27}", " " * 29)


def shell_lines(example: str) -> str:
    """A shell command, continued on the next line before an option that does not fit."""
    glued = re.sub(r" (?!-\D)", "\N{NO-BREAK SPACE}", f"npuquant {example}")  # -1 is a value
    lines = textwrap.wrap(glued, WIDTH - len(" \\"), initial_indent="  ", subsequent_indent="      ",
                          break_on_hyphens=False)
    return " \\\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def ending(status: str, example: str) -> str:
    return fill(f"exit status: {status}") + f"\n\nexample:\n{shell_lines(example)}"


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide on every terminal, with no option broken at its hyphens."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=WIDTH)

    def _split_lines(self, text: str, width: int) -> List[str]:
        return textwrap.wrap(text, width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """A parser of rows. The names that are not given are not in its namespace."""

    def __init__(self, rows: Sequence[Row], inputs: Sequence[str], usage: str, description: str, epilog: str) -> None:
        super().__init__(usage=f"npuquant {usage}", description=description, epilog=epilog, add_help=False,
                         formatter_class=HelpFormatter, argument_default=argparse.SUPPRESS, allow_abbrev=False)
        self.color = False  # of Python 3.14
        group = self.add_argument_group()
        for row in rows:
            text = row.help + " (required)" * row.required + (f" (default {row.default})" if row.default else "")
            if row.kind is Kind.FLAG:
                group.add_argument(*flags_of(row), dest=row.name, action="store_true", help=text)
            elif is_positional(row):
                group.add_argument(row.name, nargs="?", type=reader(row, inputs), metavar=row.value, help=text)
            else:
                group.add_argument(*flags_of(row), dest=row.name, action=ACTIONS.get(row.kind, "store"),
                                   type=reader(row, inputs), metavar=row.value, help=text)

    def error(self, message: str) -> NoReturn:
        raise CommandError(re.sub("^argument (-./)?", "", message))


def example_of(mode: str, command: str) -> str:
    """The operator's example, in a mode with its inputs and the mode's words."""
    example = OPERATORS[command].example
    if not mode:
        return example
    inputs = example.partition(" -o ")[0]
    if mode == "hard-inputs":
        needed = "|".join(row.name for row in settings_of(command) if row.required)
        inputs = "".join([command, *re.findall(rf" --(?:{needed}) \S+", inputs)])
    operator = operator_of(command)
    is_1d = operator is not None and "MAKES_WORDS" in operator.traits
    return f"{mode} {inputs} {MODES[mode].example_of_1 if is_1d else MODES[mode].example}"


def parser_of(mode: str, command: str, rows: Sequence[Row]) -> Parser:
    """The parser of a command."""
    usage = " ".join(filter(None, [mode, command, *(str(row.value) for row in rows if is_positional(row))]))
    inputs = [row.name for row in rows if is_file(row)] or [row.name for row in inputs_of(command)]
    if command in OTHERS:
        about, end = fill(OTHERS[command].about), ending(OTHERS[command].status, OTHERS[command].example)
    else:
        about = "\n\n".join(fill(words.about) for words in (MODES.get(mode), OPERATORS[command]) if words)
        end = ending(MODES[mode].status if mode else OPERATOR_STATUS, example_of(mode, command))
    return Parser(rows, inputs, f"{usage} [OPTION]...", about, end)


def takes(mode: str, operator: str) -> bool:
    """quant-matmul has no hard inputs of its own: the operator after the product has them."""
    return (mode, operator) != ("hard-inputs", "quant-matmul")


def help_of_mode(mode: str) -> str:
    takers = "".join(f"  {name}\n" for name in OPERATORS if takes(mode, name))
    options = f"npuquant {mode} OPERATOR --help lists all options. They are {MODES[mode].takes}, and:"
    description = f"{fill(MODES[mode].about)}\n\noperators:\n{takers}\n{fill(options)}"
    rows = [row for row in ROWS if is_for(row, mode, "")]
    end = ending(MODES[mode].status, example_of(mode, "quantize"))
    return Parser(rows, [], f"{mode} OPERATOR ...", description, end).format_help()


def general_help() -> str:
    paragraphs = [
        "usage: npuquant COMMAND ...",
        fill("The quantisation operators of Ascend NPUs, bit for bit, on NumPy .npy files. The results are the same "
             "on every CPU, with all kernels and any number of threads."),
        "\n".join(["commands:", *(entry(name, words.summary) for name, words in COMMANDS.items()),
                   entry("help", "print what a command takes")]),
        fill("npuquant help COMMAND, or npuquant COMMAND --help, lists what a command takes. npuquant --version, or "
             "-V, prints the version. --name=VALUE and --name VALUE are the same. After -- there are no options."),
        fill("Outputs replace files only when the whole run has succeeded. If a comparison finds differences, the run "
             "has succeeded, too."),
    ]
    for title, entries in NOTES.items():
        paragraphs.append("\n".join([f"{title}:", *(entry(name, text) for name, text in entries.items())]))
    return "\n\n".join(paragraphs) + "\n"


# ---- words ----


def refusal(says: str, word: str, names: Sequence[str], otherwise: str) -> CommandError:
    """The error about a word that is no name, with the name that it probably means."""
    bare = re.sub("^npu-", "", word.lstrip("-").partition("=")[0].lower().replace("_", "-"))
    begun = [name for name in names if len(bare) > 1 and name.startswith(bare)]
    near = begun or difflib.get_close_matches(bare, names, n=1, cutoff=0.7)
    dashes = "--" if word.startswith("-") else ""
    return CommandError(f"{says} {word}; did you mean {dashes}{near[0]}?" if near else f"{says} {word}{otherwise}")


def no_operator(word: str) -> CommandError:
    return refusal("there is no operator", word, list(OPERATORS), "; see npuquant --help")


def unexpected(command: str, word: str) -> CommandError:
    if command in ("hypotheses", "info"):
        return CommandError(f"{command}: unexpected argument {word}; see npuquant {command} --help")
    return CommandError(f"unexpected argument {word}; see --help")


def unknown_option(command: str, word: str, rows: Sequence[Row]) -> CommandError:
    if command in ("hypotheses", "info"):
        return unexpected(command, word)
    name = word.partition("=")[0]
    elsewhere = any(row.commands & ALL and not is_positional(row) and name == f"--{row.name}" for row in ROWS)
    names = [row.name for row in rows if not is_positional(row)]
    return refusal("this command has no option" if elsewhere else "unknown option", word, names, "; see --help")


def arrange(command: str, words: Sequence[str], rows: Sequence[Row]) -> Tuple[List[str], List[str]]:
    """Options, each in one word with its value, and files: argparse would take the value -1,0 and the file -:x for
    options. What follows --help does not count."""
    known = {flag: row for row in rows if not is_positional(row) for flag in flags_of(row)}
    options: List[str] = []
    files: List[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            files += rest
            break
        if not word.startswith("-") or word == "-" or word.startswith("-:"):
            files.append(word)
            continue
        is_long = word.startswith("--")
        flag, joined, value = word.partition("=") if is_long else (word[:2], word[2:], word[2:])
        row = known.get(flag)
        if row is None or (row.kind is Kind.FLAG and joined and not is_long):
            raise unknown_option(command, word, rows)
        if row.kind is Kind.FLAG and joined:
            raise CommandError(f"{word}: {flag} takes no value")
        if row.kind is not Kind.FLAG and not joined:
            value = next(rest, "--")
        if value == "--":  # argparse would drop it
            raise CommandError(f"{word}: no value given; see --help")
        options.append(flag if row.kind is Kind.FLAG else f"--{row.name}={value}")
        if row.name == "help":
            break
    return options, files


# ---- commands ----


def answer(text: str) -> argparse.Namespace:
    return argparse.Namespace(command="print", text=text)


def check_complete(rows: Sequence[Row], given: Mapping[str, Any]) -> None:
    for row in rows:
        if is_required(row) and row.name not in given:
            raise CommandError(f"no {row.value if is_positional(row) else flags_of(row)[-1]} given; see --help")


def collect(mode: str, command: str, rows: Sequence[Row], given: Mapping[str, Any]) -> argparse.Namespace:
    """What a command line says. Settings that the command does not have are None."""
    settings = {row.name: None for row in ROWS if is_setting(row)}
    settings.update({row.name: given.get(row.name) for row in rows if is_setting(row)})
    arguments = argparse.Namespace(**{name.replace("-", "_"): value for name, value in settings.items()})
    arguments.mode = mode
    arguments.command = command
    arguments.files = {row.name: given[row.name] for row in rows if is_file(row) and row.name in given}
    arguments.inputs = {row.name: given[row.name] for row in rows if is_input(row) and row.name in given}
    has_files = mode != "hard-inputs"  # its --output is a folder
    arguments.outputs = {result: given[name] for result, (name, _) in RESULTS.items() if has_files and name in given}
    arguments.expect = {result: given[name] for result, (_, name) in RESULTS.items() if name in given}
    arguments.bf16 = set(given.get("bf16", ()))
    arguments.without = set(given.get("without", ()))
    arguments.type = dict(given.get("type", ()))
    arguments.at = given.get("at", [])
    return arguments


def parse_command(mode: str, command: str, words: Sequence[str]) -> argparse.Namespace:
    """Reads the words after a command."""
    rows = [row for row in ROWS if is_for(row, mode, command)]
    most_files = sum(map(is_positional, rows))
    options, files = arrange(command, words, rows)
    if len(files) > most_files:
        raise unexpected(command, files[most_files])
    parser = parser_of(mode, command, rows)
    given = vars(parser.parse_args([*options, "--", *files] if files else options))
    if "operator" in given and given["operator"] not in OPERATORS:
        raise no_operator(given["operator"])
    if "help" in given:
        return answer(parser.format_help())
    check_complete(rows, given)
    checks.check_compared(mode, command, given)
    for row in rows:
        if row.default is not None:
            given.setdefault(row.name, reader(row, [])(row.default))
        if row.kind is Kind.FLAG:
            given.setdefault(row.name, False)
    arguments = collect(mode, command, rows, given)
    checks.check(arguments, [row.name for row in inputs_of(command) if is_required(row)])
    return arguments


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Reads a command line. The command of the result is "print" where its text is all that was asked for."""
    if not words:
        raise CommandError("no command given; see npuquant --help")
    name, *rest = words
    if name == "help":  # help COMMAND is COMMAND --help
        most = 2 if rest and rest[0] in MODES else 1
        if len(rest) > most:
            raise CommandError(f"help: unexpected argument {rest[most]}")
        return parse([*rest, "--help"])
    if name in ("--help", "-h"):
        return answer(general_help())
    if name in ("--version", "-V"):
        return answer(f"npuquant {VERSION}\n")
    if name in MODES:
        return parse_mode(name, rest)
    if name in COMMANDS:
        return parse_command("", name, rest)
    if name.startswith("-"):
        raise refusal("unknown option", name, ["help", "version"], " before the command; see npuquant --help")
    raise refusal("there is no command", name, [*COMMANDS, "help"], "; see npuquant --help")


def parse_mode(mode: str, words: Sequence[str]) -> argparse.Namespace:
    """Reads the words after diagnose, explain or hard-inputs."""
    if not words:
        raise CommandError(f"{mode}: no operator given; see npuquant {mode} --help")
    operator, *rest = words
    if operator in ("--help", "-h"):
        return answer(help_of_mode(mode))
    if operator not in OPERATORS:
        raise no_operator(operator)
    if not takes(mode, operator):
        raise CommandError(f"{mode}: not for {operator}; expected the operator behind its sums, dequant or requant")
    return parse_command(mode, operator, rest)
