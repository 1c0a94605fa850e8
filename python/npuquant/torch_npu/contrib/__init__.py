# SPDX-License-Identifier: BSD-3-Clause
"""torch_npu.contrib, of which only transfer_to_npu is here."""
from .._absent import absent_from

__getattr__ = absent_from("torch_npu.contrib")
