# SPDX-License-Identifier: BSD-3-Clause
"""The quantisation operators of Ascend NPUs on CPUs, with the device's arithmetic.

The npu_ functions have the names and arguments of torch_npu. dequant() and requant() are the two output stages of
npu_quant_matmul(). dynamic_quant_float8() is npu_dynamic_quant() to 8-bit floats, and dynamic_block_quant_float8() is
npu_dynamic_block_quant() to them. dynamic_mx_quant() and anti_mx_quant() are the operators of microscaling. Inputs are
NumPy arrays, or objects with __dlpack__ (a torch.Tensor, for instance), in CPU memory, with any strides. The functions
read inputs where they are, and copy only an input that repeats one element. Results are new NumPy arrays in C order, or
go to the arrays of out.

bfloat16 inputs and results are uint16 arrays of the bits. Inputs may also be ml_dtypes.bfloat16 arrays, or tensors of
that type. The library's errors are NpuquantError, with the library's message. Arguments that cannot be handed to the
library raise an ArgumentError, or an ArgumentTypeError: argument, found and expected, operator. All of them are
RuntimeErrors, as torch_npu's.

diagnose() names the mistake behind a kernel's result, explain() shows the steps of an element, and hard_inputs() makes
inputs on which mistakes show.
"""
from __future__ import annotations

import sys
from typing import List

if sys.argv[:1] == ["-m"] and getattr(sys, "orig_argv", [""])[-len(sys.argv):][0] == "npuquant":
    # python -m npuquant runs this file before __main__.py. Until then, sys.argv has -m in place of the name.
    import npuquant_cli

    sys.excepthook = npuquant_cli.end

try:
    from ._native import VERSION as __version__
except ImportError as error:
    raise ImportError(
        f"npuquant: the compiled part of the package is missing or for another Python ({error}); install the package "
        "with pip, or take it from the folder python of a build"
    ) from error
from . import mx, testing
from ._arguments import ArgumentError, ArgumentTypeError
from ._causes.diagnosis import diagnose, explain, hard_inputs, hypotheses
from ._library import NpuquantError, available_backends, backend, set_backend, version
from ._operators import (anti_mx_quant, dequant, dynamic_block_quant_float8, dynamic_mx_quant, dynamic_quant_float8,
                         npu_anti_quant, npu_dynamic_block_quant, npu_dynamic_quant, npu_dynamic_quant_asymmetric,
                         npu_group_quant, npu_quant_matmul, npu_quant_scatter, npu_quantize, npu_trans_quant_param,
                         requant, row_quant)
from ._serving.casts import npu_dtype_cast
from ._serving.experts import (npu_moe_finalize_routing, npu_moe_init_routing_v2, npu_moe_re_routing,
                               npu_moe_token_unpermute)
from ._serving.grouped import npu_grouped_matmul
from ._serving.moves import npu_moe_compute_expert_tokens, npu_moe_init_routing, npu_moe_token_permute
from ._serving.unset import unset
from ._threads import get_num_threads, set_num_threads

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "NpuquantError",
    "__version__",
    "anti_mx_quant",
    "available_backends",
    "backend",
    "dequant",
    "diagnose",
    "dynamic_block_quant_float8",
    "dynamic_mx_quant",
    "dynamic_quant_float8",
    "explain",
    "get_num_threads",
    "hard_inputs",
    "hypotheses",
    "mx",
    "npu_anti_quant",
    "npu_dtype_cast",
    "npu_dynamic_block_quant",
    "npu_dynamic_quant",
    "npu_dynamic_quant_asymmetric",
    "npu_group_quant",
    "npu_grouped_matmul",
    "npu_moe_compute_expert_tokens",
    "npu_moe_finalize_routing",
    "npu_moe_init_routing",
    "npu_moe_init_routing_v2",
    "npu_moe_re_routing",
    "npu_moe_token_permute",
    "npu_moe_token_unpermute",
    "npu_quant_matmul",
    "npu_quant_scatter",
    "npu_quantize",
    "npu_trans_quant_param",
    "qint32",
    "qint8",
    "quint4x2",
    "quint8",
    "requant",
    "row_quant",
    "set_backend",
    "set_num_threads",
    "testing",
    "unset",
    "version",
]

#: PyTorch's quantised types, for programs without PyTorch.
qint8 = "qint8"
quint8 = "quint8"
qint32 = "qint32"
#: Eight int4 in each int32 word, the first in the lowest bits. "int4" is another name.
quint4x2 = "quint4x2"


def __dir__() -> List[str]:
    return __all__
