# SPDX-License-Identifier: BSD-3-Clause
# The inputs and the results are those that the documentation of npu_quantize prints for the device.
import torch
import torch_npu

activations = torch.randn(1, 1, 12).bfloat16().npu()
activations
#   tensor([[[ 0.9609,  1.3281, -0.6172,  0.5469, -1.1797, -1.1719, -0.7422,
#           0.9727, -0.9062, -0.0815, -0.8047,  1.0703]]], device='npu:0',
#       dtype=torch.bfloat16)
tenths = torch.full((12,), 0.1, dtype=torch.bfloat16, device="npu")
torch_npu.npu_quantize(activations, tenths, None, torch.qint8, -1, False)
#   tensor([[[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]], device='npu:0',
#       dtype=torch.int8)

x = torch.randn((2, 3, 12), dtype=torch.float, device="npu:0")
x
#   tensor([[[-7.7834e-01, -1.0473e+00, -1.1155e+00,  1.2233e+00, -1.2271e+00,
#           -2.5612e+00, -1.8274e-01,  2.8293e+00,  1.9029e-01, -1.9333e+00,
#           -4.9270e-01, -1.0650e+00],
#           [-8.9416e-01,  3.1869e-02, -5.8144e-01, -4.9477e-01,  9.7323e-02,
#           -3.8681e-01,  2.1969e-03, -6.3244e-01,  7.1591e-01, -1.8587e-01,
#           -1.3381e+00, -2.6253e-01],
#           [ 1.8462e-02,  1.2397e-01, -9.0656e-01, -9.9280e-01, -4.4235e-02,
#           1.0623e+00, -9.8437e-02,  1.2941e+00,  1.0805e+00, -1.7269e-01,
#           -9.9205e-02, -6.1429e-01]],

#           [[ 1.3678e+00, -2.7348e-01, -4.1354e-01, -9.4638e-01,  4.2792e-01,
#           8.0462e-01,  9.3584e-01,  6.3704e-01,  1.1269e+00, -1.5329e+00,
#           5.8572e-01, -1.3966e+00],
#           [ 3.5882e-01,  8.7029e-01, -1.3176e+00,  1.1601e+00, -3.6984e-01,
#           7.3642e-01, -1.0755e+00,  6.6557e-01,  3.1149e+00, -6.8776e-01,
#           -1.0913e+00,  4.4962e-01],
#           [-1.2505e+00,  1.5474e+00, -7.4332e-02, -1.6657e+00,  1.3275e+00,
#           5.8914e-02,  8.4287e-01, -1.7109e+00,  1.8256e-01,  3.2937e-01,
#           2.4875e+00,  1.3921e+00]]], device='npu:0')
scales = torch.tensor(12 * [3.0]).npu()
torch_npu.npu_quantize(x, scales, None, torch.qint8, -1, False)
#   tensor([[[-2, -3, -3,  4, -4, -8, -1,  8,  1, -6, -1, -3],
#           [-3,  0, -2, -1,  0, -1,  0, -2,  2, -1, -4, -1],
#           [ 0,  0, -3, -3,  0,  3,  0,  4,  3, -1,  0, -2]],

#           [[ 4, -1, -1, -3,  1,  2,  3,  2,  3, -5,  2, -4],
#           [ 1,  3, -4,  3, -1,  2, -3,  2,  9, -2, -3,  1],
#           [-4,  5,  0, -5,  4,  0,  3, -5,  1,  1,  7,  4]]], device='npu:0',
#       dtype=torch.int8)

# From here on the results were computed with NumPy.
zero_points = torch.arange(3, dtype=torch.float32).npu() * 10
rows = torch_npu.npu_quantize(x[0], scales[:3], zero_points, torch.quint8, axis=0)
rows
# tensor([[ 0,  0,  0,  0,  0,  0,  0,  1,  0,  0,  0,  0],
#         [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10],
#         [20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20]], dtype=torch.uint8)
torch_npu.npu_quantize(x[..., :8], scales[:1], None, torch.quint4x2, axis=-1, div_mode=False).cpu()
# tensor([[[ 2139901406],
#          [ -521077235],
#          [ 1076944128]],
#
#         [[  589422580],
#          [  758070321],
#          [-1291538340]]], dtype=torch.int32)
torch.ops.npu.npu_quantize(x[1], scales[:1], None, torch.qint32, -1).sum(dim=1)
# tensor([-1,  1,  0])
