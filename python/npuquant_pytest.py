# SPDX-License-Identifier: BSD-3-Clause
"""The option --npu of pytest, by which a session gets the stand-in for torch_npu. Without it nothing is imported."""


def pytest_addoption(parser):
    parser.getgroup("npuquant").addoption(
        "--npu", choices=("exact", "zeros"), help="let npuquant stand in for torch_npu: operators whose values it does "
        "not compute raise an error (exact) or return zeros")


def pytest_configure(config):
    if config.getoption("--npu"):
        config.pluginmanager.import_plugin("npuquant.pytest_npu")
