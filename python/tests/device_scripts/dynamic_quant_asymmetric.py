# SPDX-License-Identifier: BSD-3-Clause
import torch
import torch_npu
import torchair as tng
from torchair.configs.compiler_config import CompilerConfig

torch_npu.npu.set_compile_mode(jit_compile=True)
device = torch.device("npu:0")
torch_npu.npu.set_device(device)

x = torch.randn((2, 2, 8), device="npu", dtype=torch.float16).npu()
print(x)
# tensor([[[ 0.5000, -1.2500,  3.0000,  0.0000,  2.7500, -0.3750,  1.5000, -2.0000],
#          [ 1.0000,  2.0000,  3.0000,  4.0000,  5.0000,  6.0000,  7.0000,  8.0000]],
#         [[-0.1250, -0.6250, -4.0000, -3.5000, -0.2500, -1.0000, -2.2500, -0.5000],
#          [ 0.0625, -0.0625,  0.1250, -0.1250,  0.2500, -0.2500,  0.5000, -0.5000]]],
#        device='npu:0', dtype=torch.float16)
smooth_scales = torch.rand(8, device=device, dtype=torch.float16)
print(smooth_scales)
# tensor([0.5000, 0.2500, 0.7500, 1.0000, 0.1250, 0.8750, 0.6250, 0.3750],
#        device='npu:0', dtype=torch.float16)
y, scale, offset = torch_npu.npu_dynamic_quant_asymmetric(x)
print(y, scale.view(torch.int32), offset)
# tensor([[[   0,  -90,  127,  -26,  114,  -45,   50, -128],
#          [-128,  -92,  -55,  -19,   18,   54,   91,  127]],
#
#         [[ 127,   94, -128,  -95,  119,   69,  -13,  102],
#          [  15,  -16,   31,  -32,   63,  -64,  127, -128]]], dtype=torch.int8) tensor([[1017159841, 1021370593],
#         [1014561017,  998277249]], dtype=torch.int32) tensor([[ -26.0000, -164.4286],
#         [ 135.2258,   -0.5000]])
y, scale, offset = torch_npu.npu_dynamic_quant_asymmetric(x, dst_type=torch.quint4x2)
print(y, scale.view(torch.int32), offset)
# tensor([[[-2099845216],
#          [ 1966206120]],
#
#         [[ 1866967127],
#          [-2017205776]]], dtype=torch.int32) tensor([[1051372203, 1055846127],
#         [1048855620, 1032358025]], dtype=torch.int32) tensor([[ -2.0000, -10.1429],
#         [  7.4839,  -0.5000]])
groups = torch.stack([smooth_scales, 1 / smooth_scales]).npu()
group_index = torch.Tensor([1, 4]).to(torch.int32).npu()
y, scale, offset = torch_npu.npu_dynamic_quant_asymmetric(
    x.view(4, 8), smooth_scales=groups, group_index=group_index)
print(y, scale.view(torch.int32), offset)
# tensor([[ -43,  -91,  127,  -64,  -35,  -92,   15, -128],
#         [-128,  -88, -115, -115,  127,  -95,  -66,    2],
#         [ 127,   14, -128,  -36,   39,   82,  -41,   73],
#         [ -16,  -45,  -13,  -36,  127,  -48,   35, -128]], dtype=torch.int8)
# tensor([1010876609, 1041799321, 1017332547, 1012278822], dtype=torch.int32)
# tensor([ -64.2500, -141.4211,  139.5442,  -26.0149])


class Smooth(torch.nn.Module):
    def __init__(self, smooth_scales):
        super().__init__()
        self.smooth_scales = torch.nn.Parameter(smooth_scales, requires_grad=False)

    def forward(self, tokens, dst_type=None):
        y, scale, offset = torch_npu.npu_dynamic_quant_asymmetric(
            tokens, smooth_scales=self.smooth_scales, dst_type=dst_type)
        return y, scale, offset


model = Smooth(smooth_scales).to(device)
model = torch.compile(model, backend=tng.get_npu_backend(compiler_config=CompilerConfig()), dynamic=True)
for values in model(x, dst_type=torch.int8):
    print(values.dtype, values.shape, values.flatten()[:4].to(torch.float32))
# torch.int8 torch.Size([2, 2, 8]) tensor([-43., -91., 127., -64.])
# torch.float32 torch.Size([2, 2]) tensor([0.0118, 0.0186, 0.0136, 0.0021])
# torch.float32 torch.Size([2, 2]) tensor([ -64.2500, -154.8421,  129.2973,  -23.0000])
