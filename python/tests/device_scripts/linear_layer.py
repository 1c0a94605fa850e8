# SPDX-License-Identifier: BSD-3-Clause
"""A linear layer with int8 weights: its weights are quantised, saved, loaded, and used on a stream of their own."""
import argparse
import io
import time

import torch
import torch_npu


class QuantisedLinear(torch.nn.Module):
    def __init__(self, in_features, out_features, device=None):
        super().__init__()
        self.register_buffer("weight", torch.empty(out_features, in_features, dtype=torch.int8, device=device))
        self.register_buffer("weight_scale", torch.empty(out_features, device=device))
        self.register_buffer("bias", torch.zeros(out_features, device=device))

    @classmethod
    def of(cls, linear):
        layer = cls(linear.in_features, linear.out_features, device=linear.weight.device)
        layer.weight, layer.weight_scale = torch_npu.npu_dynamic_quant(linear.weight.detach())
        layer.bias.copy_(linear.bias.detach())
        return layer

    def forward(self, x):
        tokens, pertoken_scale = torch_npu.npu_dynamic_quant(x.reshape(-1, x.shape[-1]))
        y = torch_npu.npu_quant_matmul(
            tokens, self.weight.t(), self.weight_scale, pertoken_scale=pertoken_scale, bias=self.bias.to(x.dtype),
            output_dtype=x.dtype)
        return y.reshape(*x.shape[:-1], -1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=int, default=0)
    options = parser.parse_args()
    if not torch.npu.is_available():
        raise SystemExit("there is no NPU")
    torch.npu.set_device(options.device)
    device = torch.device("npu", torch.npu.current_device())
    torch.npu.manual_seed_all(1)

    linear = torch.nn.Linear(32, 3)
    with torch.no_grad():
        linear.weight.copy_((torch.arange(96) * 37 % 61 - 30).reshape(3, 32) / 32)
        linear.bias.copy_(torch.tensor([0.5, -0.25, 0.0]))
    linear = linear.to(device).half()

    saved = io.BytesIO()
    torch.save(QuantisedLinear.of(linear).state_dict(), saved)
    saved.seek(0)
    layer = QuantisedLinear(32, 3)
    layer.load_state_dict(torch.load(saved, map_location="npu:0"))
    layer = layer.npu().eval()

    x = ((torch.arange(128) * 29 % 97 - 48).reshape(2, 2, 32) / 16).half().to(device, non_blocking=True)
    stream = torch.npu.Stream()
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    stream.wait_stream(torch.npu.current_stream())
    with torch.no_grad(), torch.npu.stream(stream):
        start.record()
        y = layer(x)
        end.record()
    torch.npu.current_stream().wait_stream(stream)
    torch.npu.synchronize()
    print("a time was measured:", start.elapsed_time(end) >= 0 and time.time() > 0)
    print(layer.weight[:, :6], layer.weight_scale)
    print(y)
    difference = (y.cpu().float() - linear.float()(x.float()).detach().cpu()).abs().max()
    print("near the layer before:", difference.item() < 0.1)


if __name__ == "__main__":
    main()
# a time was measured: True
# tensor([[-127,   30,  -72,   85,  -17, -119],
#         [ -21, -123,   34,  -68,   89,  -13],
#         [  85,  -17, -119,   38,  -63,   93]], dtype=torch.int8) tensor([0.0074, 0.0074, 0.0074])
# tensor([[[ 3.0859, -7.4492,  6.8203],
#          [15.1719, -5.4922,  0.2102]],
#
#         [[ 2.0508, -3.5410, -4.4023],
#          [-0.7627,  4.4805, -7.0039]]], dtype=torch.float16)
# near the layer before: True
