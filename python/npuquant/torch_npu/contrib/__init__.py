# SPDX-License-Identifier: BSD-3-Clause
"""torch_npu.contrib, of which only transfer_to_npu is here."""
import importlib
import sys
from typing import Any

from .._absent import absent_from

_absent = absent_from("torch_npu.contrib")


def __getattr__(name: str) -> Any:
    # "from torch_npu.contrib import transfer_to_npu" would import it by the name that this package has itself.
    if name == "transfer_to_npu" and sys.modules.get("torch_npu.contrib") is sys.modules[__name__]:
        return importlib.import_module("torch_npu.contrib.transfer_to_npu")
    return _absent(name)
