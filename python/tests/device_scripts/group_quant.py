# SPDX-License-Identifier: BSD-3-Clause
# The inputs and the first result are those that the documentation of npu_group_quant prints for the device.
import torch
import torch_npu
import torchair

x = torch.randn(6, 4).to(torch.float16).npu()
print(x)
# tensor([[ 1.0029, -1.2373,  1.0107, -0.2681],
#         [ 0.5791,  0.1101,  1.0059, -0.9658],
#         [-1.7637,  1.7588, -1.3193,  0.3989],
#         [ 1.3262,  0.4854,  1.9551,  0.9697],
#         [-0.8770, -1.8828,  2.1777, -0.0050],
#         [ 0.4722,  0.5605,  0.8267, -0.9810]], device='npu:0',
#     dtype=torch.float16)
scale = torch.randn((4, 4), device="npu")
print(scale)
# tensor([[-0.2710, -0.9381,  0.2850, -1.1230],
#         [ 0.5217, -0.7233, -0.1730, -0.1245],
#         [-1.5433, -0.9129, -2.2095,  1.7371],
#         [-0.8253,  0.3973,  0.1430,  0.3885]], device='npu:0')
offset = torch.randn(1).npu()
print(offset)
# tensor([-1.1658], device='npu:0')
ends = torch.tensor([1, 4, 6, 6], dtype=torch.int32, device="npu:0")
print(torch_npu.npu_group_quant(x, scale, ends, offset=offset, dst_dtype=torch.qint8))
# tensor([[-1,  0, -1, -1],
#         [-1, -1, -1, -1],
#         [-2, -2, -1, -1],
#         [ 0, -2, -2, -1],
#         [ 0,  1, -6, -1],
#         [-2, -2, -3, -3]], device='npu:0', dtype=torch.int8)

# From here on the results were computed with NumPy.


@torch.compile(backend=torchair.get_npu_backend(), dynamic=False)
def groups(x, scale, ends):
    wide = torch.cat((x, x), dim=1), torch.cat((scale, scale), dim=1)
    return torch_npu.npu_group_quant(*wide, ends, dst_dtype=torch.quint4x2), torch_npu.npu_group_quant(*wide, ends)


words, y = groups(x, scale, ends.long())
print(words, words.shape)
print(y[-1])
# tensor([[   1048592],
#         [         0],
#         [  16711935],
#         [     65537],
#         [ 186714913],
#         [-285217025]], dtype=torch.int32) torch.Size([6, 1])
# tensor([-1, -1, -2, -2, -1, -1, -2, -2], dtype=torch.int8)
