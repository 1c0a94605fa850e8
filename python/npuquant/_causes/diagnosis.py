# SPDX-License-Identifier: BSD-3-Clause
"""From a result that differs to the mistake that explains it."""
from __future__ import annotations

import functools
import html
import inspect
from collections.abc import Container, Iterable, Mapping
from operator import index
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from npuquant_facts.dtypes import TYPES
from npuquant_facts.operators import OPERATORS

from .. import _native, _operators
from .._arguments import BFLOAT16, shown
from .._serving.unset import mask_of
from .._tensors import INPUTS, MX, TensorLike, Unknown, codes_of, result_type, to_array
from .._threads import Kept, get_num_threads, keeping
from . import conventions, elsewhere, experts, products, remainder, reports
from .hard_inputs import Form, make

__tracebackhide__ = True  # pytest shows the line that calls the package

#: An operator of the package, or its name.
Operator = Union[str, Callable[..., Any]]
#: Where an element of y is; one index for a y of one dimension.
Place = Union[int, Tuple[int, ...]]

_INPUT_NAMES = ", ".join(dict.fromkeys(kind.name for kind in INPUTS.values()))


class Hypothesis(NamedTuple):
    """A mistake that a kernel may make."""

    name: str
    what: str  # what such a kernel does
    advice: str


class Finding(NamedTuple):
    """How many differences a hypothesis explains, or a pair of hypotheses."""

    hypotheses: Tuple[Hypothesis, ...]
    explained: int  # differing elements to which it gives the value in actual
    unexplained: int  # the other differing elements
    newly_wrong: int  # equal elements that it would change
    weight: Dict[str, float]  # in bits: prior, gained and score
    bound: Optional[float]  # the lower bound, if it is another than those that have names
    window: Optional[int]  # how many columns of another row the ranges have
    scale: Optional[float]  # the one scale for all, if the kernel takes that
    offset: Optional[float]  # the one offset that goes with it
    layout: Optional[Dict[str, Any]]  # where rows or columns really are, if the layout is wrong
    part: Optional[Dict[str, Any]]  # the only rows or columns with the mistake

    @property
    def name(self) -> str:
        return reports.name_finding((hypothesis.name for hypothesis in self.hypotheses), self.part)


class Admissible(NamedTuple):
    """How many differences the device's vector division may make, counted in units with one quotient each."""

    verdict: str  # "equal", "admissible" or "wrong"
    unit: str  # "element", also of the scales of blocks to 8-bit floats; to integers "row" or "tensor" for
    # npu_dynamic_quant, and "block" for npu_dynamic_block_quant; for row_quant "row", or "element" if its rule divides
    units: Optional[int]  # all units; this and all below are None if nothing differs
    differing: Optional[int]
    wrong: Optional[int]  # units that no quotient of the device gives
    possible: Optional[int]  # rounded quotients that can show a difference; this and the rest: None if a unit is wrong
    made: Optional[int]  # rounded quotients that are one unit in the last place off
    exact_possible: Optional[int]  # exact quotients that can show a difference
    exact_made: Optional[int]
    too_many: Optional[bool]  # more quotients are off than a device probably makes


class Comparison(NamedTuple):
    """How many elements of a result differ."""

    name: str
    elements: int
    differing: int


class Step(NamedTuple):
    """The value and the bits of a step; None if the definition, or the hypothesis, does not have the step."""

    step: str
    definition: Optional[str]
    hypothesis: Optional[str]


class Element(NamedTuple):
    """An element of a result, step by step. hypothesis is None if no finding with steps is named, and no quotient moved;
    dump is None without a dump."""

    result: str
    index: Tuple[int, ...]  # type: ignore[assignment]  # hides the method of tuples
    steps: Tuple[Step, ...]
    definition: str
    hypothesis: Optional[str]
    dump: Optional[str]


def _read(kind: Any, report: Mapping[str, Any], **parts: Any) -> Any:
    """A named tuple of what a report says under the names of its fields."""
    return kind(**{field: report.get(field) for field in kind._fields if field not in parts}, **parts)


def _element(report: Dict[str, Any]) -> Element:
    steps = tuple(_read(Step, step) for step in report["steps"])
    return _read(Element, report, index=tuple(report["index"]), steps=steps)


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in HTML."""
    def line(tag: str, cells: Sequence[Any]) -> str:
        texts = ("" if cell is None else html.escape(str(cell)) for cell in cells)
        return "<tr>" + "".join(f"<{tag}>{text}</{tag}>" for text in texts) + "</tr>"

    return "<table>" + line("th", head) + "".join(line("td", row) for row in rows) + "</table>"


def _steps_table(element: Element, hypothesis: str = "") -> str:
    """The steps of the definition, and beside them those of a hypothesis and the value of actual, if there are such."""
    lines = [*element.steps, (element.result, element.definition, element.hypothesis)]
    columns = [list(column) for column in zip(("step", "definition", hypothesis), *lines)]
    if element.hypothesis is None:
        columns.pop()
    if element.dump is not None:
        columns.append(["actual", *[None] * len(element.steps), element.dump])
    head, *rows = zip(*columns)
    return _table(head, rows)


def _place(element: Element) -> str:
    return f"{element.result}[{', '.join(map(str, element.index))}]"


class Diagnosis:
    """The result of diagnose(). Its text is the report of the command npuquant diagnose.

    Attributes:
        verdict: "equal": nothing differs. "explained": the first finding gives every element of actual that is not
            admissible, and chance does not. "admissible": all differences are within the device's division.
            "possible": the first finding gives every element, but so few decide that chance would do. "partly": the
            first finding and one rare mistake more are likelier than another cause. "none": nothing known explains
            this.
        admissible: how many differences the device's division may make; None for an operator without such a division.
        results: the number of elements that differ, for each result that was compared.
        findings: the best findings, the best first.
        first_place: the findings that explain everything, without those that are 1,000 times less likely than the first.
            Several of them give the same bits for these inputs; the inputs of hard_inputs() are meant to tell them apart.
        element: an element that differs, step by step; None if nothing differs.
    """

    def __init__(self, facts: Mapping[str, Any]):
        self._facts = facts
        said = self.to_dict()
        self.verdict: str = said["verdict"]
        self.admissible: Optional[Admissible] = said["admissible"] and _read(Admissible, said["admissible"])
        self.results: Tuple[Comparison, ...] = tuple(_read(Comparison, result) for result in said["results"])
        self.findings: Tuple[Finding, ...] = tuple(
            _read(Finding, finding, hypotheses=tuple(_read(Hypothesis, each) for each in finding["hypotheses"]))
            for finding in said["findings"])
        self.first_place = self.findings[:said["first_place"]]
        self.element = _element(said["element"]) if "element" in said else None

    def to_dict(self) -> Dict[str, Any]:
        """The JSON that the command prints with --json."""
        return reports.diagnosis_json(self._facts)

    def explain_verdict(self) -> str:
        """The bits for and against each explanation, and what the rule compares."""
        return reports.weights_text(self._facts)

    def __repr__(self) -> str:
        return reports.diagnosis_text(self._facts)

    def __bool__(self) -> bool:
        raise TypeError('a diagnosis is neither true nor false; see verdict, which is "equal" if nothing differs')

    def _repr_html_(self) -> str:
        headline, *lines = [html.escape(line) for line in reports.summary_text(self._facts).splitlines()]
        parts = [f"<p><b>{headline}</b><br>{'<br>'.join(lines)}</p>"]
        if self.findings:
            counts = [(each.name, each.explained, each.unexplained, each.newly_wrong) for each in self.findings]
            parts.append(_table(["hypothesis", "explained", "unexplained", "newly wrong"], counts))
        if self.element:
            parts += [f"<p>{_place(self.element)}</p>", _steps_table(self.element, reports.shown_name(self._facts))]
        return "".join(parts)


class Explanation:
    """The result of explain(). Its text is that of the command npuquant explain.

    Attributes:
        elements: the elements, step by step.
    """

    def __init__(self, facts: Sequence[Mapping[str, Any]]):
        self._facts = facts
        self.elements = tuple(map(_element, self.to_dict()))

    def to_dict(self) -> List[Dict[str, Any]]:
        """The JSON that the command prints with --json."""
        return [reports.element_json(element) for element in self._facts]

    def __repr__(self) -> str:
        return reports.explanation_text(self._facts)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{_place(element)}</p>" + _steps_table(element) for element in self.elements)


class Mistake(NamedTuple):
    """The number of elements of the results on which a mistake shows."""

    name: str
    elements: int
    same_as: Optional[str]  # the first mistake that gives the same results, if there is one before it


class HardInputs:
    """Inputs on which mistakes show.

    Attributes:
        operator: the name of the function.
        inputs: the arrays, by the names of the function's arguments; bfloat16 as uint16.
        arguments: the function's other arguments, as given.
        call: all arguments: npu_quantize(**hard.call), diagnose(actual, npu_quantize, **hard.call).
        mistakes: the mistakes that are possible in this call.
        seed: the seed of the inputs.
    """

    def __init__(self, operator: str, call: Dict[str, Any], inputs: Dict[str, np.ndarray], arguments: Dict[str, Any],
                 seed: int, mistakes: Sequence[Mapping[str, Any]]):
        self.operator, self.inputs, self.arguments, self.seed = operator, inputs, arguments, seed
        self.call = call
        self.mistakes: Tuple[Mistake, ...] = tuple(_read(Mistake, mistake) for mistake in mistakes)
        self._facts = mistakes

    def __repr__(self) -> str:
        return f"{self.operator}: {reports.mistakes_text(self._facts)}"

    def _repr_html_(self) -> str:
        inputs = [(name, array.dtype, array.shape) for name, array in self.inputs.items()]
        return (f"<p><b>{self.operator}</b>, seed {self.seed}</p>" + _table(["input", "dtype", "shape"], inputs)
                + _table(["mistake", "elements", "same as"], self.mistakes))


def function_of(operator: str) -> Callable[..., Any]:
    """The function of the package for an operator of _native."""
    return getattr(_operators, f"npu_{operator}", None) or getattr(_operators, operator)


#: The functions of the package, by their names.
_FUNCTIONS = {**{function.__name__: function for function in map(function_of, (*OPERATORS, "quant_matmul"))},
              **experts.FUNCTIONS}


@functools.lru_cache(maxsize=None)
def _steps() -> Dict[str, Tuple[str, ...]]:
    """The functions, with the operators of _native whose steps they have. Those for experts have their own."""
    to_float8 = {name: [each for each in OPERATORS if each == f"{name}_float8"] for name in OPERATORS}
    return {**{function_of(name).__name__: (*reports.operators_of(name), *to_float8.get(name, ()))
               for name in (*OPERATORS, "quant_matmul")},
            **{name: (name,) for name in experts.FUNCTIONS}}


def _function(operator: Operator, but: Container[str] = ()) -> Callable[..., Any]:
    functions = {name: function for name, function in _FUNCTIONS.items() if name not in but}
    for name, function in functions.items():
        if operator is function or (isinstance(operator, str) and operator == name):
            return function
    raise ValueError(f"operator: is {shown(operator)}; expected one of {', '.join(sorted(functions))}, or its name")


def _keep(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tuple[Any, Kept]:
    """Calls an operator; returns its result, and the call whose steps the result comes from."""
    if kwargs.get("out") is not None:
        raise TypeError("out: is given; expected None, as the results are looked at only")
    with keeping() as kept:
        result = function(*args, **kwargs)
    steps = [call for call in kept if call.name in _steps()[function.__name__]]
    if len(steps) != 1:  # both are calls of npu_quant_matmul()
        if result.dtype == np.int32:
            raise ValueError("output_dtype: is int32, whose sums have no steps behind them; expected another type")
        raise ValueError("bias: has a row for each batch; expected one dimension, so take the batches one by one")
    return result, steps[0]


def _take_actual(argument: str, actual: Any, ours: np.ndarray, name: str = "float32",
                 scales: Optional[conventions.Scales] = None) -> np.ndarray:
    """A kernel's result, as the package returns it. name: that of its type, if NumPy may lack it; scales: if it has the
    scales of groups."""
    array = to_array(argument, codes_of(actual, name))
    if scales and isinstance(array, np.ndarray) and array.dtype == ours.dtype:
        array = scales.paired(array)
    hint = scales.hint(array, str(array.dtype)) if scales else ""
    if isinstance(array, Unknown) or str(array.dtype) != str(ours.dtype):
        expected = BFLOAT16 if ours.dtype == np.uint16 else ours.dtype
        expected = f"{name} (or its codes as uint8)" if TYPES[name].has_codes else expected
        packed = (isinstance(array, np.ndarray) and array.dtype == np.int32 and array.ndim > 0
                  and ours.dtype.itemsize == 1 and TYPES["quint4x2"].in_values(array.shape) == ours.shape)
        hint = "; words of eight int4 are the result of quint4x2" if packed else hint
        raise TypeError(f"{argument}: is {array.dtype}; expected {expected}{hint}")
    if array.shape != ours.shape:
        alone = f", or {scales.alone(scales.block)} with a scale for each group" if scales else ""
        raise ValueError(f"{argument}: has the shape {array.shape}; expected {ours.shape}{alone}{hint}")
    return np.require(array, requirements=("C", "ALIGNED"))  # as the extension reads it


def _call_and_actual(actual: Any, operator: Operator, args: Sequence[Any],
                     kwargs: Mapping[str, Any]) -> Tuple[Kept, Tuple[np.ndarray, ...], Tuple[Optional[np.ndarray], ...]]:
    """The call that is kept, its results, and a kernel's results as _native compares them."""
    function = _function(operator)
    result, kept = _keep(function, args, kwargs)
    ours = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    others = [tensor.types[0] for tensor in OPERATORS[kept.name].results[1:]] if kept.name in OPERATORS else []
    names = [kept.result.name if kept.arguments else "float32", *others, *["float32"] * len(ours)]
    if isinstance(result, (tuple, list)):
        if isinstance(result, list) and len(result) == 1 and not isinstance(actual, (tuple, list)):
            actual = [actual]  # the array that the list holds
        if not isinstance(actual, (tuple, list)) or len(actual) != len(result):
            raise TypeError(f"actual: is {type(actual).__name__}; expected a tuple of {len(result)}, as "
                            f"{function.__name__}() returns, with None for what is not compared")
        if all(each is None for each in actual):
            raise ValueError("actual: has None only; expected an array or more")
        scales = None
        if kept.name == "dynamic_mx_quant":
            given = inspect.signature(function).bind(*args, **kwargs).arguments
            scales = conventions.Scales.of(result[0], kept.result.elements, given)
        arrays = tuple(None if each is None else
                       _take_actual(f"actual[{i}]", each, result[i], names[i], scales if i else None)
                       for i, each in enumerate(actual))
    else:
        arrays = (_take_actual("actual", actual, result, names[0]),)
    return kept, ours, arrays


def diagnose(actual: Union[TensorLike, Sequence[Optional[TensorLike]]], operator: Operator, /, *args: Any,
             **kwargs: Any) -> Diagnosis:
    """Compares a kernel's result with an operator's, and looks for the mistake that explains the differences.

    If results differ, diagnose() computes the operator again under each hypothesis: one change of one step. If no
    hypothesis explains all differences, it tries pairs. set_num_threads() chooses the number of threads.

    Args:
        actual: the kernel's result, an array or tensor of the type and shape of the operator's. For an operator with
            several results, a tuple, with None for each result that is not compared.
        operator: a function of this package, or its name. int32 sums of npu_quant_matmul() have no steps.
            For the operators of a mixture of experts, neither pairs nor parts of the result are tried.
        args, kwargs: the arguments of the operator.

    >>> x = np.arange(128, dtype=np.float32) / 2
    >>> half_away = np.floor(x + 0.5).astype(np.int8)
    >>> found = diagnose(half_away, "npu_quantize", x, np.ones(1, np.float32), None, np.int8)
    >>> found.verdict, found.findings[0].name
    ('explained', 'half-away')
    """
    kept, ours, arrays = _call_and_actual(actual, operator, args, kwargs)
    function = _function(operator)
    if function.__name__ in experts.FUNCTIONS:
        masks = [mask_of(each) for each in ours]
        return Diagnosis(experts.diagnose(function.__name__, kept.call, ours, arrays, masks))
    facts: Mapping[str, Any] = _native.diagnose(kept.call, arrays, get_num_threads())
    given = inspect.signature(function).bind(*args, **kwargs)
    given.apply_defaults()
    arguments: Mapping[str, Any] = given.arguments
    if function is _operators.npu_quant_matmul:  # from here on it is the step after the product
        facts = products.weigh(facts, kept, arguments, arrays[0])
        function = function_of(kept.name)
        arguments = {**dict(zip(inspect.signature(function).parameters, kept.arguments[:-2])),
                     "dtype": facts["results"][0]["dtype"]}
    call = remainder.Call(function, arguments, ours, kept.result.name, OPERATORS[facts["operator"]])
    facts = conventions.add(facts, call, arrays) if call.operator.name == "dynamic_mx_quant" else facts
    return Diagnosis(_conclude(facts, call, arrays))


def _conclude(facts: Mapping[str, Any], call: remainder.Call,
              actual: Sequence[Optional[np.ndarray]]) -> Mapping[str, Any]:
    """With words for what the dump holds. Words for all that differs are better than a finding that leaves a part."""
    words = ([*elsewhere.words(call, actual), *conventions.words(facts)] if facts["verdict"] in ("none", "partly") else [])
    if words and facts["verdict"] == "partly":
        found = _conclude({**facts, "verdict": "none", "element": {**facts["element"], "hypothesis": None},
                           "remainder": {**facts["remainder"], "expected": (None,) * 3}}, call, actual)
        if found["verdict"] != "none":
            return found
        words = []
    return remainder.conclude({**facts, "remainder": remainder.describe(facts, call, actual, words)})


def admission_lines(actual: Any, operator: Operator, /, **kwargs: Any) -> Iterator[str]:
    """The command's lines about differences that the device's division may make."""
    kept, _, arrays = _call_and_actual(actual, operator, (), kwargs)
    return reports.admission_lines(_native.admission(kept.call, arrays, get_num_threads()))


def explain(operator: Operator, /, *args: Any, at: Union[Place, List[Place]], **kwargs: Any) -> Explanation:
    """Shows every step of an element of an operator's first result, with its value and its bits.

    Args:
        operator, args, kwargs: as for diagnose().
        at: the element: a tuple of indices, or an index for a result of one dimension. In words of int4 the last index
            counts int4. A list of them means several elements.

    >>> explain("npu_quantize", np.array([0.5, 5], np.float32), np.array([2], np.float32), None, np.int8, 0, at=1)
    y[1]
      x                               5 (0x40A00000)
      scale                           2 (0x40000000)
      x / scale                       2.5 (0x40200000)
      round                           2
      saturate                        2
      y                               2
    """
    function = _function(operator)
    result, kept = _keep(function, args, kwargs)
    result = tuple(result) if isinstance(result, list) else result
    shape = (result[0] if isinstance(result, tuple) else result).shape
    shape = kept.result.in_values(shape) if kept.arguments else shape
    elements = []
    for place in at if isinstance(at, list) else [at]:
        indices = place if isinstance(place, tuple) else (place,)
        if len(indices) != len(shape):
            raise ValueError(f"at: is {shown(place)}; expected an index for each dimension of {shape}")
        try:
            element = tuple(range(extent)[i] for extent, i in zip(shape, indices))
        except TypeError:
            raise TypeError(f"at: is {shown(place)}; expected a tuple of integers, or a list of such tuples") from None
        except IndexError:
            raise IndexError(f"at: is {place}; expected an index of an array of the shape {shape}") from None
        if function.__name__ in experts.FUNCTIONS:
            elements.append(experts.explain(function.__name__, kept.call, element))
        else:
            elements.append(_native.explain(kept.call, int(np.ravel_multi_index(element, shape)) if shape else 0))
    return Explanation(elements)


def hypotheses_table() -> List[Tuple[Dict[str, str], List[str]]]:
    """All hypotheses, each with the operators that it is for."""
    return [(conventions.named(hypothesis) if "dynamic_mx_quant" in operators else hypothesis, operators)
            for hypothesis, operators in _native.hypotheses() + products.HYPOTHESES]


def hypotheses(operator: Operator) -> Tuple[Hypothesis, ...]:
    """The mistakes that diagnose() knows of an operator.

    The types, and the arguments that are given, decide which mistakes are possible in a call.

    >>> hypotheses("npu_quantize")[0].what
    'leaves the last columns of a row untouched'
    """
    function = _function(operator).__name__
    if function in experts.FUNCTIONS:
        return tuple(_read(Hypothesis, facts) for facts in experts.causes_of(function))
    return tuple(dict.fromkeys(_read(Hypothesis, hypothesis)
                               for name in (function.replace("npu_", ""), *_steps()[function])
                               for hypothesis, operators in hypotheses_table() if name in operators))


def _seed(seed: Any) -> int:
    try:
        number = index(seed)
    except TypeError:
        raise TypeError(f"seed: is {type(seed).__name__}; expected an integer") from None
    if not 0 <= number < 2**64:
        raise ValueError("seed: is negative or has more than 64 bits; expected a uint64")
    return number


def hard_inputs(operator: Operator, shape: Sequence[int], *, dtypes: Optional[Mapping[str, Any]] = None,
                without: Union[str, Iterable[str]] = (), seed: int = 1, **kwargs: Any) -> HardInputs:
    """Makes inputs of an operator on which the known mistakes show, and differ from one another.

    Random inputs seldom have the values on which a mistake shows. The attribute mistakes of the result says how many
    elements each mistake changes, and which mistakes give the same results.

    Args:
        operator: a function of this package, or its name. In place of npu_quant_matmul() take dequant() or requant().
        shape: the shape of the first input. For words of int4 the last extent counts int4.
        dtypes: types of inputs by the names of the arguments; the others have their usual types.
        without: the name of an input that is None, or several names. All other inputs are made.
        seed: equal seeds give equal inputs.
        kwargs: the other arguments of the operator, such as dtype.

    >>> import npuquant
    >>> hard = hard_inputs("npu_quantize", (16, 64), dtypes={"input": np.float16}, dtype=np.int8)
    >>> sorted(hard.inputs)
    ['input', 'scales', 'zero_points']
    >>> diagnose(npuquant.npu_quantize(**hard.call), "npu_quantize", **hard.call).verdict
    'equal'
    """
    function = _function(operator, but=experts.FUNCTIONS)
    name = function.__name__
    if function is _operators.npu_quant_matmul:
        raise ValueError(f"operator: is {name}; expected what follows its sums: {' or '.join(_steps()[name])}")
    optional = {tensor.npu_name: tensor.use == "optional" for tensor in OPERATORS[_steps()[name][0]].inputs}
    for given in kwargs:
        if given in optional or given == "out":
            raise TypeError(f"{given}: is given; expected none, as hard_inputs() makes it")
    types: Dict[str, Optional[str]] = dict.fromkeys(optional, "")
    if dtypes is not None and not isinstance(dtypes, Mapping):
        raise TypeError(f"dtypes: is {type(dtypes).__name__}; expected a dictionary of types by names of arguments")
    for argument, dtype in (dtypes or {}).items():
        if argument not in optional:
            raise ValueError(f"dtypes: has {shown(argument)}; expected names of {', '.join(optional)}")
        if "READS_CODES" in OPERATORS[_steps()[name][0]].traits:
            raise ValueError(f"dtypes: has {shown(argument)}; expected none, as src_type says what codes x has")
        types[argument] = result_type("dtypes", dtype, INPUTS, _INPUT_NAMES).name
    if not isinstance(without, Iterable):
        raise TypeError(f"without: is {type(without).__name__}; expected a name of an argument, or a tuple of names")
    removable = [argument for argument, may_be_none in optional.items() if may_be_none]
    for argument in (without,) if isinstance(without, str) else without:
        if argument not in removable:
            raise ValueError(f"without: has {shown(argument)}; expected names of {', '.join(removable)}")
        types[argument] = None
    seed = _seed(seed)
    settings = {parameter.name: parameter.default for parameter in inspect.signature(function).parameters.values()}
    settings.update(kwargs)  # what is wrong with them, the operator says
    if "src_type" in settings:
        types["x"] = result_type("src_type", settings["src_type"], MX).name
    form = Form(_steps()[name][0], shape, types, settings)
    call = {**dict.fromkeys(optional), **kwargs}

    def keep(inputs: Dict[str, np.ndarray]) -> Tuple[Any, Any, str]:
        results, kept = _keep(function, (), {**call, **inputs})
        return results if isinstance(results, tuple) else (results,), kept.call, kept.result.name

    _, kept = _keep(function, (), {**call, **form.arrays({})})  # what the library refuses, it says
    form = Form(kept.name, shape, types, settings)
    with np.errstate(all="ignore"):
        maker = make(form, kept.result.name, seed, keep)
    inputs = form.arrays(maker.stored)
    names = [hypothesis["name"] for hypothesis, _ in _native.hypotheses()]
    mistakes = [{"name": names[number], "elements": changed, "same_as": names[same] if changed and same != number else None}
                for number, changed, same in maker.mistakes]
    return HardInputs(name, {**call, **inputs}, inputs, kwargs, seed, mistakes)
