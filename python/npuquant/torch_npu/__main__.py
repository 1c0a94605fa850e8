# SPDX-License-Identifier: BSD-3-Clause
"""python -m npuquant.torch_npu script.py: runs a script, or a module, with the stand-in for torch_npu."""
from __future__ import annotations

import argparse
import os
import runpy
import sys
import textwrap
import types
from typing import Optional, Type

import npuquant
from npuquant_facts.operators import OPTIONS

from .._serving.unset import FILLS
from .._torch.chosen import CANN, VALUES
from . import install


def _report(kind: Type[BaseException], error: BaseException, trace: Optional[types.TracebackType]) -> None:
    """Reports an exception as Python does, from the script on."""
    while trace is not None and any(trace.tb_frame.f_globals is names for names in (globals(), vars(runpy))):
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


#: How many lines of six public repositories of August 2026 call an operator, and of which calls the values are known, if
#: not of all that A2 and A3 take. docs/torch.md names the repositories.
_CALLS = (
    (115, "npu_grouped_matmul", "int8"), (77, "npu_dynamic_quant", "int8, int4, 8-bit floats"),
    (70, "npu_dynamic_mx_quant", ""), (57, "npu_quant_matmul", "int8, int4"), (55, "npu_swiglu", ""),
    (49, "npu_moe_init_routing_v2", "quant_mode -1 to 3, 9, 16, 17"), (49, "npu_moe_finalize_routing", ""),
    (46, "npu_moe_distribute_dispatch", ""), (25, "npu_dequant_swiglu_quant", ""), (20, "npu_moe_re_routing", ""),
    (17, "npu_dynamic_block_quant", "int8, 8-bit floats"), (12, "npu_grouped_dynamic_mx_quant", ""),
    (8, "npu_dynamic_mx_quant_with_dual_axis", ""), (8, "npu_swiglu_group_quant", ""),
    (7, "npu_convert_weight_to_int4pack", ""), (7, "npu_moe_compute_expert_tokens", ""),
    (7, "npu_moe_init_routing", ""), (6, "npu_moe_token_permute", ""), (5, "npu_moe_token_unpermute", ""),
    (4, "npu_quantize", "integers, 8-bit floats"), (4, "npu_swiglu_mx_quant", ""), (3, "npu_trans_quant_param", ""),
    (3, "npu_dynamic_block_mx_quant", ""), (2, "npu_dtype_cast", "floating point"), (2, "npu_dequant_swiglu_clamp_quant", ""),
)


def _list() -> None:
    """The operators, by what is known of each."""
    from . import __all__
    from .._torch import declared

    rows = declared.ROWS
    near = {name for name, row in rows.items() if row.near is not None}
    shapes = {name for name, row in rows.items() if row.values is None} - near
    values = {*rows, *(name for name in __all__ if "npu_" in name)} - shapes - near
    kinds = ("values", values), ("near values", near), ("shapes and types", shapes)
    print("lines that call it")
    for lines, name, part in _CALLS:
        known = next((title for title, names in kinds if name in names), "not here")
        print(f"{lines:5} {name:36}{known}{' of ' * bool(part)}{part}")
    for title, names in kinds:
        print(textwrap.fill(f"{title}: {' '.join(sorted(names))}", 100, subsequent_indent="  ", break_long_words=False,
                            break_on_hyphens=False))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m npuquant.torch_npu", usage="%(prog)s [OPTION...] SCRIPT [ARGUMENT...]\n"
        "       %(prog)s [OPTION...] -m MODULE [ARGUMENT...]",
        description="Runs a script for torch_npu on the CPU instead of the device. The quantisation operators have the "
        "device's arithmetic.")
    parser.add_argument("--scale-form", choices=tuple(OPTIONS["scale_form"].numbers), default="product",
                        help="how npu_dynamic_quant computes scales: product, as CANN 9.0 and later (default), or "
                        "inverse, as CANN 8.5 and earlier")
    parser.add_argument("--cann", choices=tuple(CANN), help="the software that npu_moe_init_routing_v2 depends on: "
                        "9.2 is what comes after 9.1; default: the one with the scale form")
    parser.add_argument("--values", choices=VALUES,
                        help="what operators without values do: raise an error (exact, the default), return zeros, or "
                        "compute values that are not the device's to the bit (near), with a report at the end")
    parser.add_argument("--unset", choices=FILLS, help="what fills rows that the device does not write: zeros (default), "
                        "or nan: NaN, and in rows of integers the most negative one")
    parser.add_argument("--strict", action="store_true", default=None,
                        help="refuse what the devices of the series A2 and A3 refuse")
    parser.add_argument("--threads", type=int, default=1, help="how many threads an operator may use (default: 1)")
    parser.add_argument("--list", action="store_true", help="list the operators, and which of them have values")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="the script and its arguments")
    options = parser.parse_args()
    if options.list:
        _list()
        return
    arguments = options.module if options.module is not None else options.script
    if not arguments:
        parser.error("expected a script, or -m and a module")
    try:
        npuquant.set_num_threads(options.threads)
    except ValueError as error:
        parser.error(f"--threads: {error}")
    if options.module is None and not os.path.exists(arguments[0]):
        parser.error(f"{arguments[0]}: no such file")

    install(options.scale_form, values=options.values, strict=options.strict, unset=options.unset,
            cann=options.cann)
    sys.excepthook = _report
    sys.argv = arguments
    if options.module is None:
        # As Python itself does: modules beside the script can be imported, unless it was told that they should not.
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = os.path.dirname(os.path.realpath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
