# SPDX-License-Identifier: BSD-3-Clause
"""Operators of torch_npu of which the stand-in knows schemas, shapes and types, but no values; and strict."""
import contextlib
import copy
import inspect
import itertools
import os
import pickle
import re
import subprocess
import sys
import unittest.mock
import warnings

import numpy as np
import pytest

import npuquant
import numpy_operators as expected
from numpy_operators import rng
from random_calls import RANDOM_CALLS

torch = pytest.importorskip("torch", reason="PyTorch cannot be imported (Debian: python3-torch)")

import npuquant.torch as operators  # noqa: E402
import test_torch  # noqa: E402
from npuquant import torch_npu as stand_in  # noqa: E402
from npuquant._torch import declared as _declared, near as _near  # noqa: E402
from npuquant._torch.tensors import array_of  # noqa: E402

PYTORCH_2 = hasattr(torch, "compile")
needs_pytorch_2 = pytest.mark.skipif(not PYTORCH_2, reason=f"PyTorch {torch.__version__} does not have it")
FLOAT8, FLOAT8_E5M2 = (getattr(torch, name, None) for name in ("float8_e4m3fn", "float8_e5m2"))
h, f, i1, i4, i8, u1 = torch.float16, torch.float32, torch.int8, torch.int32, torch.int64, torch.uint8
bf = torch.bfloat16
EXPERTS = {"group_ep": "hccl", "ep_world_size": 8, "ep_rank_id": 1, "moe_expert_num": 32}


@pytest.fixture(autouse=True)
def installed():
    stand_in.install()
    yield
    stand_in.uninstall()


def t(*shape, dtype=h):
    return torch.ones(shape, dtype=dtype)


def turned(*shape, dtype=u1):
    """A matrix that lies the other way round in memory."""
    return t(shape[1], shape[0], dtype=dtype).transpose(0, 1)


#: For each operator one call or more: arguments, keywords, and shape and type of each result.
COMPUTED = [
    ("npu_grouped_matmul", [[t(6, 8, dtype=i1)], [t(3, 8, 5, dtype=i1)]],
     {"scale": [t(3, 5, dtype=torch.bfloat16)], "per_token_scale": [t(6, dtype=f)], "output_dtype": 15, "split_item": 2,
      "group_list": torch.tensor([1, 2, 6]), "group_type": 0}, [((6, 5), torch.bfloat16)]),
    ("npu_moe_finalize_routing", [t(6, 8), t(3, 8), None, t(4, 8), t(3, 2), torch.arange(6, dtype=i4),
                                  t(3, 2, dtype=i4)], {}, [((3, 8), h)]),
    ("npu_moe_init_routing_v2", [t(4, 8), t(4, 2, dtype=i4)],
     {"expert_num": 16, "active_expert_range": [4, 12], "quant_mode": 1, "expert_tokens_num_flag": True,
      "expert_tokens_num_type": 1}, [((8, 8), i1), ((8,), i4), ((8,), i8), ((8,), f)]),
    ("npu_moe_init_routing_v2", [t(4, 8), t(4, 2, dtype=i4)],
     {"expert_num": 3, "expert_capacity": 2, "drop_pad_mode": 1, "expert_tokens_num_flag": True,
      "expert_tokens_num_type": 1}, [((3, 2, 8), h), ((8,), i4), ((3,), i8), ((6,), f)]),
    ("npu_moe_init_routing_v2", [t(4, 70), t(4, 2, dtype=i4)],
     {"expert_num": 3, "quant_mode": 3, "expert_tokens_num_flag": True}, [((8, 70), FLOAT8 or u1), ((8,), i4), ((3,), i8), ((8, 4), u1)]),
    ("npu_moe_init_routing_v2", [t(4, 70), t(4, 2, dtype=i4)],
     {"expert_num": 3, "quant_mode": 9, "expert_tokens_num_flag": True}, [((8, 35), u1), ((8,), i4), ((3,), i8), ((8, 2, 2), u1)]),
    ("npu_moe_init_routing", [t(4, 8), t(4, 2, dtype=i4), t(4, 2, dtype=i4), 3], {},
     [((6, 8), h), ((8,), i4), ((8,), i4)]),
    ("npu_moe_compute_expert_tokens", [t(6, dtype=i4), 4], {}, [((4,), i4)]),
    ("npu_moe_token_permute", [t(4, 8, dtype=i1), t(4, 2, dtype=i8)], {"num_out_tokens": -3},
     [((5, 8), i1), ((8,), i4)]),
    ("npu_moe_re_routing", [t(4, 8), torch.tensor([[1, 2], [0, 1]])], {}, [((4, 8), h), ((4,), f), ((4,), i4),
                                                                           ((2,), i8)]),
    ("npu_moe_token_unpermute", [t(6, 8), torch.arange(6, dtype=i4), t(3, 2, dtype=f)], {}, [((3, 8), h)]),
    ("npu_dtype_cast", [t(4, 8, dtype=f), 292], {}, [((4, 8), FLOAT8 or u1)]),
    ("npu_dtype_cast", [t(4, 8)], {"dtype": 297}, [((4, 4), u1)]),
    ("npu_dtype_cast", [t(4, 8, dtype=u1), 15, 296], {}, [((4, 16), bf)]),
    ("npu_dynamic_mx_quant", [t(3, 2144)], {}, [((3, 1072), u1), ((3, 34, 2), u1)]),
    ("npu_dynamic_mx_quant", [t(100, 8)], {"axis": 0, "dst_type": 292, "scale_alg": None, "block_size": 64},
     [((100, 8), FLOAT8 or u1), ((1, 8, 2), u1)]),
    ("npu_dynamic_mx_quant_with_dual_axis", [t(2, 70, 6)], {"dst_type": 23, "dst_type_max": None},
     [((2, 70, 6), FLOAT8_E5M2 or u1), ((2, 70, 1, 2), u1), ((2, 70, 6), FLOAT8_E5M2 or u1), ((2, 2, 6, 2), u1)]),
    ("npu_grouped_dynamic_mx_quant", [t(150, 6, dtype=bf), torch.tensor([40, 40, 120], dtype=i4)], {"dst_type": 296},
     [((150, 3), u1), ((5, 6, 2), u1)]),
    ("npu_dynamic_block_mx_quant", [t(70, 6)], {"dst_type": 24},
     [((70, 6), FLOAT8 or u1), ((70, 1, 2), u1), ((2, 6, 2), u1)]),
    ("npu_grouped_dynamic_block_quant", [t(2, 150, 70), torch.tensor([40, 40, 150], dtype=i4)],
     {"row_block_size": 128, "col_block_size": 64}, [((2, 150, 70), FLOAT8_E5M2 or u1), ((2, 4, 2), f)]),
    ("npu_dynamic_dual_level_mx_quant", [t(2, 3, 1030)], {"smooth_scale": t(1030), "round_mode": "floor"},
     [((2, 3, 515), u1), ((2, 3, 3), f), ((2, 3, 17, 2), u1)]),
    ("npu_anti_mx_quant", [t(3, 70, dtype=u1), t(3, 2, 2, dtype=u1)], {}, [((3, 70), bf)]),
    ("npu_anti_mx_quant", [t(70, 3, dtype=u1), t(2, 6, 2, dtype=u1)], {"axis": 0, "dst_type": 5, "src_type": 296},
     [((70, 6), h)]),
    ("npu_quant_scatter_", [t(2, 8, 4, dtype=i1), t(2, dtype=i4), t(2, 1, 4), t(4)], {}, [((2, 8, 4), i1)]),
    ("npu_scatter_nd_update", [t(4, 3), torch.tensor([[1], [3]]), t(2, 3)], {}, [((4, 3), h)]),
    ("npu_scatter_nd_update_", [t(4, 3), torch.tensor([[1], [3]]), t(2, 3)], {}, [((4, 3), h)]),
]
CALLS = [
    *COMPUTED,
    ("npu_gelu", [t(3, 8)], {"approximate": "tanh"}, [((3, 8), h)]),
    ("npu_swiglu", [t(3, 8)], {}, [((3, 4), h)]),
    ("npu_swiglu", [t(6, 8)], {"dim": 0}, [((3, 8), h)]),
    ("npu_clipped_swiglu", [t(3, 8)], {"limit": 5.0}, [((3, 4), h)]),
    ("npu_swiglu_quant", [t(3, 16)], {"smooth_scales": t(2, 8, dtype=f), "quant_mode": 1,
                                      "group_index": t(2, dtype=i4)}, [((3, 8), i1), ((3,), f)]),
    ("npu_swiglu_quant", [t(3, 16)], {"dst_type": 16, "quant_mode": 1}, [((3, 4), i1), ((3,), f)]),
    ("npu_swiglu_clip_quant", [t(3, 16, dtype=bf), torch.tensor([1, 2]), t(2, dtype=f)], {}, [((3, 8), i1), ((3,), f)]),
    ("npu_swiglu_mx_quant", [t(3, 512)], {}, [((3, 128), u1), ((3, 4, 2), u1)]),
    ("npu_swiglu_mx_quant", [t(200, 8)], {"activate_dim": 0, "axis": 0, "dst_type": 292, "group_index": t(3, dtype=i8)},
     [((100, 8), FLOAT8 or u1), ((4, 8, 2), u1)]),
    ("npu_dequant_swiglu_clamp_quant", [t(3, 16, dtype=i4)],
     {"weight_scale": t(16, dtype=f), "activation_scale": t(3, 1, dtype=f), "quant_mode": 1, "swiglu_mode": 1},
     [((3, 8), i1), ((3,), f)]),
    ("npu_swiglu_group_quant", [t(3, 512)], {"dst_type": 296, "quant_mode": 1, "round_scale": True},
     [((3, 128), u1), ((3, 4, 2), u1), ((0,), h)]),
    ("npu_swiglu_group_quant", [t(2, 3, 512)], {"dst_type": 24, "group_index": t(4, dtype=i8)},
     [((2, 3, 256), FLOAT8 or u1), ((2, 3, 2), f), ((0,), h)]),
    ("npu_swiglu_group_quant", [t(3, 512, dtype=f)], {"quant_mode": 2, "scale": t(1, dtype=f), "output_origin": True},
     [((3, 256), u1), ((0,), f), ((3, 256), f)]),
    ("npu_swiglu_group_quant", [t(3, 512)], {"quant_mode": 3, "group_index": torch.tensor([1, 2])},
     [((3, 256), u1), ((2,), f), ((0,), h)]),
    ("npu_dequant_swiglu_quant", [t(3, 16, dtype=i4)], {"weight_scale": t(2, 16, dtype=f), "quant_mode": 1},
     [((3, 8), i1), ((3,), f)]),
    ("npu_dequant_swiglu_quant", [t(3, 16, dtype=i4)],
     {"weight_scale": t(2, 16, dtype=f), "group_index": torch.tensor([[1, 2], [0, 0]])}, [((3, 8), i1), ((3,), f)]),
    ("npu_dequant_swiglu_quant", [t(3, 16, dtype=bf)], {"group_index": torch.tensor([-5, 1]), "quant_mode": 1},
     [((3, 8), i1), ((3,), f)]),
    ("npu_gelu_quant", [t(3, 8)], {"dst_type": 1}, [((3, 8), i1), ((3,), f)]),
    ("npu_rms_norm", [t(2, 3, 8), t(3, 8)], {}, [((2, 3, 8), h), ((2, 1, 1), f)]),
    ("npu_add_rms_norm", [t(3, 8), t(3, 8), t(8)], {}, [((3, 8), h), ((3, 1), f), ((3, 8), h)]),
    ("npu_rms_norm_quant", [t(3, 8), t(8), t(8), t(1), t(1)], {}, [((3, 8), i1)]),
    ("npu_add_rms_norm_quant", [t(3, 8), t(3, 8), t(8), t(8), None], {}, [((3, 8), i1), ((3, 8), i1), ((3, 8), h)]),
    ("npu_add_rms_norm_dynamic_quant", [t(3, 8), t(3, 8), t(8)], {"smooth_scale1": t(8), "smooth_scale2": t(8)},
     [((3, 8), i1), ((3, 8), i1), ((3, 8), h), ((3,), f), ((3,), f)]),
    ("npu_add_rms_norm_dynamic_quant", [t(3, 8), t(3, 8), t(8)], {"output_mask": [True, True], "y_dtype": 16},
     [((3, 1), i4), ((3, 1), i4), ((3, 8), h), ((3,), f), ((3,), f)]),
    ("npu_rms_norm_dynamic_mx_quant", [t(3, 96), t(96)], {}, [((3, 48), u1), ((3, 2, 2), u1), ((3, 1), f)]),
    ("npu_add_rms_norm_dynamic_mx_quant", [t(3, 64), t(3, 64), t(64)], {},
     [((3, 32), u1), ((3, 64), h), ((3, 1, 2), u1), ((3, 1), f)]),
    ("npu_kronecker_quant", [t(5, 4, 16), t(4, 4), t(16, 16)], {"clip_ratio": 0.9, "dst_dtype": 3},
     [((5, 4, 2), i4), ((5,), f)]),
    ("npu_grouped_matmul", [[t(6, 8)], [t(3, 8, 5)]],
     {"group_list": torch.tensor([1, 2, 6]), "group_type": 0, "split_item": 3}, [((6, 5), h)]),
    ("npu_grouped_matmul", [[t(2, 8), t(3, 8)], [t(8, 5), t(8, 7)]], {"group_type": -1}, [((2, 5), h), ((3, 7), h)]),
    *(("npu_grouped_matmul", [[t(6, 4, dtype=u1)], [weight]],
       {"group_list": torch.tensor([1, 2, 6]), "group_type": 0, "split_item": 3, "x_dtype": 297, "weight_dtype": 296,
        "output_dtype": 15}, [((6, 10), bf)])
      for weight in (t(3, 8, 5, dtype=u1), t(3, 10, 4, dtype=u1).transpose(1, 2))),
    ("npu_grouped_matmul_finalize_routing", [t(6, 8, dtype=i1), t(3, 8, 16, dtype=i1), torch.tensor([1, 2, 6])],
     {"output_bs": 4}, [((4, 16), f)]),
    ("npu_grouped_matmul_swiglu_quant",
     [t(6, 8, dtype=i1), t(3, 8, 16, dtype=i1), torch.tensor([1, 2, 6]), t(3, 16, dtype=f), t(6, dtype=f)], {},
     [((6, 8), i1), ((6,), f), ((), f)]),
    ("npu_grouped_matmul_swiglu_quant_v2",
     [t(6, 8, dtype=i1), [t(3, 8, 16, dtype=i1)], [t(3, 16, dtype=f)], t(6, dtype=f), torch.tensor([1, 2, 6])], {},
     [((6, 8), i1), ((6,), f)]),
    ("npu_quant_matmul_dequant", [t(6, 8), t(5, 8, dtype=i1), t(5, dtype=f)], {}, [((6, 5), h)]),
    ("npu_quant_grouped_matmul_dequant", [t(6, 8), t(3, 5, 8, dtype=i1), t(3, 5, dtype=f), torch.tensor([1, 2, 6])], {},
     [((6, 5), h)]),
    ("npu_quant_matmul_reduce_sum", [t(2, 6, 8, dtype=i1), t(2, 8, 5, dtype=i1)], {}, [((6, 5), torch.bfloat16)]),
    ("npu_weight_quant_batchmatmul", [t(6, 64), t(64, 2, dtype=i4), t(2, 16)], {"antiquant_group_size": 32},
     [((6, 16), h)]),
    ("npu_weight_quant_batchmatmul", [t(6, 64), turned(64, 16, dtype=i1), t(1, 16, dtype=i8)],
     {"antiquant_offset": t(1, 16, dtype=i4), "bias": t(1, 16)}, [((6, 16), h)]),
    ("npu_weight_quant_batchmatmul", [t(6, 64, dtype=bf), turned(8, 16, dtype=i4), turned(2, 16, dtype=bf)],
     {"antiquant_group_size": 32, "antiquant_offset": turned(2, 16, dtype=bf), "quant_scale": t(16, dtype=f),
      "quant_offset": t(16, dtype=f), "bias": t(16, dtype=f)}, [((6, 16), i1)]),
    ("npu_transpose_quant_batchmatmul", [t(6, 2, 8, dtype=i1), t(2, 8, 5, dtype=i1), 5],
     {"perm_x1": [1, 0, 2], "perm_x2": [0, 1, 2]}, [((6, 2, 5), h)]),
    ("npu_matmul_compress_dequant", [t(6, 8, dtype=i1), t(40, dtype=i1), t(9, dtype=i1), t(1, 5, dtype=i4),
                                     t(1, 5, dtype=i8)], {}, [((6, 5), h)]),
    ("npu_moe_init_routing_v2", [t(4, 8), t(4, 2, dtype=i4)],
     {"expert_num": 3, "expert_tokens_num_flag": True, "quant_mode": -1, "x_dtype": 290},
     [((8, 8), h), ((8,), i4), ((3,), i8), ((8,), f)]),
    ("npu_moe_gating_top_k_softmax", [t(2, 4, 8), t(2, 4, dtype=torch.bool), 3], {},
     [((2, 4, 3), h), ((2, 4, 3), i4), ((2, 4, 3), i4)]),
    ("npu_moe_gating_top_k", [t(4, 8), 3], {"bias": t(8), "group_count": 2, "k_group": 1},
     [((4, 3), h), ((4, 3), i4), ((4, 8), f)]),
    ("npu_moe_distribute_dispatch", [t(4, 8), t(4, 2, dtype=i4)], {**EXPERTS, "quant_mode": 2},
     [((64, 8), i1), ((64,), f), ((8,), i4), ((4,), i8), ((32,), i4), ((0,), i4), ((0,), f)]),
    ("npu_moe_distribute_dispatch_v2", [t(4, 8), t(4, 2, dtype=i4)], EXPERTS,
     [((64, 8), h), ((64,), f), ((8192,), i4), ((4,), i8), ((32,), i4), ((0,), i4), ((0,), f)]),
    # Ranks of shared experts: two ranks of each of two experts.
    ("npu_moe_distribute_dispatch_v2", [t(4, 8), t(4, 2, dtype=i4)],
     {**EXPERTS, "shared_expert_rank_num": 4, "shared_expert_num": 2},
     [((16, 8), h), ((16,), f), ((2048,), i4), ((1,), i8), ((8,), i4), ((0,), i4), ((0,), f)]),
    ("npu_moe_distribute_dispatch", [t(4, 8), t(4, 2, dtype=i4)],
     {**EXPERTS, "shared_expert_rank_num": 4, "shared_expert_num": 2, "expert_scales": t(4, 2, dtype=f)},
     [((8, 8), h), ((8,), f), ((8,), i4), ((1,), i8), ((8 + 128,), i4), ((0,), i4), ((8,), f)]),
    ("npu_moe_distribute_combine", [t(64, 8), t(4, 2, dtype=i4), t(8, dtype=i4), t(32, dtype=i4), t(4, 2, dtype=f)],
     EXPERTS, [((4, 8), h)]),
    ("npu_moe_distribute_combine_v2", [t(64, 8), t(4, 2, dtype=i4), t(8, dtype=i4), t(32, dtype=i4), t(4, 2, dtype=f)],
     EXPERTS, [((4, 8), h)]),
]
each_call = pytest.mark.parametrize("name, values, keywords, results", CALLS,
                                    ids=[f"{call[0]}-{number}" for number, call in enumerate(CALLS)])


def described(results):
    results = results if isinstance(results, (tuple, list)) else [results]
    return [(tuple(result.shape), result.dtype) for result in results]


def on(device, value):
    if isinstance(value, list):
        return [on(device, one) for one in value]
    return value.to(device) if isinstance(value, torch.Tensor) else value


def everywhere(device, values, keywords):
    return on(device, values), {name: on(device, value) for name, value in keywords.items()}


def test_every_row_has_a_call():
    assert {call[0] for call in CALLS} == set(_declared.ROWS)


# ---- memory ----------------------------------------------------------------------------------------------------------


class Subclass(torch.Tensor):
    pass


def tensors_in(*values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(*value)


def made_anew(value, of, gradient):
    """A value with new memory: tensors of a class, and if they can, with a gradient."""
    if isinstance(value, (list, tuple)):
        return type(value)(made_anew(one, of, gradient) for one in value)
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().clone().as_subclass(of).requires_grad_(gradient and value.is_floating_point())


WITH_VALUES = [*((name, *call) for name, of_name in test_torch.calls().items() for call in of_name),
               *(call[:3] for call in COMPUTED)]
each_with_values = pytest.mark.parametrize("name, values, keywords", WITH_VALUES,
                                           ids=[f"{i}-{call[0]}" for i, call in enumerate(WITH_VALUES)])


@each_with_values
@pytest.mark.parametrize("of", [torch.Tensor, Subclass])
def test_memory_is_that_of_pytorch(name, values, keywords, of):
    """Results, and arguments after the call, can do all that PyTorch's own tensors can."""
    for context in contextlib.nullcontext, torch.no_grad, torch.inference_mode:
        with context():
            own, gradient = torch.ones(1), not name.endswith("_")  # a leaf with a gradient is not changed in place
            given = [made_anew(one, of, gradient) for one in (list(values), list(keywords.values()))]
            given[1] = dict(zip(keywords, given[1]))
            arguments = [*tensors_in(given[0], *given[1].values())]
            flags = [(one.requires_grad, one.is_leaf) for one in arguments]
            function = getattr(operators if hasattr(operators, name) else stand_in, name)
            results = [*tensors_in(function(*given[0], **given[1]))]
            assert flags == [(one.requires_grad, one.is_leaf) for one in arguments]
            assert results and all(type(one) is of for one in results)
            # PyTorch's own operators move the elements, and so the gradients.
            assert name.startswith("npu_scatter_nd") or not any(one.requires_grad for one in results)
            assert all(one.is_inference() == own.is_inference() for one in results)
            # PyTorch itself resizes no memory that it has shared.
            for tensor in {one.data_ptr(): one.detach().as_subclass(torch.Tensor) for one in (*results, *arguments)}.values():
                tensor = tensor.view(u1) if "float8" in str(tensor.dtype) else tensor  # PyTorch 2.6 pickles none
                wanted = tensor.clone()
                for copied in copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor)), tensor.pin_memory():
                    assert torch.equal(copied, wanted)
                storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
                size = len(storage)
                storage.resize_(0)
                storage.resize_(size)
                assert torch.equal(tensor.copy_(wanted).share_memory_(), wanted) and tensor.is_shared()


# ---- shapes and types ------------------------------------------------------------------------------------------------


def by_meta(name, values, keywords):
    values, keywords = everywhere("meta", values, keywords)
    return getattr(stand_in, name)(*values, **keywords)


def by_fake_tensors(name, values, keywords):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        values = [[mode.from_tensor(one) for one in value] if isinstance(value, list) and value and
                  isinstance(value[0], torch.Tensor) else
                  mode.from_tensor(value) if isinstance(value, torch.Tensor) else value for value in values]
        return getattr(torch.ops.npu, name)(*values, **keywords)


def by_compile(name, values, keywords):
    stand_in.install(values="zeros")
    operator = getattr(torch.ops.npuquant, name)
    torch._dynamo.reset()
    # AOT takes no custom operators that return an argument.
    return torch.compile(lambda *tensors: operator(*tensors, **keywords), fullgraph=True,
                         backend="eager" if name.endswith("_") else "aot_eager")(*values)


def by_export(name, values, keywords):
    class Program(torch.nn.Module):
        def forward(self, *values, **keywords):
            return getattr(torch.ops.npuquant, name)(*values, **keywords)

    if name.endswith("_"):
        pytest.skip("torch.export takes no custom operators that return an argument")
    stand_in.install(values="zeros")
    return torch.export.export(Program(), tuple(values), keywords).module()(*values, **keywords)


@each_call
@pytest.mark.parametrize("way", [by_meta, *(pytest.param(way, marks=needs_pytorch_2)
                                            for way in (by_fake_tensors, by_compile, by_export))])
def test_shapes(way, name, values, keywords, results):
    assert described(way(name, values, keywords)) == results
    assert getattr(stand_in, name) is getattr(torch.ops.npu, name)
    assert getattr(stand_in, name).__name__ == name


@each_call
def test_values(name, values, keywords, results):
    operator = getattr(stand_in, name)
    computed = any(values is call[1] for call in COMPUTED)
    if not computed:
        says = rf"^torch_npu\.{name}( with .*)?: npuquant knows the shapes and types"
        with pytest.raises(NotImplementedError, match=says):
            operator(*values, **keywords)
    stand_in.install(values="zeros")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _declared._warned.clear()
        for _ in range(2):
            made = operator(*values, **keywords)
    assert described(made) == results
    in_place = name.endswith("_")
    assert [str(one.message).partition(" with ")[0].partition(" returns")[0] for one in caught] == (
        [] if computed or in_place else [f"torch_npu.{name}"])
    if not computed and not in_place:
        assert not any(one.any() for one in (made if isinstance(made, (tuple, list)) else [made]))
    assert not in_place or made.data_ptr() == values[0].data_ptr()


@needs_pytorch_2
@each_call
def test_opcheck(name, values, keywords, results):
    if name.startswith("npu_grouped_matmul") or name.endswith("_"):
        pytest.skip("opcheck takes no lists of tensors, and no results that are arguments")
    stand_in.install(values="zeros")
    torch.library.opcheck(getattr(torch.ops.npuquant, name).default, tuple(values), keywords,
                          test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("dtype, stored", [(torch.quint4x2, i4), (torch.int8, i1), (258, i1), (None, i1)])
def test_types(dtype, stored):
    """PyTorch's types and torch_npu's numbers, as well as PyTorch's numbers."""
    assert stand_in.npu_gelu_quant(t(3, 16).to("meta"), dst_type=dtype)[0].dtype == stored


@each_call
def test_none_is_the_default(name, values, keywords, results):
    stand_in.install(values="zeros")
    schema = getattr(stand_in, name).default._schema
    for argument in schema.arguments[len(values):]:
        if str(argument.type).startswith("Optional") and argument.name not in keywords:
            assert described(getattr(stand_in, name)(*values, **keywords, **{argument.name: None})) == results


@each_with_values
def test_none_is_the_default_where_values_are_known(name, values, keywords):
    function = getattr(operators if hasattr(operators, name) else stand_in, name)
    in_place = name.endswith("_")
    wanted = [*tensors_in(function(*made_anew(values, torch.Tensor, False), **keywords))]
    for argument in getattr(torch.ops.npuquant, name).default._schema.arguments[len(values):]:
        if str(argument.type).startswith("Optional") and argument.name not in keywords:
            given = made_anew(values, torch.Tensor, False) if in_place else values
            results = tensors_in(function(*given, **keywords, **{argument.name: None}))
            assert all(torch.equal(*pair) for pair in zip(results, wanted))


@pytest.mark.parametrize("number", [290, 291, 292, 23, 24])
def test_results_of_8_bit_floating_point(number):
    """Shapes and types, as of operators without values."""
    stored = {290: u1, 291: getattr(torch, "float8_e5m2", u1), 292: FLOAT8 or u1}.get(
        {23: 291, 24: 292}.get(number, number))
    values, keywords = [t(2, 8, 4, dtype=i1), t(2, dtype=i4), t(2, 1, 4), t(4)], {"dst_type": number}
    stand_in.install()
    given = "dst_type (hifloat8|float8_e5m2|float8_e4m3fn)"
    with pytest.raises(NotImplementedError, match=f"^torch_npu.npu_quant_scatter with {given}: npuquant knows the sh"):
        stand_in.npu_quant_scatter(*values, **keywords)
    with pytest.raises(TypeError, match="which npuquant does not implement"):
        stand_in.uninstall()
        operators.npu_quant_scatter(*values, **keywords)
    stand_in.install(values="zeros")
    with pytest.warns(UserWarning, match="returns zeros"):
        _declared._warned.clear()
        assert described(torch.ops.npu.npu_quant_scatter(*values, **keywords)) == [((2, 8, 4), stored)]
    values, keywords = everywhere("meta", values, keywords)
    assert described(stand_in.npu_quant_scatter(*values, **keywords)) == [((2, 8, 4), stored)]


def test_operators_to_8_bit_floating_point_that_have_values():
    """In every mode of the stand-in, but with strict: devices of the series A2 and A3 do not have the types."""
    x, scales = t(2, 8, dtype=f) + 3.3, t(1, dtype=f) + 0.5
    for div_mode, number in itertools.product((True, False), (290, 23, 24)):
        wanted = operators.npu_quantize(x, scales, None, number, -1, div_mode)
        for values in "exact", "zeros":
            stand_in.install(values=values)
            assert torch.equal(stand_in.npu_quantize(x, scales, None, number, -1, div_mode).view(u1), wanted.view(u1))
        stand_in.install(strict=True)
        with pytest.raises(RuntimeError, match=r"\Adtype: is .*float8.*; expected int8.*; the device refuses it \(strict\)"):
            stand_in.npu_quantize(x, scales, None, number, -1, div_mode)
    x = x.half()
    for number, (name, options) in itertools.product((290, 291, 292, 23, 24), (
            ("npu_dynamic_quant", {"quant_mode": "pertoken"}), ("npu_dynamic_quant", {"quant_mode": "pertensor"}),
            ("npu_dynamic_block_quant", {"row_block_size": 64, "col_block_size": 5, "min_scale": 200.0}))):
        keywords = {"dst_type": number, "dst_type_max": 15.0 * (number == 290), **options}
        if (number, name) == (290, "npu_dynamic_block_quant"):
            keywords["round_mode"] = "round"
        wanted = getattr(operators, name)(x, **keywords)
        for values in "exact", "zeros":
            stand_in.install(values=values, scale_form="inverse")
            for function in getattr(stand_in, name), getattr(torch.ops.npu, name):
                made = function(x, **keywords)
                assert torch.equal(made[0].view(u1), wanted[0].view(u1)) and torch.equal(made[1], wanted[1])
                assert described(function(x.to("meta"), **keywords)) == described(made)
        stand_in.install(strict=True)
        with pytest.raises(RuntimeError, match=r"\Adst_type: is .*float8.*; expected '?int8.*; the device refuses it \(s"):
            getattr(stand_in, name)(x, **keywords)


def assert_microscaled(name, values, keywords, *wanted, modes=("exact",)):
    """A quantiser's results, as PyTorch's type if it has the type, are these codes and scales in each mode."""
    kind = {24: FLOAT8, 292: FLOAT8, FLOAT8: FLOAT8, 23: FLOAT8_E5M2, 291: FLOAT8_E5M2,
            FLOAT8_E5M2: FLOAT8_E5M2}.get(keywords.get("dst_type"))
    for mode in modes:
        stand_in.install(values=mode)
        for function in getattr(operators, name), getattr(stand_in, name), getattr(torch.ops.npu, name):
            made = function(*values, **keywords)
            assert [one.dtype for one in made if one.dtype != u1] == [kind] * (kind is not None) * (len(made) // 2)
            for one, other in zip(made, wanted):
                assert one.shape == other.shape and (one.view(u1).numpy() == other).all()
            assert described(function(*on("meta", values), **keywords)) == described(made)


NUMBERS = {"float8_e4m3fn": (24, 292), "float8_e5m2": (23, 291), "float4_e2m1fn_x2": (296,), "float4_e1m2fn_x2": (297,)}


def test_microscaling():
    """The examples of the definition that torch_npu has options for, drawn calls, and all of them back."""
    calls = [(x, arguments) for _, x, arguments, *_ in expected.mx_examples()]
    calls += [(call.inputs["x"], {"dst_type" if name == "dtype" else name: value
                                  for name, value in call.options.items() if name != "bad_groups"})
              for call in (RANDOM_CALLS["dynamic_mx_quant"]() for _ in range(40))]
    for i, (x, arguments) in enumerate(calls):
        source = arguments["dst_type"]
        arguments = {**arguments, "dst_type": NUMBERS[source][i % len(NUMBERS[source])]}
        del arguments["small_groups"]  # test_examples_of_microscaling() has them
        codes, scales = npuquant.dynamic_mx_quant(x, **arguments)
        assert_microscaled("npu_dynamic_mx_quant", [test_torch.as_tensor(x)], arguments, codes, scales)
        if arguments.get("block_size", 32) != 32:
            continue  # torch_npu's way back has no option for it
        given = [torch.from_numpy(codes), torch.from_numpy(scales)]
        typed = [one.view(getattr(torch, name, u1)) for one, name in zip(given, (source, "float8_e8m0fnu"))]
        for dtype, number in (bf, 15), (h, 5), (f, 6):
            keywords = {"axis": arguments["axis"], "src_type": arguments["dst_type"]}
            wanted = npuquant.anti_mx_quant(codes, scales, dst_type=number, **keywords)
            for values, dst_type in (given, number), (given, dtype), (typed, number):
                y = stand_in.npu_anti_mx_quant(*values, dst_type=dst_type, **keywords)
                assert y.dtype == dtype and test_torch.as_array(y).tobytes() == wanted.tobytes()


def halves(*shape):
    """float16 or bfloat16 with exponents of all sizes, and some elements that are not finite."""
    scale = 2.0 ** rng.integers(-140, 120, size=(*shape[:-2], 1, shape[-1]))
    return expected.random_floats(shape, "f4", special=rng.choice([0, 0.001])) * scale.astype("f4")


@pytest.mark.parametrize("trial", range(30))
def test_relatives_of_microscaling(trial):
    """Groups along two axes, of parts of the rows, and in blocks; small groups are another rule's."""
    shape = [int(rng.integers(1, extent)) for extent in (4, 150, 90)][trial % 2:]
    dtype = list(NUMBERS)[trial % 4]
    shape[-1] += shape[-1] % 2
    x = expected.as_dtype(halves(*shape), ("f2", "u2")[trial // 2 % 2])
    number, algorithm = int(rng.choice(NUMBERS[dtype])), int(rng.choice([0, 2] if "e2m1" in dtype else [0]))
    rounding, most = int(rng.integers(3)) if "float4" in dtype else 0, float(rng.choice([0, 6, 7]))
    keywords = {"dst_type": number, "round_mode": expected.ROUNDINGS[rounding], "scale_alg": algorithm,
                "dst_type_max": most}
    wanted = [made for axis in (-1, -2)
              for made in expected.dynamic_mx_quant(x, axis, 32, rounding, algorithm, 1, most, 0, 0, dtype)]
    tensor = test_torch.as_tensor(x)
    assert_microscaled("npu_dynamic_mx_quant_with_dual_axis", [tensor], keywords, *wanted)
    wanted = expected.dynamic_block_mx_quant(x, rounding, algorithm, most, dtype)
    assert_microscaled("npu_dynamic_block_mx_quant", [tensor], keywords, *wanted)
    rows = x.reshape(-1, shape[-1])
    ends = np.sort(rng.integers(0, len(rows) + 1, size=rng.integers(1, 5))).astype("i4")
    wanted = expected.grouped_dynamic_mx_quant(rows, ends, rounding, algorithm, most, dtype)
    assert_microscaled("npu_grouped_dynamic_mx_quant", [test_torch.as_tensor(rows), torch.from_numpy(ends)], keywords,
                       *wanted)


def test_small_groups_of_relatives():
    """The definition's example of rule E, which is that of all relatives, but of grouped rows with scale_alg 2 only."""
    x = torch.zeros(32, 32, dtype=bf)
    x[0, :3] = torch.tensor([2.0**-119, -2.0**-119, 2.0**-126])
    y, scale, across, _ = stand_in.npu_dynamic_mx_quant_with_dual_axis(x, dst_type=292)
    assert y.view(u1)[0, :3].tolist() == [0x78, 0xF8, 0x40] and not scale.any() and across.view(u1)[0, 0] == 0x78
    assert stand_in.npu_dynamic_block_mx_quant(x, dst_type=292)[0].view(u1)[0, :3].tolist() == [0x78, 0xF8, 0x40]
    ends = torch.tensor([32], dtype=i4)
    assert stand_in.npu_grouped_dynamic_mx_quant(x, ends, dst_type=292)[0].view(u1)[0, :3].tolist() == [0, 0x80, 0]
    x[:2, 0] = torch.tensor([0x00FF, -0x7FC0], dtype=torch.int16).view(bf)  # 8040
    codes = stand_in.npu_grouped_dynamic_mx_quant(x, ends, dst_type=296, scale_alg=2)[0]
    assert [code & 15 for code in codes[:2, 0].tolist()] == [6, 0xA]


@pytest.mark.parametrize("trial", range(12))
def test_blocks_of_parts(trial):
    """Blocks begin anew in each part, whose scales begin at a row that follows from its first row."""
    rows, columns = int(rng.integers(1, 400)), int(rng.integers(1, 300))
    name = ("float8_e4m3fn", "float8_e5m2", "hifloat8")[trial % 3]
    x = expected.random_floats((2, rows, columns)[trial // 3 % 2:], ("f2", "u2")[trial % 2])
    row_block, block = int(rng.choice([1, 128, 256])), int(rng.choice([64, 192]))
    most = float(rng.choice([0, 15, 224])) if name == "hifloat8" else 0.0
    min_scale = float(rng.choice([0, 200]))
    ends = expected.random_ends(int(rng.integers(1, 5)), rows).astype("i4")
    keywords = {"min_scale": min_scale, "round_mode": "round" if name == "hifloat8" else "rint",
                "dst_type": 256 + _declared.TYPES[name].number, "row_block_size": row_block, "col_block_size": block,
                "dst_type_max": most}
    tensors = [test_torch.as_tensor(x), torch.from_numpy(ends)]
    y, scale = stand_in.npu_grouped_dynamic_block_quant(*tensors, **keywords)
    assert y.dtype == {"float8_e4m3fn": FLOAT8, "float8_e5m2": FLOAT8_E5M2}.get(name, u1) or u1
    wanted = np.zeros(x.shape, "u1")
    scales = np.zeros((*x.shape[:-2], rows // row_block + len(ends), -(-columns // block)), "f4")
    for i, (begin, end) in enumerate(zip([0, *ends[:-1]], ends)):
        if begin < end:
            wanted[..., begin:end, :], found = expected.dynamic_block_quant_float8(
                x[..., begin:end, :], row_block, block, min_scale, most, name)
            first = begin // row_block + i
            scales[..., first:first + found.shape[-2], :] = found
    assert (y.view(u1).numpy() == wanted).all() and scale.numpy().tobytes() == scales.tobytes()
    for made, other in zip(operators.npu_grouped_dynamic_block_quant(*tensors, **keywords), (y, scale)):
        assert made.numpy().tobytes() == other.numpy().tobytes() if made.dtype == f else torch.equal(
            made.view(u1), other.view(u1))


def assert_levels(x, wanted, **keywords):
    for function in stand_in.npu_dynamic_dual_level_mx_quant, operators.npu_dynamic_dual_level_mx_quant:
        for made, expected_ in zip(function(test_torch.as_tensor(x), **keywords), wanted):
            assert made.shape == expected_.shape and made.numpy().tobytes() == expected_.tobytes()


def test_examples_of_two_levels():
    a = [.5, -1.25, 3, 0, 2.75, -.375, 1.5, -2]
    for first, second, level0, scales, y in (
            (a, [.01, -.02, .005, -0.0], 0x3F000000, "7F 78", ("C2 07 A7 E5", "F5 83")),
            ([np.inf, 1, -1], [3, -6], 0x3F800000, "FF 7F", ("00", "F5"))):
        x = np.zeros(64, "f4")
        x[:len(first)], x[32:32 + len(second)] = first, second
        codes = b"".join(bytes.fromhex(each).ljust(16, b"\0") for each in y)
        assert_levels(expected.round_to(x, "bfloat16"), [
            np.frombuffer(codes, "u1"), np.array([level0], "u4").view("f4"),
            np.array([[*bytes.fromhex(scales)]], "u1")])


@pytest.mark.parametrize("trial", range(20))
def test_two_levels(trial):
    """Groups of all sizes: also those whose scale is subnormal, and those that the division makes zeros."""
    shape, kind = [4, int(rng.integers(1, 700)) * 2], ("f2", "u2")[trial % 2]
    sizes = rng.integers(-140, (-122, 120)[trial // 2 % 2], size=(4, shape[1] // 32 + 1)).repeat(32, axis=1)
    sizes[2:] = [[-130], [rng.choice([-200, 0])]]  # -200: zeros of both signs
    x = expected.random_floats(shape, "f4", special=rng.choice([0, 0.001])) * 2.0 ** sizes[:, :shape[1]]
    x = expected.as_dtype(x.astype("f4"), kind)
    smooth = expected.random_floats(shape[-1], kind, size=2.0) if trial % 4 > 1 else None
    rounding = trial % 3
    assert_levels(x, expected.dynamic_dual_level_mx_quant(x, smooth, rounding),
                  smooth_scale=None if smooth is None else test_torch.as_tensor(smooth),
                  round_mode=expected.ROUNDINGS[rounding])


def test_groups_of_microscaling_that_are_refused():
    x, quantise = t(70, 32), stand_in.npu_grouped_dynamic_mx_quant
    for ends in [40, 30], [71], [-1, 70]:
        with pytest.raises(ValueError, match=r"^group_index: is \[.*\]; expected ends that never decrease, up to 70"):
            quantise(x, torch.tensor(ends, dtype=i4))
    stand_in.install()
    blocks = stand_in.npu_grouped_dynamic_block_quant
    with pytest.raises(ValueError, match=r"^group_list: is \[71\]; expected ends that never decrease, up to 70"):
        blocks(x, torch.tensor([71], dtype=i4))
    for says, keywords in (("round_mode 'hybrid'", {"round_mode": "hybrid"}),
                           ("dst_type_max 16.0", {"dst_type_max": 16.0})):
        with pytest.raises(NotImplementedError, match=f"^torch_npu.npu_grouped_dynamic_block_quant with {says}: npuq"):
            blocks(x, torch.tensor([70], dtype=i4), **{"dst_type": 290, "round_mode": "round", **keywords})
    with pytest.raises(NotImplementedError, match="^torch_npu.npu_grouped_dynamic_mx_quant with scale_alg 2 and dst_t"):
        quantise(x, torch.tensor([70], dtype=i4), dst_type=297, scale_alg=2)


@pytest.mark.parametrize("keywords", [
    {"dst_type": FLOAT8 or 292}, {"axis": -1, "dst_type": 296}, {"axis": -2, "dst_type": FLOAT8 or 24},
    {"axis": -1, "round_mode": "rint", "dst_type": stand_in.float4_e2m1fn_x2, "block_size": 32},
    {"axis": -2, "round_mode": "rint", "dst_type": FLOAT8_E5M2 or 23, "block_size": 32, "scale_alg": 1},
    {"axis": 0, "dst_type": stand_in.float4_e2m1fn_x2, "scale_alg": 2, "dst_type_max": 7.0, "round_mode": "floor"},
    {"dst_type": stand_in.float4_e2m1fn_x2, "block_size": 32, "scale_alg": 2, "dst_type_max": 7.25},
    {"dst_type": FLOAT8 or 24, "scale_alg": None}, {"dst_type": 297, "round_mode": "round", "dst_type_max": 0.0},
])
def test_calls_of_microscaling_in_serving_code(keywords):
    x = (torch.randn(70, 96) * 3).bfloat16()
    wanted = npuquant.dynamic_mx_quant(test_torch.as_array(x), **keywords)
    assert_microscaled("npu_dynamic_mx_quant", [x], keywords, *wanted, modes=("exact", "zeros", "near"))


@pytest.mark.parametrize("kind, options", [(FLOAT8 or 292, {}), (296, {"round_mode": "round"})], ids=["mxfp8", "mxfp4"])
def test_linear_layers_with_weights_in_groups(kind, options):
    """As serving stacks load and call them: scales of a checkpoint are padded and brought before the weight's rows. The
    product has no values, and says so."""
    n, k, m = 96, 160, 5
    weight, x = torch.randn(n, k).bfloat16(), torch.randn(m, k).bfloat16()
    codes, scale = stand_in.npu_dynamic_mx_quant(weight, dst_type=kind)
    wanted = stand_in.npu_anti_mx_quant(codes, scale, src_type=kind, dst_type=torch.bfloat16)
    of_file = scale.reshape(n, -1)[:, :k // 32]
    scale = torch.nn.functional.pad(of_file, (0, 1)).reshape(n, 3, 2).transpose(0, 1).contiguous()
    codes = codes.transpose(0, 1)
    made = stand_in.npu_anti_mx_quant(codes.transpose(0, 1), scale.transpose(0, 1), src_type=kind, dst_type=15)
    assert torch.equal(made, wanted) and (wanted.float() - weight.float()).abs().max() < 1
    y, pertoken = stand_in.npu_dynamic_mx_quant(x, dst_type=kind, scale_alg=None, **options)
    types = {"x1_dtype": kind, "x2_dtype": kind} if kind == 296 else {}

    def product():
        return stand_in.npu_quant_matmul(
            y, codes, scale, scale_dtype=stand_in.float8_e8m0fnu, pertoken_scale=pertoken, group_sizes=[1, 1, 32],
            pertoken_scale_dtype=stand_in.float8_e8m0fnu, output_dtype=torch.bfloat16, **types)

    with pytest.raises(NotImplementedError, match="npu_quant_matmul with .*: npuquant knows the shapes and types of its"):
        product()
    stand_in.install(values="zeros")
    with pytest.warns(UserWarning, match="npu_quant_matmul with .* returns zeros"):
        assert described(product()) == [((m, n), torch.bfloat16)]
    stand_in.install()


def test_what_selects_values_that_are_not_known():
    for says, name, values, keywords in (
            (r"x\[0\] of float16", "npu_grouped_matmul", [[t(6, 8)], [t(3, 8, 5)]],
             {"group_list": torch.tensor([1, 2, 6]), "group_type": 0, "split_item": 3}),
            ("act_type 2", "npu_grouped_matmul", [[t(6, 8, dtype=i1)], [t(3, 8, 5, dtype=i1)]],
             {"group_list": torch.tensor([1, 2, 6]), "group_type": 0, "split_item": 3, "act_type": 2}),
            (r"x_dtype torch_npu.hifloat8 \(290\)", "npu_moe_init_routing_v2", [t(4, 64), t(4, 2, dtype=i4)],
             {"expert_num": 3, "x_dtype": 290})):
        with pytest.raises(NotImplementedError, match=f"^torch_npu.{name} with {says}: npuquant knows the shapes"):
            getattr(stand_in, name)(*values, **keywords)


def test_quant_scatter_in_place():
    """Into a view, and nothing if an index is refused."""
    memory = torch.zeros(2, 2, 8, 4, dtype=i1)
    into, indices, updates, scales = memory[:, 1], torch.tensor([1, 2]), t(2, 3, 4), torch.tensor([0.5] * 4)
    with pytest.raises(RuntimeError, match=r"^indices: \[1\] is 6; expected 0 to 5, "):
        stand_in.npu_quant_scatter_(into, torch.tensor([0, 6]), updates, scales)
    assert not memory.any()
    made = stand_in.npu_quant_scatter_(input=into, indices=indices, updates=updates, quant_scales=scales)
    assert made.data_ptr() == into.data_ptr() and not memory[:, 0].any()
    assert torch.equal(made, stand_in.npu_quant_scatter(torch.zeros_like(into), indices, updates, scales))
    assert [row.any().item() for row in made[1]] == [False, False, True, True, True, False, False, False]


def test_scatter():
    into, indices = torch.zeros(3, 4, 2), torch.tensor([[0, 1], [2, 3]])
    updates = torch.arange(4.0).reshape(2, 2)
    expected = into.clone()
    expected[0, 1], expected[2, 3] = updates
    assert torch.equal(stand_in.npu_scatter_nd_update(into, indices, updates), expected)
    assert not into.any()
    assert stand_in.npu_scatter_nd_update_(into, indices, updates) is into
    assert torch.equal(into, expected)


def test_results_that_are_not_wanted():
    """On the device they have no dimension, and an empty one where only shapes are computed."""
    stand_in.install(values="zeros")
    tensors = [t(3, 8), t(3, 8), t(8)]
    for keywords, left_out in (({"smooth_scale1": t(8)}, (1, 4)), ({"output_mask": [False, True]}, (0, 3)),
                               ({"output_mask": [True, False], "smooth_scale1": t(8), "smooth_scale2": t(8)}, (1, 4))):
        for device, shape in (("cpu", ()), ("meta", (0,))):
            values, others = everywhere(device, tensors, keywords)
            shapes = [tuple(one.shape) for one in stand_in.npu_add_rms_norm_dynamic_quant(*values, **others)]
            assert shapes == [shape if i in left_out else [(3, 8), (3, 8), (3, 8), (3,), (3,)][i] for i in range(5)]


# ---- numbers and words -----------------------------------------------------------------------------------------------

WRONG = {"int": [None, "1", 2.5, np.float32(1), [1]], "float": [None, "1", [1.0], np.ones(2)],
         "bool": [None, "True", 1, [True]], "str": [None, 1, ["rint"]], "Sequence[int]": [1, "1", [2.5], [None]]}


def options_of(function):
    """The numbers and words that a function takes, each with values of other kinds."""
    for parameter in inspect.signature(function).parameters.values():
        kind = str(parameter.annotation)
        optional = kind.startswith("Optional[")
        for wrong in WRONG.get(kind[len("Optional["):-1] if optional else kind, ()):
            if wrong is not None or not optional:
                yield parameter.name, wrong


@pytest.mark.filterwarnings("error")
@each_with_values
def test_values_of_another_kind(name, values, keywords):
    """One error in one line, which names the operator and the argument, of NumPy's function, PyTorch's and torch_npu's."""
    def array(value):
        return [*map(array, value)] if isinstance(value, list) else array_of(value)

    of_numpy = getattr(npuquant, name, None)
    if of_numpy is None:
        pytest.skip("NumPy has no such function")
    given = inspect.signature(of_numpy).bind(*map(array, values), **{key: array(one) for key, one in keywords.items()})
    assert of_numpy(*given.args, **given.kwargs) is not None
    given.apply_defaults()
    for option, wrong in options_of(of_numpy):
        changed = {**given.arguments, option: wrong}
        with pytest.raises(RuntimeError, match=rf"^{option}: [^\n]* \[{name}\]$"):
            of_numpy(**changed)
    of_torch = getattr(operators, name), getattr(torch.ops.npuquant, name)
    kinds = {one.name: str(one.type) for one in of_torch[1].default._schema.arguments}
    named = dict(inspect.signature(of_numpy).bind(*values, **keywords).arguments)
    first = named.pop(next(iter(named)))
    for option, wrong in options_of(of_numpy):
        # PyTorch itself takes None for False, 0 and 1 for a bool, and NumPy's numbers.
        kind = kinds.get(option, "bool")
        if kind != "bool" and not isinstance(wrong, (np.ndarray, np.generic)) and (
                wrong is not None or "Optional" not in kind):
            for function in of_torch:
                with pytest.raises(RuntimeError, match=f"(?s){name}.*{option}|^{option}: .*{name}"):
                    function(first, **{**named, option: wrong})


# ---- refusals --------------------------------------------------------------------------------------------------------


EIGHT = t(8, 8, dtype=i4)
WEIGHT = [t(6, 64), t(64, 16, dtype=i1), t(16)]
GROUPS = {"antiquant_group_size": 32}
NORM = [t(3, 8), t(3, 8), t(8)]


@pytest.mark.parametrize("says, name, values, keywords", [
    ("input: has the shape", "npu_swiglu", [t(3, 7)], {}),
    (r"weight: has the shape \[16, 64\], not transposed, so K is 16; x has K 64; it looks like \[N, K\], whose "
     "transpose", "npu_weight_quant_batchmatmul", [t(6, 64), t(16, 64, dtype=i1), t(16)], {}),
    (r"weight: has the shape \[16, 8\], not transposed, so K is 16; x has K 64; it looks like \[N, K\]",
     "npu_weight_quant_batchmatmul", [t(6, 64), t(16, 8, dtype=i4), t(16)], {}),
    (r"weight: has the shape \[16, 4\], transposed, so K is 128; x has K 64", "npu_weight_quant_batchmatmul",
     [t(6, 64), turned(16, 4, dtype=i4), t(4)], {}),
    (r"x: has the shape \[0, 64\]; expected no empty", "npu_weight_quant_batchmatmul", [t(0, 64), *WEIGHT[1:]], {}),
    (r"antiquant_scale: has the shape \[2, 16\]; expected \[16\] or \[1, 16\] or \[1\] or \[1, 1\]",
     "npu_weight_quant_batchmatmul", [*WEIGHT[:2], t(2, 16)], {}),
    (r"antiquant_scale: has the shape \[16\]; expected \[2, 16\]", "npu_weight_quant_batchmatmul", WEIGHT, GROUPS),
    (r"antiquant_scale: has the shape \[1\]; expected \[16\] or \[1, 16\]", "npu_weight_quant_batchmatmul",
     [*WEIGHT[:2], t(1, dtype=i8)], {}),
    ("antiquant_scale: is float32; expected float16 or int64, as x is float16", "npu_weight_quant_batchmatmul",
     [*WEIGHT[:2], t(16, dtype=f)], {}),
    ("antiquant_scale: is not transposed; weight is transposed", "npu_weight_quant_batchmatmul",
     [t(6, 64), turned(64, 16, dtype=i1), t(2, 16)], GROUPS),
    (r"antiquant_offset: has the shape \[1, 16\]; expected \[16\]", "npu_weight_quant_batchmatmul", WEIGHT,
     {"antiquant_offset": t(1, 16)}),
    ("antiquant_offset: is float16; expected int32", "npu_weight_quant_batchmatmul", [*WEIGHT[:2], t(16, dtype=i8)],
     {"antiquant_offset": t(16)}),
    ("weight: is int32; expected int8, as antiquant_scale is int64", "npu_weight_quant_batchmatmul",
     [t(6, 64), t(64, 2, dtype=i4), t(16, dtype=i8)], {}),
    ("antiquant_group_size: is 64; expected 0, or a multiple of 32 that is less than K, 64",
     "npu_weight_quant_batchmatmul", WEIGHT, {"antiquant_group_size": 64}),
    ("quant_offset: is given; expected None, as quant_scale is None", "npu_weight_quant_batchmatmul", WEIGHT,
     {"quant_offset": t(16, dtype=f)}),
    (r"bias: has the shape \[16, 1\]; expected \[16\] or \[1, 16\]", "npu_weight_quant_batchmatmul", WEIGHT,
     {"bias": t(16, 1)}),
    ("bias: is bfloat16; expected float32, as x is bfloat16", "npu_weight_quant_batchmatmul",
     [t(6, 64, dtype=bf), WEIGHT[1], t(16, dtype=bf)], {"bias": t(16, dtype=bf)}),
    (r"output_mask: is \[False, False\]; expected a True", "npu_add_rms_norm_dynamic_quant", NORM,
     {"output_mask": [False, False]}),
    ("x1: has 1 dimension; expected 2 to 8", "npu_add_rms_norm_dynamic_quant", [t(8), t(8), t(8)], {}),
    ("shared_expert_rank_num: is 3; expected a multiple of shared_expert_num, 2", "npu_moe_distribute_dispatch_v2",
     [t(4, 8), t(4, 2, dtype=i4)], {**EXPERTS, "shared_expert_rank_num": 3, "shared_expert_num": 2}),
    ("x: has 16384 columns; expected at most 8192", "npu_swiglu_quant", [t(1, 16384)], {}),
    (r"offsets: has the shape None; expected that of smooth_scales, \[1, 4\], as quant_mode is 0", "npu_swiglu_quant",
     [t(3, 8)], {"smooth_scales": t(1, 4, dtype=f)}),
    ("dst_type: is 'uint8'; expected 'int8'", "npu_swiglu_quant", [t(3, 8)], {"dst_type": u1}),
    ("x: has 6 columns; expected a multiple of 4 for quint4x2", "npu_swiglu_quant", [t(3, 6)], {"dst_type": 16}),
    ("clamp_limit: is inf; expected a finite number above 0", "npu_dequant_swiglu_quant", [t(3, 8)],
     {"clamp_limit": float("inf")}),
    ("glu_bias: is nan; expected a finite number", "npu_dequant_swiglu_clamp_quant", [t(3, 8)],
     {"glu_bias": float("nan")}),
    ("activation_scale: has 4 elements; expected 3", "npu_dequant_swiglu_quant", [t(3, 8)],
     {"activation_scale": t(4, dtype=f)}),
    (r"weight_scale: has the shape \[3, 8\]; expected \[2, 8\]", "npu_dequant_swiglu_quant",
     [t(3, 8, dtype=i4)], {"weight_scale": t(3, 8, dtype=f), "group_index": torch.tensor([1, 2])}),
    (r"weight_scale: has the shape \[8\]; expected \[2, 8\]", "npu_dequant_swiglu_quant",
     [t(3, 8, dtype=i4)], {"weight_scale": t(8, dtype=f), "group_index": torch.tensor([1, 2])}),
    (r"quant_scale: has the shape \[4\]; expected \[2, 4\] or \[2\]", "npu_dequant_swiglu_quant", [t(3, 8, dtype=bf)],
     {"quant_scale": t(4, dtype=f), "group_index": torch.tensor([1, 2])}),
    (r"group_index: has the shape \[1, 1, 2\]; expected \[any\] or \[any, 2\]: the size of each group of rows, or its "
     "expert and size", "npu_dequant_swiglu_quant", [t(3, 8, dtype=bf)], {"group_index": t(1, 1, 2, dtype=i8)}),
    ("group_index: has pairs; expected sizes, unless", "npu_dequant_swiglu_quant", [t(3, 8, dtype=bf)],
     {"group_index": torch.tensor([[0, 1]])}),
    (r"group_index: has the shape \[1, 2\]; expected \[any\], one number for each group", "npu_swiglu_quant", [t(3, 8)],
     {"group_index": t(1, 2, dtype=i4)}),
    ("weight.0.: has 4 rows; expected 8, as x.0. has 4 bytes in a row", "npu_grouped_matmul",
     [[t(6, 4, dtype=u1)], [t(3, 4, 5, dtype=u1)]],
     {"group_list": torch.tensor([1, 2, 6]), "group_type": 0, "split_item": 3, "x_dtype": 296, "weight_dtype": 296}),
    (r"x\[0\]: has one column; expected more", "npu_grouped_matmul", [[t(6, 1, dtype=u1)], [t(3, 2, 5, dtype=u1)]],
     {"group_list": torch.tensor([1, 2, 6]), "group_type": 0, "split_item": 3, "x_dtype": 297, "weight_dtype": 296}),
    ("x: is float16; expected bfloat16", "npu_swiglu_clip_quant", [t(3, 8), t(2, dtype=i8), t(2, dtype=f)], {}),
    (r"group_alpha: has the shape \[3\]; expected \[2\]", "npu_swiglu_clip_quant",
     [t(3, 8, dtype=bf), torch.tensor([1, 2]), t(3, dtype=f)], {}),
    ("axis: is 2; expected -1, -2, 1 or 0", "npu_swiglu_mx_quant", [t(3, 8)], {"axis": 2}),
    ("activate_dim: is 0; expected -1, -2, 2 or 1", "npu_swiglu_mx_quant", [t(2, 3, 8)], {"activate_dim": 0}),
    ("swiglu_mode: is 4; expected 0, 1, 2 or 3", "npu_swiglu_mx_quant", [t(3, 8)], {"swiglu_mode": 4}),
    ("swiglu_mode: is 1; expected 0, as activate_dim is not the last", "npu_swiglu_mx_quant", [t(4, 8)],
     {"swiglu_mode": 1, "activate_dim": -2}),
    ("swiglu_mode: is 3; expected 0 or 1, as axis is not the last", "npu_swiglu_mx_quant", [t(4, 8)],
     {"swiglu_mode": 3, "axis": 0}),
    ("x: has 3 dimensions; expected 2", "npu_swiglu_mx_quant", [t(2, 3, 8)],
     {"axis": -2, "group_index": torch.tensor([3])}),
    ("group_index: is int32; expected int64", "npu_swiglu_mx_quant", [t(3, 8)], {"group_index": t(1, dtype=i4)}),
    ("dst_type: is torch_npu.hifloat8", "npu_swiglu_mx_quant", [t(3, 8)], {"dst_type": 290}),
    ("x: is float32; expected float16 or bfloat16", "npu_rms_norm_dynamic_mx_quant", [t(3, 8, dtype=f), t(8)], {}),
    ("x2: is bfloat16; expected float16, as x1 is", "npu_add_rms_norm_dynamic_mx_quant",
     [t(3, 8), t(3, 8, dtype=bf), t(8)], {}),
    *((says, "npu_swiglu_group_quant", [t(3, 512)], keywords) for says, keywords in (
        ("quant_mode: is 4; expected 0, 1, 2 or 3", {"quant_mode": 4}),
        ("clamp_limit: is 0.0; expected a number above 0", {"clamp_limit": 0.0}),
        ("weight: has 4 elements; expected 3", {"weight": t(4, dtype=f)}),
        ("group_index: is int32; expected int64", {"group_index": t(1, dtype=i4)}),
        ("scale: is None; quant_mode 2 needs it", {"quant_mode": 2}),
        (r"scale: has the shape \[1\]; expected \[2\]",
         {"quant_mode": 2, "scale": t(1, dtype=f), "group_index": torch.tensor([1, 1])}),
        ("output_origin: is True; expected False with quant_mode 0", {"output_origin": True}),
        ("block_size: is 128; expected 0 or 32", {"quant_mode": 1, "block_size": 128}),
        ("round_scale: is False; expected True", {"quant_mode": 1}),
        ("dst_type: is 'float4_e2m1fn_x2'; expected 'float8_e4m3fn' or 'float8_e5m2'", {"dst_type": 296}))),
    ("x: is float32; expected float16 or bfloat16", "npu_swiglu_group_quant", [t(3, 512, dtype=f)], {}),
    ("x: has 384 columns; expected a multiple of 256", "npu_swiglu_group_quant", [t(3, 384)], {}),
    ("quant_mode: is 2; expected 0 or 1", "npu_swiglu_quant", [t(3, 8)], {"quant_mode": 2}),
    (r"smooth_scales: has the shape \[2, 8\]; expected \[2, 4\] or \[2\]", "npu_swiglu_quant", [t(3, 8)],
     {"smooth_scales": t(2, 8, dtype=f), "group_index": t(2, dtype=i4), "quant_mode": 1}),
    ("weight_scale: is None", "npu_dequant_swiglu_quant", [t(3, 8, dtype=i4)], {}),
    (r"gamma: has the shape \[7\]; expected \[8\]", "npu_rms_norm_quant", [t(3, 8), t(7), t(8), t(1), t(1)], {}),
    (r"x2: has the shape \[3, 9\]; expected \[3, 8\]", "npu_add_rms_norm_quant",
     [t(3, 8), t(3, 9), t(8), t(8), None], {}),
    ("dst_type: is float4_e2m1fn_x2, with 2 elements", "npu_dynamic_mx_quant", [t(3, 33)], {}),
    ("block_size: is 48; expected a multiple of 32", "npu_dynamic_mx_quant", [t(3, 32)], {"block_size": 48}),
    ("axis: is 2; input has 2 dimensions", "npu_dynamic_mx_quant", [t(3, 32)], {"axis": 2}),
    (r"dst_type: is 300; expected float8_e4m3fn, float8_e5m2, float4_e2m1fn_x2 or float4_e1m2fn_x2",
     "npu_dynamic_mx_quant", [t(3, 32)], {"dst_type": 300}),
    ("scale_alg: is 3; expected 0, 1 or 2", "npu_dynamic_mx_quant", [t(3, 32)], {"scale_alg": 3}),
    ("input: is float32; expected float16 or bfloat16", "npu_dynamic_mx_quant_with_dual_axis", [t(3, 32, dtype=f)], {}),
    ("input: has 1 dimension; expected 2 to 7", "npu_dynamic_mx_quant_with_dual_axis", [t(32)], {}),
    ("scale_alg: is 1; expected 0 or 2", "npu_dynamic_block_mx_quant", [t(3, 32)], {"scale_alg": 1}),
    ("dst_type_max: is 8.0; expected 0.0, 6.0 or 7.0", "npu_dynamic_block_mx_quant", [t(3, 32)], {"dst_type_max": 8.0}),
    ("input: has 4 dimensions; expected 2 to 3", "npu_dynamic_block_mx_quant", [t(2, 2, 3, 32)], {}),
    ("group_index: is int64; expected int32", "npu_grouped_dynamic_mx_quant", [t(3, 32), torch.tensor([3])], {}),
    ("blocksize: is 64; expected 32", "npu_grouped_dynamic_mx_quant", [t(3, 32), torch.tensor([3], dtype=i4)],
     {"blocksize": 64}),
    *((says, "npu_grouped_dynamic_block_quant", [t(3, 8), torch.tensor([3], dtype=i4)], keywords)
      for says, keywords in (
          ("dst_type: is 'int8'; expected 'float8_e4m3fn', 'float8_e5m2' or 'hifloat8'", {"dst_type": 1}),
          ("round_mode: is 'hybrid'; expected 'rint'", {"round_mode": "hybrid"}),
          ("row_block_size: is 64; expected 1, 128, 256 or 512", {"row_block_size": 64}),
          ("col_block_size: is 32; expected 64", {"col_block_size": 32}),
          ("group_list_type: is 1; expected 0", {"group_list_type": 1}),
          ("dst_type_max: is 15.0; expected 0", {"dst_type_max": 15.0}))),
    *((says, "npu_dynamic_dual_level_mx_quant", [x], keywords) for says, x, keywords in (
        ("input: has 3 columns; expected an even number", t(2, 3), {}),
        (r"input: has the shape \[0, 4\]; expected no empty dimension", t(0, 4), {}),
        ("input: is float32; expected float16 or bfloat16", t(2, 4, dtype=f), {}),
        ("smooth_scale: is bfloat16; expected float16, as input is", t(2, 4), {"smooth_scale": t(4, dtype=bf)}),
        (r"smooth_scale: has the shape \[2\]; expected \[4\]", t(2, 4), {"smooth_scale": t(2)}),
        ("round_mode: is 'ceil'; expected 'rint', 'round' or 'floor'", t(2, 4), {"round_mode": "ceil"}))),
    ("src_type: is torch_npu.hifloat8", "npu_anti_mx_quant", [t(3, 32, dtype=u1), t(3, 1, 2, dtype=u1)],
     {"src_type": 290}),
    (r"mxscale: has the shape \[3, 2, 2\]; expected \[3, 1, 2\]", "npu_anti_mx_quant",
     [t(3, 32, dtype=u1), t(3, 2, 2, dtype=u1)], {}),
    ("mxscale: is float32; expected uint8 or float8_e8m0fnu", "npu_anti_mx_quant",
     [t(3, 32, dtype=u1), t(3, 1, 2, dtype=f)], {}),
    ("x: is float16; expected uint8 or float8_e5m2, as src_type is float8_e5m2", "npu_anti_mx_quant",
     [t(3, 32), t(3, 1, 2, dtype=u1)], {"src_type": 23}),
    ("weight: has 9 rows; x has 8 columns", "npu_grouped_matmul", [[t(6, 8)], [t(3, 9, 5)]],
     {"group_list": torch.tensor([1, 2, 6]), "group_type": 0, "split_item": 3}),
    ("x: has 129 tensors; expected 1 to 128", "npu_grouped_matmul", [[t(1, 8)] * 129, [t(8, 5)] * 129],
     {"group_type": -1}),
    ("x: is int8; expected float16", "npu_quant_matmul_dequant", [t(6, 8, dtype=i1), t(5, 8, dtype=i1), t(5, dtype=f)],
     {}),
    (r"updates: has the shape \[3, 3\]; expected \[2, 3\]", "npu_scatter_nd_update",
     [t(4, 3), torch.tensor([[1], [3]]), t(3, 3)], {}),
    ("ep_rank_id: is 8; expected 0 to 7", "npu_moe_distribute_dispatch", [t(4, 8), t(4, 2, dtype=i4)],
     {**EXPERTS, "ep_rank_id": 8}),
    (r"scale: has the shape \[5, 8\]; expected \[8, 8\] or \[1, 8\]", "npu_moe_init_routing_v2",
     [t(4, 8), t(4, 2, dtype=i4)], {"expert_num": 8, "quant_mode": 1, "scale": t(5, 8, dtype=f)}),
])
def test_refused(says, name, values, keywords):
    for device in "cpu", "meta":
        moved, others = everywhere(device, values, keywords)
        with pytest.raises(RuntimeError, match=rf"^{says}.*\[{name}\]$"):
            getattr(torch.ops.npu, name)(*moved, **others)


@pytest.mark.parametrize("says, values, kind", [
    (r"is \[3, 2\]; expected ends that never decrease", [3, 2], 0), ("ends with row 4; expected at most 3", [1, 4], 0),
    (r"is \[-1, 2\]; expected sizes of 0 or more", [-1, 2], 1), ("ends with row 4; expected at most 3", [1, 3], 1)])
def test_groups_are_looked_at(says, values, kind):
    stand_in.install(values="zeros")
    for groups in torch.tensor(values, dtype=i4), torch.tensor([1, 2], dtype=i4):
        refused = groups.tolist() == values
        with pytest.raises(RuntimeError, match=f"^group_index: {says}") if refused else contextlib.nullcontext():
            stand_in.npu_swiglu_quant(t(3, 8), group_index=groups, group_list_type=kind, quant_mode=1)


@pytest.mark.skipif(FLOAT8 is not None, reason="this PyTorch has 8-bit floating point")
def test_types_that_pytorch_lacks():
    assert stand_in.npu_dynamic_mx_quant(t(3, 32, dtype=h).to("meta"), dst_type=292)[0].dtype == FLOAT8 or u1
    with pytest.raises(NotImplementedError, match="^dst_type: is float6_e3m2, which PyTorch .* does not have"):
        stand_in.npu_gelu_quant(t(3, 32, dtype=h).to("meta"), dst_type=294)


def test_modes_that_are_not_known():
    with pytest.raises(NotImplementedError, match="^quant_mode: is 8; npuquant knows -1, 0, 1, 2, 3, 9, 16 or 17"):
        stand_in.npu_moe_init_routing_v2(t(4, 8), t(4, 2, dtype=i4), quant_mode=8)


def test_routing_in_groups():
    """To 8- and 4-bit floats: by the device's software."""
    x, ids = torch.zeros(1, 32, dtype=torch.bfloat16), torch.zeros(1, 1, dtype=i4)
    x[0, 0], x[0, 1] = 450, -1
    for cann, version, scale, y in (("9.0", "9.0.0", 0x7F, [0x7E, 0xB8]), ("9.2", "9.2.0", 0x80, [0x76, 0xB0])):
        stand_in.install(cann=cann)
        assert torch.version.cann == version
        rows, _, _, scales = stand_in.npu_moe_init_routing_v2(x, ids, expert_num=1, quant_mode=3)
        assert rows.dtype == (FLOAT8 or u1) and rows.view(u1)[0, :2].tolist() == y
        assert scales.dtype == u1 and scales.tolist() == [[scale, 0]]
    for options in ({"cann": "8.5"}, {"scale_form": "inverse"}):
        stand_in.install(**options)
        assert torch.version.cann == "8.5.0"
        with pytest.raises(NotImplementedError, match="with quant_mode 3 and CANN 8.5: npuquant knows the shapes"):
            stand_in.npu_moe_init_routing_v2(x, ids, expert_num=1, quant_mode=3)
    with pytest.raises(ValueError, match="^cann: is '9.1'; expected '9.0', '9.2' or '8.5'"):
        stand_in.install(cann="9.1")
    stand_in.install()


@pytest.mark.parametrize("option, expected", [("values", "'exact', 'zeros' or 'near'"), ("unset", "'zeros' or 'nan'")])
def test_options_of_install_are_checked(option, expected):
    with pytest.raises(ValueError, match=f"^{option}: is 'some'; expected {expected}$"):
        stand_in.install(**{option: "some"})


# ---- mistakes of a serving stack, made again: with a mock in place of torch_npu its tests passed ---------------------


def test_keyword_that_does_not_exist():
    """vllm-project/vllm-ascend pull request 13149."""
    keywords = {"dst_type": 296, "quant_mode": 1, "round_scale": True, "clamp_limit": 7.0}
    with pytest.raises((RuntimeError, TypeError), match="glu_alpha"):
        stand_in.npu_swiglu_group_quant(t(4, 512), glu_alpha=1.702, **keywords)
    stand_in.install(values="zeros")
    assert stand_in.npu_swiglu_group_quant(t(4, 512), **keywords)[0].shape == (4, 128)


def mxfp4_product(weight, scale, k, group_sizes=(1, 1, 32)):
    """x of [5, K] times weight, both of 4 bits, with a scale for each 32 elements of K, in pairs."""
    pairs = -(-k // 64)
    return stand_in.npu_quant_matmul(
        t(5, k // 2, dtype=u1), weight, scale, pertoken_scale=t(5, pairs, 2, dtype=u1), output_dtype=torch.bfloat16,
        x1_dtype=stand_in.float4_e2m1fn_x2, x2_dtype=stand_in.float4_e2m1fn_x2,
        scale_dtype=stand_in.float8_e8m0fnu, pertoken_scale_dtype=stand_in.float8_e8m0fnu, group_sizes=group_sizes)


def test_scale_that_lacks_a_row():
    """vllm-project/vllm-ascend pull request 12201: K / 32 rounded down, where K is no multiple of 64."""
    k, weight = 2144, turned(2144 // 2, 64)
    with pytest.raises(RuntimeError, match=r"^scale: has the shape \[33, 64, 2\]; expected \[34, 64, 2\]"):
        mxfp4_product(weight, t(k // 32 // 2, 64, 2, dtype=u1), k)
    stand_in.install(values="zeros")
    for group_sizes in ([1, 1, 32], [0, 0, 0], [0, 1, 32]):
        assert mxfp4_product(weight, t(34, 64, 2, dtype=u1), k, group_sizes).shape == (5, 64)
    with pytest.raises(RuntimeError, match=r"^group_sizes: is \[1, 1, 16\]; expected \[1, 1, 32\], of which each may"):
        mxfp4_product(weight, t(34, 64, 2, dtype=u1), k, [1, 1, 16])


def test_weight_that_was_made_contiguous():
    """vllm-project/vllm-ascend pull request 11573: which dimension is packed, the strides say."""
    stand_in.install(values="zeros")
    weight, scale = turned(64, 96), t(2, 96, 2, dtype=u1)
    assert mxfp4_product(weight, scale, 128).shape == (5, 96)
    with pytest.raises(RuntimeError, match=r"^x2: has the shape \[64, 96\], not transposed, so K is 64; x1 has K 128"):
        mxfp4_product(weight.contiguous(), scale, 128)


def test_types_without_microscaling():
    values = t(5, 8, dtype=u1), t(8, 6, dtype=u1), t(6, dtype=f)
    types = {"output_dtype": torch.float16, "x1_dtype": stand_in.hifloat8, "x2_dtype": stand_in.hifloat8}
    with pytest.raises(NotImplementedError, match=r"^torch_npu\.npu_quant_matmul with x1_dtype: npuquant knows the "):
        stand_in.npu_quant_matmul(*values, **types)
    stand_in.install(values="zeros")
    y = stand_in.npu_quant_matmul(*values, **types)
    assert (y.shape, y.dtype) == ((5, 6), h)


# ---- strict ----------------------------------------------------------------------------------------------------------

PRODUCT = [t(3, 8, dtype=i1), t(8, 4, dtype=i1), t(4, dtype=f)]
ROWS = {"pertoken_scale": t(3, dtype=f)}
SCATTER = [t(2, 8, 16, dtype=i1), t(2, dtype=i4), t(2, 1, 16), t(16, dtype=f)]


@pytest.mark.parametrize("says, name, values, keywords", [
    ("input: is float32; expected float16 or bfloat16", "npu_dynamic_quant", [t(3, 8, dtype=f)], {}),
    ("group_index: is int64; expected int32", "npu_dynamic_quant", [t(3, 8)],
     {"smooth_scales": t(1, 8), "group_index": torch.tensor([3])}),
    ("smooth_scales: is bfloat16; expected float16", "npu_dynamic_quant_asymmetric", [t(3, 8)],
     {"smooth_scales": t(8, dtype=torch.bfloat16)}),
    ("offset: is float16; expected float32", "npu_group_quant",
     [t(3, 8), t(1, 8, dtype=f), torch.tensor([3])], {"offset": t(1)}),
    ("x1: has 3 dimensions; expected 2 with per-token scales", "npu_quant_matmul",
     [t(2, 3, 8, dtype=i1), *PRODUCT[1:]], {"output_dtype": h, "pertoken_scale": t(3, dtype=f)}),
    ("output_dtype: is 'float32'; expected 'int8', 'float16', 'bfloat16' or 'int32'", "npu_quant_matmul", PRODUCT,
     {"output_dtype": f}),
    ("scale: is bfloat16; expected float32, as output_dtype is float16 and pertoken_scale is given", "npu_quant_matmul",
     [*PRODUCT[:2], t(4, dtype=torch.bfloat16)], {"output_dtype": h, **ROWS}),
    ("bias: is float16; expected int32, bfloat16 or float32, as output_dtype is bfloat16", "npu_quant_matmul", PRODUCT,
     {"output_dtype": torch.bfloat16, "bias": t(4)}),
    (r"scale: has the shape \[1, 4\]; expected \[1\] or \[any\]", "npu_quant_matmul",
     [*PRODUCT[:2], t(1, 4, dtype=i8)], {"output_dtype": h}),
    ("x1: has 7 dimensions; expected 2 to 6", "npu_quant_matmul", [t(1, 1, 1, 1, 1, 3, 8, dtype=i1), *PRODUCT[1:]], {}),
    ("quant_scales: is bfloat16; expected float32", "npu_quant_scatter", [*SCATTER[:3], t(16, dtype=torch.bfloat16)],
     {}),
    ("updates: is float32; expected bfloat16", "npu_quant_scatter_",
     [*SCATTER[:2], t(2, 1, 16, dtype=f), SCATTER[3]], {}),
    ("updates: has 4 columns; expected a multiple of 16", "npu_quant_scatter",
     [t(2, 8, 4, dtype=i1), SCATTER[1], t(2, 1, 4), t(4, dtype=f)], {}),
    ("quant_mode: is 2; expected -1, 0 or 1", "npu_moe_init_routing_v2", [t(3, 8), t(3, 1, dtype=i4)],
     {"expert_num": 2, "quant_mode": 2}),
    ("gamma: is float32; expected float16", "npu_add_rms_norm_dynamic_quant", [*NORM[:2], t(8, dtype=f)], {}),
    ("weight: has N 65536; expected at most 65535", "npu_weight_quant_batchmatmul",
     [t(1, 2), t(2, 65536, dtype=i1), t(1)], {}),
    ("antiquant_scale: is int64; expected it only with a transposed weight, .*", "npu_weight_quant_batchmatmul",
     [*WEIGHT[:2], t(16, dtype=i8)], {}),
    ("activation_scale: is None; expected one for int32 x", "npu_dequant_swiglu_quant", [t(3, 8, dtype=i4)],
     {"weight_scale": t(8, dtype=f)}),
    ("x: is float16; expected int32 or bfloat16 with group_index", "npu_dequant_swiglu_quant", [t(3, 64)],
     {"group_index": torch.tensor([3])}),
    ("quant_offset: is None; quant_mode 0 needs it with group_index", "npu_dequant_swiglu_quant", [t(3, 64, dtype=bf)],
     {"group_index": torch.tensor([3])}),
    *((f"x: has {columns} columns; expected a multiple of 64, at most {most}, with group_index", "npu_dequant_swiglu_quant",
       [t(1, columns, dtype=bf)], {"group_index": torch.tensor([1]), **options}) for columns, most, options in (
        (32, 10496, {"quant_mode": 1}), (10560, 10496, {"quant_mode": 1}), (9536, 9472, {"quant_offset": t(1, dtype=f)}),
        (8704, 8640, {"quant_mode": 1, "bias": t(8704, dtype=i4)}), (9344, 9280, {"quant_mode": 1, "swiglu_mode": 1}))),
    ("dst_type: is hifloat8; expected int8 or quint4x2", "npu_dynamic_quant", [t(3, 8)], {"dst_type": 290}),
    ("tokens: is float32; expected float16, bfloat16 or int8, and no tokens_dtype", "npu_moe_re_routing",
     [t(2, 8, dtype=f), torch.tensor([[2]])], {}),
    ("tokens: is uint8; expected float16, bfloat16 or int8, and no tokens_dtype", "npu_moe_re_routing",
     [t(2, 8, dtype=u1), torch.tensor([[2]])], {"tokens_dtype": 290}),
    ("scales: is float16; expected float32 or bfloat16", "npu_quantize", [t(3, 8), t(1), None, 1], {}),
    ("zero_points: is float32; expected int8, uint8, int32 or bfloat16", "npu_quantize",
     [t(3, 8), t(1, dtype=f), t(1, dtype=f), 1], {}),
    ("scales: is float32; expected float16, as input is", "npu_quantize", [t(3, 8), t(1, dtype=f), None, 1, -1, False],
     {}),
    ("scale: is float16; expected float32 or bfloat16", "npu_anti_quant", [t(3, 8, dtype=i1), t(1)], {}),
    (r"scale: has the shape \[3, 8\]; expected \[any\]", "npu_anti_quant", [t(3, 8, dtype=i1), t(3, 8, dtype=f)], {}),
    ("dst_dtype: is 'float32'; expected 'float16' or 'bfloat16'", "npu_anti_quant", [t(3, 8, dtype=i1), t(1, dtype=f)],
     {"dst_dtype": f}),
    ("scale: is not contiguous; expected a contiguous tensor", "npu_trans_quant_param", [t(8, dtype=f)[::2]], {}),
    ("x: is float32; expected float16 or bfloat16", "npu_dynamic_block_quant", [t(3, 8, dtype=f)], {}),
    ("x: has 1 dimension; expected 2 to 3", "npu_dynamic_block_quant", [t(8)], {}),
    ("col_block_size: is 64; expected 128", "npu_dynamic_block_quant", [t(3, 8)], {"col_block_size": 64}),
    ("dst_type: is 'quint4x2'; expected 'int8'", "npu_dynamic_block_quant", [t(3, 8)], {"dst_type": 16}),
    ("weight: has 3 dimensions; expected 2: of 3 it packs only the first matrix", "npu_convert_weight_to_int4pack",
     [t(1, 8, 8, dtype=i4)], {}),
    ("weight: is float32; expected int32", "npu_convert_weight_to_int4pack", [t(8, 8, dtype=f)], {}),
])
def test_strict(says, name, values, keywords):
    operator = getattr(torch.ops.npu, name)
    stand_in.install(values="zeros", strict=True)
    with pytest.raises(RuntimeError, match=rf"^{says}; the device refuses it \(strict\) \[{name}\]$"):
        operator(*values, **keywords)
    stand_in.install(values="zeros", strict=False)
    try:
        operator(*values, **keywords)
    except RuntimeError as error:  # what the operator itself refuses, it says in its own words
        assert "strict" not in str(error)


def test_routing_of_cann_8_5():
    """It knows fewer modes, and rounds in another way."""
    x, ids = torch.tensor([[31.75, -17.125, -4.75, 28.75]]), torch.zeros(1, 1, dtype=i4)
    options = {"expert_num": 1, "expert_tokens_num_type": 1, "expert_tokens_num_flag": True, "quant_mode": 1}
    for form, second in ("product", -68), ("inverse", -69):
        stand_in.install(form, strict=True)
        assert stand_in.npu_moe_init_routing_v2(x, ids, **options)[0].tolist() == [[127, second, -19, 115]]
    with pytest.raises(RuntimeError, match=r"^active_num: is 0; expected -1 or 1 with CANN 8\.5; the device refuses it"):
        stand_in.npu_moe_init_routing_v2(x, ids, active_num=0, **options)


def test_strict_of_the_environment(monkeypatch):
    monkeypatch.setenv("NPUQUANT_STRICT", "1")
    stand_in.install()
    with pytest.raises(RuntimeError, match="strict"):
        torch.ops.npu.npu_dynamic_quant(t(3, 8, dtype=f))
    stand_in.install(strict=False)
    torch.ops.npu.npu_dynamic_quant(t(3, 8, dtype=f))


SWIGLU = "import torch, torch_npu\nprint(torch_npu.npu_swiglu(torch.ones(2, 4)).tolist())\n"
ZEROS = "[[0.0, 0.0], [0.0, 0.0]]\n"
ROUTING = """
import torch, torch_npu
rows, *_ = torch_npu.npu_moe_init_routing_v2(torch.ones(2, 1), torch.tensor([[0], [2]], dtype=torch.int32),
                                             expert_num=3, active_expert_range=[0, 1])
print(rows.tolist())
"""


@pytest.mark.parametrize("script, options, environment, status, printed", [
    (SWIGLU, ["--values", "zeros"], {"NPUQUANT_VALUES": "zeros"}, 0, ZEROS),
    (SWIGLU, [], {"NPUQUANT_VALUES": "zeros"}, 0, ZEROS),
    (SWIGLU, ["--values", "exact"], {"NPUQUANT_VALUES": "zeros"}, 1, ""),
    (ROUTING, [], {}, 0, "[[1.0], [0.0]]\n"),
    (ROUTING, ["--unset", "nan"], {}, 0, "[[1.0], [nan]]\n"),
    (ROUTING, [], {"NPUQUANT_UNSET": "nan"}, 0, "[[1.0], [nan]]\n"),
    (ROUTING, ["--unset", "zeros"], {"NPUQUANT_UNSET": "nan"}, 0, "[[1.0], [0.0]]\n")])
def test_options_and_environment_of_a_script(tmp_path, script, options, environment, status, printed):
    (tmp_path / "script.py").write_text(script)
    result = subprocess.run([sys.executable, "-m", "npuquant.torch_npu", *options, str(tmp_path / "script.py")],
                            env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            universal_newlines=True)
    assert (result.returncode, result.stdout) == (status, printed)


ROUTED = [t(2, 4), torch.tensor([[0], [2]], dtype=i4)]
LEAST = {i1: -128, i4: -2**31, i8: -2**63}


@pytest.mark.parametrize("name, values, keywords, unset", [
    ("npu_moe_init_routing_v2", ROUTED, {"expert_num": 3, "active_expert_range": [0, 1], "row_idx_type": 1}, [4, 1, 1, 2]),
    ("npu_moe_init_routing_v2", [ROUTED[0].bfloat16(), ROUTED[1]],
     {"expert_num": 3, "active_expert_range": [0, 1], "quant_mode": 1}, [4, 0, 1, 1]),
    ("npu_moe_init_routing_v2", ROUTED, {"expert_num": 3, "expert_tokens_num_type": 2, "active_expert_range": [1, 2],
                                         "expert_tokens_num_flag": True}, [8, 0, 2, 2]),
    ("npu_moe_re_routing", [t(4, 8, dtype=u1), torch.tensor([[1, 0], [0, 1]])], {"tokens_dtype": 290}, [16, 4, 2, 0]),
    ("npu_grouped_matmul", [[t(5, 8, dtype=i1)], [t(2, 8, 3, dtype=i1)]],
     {"group_list": torch.tensor([1, 2]), "group_type": 0, "split_item": 2, "output_dtype": i4}, [9]),
    ("npu_dequant_swiglu_quant", [t(3, 64, dtype=i4)],
     {"weight_scale": t(2, 64, dtype=f), "activation_scale": t(3, dtype=f), "quant_mode": 1,
      "group_index": torch.tensor([1, 1])}, [32, 1]),
])
def test_unset_rows_are_filled(name, values, keywords, unset):
    stand_in.install(values="near", unset="nan")
    results = getattr(stand_in, name)(*values, **keywords)
    for result, count in zip(results, unset):
        mask = stand_in.unset(result)
        assert int(mask.sum()) == count
        filled = result[mask]
        assert torch.isnan(filled).all() if filled.is_floating_point() else (
            filled == LEAST.get(filled.dtype, 0x80)).all()
        assert not result.is_floating_point() or not torch.isnan(result[~mask]).any()
    stand_in.install(values="near")
    rows = getattr(stand_in, name)(*values, **keywords)[0]
    assert not rows[stand_in.unset(rows)].any()
    _near.take_calls()  # which nobody needs reported


def test_strict_takes_what_the_device_takes():
    stand_in.install(strict=True)
    y, scale = torch.ops.npu.npu_dynamic_quant(t(3, 8))
    assert (y == 127).all() and scale.shape == (3,)
    assert torch.ops.npu.npu_quant_matmul(*PRODUCT, output_dtype=h).shape == (3, 4)
    assert torch.ops.npu.npu_quant_matmul(*PRODUCT, output_dtype=h, bias=t(4), **ROWS).shape == (3, 4)
    x = t(3, 8)
    assert stand_in.npu_quantize(input=x, scales=t(1), zero_points=None, dtype=1, axis=-1, div_mode=False).dtype == i1
    assert stand_in.npu_quantize(self=x, scales=t(1, dtype=f), zero_points=t(1, dtype=i4), dtype=1).dtype == i1
    assert stand_in.npu_anti_quant(t(3, 8, dtype=i1), t(8, dtype=f)).dtype == h
    assert stand_in.npu_trans_quant_param(t(8, dtype=f)).dtype == i8
    assert stand_in.npu_dynamic_block_quant(x)[0].dtype == i1
    assert stand_in.npu_convert_weight_to_int4pack(EIGHT).shape == (8, 1)
    stand_in.install(values="zeros", strict=True)
    y, _ = stand_in.npu_dequant_swiglu_quant(x, dst_type=291, activate_dim=0)  # which the device ignores
    assert (y.shape, y.dtype) == ((3, 4), i1)
    for name in "npu_quant_scatter", "npu_quant_scatter_":
        made = getattr(torch.ops.npu, name)(input=SCATTER[0].clone(), indices=SCATTER[1], updates=SCATTER[2],
                                            quant_scales=SCATTER[3])
        assert torch.equal(made, SCATTER[0])


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["torch_npu.npu_swiglu", "torch_npu._npu_paged_attention", "torch_npu.npu_rotary_mul",
                                    "torch.ops.npu.npu_rotary_mul", "torch_npu.npu_dynamic_quant",
                                    "torch.npu.utilization"])
def test_patch(target, monkeypatch):
    """unittest.mock.patch and monkeypatch.setattr, and the stand-in's own text before and after."""
    owner, _, name = target.rpartition(".")

    def resolve():
        import torch_npu

        found = {"torch": torch, "torch_npu": torch_npu}[owner.partition(".")[0]]
        for part in owner.split(".")[1:]:
            found = getattr(found, part)
        return found

    with unittest.mock.patch(target, return_value=7) as mock:
        assert getattr(resolve(), name)(1) == 7
    mock.assert_called_once_with(1)
    monkeypatch.setattr(resolve(), name, lambda: 8)
    assert getattr(resolve(), name)() == 8
    monkeypatch.undo()
    if name != "npu_dynamic_quant":
        with pytest.raises(NotImplementedError, match=name):
            getattr(resolve(), name)(*([t(2, 2)] if name == "npu_swiglu" else []))


@pytest.mark.parametrize("module", [
    "torch_npu.dynamo.torchair.configs.compiler_config", "torch_npu.dynamo.torchair.scope", "torch.npu.streams",
    "torch.npu.memory", "torch.npu.utils"])
def test_submodules(module):
    assert __import__(module, fromlist=["x"]).__name__


def test_int32_without_div_mode():
    x, scales = torch.arange(-8.0, 8).reshape(2, 8), t(1, dtype=f)
    words = stand_in.npu_quantize(x, scales, None, torch.quint4x2, -1, False)
    for dtype in torch.int32, 259:
        assert torch.equal(stand_in.npu_quantize(x, scales, None, dtype, -1, False), words)
        meta = stand_in.npu_quantize(x.to("meta"), scales.to("meta"), None, dtype, -1, False)
        assert (meta.shape, meta.dtype) == (words.shape, words.dtype)
    assert stand_in.npu_quantize(x, scales, None, torch.int32, -1, True).shape == x.shape


# ---- pytest ----------------------------------------------------------------------------------------------------------


SESSION = """
import sys

import pytest


def test_values(npu):
    import torch
    import torch_npu

    assert torch_npu is npu
    npu.install(values="zeros")
    assert not npu.npu_swiglu(torch.ones(2, 4, device="npu")).any()


def test_put_back():
    import torch
    import torch_npu

    with pytest.raises(NotImplementedError, match="npu_swiglu"):
        torch_npu.npu_swiglu(torch.ones(2, 4))
"""


BY_NAME, BY_OPTION = ("-p", "npuquant.pytest_npu"), ("-p", "npuquant_pytest", "--npu=exact")


PLUGIN = "pytest_plugins = ['npuquant.pytest_npu']\n"
MOCK = """import sys
from unittest.mock import MagicMock
sys.modules["torch_npu"] = MagicMock()
"""
CALLED = f"{MOCK}import torch_npu\n\n\ndef test_mock():\n    torch_npu.npu_unheard_of()\n"
PATCHED = """import sys
from unittest.mock import MagicMock, patch


@patch("torch_npu.npu_swiglu")
@patch.dict(sys.modules, {"torch_npu._C": MagicMock()})
def test_patch(mock, monkeypatch):
    monkeypatch.setattr("torch_npu.npu_rms_norm", mock)
    monkeypatch.setitem(sys.modules, "torch_npu.npu", mock)
"""
SAYS = r'sys\.modules\["torch_npu"\] \(MagicMock\)\. Remove the lines'
#: Each conftest.py may import torch_npu at its top.
NESTED = {"below/test_session.py": SESSION, **dict.fromkeys(["conftest.py", "below/conftest.py"], "import torch_npu\n")}
NO_PYTORCH = {"torch.py": "raise SystemExit('PyTorch is imported')\n"}
SESSIONS = [
    *((NESTED, options, 0, "2 passed") for options in (BY_NAME, BY_OPTION)),
    *(({**NESTED, "pytest.ini": f"[pytest]\naddopts = {' '.join(options)}\n"}, ["below"], 0, "2 passed")
      for options in (BY_NAME, BY_OPTION)),
    ({"test_session.py": SESSION, "conftest.py": PLUGIN}, [], 0, "2 passed"),
    *(({"conftest.py": conftest}, options, 4, rf"\AERROR: npuquant: mocks are in [^\n]*{SAYS}[^\n]*\n*\Z")
      for options, conftest in ((BY_NAME, MOCK), (BY_OPTION, MOCK), ([], MOCK + PLUGIN))),
    # If only files of tests make mocks, the session runs to its end, also if a warning is an error.
    ({"test_mock.py": CALLED}, [*BY_NAME, "-W", "error"], 0, rf"(?=[\s\S]*1 passed)[\s\S]*{SAYS}"),
    ({"test_mock.py": PATCHED}, BY_NAME, 0, r"\A(?![\s\S]*mocks)"),
    (NO_PYTORCH, ["-p", "npuquant_pytest", "--collect-only"], 5, r"\A(?![\s\S]*PyTorch is imported)"),
    *((NO_PYTORCH, [*options, option], 0, r"\A(?![\s\S]*PyTorch is imported)")
      for options in (BY_NAME, BY_OPTION) for option in ("--help", "--version")),
]


@pytest.mark.parametrize("files, options, status, says", SESSIONS)
def test_sessions(tmp_path, files, options, status, says):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, cwd=str(tmp_path),
                         env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"})
    assert ran.returncode == status and re.search(says, ran.stdout), ran.stdout


@pytest.mark.parametrize("options, conftest, status", [(BY_OPTION, "import torch_npu\n", 5),
                                                       (BY_NAME, "import torch_npu\n1 / 0\n", 4)])
def test_end_of_the_plugin(tmp_path, options, conftest, status):
    """Also after a conftest.py that fails, before pytest has any configuration."""
    (tmp_path / "program.py").write_text(
        f"import pytest, sys\nstatus = pytest.main([*{options}, '-q', '-p', 'no:cacheprovider'])\n"
        "print(int(status), 'torch_npu' in sys.modules, hasattr(sys.modules['torch'], 'npu'))\n")
    (tmp_path / "conftest.py").write_text(conftest)
    ran = subprocess.run([sys.executable, "program.py"], stdout=subprocess.PIPE, universal_newlines=True,
                         cwd=str(tmp_path))
    assert ran.stdout.splitlines()[-1] == f"{status} False False", ran.stdout
