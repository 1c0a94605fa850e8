# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import numpy_operators
import npuquant
import pytest

# They import torch_npu; test_device_scripts.py runs them.
collect_ignore = ["device_scripts"]


def pytest_report_header():
    return f"NPUQ_TEST_SEED={numpy_operators.SEED}, NumPy {np.__version__}, backends {npuquant.available_backends()}"


@pytest.fixture(autouse=True)
def settings():
    """Each test starts as a new process would, and leaves no trace."""
    backend = npuquant.backend()
    yield
    npuquant.set_backend(backend)
    npuquant.set_num_threads(1)


@pytest.fixture(params=[1, 3], ids=lambda count: f"{count}-threads")
def threads(request):
    npuquant.set_num_threads(request.param)
    return request.param


@pytest.fixture(params=npuquant.available_backends())
def backend(request):
    npuquant.set_backend(request.param)
    return request.param
