# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: npuquant stands in for torch_npu, from before pytest imports the first test module to the end.

pytest -p npuquant.pytest_npu loads the plugin; if npuquant is installed, pytest --npu=exact does, too. The environment
variables NPUQUANT_VALUES and NPUQUANT_STRICT are values and strict of npuquant.torch_npu.install().
"""
from __future__ import annotations

from typing import Any, Iterator

import pytest

from . import torch_npu
from .torch_npu._chosen import chosen


def pytest_configure(config: Any) -> None:
    torch_npu.install(values=config.getoption("--npu", None))


def pytest_unconfigure(config: Any) -> None:
    torch_npu.uninstall()


@pytest.fixture
def npu() -> Iterator[Any]:
    """torch_npu for one test. After the test, values and strict are as before the test's own npu.install()."""
    former = chosen.values, chosen.strict
    yield torch_npu
    torch_npu.install(values=former[0], strict=former[1])
