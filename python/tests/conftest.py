# SPDX-License-Identifier: BSD-3-Clause
import os
import subprocess
import sys

import numpy as np
import numpy_operators
import npuquant
import npuquant_cli
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


# ---- the command ----


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder, capsys):
    """Runs words that are no error; returns what is printed."""
    def run_words(*words, status=0):
        assert npuquant_cli.main([str(word) for word in words]) == status, capsys.readouterr()
        printed = capsys.readouterr()
        assert printed.err == ""
        return printed.out
    return run_words


@pytest.fixture
def refused(folder, capsys):
    """Runs words that are an error: status 2, one line, which is returned, and no new or lost file."""
    def run_words(*words, says=""):
        before = sorted(os.listdir())
        assert npuquant_cli.main([str(word) for word in words]) == 2, capsys.readouterr()
        printed = capsys.readouterr()
        assert printed.err.startswith("npuquant: ") and printed.err.count("\n") == 1 and says in printed.err
        assert (printed.out, sorted(os.listdir())) == ("", before)
        return printed.err
    return run_words


@pytest.fixture
def program():
    """Runs words in a process."""
    def run_words(*words, **settings):
        return subprocess.run([sys.executable, "-m", "npuquant_cli", *map(str, words)],
                              stdout=settings.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, check=False,
                              timeout=60, **settings)
    return run_words
