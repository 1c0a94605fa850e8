# SPDX-License-Identifier: BSD-3-Clause
import logging
import os

import torch
import torch_npu
import torchair as tng
from torchair.configs.compiler_config import CompilerConfig
from torchair.core.utils import logger

logger.setLevel(logging.DEBUG)
os.environ["ENABLE_ACLNN"] = "true"

x1 = (torch.arange(2 * 3 * 16) * 37 % 23 - 11).to(torch.int8).reshape(2, 3, 16).npu()
x2 = (torch.arange(2 * 16 * 4) * 29 % 19 - 9).to(torch.int8).reshape(2, 16, 4).npu()
scale = torch.tensor([0.05, 0.1, 0.02, 0.3]).npu()
offset = torch.tensor([1.0, -2.5, 0.5, 20.0]).npu()
bias = torch.tensor([[[10, -20, 30, -40]], [[1, 2, 3, 4]]], dtype=torch.int32).npu()

# A float32 scale and offset, and the words that the device makes of them
y = torch_npu.npu_quant_matmul(x1, x2, scale, offset=offset, bias=bias)
print(y)
words = torch_npu.npu_trans_quant_param(scale, offset)
print(torch.equal(y, torch_npu.npu_quant_matmul(x1, x2, words, bias=bias)))
# tensor([[[  9,  14,   3,  63],
#          [ -8,  -8,  -1,  38],
#          [  8,  12,  -1,   0]],
#
#         [[ 10,   6,   3,  43],
#          [ -4, -22,   0,  -8],
#          [  0,   8,   4, -10]]], dtype=torch.int8)
# True
print(torch_npu.npu_quant_matmul(x1, x2, torch_npu.npu_trans_quant_param(scale), output_dtype=torch.float16)[0])
# tensor([[ 7.3477, 17.7969,  2.6582, 54.8750],
#         [-9.1016, -3.6992, -1.2598, 30.2812],
#         [ 6.6484, 16.2031, -1.4990, -8.0938]], dtype=torch.float16)
print(torch_npu.npu_quant_matmul(x1, x2, scale, bias=bias, output_dtype=torch.int32)[1])
# tensor([[ 182,   77,  162,   76],
#         [ -94, -201,   -4,  -92],
#         [ -25,   96,  198,  -99]], dtype=torch.int32)


class Linear(torch.nn.Module):
    def forward(self, x1, x2, scale, bias, pertoken_scale=None):
        return torch_npu.npu_quant_matmul(
            x1, x2.t(), scale, offset=None, bias=bias, pertoken_scale=pertoken_scale, output_dtype=torch.bfloat16)


model = torch.compile(Linear().npu(), backend=tng.get_npu_backend(compiler_config=CompilerConfig()), dynamic=True)
tokens, weight = x1[0], torch_npu.npu_format_cast(x2[0].t().contiguous(), 29)
pertoken_scale = torch.tensor([0.5, 0.25, 2.0]).npu()
y = model(tokens, weight, scale.bfloat16(), bias[0, 0].bfloat16(), pertoken_scale)
print(y)
print(model(tokens, weight, scale, None))
# tensor([[ 13.6875, -11.0625,  31.3750, -12.5000],
#         [  7.7188, -20.8750,  29.6250, -32.5000],
#         [ 23.3750,  12.4375,  27.0000, -56.2500]], dtype=torch.bfloat16)
# tensor([[ 7.3438, 17.7500,  2.6562, 55.0000],
#         [-9.1250, -3.7031, -1.2578, 30.2500],
#         [ 6.6562, 16.2500, -1.5000, -8.1250]], dtype=torch.bfloat16)
sums = torch_npu.npu_quant_matmul(tokens, weight.t(), scale, output_dtype=torch.int32)
print(torch_npu.npu_dequant_bias(sums, scale, pertoken_scale, None, output_dtype=torch.float16))
print(torch_npu.npu_dequant_bias(sums, scale.bfloat16(), None, bias[1, 0], output_dtype=torch.bfloat16))
# tensor([[  3.6758,   8.8984,   1.3301,  27.4531],
#         [ -2.2754,  -0.9248,  -0.3149,   7.5742],
#         [ 13.2969,  32.4062,  -3.0000, -16.2031]], dtype=torch.float16)
# tensor([[ 7.4062, 18.0000,  2.7188, 56.2500],
#         [-9.0625, -3.5000, -1.2031, 31.6250],
#         [ 6.7188, 16.3750, -1.4375, -6.9062]], dtype=torch.bfloat16)
