# SPDX-License-Identifier: BSD-3-Clause
# The results were computed with NumPy. Scales are shown as the integers that have their bits.
import torch
import torch_npu

x = torch.tensor([[0.5, -1.25, 3, 0, 2.75, -0.375, 1.5, -2], [0, 0, 0, 0, 1, 2, 3, 4]], dtype=torch.float16).npu()
y, scale = torch_npu.npu_dynamic_block_quant(x, col_block_size=4)
print(y, scale.view(torch.int32))
# tensor([[ 21, -53, 127,   0, 127, -17,  69, -92],
#         [  0,   0,   0,   0,  32,  64,  95, 127]], dtype=torch.int8) tensor([[1019314950, 1018258118],
#         [         0, 1023476228]], dtype=torch.int32)
y, scale = torch_npu.npu_dynamic_block_quant(x, min_scale=50.0, dst_type=torch.int8)
print(y, scale.view(torch.int32))
# tensor([[  25,  -62,  127,    0,  127,  -19,   75, -100],
#         [   0,    0,    0,    0,   50,  100,  127,  127]], dtype=torch.int8) tensor([[1017370378],
#         [1017370378]], dtype=torch.int32)

keys = (torch.arange(320) / 256 - 0.5).bfloat16().view(2, 1, 160).npu()  # blocks of 128 and 32
y, scale = torch_npu.npu_dynamic_block_quant(keys)
print(y.shape, y[:, 0, ::40], scale.squeeze(1).view(torch.int32))
# torch.Size([2, 1, 160]) tensor([[-127,  -87,  -48,   -8],
#         [  26,   58,   89,  121]], dtype=torch.int8) tensor([[ 998310404,  981070824],
#         [1000358017, 1002471682]], dtype=torch.int32)
