# SPDX-License-Identifier: BSD-3-Clause
"""Weights of int4 numbers for float16 activations: packed when they are loaded, dequantised when they are used."""
import torch
import torch_npu

weight = (torch.arange(3 * 16, dtype=torch.int32) * 5 % 16 - 8).reshape(3, 16).npu()
words = torch_npu.npu_convert_weight_to_int4pack(weight)
print(words, words.dtype, words.shape)
print(torch.equal(torch_npu.npu_anti_quant(words, torch.ones(1).npu()), weight.half()))
print(torch_npu.npu_convert_weight_to_int4pack(weight.t().repeat(1, 8)[:2]))
# tensor([[-1239649576,  1049950800],
#         [-1239649576,  1049950800],
#         [-1239649576,  1049950800]], dtype=torch.int32) torch.int32 torch.Size([3, 2])
# True
# tensor([[-2004318072, -2004318072, -2004318072],
#         [ -572662307,  -572662307,  -572662307]], dtype=torch.int32)
