# SPDX-License-Identifier: BSD-3-Clause
"""npuquant.torch: the results of the operators on tensors, their schemas, tracing, and what is refused."""
import contextlib
import inspect
import re
import warnings

import numpy as np
import npuquant
import pytest
import test_operators
from numpy_operators import rng

torch = pytest.importorskip("torch", reason="PyTorch is missing (Debian: python3-torch)")
import npuquant.torch as operators  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

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
        function = getattr(operators, name)

        def converted(value):
            if isinstance(value, str) and value.startswith("torch."):
                return getattr(torch, value[len("torch."):])
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


RANDOM = [test_operators.test_quantize, test_operators.test_group_quant, test_operators.test_trans_quant_param,
          test_operators.test_dynamic_quant_asymmetric, test_operators.test_dynamic_quant,
          test_operators.test_anti_quant, test_operators.test_dequant, test_operators.test_requant,
          test_operators.test_quant_matmul]
OTHERS = [test_operators.test_halves_saturation_and_special_values, test_operators.test_the_other_name_of_x,
          test_operators.test_values_that_the_documentation_shows, test_operators.test_round_mode_none_is_0,
          test_operators.test_special_values_of_floating_results, test_operators.test_zero_strides,
          test_operators.test_the_default_axis_of_one_dimension_is_the_last_when_multiplying,
          test_operators.test_empty]
CONTEXTS = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode,
            "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16)}


def name(test):
    return test.__name__[len("test_"):]


@pytest.mark.parametrize("test", RANDOM, ids=name)
def test_random_calls(monkeypatch, test, backend, threads):
    run(monkeypatch, test)


@pytest.mark.parametrize("test", OTHERS, ids=name)
def test_other_calls(monkeypatch, test):
    run(monkeypatch, test)


def test_large_tensors(monkeypatch, backend, threads):
    run(monkeypatch, test_operators.test_large)


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS.keys())
@pytest.mark.parametrize("test", RANDOM, ids=name)
def test_random_calls_in_a_context(monkeypatch, test, context):
    run(monkeypatch, test, context=context)


@pytest.mark.parametrize("test", RANDOM, ids=name)
def test_random_calls_with_fake_tensors(monkeypatch, test):
    run(monkeypatch, test, fake=True)
