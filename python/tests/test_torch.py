# SPDX-License-Identifier: BSD-3-Clause
"""npuquant.torch: the results of the operators on tensors, their schemas, tracing, and what is refused."""
import contextlib
import functools
import inspect
import re
import warnings

import numpy as np
import npuquant
import numpy_operators as expected
import pytest
import test_library
import test_operators
from numpy_operators import random_integers, rng

torch = pytest.importorskip("torch", reason="PyTorch is missing (Debian: python3-torch)")
import npuquant.torch as operators  # noqa: E402

with contextlib.suppress(ImportError):
    import torch._dynamo.testing
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error")
needs_compile = pytest.mark.skipif(not hasattr(torch, "compile"),
                                   reason=f"PyTorch {torch.__version__} has no torch.compile")
needs_opcheck = pytest.mark.skipif(not hasattr(torch.library, "opcheck"),
                                   reason=f"PyTorch {torch.__version__} has no torch.library.opcheck")
needs_export = pytest.mark.skipif(not hasattr(torch, "export"),
                                  reason=f"PyTorch {torch.__version__} has no torch.export")

# ---- results: the random calls of test_operators.py, on tensors ----


def as_tensor(array):
    """A tensor of the same values, of which any may want a gradient."""
    array = np.asarray(array)
    if min(array.strides, default=0) < 0:  # PyTorch has no such strides
        array = array.copy()
    signed = {"u2": "i2", "u8": "i8"}.get(array.dtype.str[1:], array.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch does not know read-only memory
        tensor = torch.from_numpy(array.view(signed))
    tensor = tensor.view(torch.bfloat16) if array.dtype == np.uint16 else tensor
    return tensor.requires_grad_() if tensor.is_floating_point() and rng.random() < 0.5 else tensor


def as_array(tensor):
    assert type(tensor) is torch.Tensor and not tensor.requires_grad
    tensor = tensor.view(torch.uint8) if "float8" in str(tensor.dtype) else tensor
    assert str(tensor.dtype)[6:] in ("int8", "uint8", "int32", "int64", "float16", "float32", "bfloat16")
    return tensor.view(torch.int16).numpy().view(np.uint16) if tensor.dtype == torch.bfloat16 else tensor.numpy()


def layout(results):
    results = results if isinstance(results, tuple) else (results,)
    return [(one.dtype, tuple(one.shape), one.numel() and one.stride()) for one in results]


def mapped(function, call):
    """A call, its tensors replaced."""
    arguments, keywords = call
    return ([function(value) if isinstance(value, torch.Tensor) else value for value in arguments],
            {name: function(value) if isinstance(value, torch.Tensor) else value for name, value in keywords.items()})


class OnTensors:
    """What test_operators.py sees as the package: its calls are made on tensors, and once more for shapes alone."""

    def __init__(self, context, fake):
        self.context, self.fake = context, fake

    def __getattr__(self, name):
        return lambda *arguments, **keywords: self.call(name, arguments, keywords)

    def call(self, name, arguments, keywords):
        if name == "dequant" and len(arguments) == 4 and rng.random() < 0.5:
            name = "npu_dequant_bias"
            keywords["output_dtype"] = keywords.pop("dtype")
        if name.endswith("_float8"):  # PyTorch's operator makes 8-bit floats, too
            name = f"npu_{name[:-len('_float8')]}"
            if "block" in name and keywords["dst_type"] in ("hifloat8", 290):
                keywords["round_mode"] = "round"
        function = getattr(operators, name)

        def converted(value):
            if isinstance(value, str) and value.startswith("torch."):
                return getattr(torch, value[len("torch."):], value[len("torch."):])  # PyTorch 1 has no 8-bit floats
            if isinstance(value, (np.bool_, np.int64)):  # an axis, the number of a type
                return value.item()
            return as_tensor(value) if isinstance(value, (np.ndarray, np.generic)) else value

        call = [converted(value) for value in arguments], {k: converted(value) for k, value in keywords.items()}
        with self.context():
            results = function(*call[0], **call[1])
            arguments, keywords = mapped(lambda tensor: tensor.to("meta"), call)
            assert layout(function(*arguments, **keywords)) == layout(results)
        if self.fake:
            with FakeTensorMode() as mode:
                arguments, keywords = mapped(mode.from_tensor, call)
                assert layout(function(*arguments, **keywords)) == layout(results)
        return tuple(map(as_array, results)) if isinstance(results, tuple) else as_array(results)


def run(monkeypatch, test, trials=40, context=contextlib.nullcontext, fake=False):
    monkeypatch.setattr(test_operators, "npuquant", OnTensors(context, fake))
    monkeypatch.setattr(test_operators, "TRIALS", trials)
    test(**dict.fromkeys(inspect.signature(test).parameters))  # which are fixtures that this module has too


# test_torch_declared.py has calls of microscaling.
RANDOM = {operator: functools.partial(test_operators.check_random_calls, operator)
          for operator in test_operators.RANDOM_CALLS if "mx_quant" not in operator}
RANDOM["quant_matmul"] = test_operators.test_quant_matmul
OTHERS = [test_operators.test_halves_saturation_and_special_values, test_operators.test_the_other_name_of_x,
          test_operators.test_values_that_the_documentation_shows, test_operators.test_round_mode_none_is_0,
          test_operators.test_special_values_of_floating_results, test_operators.test_zero_strides,
          test_operators.test_scales_of_groups_of_rows,
          test_operators.test_the_default_axis_of_one_dimension_is_the_last_when_multiplying,
          test_operators.test_blocks_and_their_least_scale, test_operators.test_empty]
HOW = {"no_grad": {"context": torch.no_grad}, "inference_mode": {"context": torch.inference_mode},
       "autocast": {"context": lambda: torch.autocast("cpu", dtype=torch.bfloat16)}, "fake tensors": {"fake": True}}


def name(test):
    return test.__name__[len("test_"):]


each_random = pytest.mark.parametrize("test", RANDOM.values(), ids=RANDOM)


@each_random
def test_random_calls(monkeypatch, test, backend, threads):
    run(monkeypatch, test)


@pytest.mark.parametrize("test", OTHERS, ids=name)
def test_other_calls(monkeypatch, test):
    run(monkeypatch, test)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_values_of_codes_are_those_of_pytorch(dtype):
    if not hasattr(torch, dtype):
        pytest.skip(f"PyTorch {torch.__version__} has no {dtype}")
    coded = torch.arange(256).to(torch.uint8).view(getattr(torch, dtype))
    values = coded.float().numpy()
    np.testing.assert_array_equal(npuquant.mx.decode(coded), values)
    if dtype == "float8_e8m0fnu":
        np.testing.assert_array_equal(npuquant.mx.encode(values, dtype), np.arange(256))
        return
    x = test_operators.near_small_floats(dtype)
    x = x[np.abs(x) <= values[np.isfinite(values)].max()]  # PyTorch does not saturate everywhere
    wanted = torch.from_numpy(x).to(coded.dtype).view(torch.uint8).numpy()
    np.testing.assert_array_equal(npuquant.mx.encode(x, dtype), wanted)


@pytest.mark.parametrize("div_mode", [True, False])
def test_small_floats(div_mode):
    """Their types, as torch_npu has them. The device divides to those of PyTorch by PyTorch's numbers only."""
    x, scales = torch.tensor([[0.3, -0.0, 500, 3.3]] * 2), torch.tensor([0.5])
    for name, numbers in (("float8_e4m3fn", (24, 292)), ("float8_e5m2", (23, 291)), ("hifloat8", (290,))):
        stored = getattr(torch, name, torch.uint8)
        array = npuquant.npu_quantize(x, scales, None, name, -1, div_mode)
        for dtype in (*numbers[:2 - div_mode], name, getattr(torch, name, name)):
            y = operators.npu_quantize(x, scales, None, dtype, -1, div_mode)
            assert y.dtype == stored and (y.view(torch.uint8).numpy() == array).all()
            meta = operators.npu_quantize(x.to("meta"), scales.to("meta"), None, dtype, -1, div_mode)
            assert layout(meta) == layout(y)
        assert npuquant.diagnose(y, "npu_quantize", x, scales, None, name, -1, div_mode).verdict == "equal"
        wanted, wanted_scale = npuquant.npu_dynamic_quant(x, dst_type=name)
        for dtype in (*numbers, name, getattr(torch, name, name)):
            y, scale = made = operators.npu_dynamic_quant(x, dst_type=dtype)
            assert y.dtype == stored and (y.view(torch.uint8).numpy() == wanted).all()
            assert (scale.numpy() == wanted_scale).all()
            assert layout(operators.npu_dynamic_quant(x.to("meta"), dst_type=dtype)) == layout(made)
        keywords = {"row_block_size": 2, "round_mode": "round" if name == "hifloat8" else "rint"}
        wanted, wanted_scale = npuquant.npu_dynamic_block_quant(x, dst_type=name, **keywords)
        for dtype in (*numbers, name, getattr(torch, name, name)):
            y, scale = made = operators.npu_dynamic_block_quant(x, dst_type=dtype, **keywords)
            assert y.dtype == stored and (y.view(torch.uint8).numpy() == wanted).all()
            assert (scale.numpy() == wanted_scale).all()
            assert layout(operators.npu_dynamic_block_quant(x.to("meta"), dst_type=dtype, **keywords)) == layout(made)
        for number in numbers[1:] if div_mode else ():
            for device in "cpu", "meta":
                says = rf"\Adtype: is torch_npu.{name} \({number}\); expected {numbers[0]} \(torch.{name}\), as div_mode is"
                with pytest.raises(ValueError, match=says):
                    operators.npu_quantize(x.to(device), scales.to(device), None, number, -1)


def test_large_tensors(monkeypatch, backend, threads):
    run(monkeypatch, test_operators.test_large)


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
@each_random
def test_random_calls_in_a_context(monkeypatch, test, how):
    run(monkeypatch, test, **how)


# ---- one call of each operator ----


def calls(rows=5):
    """Of each operator two or more, with most of the tensors that it takes: arguments and keywords."""
    generator = torch.Generator().manual_seed(rows)
    x, s = torch.randn(rows, 16, generator=generator), torch.rand(16, generator=generator) + 0.5
    per_row = torch.rand(rows, generator=generator)
    x1 = torch.randint(-128, 128, (rows, 16), dtype=torch.int8, generator=generator)
    x2 = torch.randint(-128, 128, (24, 16), dtype=torch.int8, generator=generator).t()
    sums = torch.randint(-9999, 9999, (rows, 16), dtype=torch.int32, generator=generator)
    cache = torch.zeros(3, 4, 16, dtype=torch.int8)
    words, ends = operators.npu_trans_quant_param(s, s), torch.tensor([1, rows])
    return {
        "npu_quantize": [((x.bfloat16(), s, s, torch.quint8), {}), ((x, s, None, torch.quint4x2, -1, False), {})],
        "npu_group_quant": [((x, x[:2].half(), ends), {"offset": s[:1].half(), "dst_dtype": torch.quint4x2}),
                            ((x, s.expand(2, 16), ends), {})],
        "npu_trans_quant_param": [((per_row, per_row), {}), ((s, s[:1], 1), {})],
        "npu_dynamic_quant_asymmetric": [((x,), {"smooth_scales": x[:2], "group_index": ends}),
                                         ((x.bfloat16(),), {"dst_type": 16, "quant_mode": "pertensor"})],
        "npu_dynamic_quant": [((x,), {"smooth_scales": x[:2], "group_index": ends, "scale_form": "inverse",
                                       "dst_type": torch.uint8}),
                              ((x.half(),), {"dst_type": torch.quint4x2, "quant_mode": "pertensor"}),
                              ((x,), {"smooth_scales": x[:2], "group_index": ends, "dst_type": 290,
                                      "dst_type_max": 15.0})],
        "npu_dynamic_block_quant": [((x,), {"col_block_size": 5, "min_scale": 50.0, "dst_type": torch.uint8}),
                                    ((x.bfloat16(),), {"dst_type": torch.quint4x2}),
                                    ((x,), {"dst_type": 290, "round_mode": "round", "row_block_size": 2,
                                            "col_block_size": 3, "dst_type_max": 56.0})],
        "npu_anti_quant": [((x1, s), {"offset": s, "dst_dtype": torch.bfloat16}),
                           ((sums, s[:1]), {"dst_dtype": torch.float32})],
        "npu_quant_matmul": [((x1, x2, s[:1]), {"pertoken_scale": per_row, "output_dtype": torch.bfloat16}),
                             ((x1, x2, s[:1]), {"offset": s[:1], "bias": sums[0].repeat(2)[:24]})],
        "npu_quant_scatter": [((cache, torch.tensor([3, 0]), x[:2, None].bfloat16(), s, s), {}),
                              ((cache, torch.tensor([1]).int(), x[:1, None], s.reshape(1, 16), None, 1, 2), {})],
        "npu_dequant_bias": [((sums, s, per_row, s), {"output_dtype": torch.bfloat16}), ((sums, s, None, None), {})],
        "dequant": [((sums, s, per_row, s), {"dtype": torch.float32}), ((sums, s), {})],
        "requant": [((sums, words, sums[0]), {}), ((sums, s.view(torch.int32).long()), {"dtype": torch.float16})],
    }


each_call = pytest.mark.parametrize(("name", "number"), [(name, number) for name, each in calls().items()
                                                         for number in range(len(each))])


def assert_equal(results, wanted):
    assert layout(results) == layout(wanted)
    for one, other in zip(results if isinstance(results, tuple) else (results,),
                          wanted if isinstance(wanted, tuple) else (wanted,)):
        assert torch.equal(one, other)


def test_there_is_a_call_of_every_function():
    # test_experts.py and test_torch_declared.py have the others.
    assert sorted([*calls(), "set_scale_form", *operators._DECLARED]) == sorted(operators.__all__)


@each_call
def test_pytorchs_operators_are_the_functions(name, number):
    """With numbers for types, and with PyTorch's types."""
    numbers = {torch.uint8: 0, torch.quint8: 13, torch.quint4x2: 16, torch.float16: 5, torch.float32: 6,
               torch.bfloat16: 15}
    device_numbers = {torch.uint8: 260, torch.quint8: 260, torch.quint4x2: 16, torch.float16: 257,
                      torch.float32: 256, torch.bfloat16: 283}
    arguments, keywords = calls()[name][number]
    operator, wanted = getattr(torch.ops.npuquant, name), getattr(operators, name)(*arguments, **keywords)
    assert_equal(operator(*arguments, **keywords), wanted)
    for of in (numbers, device_numbers):
        said = ([of[value] if isinstance(value, torch.dtype) else value for value in arguments],
                {name: of[value] if isinstance(value, torch.dtype) else value for name, value in keywords.items()})
        for call in (operator, getattr(operators, name)):
            assert_equal(call(*said[0], **said[1]), wanted)


@pytest.mark.parametrize("int4", ["int4", getattr(torch, "int4", "torch.int4")], ids=["name", "type"])
def test_int4_is_quint4x2(int4):
    x, ends = torch.randn(4, 16), torch.tensor([4])
    words, scale = operators.npu_dynamic_quant(x, dst_type=int4)
    assert_equal((words, scale), operators.npu_dynamic_quant(x, dst_type=torch.quint4x2))
    assert_equal(operators.npu_group_quant(x, x[:1], ends, dst_dtype=int4),
                 operators.npu_group_quant(x, x[:1], ends, dst_dtype=torch.quint4x2))
    assert_equal(operators.npu_anti_quant(words, x[0, :1], src_dtype=int4), operators.npu_anti_quant(words, x[0, :1]))


@needs_compile
def test_int4_products_of_unknown_sizes():
    """x2 as words along N, or as the transpose of words of a weight: tracing with dynamic=True decides by the shape."""
    multiply = torch.compile(operators.npu_quant_matmul, backend="aot_eager", dynamic=True, fullgraph=True)
    for rows, terms, columns in ((3, 16, 24), (5, 32, 8)):
        x1, weight = random_integers((rows, terms), "i1") >> 4, random_integers((columns, terms), "i1") >> 4
        wanted = torch.from_numpy(x1.astype("i4") @ weight.T.astype("i4"))
        left, words, right = (torch.from_numpy(expected.pack(np.ascontiguousarray(one)))
                              for one in (x1, weight, weight.T))
        for x2 in (words.t(), right):
            assert torch.equal(multiply(left, x2, torch.ones(1), output_dtype=torch.int32), wanted)


# ---- signatures ----


@pytest.mark.parametrize("name", test_operators.SCHEMAS)
def test_schemas_and_signatures_are_those_of_torch_npu(name):
    schema = torch._C.parse_schema(f"npuquant::{name}{test_operators.SCHEMAS[name]}")
    assert getattr(torch.ops.npuquant, name).default._schema == schema
    assert test_operators.signature_of(getattr(operators, name)) == test_operators.documented(name)


# ---- memory, gradients, contexts ----


def as_memory(value):
    """The address and the strides in bytes."""
    if isinstance(value, np.ndarray):
        return value.ctypes.data, value.strides
    return value.data_ptr(), tuple(stride * value.element_size() for stride in value.stride())


def test_inputs_and_results_are_not_copied(monkeypatch):
    """The library reads and writes the tensors' own memory, in its strides, of bfloat16 too."""
    seen = []
    real = npuquant._operators.run

    def recording(function, *arguments):
        seen.extend(as_memory(value) for value in arguments if isinstance(value, (np.ndarray, torch.Tensor)))
        return real(function, *arguments)

    monkeypatch.setattr(npuquant._operators, "run", recording)
    storage = torch.randn(40, 33).bfloat16()
    x, scale = storage[2::3, 1:].t(), torch.nn.Parameter(torch.rand(13).bfloat16())
    y = operators.npu_quantize(x, scale, None, torch.qint8)
    sums = torch.ones(3, 13, dtype=torch.int32)
    floats = operators.dequant(sums, scale, dtype=torch.bfloat16)
    assert seen == [as_memory(tensor) for tensor in (x, scale, y, sums, scale, floats)]


def test_results_have_no_gradient():
    """And the gradient of what is computed from them is that of everything else."""
    x = torch.nn.Parameter(torch.randn(3, 8))
    y, scale = operators.npu_dynamic_quant(x)
    assert not y.requires_grad and not scale.requires_grad
    (scale * x[:, 0]).sum().backward()
    assert torch.equal(x.grad[:, 0], scale) and not x.grad[:, 1:].any()


def test_conjugated_and_negated_views():
    x = torch.randn(3, 8, dtype=torch.complex64).conj().imag
    assert x.is_neg()
    assert_equal(operators.npu_dynamic_quant(x), operators.npu_dynamic_quant(x.clone()))


def outcome(call):
    """What a call returns, or its error."""
    try:
        results = call()
    except Exception as error:
        return type(error), str(error)
    results = results if isinstance(results, tuple) else (results,)
    return [(layout(one), None if one.is_meta else one.view(-1).tolist()) for one in results]


def assert_both_ways_are_equal(call):
    """Without and with what watches PyTorch's dispatcher, which is called only then."""
    found = outcome(call)
    with torch.autograd.profiler.profile() as profile:
        watched = outcome(call)
    assert found == watched
    assert isinstance(watched, tuple) or any("npuquant::" in event.name for event in profile.function_events)


LAYOUTS = {
    "contiguous": lambda x: x.contiguous(),
    "strided": lambda x: torch.stack([x, x + 1], -1)[..., 0],
    "with an offset": lambda x: torch.cat([x[:1], x])[1:],
    "columns first": lambda x: x.t().contiguous().t() if x.dim() == 2 else x,
    "one element": lambda x: x.flatten()[0].expand(x.shape) if x.numel() else x,
    "empty": lambda x: x[:0],
    "no dimensions": lambda x: x.flatten()[0],
    "nine dimensions": lambda x: x.reshape((1,) * (9 - x.dim()) + x.shape),
    "parameter": lambda x: torch.nn.Parameter(x, requires_grad=x.is_floating_point()),
    "wants a gradient": lambda x: x.clone().requires_grad_(x.is_floating_point()),
    "negated": lambda x: torch._neg_view(x) if x.is_floating_point() else x,
    "another type": lambda x: x.double(),
    "another layout": lambda x: x.to_sparse(),
    "meta": lambda x: x.to("meta"),
    "none": lambda x: None,
    "array": lambda x: x.detach().float().numpy(),
    **({"uint16": lambda x: x.to(torch.uint16)} if hasattr(torch, "uint16") else {}),
}


@each_call
def test_with_and_without_the_dispatcher(name, number):
    """The same results and the same errors, of every tensor in every layout."""
    arguments, keywords = calls()[name][number]
    for changed in [*range(len(arguments)), *keywords]:
        value = keywords[changed] if isinstance(changed, str) else arguments[changed]
        others = LAYOUTS.values() if isinstance(value, torch.Tensor) else [
            lambda value: None, lambda value: 1, lambda value: True, lambda value: "int8", lambda value: 99,
            lambda value: np.int8, lambda value: np.int64(1), lambda value: 1.5, lambda value: torch.tensor(1)]
        for other in others:
            given = list(arguments), dict(keywords)
            given[isinstance(changed, str)][changed] = other(value)
            assert_both_ways_are_equal(lambda: getattr(operators, name)(*given[0], **given[1]))


def test_nothing_that_watches_is_missing():
    """Without one of these names of PyTorch every call goes through the dispatcher."""
    assert None not in operators._watchers


def test_those_who_watch_see_calls():
    x, seen = torch.randn(3, 8), []

    class Functions(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), keywords=None):
            seen.append(str(function))
            return function(*arguments, **(keywords or {}))

    class Dispatched(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            seen.append(str(function))
            return function(*arguments, **(keywords or {}))

    class Subclass(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, arguments=(), keywords=None):
            seen.append(str(function))
            return super().__torch_function__(function, types, arguments, keywords)

    with Dispatched():
        operators.npu_dynamic_quant(x)
    assert any("npuquant" in call for call in seen)
    seen.clear()
    operators.npu_dynamic_quant(x.as_subclass(Subclass))
    assert any("npuquant" in call for call in seen)
    seen.clear()
    with Functions():
        torch.ops.npuquant.npu_dynamic_quant(x)
        wanted = list(seen)  # PyTorch 1 tells nothing
        operators.npu_dynamic_quant(x)
    assert seen == 2 * wanted
    assert "npuquant::npu_dynamic_quant" in str(torch.jit.trace(operators.npu_dynamic_quant, x).graph)


func = getattr(torch, "func", None) or pytest.importorskip("functorch")  # PyTorch 1.13 has it apart


def test_vmap():
    x, scales = torch.randn(3, 4, 8), torch.rand(5, 1) + 0.5
    got = func.vmap(operators.npu_dynamic_quant)(x)
    for one, results in zip(x, zip(*got)):
        assert_equal(results, operators.npu_dynamic_quant(one))
    got = func.vmap(lambda s: operators.npu_quantize(x, s, None, torch.qint8))(scales)
    assert_equal(got, torch.stack([operators.npu_quantize(x, s, None, torch.qint8) for s in scales]))


def test_functional_transforms():
    x = torch.randn(3, 8)

    def total(x):
        return operators.npu_dynamic_quant(x)[1].sum()

    assert torch.equal(func.grad(total)(x), torch.zeros(3, 8))
    assert func.jvp(total, (x,), (x,)) == (total(x), 0)
    assert func.functionalize(total)(x) == total(x)


def test_set_scale_form():
    x = torch.tensor([[3.0, 0.7], [0.3, 0.1]])
    product, inverse = (operators.npu_dynamic_quant(x, scale_form=form)[1] for form in ("product", "inverse"))
    assert not torch.equal(product, inverse)
    assert torch.equal(operators.npu_dynamic_quant(x)[1], product)
    groups = {"smooth_scales": torch.ones(1, 2), "group_index": torch.tensor([2])}
    assert torch.equal(operators.npu_dynamic_quant(x, **groups)[1], inverse)
    assert torch.equal(operators.npu_dynamic_quant(x, **groups, scale_form="product")[1], product)
    assert operators.set_scale_form("inverse") == "product"
    try:
        assert torch.equal(operators.npu_dynamic_quant(x)[1], inverse)
        assert torch.equal(operators.npu_dynamic_quant(x, scale_form="product")[1], product)
        with pytest.raises(ValueError, match=r"\Ascale_form: is 'sum'; expected 'product' or 'inverse'\Z"):
            operators.set_scale_form("sum")
    finally:
        assert operators.set_scale_form("product") == "inverse"


# ---- refusals ----


def tensors_of(name, number):
    """For each tensor of a call what its schema says of it, and the call with another value in its place."""
    arguments, keywords = calls()[name][number]
    for position, argument in enumerate(getattr(torch.ops.npuquant, name).default._schema.arguments):
        value = arguments[position] if position < len(arguments) else keywords.get(argument.name)
        if isinstance(value, torch.Tensor):
            def call(other, position=position, argument=argument):
                if position >= len(arguments):
                    return getattr(operators, name)(*arguments, **{**keywords, argument.name: other})
                return getattr(operators, name)(*arguments[:position], other, *arguments[position + 1:], **keywords)

            yield argument, value, call


@each_call
def test_refusals_name_the_argument(name, number):
    tensors = list(tensors_of(name, number))
    for argument, value, call in tensors:
        shown = {"self": "input"}.get(argument.name, argument.name)
        if (name, shown) == ("npu_dynamic_quant_asymmetric", "input"):
            shown = "x"
        wrong = [(value.double(), "float64"), (value.bool(), "bool"), (value.to_sparse(), r"\w+, sparse_coo, on cpu"),
                 (torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8), "qint8, strided, on cpu")]
        if hasattr(torch, "uint16"):
            wrong += [(value.to(torch.uint16), "uint16, strided, on cpu"),
                      (value.float().to(torch.float8_e5m2fnuz), "float8_e5m2fnuz, strided, on cpu")]
            of_python = name in ("npu_quant_matmul", "npu_quant_scatter")  # the library says it of others
            says = "is float8_e5m2, strided, on cpu, which" if of_python else "dtype is FLOAT8_E5M2;"
            with pytest.raises(RuntimeError, match=rf"\b({shown}|x): {says} "):
                call(value.float().to(torch.float8_e5m2))
        for other, found in wrong:
            missing = "" if "sparse" in found or "uint16" in found else ", which npuquant does not implement"
            what = "a strided tensor in the CPU's memory" if "sparse" in found else ""
            with pytest.raises(TypeError, match=rf"\A{shown}: is {found}{missing}; expected {what}"):
                call(other)
        others = [other.name for other, _, _ in tensors if other is not argument]
        if others:
            found = {"self": "input"}.get(others[0], others[0])
            with pytest.raises(ValueError, match=rf"\A{found}: is on cpu, and another argument on meta; expected one "):
                call(value.to("meta"))
        if not isinstance(argument.type, torch.OptionalType):
            with pytest.raises(TypeError, match=rf"\A{shown}: (is None; expected a tensor \[\w+\]\Z|expected it, or input)"):
                call(None)
        for other in ([1.5], np.ones((100, 100)), torch.int8, 1.5):
            with pytest.raises(TypeError, match=rf"\A{shown}: is {type(other).__name__}; expected a tensor \[\w+\]\Z"):
                call(other)
        with pytest.raises(ValueError, match=rf"\b({shown}|x)\b"):  # the library calls input x
            call(torch.ones((2,) * 9, dtype=value.dtype))


@pytest.mark.parametrize(
    ("name", "value", "given"),
    [("x1_dtype", 1, r"1 \(int8\)"), ("x2_dtype", 296, r"torch_npu.float4_e2m1fn_x2 \(296\)"),
     ("pertoken_scale_dtype", 6, r"6 \(float32\)"), ("scale_dtype", 293, r"torch_npu.float8_e8m0fnu \(293\)"),
     ("group_sizes", [0, 0, 32], r"\[0, 0, 32\]"),
     ("y_scale", torch.ones(1), "given")],
)
def test_what_is_not_defined_is_refused(name, value, given):
    arguments, keywords = calls()["npu_quant_matmul"][0]
    with pytest.raises(NotImplementedError, match=rf"\A{name}: is {given}; "):
        operators.npu_quant_matmul(*arguments, **keywords, **{name: value})


def test_none_is_refused_where_shapes_are_computed():
    x = torch.ones(2, 8, device="meta")
    with pytest.raises(TypeError, match=r"\Ascales: is None; expected a tensor \[\w+\]\Z"):
        operators.npu_quantize(x, None, None, torch.qint8)
    with pytest.raises(TypeError, match=r"\Ax2: is None; expected a tensor \[\w+\]\Z"):
        operators.npu_quant_matmul(x.char(), None, x[0])


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("error, says, change", [
    case for case in test_library.test_products_that_are_refused.pytestmark[0].args[1]
    if "__dlpack__" not in case[1] and "output_dtype: " not in case[1]])
def test_products_that_are_refused(error, says, change, device):
    """Where they are computed, and where only the shape is."""
    keywords = {"x1": test_library.MATRIX, "x2": np.ones((4, 5), np.int8), "scale": np.ones(1, "f4"), **change}
    keywords = {name: as_tensor(value).to(device) if isinstance(value, np.ndarray) else getattr(torch, value)
                for name, value in keywords.items()}
    says = re.escape(says if device == "cpu" else says.replace(" (or its bits as uint16)", ""))
    with pytest.raises(error, match=rf"\A{says} \[\w+\]\Z"):
        operators.npu_quant_matmul(**keywords)


@pytest.mark.parametrize("dtype",
                         [torch.float64, torch.complex64, 99, -1, 293, 513, True, "rubbish", np.float64,
                          np.dtype("i2")])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_other_results_are_refused(dtype, device):
    """Where they are computed, and where they are traced."""
    for operator, two in calls().items():
        for name in ("dtype", "dst_dtype", "src_dtype", "dst_type", "output_dtype"):
            if name not in inspect.signature(getattr(operators, operator)).parameters:
                continue
            if (name, device) == ("src_dtype", "meta"):  # the shape does not depend on it
                continue
            arguments, keywords = mapped(lambda tensor: tensor.to(device), two[1])
            if operator == "npu_quantize":
                arguments = arguments[:3]
            with pytest.raises(TypeError, match=rf"\A{name}: is .*; expected "):
                getattr(operators, operator)(*arguments, **{**keywords, name: dtype})


def test_other_values_are_refused():
    x = torch.ones(2, 8)
    for function in (operators.npu_dynamic_quant, operators.npu_dynamic_quant_asymmetric):
        with pytest.raises(ValueError, match=r"\Aquant_mode: is 'perchannel'; expected 'pertoken' or 'pertensor' \[\w+\]\Z"):
            function(x, quant_mode="perchannel")
        says = r"\Adst_type_max: is 6.0; expected 0.0(, as y is int8|: others are for types of)"
        with pytest.raises(ValueError, match=says):
            function(x, dst_type_max=6.0)
    with pytest.raises(ValueError, match=r"\Ascale_form: is 'inverse'; expected 'product', as y is hifloat8 \[\w+\]\Z"):
        operators.npu_dynamic_quant(x, dst_type=290, scale_form="inverse")
    for device in ("cpu", "meta"):
        for name, value, only in (("row_block_size", 128, "1"), ("round_mode", "floor", "'rint'"),
                                  ("dst_type_max", 6.0, "0.0")):
            with pytest.raises(ValueError, match=rf"\A{name}: is {value!r}; expected {only}, as y is int8 \[\w+\]\Z"):
                operators.npu_dynamic_block_quant(x.to(device), **{name: value})
        for dtype, value, only in ((290, "rint", "round"), (291, "round", "rint")):
            with pytest.raises(ValueError, match=rf"\Around_mode: is '{value}'; expected '{only}', as y is \w+ \["):
                operators.npu_dynamic_block_quant(x.to(device), dst_type=dtype, round_mode=value)
        with pytest.raises((ValueError, RuntimeError), match="x: has 1 dimension; expected 2 to 8"):
            operators.npu_dynamic_block_quant(x[0].to(device), dst_type=291)
    with pytest.raises(TypeError, match=r"\Ax: expected it, or input, which is another name for it; not both \[\w+\]\Z"):
        operators.npu_dynamic_quant_asymmetric(x, input=x)
    with pytest.raises(ValueError, match=r"\Ascale_form: is 'sum'; expected 'product' or 'inverse' \[\w+\]\Z"):
        operators.npu_dynamic_quant(x, scale_form="sum")
    with pytest.raises(npuquant.NpuquantError, match="round_mode"):
        operators.npu_trans_quant_param(x[0], None, 2)
    with pytest.raises(TypeError, match=r"\Adtype: is 6 \(float32\); expected int8, uint8, int32, float8"):
        operators.npu_quantize(x, x[0], None, torch.float32)
    with pytest.raises(RuntimeError, match="axis"):
        operators.npu_quantize(x, x[0], None, torch.qint8, 5)


# ---- tracing ----


def parts(call):
    """The tensors of a call, and a function that makes the call with others."""
    arguments, keywords = call
    tensors = [value for value in (*arguments, *keywords.values()) if isinstance(value, torch.Tensor)]

    def with_tensors(function, others):
        others = list(others)
        return function(*[others.pop(0) if isinstance(value, torch.Tensor) else value for value in arguments],
                        **{name: others.pop(0) if isinstance(value, torch.Tensor) else value
                           for name, value in keywords.items()})

    return tensors, with_tensors


def by_make_fx(mode):
    def trace(operator, function, tensors):
        graph = make_fx(function, tracing_mode=mode)(*tensors)
        assert [node.target for node in graph.graph.nodes if "npuquant" in str(node.target)] == [operator]
        return graph

    return trace


def by_symbols(operator, function, tensors):
    """Of what stands for a tensor and is none."""
    graph = torch.fx.symbolic_trace(lambda first: function(first, *tensors[1:]))
    return lambda *others: graph(others[0])


def by_export(operator, function, tensors):
    """With a number of rows that may be another one later."""
    class Model(torch.nn.Module):
        def forward(self, *tensors):
            return function(*tensors)

    rows = torch.export.Dim("rows")
    shapes = tuple({0: rows} if tensor.shape[0] == 5 else None for tensor in tensors)
    return torch.export.export(Model(), tuple(tensors), dynamic_shapes=(shapes,)).module()


@each_call
@pytest.mark.parametrize("trace, all_rows", [
    pytest.param(by_make_fx("real"), [5], id="make_fx-real"), pytest.param(by_make_fx("fake"), [5], id="make_fx-fake"),
    pytest.param(by_make_fx("symbolic"), [5, 9], id="make_fx-symbolic", marks=needs_compile),
    pytest.param(by_symbols, [5], id="symbolic_trace"), pytest.param(by_export, [5, 9], id="export", marks=needs_export)])
def test_tracing(name, number, trace, all_rows):
    """A program has one call of the operator, and computes what it computes, also with other rows."""
    def function(*tensors):
        return with_tensors(getattr(operators, name), tensors)

    tensors, with_tensors = parts(calls()[name][number])
    program = trace(getattr(torch.ops.npuquant, name).default, function, tensors)
    for rows in all_rows:
        tensors, with_tensors = parts(calls(rows)[name][number])
        assert_equal(program(*tensors), function(*tensors))


@needs_opcheck
@each_call
def test_pytorchs_check_of_operators(name, number):
    for wants_gradient in (False, True):
        arguments, keywords = mapped(
            lambda tensor: tensor.clone().requires_grad_(wants_gradient and tensor.is_floating_point()),
            calls()[name][number])
        torch.library.opcheck(getattr(torch.ops.npuquant, name).default, arguments, keywords)


@needs_compile
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_compile(backend, dynamic):
    """In one graph; with dynamic shapes it is compiled once, whatever the number of rows."""
    for name, two in calls().items():
        function = getattr(operators, name)
        for number in range(len(two)):
            torch._dynamo.reset()
            counter = torch._dynamo.testing.CompileCounterWithBackend(backend)
            compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, backend=counter)
            shapes = set()
            for rows in (5, 7, 12):
                arguments, keywords = calls(rows)[name][number]
                assert_equal(compiled(*arguments, **keywords), function(*arguments, **keywords))
                shapes.add(str([one.shape for one in parts((arguments, keywords))[0]]))
            assert counter.frame_count == (1 if dynamic else len(shapes))


@needs_compile
@pytest.mark.parametrize("dtype", [torch.qint8, torch.int8, 1, "int8", "torch.qint8", np.int8, npuquant.qint8])
def test_compile_with_every_way_to_say_a_type(dtype):
    torch._dynamo.reset()
    x, scale = torch.randn(3, 8), torch.rand(8)
    compiled = torch.compile(lambda x: operators.npu_quantize(x, scale, None, dtype), fullgraph=True, backend="eager")
    assert_equal(compiled(x), operators.npu_quantize(x, scale, None, torch.qint8))


class Layer(torch.nn.Module):
    """A linear layer with weights of int8, for activations that are quantised on the way."""

    def __init__(self):
        super().__init__()
        weight, scale = operators.npu_dynamic_quant(torch.randn(24, 16))
        self.weight = torch.nn.Parameter(weight, requires_grad=False)
        self.scale = torch.nn.Parameter(scale)
        self.bias = torch.nn.Parameter(torch.randn(24))

    def forward(self, x):
        x, scale = operators.npu_dynamic_quant(x * 2)
        return operators.npu_quant_matmul(x, self.weight.t(), self.scale, pertoken_scale=scale, bias=self.bias,
                                          output_dtype=torch.bfloat16) + 1


@needs_compile
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile_of_a_layer(backend):
    torch._dynamo.reset()
    layer = Layer()
    counter = torch._dynamo.testing.CompileCounterWithBackend(backend)
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=counter)
    for rows in (5, 7, 12):
        x = torch.randn(rows, 16)
        assert_equal(compiled(x), layer(x))
    assert counter.frame_count == 1


@needs_compile
def test_errors_of_compiled_functions():
    """They come when the function runs, and say what they say without compiling."""
    torch._dynamo.reset()
    compiled = torch.compile(operators.npu_dynamic_quant, backend="aot_eager")
    with pytest.raises(TypeError, match=r"\Ainput: is float64, which npuquant does not implement; expected"):
        compiled(torch.ones(2, 8, dtype=torch.float64))
