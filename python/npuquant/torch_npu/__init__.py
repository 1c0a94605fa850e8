# SPDX-License-Identifier: BSD-3-Clause
"""Stands in for torch_npu, on a machine without the device: its quantisation operators, on the CPU, to the bit.

install() lets scripts that were written for the device run unchanged: `import torch_npu` finds this module, and .npu(),
.to("npu") and device="npu:0" mean the CPU. uninstall() puts everything back. Until install() is called nothing is
changed. `python -m npuquant.torch_npu script.py` runs a script in this way.

What is not here raises a NotImplementedError with its name; docs/torch.md says what is the same as on the device.
"""
from __future__ import annotations

from typing import Any

from ..torch import (npu_anti_quant, npu_dequant_bias, npu_dynamic_quant, npu_dynamic_quant_asymmetric, npu_group_quant,
                     npu_quant_matmul, npu_quantize, npu_trans_quant_param)
import torch  # after the line above, whose error says how to get it

from . import npu
from ._absent import absent_from
from ._install import install, uninstall

__all__ = [
    "install",
    "npu",
    "npu_anti_quant",
    "npu_dequant_bias",
    "npu_dynamic_quant",
    "npu_dynamic_quant_asymmetric",
    "npu_format_cast",
    "npu_group_quant",
    "npu_quant_matmul",
    "npu_quantize",
    "npu_trans_quant_param",
    "get_npu_format",
    "uninstall",
]

#: torch_npu's versions are those of the PyTorch that they are for.
__version__ = torch.__version__.partition("+")[0]

__getattr__ = absent_from("torch_npu")

_ND = 2  # the device's number of the format in which elements lie in index order


def npu_format_cast(self: torch.Tensor, acl_format: int, customize_dtype: Any = None) -> torch.Tensor:
    """The tensor itself: formats of the device's memory change no values, and here there is one."""
    return self


def get_npu_format(self: torch.Tensor) -> int:
    """The number of the only format here, ND."""
    return _ND
