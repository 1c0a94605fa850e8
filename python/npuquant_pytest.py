# SPDX-License-Identifier: BSD-3-Clause
"""The option --npu of pytest, by which a session gets the stand-in for torch_npu. Without it nothing is imported."""


def pytest_addoption(parser):
    parser.getgroup("npuquant").addoption(
        "--npu", metavar="VALUES", help="let npuquant stand in for torch_npu: operators whose values it does not compute "
        "raise an error (exact), return zeros (zeros), or values that are not the device's to the bit (near)")


def pytest_load_initial_conftests(early_config):
    """Before conftest.py, which may import torch_npu. A plugin that is loaded here misses this hook."""
    if early_config.known_args_namespace.npu:
        early_config.pluginmanager.import_plugin("npuquant.pytest_npu")
        early_config.pluginmanager.get_plugin("npuquant.pytest_npu").pytest_load_initial_conftests(early_config)
