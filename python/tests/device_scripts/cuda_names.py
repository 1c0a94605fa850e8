# SPDX-License-Identifier: BSD-3-Clause
"""A script that was written for CUDA, with the operators of the NPU added."""
import torch
import torch_npu
from torch_npu.contrib import transfer_to_npu

if not torch.cuda.is_available():
    raise SystemExit("there is no GPU")
device = torch.device("cuda:0")
torch.cuda.set_device(0)
x = torch.tensor([[1.0, -2.0, 0.25, 4.0], [0.5, 0.0, -0.75, 3.0]]).cuda()
weight = torch.nn.Parameter(torch.eye(4, device="cuda")[:, :3].contiguous()).to(device)
with torch.cuda.stream(torch.cuda.Stream()):
    tokens, pertoken_scale, offset = torch_npu.npu_dynamic_quant_asymmetric(x @ weight.cuda())
torch.cuda.synchronize()
print(tokens, pertoken_scale.view(torch.int32), offset)
# tensor([[ 127, -128,   63],
#         [ 127,   25, -128]], dtype=torch.int8) tensor([1010876609, 1000382625], dtype=torch.int32) tensor([42., 25.])
copy = x.cuda()
copy.zero_()
print(x.sum().cpu(), copy.sum(), torch.cuda.current_device(), torch.cuda.device_count())
# tensor(6.) tensor(0.) 0 1
