# SPDX-License-Identifier: BSD-3-Clause
"""A float16 model with static scales, from its checkpoint, in the manner in which inference servers load and run it.

The checkpoint has no words of npu_trans_quant_param: deq_scale holds the bits of float32 scales in an int64.
"""
import io

import numpy as np
import torch
import torch_npu
from torch import nn

FRACTAL_NZ = 29


def export(name, weight, bias, input_scale, input_offset):
    """The tensors of a linear layer in a quantised checkpoint."""
    weight_scale = weight.abs().amax(dim=1, keepdim=True) / 127
    quantised = torch.clamp(torch.round(weight / weight_scale), -128, 127).to(torch.int8)
    deq_scale = (input_scale * weight_scale).flatten()
    quant_bias = torch.round(bias / deq_scale) - input_offset * quantised.float().sum(dim=1)
    bits = np.frombuffer(deq_scale.numpy().tobytes(), dtype=np.int32).astype(np.int64)
    return {
        f"{name}.weight": quantised,
        f"{name}.input_scale": torch.tensor([input_scale]).half(),
        f"{name}.input_offset": torch.tensor([input_offset], dtype=torch.int8),
        f"{name}.deq_scale": torch.tensor(bits),
        f"{name}.quant_bias": quant_bias.to(torch.int32),
        f"{name}.weight_scale": weight_scale.half(),
        f"{name}.weight_offset": torch.zeros_like(weight_scale).half(),
    }


class StaticLinear(nn.Module):
    """Of several ranks each has a part of the inputs, and the first one adds the bias."""

    def __init__(self, inputs, outputs, params_dtype=torch.float16):
        super().__init__()
        self.params_dtype = params_dtype
        for name, shape, dtype in (
            ("weight", (outputs, inputs), torch.int8),
            ("input_scale", (1,), params_dtype),
            ("input_offset", (1,), torch.int8),
            ("deq_scale", (outputs,), torch.int64 if params_dtype == torch.float16 else torch.float32),
            ("quant_bias", (outputs,), torch.int32),
            ("weight_scale", (outputs, 1), params_dtype),
            ("weight_offset", (outputs, 1), params_dtype),
        ):
            self.register_parameter(name, nn.Parameter(torch.empty(shape, dtype=dtype), requires_grad=False))

    def process_weights_after_loading(self):
        features = self.weight.shape[1]
        self.reciprocal = 1 / nn.Parameter(self.input_scale.data.repeat(features), requires_grad=False)
        self.offset = nn.Parameter(self.input_offset.data.repeat(features), requires_grad=False).to(torch.float16)
        self.weight.data = self.weight.data.transpose(0, 1).contiguous()
        self.weight.data = torch_npu.npu_format_cast(self.weight.data, FRACTAL_NZ)
        self.weight_scale.data = torch.flatten(self.weight_scale.data)

    def forward(self, x, tp_rank=0):
        if x.dtype != torch.int8:
            x = torch_npu.npu_quantize(x, self.reciprocal, self.offset, torch.qint8, -1, False)
        bias = self.quant_bias if tp_rank == 0 else None
        return torch_npu.npu_quant_matmul(x, self.weight, self.deq_scale, bias=bias, output_dtype=self.params_dtype)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_up, self.down = StaticLinear(16, 12), StaticLinear(6, 4)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(gate * up)


gate_up = (torch.arange(12 * 16) * 43 % 251 - 125).reshape(12, 16) / 500
down = (torch.arange(4 * 6) * 31 % 61 - 30).reshape(4, 6) / 40
file = io.BytesIO()
torch.save({**export("gate_up", gate_up, torch.arange(12) / 8 - 0.5, 0.02, -5),
            **export("down", down, torch.tensor([0.25, -1.0, 0.0, 2.0]), 0.04, 17)}, file)
file.seek(0)

torch.npu.set_device(0)
model = Mlp()
model.load_state_dict(torch.load(file, map_location="cpu"))
model = model.npu().eval()
for layer in (model.gate_up, model.down):
    layer.process_weights_after_loading()
print([hex(word) for word in model.down.deq_scale.tolist()])
x = ((torch.arange(3 * 16) * 17 % 41 - 20).reshape(3, 16) / 8).half().npu()
layer = model.gate_up
with torch.no_grad():
    y = layer(x)
    print(y)
    print(model(x))
    print("rank 1", layer(x.reshape(1, 3, 16), tp_rank=1)[..., :4])
    scale = layer.deq_scale.to(torch.int32).view(torch.float32)
    tokens = torch_npu.npu_quantize(x, layer.reciprocal, layer.offset, torch.qint8, -1, False)
    words = torch_npu.npu_trans_quant_param(scale)
    print("as with words:", torch.equal(y, torch_npu.npu_quant_matmul(
        tokens, layer.weight, words, bias=layer.quant_bias, output_dtype=torch.float16)))
    exact = x.float() @ gate_up.t() + torch.arange(12) / 8 - 0.5
    print("near:", (y.float() - exact).abs().max().item() < 0.1)
# ['0x3977b1f3', '0x395eecf4', '0x394627f5', '0x392d62f7']
# tensor([[-1.2305, -0.4377,  0.3311, -0.0087, -1.9639,  0.0689,  1.4629,  0.4983,
#          -0.2006,  0.5723,  1.2773,  1.0020],
#         [ 0.1876, -2.2012, -0.1360,  0.8140,  0.1138, -1.7139,  0.0500,  1.3037,
#           0.9146, -1.2246,  1.4834,  1.7939],
#         [ 0.2496,  0.4963, -0.6396, -0.3079,  0.9453,  1.0664, -1.3018,  0.2573,
#           0.8799,  1.6357, -0.7388,  0.8262]], dtype=torch.float16)
# tensor([[ 3.4297,  1.8389,  2.4902,  4.1562],
#         [-0.1271, -1.8984, -1.4189,  0.0632],
#         [ 1.4199,  0.0823,  1.0049,  2.9219]], dtype=torch.float16)
# rank 1 tensor([[[-0.6597, -0.0852,  0.5659,  0.1085],
#          [ 0.7583, -1.8496,  0.0989,  0.9312],
#          [ 0.8203,  0.8491, -0.4045, -0.1908]]], dtype=torch.float16)
# as with words: True
# near: True
