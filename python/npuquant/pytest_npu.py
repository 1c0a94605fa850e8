# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: npuquant stands in for torch_npu, from before pytest imports conftest.py to the end.

pytest -p npuquant.pytest_npu loads the plugin; if npuquant is installed, pytest --npu=exact does, too. The environment
variables NPUQUANT_VALUES and NPUQUANT_STRICT are values and strict of npuquant.torch_npu.install().
"""
from __future__ import annotations

import sys
from typing import Any, Iterator

import pytest


def pytest_load_initial_conftests(early_config: Any) -> None:
    options = early_config.known_args_namespace
    if options.help or options.version:
        return
    from . import torch_npu

    torch_npu.install(values=getattr(options, "npu", None))
    early_config.add_cleanup(torch_npu.uninstall)


def pytest_configure(config: Any) -> None:
    """For a plugin that a conftest.py names: it misses the hook above."""
    stand_in = sys.modules.get("npuquant.torch_npu")
    if stand_in is None or sys.modules.get("torch_npu") is not stand_in:
        pytest_load_initial_conftests(config)


@pytest.fixture
def npu() -> Iterator[Any]:
    """torch_npu for one test. After the test, values and strict are as before the test's own npu.install()."""
    from . import torch_npu
    from .torch_npu._chosen import chosen

    former = chosen.values, chosen.strict
    yield torch_npu
    torch_npu.install(values=former[0], strict=former[1])
