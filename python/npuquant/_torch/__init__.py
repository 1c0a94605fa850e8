# SPDX-License-Identifier: BSD-3-Clause
"""What npuquant.torch and the stand-in for torch_npu are made of."""
