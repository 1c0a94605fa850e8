# SPDX-License-Identifier: BSD-3-Clause
# The first two inputs and their results are those that the documentation of npu_dynamic_quant prints for the device.
import torch
import torch_npu

x = torch.rand((3, 3), dtype=torch.float16).to("npu")
print(x)
# tensor([[0.7261, 0.3726, 0.9126],
#         [0.9023, 0.9990, 0.1279],
#         [0.8628, 0.6240, 0.9028]], device='npu:0', dtype=torch.float16)
output, scale = torch_npu.npu_dynamic_quant(x)
print(output)
print(scale)
# tensor([[101,  52, 127],
#         [115, 127,  16],
#         [121,  88, 127]], device='npu:0', dtype=torch.int8)
# tensor([0.0072, 0.0079, 0.0071], device='npu:0')

tokens = torch.rand((3, 3), dtype=torch.float16).to("npu")
tokens
# tensor([[0.6680, 0.9492, 0.0845],
#         [0.1924, 0.5278, 0.1484],
#         [0.6631, 0.9497, 0.0957]], device='npu:0', dtype=torch.float16)
smooth_scales = torch.rand((3,), dtype=torch.float16).to("npu")
smooth_scales
# tensor([0.8042, 0.0884, 0.8901], device='npu:0', dtype=torch.float16)
torch_npu.npu_dynamic_quant(tokens, smooth_scales=smooth_scales)
# (tensor([[127,  20,  18],
#         [127,  38, 108],
#         [127,  20,  20]], device='npu:0', dtype=torch.int8), tensor([0.0042, 0.0012, 0.0042], device='npu:0'))

# From here on the results were computed with NumPy. Scales are shown as the integers that have their bits.
ends = torch.tensor([1, 3], dtype=torch.int32).npu()
experts = torch.stack((smooth_scales, smooth_scales.flip(0))).contiguous()
y, pertoken_scale = torch_npu.npu_dynamic_quant(tokens, smooth_scales=experts, group_index=ends)
print(y, pertoken_scale.view(torch.int32))
# tensor([[127,  20,  18],
#         [127,  35,  89],
#         [127,  18,  17]], dtype=torch.int8) tensor([998939092, 984661209, 999836253], dtype=torch.int32)
words, scale = torch_npu.npu_dynamic_quant(tokens.repeat(2, 8).bfloat16(), dst_type=torch.quint4x2)
print(words.shape, words[:3], scale.view(torch.int32))
# torch.Size([6, 3]) tensor([[1964462453, 1366628177,  391214359],
#         [1931948659,  846407474,  657617703],
#         [1964462453, 1366628177,  391214359]], dtype=torch.int32)
# tensor([1040898926, 1033521445, 1040898926, 1040898926, 1033521445, 1040898926],
#        dtype=torch.int32)
