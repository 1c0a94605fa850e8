# SPDX-License-Identifier: BSD-3-Clause
# The inputs and the results are those that the documentation of npu_quantize prints for the device.
import torch
import torch_npu
import torchair
from torchair.configs.compiler_config import CompilerConfig
from torchair.ge_concrete_graph import ge_apis as ge

config = CompilerConfig()
config.debug.graph_dump.type = "pbtxt"


class Quantize(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.register_buffer("scale", scale)

    def forward(self, x, dtype, div_mode):
        return torch_npu.npu_quantize(x, self.scale, zero_points=None, dtype=dtype, div_mode=div_mode)


x = torch.randn((2, 3, 12), dtype=torch.float16).npu()
model = Quantize(torch.full((12,), 3, dtype=torch.float16)).npu()
backend = torchair.get_npu_backend(compiler_config=config)
graph = torch.compile(model, backend=backend, fullgraph=True, dynamic=True)
y = graph(x, torch.qint8, div_mode=False)
print("x:", x, x.shape)
print("y:", y)
print("equal:", torch.equal(y, model(x, torch.qint8, False)))

# # What is printed
# x: tensor([[[ 0.2600,  0.6782,  0.5024,  0.9492,  0.6089,  0.7461,  1.5332,
#         -0.2123,  0.6558, -0.8354, -0.5366, -0.6821],
#         [-0.2522,  0.2415, -0.0269, -0.1497,  0.2256, -0.5239,  0.7363,
#         -0.2468,  1.6064,  1.4170, -0.2213,  1.5947],
#         [-0.6328,  0.8105,  0.2532,  1.0684, -1.2119, -0.6865,  0.7451,
#         -0.8120,  0.6401, -2.1270, -0.9482, -1.1973]],
#
#         [[-1.7461, -1.1758, -0.5352,  1.5938,  1.8945, -2.2500, -0.5073,
#         -0.8164,  0.8267, -0.4377,  1.2490,  0.2415],
#         [ 0.8062, -1.0498, -0.8345,  1.1465, -0.7349,  0.1317,  0.2280,
#         -0.8145,  0.2673,  1.4756, -1.6768,  1.1572],
#         [-0.3147, -0.4446, -1.0508,  0.8325,  1.4590,  0.2096, -0.9961,
#         0.6089, -0.2460,  1.1543,  0.9277,  0.1079]]], device='npu:0',
#     dtype=torch.float16) torch.Size([2, 3, 12])
# y: tensor([[[ 1,  2,  2,  3,  2,  2,  5, -1,  2, -3, -2, -2],
#         [-1,  1,  0,  0,  1, -2,  2, -1,  5,  4, -1,  5],
#         [-2,  2,  1,  3, -4, -2,  2, -2,  2, -6, -3, -4]],
#
#         [[-5, -4, -2,  5,  6, -7, -2, -2,  2, -1,  4,  1],
#         [ 2, -3, -3,  3, -2,  0,  1, -2,  1,  4, -5,  3],
#         [-1, -1, -3,  2,  4,  1, -3,  2, -1,  3,  3,  0]]], device='npu:0',
#     dtype=torch.int8)
# equal: True
