# SPDX-License-Identifier: BSD-3-Clause
"""What can be imported as a part of torch_npu.contrib."""
