# SPDX-License-Identifier: BSD-3-Clause
import torch
import torch_npu
import torchair

weight = torch.tensor([[1, -2, 3, -128], [127, 0, 64, -5]], dtype=torch.int8).npu()
scale = torch.tensor([2.0, 0.5, 0.1, 0.01], dtype=torch.float).npu()
offset = torch.tensor([2.0, -1.0, 0.0, 0.5]).npu()
print(torch_npu.npu_anti_quant(weight, scale, offset=offset, dst_dtype=torch.float16))
print(torch_npu.npu_anti_quant(weight, scale[:1]))
# tensor([[ 6.0000e+00, -1.5000e+00,  3.0005e-01, -1.2754e+00],
#         [ 2.5800e+02, -5.0000e-01,  6.3984e+00, -4.5013e-02]],
#        dtype=torch.float16)
# tensor([[   2.,   -4.,    6., -256.],
#         [ 254.,    0.,  128.,  -10.]], dtype=torch.float16)


class Dequantise(torch.nn.Module):
    def forward(self, x, scale, offset):
        return torch_npu.npu_anti_quant(x, scale, offset=offset, dst_dtype=torch.bfloat16)


words = torch.tensor([0x76543210, -0x76543210], dtype=torch.int32).npu()
model = torch.compile(Dequantise().npu(), backend=torchair.get_npu_backend(), dynamic=False, fullgraph=True)
print(model(words, scale.new_full((1,), 0.25).bfloat16(), None))
print(torch_npu.npu_anti_quant(words, scale[1:2].half(), src_dtype=torch.quint4x2))
# tensor([ 0.0000,  0.2500,  0.5000,  0.7500,  1.0000,  1.2500,  1.5000,  1.7500,
#          0.0000, -0.2500, -0.7500, -1.0000, -1.2500, -1.5000, -1.7500, -2.0000],
#        dtype=torch.bfloat16)
# tensor([ 0.0000,  0.5000,  1.0000,  1.5000,  2.0000,  2.5000,  3.0000,  3.5000,
#          0.0000, -0.5000, -1.5000, -2.0000, -2.5000, -3.0000, -3.5000, -4.0000],
#        dtype=torch.float16)
