# SPDX-License-Identifier: BSD-3-Clause
"""Importing it, by torch_npu's name, lets PyTorch take "cuda" for the device, which is the CPU, until uninstall()."""
from npuquant.torch_npu._install import transfer_cuda

if __name__.startswith("torch_npu."):
    transfer_cuda()
