# SPDX-License-Identifier: BSD-3-Clause
"""The other modules that scripts import: torch_npu's helpers for tests, and torchair, its graph mode."""
from __future__ import annotations

import logging
import os
import random
import sys
import types
import unittest
from typing import Any, Callable, Dict, Sequence

import numpy as np
import torch

from . import npu
from ._absent import absent_class, module

# ---- torchair --------------------------------------------------------------------------------------------------------


class CompilerConfig:
    """Options of the graph compiler, of any name and depth. They can be read back, and change nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = CompilerConfig()
        setattr(self, name, value)
        return value


def npu_backend(graph: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """A backend of torch.compile() that runs the graph operator by operator, as PyTorch does without compiling."""
    return graph.forward


def get_npu_backend(*, compiler_config: Any = None, **options: Any) -> Callable[..., Any]:
    return npu_backend


def get_compiler(compiler_config: Any = None) -> Callable[..., Any]:
    return npu_backend


def use_internal_format_weight(model: torch.nn.Module) -> torch.nn.Module:
    """The formats of the device's memory do not change values, and there are none here."""
    return model


def cache_compile(func: Callable[..., Any], *, config: Any = None, dynamic: bool = True,
                  **options: Any) -> Callable[..., Any]:
    """The method as torch.compile() makes it with the backend. There is no compiled code to keep in files."""
    if not isinstance(func, types.MethodType) or not isinstance(func.__self__, torch.nn.Module):
        raise ValueError(f"func: is {func!r}; expected a method of a torch.nn.Module")
    return torch.compile(func, backend=npu_backend, dynamic=dynamic, fullgraph=True)


def set_dim_gears(t: torch.Tensor, dim_gears: Dict[int, Sequence[int]]) -> None:
    """Nothing: the sizes for which the device's compiler makes code change no value."""


class Scope:
    """A part of a graph for which the compiler takes other options. Here it changes nothing."""

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: Any) -> None:
        pass


def npu_wait_tensor(self: torch.Tensor, dependency: torch.Tensor) -> torch.Tensor:
    """The tensor: work is done when a call returns."""
    return self


# ---- torch_npu.atb and torch_npu.profiler ----------------------------------------------------------------------------

#: Operators of the module, as in op_plugin/python/atb/_atb_ops.py of Ascend/op-plugin, and those with a workspace.
_ATB = """
    _npu_flash_attention_prefix_v2 _npu_flash_attention_v2 _npu_multi_head_latent_attention_get_workspace
    _npu_paged_attention_v2 _npu_paged_attention_v2_get_workspace npu_fused_add_topk_div npu_mla_preprocess
    npu_multi_head_latent_attention npu_paged_cache_load npu_ring_mla npu_self_attention_prefix_encoder
""".split()


def _register_atb_extensions() -> None:
    """Nothing: on the device it loads a library."""


def init(path: str) -> None:
    """Nothing: here no file and no other process starts the profiler."""


def step() -> None:
    """Nothing, for the same reason."""


# ---- torch_npu.utils -------------------------------------------------------------------------------------------------

#: What scripts import of torch_npu.utils.collect_env and cpp_extension. BiShengExtension is of earlier versions.
_COLLECT_ENV = "get_env_info get_pretty_env_info get_torch_npu_install_path get_torch_npu_version main".split()
_CPP_EXTENSION = "BiShengExtension BuildExtension NpuExtension load".split()


def get_cann_version() -> str:
    """The version of the device's software that install() chooses."""
    return torch.version.cann


# ---- torch_npu.testing -----------------------------------------------------------------------------------------------


def get_npu_device() -> str:
    return f"npu:{os.environ.get('SET_NPU_DEVICE', '0')}"


def create_common_tensor(item: Sequence[Any], minValue: float, maxValue: float, device: Any = None) -> Any:
    """A random tensor and its copy on the device; item is its NumPy type, the format on the device, and the shape."""
    values = torch.from_numpy(np.random.uniform(minValue, maxValue, item[2]).astype(item[0]))
    return values, values.clone()


class SupportedDevices:
    """A decorator: the test is for devices of these names only, such as "Ascend910B"."""

    def __init__(self, supported_devices: Sequence[str]) -> None:
        self.supported_devices = supported_devices

    def __call__(self, test: Callable[..., Any]) -> Callable[..., Any]:
        if npu.get_device_name()[:len("Ascend910B")] in self.supported_devices:
            return test
        return unittest.skip(f"is for {', '.join(self.supported_devices)}")(test)


class TestCase(unittest.TestCase):
    """With the comparisons of torch_npu's own tests."""

    def setUp(self) -> None:
        seed = int(os.environ.get("SEED", "666"))
        torch.manual_seed(seed)
        random.seed(seed)

    def assertRtolEqual(self, x: Any, y: Any, prec: float = 1e-4, prec16: float = 1e-3,
                        auto_trans_dtype: bool = False, message: Any = None) -> None:
        """Tensors, arrays or numbers are equal but for a share of prec (float16: prec16) of their elements.

        An element is unequal if the difference is larger than prec; but all is well, too, if only that share differs by
        more than prec relative to the larger of the two. All elements of bool must be equal, and all of bfloat16 within
        prec16 + prec16 * |y|.
        """
        if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
            for one, other in zip(x, y):
                self.assertRtolEqual(one, other, prec, prec16, auto_trans_dtype, message)
            return
        if isinstance(x, (list, tuple)):
            x = torch.as_tensor(x, dtype=y.dtype)
        if isinstance(y, (list, tuple)):
            y = torch.as_tensor(y, dtype=x.dtype)
        if auto_trans_dtype and isinstance(x, torch.Tensor):
            x = x.to(y.dtype)
        if not isinstance(x, torch.Tensor) or not isinstance(y, torch.Tensor):
            x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape or x.dtype != y.dtype:
            self.fail(message or f"{x.dtype} of shape {tuple(x.shape)} and {y.dtype} of shape {tuple(y.shape)}")
        if x.dtype == torch.bfloat16:
            if not torch.allclose(x, y, rtol=prec16, atol=prec16):
                self.fail(message or f"elements differ by more than {prec16}")
            return

        x, y = (value.detach().numpy() if isinstance(value, torch.Tensor) else value for value in (x, y))
        short = x.dtype == np.float16
        prec = 0 if x.dtype == np.bool_ else prec16 if short else prec
        x, y = x.astype(np.float64), y.astype(np.float64)
        nan = np.isnan(x)
        if not np.array_equal(nan, np.isnan(y)):
            self.fail(message or "NaN are not in the same places")
        with np.errstate(invalid="ignore"):
            difference = np.where(nan | (x == y), 0, np.abs(x - y))
            relative = difference / (np.maximum(np.abs(x), np.abs(y)) + (6e-8 if short else 1e-9))
        unequal = min(np.count_nonzero(difference > prec), np.count_nonzero(~(relative <= prec)))
        if unequal > x.size * prec:
            self.fail(message or f"{unequal} of {x.size} elements differ by more than {prec}")

    def assertEqual(self, x: Any, y: Any, prec: Any = None, message: Any = "", exact_dtype: bool = False) -> None:
        """Tensors or numbers differ by at most prec, 1e-5 unless it is given; other values are equal."""
        if isinstance(prec, str):
            prec, message = None, prec
        prec = 1e-5 if prec is None else prec
        if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
            torch.testing.assert_close(x, y, rtol=0, atol=prec, equal_nan=True, check_dtype=exact_dtype)
        elif isinstance(x, (torch.Tensor, float)) or isinstance(y, (torch.Tensor, float)):
            x, y = (value.item() if isinstance(value, torch.Tensor) else value for value in (x, y))
            self.assertLessEqual(abs(x - y), prec, message)
        elif isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
            self.assertEqual(len(x), len(y), prec, message)
            for one, other in zip(x, y):
                self.assertEqual(one, other, prec, message, exact_dtype)
        else:
            super().assertEqual(x, y, message or None)


def run_tests() -> None:
    unittest.main(argv=sys.argv)


# ---- the modules -----------------------------------------------------------------------------------------------------


def _of_npu(*names: str) -> Dict[str, Any]:
    return {name: getattr(npu, name) for name in names}


_logger = logging.getLogger("torchair")
_C10D = "torch_npu._C._distributed_c10d"
_torchair = (CompilerConfig, get_compiler, get_npu_backend, use_internal_format_weight)

MODULES: Dict[str, Any] = {one.__name__: one for one in (
    module("torchair", *_torchair, logger=_logger),
    module("torchair.configs"),
    module("torchair.configs.compiler_config", CompilerConfig),
    module("torchair.core"),
    module("torchair.core.utils", logger=_logger),
    module("torchair.ge_concrete_graph"),
    module("torchair.ge_concrete_graph.ge_apis"),
    module("torchair.inference", cache_compile, set_dim_gears, known=["readable_cache"]),
    module("torchair.scope", npu_wait_tensor, limit_core_num=Scope, npu_stream_switch=Scope, op_never_timeout=Scope,
           super_kernel=Scope),
    module("torch_npu._C", npu._NPUTaskGroupHandle, _npu_get_soc_version=npu.get_soc_version),
    module(_C10D, absent_class(_C10D, "ProcessGroupHCCL", "Options"), absent_class(_C10D, "ProcessGroupLCCL")),
    module("torch_npu.atb", known=_ATB),
    module("torch_npu.contrib", __path__=[os.path.join(os.path.dirname(__file__), "contrib")]),
    module("torch_npu.dynamo"),
    module("torch_npu.op_plugin"),
    module("torch_npu.op_plugin.atb"),
    module("torch_npu.op_plugin.atb._atb_ops", _register_atb_extensions),
    module("torch_npu.profiler"),
    module("torch_npu.profiler.dynamic_profile", init, step, known=["start"]),
    module("torch_npu.testing"),
    module("torch_npu.testing.common_utils", SupportedDevices, create_common_tensor, get_npu_device),
    module("torch_npu.testing.testcase", TestCase, run_tests),
    module("torch_npu.utils"),
    module("torch_npu.utils.collect_env", get_cann_version, known=_COLLECT_ENV),
    module("torch_npu.utils.cpp_extension", known=_CPP_EXTENSION,
           TorchExtension=module("torch_npu.utils.cpp_extension.TorchExtension")),  # another name of PyTorch's module
)}
MODULES.update({f"torch_npu.dynamo.{name}": one for name, one in list(MODULES.items()) if name.startswith("torchair")})
MODULES.update({"torch_npu.npu": npu, "torch.npu": npu, "torch_npu.npu.amp": npu.amp, "torch.npu.amp": npu.amp})
MODULES.update((one.__name__, one) for one in (
    module("torch_npu.npu.memory", **_of_npu("empty_cache", *(name for name in npu.__all__ if "memory" in name))),
    module("torch_npu.npu.streams", **_of_npu("Event", "ExternalEvent", "Stream")),
    module("torch_npu.npu.utils", **_of_npu(
        "StreamContext", "clear_npu_overflow_flag", "current_device", "current_stream", "default_stream", "device",
        "device_of", "get_npu_overflow_flag", "get_soc_version", "ipc_collect", "is_bf16_supported", "set_device",
        "set_stream", "stream", "synchronize")),
))
MODULES.update({name.replace("torch_npu.npu", "torch.npu"): one for name, one in list(MODULES.items())
                if name.startswith("torch_npu.npu.")})
