# SPDX-License-Identifier: BSD-3-Clause
"""The stand-in for torch_npu: what install() changes, what uninstall() puts back, and what scripts find in between."""
import importlib
import importlib.metadata as metadata
import importlib.util
import inspect
import io
import os
import pickle
import pkgutil
import subprocess
import sys
import threading
import types
import unittest.mock
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch cannot be imported (Debian: python3-torch)")

import npuquant  # noqa: E402
import npuquant.torch  # noqa: E402
from npuquant import torch_npu as stand_in  # noqa: E402
from npuquant.torch_npu import _install  # noqa: E402

PYTORCH_2 = hasattr(torch, "compile")
needs_pytorch_2 = pytest.mark.skipif(not PYTORCH_2, reason="PyTorch 1 does not have it")
NAMES_OF_CPU = ("npu", "npu:0", "npu:1")


@pytest.fixture
def installed():
    stand_in.install()
    yield
    stand_in.uninstall()


@pytest.fixture(autouse=True)
def leave_no_trace():
    yield
    stand_in.uninstall()


def run(*args, **options):
    """Runs Python in a fresh process."""
    return subprocess.run([sys.executable, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=300, **options)


# ---- install() and uninstall() ---------------------------------------------------------------------------------------


class State:
    """What the stand-in may change: own attributes (an inherited one is none), modules, PyTorch's list of loaders."""

    def __init__(self):
        import torch.cuda.amp

        owners = (torch, torch.fft, torch.nested, torch.Tensor, torch.nn.Module,
                  torch.nn.parameter.UninitializedTensorMixin, torch.cuda, torch.cuda.amp, torch.autocast, torch.ops,
                  torch.serialization, torch.device, torch.Generator, torch.version, torch.distributed,
                  torch.library.Library, torch._C, getattr(torch.utils, "_device", torch))
        self.values = {f"{owner.__name__}.{name}": value for owner in owners for name, value in vars(owner).items()}
        self.values.update({f"sys.modules[{name}]": module for name, module in sys.modules.items()
                            if name.startswith(("torch_npu", "torchair", "torch.npu", "torch.cuda"))})
        self.values.update({f"TorchScript {number}: {name}": name
                            for number, name in torch.jit._builtins._get_builtin_table().items()})
        self.values.update({f"finder {number}": finder for number, finder in enumerate(sys.meta_path)})
        self.values.update({f"loader {number}": loader
                            for number, loader in enumerate(torch.serialization._package_registry)})

    def changes_to(self, other):
        missing = object()
        return sorted(name for name in {**self.values, **other.values}
                      if self.values.get(name, missing) is not other.values.get(name, missing))


@pytest.fixture
def before():
    """What there is before the test, and again after it."""
    state = State()
    yield state
    assert state.changes_to(State()) == []


def test_import_changes_nothing(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys, torch, torch.cuda.amp\n" + inspect.getsource(State) +
                       "before = State()\n"
                       "import npuquant.torch_npu\n"
                       "print([name for name in before.changes_to(State()) if 'npuquant' not in name])\n")
    ran = run(program)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "[]\n"


def test_uninstall_puts_everything_back(before):
    for _ in range(2):
        stand_in.install()
        changed = before.changes_to(State())
        stand_in.uninstall()
        assert before.changes_to(State()) == []
        for name in ("torch.zeros", "Tensor.npu", "Tensor.to", "Tensor.cpu", "Tensor.is_npu", "Module.npu", "torch.npu",
                     "torch.device", "torch.compile", "torch.version.cann", "torch.distributed.is_hccl_available",
                     "Library.__init__", "Library.impl", "torch.ops.npu", "sys.modules[torch_npu]",
                     "sys.modules[torchair]", "sys.modules[torchair.scope]", "sys.modules[torch_npu._C]",
                     "sys.modules[torch_npu.npu.utils]", "sys.modules[torch.npu]"):
            assert name in changed
    assert "Tensor.to" not in before.values  # it is inherited, and is so again
    assert not hasattr(torch.Tensor, "npu") and not hasattr(torch, "npu")


def test_twice_is_as_once(before):
    stand_in.install()
    once = State()
    stand_in.install()
    assert once.changes_to(State()) == []
    stand_in.uninstall()
    assert before.changes_to(State()) == []
    stand_in.uninstall()


def test_failing_install_changes_nothing(before, monkeypatch):
    monkeypatch.delattr(torch.serialization, "register_package")
    with pytest.raises(AttributeError):
        stand_in.install()
    with pytest.raises(ValueError, match="scale_form: is 'neither'"):
        stand_in.install("neither")


PRIVATE_NAMES = ["torch.jit._builtins._get_builtin_table",
                 "torch.nn.parameter.UninitializedTensorMixin._allowed_methods"]
if PYTORCH_2:
    PRIVATE_NAMES += ["torch._dynamo.trace_rules.get_torch_obj_rule_map", "torch.utils._device._device_constructors",
                      "torch._C._dispatch_key_for_device"]


@pytest.mark.parametrize("name", PRIVATE_NAMES)
def test_without_a_private_name(monkeypatch, name):
    """Other versions of PyTorch may not have it."""
    if name.startswith(("torch._dynamo", "torch.utils")):
        importlib.import_module(name.rpartition(".")[0])
    monkeypatch.delattr(name)
    stand_in.install()
    assert torch.zeros(2, device="npu").npu().tolist() == [0, 0]
    stand_in.uninstall()
    assert not hasattr(torch, "npu")


def test_torch_npu_itself_is_refused(before, monkeypatch):
    real = types.ModuleType("torch_npu")
    real.__file__ = "torch_npu/__init__.py"
    monkeypatch.setitem(sys.modules, "torch_npu", real)
    with pytest.raises(RuntimeError, match="torch_npu is imported already"):
        stand_in.install()


@pytest.mark.parametrize("kind, mock", [("MagicMock", unittest.mock.MagicMock()),
                                        ("ModuleType", types.ModuleType("torch_npu")),
                                        ("SimpleNamespace", types.SimpleNamespace()), ("NoneType", None)])
def test_mocks_are_named(before, monkeypatch, kind, mock):
    """Before install() and after it. Mocks of other modules give way to the stand-in's."""
    says = rf'^mocks are .*: sys\.modules\["torch_npu"\] \({kind}\)\. Remove'
    monkeypatch.setitem(sys.modules, "torch_npu", mock)
    with pytest.raises(RuntimeError, match=says):
        stand_in.install()
    monkeypatch.undo()
    assert before.changes_to(State()) == []
    with monkeypatch.context() as context:
        context.setitem(sys.modules, "torch_npu._C", mock)
        stand_in.install()
        import torch_npu._C
        assert torch_npu._C._NPUTaskGroupHandle and not _install.mocks()
        stand_in.uninstall()
    stand_in.install()
    with monkeypatch.context() as context:
        context.setitem(sys.modules, "torch_npu", mock)
        with pytest.raises(RuntimeError, match=says):
            stand_in.install()
    stand_in.uninstall()


def test_places_of_mocks(installed, monkeypatch):
    """Modules that the stand-in does not have are no place, nor are its operators."""
    monkeypatch.setitem(sys.modules, "torch_npu._inductor", unittest.mock.MagicMock())
    monkeypatch.setattr("torch_npu.npu_quantize", unittest.mock.MagicMock())
    monkeypatch.setattr("torch.npu.Stream", unittest.mock.MagicMock())
    monkeypatch.delitem(sys.modules, "torch_npu.utils")
    assert _install.mocks() == []
    monkeypatch.setattr("torch.npu", types.SimpleNamespace())
    monkeypatch.setitem(sys.modules, "torch_npu._C", types.ModuleType("torch_npu._C"))
    monkeypatch.setitem(sys.modules, "torchair", sys.modules["json"])
    assert _install.mocks() == ['sys.modules["torch_npu._C"] (ModuleType)', "torch.npu (SimpleNamespace)"]


def test_another_torchair_is_put_back(monkeypatch):
    other = types.ModuleType("torchair")
    monkeypatch.setitem(sys.modules, "torchair", other)
    stand_in.install()
    assert sys.modules["torchair"] is not other
    stand_in.uninstall()
    assert sys.modules["torchair"] is other


def test_threads(before):
    failures = []

    def work():
        try:
            for _ in range(20):
                stand_in.install()
                stand_in.uninstall()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_scale_form():
    x = torch.tensor([[0.1, 0.2, 0.37]])
    forms = {}
    for form, version in (("product", "9.0.0"), ("inverse", "8.5.0")):
        stand_in.install()
        stand_in.install(form)
        assert torch.version.cann == version
        assert npuquant.torch.set_scale_form(form) == form
        import torch_npu
        forms[form] = [torch_npu.npu_dynamic_quant(x)[1].item(),
                       npuquant.npu_dynamic_quant(x.numpy(), scale_form=form)[1].item()]
        stand_in.uninstall()
        assert npuquant.torch.set_scale_form("product") == "product"
    assert forms["product"][0] == forms["product"][1] and forms["inverse"][0] == forms["inverse"][1]


@pytest.mark.parametrize("name, other", [
    ("torch_npu.npu", "torch.npu"), ("torch_npu.npu.amp.autocast", "torch.npu.amp.autocast"),
    ("torch_npu._C._npu_get_soc_version", "torch.npu.get_soc_version"),
    ("torch_npu.npu.streams.Event", "torch.npu.Event"),
    ("torch_npu.npu.utils.get_soc_version", "torch.npu.get_soc_version"),
    ("torch_npu.npu.memory.max_memory_allocated", "torch.npu.max_memory_allocated"),
    ("torch_npu.dynamo.torchair", "torchair"),
    ("torchair.CompilerConfig", "torchair.configs.compiler_config.CompilerConfig"),
    ("torchair.logger", "torchair.core.utils.logger"),
    ("torchair.inference.cache_compile", "torch_npu.dynamo.torchair.inference.cache_compile"),
])
def test_imports(installed, name, other):
    """One object by two names, and from modules that are imported by their names."""
    found = []
    for module, _, last in (each.rpartition(".") for each in (name, other)):
        names = {}
        exec(f"import {module}\nfrom {module} import {last}" if module else f"import {last}", names)
        found.append(names[last])
    assert found[0] is found[1]


def test_names_of_the_package(installed):
    import torch_npu

    assert torch_npu is stand_in and torch_npu.__version__ == torch.__version__.partition("+")[0]
    assert set(torch_npu.__all__) <= set(dir(torch_npu)) and set(torch.npu.__all__) <= set(dir(torch.npu))
    assert isinstance(torch_npu._C._NPUTaskGroupHandle, type)  # in annotations


def specs_of_others():
    """What finds the stand-in, and a module of its name, without install()."""
    return (stand_in.__spec__, stand_in.npu.__spec__, importlib.util.find_spec("torch_npu"),
            importlib.util.find_spec("torchair"))


@pytest.mark.parametrize("name", ["torch_npu", "torch_npu.npu", "torch.npu", "torch_npu.contrib", "torch_npu.profiler",
                                  "torchair", "torchair.configs.compiler_config", "torch_npu.dynamo.torchair",
                                  "torch_npu._C._distributed_c10d", "torch_npu.utils.collect_env",
                                  "torch_npu.utils.cpp_extension"])
def test_specs_of_modules(name, recwarn):
    former = specs_of_others()
    for _ in range(2):
        stand_in.install()
        module, spec = importlib.import_module(name), importlib.util.find_spec(name)
        assert spec is module.__spec__ and spec.submodule_search_locations == module.__path__
        assert spec.name in (name, name.replace("torch.", "torch_npu."), name.replace("torch_npu.dynamo.", ""))
        contents = dict(vars(module))
        assert importlib.reload(module) is module and vars(module) == contents
        del sys.modules[spec.name]
        assert importlib.import_module(spec.name) is module and vars(module) == contents
        stand_in.uninstall()
        assert specs_of_others() == former
    assert not recwarn.list


def test_spec_of_a_module_in_a_file(installed):
    assert importlib.util.find_spec("torch_npu.contrib.transfer_to_npu").has_location
    assert importlib.util.find_spec("torch_npu").origin == stand_in.__file__
    assert [found.name for found in pkgutil.iter_modules(sys.modules["torch_npu.contrib"].__path__)] == ["transfer_to_npu"]
    assert importlib.util.find_spec("torch_npu.unheard_of") is None


def test_distribution(tmp_path):
    names = "torch_npu", "torch-npu", "Torch.NPU"
    stand_in.install()
    for name in names:
        assert metadata.version(name) == metadata.distribution(name).version == stand_in.__version__
    found = metadata.distribution("torch_npu")
    assert (found.metadata["Name"], found.files, list(found.entry_points)) == ("torch-npu", None, [])
    assert found.locate_file("npu.py").samefile(stand_in.npu.__file__)
    assert [one.metadata["Name"] for one in metadata.distributions()].count("torch-npu") == 1
    assert list(metadata.distributions(path=[str(tmp_path)])) == [] and metadata.version("pytest") == pytest.__version__
    stand_in.uninstall()
    for name in names:
        with pytest.raises(metadata.PackageNotFoundError):
            metadata.version(name)


# ---- types and operators ---------------------------------------------------------------------------------------------

ONE = torch.ones(1)


def test_types_of_the_device(installed):
    """By the names and numbers of torch_npu/csrc/custom_dtype there, and aclDataType of CANN."""
    import torch_npu
    from torch_npu import float4_e1m2fn_x2, float8_e8m0fnu

    assert (float4_e1m2fn_x2, float8_e8m0fnu, torch_npu.hifloat8, torch_npu.float4_e2m1fn_x2) == (297, 293, 290, 296)
    assert (torch_npu.int8, torch_npu.int4, torch_npu.bfloat16, torch_npu.float8_e4m3fn) == (258, 285, 283, 292)
    assert all(isinstance(getattr(torch_npu, name), int) for name in ("bool", "float6_e2m3", "float6_e3m2", "string"))

    x, words = torch.randn(2, 8), torch.ones(2, 1, dtype=torch.int32)
    for one, other in ((torch_npu.npu_quantize(x, ONE, None, torch_npu.int8, -1, False),
                        torch_npu.npu_quantize(x, ONE, None, torch.qint8, -1, False)),
                       (torch_npu.npu_dynamic_quant(x, dst_type=torch_npu.int8)[0], torch_npu.npu_dynamic_quant(x)[0]),
                       (torch_npu.npu_anti_quant(words, ONE, dst_dtype=torch_npu.bfloat16, src_dtype=torch_npu.int4),
                        torch_npu.npu_anti_quant(words, ONE, dst_dtype=torch.bfloat16))):
        assert one.dtype == other.dtype and torch.equal(one, other)


# A number of a ScalarType, as dst_dtype of npu_group_quant is, may not lose what it has beyond eight bits: 257 - 256 is
# PyTorch's int8.
@pytest.mark.parametrize("name", ["float6_e3m2", "float4_e2m1fn_x2", "float16", "int4"])
@pytest.mark.parametrize("device", ["npu", "meta"])
def test_types_that_are_refused(installed, name, device):
    x, rows, number = torch.ones(2, 8, device=device), torch.tensor([2], device=device), getattr(stand_in, name)
    for argument, call in (("dtype", lambda: stand_in.npu_quantize(x, x[0], None, number, -1, False)),
                           ("dst_type", lambda: stand_in.npu_dynamic_quant(x, dst_type=number)),
                           ("dst_type", lambda: torch.ops.npu.npu_dynamic_quant_asymmetric(x, dst_type=number)),
                           ("dst_type", lambda: stand_in.npu_dynamic_block_quant(x, dst_type=number)),
                           ("dst_dtype", lambda: stand_in.npu_group_quant(x, x[:1], rows, dst_dtype=number))):
        missing = ", which npuquant does not implement" if "_e" in name else ""
        with pytest.raises(TypeError, match=rf"^{argument}: is torch_npu.{name} \({number}\){missing}; expected "):
            call()
    for call in (lambda: stand_in.npu_dynamic_quant_asymmetric(x, dst_type=290),
                 lambda: stand_in.npu_group_quant(x, x[:1], rows, dst_dtype=290)):
        with pytest.raises(TypeError, match="is torch_npu.hifloat8"):
            call()


@pytest.mark.parametrize("dtype", [torch.uint8, 0, torch.quint8, 260])
@pytest.mark.parametrize("name", ["npu_dynamic_quant", "npu_dynamic_block_quant"])
def test_uint8_is_refused(installed, name, dtype):
    """The package's own functions make it; the device does not."""
    x = torch.ones(2, 8)
    for device in "npu", "meta":
        for call in (getattr(stand_in, name), getattr(torch.ops.npu, name)):
            with pytest.raises(TypeError, match="^dst_type: is .*; expected int8(,| or) quint4x2[^\\[]* \\[npu_"):
                call(x.to(device), dst_type=dtype)
    made = getattr(npuquant.torch, name)(x, dst_type=dtype)[0]
    assert made.dtype == torch.uint8 and made.eq(255).all()
    assert getattr(stand_in, name).default is getattr(torch.ops.npuquant, name).default


OPERATORS = [name for name in stand_in.__all__ if name.startswith(("npu_", "get_npu_"))]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_pytorchs(installed, name):
    operator = getattr(stand_in, name)
    assert operator is getattr(torch.ops.npu, name) and isinstance(operator, torch._ops.OpOverloadPacket)
    assert operator.default._schema.name == f"npuquant::{name}"
    if PYTORCH_2:
        assert operator._schemas[""] == operator.default._schema


def test_names_of_the_first_argument(installed):
    """Its name in torch_npu's schema is self; in torch_npu's documentation it is input."""
    x, others = torch.randn(3, 8), {"scales": ONE, "zero_points": None, "dtype": torch.qint8}
    expected = stand_in.npu_quantize(x, **others)
    for function in (stand_in.npu_quantize, npuquant.torch.npu_quantize):
        for name in ("self", "input"):
            assert torch.equal(function(**{name: x}, **others), expected)
        for wrong in ({"self": x, "input": x}, {"x": x}, {}):
            with pytest.raises((RuntimeError, TypeError)):
                function(**wrong, **others)
        with pytest.raises((RuntimeError, TypeError)):
            function(x, self=x, **others)
    assert stand_in.npu_format_cast(self=x, acl_format=2) is x and stand_in.get_npu_format(self=x) == 2


def test_formats(installed):
    x = torch.arange(6.0).reshape(2, 3).t()
    for cast in stand_in.npu_format_cast, torch.ops.npu.npu_format_cast:
        assert cast(x, 2) is x and cast(x, torch.zeros(2)) is x
        for other in cast(x, 29), cast(x, 29, customize_dtype=stand_in.int8):  # the script may free the former one
            assert torch.equal(other, x) and other.data_ptr() != x.data_ptr() and other.is_contiguous()
    assert stand_in.npu_format_cast_(x, 29) is x and stand_in.npu_format_cast_(x, torch.zeros(2)) is x
    assert stand_in.get_npu_format(x) == torch.ops.npu.get_npu_format(x) == 2
    made = stand_in.empty_with_format((2, 3), dtype=torch.int8, device="npu:0", acl_format=29)
    assert made.shape == (2, 3) and made.dtype == torch.int8 and made.device.type == "cpu"


def test_int4_weights(installed):
    """Four bits of each number, the first number in the lowest bits."""
    weight = torch.tensor([[0, 1, -1, 7, -8, -1, -1, 0]], dtype=torch.int32)
    pack = stand_in.npu_convert_weight_to_int4pack
    assert pack(weight).tolist() == [[0x0ff87f10]]
    for number, digit in (8, 8), (-9, 7), (100, 4), (2 ** 31 - 1, 15), (-2 ** 31, 0):  # its lowest four bits
        weight[0, 3] = number
        assert pack(weight).tolist() == [[0x0ff80f10 | digit << 12]]
    assert torch.ops.npu.npu_convert_weight_to_int4pack(weight.to("meta").repeat(4, 1), 0).shape == (4, 1)
    assert torch.equal(pack(weight.repeat(2, 3, 1)), pack(weight).repeat(2, 3, 1))
    for says, wrong in (
        (r"has the shape \[1, 7\]; expected no empty dimension, and a multiple of 8 in the last", weight[:, :7]),
        (r"has the shape \[0, 8\]; expected no empty dimension", weight[:0]),
        ("has 1 dimension; expected 2 to 3", weight[0]), ("is int64; expected int32 or float32", weight.long()),
        ("is not contiguous", weight.repeat(8, 1).t()),
    ):
        with pytest.raises(RuntimeError, match=f"^weight: {says}"):
            pack(wrong)


def test_float4pack(installed):
    """As on the series Ascend 950: bits are cut off, and what then has no code is 0."""
    weight = torch.tensor([[0, -.5, .7, .75, 1.25, 5, 7.9, 8], [-0.0, 1, -1.5, 2, 3, -4, 6, float("nan")]])
    words = stand_in.npu_convert_weight_to_int4pack(weight)
    assert words.dtype == torch.float32 and words.view(torch.int32).tolist() == [[0x07620190], [0x07e54b28]]


@pytest.mark.parametrize("device", ["npu", "meta"])
def test_prefetch(installed, device):
    x = torch.ones(2, 3, device=device)
    for prefetch in (stand_in.npu_prefetch, torch.ops.npu.npu_prefetch):
        assert prefetch(x, None, 1) is None and prefetch(self=x, dependency=x, max_size=1 << 30, offset=23) is None
        for size, offset, wrong in (0, 0, "max_size"), (1, 24, "offset"), (1, -1, "offset"):
            with pytest.raises(ValueError, match=f"^{wrong}: "):
                prefetch(x, None, size, offset)
        with pytest.raises(ValueError, match="^self: has no elements"):
            prefetch(x[:0], None, 1)


@pytest.mark.parametrize("call, says", [
    ("torch_npu.npu_prefetch(x, None, None)", "max_size: is of the type NoneType; expected int"),
    ("torch_npu.npu_prefetch(x, None, '4')", "max_size: is of the type str; expected int"),
    ("torch_npu.npu_prefetch(x, None, 4, None)", "offset: is of the type NoneType; expected int"),
    ("torch_npu.npu_prefetch(None, None, 4)", "self: is None; expected a tensor"),
    ("torch_npu.npu_prefetch([1], None, 4)", "self: is of the type list; expected Tensor"),
    ("torch_npu.npu_prefetch(x, 3, 4)", "dependency: is of the type int; expected Optional[Tensor]"),
    ("torch_npu.npu_prefetch(x)", "dependency: is missing"),
    ("torch_npu.npu_convert_weight_to_int4pack(None)", "weight: is None; expected a tensor"),
    ("torch_npu.npu_convert_weight_to_int4pack(x, None)", "inner_k_tiles: is of the type NoneType; expected int"),
    ("torch_npu.npu_format_cast(x, 'ND')", "acl_format or dst: is of the type str; expected int or Tensor"),
    ("torch_npu.npu_format_cast(x, None)", "dst: is None; expected a tensor"),
    ("torch_npu.npu_format_cast(None, 2)", "self: is None; expected a tensor"),
    ("torch_npu.npu_format_cast(x, 2, customize_dtype='x')",
     "customize_dtype: is of the type str; expected Optional[int]"),
    ("torch_npu.npu_format_cast(x, x, customize_dtype='x')",
     "customize_dtype: is of the type str; expected Optional[int]"),
    ("torch_npu.npu_format_cast(x)", "acl_format or dst: is missing"),
    ("torch_npu.npu_format_cast_(x, 2.5)", "src or acl_format: is of the type float; expected Tensor or int"),
    ("torch_npu.get_npu_format(None)", "self: is None; expected a tensor"),
    ("torch_npu.npu_anti_quant(x, None)", "scale: is None; expected a tensor"),
    ("torch_npu.npu_quantize(x, x, None, torch.qint8, 'x')", "axis: is of the type str; expected int"),
    ("torch_npu.npu_rms_norm(x, x, 'x')", "epsilon: is of the type str; expected float"),
    ("torch_npu.npu_grouped_matmul(x, [x])", "x: is of the type Tensor; expected List[Tensor]"),
    ("torch_npu.empty_with_format(None)", "size: is None; expected a list of integers"),
    ("torch_npu.empty_with_format([2.5])", "size: is [2.5]; expected a list of integers"),
    ("torch_npu.empty_with_format([2, -3])", "size: is [2, -3]; expected no negative number"),
    ("torch_npu.empty_with_format([2], dtype='x')", "dtype: is 'x'; expected a torch.dtype"),
    ("torch_npu.empty_with_format([2], layout=2)", "layout: is 2; expected a torch.layout"),
    ("torch_npu.empty_with_format([2], acl_format='ND')", "acl_format: is 'ND'; expected an integer"),
    ("torch_npu.empty_with_format([2], device='gpu')", "device: is 'gpu'; expected a device's name or number, such as npu:0"),
    ("torch.npu.set_device('npu:')", "device: is 'npu:'; expected a device's name or number, such as npu:0"),
    ("torch.npu.set_device(1.5)", "device: is 1.5; expected a device's name or number, such as npu:0"),
    ("torch.npu.device([1])", "device: is [1]; expected a device's name or number, such as npu:0"),
    ("torch.npu.Stream('gpu')", "device: is 'gpu'; expected a device's name or number, such as npu:0"),
    ("torch.npu.Stream(priority='high')", "priority: is 'high'; expected an integer"),
])
def test_options_that_are_refused(installed, call, says):
    """One line with the operator and the argument, and the device's class of error."""
    import torch_npu

    x = torch.ones(2, 8, dtype=torch.int32)
    with pytest.raises(RuntimeError) as error:
        eval(call, {"torch": torch, "torch_npu": torch_npu, "x": x})
    name = call.partition("(")[0].rpartition(".")[2]
    assert str(error.value) == f"{says} [{name}]" and isinstance(error.value, (TypeError, ValueError))


# ---- operators of scripts --------------------------------------------------------------------------------------------


def library(kind, *key):
    return torch.library.Library("of_a_script", kind, *key)


def test_kernels_for_the_device(installed):
    own, of_key = library("DEF"), library("IMPL", "PrivateUse1")
    for name in ("given", "with_key", "decorated", "with_cpu", "with_all", "gradient"):
        own.define(f"{name}(Tensor x) -> Tensor")
    own.impl("given", lambda x: 2 * x, "PrivateUse1")
    of_key.impl("with_key", lambda x: 3 * x)
    torch.library.impl(own, "decorated", "PrivateUse1")(lambda x: 4 * x)
    for key in ("PrivateUse1", "CPU"):
        own.impl("with_cpu", {"CPU": lambda x: 5 * x, "PrivateUse1": lambda x: 0 * x}[key], key)
    for key in ("CompositeExplicitAutograd", "PrivateUse1"):
        own.impl("with_all", {"PrivateUse1": lambda x: 6 * x}.get(key, lambda x: 0 * x), key)

    class Seven(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return 7 * x

        @staticmethod
        def backward(context, gradient):
            return 70 * gradient

    own.impl("gradient", lambda x: Seven.apply(x), "AutogradPrivateUse1")
    x = torch.ones(2, device="npu", requires_grad=True)
    called = [getattr(torch.ops.of_a_script, name)(x.detach())[0].item()
              for name in ("given", "with_key", "decorated", "with_cpu", "with_all")]
    assert called == [2, 3, 4, 5, 6]
    torch.ops.of_a_script.gradient(x).sum().backward()
    assert x.grad.tolist() == [70, 70]
    with pytest.raises(RuntimeError):
        own.impl("given", lambda x: x, "PrivateUse1x")

    of_aten = torch.library.Library("aten", "IMPL")
    for name in ("add.Tensor", "empty_like"):  # the second has one kernel for all devices
        of_aten.impl(name, lambda *args, **others: 1 / 0, "PrivateUse1")
    assert torch.equal(x + x, 2 * x) and torch.empty_like(x).shape == (2,)
    stand_in.uninstall()
    assert torch.ops.of_a_script.given(torch.ones(1)).item() == 2
    own.define("without(Tensor x) -> Tensor")
    own.impl("without", lambda x: x, "PrivateUse1")
    with pytest.raises(NotImplementedError):
        torch.ops.of_a_script.without(torch.ones(1))


def test_operators_in_the_namespace_of_torch_npu(installed):
    own = torch.library.Library("npu", "FRAGMENT" if PYTORCH_2 else "DEF")
    own.define("of_a_script(Tensor x, float a) -> Tensor")
    own.impl("of_a_script", lambda x, a: x + a, "PrivateUse1")
    assert torch.ops.npu.of_a_script(torch.ones(1), 2.0).item() == 3
    assert torch.ops.npu.of_a_script.default._schema.name == "npu::of_a_script"


@needs_pytorch_2
def test_custom_operators(installed, compiler):
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    x = torch.ones(2)
    for number, devices in enumerate(("npu", ("cpu", "npu"), ["npu", "cpu"])):
        operator = torch.library.custom_op(f"of_a_script::custom_{number}", doubled, mutates_args=(),
                                           device_types=devices)
        assert operator(x).tolist() == [2, 2]
        operator.register_fake(torch.empty_like)
        assert compiler(lambda x: operator(x) + 1, backend="npu", fullgraph=True)(x).tolist() == [3, 3]
    with_kernel = torch.library.custom_op("of_a_script::with_kernel", doubled, mutates_args=())
    with_kernel.register_kernel("npu")(lambda x: 4 * x)
    torch.library.define("of_a_script::defined", "(Tensor x) -> Tensor")
    torch.library.impl("of_a_script::defined", "npu")(lambda x: 5 * x)
    assert with_kernel(x).tolist() == [4, 4] and torch.ops.of_a_script.defined(x).tolist() == [5, 5]
    with pytest.raises(RuntimeError):
        torch.library.impl("of_a_script::defined", "npux")(lambda x: x)


# ---- devices ---------------------------------------------------------------------------------------------------------

# Arguments of the functions of torch that make tensors and take a device.
FACTORIES = {
    "arange": (4,), "as_tensor": ([1, 2],), "asarray": ([1, 2],), "bartlett_window": (4,), "blackman_window": (4,),
    "empty": (2, 3), "empty_like": (torch.ones(2),), "empty_permuted": ((2, 3), (1, 0)),
    "empty_quantized": ((2,), torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8)),
    "empty_strided": ((2, 3), (3, 1)), "eye": (3,), "full": ((2,), 1.0), "full_like": (torch.ones(2), 2.0),
    "hamming_window": (4,), "hann_window": (4,), "kaiser_window": (4,), "linspace": (0, 1, 4),
    "logspace": (0, 1, 4), "normal": (0.0, 1.0, (2,)), "ones": (2,), "ones_like": (torch.ones(2),), "rand": (2,),
    "rand_like": (torch.ones(2),), "randint": (4, (2,)), "randint_like": (torch.ones(2), 4), "randn": (2,),
    "randn_like": (torch.ones(2),), "randperm": (4,), "range": (0, 3), "scalar_tensor": (1.0,),
    "sparse_bsc_tensor": ([0, 1], [0], [[[1.0]]], (1, 1)), "sparse_bsr_tensor": ([0, 1], [0], [[[1.0]]], (1, 1)),
    "sparse_compressed_tensor": (torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1)),
    "sparse_coo_tensor": ([[0]], [1.0], (1,)), "sparse_csc_tensor": ([0, 1], [0], [1.0], (1, 1)),
    "sparse_csr_tensor": ([0, 1], [0], [1.0], (1, 1)), "tensor": ([1.0],), "tril_indices": (2, 2),
    "triu_indices": (2, 2), "zeros": (2,), "zeros_like": (torch.ones(2),),
}
OPTIONS = {"sparse_compressed_tensor": {"layout": torch.sparse_csr}}


def test_every_factory_is_known():
    """PyTorch's operators of which an argument is a device, and which are functions of torch."""
    names = {schema.name.partition("::")[2] for schema in torch._C._jit_get_all_schemas()
             if schema.name.startswith("aten::") and any(argument.name == "device" for argument in schema.arguments)}
    functions = {name for name in names if hasattr(torch, name) and not name.startswith("_")}
    assert functions - set(FACTORIES) == {"from_file"} | ({"Generator"} if PYTORCH_2 else set())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(name for name in FACTORIES if hasattr(torch, name)))
def test_factories(installed, name):
    function = getattr(torch, name)
    for device in (*NAMES_OF_CPU, torch.device("npu:0"), 0):
        made = function(*FACTORIES[name], device=device, **OPTIONS.get(name, {}))
        assert made.device.type == "cpu"
        with pytest.raises((RuntimeError, ValueError)):
            function(*FACTORIES[name], device="npux", **OPTIONS.get(name, {}))
    if name not in ("empty_quantized", "as_tensor", "asarray") and "sparse" not in name:
        assert function(*FACTORIES[name], device="meta").is_meta


@pytest.mark.parametrize("function", ["as_tensor", "asarray"])
@pytest.mark.parametrize("host", [torch.zeros(2), np.zeros(2, np.float32)], ids=["tensor", "array"])
def test_tensors_of_the_device_are_copies(installed, function, host):
    """Without the device they have the memory of the host, as ever."""
    make = getattr(torch, function)
    for device in ("npu", torch.device("npu:0")):
        made = make(host, device=device)
        made += 1
        assert host.tolist() == [0, 0]
    assert make(host).data_ptr() == torch.as_tensor(host).data_ptr()


def test_gradients_of_tensors_of_the_device(installed):
    leaf = torch.asarray([1.0, 2.0], device="npu", requires_grad=True)
    torch.as_tensor(leaf, device="npu").sum().backward()
    assert leaf.grad.tolist() == [1, 1]


def test_tensor_from_file(installed, tmp_path):
    file = tmp_path / "values"
    np.arange(4, dtype=np.float32).tofile(file)
    assert torch.from_file(str(file), size=4, device="npu").tolist() == [0, 1, 2, 3]


def test_factories_of_other_modules(installed):
    assert torch.fft.fftfreq(4, device="npu").device.type == torch.fft.rfftfreq(4, device="npu").device.type == "cpu"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a prototype
        nested = torch.nested.nested_tensor([torch.ones(2)], device="npu")
    assert nested.device.type == "cpu"


def test_torchscript(installed):
    @torch.jit.script
    def function(x: torch.Tensor, device: torch.device):
        return torch.zeros(2, device=x.device) + x.to(device)

    assert function(torch.ones(2), torch.device("npu:0")).tolist() == [1, 1]
    module = torch.jit.script(torch.nn.Linear(2, 3)).npu()
    assert module(torch.ones(1, 2)).shape == (1, 3)

    @torch.jit.script
    def operators(x: torch.Tensor):
        return torch.ops.npu.npu_format_cast(torch.ops.npu.npu_quantize(x, x[0], None, 258, -1, False), 29)

    assert operators(torch.full((1, 8), 3.0)).tolist() == [[9] * 8]
    traced = torch.jit.trace(lambda x: x.npu() + torch.ones(2, device="npu"), torch.ones(2))
    assert traced(torch.zeros(2)).tolist() == [1, 1]


@pytest.mark.parametrize("device", ["npu", "npu:0", 0])
def test_new_tensors(installed, device):
    x = torch.ones(2, dtype=torch.float16)
    for made in (x.new_empty((3,), device=device), x.new_empty_strided((3,), (1,), device=device),
                 x.new_full((3,), 1.0, device=device), x.new_ones(3, device=device), x.new_zeros(3, device=device),
                 x.new_tensor([1, 2, 3], device=device)):
        assert made.device.type == "cpu" and made.dtype == torch.float16 and made.shape == (3,)


MOVES = {
    "npu": lambda x: x.npu(), "npu(0)": lambda x: x.npu(0), "npu(name)": lambda x: x.npu("npu:0"),
    "npu(device)": lambda x: x.npu(device=torch.device("npu:0"), non_blocking=True), "cpu": lambda x: x.cpu(),
    "to(name)": lambda x: x.to("npu"), "to(name:0)": lambda x: x.to("npu:0"), "to(number)": lambda x: x.to(0),
    "to(device)": lambda x: x.to(torch.device("npu")), "to(device, dtype)": lambda x: x.to("npu", torch.float32),
    "to(device, dtype, non_blocking, copy)": lambda x: x.to("npu", torch.float32, True, False),
    "to(device=)": lambda x: x.to(device="npu:0", non_blocking=True), "to(device=number)": lambda x: x.to(device=0),
    "to(dtype=, device=)": lambda x: x.to(dtype=torch.float32, device="npu"), "to(cpu)": lambda x: x.to("cpu"),
    "to(memory_format=)": lambda x: x.to("npu", memory_format=torch.preserve_format),
}


@pytest.mark.parametrize("form", list(MOVES))
def test_moves_make_other_tensors(installed, form):
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3).T
    moved = MOVES[form](x)
    assert torch.equal(moved, x) and moved.dtype == x.dtype and moved.device.type == "cpu" and moved.is_leaf
    moved += 1
    assert x[0, 0] == 0

    x = torch.ones(3, requires_grad=True)
    moved = MOVES[form](x)
    assert moved.requires_grad and not moved.is_leaf
    (2 * moved).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_move_with_another_type(installed):
    x = torch.ones(2)
    for moved in (x.to("npu", torch.float16), x.to(dtype=torch.float16, device="npu:0")):
        assert moved.dtype == torch.float16
    assert x.npu().is_npu and not x.to("meta").is_npu


def test_what_is_no_move(installed):
    x = torch.ones(2)
    assert x.to(torch.float32) is x and x.to(dtype=torch.float32) is x and x.to(torch.ones(1)) is x
    assert x.to(torch.float16).dtype == torch.float16 and x.to(torch.ones(1, dtype=torch.int8)).dtype == torch.int8
    assert x.to("meta").is_meta and x.to(device="meta").is_meta


@pytest.mark.parametrize("device", ["npux", "npu:", "npu:a", "npu:-1", "npu:0:0", "xnpu", ":0", -1])
def test_names_of_no_device(installed, device):
    for call in (lambda: torch.zeros(1, device=device), lambda: torch.ones(1).to(device), lambda: torch.device(device),
                 lambda: torch.nn.Linear(1, 1).to(device), lambda: torch.ones(1).new_zeros(1, device=device),
                 lambda: torch.Generator(device), lambda: torch.ones(1).npu(device),
                 lambda: torch.nn.Linear(1, 1).npu(device)):
        with pytest.raises((RuntimeError, ValueError, TypeError)):
            call()


@pytest.mark.parametrize(("refused", "accepted"), [
    (lambda x: torch.Tensor([1], device="npu"), lambda x: torch.tensor([1.0], device="npu")),
    (lambda x: x.new([1], device="npu"), lambda x: x.new_tensor([1], device="npu")),
    (lambda x: x.type("torch.npu.HalfTensor"), lambda x: x.type(torch.npu.HalfTensor)),
    (lambda x: torch.nn.utils.rnn.pack_sequence([x]).npu(),
     lambda x: torch.nn.utils.rnn.pack_sequence([x]).to("npu").data),
])
def test_what_is_not_accepted(installed, refused, accepted):
    """docs/torch.md has a table of it."""
    x = torch.ones(1)
    with pytest.raises((RuntimeError, ValueError, AttributeError)):
        refused(x)
    assert torch.equal(accepted(x).float(), x)


def test_other_devices_are_as_ever(installed):
    assert torch.device("cuda:1").type == "cuda" and torch.device("cuda", 1).index == 1
    assert torch.device("meta").type == "meta" and torch.device("cpu").type == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises((RuntimeError, AssertionError)):
            torch.zeros(1, device="cuda")
        with pytest.raises((RuntimeError, AssertionError)):
            torch.ones(1).to("cuda")
        with pytest.raises((RuntimeError, AssertionError)):
            torch.ones(1).cuda()


def test_device(installed):
    cpu = torch.device("cpu")
    for made in (torch.device("npu"), torch.device("npu:0"), torch.device("npu", 0), torch.device(type="npu", index=0),
                 torch.device(type="npu"), torch.device(0), torch.device(cpu)):
        assert made == cpu and isinstance(made, torch.device) and type(made) == torch.device
    assert torch.device(type="cuda", index=1) == torch.device("cuda:1")
    assert issubclass(type(cpu), torch.device) and not isinstance("npu", torch.device)
    assert torch.ones(1).device == torch.device("npu:0")
    assert {torch.device: 1}[type(cpu)] == 1
    assert torch.empty(0, device="npu").device == torch.device("npu:0")


def test_pickle_of_a_device(installed):
    values = torch.device("npu:0"), torch.device("cuda:1"), torch.device, torch.Generator
    saved = pickle.dumps(values)
    assert pickle.loads(saved) == values
    stand_in.uninstall()
    assert pickle.loads(saved) == (torch.device("cpu"), torch.device("cuda:1"), torch.device, torch.Generator)


@needs_pytorch_2
def test_device_as_a_context(installed, compiler):
    with torch.device("npu:0"):
        assert torch.zeros(1).device.type == "cpu"
    with torch.device("meta"):
        assert torch.zeros(1).is_meta and torch.zeros(1, device="npu").device.type == "cpu"
        assert torch.nn.Linear(1, 1).weight.is_meta
        assert compiler(lambda: torch.zeros(1) + 1, backend="npu", fullgraph=True)().is_meta


@needs_pytorch_2
def test_default_device(installed):
    try:
        torch.set_default_device("npu:0")
        assert torch.zeros(1).device.type == "cpu"
        torch.set_default_device("meta")
        assert torch.zeros(1).is_meta
        with torch.device("npu"):
            assert torch.zeros(1).device.type == "cpu"
    finally:
        torch.set_default_device(None)


def test_generator(installed):
    generator = torch.Generator(device="npu")
    assert isinstance(generator, torch.Generator) and isinstance(torch.Generator("npu:0"), torch.Generator)
    assert isinstance(torch.Generator(), torch.Generator) and isinstance(torch.default_generator, torch.Generator)
    torch.Generator.manual_seed(generator, 1)
    first = torch.randn(3, generator=generator, device="npu")
    assert torch.equal(first, torch.randn(3, generator=torch.Generator().manual_seed(1)))


# How to call a function of PyTorch with a tensor, and with no tensor.
OVERRIDDEN = {
    "torch.empty_like": lambda x: torch.empty_like(x, device="npu"),
    "torch.zeros_like": lambda x: torch.zeros_like(input=x, device="npu:0"),
    "torch.full_like": lambda x: torch.full_like(x, 2.0), "torch.rand_like": lambda x: torch.rand_like(x, device=0),
    "torch.Tensor.new_empty": lambda x: x.new_empty(3, device="npu"), "torch.Tensor.to": lambda x: x.to("npu"),
    "torch.Tensor.cpu": lambda x: x.cpu(),
}
OVERRIDDEN_BY_MODES = {
    "torch.zeros": lambda x: torch.zeros(2, device="npu"), "torch.ones": lambda x: torch.ones(size=(2,)),
    "torch.tensor": lambda x: torch.tensor([1.0], device="npu"), "torch.as_tensor": lambda x: torch.as_tensor([1.0]),
    "torch.asarray": lambda x: torch.asarray([1.0]), "torch.fft.fftfreq": lambda x: torch.fft.fftfreq(4, device="npu"),
}


def by_identity(handled):
    """A method __torch_function__ that returns a function's name for this function; for others it does the usual."""

    def own(self, func, types, args=(), kwargs=None):
        if func is handled:
            return func.__name__
        if isinstance(self, type):
            return super(self, self).__torch_function__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))

    return own


@pytest.mark.parametrize("name", list(OVERRIDDEN))
def test_classes_get_torchs_functions(installed, name):
    """A class with __torch_function__ compares them with names of torch."""
    for handled in eval(name), None:
        kind = type("Kind", (torch.Tensor,), {"__torch_function__": classmethod(by_identity(handled))})
        made = OVERRIDDEN[name](torch.ones(2).as_subclass(kind))
        assert made == handled.__name__ if handled else type(made) is kind and made.is_cpu


@pytest.mark.parametrize("name", [*OVERRIDDEN, *OVERRIDDEN_BY_MODES])
def test_modes_get_torchs_functions(installed, name):
    from torch.overrides import TorchFunctionMode

    call = {**OVERRIDDEN, **OVERRIDDEN_BY_MODES}[name]
    for handled in eval(name), None:
        mode = type("Mode", (TorchFunctionMode,), {"__torch_function__": by_identity(handled)})
        with mode(), mode():
            made = call(torch.nn.Parameter(torch.Tensor([1, 2])))
        assert made == handled.__name__ if handled else made.is_cpu


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_functions_that_do_not_ask_classes():
    x = torch.ones(2).as_subclass(type("Kind", (torch.Tensor,), {}))
    ignored = torch.overrides.get_ignored_functions
    ignored.cache_clear()
    for change in stand_in.install, stand_in.uninstall:
        change()
        assert type(torch.tensor(x)) is torch.Tensor
    assert torch.tensor in ignored()


class Model(torch.nn.Module):
    def __init__(self, device=None):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2, device=device)
        self.register_buffer("count", torch.zeros(1, device=device))


@pytest.mark.parametrize("move", [
    lambda model: model.npu(), lambda model: model.npu(0), lambda model: model.npu(device="npu:0"),
    lambda model: model.to("npu"), lambda model: model.to(device="npu:0"), lambda model: model.to(torch.device("npu")),
    lambda model: model.to(0), lambda model: model.cpu(),
])
def test_modules(installed, move):
    model = Model(device="npu:0")
    weight, before = model.linear.weight, model.linear.weight.detach().clone()
    memory, count = weight.data_ptr(), model.count
    assert move(model) is model
    assert model.linear.weight is weight and weight.is_leaf and torch.equal(weight, before)
    assert weight.data_ptr() != memory and model.count is not count
    model.linear(torch.ones(1, 2).npu()).sum().backward()
    assert weight.grad is not None


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_modules_and_types(installed):
    assert Model().to("npu", torch.float16).linear.weight.dtype == torch.float16
    assert Model().to(torch.float16).linear.weight.dtype == torch.float16
    assert Model().half().npu().count.dtype == torch.float16
    empty = Model(device="meta").to_empty(device="npu")
    for lazy in (torch.nn.LazyLinear(3).npu(), torch.nn.LazyLinear(3).to("npu"), torch.nn.LazyLinear(3).cpu()):
        assert lazy(torch.ones(1, 2)).shape == (1, 3)
    assert empty.linear.weight.device.type == "cpu" and empty.linear.weight.shape == (2, 2)


def test_autocast(installed):
    x = torch.ones(2, 2)
    for context in (torch.autocast("npu", dtype=torch.bfloat16), torch.autocast("npu", torch.bfloat16),
                    torch.autocast(device_type="npu", dtype=torch.bfloat16),
                    torch.npu.amp.autocast(dtype=torch.bfloat16)):
        with context:
            assert torch.mm(x, x).dtype == torch.bfloat16
        assert torch.mm(x, x).dtype == torch.float32
    with torch.npu.amp.autocast(enabled=False), torch.autocast("npu", enabled=False):
        assert torch.mm(x, x).dtype == torch.float32

    @torch.npu.amp.autocast(dtype=torch.bfloat16)
    def product():
        return torch.mm(x, x)

    assert product().dtype == torch.bfloat16


def test_type_of_autocast(installed):
    x = torch.ones(2, 2)
    for context in (torch.autocast("npu"), torch.npu.amp.autocast()):
        with context:
            assert torch.mm(x, x).dtype == (torch.float16 if PYTORCH_2 else torch.bfloat16)
    with torch.autocast("cpu"):
        assert torch.mm(x, x).dtype == torch.bfloat16


@pytest.fixture
def file_of_device(monkeypatch):
    """What torch.save() writes on the device: storages with its name."""
    monkeypatch.setattr(torch.serialization, "location_tag", lambda storage: "npu:0")
    file = io.BytesIO()
    torch.save({"x": torch.arange(3)}, file)
    monkeypatch.undo()
    file.seek(0)
    return file


@pytest.mark.parametrize("location", [None, "npu:0", "cpu", "npu", {"npu:0": "cpu"}, {"npu:0": "npu:1"},
                                      lambda storage, location: storage])
def test_load(file_of_device, location):
    with pytest.raises(RuntimeError, match="npu:0"):
        torch.load(file_of_device)
    file_of_device.seek(0)
    stand_in.install()
    loaded = torch.load(file_of_device, map_location=location)["x"]
    assert loaded.tolist() == [0, 1, 2] and loaded.device.type == "cpu"
    file_of_device.seek(0)
    assert torch.load(file_of_device, map_location=torch.device("npu:0"))["x"].tolist() == [0, 1, 2]


def test_load_of_the_cpu(installed):
    file = io.BytesIO()
    torch.save(torch.arange(3).npu(), file)
    file.seek(0)
    assert torch.load(file, map_location="npu:0").tolist() == [0, 1, 2]
    stand_in.uninstall()
    file.seek(0)
    assert torch.load(file).tolist() == [0, 1, 2]


def test_loaders_of_others_stay():
    stand_in.install()
    other = (6, lambda storage: None, lambda storage, location: None)
    torch.serialization.register_package(*other)
    stand_in.uninstall()
    loaders = torch.serialization._package_registry
    assert other in loaders
    loaders.remove(other)
    assert all(loader[0] != 5 for loader in loaders)


@pytest.mark.filterwarnings("ignore")
def test_pinned_memory(installed):
    x = torch.ones(2)
    pinned = x.pin_memory()
    pinned += 1  # it is other memory
    assert pinned.tolist() == [2, 2] and x.tolist() == [1, 1]
    assert torch.ones(2).pin_memory("npu").tolist() == [1, 1]
    assert torch.zeros(2, pin_memory=True).tolist() == [0, 0]
    data = torch.utils.data.TensorDataset(torch.arange(4))
    for options in ({}, {"pin_memory": True}, {"pin_memory": True, "pin_memory_device": "npu"},
                    {"generator": torch.Generator(device="npu")}, {"num_workers": 1, "pin_memory": True}):
        batches = list(torch.utils.data.DataLoader(data, batch_size=2, **options))
        assert [batch[0].npu().tolist() for batch in batches] == [[0, 1], [2, 3]]


# ---- torch.npu -------------------------------------------------------------------------------------------------------


def test_the_device(installed):
    assert torch.npu.is_available() and torch.npu.is_initialized() and torch.npu.init() is None
    assert torch.npu.device_count() == 1 and torch.npu.current_device() == 0
    assert torch.npu.is_bf16_supported() and torch.npu.get_soc_version() == 220
    assert torch.distributed.is_hccl_available() is False
    assert torch.npu.set_device(0) is None and torch.npu.set_device("npu:0") is None
    for device in None, "npu", "0", 1, torch.device("npu"), unittest.mock.MagicMock():
        assert torch.npu.set_device(device) is None
    assert torch.npu.get_device_name().startswith("Ascend910B") and torch.npu.get_device_name(0).endswith("CPU)")
    for device in (0, "npu:0", torch.device("npu:0")):
        with torch.npu.device(device):
            assert torch.npu.current_device() == 0
    with torch.npu.device_of(torch.ones(1)):
        pass
    torch.npu.synchronize()
    torch.npu.synchronize("npu:0")


def test_streams(installed):
    default, stream = torch.npu.default_stream(), torch.npu.Stream()
    assert torch.npu.current_stream() is default and stream is not default
    with torch.npu.stream(stream) as nothing:
        assert nothing is None and torch.npu.current_stream() is stream and torch.npu.default_stream() is default
        with torch.npu.StreamContext(None):
            assert torch.npu.current_stream() is stream
        seen = []
        thread = threading.Thread(target=lambda: seen.append(torch.npu.current_stream()))
        thread.start()
        thread.join()
        assert seen == [default]
    assert torch.npu.current_stream("npu:0") is default
    with pytest.raises(KeyError), torch.npu.stream(stream):
        raise KeyError
    assert torch.npu.current_stream() is default
    torch.npu.set_stream(stream)
    assert torch.npu.current_stream() is stream
    torch.npu.set_stream(default)

    same = torch.npu.Stream(stream_id=stream.stream_id, device_index=stream.device_index,
                            device_type=stream.device_type)
    assert same == stream and {same: 1}[stream] and stream != torch.npu.Stream() and stream != stream.stream_id
    assert default.stream_id == default.npu_stream == 0 < stream.npu_stream == same.npu_stream
    assert (stream.device_index, stream.device_type) == (0, 20)

    stream = torch.npu.Stream(device="npu:0", priority=-1)
    stream.wait_stream(default)
    event = stream.record_event()
    stream.wait_event(event)
    stream.synchronize()
    assert stream.query() and stream.device == torch.device("npu:0") and not torch.npu.is_current_stream_capturing()
    torch.ones(1).npu().record_stream(stream)


def test_events(installed):
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True, blocking=True)
    with pytest.raises(RuntimeError, match="must have been recorded"):
        start.elapsed_time(end)
    assert start.npu_event == 0
    start.record()
    with pytest.raises(RuntimeError, match="must have been recorded"):
        start.elapsed_time(end)
    threading.Event().wait(0.02)
    end.record(torch.npu.current_stream())
    end.wait()
    end.synchronize()
    assert end.query() and 20 <= start.elapsed_time(end) < 20000 and end.elapsed_time(start) < 0


@pytest.mark.parametrize("name, arguments", [
    ("NPUGraph", ()), ("graph", (None,)), ("graph_pool_handle", ()), ("graph_task_group_begin", (None,)),
    ("graph_task_group_end", (None,)), ("graph_task_update_begin", (None, None)), ("graph_task_update_end", (None,)),
])
def test_graphs_are_refused(installed, name, arguments):
    """When they are used: a script may import the names and derive classes."""
    assert hasattr(torch.npu, name)
    with pytest.raises(NotImplementedError, match=rf"^torch_npu\.npu\.{name}: npuquant's stand-in .* captures no graph"):
        getattr(torch.npu, name)(*arguments)


def test_external_events(installed):
    event = torch.npu.ExternalEvent()
    for call in (event.record, event.wait, event.reset):
        assert call() is None and call(torch.npu.current_stream()) is None


def test_memory(installed):
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached",
                 "max_memory_cached"):
        assert getattr(torch.npu, name)() == 0 and getattr(torch.npu, name)("npu:0") == 0
    stats = torch.npu.memory_stats("npu:0")
    assert set(stats.values()) == {0} and {"allocated_bytes.all.peak", "num_alloc_retries", "num_ooms",
                                           "oversize_segments.freed", "segment.small_pool.allocated"} <= set(stats)
    stats.clear()
    assert torch.npu.memory.memory_stats()["reserved_bytes.all.current"] == 0
    for name in ("empty_cache", "ipc_collect", "reset_peak_memory_stats", "reset_max_memory_allocated",
                 "reset_max_memory_cached"):
        assert getattr(torch.npu, name)() is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells how much memory is free")
def test_memory_of_the_machine(installed):
    free, total = torch.npu.mem_get_info()
    with open("/proc/meminfo") as file:
        assert total == 1024 * int(file.readline().split()[1])
    assert 0 < free <= total
    properties = torch.npu.get_device_properties("npu:0")
    assert properties.name == torch.npu.get_device_name() and properties.total_memory == total


def test_random_numbers(installed):
    for seed in (torch.npu.manual_seed, torch.npu.manual_seed_all):
        seed(5)
        assert torch.npu.initial_seed() == 5
        first = torch.randn(3, device="npu")
        state, states = torch.npu.get_rng_state(), torch.npu.get_rng_state_all()
        second = torch.randn(3, device="npu")
        torch.npu.set_rng_state(state, "npu:0")
        assert torch.equal(torch.randn(3, device="npu"), second)
        torch.npu.set_rng_state_all(states)
        assert torch.equal(torch.randn(3), second) and not torch.equal(first, second)
    torch.npu.seed()
    first = torch.npu.initial_seed()
    torch.npu.seed_all()
    assert torch.npu.initial_seed() != first


def test_settings(installed):
    assert torch.npu.set_compile_mode(jit_compile=True) is None
    assert torch.npu.set_option({"NPU_FUZZY_COMPILE_BLACKLIST": "Tril"}) is None
    assert torch.npu.get_npu_overflow_flag() is False and torch.npu.clear_npu_overflow_flag() is None
    torch.npu.config.allow_internal_format = True
    torch.npu.matmul.allow_hf32 = True
    torch.npu.conv.allow_hf32 = False
    x = torch.npu.FloatTensor([1, 2])
    assert x.dtype == torch.float32 and isinstance(torch.ones(1), torch.npu.FloatTensor)


# ---- what is not there -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [
    "torch_npu", "torch_npu.npu", "torch_npu.npu.amp", "torch_npu.contrib", "torch_npu.testing",
    "torch_npu.testing.common_utils", "torchair", "torchair.core.utils", "torchair.ge_concrete_graph.ge_apis",
    "torch_npu.dynamo", "torch_npu._C", "torch_npu.npu.memory", "torch_npu.npu.streams", "torch_npu.npu.utils",
    "torch_npu.profiler", "torch_npu.profiler.dynamic_profile", "torch_npu.utils", "torchair.scope",
    "torchair.inference", "torch_npu.atb", "torch_npu.op_plugin.atb._atb_ops", "torch_npu._C._distributed_c10d",
    "torch_npu.utils.collect_env", "torch_npu.utils.cpp_extension",
])
def test_absent_names(installed, module):
    found = importlib.import_module(module)
    assert not hasattr(found, "npu_unheard_of")
    assert getattr(found, "npu_unheard_of", 1) == 1
    with pytest.raises(NotImplementedError, match=r"^[\w.]+\.npu_unheard_of is not in npuquant's stand-in for torch_npu"):
        found.npu_unheard_of
    with pytest.raises(ImportError, match="npu_unheard_of"):
        exec(f"from {module} import npu_unheard_of")
    with pytest.raises(ModuleNotFoundError, match=f"{module}.npu_unheard_of"):
        importlib.import_module(f"{module}.npu_unheard_of")
    with pytest.raises(AttributeError) as error:
        found.__npu_unheard_of__
    assert not isinstance(error.value, NotImplementedError)


def test_absent_operators(installed):
    assert not hasattr(torch.ops.npu, "npu_unheard_of")
    with pytest.raises(NotImplementedError, match=r"^torch\.ops\.npu\.npu_unheard_of is not in .* them\)$"):
        torch.ops.npu.npu_unheard_of(torch.ones(1))


@pytest.mark.parametrize("name", ["torch_npu.npu_mm_all_reduce_base", "torch.ops.npu.npu_mm_all_reduce_base",
                                  "torch_npu.npu.utilization", "torch_npu.atb.npu_ring_mla",
                                  "torch_npu.profiler.dynamic_profile.start", "torchair.inference.readable_cache",
                                  "torch_npu._C._distributed_c10d.ProcessGroupHCCL",
                                  "torch_npu._C._distributed_c10d.ProcessGroupHCCL.Options",
                                  "torch_npu._C._distributed_c10d.ProcessGroupLCCL",
                                  "torch_npu.utils.collect_env.main",
                                  "torch_npu.utils.collect_env.get_pretty_env_info",
                                  "torch_npu.utils.cpp_extension.NpuExtension", "torch_npu.utils.cpp_extension.load"])
def test_absent_functions(installed, name, monkeypatch):
    """They raise the error when they are called. A test can replace them, as the error says."""
    names = {"torch": torch, "torch_npu": sys.modules["torch_npu"], "torchair": sys.modules["torchair"]}
    with pytest.raises(NotImplementedError, match=f"^{name} is not in npuquant's stand-in") as error:
        eval(name, names)(torch.ones(1))
    hint = str(error.value).partition("; a test can replace it: ")[2]
    eval(hint, {"monkeypatch": monkeypatch})
    assert eval(name, names) is ...
    monkeypatch.undo()
    with pytest.raises(NotImplementedError):
        eval(name, names)()


def test_modules_of_serving_code(installed):
    from torch_npu._C._distributed_c10d import ProcessGroupHCCL
    from torch_npu.op_plugin.atb._atb_ops import _register_atb_extensions
    from torch_npu.profiler import dynamic_profile
    from torch_npu.utils import collect_env, cpp_extension

    with pytest.raises(NotImplementedError, match=r"cpp_extension\.TorchExtension\.include_paths is not in npuquant's"):
        cpp_extension.TorchExtension.include_paths()
    assert not isinstance(torch.ones(1), ProcessGroupHCCL) and collect_env.get_cann_version() == torch.version.cann
    assert [_register_atb_extensions(), dynamic_profile.init("folder"), dynamic_profile.step()] == [None] * 3


# ---- transfer_to_npu -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["from torch_npu.contrib import transfer_to_npu",
                                  "import torch_npu.contrib.transfer_to_npu"])
def test_transfer_to_npu(before, line):
    for _ in range(2):
        stand_in.install()
        assert torch.device("cuda:0").type == "cuda"
        exec(line)
        x = torch.ones(2)
        assert torch.device("cuda:0").type == "cpu" and torch.zeros(1, device="cuda").device.type == "cpu"
        for moved in (x.cuda(), x.cuda(0), x.to("cuda"), x.to("cuda:0")):
            assert moved is not x and moved.device.type == "cpu"
        assert torch.nn.Linear(1, 1).cuda().weight.device.type == "cpu"
        assert x.is_cuda and not x.to("meta").is_cuda
        assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
        assert torch.cuda.get_device_name().startswith("Ascend910B")
        torch.cuda.set_device("cuda:0")
        with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(0):
            torch.cuda.synchronize()
        from torch.cuda.amp import autocast
        for context in (torch.autocast("cuda", dtype=torch.bfloat16), autocast(dtype=torch.bfloat16),
                        torch.cuda.amp.autocast(dtype=torch.bfloat16)):
            with context:
                assert torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype == torch.bfloat16
        assert sys.modules["torch.cuda.amp"] is torch.cuda.amp
        stand_in.uninstall()
        assert before.changes_to(State()) == []


def test_transfer_is_only_by_torch_npus_name(before):
    importlib.import_module("npuquant.torch_npu.contrib.transfer_to_npu")


@pytest.fixture
def transferred(installed):
    importlib.import_module("torch_npu.contrib.transfer_to_npu")


def test_seeds_after_transfer(transferred):
    """torch.manual_seed() and torch.seed() call torch.cuda's functions, too."""
    torch.manual_seed(3)
    first = torch.rand(4)
    torch.npu.manual_seed(3)
    assert torch.equal(torch.rand(4), first)
    torch.seed()
    assert not torch.equal(torch.rand(4), first)


@needs_pytorch_2
def test_compile_after_transfer(transferred, compiler):
    """The compiler looks into torch.cuda, for what is a class there."""
    x = torch.arange(8.0).reshape(2, 4)
    compiled = compiler(lambda x: stand_in.npu_dynamic_quant(x)[0], backend="npu", fullgraph=True)
    assert torch.equal(compiled(x), stand_in.npu_dynamic_quant(x)[0])


# ---- torchair --------------------------------------------------------------------------------------------------------


def test_torchair(installed):
    import logging

    import torchair as tng
    from torchair.core.utils import logger
    from torchair.ge_concrete_graph import ge_apis as ge

    assert ge is not None
    logger.setLevel(logging.WARNING)
    config = tng.CompilerConfig()
    config.debug.graph_dump.type = "pbtxt"
    config.experimental_config.frozen_parameter = True
    config.mode = "reduce-overhead"
    assert config.debug.graph_dump.type == "pbtxt" and config.experimental_config.frozen_parameter is True
    assert config.debug.graph_dump is not tng.CompilerConfig().debug.graph_dump
    assert not hasattr(config, "__len__")
    assert callable(tng.get_npu_backend(compiler_config=config)) and callable(tng.get_npu_backend())
    assert callable(tng.get_compiler(config))
    model = torch.nn.Linear(1, 1)
    assert tng.use_internal_format_weight(model) is model


def test_cached_code(installed):
    from torch_npu.dynamo.torchair.inference import cache_compile, set_dim_gears
    from torchair import CompilerConfig

    model, x = torch.nn.Linear(2, 3), torch.ones(4, 2)
    assert set_dim_gears(x, dim_gears={0: [2, 4]}) is None
    compiled = cache_compile(model.forward, config=CompilerConfig(), cache_dir="folder", ge_cache=True)
    assert torch.equal(compiled(x), model(x)) and not os.path.exists("folder")
    for other in model, torch.relu, CompilerConfig().__getattr__:
        with pytest.raises(ValueError, match="^func: is .*; expected a method of a torch.nn.Module"):
            cache_compile(other)


@pytest.mark.skipif(PYTORCH_2, reason="PyTorch 2 has torch.compile")
def test_compile_without_a_compiler(installed):
    def function(x):
        return x + 1

    assert torch.compile(function) is function and torch.compile(model=function) is function
    assert torch.compile(function, fullgraph=True, dynamic=True, backend="npu") is function
    assert torch.compile(function, backend=importlib.import_module("torchair").get_npu_backend()) is function

    @torch.compile
    def bare(x):
        return x + 1

    @torch.compile(backend="npu", dynamic=False)
    def with_arguments(x):
        return x + 1

    assert bare(1) == with_arguments(1) == 2
    stand_in.uninstall()
    assert not hasattr(torch, "compile")


def in_a_stream(x):
    with torch.npu.stream(torch.npu.current_stream()):
        return x + 1


def in_autocast(x):
    with torch.autocast("npu", dtype=torch.bfloat16):
        return torch.mm(x, x.T)


def after_waiting(x):
    torch.npu.synchronize()
    return x + 1


def in_a_scope(x):
    scope = sys.modules["torchair.scope"]
    with scope.npu_stream_switch("other", 3), scope.super_kernel("name", options=""), scope.limit_core_num(8, 16):
        return scope.npu_wait_tensor(x, x) + 1


def scales(x):
    return torch.ones(1, dtype=x.dtype, device=x.device)


COMPILED = {
    "zeros": lambda x: x[0, 0] + torch.zeros(2, device="npu:0"),
    "zeros(device)": lambda x: x[0, 0] + torch.zeros(2, device=torch.device("npu:0")),
    "zeros(npu, 0)": lambda x: x[0, 0] + torch.zeros(2, device=torch.device("npu", 0)),
    "zeros(number)": lambda x: x[0, 0] + torch.zeros(2, device=0),
    "zeros(x.device)": lambda x: x[0, 0] + torch.zeros(2, device=x.device),
    "tensor": lambda x: x + torch.tensor([1.0], device="npu"),
    "as_tensor": lambda x: torch.as_tensor(x, device="npu") + 1,
    "new_zeros": lambda x: x[0, 0] + x.new_zeros(2, device="npu"),
    "npu": lambda x: x.npu() + 1, "cpu": lambda x: x.cpu() + 1, "to": lambda x: x.to("npu") + 1,
    "to(device)": lambda x: x.to(torch.device("npu:0")) + 1, "to(x.device)": lambda x: x.to(x.device) + 1,
    "to(dtype)": lambda x: x.to(device="npu:0", dtype=torch.float16) + 1, "is_npu": lambda x: x + 1 if x.is_npu else x,
    "pin_memory": lambda x: x.pin_memory() + 1, "stream": in_a_stream, "autocast": in_autocast,
    "synchronize": after_waiting, "scope": in_a_scope,
    "npu_prefetch": lambda x: (sys.modules["torch_npu"].npu_prefetch(x, None, 1), x + 1)[1],
    "npu_format_cast": lambda x: sys.modules["torch_npu"].npu_format_cast(x, 29) + 1,
    "npu_quantize(self)": lambda x: torch.ops.npu.npu_quantize(self=x, scales=scales(x), zero_points=None, dtype=258),
    "npu_convert_weight_to_int4pack": lambda x: stand_in.npu_convert_weight_to_int4pack(x.int()),
    "npu_dynamic_quant": lambda x: sys.modules["torch_npu"].npu_dynamic_quant(x),
    "npu_dynamic_quant(int4)": lambda x: sys.modules["torch_npu"].npu_dynamic_quant(x, dst_type=torch.quint4x2),
    "npu_dynamic_block_quant": lambda x: sys.modules["torch_npu"].npu_dynamic_block_quant(x, min_scale=0.5),
    "npu_quantize": lambda x: stand_in.npu_quantize(x, scales(x), None, torch.qint8, -1, False),
    "torch.ops": lambda x: torch.ops.npu.npu_dynamic_quant_asymmetric(x),
}


@pytest.fixture
def compiler():
    """Compiled code is not kept between tests."""
    torch._dynamo.reset()
    yield torch.compile
    torch._dynamo.reset()


@needs_pytorch_2
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", list(COMPILED))
def test_compile(installed, compiler, name, dynamic):
    import torchair
    from torchair.configs.compiler_config import CompilerConfig

    backend = torchair.get_npu_backend(compiler_config=CompilerConfig())
    x = torch.randn(3, 16)
    expected = COMPILED[name](x)
    actual = torch.compile(COMPILED[name], backend=backend, fullgraph=True, dynamic=dynamic)(x)
    for one, other in zip(expected, actual):
        assert torch.equal(one, other) and one.dtype == other.dtype


@needs_pytorch_2
def test_compile_with_the_name_of_the_backend(installed, compiler):
    class Layer(torch.nn.Module):
        def forward(self, x):
            return stand_in.npu_dynamic_quant(x.npu())

    @torch.compile(backend="npu", fullgraph=True)
    def function(x):
        return stand_in.npu_dynamic_quant(x.npu())

    x = torch.randn(3, 16)
    expected = stand_in.npu_dynamic_quant(x)
    for compiled in (torch.compile(Layer().npu(), backend="npu", dynamic=False), function):
        assert all(map(torch.equal, compiled(x), expected))
    stand_in.uninstall()
    with pytest.raises(Exception, match="npu"):
        torch.compile(lambda x: x + 1, backend="npu")(x)


@needs_pytorch_2
def test_compiling_before_and_after(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""import torch
import npuquant.torch_npu

def function(x, device):
    return torch.zeros(2, device=device) + torch.ones(2, device=torch.device(device)).to(x.device)

def compiled(device):
    torch._dynamo.reset()
    return torch.compile(function, backend="eager", fullgraph=True)(torch.ones(1), device).tolist()

print(compiled("cpu"))
for _ in range(2):
    npuquant.torch_npu.install()
    print(compiled("npu:0"))
    npuquant.torch_npu.uninstall()
    print(compiled("cpu"))
""")
    ran = run(program)
    assert (ran.returncode, ran.stdout) == (0, 5 * "[1.0, 1.0]\n"), ran.stderr


# ---- torch_npu.testing -----------------------------------------------------------------------------------------------


@pytest.fixture
def case(installed):
    from torch_npu.testing.testcase import TestCase

    return TestCase()


EQUAL = {
    "tensors": (torch.ones(3), torch.ones(3)), "arrays": (np.ones(3), np.ones(3)), "numbers": (1.0, 1.00001),
    "int8": (torch.tensor([1, 2], dtype=torch.int8), torch.tensor([1, 2], dtype=torch.int8)),
    "absolute": (torch.tensor([0.0]), torch.tensor([0.9e-4])),
    "relative": (torch.tensor([10000.0]), torch.tensor([10000.9])),
    "float16": (torch.tensor([1.0]).half(), torch.tensor([1.001]).half()),
    "bfloat16": (torch.tensor([1.0, 128.0]).bfloat16(), torch.tensor([1.0, 128.0]).bfloat16()),
    "a share": (np.zeros(20000), np.array([1.0, 1.0] + [0.0] * 19998)),
    "NaN": (torch.tensor([np.nan, 1]), torch.tensor([np.nan, 1])), "infinite": (np.array([np.inf]), np.array([np.inf])),
    "lists": ([torch.ones(1), torch.zeros(1)], (torch.ones(1), torch.zeros(1))),
    "a list": (torch.tensor([1.0, 2.0]), [1, 2]), "gradient": (torch.ones(1, requires_grad=True), torch.ones(1)),
    "nothing": (torch.ones(0), torch.ones(0)), "bool": (torch.tensor([True]), torch.tensor([True])),
}
UNEQUAL = {
    "tensors": (torch.ones(3), torch.ones(3) + 0.001), "numbers": (1.0, 1.001), "shape": (torch.ones(3), torch.ones(1)),
    "dtype": (torch.ones(3), torch.ones(3).double()), "bfloat16, float32": (torch.ones(3).bfloat16(), torch.ones(3)),
    "int8": (torch.tensor([1, 2], dtype=torch.int8), torch.tensor([1, 3], dtype=torch.int8)),
    "int8, far": (torch.tensor([-128], dtype=torch.int8), torch.tensor([127], dtype=torch.int8)),
    "uint8": (torch.tensor([0], dtype=torch.uint8), torch.tensor([1], dtype=torch.uint8)),
    "float16": (torch.tensor([1.0]).half(), torch.tensor([1.003]).half()),
    "bfloat16": (torch.cat([torch.zeros(5000), torch.ones(1)]).bfloat16(), torch.zeros(5001).bfloat16()),
    "more than a share": (np.zeros(20000), np.array([1.0] * 3 + [0.0] * 19997)),
    "NaN": (torch.tensor([np.nan, 1]), torch.tensor([1, np.nan])), "one NaN": (np.array([np.nan]), np.array([1.0])),
    "infinite": (np.array([np.inf]), np.array([-np.inf])), "one infinite": (np.array([np.inf]), np.array([1.0])),
    "lists": ([torch.ones(1), torch.zeros(1)], [torch.ones(1), torch.ones(1)]),
    "a list": (torch.tensor([1.0, 2.0]), [1, 3]),
    "bool": (np.zeros(20000, np.bool_), np.array([True] + [False] * 19999)),
}


@pytest.mark.parametrize("name", list(EQUAL))
def test_equal(case, name):
    case.assertRtolEqual(*EQUAL[name])


@pytest.mark.parametrize("name", list(UNEQUAL))
def test_unequal(case, name):
    for pair in (UNEQUAL[name], UNEQUAL[name][::-1]):
        with pytest.raises(AssertionError):
            case.assertRtolEqual(*pair)


def test_precision_and_types(case):
    case.assertRtolEqual(torch.ones(3), torch.ones(3) + 0.001, prec=0.01)
    case.assertRtolEqual(torch.ones(3).half(), torch.ones(3).half() + 0.01, prec16=0.1)
    case.assertRtolEqual(torch.tensor([1.0]).double(), torch.tensor([1.0]), auto_trans_dtype=True)
    with pytest.raises(AssertionError, match="too far"):
        case.assertRtolEqual(1.0, 2.0, message="too far")
    with pytest.raises(AssertionError, match="1 of 1 elements differ by more than 0.0001"):
        case.assertRtolEqual(1.0, 2.0)


def test_assert_equal(case):
    case.assertEqual(torch.ones(2), torch.ones(2) + 5e-6)
    case.assertEqual(torch.ones(2), torch.ones(2).double())
    case.assertEqual(torch.ones(2), torch.ones(2) + 0.1, 0.2)
    case.assertEqual(1.0, 1.0 + 5e-6)
    case.assertEqual(torch.ones(1), 1)
    case.assertEqual([torch.ones(1), "a"], [torch.ones(1), "a"])
    for call in ((torch.ones(2), torch.ones(2) + 5e-5), (torch.ones(2), torch.ones(3)), (1.0, 1.0001), ("a", "b"),
                 (torch.ones(2), torch.ones(2).double(), None, "", True), ([torch.ones(1)], [torch.zeros(1)]),
                 ([1], [1, 2]), (1, 2), (torch.ones(1), 2)):
        with pytest.raises(AssertionError):
            case.assertEqual(*call)


def test_seed_of_test_cases(case):
    import random

    case.setUp()
    first = torch.rand(1), random.random()
    case.setUp()
    assert (torch.rand(1), random.random()) == first


def test_supported_devices(installed):
    from torch_npu.testing.common_utils import SupportedDevices

    def test(self):
        return "done"

    assert SupportedDevices(["Ascend910A", "Ascend910B"])(test)(None) == "done"
    for names in (["Ascend910A", "Ascend950"], ["Ascend910"], []):
        with pytest.raises(unittest.SkipTest):
            SupportedDevices(names)(test)(None)


def test_create_common_tensor(installed, monkeypatch):
    from torch_npu.testing.common_utils import create_common_tensor, get_npu_device

    assert get_npu_device() == "npu:0"
    monkeypatch.setenv("SET_NPU_DEVICE", "3")
    assert get_npu_device() == "npu:3" and torch.zeros(1, device=get_npu_device()).device.type == "cpu"
    cpu, npu = create_common_tensor([np.float16, 2, (50, 20)], -3, 5)
    assert cpu.dtype == npu.dtype == torch.float16 and cpu.shape == (50, 20) and torch.equal(cpu, npu)
    assert -3 <= cpu.min() < -2 and 4 < cpu.max() <= 5
    npu += 1
    assert not torch.equal(cpu, npu)


# ---- python -m npuquant.torch_npu ------------------------------------------------------------------------------------


@pytest.fixture
def script(tmp_path):
    """Writes a script, and runs it with the stand-in."""

    def call(source, *args, options=(), **more):
        (tmp_path / "folder").mkdir(exist_ok=True)
        path = tmp_path / "folder" / "script.py"
        path.write_text(source)
        return run("-m", "npuquant.torch_npu", *options, path, *args, cwd=str(tmp_path), **more)

    return call


def test_script(script, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "beside.py").write_text("VALUE = 7\n")
    ran = script("""import torch_npu
import os, pickle, sys
import torch, multiprocessing
import beside

class Kept:
    value = 3

def square(x):
    return (x * torch.ones(1, device="npu")).item() ** 2

if __name__ == "__main__":
    print(sys.argv[1:], os.path.basename(sys.argv[0]), os.path.basename(sys.path[0]), beside.VALUE)
    print(sys.modules["__main__"].Kept is Kept, pickle.loads(pickle.dumps(Kept())).value, __name__, bool(__file__))
    print(__spec__, os.path.basename(__file__))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(square, [1, 2]))
    print(torch_npu.npu_dynamic_quant(torch.ones(2, 8, device="npu"))[0].sum().item(), torch.get_num_threads() > 0)
""", "-m", "--scale-form", "x y", "--help")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == ("['-m', '--scale-form', 'x y', '--help'] script.py folder 7\n"
                          "True 3 __main__ True\nNone script.py\n[1.0, 4.0]\n2032 True\n")


def test_exit_status(script):
    for source, status, message in (("raise SystemExit(5)", 5, ""), ("import sys\nsys.exit('no')", 1, "no\n")):
        ran = script(source)
        assert (ran.returncode, ran.stdout, ran.stderr) == (status, "", message)


def test_script_of_tests(script):
    ran = script("""import torch
import torch_npu
from torch_npu.testing.common_utils import SupportedDevices
from torch_npu.testing.testcase import TestCase, run_tests

class TestStandIn(TestCase):
    def test_equal(self):
        self.assertRtolEqual(torch.ones(2).npu().cpu(), torch.ones(2))

    def test_unequal(self):
        self.assertRtolEqual(torch.ones(2), torch.zeros(2))

    @SupportedDevices(["Ascend950"])
    def test_other_device(self):
        raise AssertionError

if __name__ == "__main__":
    run_tests()
""", "-v")
    assert ran.returncode == 1 and ran.stderr.splitlines()[-1] == "FAILED (failures=1, skipped=1)"
    for test, result in (("test_equal", "ok"), ("test_unequal", "FAIL"), ("test_other_device", "skipped")):
        assert any(line.startswith(test) and result in line for line in ran.stderr.splitlines()), ran.stderr


def test_traceback(script, tmp_path):
    ran = script("import torch_npu\ndef inner():\n    torch_npu.npu_unheard_of()\ninner()\n")
    lines = ran.stderr.splitlines()
    assert ran.returncode == 1 and lines[0] == "Traceback (most recent call last):"
    places = [line.partition("script.py\", ")[2] for line in lines if line.startswith("  File ")]
    assert places[:2] == ["line 4, in <module>", "line 3, in inner"]
    assert "Absent: torch_npu.npu_unheard_of is not in npuquant's stand-in" in lines[-1]

    ran = script("import torch_npu\nx = (\n")
    assert ran.returncode == 1 and "SyntaxError" in ran.stderr and "script.py\", line 2" in ran.stderr
    assert "runpy" not in ran.stderr


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.11 is the first that can leave the folder out")
def test_safe_path(script):
    path = os.pathsep.join(["first", os.environ.get("PYTHONPATH", "")])
    ran = script("import sys; print(sys.path[0])", env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": path})
    assert (ran.returncode, os.path.basename(ran.stdout)) == (0, "first\n"), ran.stderr


def test_module(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("VALUE = 3\n")
    (package / "__main__.py").write_text(
        "import sys, torch_npu, os\nfrom .part import VALUE\n"
        "print(VALUE, sys.argv[1:], __name__, __package__, os.path.realpath(sys.path[0]) == os.path.realpath('.'))\n")
    ran = run("-m", "npuquant.torch_npu", "-m", "package", "-x", "--threads", cwd=str(tmp_path))
    assert (ran.returncode, ran.stdout) == (0, "3 ['-x', '--threads'] __main__ package True\n"), ran.stderr
    ran = run("-m", "npuquant.torch_npu", "-m", "package.nothing", cwd=str(tmp_path))
    assert ran.returncode != 0 and "No module named package.nothing" in ran.stderr


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the command in this process, and returns its exit status and what it has written."""
    from npuquant.torch_npu.__main__ import main

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["__main__.py", *map(str, args)])
        monkeypatch.setattr(sys, "path", list(sys.path))
        monkeypatch.setattr(sys, "excepthook", sys.excepthook)
        status = 0
        try:
            main()
        except SystemExit as end:
            status = end.code
        stand_in.uninstall()
        return (status, *capsys.readouterr())

    return call


@pytest.mark.parametrize("options, printed", [((), "product 1 ['a']\n"),
                                              (("--scale-form", "inverse", "--threads=3"), "inverse 3 ['a']\n")])
def test_options(command, tmp_path, options, printed):
    script = tmp_path / "script.py"
    script.write_text("""import npuquant, npuquant.torch, sys
former = npuquant.torch.set_scale_form("product")
print(former, npuquant.get_num_threads(), sys.argv[1:])
""")
    assert command(*options, script, "a") == (0, printed, "")
    assert npuquant.torch.set_scale_form("product") == "product"


@pytest.mark.parametrize("args, message", [
    ((), "expected a script, or -m and a module"), (("-m",), "expected a script, or -m and a module"),
    (("nothing.py",), "nothing.py: no such file"), (("--threads", "0", "x.py"), "--threads: "),
    (("--threads", "a", "x.py"), "--threads"), (("--scale-form", "other", "x.py"), "--scale-form"),
    (("--other", "x.py"), "--other"),
])
def test_mistaken_commands(command, args, message):
    status, printed, errors = command(*args)
    assert (status, printed) == (2, "") and message in errors.splitlines()[-1]


def test_help(command):
    status, printed, errors = command("--help")
    assert (status, errors) == (0, "") and "--scale-form" in printed and "SCRIPT [ARGUMENT...]" in printed


def test_without_pytorch(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('No module named torch')\n")
    (tmp_path / "script.py").write_text("print('ran')\n")
    ran = run("-m", "npuquant.torch_npu", "script.py", cwd=str(tmp_path))
    assert ran.returncode == 1 and ran.stdout == ""
    assert ran.stderr.splitlines()[-1].endswith("PyTorch cannot be imported (No module named torch; Debian: "
                                                "python3-torch)")
