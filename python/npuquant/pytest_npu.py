# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: npuquant stands in for torch_npu, from before pytest imports conftest.py to the end.

pytest -p npuquant.pytest_npu loads the plugin; if npuquant is installed, pytest --npu=exact does, too. The environment
variables NPUQUANT_VALUES, NPUQUANT_STRICT and NPUQUANT_UNSET are values, strict and unset of npuquant.torch_npu.install().
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

    try:
        torch_npu.install(values=getattr(options, "npu", None))
    except ValueError as error:
        raise pytest.UsageError(f"--npu: {error}") from None
    except RuntimeError as error:  # it is too late
        raise pytest.UsageError(f"npuquant: {error}") from None
    early_config.add_cleanup(torch_npu.uninstall)


def pytest_configure(config: Any) -> None:
    """For a plugin that a conftest.py names: it misses the hook above. A conftest.py may have made a mock, too."""
    stand_in = sys.modules.get("npuquant.torch_npu")
    if stand_in is None or sys.modules.get("torch_npu") is not stand_in:
        pytest_load_initial_conftests(config)


def _near() -> Any:
    """The module with the calls; None if no operator is used."""
    return sys.modules.get("npuquant._torch.near")


def _mocks() -> str:
    """What a message says of mocks that replaced the stand-in after its install(), and are still there."""
    installing: Any = sys.modules.get("npuquant.torch_npu._install")
    places = installing.mocks() if installing is not None else []
    return installing.to_remove(places) if places else ""


def pytest_sessionfinish(session: Any) -> None:
    """In a worker of pytest-xdist: gives its calls to the session that reports them."""
    output, near = getattr(session.config, "workeroutput", None), _near()
    if output is not None and near is not None:
        output["npuquant"] = near.take_calls()


def _add_calls(node: Any) -> None:
    from ._torch import near

    near.add_calls(getattr(node, "workeroutput", {}).get("npuquant", {}))


pytest_testnodedown = pytest.hookimpl(optionalhook=True)(_add_calls)  # a hook of pytest-xdist


def pytest_terminal_summary(terminalreporter: Any) -> None:
    near = _near()
    report = "\n".join(text for text in ("" if near is None else near.take_report(), _mocks()) if text)
    if report:
        terminalreporter.section("npuquant")
        terminalreporter.write_line(report)


@pytest.fixture
def npu() -> Iterator[Any]:
    """torch_npu for one test. After the test, values and strict are as before the test's own npu.install()."""
    from . import torch_npu
    from ._serving import unset as _unset
    from ._torch.chosen import chosen

    former = {"values": chosen.values, "strict": chosen.strict, "unset": _unset.chosen.unset}
    yield torch_npu
    torch_npu.install(**former)
