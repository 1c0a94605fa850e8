# SPDX-License-Identifier: BSD-3-Clause
"""The operators on PyTorch's tensors; importing this module registers them with PyTorch as torch.ops.npuquant.

The functions have torch_npu's names, arguments and results: int8, uint8 or int32, int32 words of eight int4 for
quint4x2, 8-bit floats (uint8 where PyTorch has no such type), int64 for words of scales and offsets. They read tensors
in the CPU's memory where they are, with any strides. Results are new tensors without gradient. npuquant's functions of
the same names say what is computed.

Tracing (torch.compile, FakeTensor, make_fx, tensors on the device "meta") knows the operators by torch_npu's schemas.
"""
from __future__ import annotations

import functools
import inspect
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar, Union, cast

import numpy as np

try:
    import torch
except ImportError as error:
    raise ImportError(f"npuquant.torch: PyTorch cannot be imported ({error}; Debian: python3-torch)") from error
from torch import Tensor

from npuquant_facts.dtypes import TYPES
from npuquant_facts.operators import OPERATORS, extents

from . import _native
from . import _operators as of_arrays
from ._arguments import ArgumentError, ArgumentTypeError, Refusal, _dimensions, check_quant_matmul, names_operator
from ._library import NpuquantError
from ._tensors import (FLOAT8, FLOATING, PRODUCTS, QUANTISED, Result, Results, Unknown, _NUMBERS, described,
                       operator_to, result_of, result_type, words_shape)
from ._torch.arguments import QUANT_SCATTER, UNDEFINED, _stored, bound, quant_matmul_undefined, quant_scatter_checks
from ._torch.chosen import chosen
from ._torch.registered import operator_of, refuse_none, register, renamed
from ._torch.tensors import NEW, array_of, tensor_of

__tracebackhide__ = True  # pytest shows the line that calls the package

#: Operators for mixtures of experts, of microscaling, of blocks, and a cast. _torch/declared.py has their rows: of some
#: it knows more types than have values.
_DECLARED = ("npu_anti_mx_quant", "npu_dtype_cast", "npu_dynamic_block_mx_quant", "npu_dynamic_dual_level_mx_quant",
             "npu_dynamic_mx_quant", "npu_dynamic_mx_quant_with_dual_axis", "npu_grouped_dynamic_block_quant",
             "npu_grouped_dynamic_mx_quant", "npu_grouped_matmul", "npu_moe_compute_expert_tokens",
             "npu_moe_finalize_routing", "npu_moe_init_routing", "npu_moe_init_routing_v2", "npu_moe_re_routing",
             "npu_moe_token_permute", "npu_moe_token_unpermute")

__all__ = [
    "dequant",
    "npu_anti_quant",
    "npu_dequant_bias",
    "npu_dynamic_block_quant",
    "npu_dynamic_quant",
    "npu_dynamic_quant_asymmetric",
    "npu_group_quant",
    *_DECLARED,
    "npu_quant_matmul",
    "npu_quant_scatter",
    "npu_quantize",
    "npu_trans_quant_param",
    "requant",
    "set_scale_form",
]


def __getattr__(name: str) -> Any:
    """The operators of _DECLARED: npuquant's functions on tensors."""
    if name not in _DECLARED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._torch import declared  # at the first use: it has many other operators

    return declared.operator(name)


_TYPES = (int, torch.dtype)
_TYPE_ARGUMENTS = ("dtype", "dst_dtype", "dst_type", "src_dtype", "output_dtype")
_INT4 = getattr(torch, "int4", None)  # no tensor has it; it is quint4x2 here
#: The numbers of 8-bit floats: PyTorch's, or torch_npu's where PyTorch has none.
_NUMBER_OF = {name: next((number for number, other in _NUMBERS.items() if other == name), 256 + TYPES[name].number)
              for name in FLOAT8}
#: torch_npu's numbers where PyTorch has some, too.
_NUMBERS_OF_DEVICE = {256 + TYPES[name].number for name in FLOAT8} - {*_NUMBER_OF.values()}


def set_scale_form(scale_form: str) -> str:
    """Chooses the scale_form of npu_dynamic_quant() for calls without one, and returns the former choice.

    Calls with group_index compute the inverse form, as every version of the device's software does.

    Args:
        scale_form: "product", as at the start, or "inverse": see npuquant.npu_dynamic_quant().
    """
    of_arrays._number("scale_form", scale_form)  # refuses what is neither
    former, chosen.scale_form = chosen.scale_form, scale_form
    return former


def _result(argument: str, dtype: Any, results: Results, default: Optional[str] = None) -> Result:
    """The type of a result; None stands for the default."""
    return result_type(argument, default if dtype is None else dtype, results)


# ---- shapes of results, for tracing ----------------------------------------------------------------------------------


def _torch_type(kind: Result) -> torch.dtype:
    """PyTorch's type for elements, or words, of a type."""
    return _stored("dtype", kind.name if kind.elements == 1 else TYPES[kind.name].stored)


def _typed(y: Tensor, kind: Result) -> Tensor:
    """A result as PyTorch's type: codes of 8-bit floats are made as uint8."""
    stored = _torch_type(kind)
    return y if y.dtype == stored else y.view(stored)


def _packed(dtype: Any, div_mode: bool) -> Any:
    """int32 without div_mode means words of int4, as in the device's AscendQuantV3. With div_mode, the device takes
    PyTorch's numbers of 8-bit floats and not its own."""
    if div_mode and type(dtype) is int and dtype in _NUMBERS_OF_DEVICE:
        name = _result("dtype", dtype, QUANTISED).name
        raise ArgumentError(f"dtype: is {described(dtype)}; expected {_NUMBER_OF[name]} (torch.{name}), as div_mode is "
                            "true")
    return "quint4x2" if not div_mode and _result("dtype", dtype, QUANTISED).name == "int32" else dtype


def _shapes(name: str, operator: str = "") -> Callable[..., Any]:
    """The results of an operator of the library, by the name of its schema."""
    operator = operator or name.replace("npu_", "")

    def shapes(*values: Any, **keywords: Any) -> Union[Tensor, Tuple[Tensor, ...]]:
        a = bound(getattr(torch.ops.npuquant, name).default._schema, values, keywords)
        x, argument = next(iter(vars(a).values())), next(each for each in vars(a) if each in _TYPE_ARGUMENTS)
        given: Dict[str, Any] = {"per_tensor": getattr(a, "quant_mode", None) == "pertensor"}
        dtype = getattr(a, argument)
        dtype = _packed(dtype, a.div_mode) if hasattr(a, "div_mode") else dtype
        kind = result_of(operator, argument, dtype, optional=True)
        facts = OPERATORS[operator_to(operator, kind)]
        if hasattr(a, "col_block_size"):
            _dimensions("x", x, facts.inputs[0].least, facts.inputs[0].most)
            given.update(of_arrays._block(kind, a.row_block_size, a.col_block_size, a.round_mode, a.dst_type_max))
        shape = x.shape
        if x.dtype == torch.int32 and "quint4x2" in facts.inputs[0].types:
            shape = TYPES["quint4x2"].in_values(shape)
        y = x.new_empty(TYPES[kind.name].in_words(shape), dtype=_torch_type(kind))
        others = [x.new_empty(extents(tensor.shape, shape, **given), dtype=torch.float32)
                  for tensor in facts.results[1:]]
        return (y, *others) if others else y

    return shapes


def _trans_quant_param_shape(scale: Tensor, offset: Optional[Tensor] = None, *other: Any) -> Tensor:
    shape = words_shape(tuple(scale.shape), None if offset is None else tuple(offset.shape))
    return scale.new_empty(shape, dtype=torch.int64)


def _quant_matmul_shape(*values: Tensor, **keywords: Any) -> Tensor:
    a = bound(torch.ops.npuquant.npu_quant_matmul.default._schema, values, keywords)
    if any(getattr(a, name) is not None for name in UNDEFINED):
        return quant_matmul_undefined(a)
    kind = _result("output_dtype", a.output_dtype, PRODUCTS, "int8")
    shape = check_quant_matmul(a.x1, a.x2, a.scale, a.offset, a.pertoken_scale, a.bias, kind.name)
    return a.x1.new_empty(shape, dtype=getattr(torch, kind.name))


def _quant_scatter_shape(*values: Any, **keywords: Any) -> Tensor:
    a = bound(torch.ops.npuquant.npu_quant_scatter.default._schema, values, keywords)
    quant_scatter_checks(a)
    return torch.empty_like(a.self, memory_format=torch.contiguous_format)


# ---- PyTorch's operators ---------------------------------------------------------------------------------------------


# Without the wrappers that add a name to refusals: the kernels have such a wrapper, and one more takes time.
_npu_quantize = inspect.unwrap(of_arrays.npu_quantize)
_npu_dynamic_quant = inspect.unwrap(of_arrays.npu_dynamic_quant)
_npu_dynamic_block_quant = inspect.unwrap(of_arrays.npu_dynamic_block_quant)


def _quantize(input: Any, scales: Any, zero_points: Any, dtype: Any, axis: int = 1, div_mode: bool = True, *,
              out: Any) -> Any:
    dtype = _packed(dtype, div_mode)
    y = _npu_quantize(input, scales, zero_points, dtype, axis, div_mode, out=out)
    return _typed(y, _result("dtype", dtype, QUANTISED))


def _dynamic_quant(input: Any, *, smooth_scales: Any = None, group_index: Any = None, dst_type: Any = None,
                   quant_mode: str = "pertoken", dst_type_max: float = 0.0, scale_form: Optional[str] = None,
                   out: Any) -> Any:
    kind = None if dst_type is None else result_of("dynamic_quant", "dst_type", dst_type)
    kind = kind if kind and kind.name in FLOAT8 else None
    if scale_form is None:  # with groups all versions of the device's software compute the inverse
        scale_form = "product" if kind else chosen.scale_form if group_index is None else "inverse"
    y, scale = _npu_dynamic_quant(input, smooth_scales=smooth_scales, group_index=group_index, dst_type=dst_type,
                                  quant_mode=quant_mode, dst_type_max=dst_type_max, scale_form=scale_form, out=out)
    return _typed(y, kind) if kind else y, scale


def _dynamic_block_quant(x: Any, *, dst_type: Any = 1, out: Any, **others: Any) -> Any:
    y, scale = _npu_dynamic_block_quant(x, dst_type=dst_type, **others, out=out)
    return _typed(y, result_of("dynamic_block_quant", "dst_type", dst_type)), scale


def _quant_matmul(x1: np.ndarray, x2: np.ndarray, scale: np.ndarray, **others: Any) -> np.ndarray:
    for name in UNDEFINED:
        value = others.pop(name, None)
        if value is not None:
            given = "given" if isinstance(value, (Tensor, np.ndarray, Unknown)) else described(value)
            raise NotImplementedError(f"{name}: is {given}; it selects types and groups that npuquant does not define")
    # NumPy multiplies.
    arrays = {name: array_of(value) for name, value in others.items()}
    return of_arrays.npu_quant_matmul(array_of(x1), array_of(x2), array_of(scale), **arrays)


def _sums(function: Callable[..., Any], argument: str) -> Callable[..., Any]:
    """dequant or requant, which take no None for the type of the result."""

    def on_arrays(*arrays: Any, out: Any, **keywords: Any) -> Any:
        kind = result_of(function.__name__, argument, keywords.get(argument), optional=True)
        return function(*arrays, dtype=kind.name, out=out)

    return on_arrays


def _quant_scatter(*values: Any, out: Any, **keywords: Any) -> Tensor:
    # NumPy moves the elements.
    arrays = {name: array_of(one) for name, one in keywords.items()}
    return tensor_of(of_arrays.npu_quant_scatter(*map(array_of, values), **arrays))


#: The schemas, as in op_plugin/config/op_plugin_functions.yaml of Ascend/op-plugin; scale_form, dequant and requant are
#: this package's. A ScalarType there is an int here: the schema is the same for PyTorch, but PyTorch passes on only the
#: low eight bits of a ScalarType. Behind each schema are its function on arrays, and the function that returns the
#: shapes and types of the results.
_OPERATORS: Sequence[Tuple[str, Callable[..., Any], Callable[..., Any]]] = (
    ("npu_quantize(Tensor self, Tensor scales, Tensor? zero_points, int dtype, int axis=1, bool div_mode=True)"
     " -> Tensor",
     _quantize, _shapes("npu_quantize")),
    ("npu_group_quant(Tensor x, Tensor scale, Tensor group_index, *, Tensor? offset=None, int? dst_dtype=None)"
     " -> Tensor",
     of_arrays.npu_group_quant, _shapes("npu_group_quant")),
    ("npu_trans_quant_param(Tensor scale, Tensor? offset=None, int? round_mode=0) -> Tensor",
     of_arrays.npu_trans_quant_param, _trans_quant_param_shape),
    ("npu_dynamic_quant_asymmetric(Tensor input, *, Tensor? smooth_scales=None, Tensor? group_index=None,"
     " int? dst_type=None, str quant_mode=\"pertoken\", float dst_type_max=0.0) -> (Tensor, Tensor, Tensor)",
     of_arrays.npu_dynamic_quant_asymmetric, _shapes("npu_dynamic_quant_asymmetric")),
    ("npu_dynamic_quant(Tensor input, *, Tensor? smooth_scales=None, Tensor? group_index=None, int? dst_type=None,"
     " str quant_mode=\"pertoken\", float dst_type_max=0.0, str? scale_form=None) -> (Tensor, Tensor)",
     _dynamic_quant, _shapes("npu_dynamic_quant")),
    ("npu_dynamic_block_quant(Tensor x, *, float min_scale=0.0, str round_mode=\"rint\", int dst_type=1,"
     " int row_block_size=1, int col_block_size=128, float dst_type_max=0.0) -> (Tensor, Tensor)",
     _dynamic_block_quant, _shapes("npu_dynamic_block_quant")),
    ("npu_anti_quant(Tensor x, Tensor scale, *, Tensor? offset=None, int? dst_dtype=None, int? src_dtype=None)"
     " -> Tensor",
     of_arrays.npu_anti_quant, _shapes("npu_anti_quant")),
    ("npu_quant_matmul(Tensor x1, Tensor x2, Tensor scale, *, Tensor? offset=None, Tensor? pertoken_scale=None,"
     " Tensor? bias=None, int? output_dtype=None, int? x1_dtype=None, int? x2_dtype=None,"
     " int? pertoken_scale_dtype=None, int? scale_dtype=None, int[]? group_sizes=None, Tensor? y_scale=None) -> Tensor",
     _quant_matmul, _quant_matmul_shape),
    ("npu_quant_scatter" + QUANT_SCATTER.format("", ""), _quant_scatter, _quant_scatter_shape),
    ("npu_dequant_bias(Tensor x, Tensor weight_scale, Tensor? activation_scale, Tensor? bias, *,"
     " int? output_dtype=None) -> Tensor",
     _sums(of_arrays.dequant, "output_dtype"), _shapes("npu_dequant_bias", "dequant")),
    ("dequant(Tensor x, Tensor weight_scale, Tensor? activation_scale=None, Tensor? bias=None, *,"
     " int? dtype=None) -> Tensor",
     _sums(of_arrays.dequant, "dtype"), _shapes("dequant")),
    ("requant(Tensor x, Tensor words, Tensor? bias=None, *, int? dtype=None) -> Tensor",
     _sums(of_arrays.requant, "dtype"), _shapes("requant")),
)


#: In the stand-in for torch_npu: what an operator returns for results of 8-bit floating point, which have no values.
float8_results: Optional[Callable[..., Any]] = None


def _unless_float8(name: str, kernel: Callable[..., Any], shapes: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel of an operator, whose errors name the operator."""

    @functools.wraps(kernel)
    def call(*values: Any, **keywords: Any) -> Any:
        try:
            return kernel(*values, **keywords)
        except ArgumentTypeError as error:
            if float8_results is None or error.float8 is None:
                raise
            return float8_results(name, shapes, values, keywords, error)

    return names_operator(call, name)


_is_read = _native.reads_memory  # otherwise an array is made of a tensor, or another kernel takes it


def _kernel(tensors: Sequence[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """A function on arrays as a kernel of PyTorch's; tensors names the arguments that may not be None."""
    reads, required = _native.reads, len(tensors)

    def kernel(*values: Any, **keywords: Any) -> Union[Tensor, Tuple[Tensor, ...]]:
        if reads(values, keywords, required):
            try:
                return function(*values, **keywords, out=NEW)
            except Exception:
                if all(_is_read(value) for value in (*values, *keywords.values()) if isinstance(value, Tensor)):
                    raise
        refuse_none(tensors, values)
        return function(*map(array_of, values), **{name: array_of(value) for name, value in keywords.items()}, out=NEW)

    return kernel


def _shape_kernel(names: Sequence[str], tensors: Sequence[str], shape: Callable[..., Any]) -> Callable[..., Any]:
    """A function on shapes as a kernel of PyTorch's, which runs if any tensor is on the device "meta"."""

    def kernel(*values: Any, **keywords: Any) -> Union[Tensor, Tuple[Tensor, ...]]:
        refuse_none(tensors, values)
        for name, value in (*zip(names, values), *keywords.items()):
            if isinstance(value, Tensor) and not value.is_meta:
                raise ArgumentError(f"{name}: is on {value.device}, and another argument on meta; expected one device")
        return shape(*values, **keywords)

    return kernel


def _type(argument: str, dtype: Any) -> Union[None, int, torch.dtype]:
    """The type that PyTorch takes, for one that npuquant takes, such as a name or NumPy's type. A number stays: while a
    function is traced, the number may be a symbol."""
    if dtype is None or (isinstance(dtype, _TYPES) and dtype is not _INT4 and not isinstance(dtype, bool)):
        return dtype
    name = _result(argument, dtype, {**QUANTISED, **FLOATING}).name
    return _NUMBER_OF[name] if name in FLOAT8 else getattr(torch, name)


def _for_pytorch(name: str, kind: str, value: Any) -> Any:
    """An argument for PyTorch. PyTorch's own error for an array in place of a tensor prints the array twice. None is
    left to the operator."""
    if name in _TYPE_ARGUMENTS:
        return _type(name, value)
    if kind[:6] == "Tensor" and not (value is None or isinstance(value, Tensor)
                                     or hasattr(value, "__torch_function__")):
        raise ArgumentTypeError(f"{name}: is {type(value).__name__}; expected a tensor")
    return value


# Each says whether something watches calls of operators: a compiler, a mode, a tracer, a profiler. PyTorch's dispatcher
# tells it of a call. Without a watcher, the dispatcher would only call the kernel.
_watchers: List[Any] = [
    getattr(getattr(torch, "compiler", None), "is_compiling", None if hasattr(torch, "compile") else bool),
    getattr(torch._C, "_len_torch_dispatch_stack", None),
    getattr(torch._C, "_is_torch_function_mode_enabled", None),
    getattr(torch._C, "_is_tracing", None),
    getattr(torch.autograd, "_profiler_enabled", None),
]


#: By a schema's type, the types of the values that PyTorch takes for it without a change.
_TAKEN = {"int": (int, torch.dtype), "bool": (bool,), "float": (float, int), "str": (str,)}


def _fits(kind: str, value: Any) -> bool:
    """Whether PyTorch would hand a value to the operator's kernel, which would refuse what the operator refuses."""
    if value is None or kind[:6] == "Tensor":
        return kind[-1] == "?" if value is None else _is_read(value)
    return type(value) in _TAKEN.get(kind.rstrip("?"), ())


def _function(name: str, names: Sequence[str], types: Sequence[str],
              on_arrays: Callable[..., Any]) -> Callable[..., Any]:
    """An operator as a function. It calls PyTorch's dispatcher only if something watches, or if this PyTorch cannot
    tell."""
    if None in _watchers:
        compiling = modes = function_modes = tracing = profiling = functools.partial(bool, True)
    else:
        compiling, modes, function_modes, tracing, profiling = _watchers
    operator = getattr(torch.ops.npuquant, name)
    required, reads, kinds = types.count("Tensor"), _native.reads, dict(zip(names, types))

    def dispatch(*values: Any, **keywords: Any) -> Any:
        return operator(*map(_for_pytorch, names, types, values),
                        **{name: _for_pytorch(name, kinds[name], value) for name, value in keywords.items()})

    slow = names_operator(dispatch, name)

    def call(*values: Any, **keywords: Any) -> Any:
        if not (compiling() or modes() or function_modes() or tracing() or profiling()) and (
                reads(values, keywords, required)):
            try:
                return on_arrays(*values, **keywords, out=NEW)
            except (Refusal, NpuquantError) as error:
                # The kernel says it of types: it gets numbers for them, and the stand-in takes some without values.
                is_type = str(error).partition(":")[0] in _TYPE_ARGUMENTS
                if not is_type and all(_fits(kinds[argument], value)
                                       for argument, value in (*zip(names, values), *keywords.items())):
                    if isinstance(error, Refusal):
                        error.set_operator(name)
                    raise
        return slow(*values, **keywords)

    return call


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _takes_self(function: _Function) -> _Function:
    """The same for a function whose first argument is input."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        return function(*args, **renamed(keywords, "self", "input")) if keywords else function(*args)

    return cast(_Function, call)


def _register() -> Dict[str, Callable[..., Any]]:
    """Registers the operators, and returns them as functions."""
    functions = {}
    for schema, function, shape in _OPERATORS:
        function = inspect.unwrap(function)  # of the wrapper that adds a name
        # In messages arguments have the names that they have in the functions.
        name, _, arguments = schema.replace(" self,", " input,").partition("(")
        types, names = zip(*[argument.partition("=")[0].split() for argument in arguments.partition(")")[0].split(", ")
                             if argument != "*"])
        tensors = names[:types.count("Tensor")]  # those that may not be None come first
        kernels = _kernel(tensors, function), _shape_kernel(names, tensors, shape)
        register(schema, *(_unless_float8(name, kernel, shape) for kernel in kernels))
        operator_of(schema)
        functions[name] = _function(name, names, types, function)
    return functions


_native.bind_torch(torch)
_operators = SimpleNamespace(**_register())

# ---- functions -------------------------------------------------------------------------------------------------------


@_takes_self
def npu_quantize(input: Tensor, scales: Tensor, zero_points: Optional[Tensor], dtype: Any, axis: int = 1,
                 div_mode: bool = True) -> Tensor:
    """Quantises with given scales and zero points: npuquant.npu_quantize() on tensors.

    >>> x, scales = torch.tensor([[-1.5, 0.5, 2.5]]), torch.tensor([0.5])
    >>> npu_quantize(x, scales, None, torch.qint8)
    tensor([[-3,  1,  5]], dtype=torch.int8)
    """
    return _operators.npu_quantize(input, scales, zero_points, dtype, axis, div_mode)


def npu_group_quant(x: Tensor, scale: Tensor, group_index: Tensor, *, offset: Optional[Tensor] = None,
                    dst_dtype: Any = None) -> Tensor:
    """Quantises groups of rows, each group with its own scales: npuquant.npu_group_quant() on tensors."""
    return _operators.npu_group_quant(x, scale, group_index, offset=offset, dst_dtype=dst_dtype)


def npu_trans_quant_param(scale: Tensor, offset: Optional[Tensor] = None, round_mode: Optional[int] = 0) -> Tensor:
    """Packs scales and offsets into 64-bit words: npuquant.npu_trans_quant_param() on tensors."""
    return _operators.npu_trans_quant_param(scale, offset, round_mode)


def _only_one(x: Optional[Tensor], input: Optional[Tensor]) -> Tensor:
    """The first argument of npu_dynamic_quant_asymmetric(), which has two names."""
    for name, value in (("x", x), ("input", input)):
        _for_pytorch(name, "Tensor", value)
    if (x is None) == (input is None):
        raise ArgumentTypeError("x: expected it, or input, which is another name for it; not both")
    return cast(Tensor, input if x is None else x)


_x_or_input = names_operator(_only_one, "npu_dynamic_quant_asymmetric")


def npu_dynamic_quant_asymmetric(
        x: Optional[Tensor] = None, *, smooth_scales: Optional[Tensor] = None, group_index: Optional[Tensor] = None,
        dst_type: Any = None, quant_mode: str = "pertoken", dst_type_max: float = 0.0,
        input: Optional[Tensor] = None) -> Tuple[Tensor, Tensor, Tensor]:
    """Quantises with scales and offsets found from the data: npuquant.npu_dynamic_quant_asymmetric() on tensors."""
    return _operators.npu_dynamic_quant_asymmetric(
        x if input is None and isinstance(x, Tensor) else _x_or_input(x, input), smooth_scales=smooth_scales,
        group_index=group_index, dst_type=dst_type, quant_mode=quant_mode, dst_type_max=dst_type_max)


def npu_dynamic_quant(
        input: Tensor, *, smooth_scales: Optional[Tensor] = None, group_index: Optional[Tensor] = None,
        dst_type: Any = None, quant_mode: str = "pertoken", dst_type_max: float = 0.0,
        scale_form: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """Quantises with scales found from the data, without offsets: npuquant.npu_dynamic_quant() on tensors.

    A scale_form of None is the choice of set_scale_form(), or "inverse" with group_index.
    """
    return _operators.npu_dynamic_quant(
        input, smooth_scales=smooth_scales, group_index=group_index, dst_type=dst_type,
        quant_mode=quant_mode, dst_type_max=dst_type_max, scale_form=scale_form)


def npu_dynamic_block_quant(
        x: Tensor, *, min_scale: float = 0.0, round_mode: str = "rint", dst_type: Any = 1, row_block_size: int = 1,
        col_block_size: int = 128, dst_type_max: float = 0.0) -> Tuple[Tensor, Tensor]:
    """Quantises with a scale for each block: npuquant.npu_dynamic_block_quant() on tensors."""
    return _operators.npu_dynamic_block_quant(
        x, min_scale=min_scale, round_mode=round_mode, dst_type=dst_type, row_block_size=row_block_size,
        col_block_size=col_block_size, dst_type_max=dst_type_max)


def npu_anti_quant(x: Tensor, scale: Tensor, *, offset: Optional[Tensor] = None, dst_dtype: Any = None,
                   src_dtype: Any = None) -> Tensor:
    """Dequantises int8 or int4 values: npuquant.npu_anti_quant() on tensors."""
    return _operators.npu_anti_quant(x, scale, offset=offset, dst_dtype=dst_dtype, src_dtype=src_dtype)


def npu_quant_matmul(
        x1: Tensor, x2: Tensor, scale: Tensor, *, offset: Optional[Tensor] = None,
        pertoken_scale: Optional[Tensor] = None, bias: Optional[Tensor] = None, output_dtype: Any = None,
        x1_dtype: Any = None, x2_dtype: Any = None, pertoken_scale_dtype: Any = None, scale_dtype: Any = None,
        group_sizes: Optional[Sequence[int]] = None, y_scale: Optional[Tensor] = None) -> Tensor:
    """Multiplies int8 or int4 matrices, and requantises or dequantises the sums.

    It is npuquant.npu_quant_matmul() on tensors. The arguments after output_dtype must be None: they select types and
    groups that are not defined here.
    """
    return _operators.npu_quant_matmul(
        x1, x2, scale, offset=offset, pertoken_scale=pertoken_scale, bias=bias,
        output_dtype=output_dtype, x1_dtype=x1_dtype, x2_dtype=x2_dtype,
        pertoken_scale_dtype=pertoken_scale_dtype, scale_dtype=scale_dtype, group_sizes=group_sizes, y_scale=y_scale)


@_takes_self
def npu_quant_scatter(
        input: Tensor, indices: Tensor, updates: Tensor, quant_scales: Tensor,
        quant_zero_points: Optional[Tensor] = None, axis: int = -2, quant_axis: int = -1, reduce: str = "update",
        dst_type: Any = None, round_mode: Optional[str] = "rint") -> Tensor:
    """Quantises updates, and writes them into a copy of a tensor: npuquant.npu_quant_scatter() on tensors."""
    return _operators.npu_quant_scatter(input, indices, updates, quant_scales, quant_zero_points, axis, quant_axis,
                                        reduce, dst_type, round_mode)


def npu_dequant_bias(x: Tensor, weight_scale: Tensor, activation_scale: Optional[Tensor], bias: Optional[Tensor], *,
                     output_dtype: Any = None) -> Tensor:
    """Dequantises the int32 sums of a product of matrices: dequant() under torch_npu's name."""
    return _operators.npu_dequant_bias(x, weight_scale, activation_scale, bias, output_dtype=output_dtype)


def dequant(x: Tensor, weight_scale: Tensor, activation_scale: Optional[Tensor] = None,
            bias: Optional[Tensor] = None, *, dtype: Any = None) -> Tensor:
    """Dequantises the int32 sums of a product of int8 matrices: npuquant.dequant() on tensors."""
    return _operators.dequant(x, weight_scale, activation_scale, bias, dtype=dtype)


def requant(x: Tensor, words: Tensor, bias: Optional[Tensor] = None, *, dtype: Any = None) -> Tensor:
    """Requantises the int32 sums of a product of int8 matrices: npuquant.requant() on tensors."""
    return _operators.requant(x, words, bias, dtype=dtype)
