# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: npuquant stands in for torch_npu from before the first test module is imported to the end.

pytest -p npuquant.pytest_npu loads it, and where npuquant is installed as a package pytest --npu=exact. The environment
variables NPUQUANT_VALUES and NPUQUANT_STRICT choose what npuquant.torch_npu.install() takes as values and strict.
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
    """torch_npu for one test: install(), with which a test may choose values and strict for itself, is put back."""
    former = chosen.values, chosen.strict
    yield torch_npu
    torch_npu.install(values=former[0], strict=former[1])
