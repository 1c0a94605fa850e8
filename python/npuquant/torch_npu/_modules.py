# SPDX-License-Identifier: BSD-3-Clause
"""The modules that scripts import beside torch_npu itself: its helpers for tests, and torchair, its graph mode."""
from __future__ import annotations

import logging
import os
import random
import sys
import unittest
from typing import Any, Callable, Dict, Sequence

import numpy as np
import torch

from . import npu
from ._absent import module

# ---- torchair --------------------------------------------------------------------------------------------------------


class CompilerConfig:
    """Options of the graph compiler, of any name and depth. They are kept, and change nothing."""

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


# ---- torch_npu.testing -----------------------------------------------------------------------------------------------


def get_npu_device() -> str:
    return os.environ.get("SET_NPU_DEVICE", "npu:0")


def create_common_tensor(item: Sequence[Any], minValue: float, maxValue: float, device: Any = None) -> Any:
    """A random tensor and its copy on the device; item is its NumPy type, the format on the device, and the shape."""
    values = torch.from_numpy(np.random.uniform(minValue, maxValue, item[2]).astype(item[0]))
    return values, values.clone()


class SupportedDevices:
    """A decorator: the test is for devices of these names only, such as "Ascend910B"."""

    def __init__(self, supported_devices: Sequence[str]) -> None:
        self.supported_devices = supported_devices

    def __call__(self, test: Callable[..., Any]) -> Callable[..., Any]:
        here = any(npu.get_device_name().startswith(name) for name in self.supported_devices)
        return test if here else unittest.skip(f"is for {', '.join(self.supported_devices)}")(test)


def _plain(value: Any) -> Any:
    """A tensor as an array that has what comparing takes."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return value


class TestCase(unittest.TestCase):
    """With the comparisons of torch_npu's own tests."""

    def setUp(self) -> None:
        seed = int(os.environ.get("SEED", "666"))
        torch.manual_seed(seed)
        random.seed(seed)

    def assertRtolEqual(self, x: Any, y: Any, prec: float = 1e-4, prec16: float = 1e-3,
                        auto_trans_dtype: bool = False, message: Any = None) -> None:
        """Tensors, arrays or numbers are equal but for a share of prec (prec16 for 16-bit types) of their elements.

        An element is unequal if the difference is larger than prec; but all is well, too, if only that share differs by
        more than prec relative to the larger of the two.
        """
        if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
            for one, other in zip(x, y):
                self.assertRtolEqual(one, other, prec, prec16, auto_trans_dtype, message)
            return
        short = any(getattr(value, "dtype", None) in (torch.bfloat16, torch.float16, np.dtype(np.float16))
                    for value in (x, y))
        x, y = np.asarray(_plain(x)), np.asarray(_plain(y))
        self.assertEqual(x.shape, y.shape, message)
        if not auto_trans_dtype:
            self.assertEqual(x.dtype, y.dtype, message)
        prec = prec16 if short else prec
        wide = [value.astype(np.float64) for value in (x, y)]
        nan = np.isnan(wide[0])
        np.testing.assert_array_equal(nan, np.isnan(wide[1]), err_msg=message or "NaN")
        with np.errstate(all="ignore"):
            difference = np.where(nan | (wide[0] == wide[1]), 0, np.abs(wide[0] - wide[1]))
            relative = difference / (np.maximum(*np.abs(wide)) + (6e-8 if short else 1e-9))
        unequal = min(np.count_nonzero(difference > prec), np.count_nonzero(relative > prec))
        if unequal > x.size * prec:
            self.fail(message or f"{unequal} of {x.size} elements differ by more than {prec}")

    def assertEqual(self, first: Any, second: Any, msg: Any = None, **tolerances: Any) -> None:
        if isinstance(first, torch.Tensor) or isinstance(second, torch.Tensor):
            torch.testing.assert_close(first, second, equal_nan=True, **tolerances)
        else:
            super().assertEqual(first, second, msg)


def run_tests() -> None:
    unittest.main(argv=sys.argv)


# ---- the modules -----------------------------------------------------------------------------------------------------


_logger = logging.getLogger("torchair")
_torchair = (CompilerConfig, get_compiler, get_npu_backend, use_internal_format_weight)

MODULES: Dict[str, Any] = {one.__name__: one for one in (
    module("torchair", *_torchair, logger=_logger),
    module("torchair.configs"),
    module("torchair.configs.compiler_config", CompilerConfig),
    module("torchair.core"),
    module("torchair.core.utils", logger=_logger),
    module("torchair.ge_concrete_graph"),
    module("torchair.ge_concrete_graph.ge_apis"),
    module("torch_npu.contrib", __path__=[os.path.join(os.path.dirname(__file__), "contrib")]),
    module("torch_npu.dynamo"),
    module("torch_npu.testing"),
    module("torch_npu.testing.common_utils", SupportedDevices, create_common_tensor, get_npu_device),
    module("torch_npu.testing.testcase", TestCase, run_tests),
)}
MODULES.update({"torch_npu.dynamo.torchair": MODULES["torchair"], "torch_npu.npu": npu, "torch.npu": npu,
                "torch_npu.npu.amp": npu.amp, "torch.npu.amp": npu.amp})
