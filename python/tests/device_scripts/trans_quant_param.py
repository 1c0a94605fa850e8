# SPDX-License-Identifier: BSD-3-Clause
import torch
import torch_npu

scale = torch.randn(6, dtype=torch.float32)
scale
#   tensor([ 0.0312,  1.5000, -0.2500,  0.0073, -3.1416,  0.0000])
offset = torch.randn(6, dtype=torch.float32)
offset
#   tensor([  2.5000,  -1.0000, 300.0000, -300.0000,   0.5000,   7.0000])
words = torch_npu.npu_trans_quant_param(scale.npu(), offset.npu())
words
# tensor([ 70644645462016, 140601118949376, 105418873372672, 105554121793536,
#          70371970187264,  71330816851968])
words.dtype, words.shape
# (torch.int64, torch.Size([6]))
torch_npu.npu_trans_quant_param(scale.npu(), offset.npu(), 1) - words.cpu()
# tensor([8192,    0,    0, 8192,    0,    0])
torch_npu.npu_trans_quant_param(scale.npu().unsqueeze(0), round_mode=0)
# tensor([[70369767555072, 70369813725184, 70371940237312, 70369749704704,
#          70371970187264, 70368744177664]])
torch_npu.npu_trans_quant_param(torch.full((1,), 0.02).npu(), offset.npu())
# tensor([ 70644639449088, 140601066766336, 105416694677504, 105554133630976,
#          70369761542144,  71331834216448])
