# SPDX-License-Identifier: BSD-3-Clause
"""A linear layer of int4 weights and activations: eight numbers are in each int32 word."""
import torch
import torch_npu

torch.npu.set_device(0)
weight = ((torch.arange(4 * 32) * 37 % 61 - 30).reshape(4, 32) / 16).npu()
x = ((torch.arange(3 * 32) * 29 % 97 - 48).reshape(3, 32) / 8).half().npu()

x2, scale = torch_npu.npu_dynamic_quant(weight.half(), dst_type=torch.quint4x2)
x1, pertoken_scale = torch_npu.npu_dynamic_quant(x, dst_type=torch.quint4x2)
x2, x1
# (tensor([[-1029743575, -1603454459,  2118846163,  1276634289],
#         [  720749215,   114532445,  -458133957, -1029747689],
#         [-1604572683,  1832519379,  1259857072,   703906174],
#         [   97693532,  -474976966, -1048687850, -1621349900]],
#        dtype=torch.int32), tensor([[-1542692391,   207738687,  1373060772,  -684809205],
#         [  781454177, -1795468857,   -78526674,  1372008084],
#         [ -970025989,   764672848, -1812311866,   -96418259]],
#        dtype=torch.int32))
torch_npu.npu_quant_matmul(x1, x2.t(), scale, pertoken_scale=pertoken_scale, output_dtype=torch.float16)
# tensor([[ 13.0859, -26.1719,  29.6250, -27.5469],
#         [ 62.2188, -20.0156,   2.1523,  -3.8750],
#         [  2.2480, -11.0156, -17.5312,  39.7812]], dtype=torch.float16)

# Words along the columns, and the words of the matrix unit in place of scales
one = torch.ones(1).npu()
columns = torch_npu.npu_convert_weight_to_int4pack((weight[:, :8].repeat(8, 1) * 4).round().clamp(-8, 7).int())
columns.shape, torch_npu.npu_quant_matmul(x1, columns, torch_npu.npu_trans_quant_param(one), output_dtype=torch.float16)
# (torch.Size([32, 1]), tensor([[ 163.,  -45.,  -96.,   33.,  -78.,  174.,  -31.,  -82.],
#         [-139.,  115.,  -83.,  109.,  -59., -123.,  116.,  -82.],
#         [ 144., -103.,   17.,   92.,  -43.,  141., -116.,    4.]],
#        dtype=torch.float16))
