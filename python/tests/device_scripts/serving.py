# SPDX-License-Identifier: BSD-3-Clause
"""Linear layers of an inference server, in the manner in which these call the operators.

Activations have a scale for the tensor, which is known beforehand, or one for each token, which is found from the data.
"""
import torch
import torch.nn.functional as F
import torch_npu

FRACTAL_NZ = 29


def parameter(tensor):
    return torch.nn.Parameter(tensor, requires_grad=False)


class StaticMethod:
    """One scale and one offset for all activations; the offset is made up for in the bias."""

    def create(self, layer, weight, scale, dtype):
        layer.weight, layer.dtype = parameter(weight), dtype
        layer.input_scale = parameter(torch.tensor([0.0315], dtype=dtype))
        layer.input_offset = parameter(torch.tensor([-5], dtype=torch.int8))
        layer.deq_scale = parameter(layer.input_scale.float() * scale)

    def process(self, layer):
        features = layer.weight.shape[1]
        layer.reciprocal = parameter(1 / layer.input_scale.data.repeat(features))
        layer.offsets = parameter(layer.input_offset.data.repeat(features)).to(layer.reciprocal.dtype)
        layer.quant_bias = parameter(5 * layer.weight.data.sum(dim=1, dtype=torch.int32))
        layer.weight.data = torch_npu.npu_format_cast(layer.weight.data.transpose(0, 1).contiguous(), FRACTAL_NZ)
        if layer.dtype == torch.float16:
            layer.deq_scale.data = layer.deq_scale.data.float()
            layer.deq_scale = parameter(torch_npu.npu_trans_quant_param(layer.deq_scale.data))

    def apply(self, layer, x, bias=None):
        if x.dtype != torch.int8:
            x = torch_npu.npu_quantize(x, layer.reciprocal, layer.offsets, torch.qint8, -1, False)
        return torch_npu.npu_quant_matmul(
            x, layer.weight, layer.deq_scale, bias=layer.quant_bias, output_dtype=layer.dtype)


class DynamicMethod:
    """A scale for each token."""

    def create(self, layer, weight, scale, dtype):
        scale = scale.to(dtype) if dtype == torch.bfloat16 else scale.half().float()  # no float16
        layer.weight, layer.weight_scale, layer.dtype = parameter(weight), parameter(scale.unsqueeze(1)), dtype

    def process(self, layer):
        layer.weight.data = torch_npu.npu_format_cast(layer.weight.data.transpose(0, 1).contiguous(), FRACTAL_NZ)
        layer.weight_scale.data = layer.weight_scale.data.flatten()

    def apply(self, layer, x, bias=None):
        x1, pertoken_scale = x if isinstance(x, tuple) else torch_npu.npu_dynamic_quant(x, dst_type=torch.int8)
        return torch_npu.npu_quant_matmul(
            x1, layer.weight, layer.weight_scale, pertoken_scale=pertoken_scale, bias=bias,
            output_dtype=layer.dtype)


def experts(layer, x, counts):
    """Groups of tokens, with smooth scales and weights of their own; the sums are dequantised afterwards."""
    smooth = torch.tensor([[0.5], [2.0]], dtype=x.dtype).npu().expand(2, x.shape[-1]).contiguous()
    ends = torch.tensor(counts).npu().cumsum(0).to(torch.int32)
    x1, pertoken_scale = torch_npu.npu_dynamic_quant(x, smooth_scales=smooth, group_index=ends)
    sums = torch_npu.npu_quant_matmul(x1, layer.weight, layer.weight_scale, output_dtype=torch.int32)
    return torch_npu.npu_dequant_bias(sums, layer.weight_scale, pertoken_scale, None, output_dtype=x.dtype)


torch.npu.set_device("npu:0")
weight = (torch.arange(64) * 43 % 251 - 125).to(torch.int8).reshape(4, 16).npu()
scale = torch.tensor([0.002, 0.004, 0.001, 0.008]).npu()
x = (torch.arange(3 * 16).npu() * 17 % 41 - 20).reshape(3, 16) / 8

for dtype in (torch.float16, torch.bfloat16):
    for method in (StaticMethod(), DynamicMethod()):
        layer = torch.nn.Module()
        method.create(layer, weight, scale, dtype)
        layer = layer.npu()
        method.process(layer)
        print(type(method).__name__, method.apply(layer, x.to(dtype)))
bias = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=dtype).npu()
print("bias", method.apply(layer, torch_npu.npu_dynamic_quant(x.to(dtype)), bias))
print("experts", experts(layer, F.relu(x.to(dtype)), [1, 2]))
product = x @ (weight * scale[:, None]).t()
print("near", (experts(layer, x.to(dtype), [0, 3]).float() - 2 * product).abs().max() < 0.1)
# StaticMethod tensor([[-0.7251, -0.1526,  0.2942,  0.4622],
#         [ 0.6875, -3.6211,  0.0571,  3.7344],
#         [ 0.7456,  1.7314, -0.1865, -0.7593]], dtype=torch.float16)
# DynamicMethod tensor([[-0.7339, -0.1406,  0.2966,  0.4785],
#         [ 0.6924, -3.6484,  0.0598,  3.7480],
#         [ 0.7510,  1.7500, -0.1925, -0.7681]], dtype=torch.float16)
# StaticMethod tensor([[-0.7266, -0.1523,  0.2949,  0.4629],
#         [ 0.6875, -3.6250,  0.0571,  3.7344],
#         [ 0.7461,  1.7344, -0.1865, -0.7617]], dtype=torch.bfloat16)
# DynamicMethod tensor([[-0.7344, -0.1406,  0.2969,  0.4785],
#         [ 0.6914, -3.6406,  0.0598,  3.7500],
#         [ 0.7500,  1.7500, -0.1924, -0.7656]], dtype=torch.bfloat16)
# bias tensor([[ 0.2676,  1.8594,  3.2969,  4.4688],
#         [ 1.6953, -1.6484,  3.0625,  7.7500],
#         [ 1.7500,  3.7500,  2.8125,  3.2344]], dtype=torch.bfloat16)
# experts tensor([[-0.4551,  0.0452,  0.0947,  0.1582],
#         [-0.1309, -2.4844,  0.2158,  4.3438],
#         [-0.1719,  2.0781, -0.1924, -0.6836]], dtype=torch.bfloat16)
# near tensor(True)
