# SPDX-License-Identifier: BSD-3-Clause
"""Checks of arguments: of NumPy's arrays and of PyTorch's tensors, with values or without."""
from __future__ import annotations

import functools
import inspect
import operator
from typing import Any, Callable, Dict, Optional, Sequence, Tuple, TypeVar, cast

from npuquant_facts.dtypes import FLOATS
from npuquant_facts.operators import TAKEN

__tracebackhide__ = True  # pytest shows the line that calls the package


class Refusal(RuntimeError):
    """An operator refuses an argument: the message begins with the argument's name, and ends with the operator's."""

    __module__ = "npuquant"
    text: Optional[str] = None

    def set_operator(self, name: str) -> None:
        """Of operators that call each other, the last to set its name is the one that the user called."""
        self.text = self.text or str(self)
        self.args = (f"{self.text} [{name}]",)


class ArgumentError(Refusal, ValueError):
    """An operator refuses an argument. torch_npu raises a RuntimeError then."""

    __module__ = "npuquant"


class ArgumentTypeError(Refusal, TypeError):
    """An operator refuses the type of an argument."""

    __module__ = "npuquant"

    def __init__(self, text: str, float8: Optional[Tuple[str, str]] = None) -> None:
        super().__init__(text)
        #: If it refuses 8-bit floating point as the type of its result: the argument, and the name of the type.
        self.float8 = float8


_Function = TypeVar("_Function", bound=Callable[..., Any])


def names_operator(function: _Function, name: str = "") -> _Function:
    """A function whose refusals end with its name, or with another."""
    name = name or function.__name__

    @functools.wraps(function)
    def call(*values: Any, **keywords: Any) -> Any:
        try:
            return function(*values, **keywords)
        except Refusal as error:
            error.set_operator(name)
            raise

    return cast(_Function, call)


#: The types of the operators' arrays and tensors, by their names in NumPy and PyTorch, without those that few operators
#: have here: the device has more of these.
_IMPLEMENTED = {name for kind in TAKEN.values() if kind.elements == 1 and not kind.has_codes
                for name in (kind.name, kind.stored)}
# How messages name a type that NumPy does not have.
BFLOAT16 = "bfloat16 (or its bits as uint16)"


def _expect(condition: Any, argument: str, text: str) -> None:
    if not condition:
        raise ArgumentError(f"{argument}: {text}")


def listed(words: Sequence[str]) -> str:
    """Words in a message: a, b or c."""
    return " or ".join(", ".join(dict.fromkeys(words)).rsplit(", ", 1))


# ---- numbers and words -----------------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """A value in a message: its text, or its type if the text is long."""
    text = repr(value)
    return text if len(text) <= 80 and "\n" not in text else type(value).__name__


def _bool(value: Any) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):  # NumPy's has had both names
        raise TypeError
    return bool(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


#: By the annotation of a function's argument: the value that the function gets, and what a message expects.
_KINDS: Dict[str, Tuple[Callable[[Any], Any], str]] = {
    "int": (operator.index, "an integer"),
    "bool": (_bool, "a bool"),
    "str": (_string, "a string"),
    "Sequence[int]": (lambda value: [operator.index(one) for one in value], "a list of integers"),
}


def as_annotated(argument: str, value: Any, annotation: str, default: Any = None) -> Any:
    """A number or a word as its annotation says; values of all other annotations unchanged. Where None is allowed, it
    stands for the default."""
    optional = annotation.startswith("Optional[")
    convert, expected = _KINDS.get(annotation[len("Optional["):-1] if optional else annotation, (None, ""))
    if convert is None:
        return value
    if optional and value is None:
        return default
    try:
        return convert(value)
    except (TypeError, ValueError):
        expected += " or None" * optional
        raise ArgumentTypeError(f"{argument}: is {shown(value)}; expected {expected}") from None


def _options(function: _Function) -> _Function:
    """A function that takes as its numbers and words what their annotations say, and whose refusals end with its name."""
    parameters = inspect.signature(function).parameters

    def read(name: str, value: Any) -> Any:
        parameter = parameters.get(name)  # Python says what is not there
        return value if parameter is None else as_annotated(name, value, parameter.annotation, parameter.default)

    @functools.wraps(function)
    def call(*values: Any, **keywords: Any) -> Any:
        first = [*map(read, parameters, values)]
        return function(*first, *values[len(first):], **{name: read(name, value) for name, value in keywords.items()})

    return names_operator(cast(_Function, call))


# ---- types -----------------------------------------------------------------------------------------------------------


def _type_of(tensor: Any) -> str:
    """The name of the type of an array or tensor. An array of uint16 has the bits of bfloat16."""
    name = str(tensor.dtype)
    return "bfloat16" if name == "uint16" else name.replace("torch.", "")


def unless_implemented(name: str) -> str:
    """What a message says of a type that an operator here does not have, by its name: the device may have it."""
    return "" if name in _IMPLEMENTED else ", which npuquant does not implement"


def wrong_type(argument: str, dtype: Any, expected: str) -> ArgumentTypeError:
    """The error for an array, or for a tensor that the package does not read, whose dtype has more words."""
    name, _, more = str(dtype).partition(", ")
    if more and name in expected:
        return ArgumentTypeError(f"{argument}: is {dtype}; expected a strided tensor in the CPU's memory")
    return ArgumentTypeError(f"{argument}: is {dtype}{unless_implemented(name)}; expected {expected}")


def _of(argument: str, tensor: Optional[Any], *types: str, why: str = "") -> None:
    """The type of a tensor, if it is given, by its name. why names what decides the types."""
    if tensor is not None and _type_of(tensor) not in types:
        of_torch = str(tensor.dtype).startswith("torch.")
        names = listed(types if of_torch else [BFLOAT16 if name == "bfloat16" else name for name in types])
        raise wrong_type(argument, str(tensor.dtype).replace("torch.", ""), names + why)


# ---- shapes ----------------------------------------------------------------------------------------------------------


def _shapes(argument: str, tensor: Optional[Any], *shapes: Sequence[Any], why: str = "") -> None:
    """The shape of a tensor, if it is given, is one of some; an extent of None may be any."""
    if tensor is not None:
        same = any(len(tensor.shape) == len(shape) and all(
            extent is None or size == extent for size, extent in zip(tensor.shape, shape)) for shape in shapes)
        expected = " or ".join(dict.fromkeys(
            f"[{', '.join('any' if extent is None else str(extent) for extent in shape)}]" for shape in shapes))
        _expect(same, argument, f"has the shape {list(tensor.shape)}; expected {expected}{why}")


def _shape(argument: str, tensor: Optional[Any], *extents: Any) -> None:
    """The shape of a tensor, if it is given; an extent of None may be any."""
    _shapes(argument, tensor, extents)


def _dimensions(argument: str, tensor: Any, least: int, most: int) -> None:
    count = len(tensor.shape)
    _expect(least <= count <= most, argument,
            f"has {count} dimension{'s' * (count != 1)}; expected {least}{f' to {most}' if most > least else ''}")


def _one_of(argument: str, value: Any, *expected: Any) -> None:
    _expect(value in expected, argument, f"is {value!r}; expected {listed([*map(repr, expected)])}")


def is_transposed(matrix: Any) -> bool:
    """Whether the last two dimensions lie in memory the other way round."""
    strides = matrix.stride() if hasattr(matrix, "stride") else [n // matrix.itemsize for n in matrix.strides]
    turned = len(strides) > 1 and strides[-2] == 1 and strides[-1] == matrix.shape[-2]
    return turned and not (matrix.shape[-2] == 1 and matrix.shape[-1] == 1)  # one element lies in both ways


def _ceiling(extent: int, of: int) -> int:
    return (extent + of - 1) // of


# ---- operators -------------------------------------------------------------------------------------------------------


def check_quant_scatter(input: Any, indices: Any, updates: Any, quant_scales: Any, quant_zero_points: Any, axis: int,
                        quant_axis: int, round_mode: Optional[str]) -> int:
    """Checks the arguments of npu_quant_scatter, and returns the axis from 0 on."""
    _of("input", input, "int8")
    _of("indices", indices, "int32", "int64")
    _of("updates", updates, *FLOATS)
    _of("quant_scales", quant_scales, *FLOATS)
    _of("quant_zero_points", quant_zero_points, "int8", "uint8", "int32", *FLOATS)
    _dimensions("input", input, 3, 8)
    count = len(input.shape)
    _expect(len(updates.shape) == count, "updates",
            f"has {len(updates.shape)} dimensions; expected those of input, {count}")
    _expect(-count <= axis < count and 0 < axis % count < count - 1, "axis",
            f"is {axis}; expected one between the first and the last dimension of input, which has {count}")
    _one_of("quant_axis", quant_axis, -1, count - 1)
    _one_of("round_mode", round_mode, "rint", None)
    axis %= count
    most, found = list(input.shape), list(updates.shape)
    _expect(all(size <= extent if i in (0, axis) else size == extent
                for i, (size, extent) in enumerate(zip(found, most))), "updates",
            f"has the shape {found}; expected {most}, or less in the dimensions 0 and {axis}")
    if len(indices.shape) == 2 and indices.shape[1] == 2:
        raise NotImplementedError("indices: has two dimensions; npuquant implements one")
    _shape("indices", indices, found[0])
    for name, tensor in ("quant_scales", quant_scales), ("quant_zero_points", quant_zero_points):
        if tensor is not None:
            elements = 1
            for extent in tensor.shape:
                elements *= extent
            _expect(elements == found[-1], name, f"has {elements} elements; expected {found[-1]}, the last extent of "
                    "updates")
    return axis


def product_columns(x1: Sequence[int], x2: Sequence[int], words: bool) -> int:
    """The number of columns of the product of two matrices. With words, they may be words of eight int4.

    Words of x1 run along K. Words of x2 run along K, too, as in a transposed weight, or along N. The number of rows
    says which, as in npu_quant_matmul_meta() of op_plugin/python/meta/_meta_registrations.py of Ascend/op-plugin.
    """
    terms = x1[-1]
    if x2[-2] == terms:
        return x2[-1]
    if words and x2[-2] == 8 * terms:
        return 8 * x2[-1]
    along_columns = f", or {8 * terms} if its words run along N" if words else ""
    raise ArgumentError(f"x2: has the shape {list(x2)}; expected {terms} row{'s' * (terms != 1)}, as x1 has columns"
                        + along_columns)


def _batches(x1: Sequence[int], x2: Sequence[int]) -> Tuple[int, ...]:
    """The batch dimensions of a product. NumPy's function does not take the symbols of a compiler."""
    count = max(len(x1), len(x2))
    pairs = list(zip([1] * (count - len(x1)) + list(x1), [1] * (count - len(x2)) + list(x2)))
    _expect(all(one == other or one == 1 or other == 1 for one, other in pairs), "x2",
            f"has the batch dimensions {list(x2)}; expected some that can be broadcast with those of x1, {list(x1)}")
    return tuple(other if one == 1 else one for one, other in pairs)


_WORDS, _FLOATS = ("float32", "int64", "uint64"), ("float32", "bfloat16")
#: npu_quant_matmul: by the type of results, and whether pertoken_scale is given, the types of scale and bias. Where
#: pertoken_scale may not be given, there is no entry. float32 results, and pairs of bfloat16 with float16, are
#: extensions.
_PRODUCTS: Dict[Tuple[str, bool], Tuple[Tuple[str, ...], Tuple[str, ...]]] = {
    ("int8", False): (_WORDS, ("int32",)),
    ("int32", False): (_FLOATS, ("int32",)),
    ("float16", False): (_WORDS, ("int32",)),
    **{(name, given): (_FLOATS, ("int32", "float32", "float16", "bfloat16"))
       for name, given in (("float16", True), ("bfloat16", False), ("bfloat16", True), ("float32", False),
                           ("float32", True))},
}
#: The same as the device takes them, which does not return float32.
_PRODUCTS_ON_DEVICE: Dict[Tuple[str, bool], Tuple[Tuple[str, ...], Tuple[str, ...]]] = {
    **_PRODUCTS,
    ("float16", True): (("float32",), ("int32", "float16", "float32")),
    **{("bfloat16", given): (_FLOATS, ("int32", "bfloat16", "float32")) for given in (False, True)},
}


def _check_product_types(scale: Any, pertoken_scale: Any, bias: Any, output: str, types: Any) -> None:
    given = pertoken_scale is not None
    why = f", as output_dtype is {output}"
    _expect((output, given) in types, "pertoken_scale", f"is given; expected None{why}")
    if output == "float16":
        why += f" and pertoken_scale is {'given' if given else 'None'}"
    of_scale, of_bias = types[output, given]
    _of("scale", scale, *of_scale, why=why)
    _of("bias", bias, *of_bias, why=why)


def check_quant_matmul(x1: Any, x2: Any, scale: Any, offset: Any, pertoken_scale: Any, bias: Any,
                       output: str) -> Tuple[int, ...]:
    """Checks the arguments of npu_quant_matmul for a type of results, and returns the shape of the result."""
    for name, matrix in ("x1", x1), ("x2", x2):
        _of(name, matrix, "int8", "int32")
        _dimensions(name, matrix, 2, 8)
    kind = _type_of(x1)
    _of("x2", x2, kind, why=", as x1 is: the device computes in another way with int8 and int4, which is not defined "
        "here")
    columns, rows = product_columns(x1.shape, x2.shape, kind == "int32"), x1.shape[-2]
    shape = (*_batches(x1.shape[:-2], x2.shape[:-2]), rows, columns)

    _check_product_types(scale, pertoken_scale, bias, output, _PRODUCTS)
    groups = len(scale.shape) == 2 and scale.shape[0] > 1 and scale.shape[1] == columns
    undefined = ": the device computes in another way with scales of groups of terms, which is not defined here"
    _shapes("scale", scale, [1], [columns], *[[1, columns]] * (_type_of(scale) in ("int64", "uint64")),
            why=undefined if groups else "")
    if offset is not None:
        _expect(output == "int8", "offset", f"is given; expected None, as output_dtype is {output} and not int8")
        _of("offset", offset, "float32")
        _shapes("offset", offset, [1], [columns])
    _of("pertoken_scale", pertoken_scale, "float32")
    _shapes("pertoken_scale", pertoken_scale, [rows], shape[:-1])
    _shapes("bias", bias, [columns], *[[shape[0], 1, columns]] * (len(shape) == 3))
    return shape
