# SPDX-License-Identifier: BSD-3-Clause
"""python -m npuquant.torch_npu script.py: runs a script, or a module, with the stand-in for torch_npu."""
from __future__ import annotations

import argparse
import os
import runpy
import sys

import npuquant

from . import install


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m npuquant.torch_npu", usage="%(prog)s [OPTION...] SCRIPT [ARGUMENT...]\n"
        "       %(prog)s [OPTION...] -m MODULE [ARGUMENT...]",
        description="Runs a script that was written for torch_npu on the CPU: torch_npu's quantisation operators with "
        "the device's bits, and the CPU in the place of the device.")
    parser.add_argument("--scale-form", choices=("product", "inverse"), default="product",
                        help="how npu_dynamic_quant computes scales: product, as CANN 9.0 and later (default), or "
                        "inverse, as CANN 8.5 and earlier")
    parser.add_argument("--threads", type=int, default=1, help="how many threads an operator may use (default: 1)")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="the script and its arguments")
    options = parser.parse_args()
    arguments = options.module if options.module is not None else options.script
    if not arguments:
        parser.error("expected a script, or -m and a module")
    try:
        npuquant.set_num_threads(options.threads)
    except ValueError as error:
        parser.error(f"--threads: {error}")
    if options.module is None and not os.path.exists(arguments[0]):
        parser.error(f"{arguments[0]}: no such file")

    install(options.scale_form)
    sys.argv = arguments
    if options.module is None:
        # As Python itself does: modules beside the script can be imported.
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
