# SPDX-License-Identifier: BSD-3-Clause
"""npu_grouped_matmul(): a product for each expert."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple, cast

import numpy as np

from .._arguments import (ArgumentTypeError, _expect, _of, _one_of, _options, _shape, _type_of, as_annotated,
                          is_transposed, listed)
from .._matmul import product
from .._operators import dequant, requant
from .._tensors import NAMES, PRODUCTS, TensorLike, arrays, from_float, result_type, to_array, to_float
from .._threads import keep
from .experts import Made, Note, exactly
from .unset import mark

__tracebackhide__ = True  # pytest shows the line that calls the package

#: By the type of the result of int8 products: the types of scale, whether there may be a per_token_scale, and the types
#: of bias. A bias of bfloat16 is added after the scales.
_PAIRS = {"int8": (("int64", "uint64"), False, ("int32",)), "float16": (("float32",), True, ("int32",)),
          "bfloat16": (("bfloat16",), True, ("int32", "bfloat16")), "int32": ((), False, ("int32",))}
_LISTS = ("x", "weight", "bias", "scale", "offset", "antiquant_scale", "antiquant_offset", "per_token_scale",
          "activation_input", "activation_quant_scale", "activation_quant_offset")
#: Dimensions that the device addresses with 16 bits.
_LONGEST = 65535


def undefined(a: Any) -> str:
    """What of a call's arguments selects values that are not known. They are of int8 matrices only: then it is ""."""
    for name in "x", "weight":
        for i, tensor in enumerate(getattr(a, name)):
            if _type_of(tensor) != "int8":
                return f"{name}[{i}] of {_type_of(tensor)}"
    if a.act_type:
        return f"act_type {a.act_type}"
    others = ("x_dtype", "weight_dtype", "scale_dtype", "per_token_scale_dtype")
    return next((name for name in others if getattr(a, name, None) is not None), "")


def is_stacked(a: Any) -> bool:
    """Whether one tensor has the weights of all experts."""
    return len(a.weight) == 1 and len(a.weight[0].shape) == 3


def _is_older(a: Any) -> bool:
    """Whether it is a call of torch_npu's older function, which takes a list of int."""
    return isinstance(a.group_list, (list, tuple))


def _is_empty(a: Any) -> bool:
    """Whether no element is multiplied, and so nothing is written."""
    return all(0 in tensor.shape for tensor in a.x) or all(0 in tensor.shape for tensor in a.weight)


def check_form(a: Any) -> None:
    """The rules for all types: how many tensors there are, and which groups they have."""
    for name in ("x", "weight"):
        count = len(getattr(a, name))
        _expect(1 <= count <= 128, name, f"has {count} tensors; expected 1 to 128")
    _one_of("split_item", a.split_item, 0, 1, 2, 3)
    for name in ("scale", "bias"):
        tensors = getattr(a, name)
        _expect(not tensors or len(tensors) == len(a.weight), name,
                f"has {len(tensors or ())} tensors; expected {len(a.weight)}, as weight has")
    if _is_older(a):  # it knows no group_type
        return
    _one_of("group_type", a.group_type, -1, 0, 2)
    _one_of("group_list_type", a.group_list_type, 0, 1, 2)
    if a.group_type == -1:
        _expect(a.split_item in (0, 1), "split_item", f"is {a.split_item}; expected 0 or 1 with group_type -1")
        _expect(len(a.x) == len(a.weight), "weight", f"has {len(a.weight)} tensors; expected {len(a.x)}, as x has")
        _expect(a.group_list is None, "group_list", "is given; expected None with group_type -1")
    elif a.group_type == 0:
        _expect(a.split_item in (2, 3), "split_item", f"is {a.split_item}; expected 2 or 3 with group_type 0")
        _expect(a.group_list is not None, "group_list", "is None; expected a tensor with group_type 0")
        experts = a.weight[0].shape[0] if is_stacked(a) else len(a.weight)
        _expect(len(a.x) in (1, experts), "x", f"has {len(a.x)} tensors; expected 1 or {experts}")
        _of("group_list", a.group_list, "int64")
        pairs = a.group_list_type == 2
        _shape("group_list", a.group_list, None if experts == 1 else experts, *[2] * pairs)
        _expect(a.group_list.shape[0] <= 1024, "group_list",
                f"has {a.group_list.shape[0]} groups; expected at most 1024")
    _expect(a.group_list_type != 2 or a.group_type == 0, "group_list_type", "is 2; expected 0 or 1 unless group_type is 0")


def _rows_of(a: Any) -> Any:
    return sum(tensor.shape[0] for tensor in a.x)


def grouped(a: Any) -> List[Made]:
    """The rules of int8 matrices: types, shapes, and what the results are."""
    check_form(a)
    old = _is_older(a)
    _expect(old or a.group_type != 2, "group_type", "is 2; expected -1 or 0 for int8")
    kind = result_type("output_dtype", "int8" if a.output_dtype is None else a.output_dtype, PRODUCTS).name
    _one_of("output_dtype", kind, *(["int8"] if old else _PAIRS))
    for name in _LISTS[4:]:
        if name != "per_token_scale":
            _expect(not getattr(a, name), name, "is given; expected None for int8")
    K = a.x[0].shape[-1]
    columns = _check_matrices(a, K)
    _check_scales(a, kind, columns)
    if old or a.group_type == 0:
        for i, tensor in enumerate(a.x):
            _shape(f"x[{i}]", tensor, None, K)
    if a.split_item in (2, 3):
        return [Made((_rows_of(a), columns[0]), kind)]
    if len(a.x) == 1 and len(a.weight) > 1 or is_stacked(a):  # the older function: results by groups
        sizes = [end - begin for begin, end in zip([0, *a.group_list], a.group_list)]
        return [Made((size, n), kind) for size, n in zip(sizes, columns)]
    return [Made((*tensor.shape[:-1], n), kind) for tensor, n in zip(a.x, columns)]


def _check_matrices(a: Any, K: Any) -> List[Any]:
    """Checks x and weight; returns the number of columns of each expert's weight."""
    for i, tensor in enumerate(a.x):
        _expect(len(tensor.shape) >= 2, f"x[{i}]", f"has {len(tensor.shape)} dimensions; expected 2 or more")
        _expect(not is_transposed(tensor), f"x[{i}]", "is transposed; expected rows that are contiguous")
        _expect(tensor.shape[-1] <= _LONGEST, f"x[{i}]", f"has {tensor.shape[-1]} columns; expected at most {_LONGEST}")
    stacked = is_stacked(a)
    for i, tensor in enumerate(a.weight):
        rows = K if len(a.x) == 1 else a.x[i].shape[-1] if len(a.x) == len(a.weight) else K
        _shape(f"weight[{i}]", tensor, *[None] * stacked, rows, None)
        turned = is_transposed(tensor)
        _expect(turned == is_transposed(a.weight[0]), f"weight[{i}]",
                f"is {'' if turned else 'not '}transposed; expected all as weight[0] is")
        _expect(turned or tensor.shape[-1] <= _LONGEST, f"weight[{i}]",
                f"has {tensor.shape[-1]} columns; expected at most {_LONGEST} unless it is transposed")
        if a.split_item in (2, 3):
            _shape(f"weight[{i}]", tensor, *[None] * (stacked + 1), a.weight[0].shape[-1])
    for i, tensor in enumerate(a.x):
        _expect(_is_empty(a) or tensor.shape[-1] > 0, f"x[{i}]", "has no columns; expected one or more")
    return [a.weight[0].shape[-1]] * a.weight[0].shape[0] if stacked else [tensor.shape[-1] for tensor in a.weight]


def _check_scales(a: Any, kind: str, columns: Sequence[Any]) -> None:
    """Checks scale, per_token_scale and bias for a result of a type."""
    scale_types, per_token, bias_types = _PAIRS[kind]
    why = f", as output_dtype is {kind}"
    if scale_types:
        _expect(a.scale, "scale", f"is None; expected {listed(scale_types)}{why}")
    else:
        _expect(not a.scale, "scale", f"is given; expected None{why}")
    stacked, experts = is_stacked(a), len(columns)
    for name, types in ("scale", scale_types), ("bias", bias_types):
        for i, tensor in enumerate(getattr(a, name) or ()):
            _of(f"{name}[{i}]", tensor, *types, why=why)
            _shape(f"{name}[{i}]", tensor, *[experts] * stacked, columns[i])
    if a.per_token_scale and not _is_older(a):
        _expect(per_token, "per_token_scale", f"is given; expected None{why}")
        _expect(len(a.x) == 1, "per_token_scale", f"is given; expected None, as x has {len(a.x)} tensors")
        _expect(len(a.per_token_scale) == 1, "per_token_scale",
                f"has {len(a.per_token_scale)} tensors; expected one")
        _of("per_token_scale", a.per_token_scale[0], "float32")
        _shape("per_token_scale", a.per_token_scale[0], a.x[0].shape[0])


def _groups(a: Any, rows: int) -> Iterator[Tuple[int, int, int]]:
    """The groups that have rows: the expert, the first row, and the one behind the last."""
    numbers = [int(number) for number in np.asarray(a.group_list, np.int64).reshape(-1)]
    experts: Any = range(len(numbers))
    if _is_older(a):
        kind = 0
        _expect(numbers and numbers[-1] == rows, "group_list",
                f"ends with {numbers[-1] if numbers else 'no number'}; expected {rows}, the number of rows of x")
    else:
        kind = a.group_list_type
    if kind == 2:
        experts, sizes = numbers[::2], numbers[1::2]
        sizes = sizes[:next((i for i, size in enumerate(sizes) if size <= 0), len(sizes))]
    elif kind == 1:
        sizes = [max(number, 0) for number in numbers]
    else:
        sizes = [end - begin for begin, end in zip([0, *numbers], numbers)]
        _expect(all(size >= 0 for size in sizes), "group_list", f"is {numbers}; expected ends that do not fall")
    begin, count = 0, a.weight[0].shape[0] if is_stacked(a) else len(a.weight)
    _expect(sum(sizes) <= rows, "group_list", f"has {sum(sizes)} rows; expected at most {rows}, as x has")
    for expert, size in zip(experts, sizes):
        _expect(size == 0 or 0 <= expert < count, "group_list", f"has rows of expert {expert}; weight has {count} experts")
        if size:
            yield expert, begin, begin + size
        begin += size


class Part(NamedTuple):
    """Rows with one expert's weight, scale and bias."""

    rows: np.ndarray
    token_scales: Optional[np.ndarray]
    result: int
    begin: int  # the first row in the result
    weight: int  # whose these are
    scale: int
    bias: int


class Grouped(NamedTuple):
    """The products of a call."""

    a: Any
    made: Sequence[Made]
    parts: Sequence[Part]
    way: str = ""  # how the sums become the result, if not as dequant() and requant() do
    is_turned: bool = False  # the weights are read with rows as columns

    def results(self) -> List[np.ndarray]:
        results = [one.zeros() for one in self.made]
        for part in self.parts:
            y = results[part.result]
            self.multiply(part, y[part.begin:part.begin + len(part.rows)] if y.ndim == 2 else y)
        return results

    def some(self, rows: np.ndarray) -> np.ndarray:
        """Some rows of the first result, which has two dimensions."""
        y = np.zeros((len(rows), self.made[0].shape[1]), self.made[0].zeros().dtype)
        for part in self.parts:
            at = np.flatnonzero((rows >= part.begin) & (rows < part.begin + len(part.rows)))
            if part.result == 0 and len(at):
                inner, found = rows[at] - part.begin, np.empty((len(at), y.shape[1]), y.dtype)
                token_scales = None if part.token_scales is None else part.token_scales[inner]
                self.multiply(part._replace(rows=part.rows[inner], token_scales=token_scales), found)
                y[at] = found
        return y

    def of_expert(self, name: str, expert: int) -> Any:
        tensors = getattr(self.a, name)
        if not tensors:
            return None
        return tensors[0][expert] if is_stacked(self.a) else tensors[expert]

    def multiply(self, part: Part, y: np.ndarray, columns: slice = slice(None)) -> Any:
        """The product of a part's rows, with scale and bias, to y; returns the sums."""
        weight, scale, bias = (self.of_expert(name, getattr(part, name)) for name in ("weight", "scale", "bias"))
        if self.is_turned:
            weight = weight.T.reshape(weight.shape) if is_transposed(weight) else weight.reshape(weight.shape[::-1]).T
        weight = weight[:, columns]
        scale, bias = (cast(Any, None if one is None else one[columns]) for one in (scale, bias))
        sums = product(part.rows, weight, y.shape)
        kind = NAMES[y.dtype]
        if y.dtype == np.int32:
            y[...] = sums if bias is None else sums + bias
        elif y.dtype == np.int8:
            requant(sums, scale, bias, dtype=np.int8, out=y)
        elif self.way:
            y[...] = from_float(_finish(self.way, sums, scale, part.token_scales, bias, kind), kind)
        else:
            dequant(sums, scale, part.token_scales, bias, dtype=kind, out=y)
        return sums

    def note(self, result: int, index: Tuple[int, ...], note: Note) -> None:
        for part in self.parts:
            row = index[0] - part.begin
            if part.result == result and 0 <= row < len(part.rows) and len(index) == 2:
                column = slice(index[1], index[1] + 1)
                token_scales = None if part.token_scales is None else part.token_scales[row:row + 1]
                one = part._replace(rows=part.rows[row:row + 1], token_scales=token_scales)
                note("expert", "integer", part.weight)
                note("first row of the group", "integer", part.begin)
                note("sum", "integer", self.multiply(one, self.made[result].zeros()[:1, column], column))
                for name in ("bias", "scale"):
                    value = self.of_expert(name, getattr(part, name))
                    if value is not None and value.dtype.itemsize < 8:
                        note(name, "float" if name == "scale" or value.dtype == np.uint16 else "integer",
                             to_float(value[column]) if value.dtype == np.uint16 else value[column])
                if token_scales is not None:
                    note("per_token_scale", "float", token_scales)


@exactly
def _finish(way: str, sums: np.ndarray, scale: np.ndarray, token_scales: Optional[np.ndarray], bias: Any,
            kind: str) -> np.ndarray:
    """The steps of dequant() in another way."""
    tokens: Any = np.float32(1) if token_scales is None else token_scales.reshape(-1, 1)
    added: Any = np.float32(0) if bias is None else to_float(bias)
    is_first = bias is not None and (bias.dtype == np.int32) != (way == "bias-moved")
    if is_first:
        sums = sums + bias if bias.dtype == np.int32 else sums.astype(np.float32) + added
    t = sums.astype(np.float32)
    if way == "sums-rounded":
        t = to_float(from_float(t, kind))
    if way == "scales-first":
        t = t * (to_float(scale) * tokens)
    else:
        t = t * to_float(scale)
        t = (to_float(from_float(t, kind)) if way == "rounded-between" else t) * tokens
    return t if is_first or bias is None else t + added


def plan(a: Any, made: Sequence[Made], groups: Optional[Sequence[Tuple[int, int, int]]] = None) -> Grouped:
    """The products of a call; groups: the expert, the first row and the one behind the last, None if there are none."""
    token_scales = a.per_token_scale[0] if a.per_token_scale and not _is_older(a) else None
    if groups is None:
        return Grouped(a, made, [Part(rows, token_scales, i, 0, i, i, i) for i, rows in enumerate(a.x)])
    rows, is_one = a.x[0] if len(a.x) == 1 else np.concatenate(a.x), a.split_item in (2, 3)
    return Grouped(a, made, [
        Part(rows[begin:end], None if token_scales is None else token_scales[begin:end], *((0, begin) if is_one else
             (expert, 0)), expert, expert, expert) for expert, begin, end in groups])


@_options
def npu_grouped_matmul(
    x: Sequence[TensorLike], weight: Sequence[TensorLike], *, bias: Optional[Sequence[TensorLike]] = None,
    scale: Optional[Sequence[TensorLike]] = None, offset: Any = None, antiquant_scale: Any = None,
    antiquant_offset: Any = None, per_token_scale: Optional[Sequence[TensorLike]] = None, group_list: Any = None,
    activation_input: Any = None, activation_quant_scale: Any = None, activation_quant_offset: Any = None,
    split_item: Optional[int] = 0, group_type: Optional[int] = None, group_list_type: Optional[int] = 0,
    act_type: Optional[int] = 0, tuning_config: Optional[Sequence[int]] = None, output_dtype: Any = None,
    x_dtype: Any = None, weight_dtype: Any = None, scale_dtype: Any = None, per_token_scale_dtype: Any = None,
) -> List[np.ndarray]:
    """Multiplies the int8 rows of each expert with its int8 weight, and requantises or dequantises the sums.

    The sums are exact, in int32 and modulo 2^32. output_dtype decides the types of what follows:

    ============  =========================  ===============  =======================  ===========
    output_dtype  scale                      per_token_scale  bias                     next step
    ============  =========================  ===============  =======================  ===========
    int8          int64, uint64 words        None             int32                    requant()
    float16       float32                    float32          int32                    dequant()
    bfloat16      bfloat16                   float32          int32, bfloat16          dequant()
    int32         None                       None             int32                    none
    ============  =========================  ===============  =======================  ===========

    Args:
        x: int8 [M, K], in a list. With group_type -1 one for each weight; also [..., K].
        weight: int8: one tensor [E, K, N], or E tensors [K, N]. All of them may be transposed views.
        scale, bias: one tensor [E, N] for one weight, or a tensor [N] for each weight; or None.
        per_token_scale: None, or one tensor, float32 [M].
        group_list: int64, with group_type 0, by group_list_type: 0 [E], the row behind the last of each expert; 1 [E],
            the number of rows of each expert; 2 [E, 2], an expert and its number of rows, up to the first number that
            is not positive. A list of int is torch_npu's older form: 0, up to the last row, and int8 results.
        split_item: 2 or 3 with group_type 0: one result. 0 or 1 with group_type -1: a result for each weight.
        group_type: 0: rows belong to groups. -1: there are no groups.
        group_list_type: see group_list.
        output_dtype: int8 (also if None), float16, bfloat16 or int32.
        tuning_config: has no effect.
        offset, antiquant_scale, antiquant_offset, activation_input, activation_quant_scale, activation_quant_offset,
            act_type, x_dtype, weight_dtype, scale_dtype, per_token_scale_dtype: None, or act_type 0. Others select what
            npuquant does not define.

    Returns:
        A list: one result [M, N], or one for each weight. unset() says which rows no group has.

    >>> x = np.array([[1, 2], [3, 4]], np.int8)
    >>> weight = np.array([[[1, 0], [0, 1]], [[2, -1], [1, 3]]], np.int8)
    >>> npu_grouped_matmul([x], [weight], group_list=np.array([1, 1]), group_list_type=1, split_item=3, group_type=0,
    ...                    output_dtype=np.int32)
    [array([[ 1,  2],
           [10,  9]], dtype=int32)]
    """
    given = locals()
    for name in _LISTS:
        if not isinstance(given[name], (list, tuple) if name in ("x", "weight") else (list, tuple, type(None))):
            found = None if given[name] is None else type(given[name]).__name__
            raise ArgumentTypeError(f"{name}: is {found}; expected a list of arrays")
        given[name] = given[name] and [to_array(f"{name}[{i}]", one) for i, one in enumerate(given[name])]
    a = SimpleNamespace(**given)
    if _is_older(a):
        a.group_list = as_annotated("group_list", a.group_list, "Sequence[int]")
    else:
        a.group_list = arrays(given, (), ("group_list",))["group_list"]
    if undefined(a):
        raise NotImplementedError(f"npu_grouped_matmul with {undefined(a)}: npuquant defines the values of int8 matrices "
                                  "without activation")
    made = grouped(a)
    if _is_empty(a):
        keep("npu_grouped_matmul", Grouped(a, made, []))
        return [mark(one.zeros(), True) for one in made]
    groups = None
    if _is_older(a) or a.group_type != -1:
        groups = list(_groups(a, _rows_of(a)))
        _check_rows(a, groups)
    call = plan(a, made, groups)
    keep("npu_grouped_matmul", call)
    used = groups[-1][2] if groups else 0
    unset = np.arange(_rows_of(a)) >= used if groups is not None and a.split_item in (2, 3) else False
    return [mark(result, unset) for result in call.results()]


def _check_rows(a: Any, groups: Sequence[Tuple[int, int, int]]) -> None:
    """Several x have the rows of one group each."""
    if len(a.x) > 1:
        found = {expert: end - begin for expert, begin, end in groups}
        for i, tensor in enumerate(a.x):
            _expect(found.get(i, 0) == len(tensor), "group_list",
                    f"has {found.get(i, 0)} rows of expert {i}; x[{i}] has {len(tensor)}")
