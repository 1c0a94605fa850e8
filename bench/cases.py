# SPDX-License-Identifier: BSD-3-Clause
"""The list of cases of npuquant-bench. A case's name says all of it:

    operator/mode/parameters/x-y/shape[/variant][/tN]      quantize/mul/uniform/f32-i8/4096x4096

x is of the type x, y the result; a variant is unusual data or an unusual view; tN are N threads."""

import re
import sys

FLOATS = ("f32", "f16", "bf16")

#: Sets, each with the reason why a case is in it. A case that is in none is rare.
SETS = {
    "models": "usual shapes and types", "sweep": "sizes", "layout": "a scale for each index of the middle dimension",
    "overhead": "small calls", "threads": "two against one", "sizes": "short rows, a long row",
    "views": "strided, reversed, transposed", "data": "that saturates, NaN, subnormal numbers",
}

#: Operator and mode, the parameters, and the types of y with those of x.
_QUANTISED = {"i8": FLOATS, "i4": FLOATS}
_DIVIDED = {"i8": FLOATS, "u8": FLOATS, "i32": FLOATS}
_FROM_WEIGHTS = {y: ("i8", "i4") for y in FLOATS}
_FROM_SUMS = {y: ("i32",) for y in FLOATS}
KINDS = [
    ("quantize/mul", ("uniform", "channel"), _QUANTISED),
    ("quantize/div", ("uniform", "channel"), _DIVIDED),
    ("group_quant/mul", ("experts64",), _QUANTISED),
    ("dynamic_quant_asymmetric/token", ("plain", "smooth", "experts64"), _QUANTISED),
    ("dynamic_quant_asymmetric/tensor", ("plain", "smooth"), _QUANTISED),
    ("dynamic_quant/token", ("plain", "smooth", "experts64"), _QUANTISED),
    ("dynamic_quant/tensor", ("plain", "smooth"), _QUANTISED),
    ("dynamic_block_quant/block32", ("plain",), _QUANTISED),
    ("dynamic_block_quant/block128", ("plain",), _QUANTISED),
    ("anti_quant/mul", ("uniform", "channel"), _FROM_WEIGHTS),
    ("dequant/weight", ("uniform", "channel"), _FROM_SUMS),
    ("dequant/token", ("channel",), _FROM_SUMS),
    ("dequant/token-bias-i32", ("channel",), _FROM_SUMS),
    ("dequant/token-bias-f32", ("channel",), _FROM_SUMS),
    ("requant/mul", ("uniform", "channel"), {"i8": ("i32",), "f16": ("i32",)}),
    ("requant/symmetric", ("channel",), {"i8": ("i32",)}),
]

#: Decode; small batches, which the second-level cache holds; prefill; beyond the last caches; weights.
MODEL_SHAPES = {"1x128": {"overhead"}, "1x1024": {"overhead"}, "1x4096": {"models", "overhead"}, "8x4096": {"models"},
                "64x1024": {"models"}, "512x4096": {"models"}, "16384x4096": {"models"}, "4096x4096": set(),
                "11008x4096": set()}

#: Kinds with types, and the sets of few kinds that have them.
FEW = {
    "quantize/mul/uniform/f32-i8": {"sweep", "threads", "sizes"},
    "quantize/mul/channel/f32-i8": {"sizes"},
    "quantize/mul/channel/bf16-i8": {"sweep"},
    "quantize/div/uniform/f32-i8": {"sweep"},
    "quantize/div/channel/bf16-i8": {"threads"},
    "dynamic_quant_asymmetric/token/plain/f32-i8": {"sizes"},
    "dynamic_quant_asymmetric/token/plain/bf16-i8": {"sweep", "threads"},
    "dynamic_quant_asymmetric/tensor/plain/f32-i8": {"sizes"},
    "dynamic_quant_asymmetric/tensor/plain/bf16-i8": {"sweep", "threads"},
    "dynamic_quant/token/plain/bf16-i8": {"sweep", "threads"},
    "dynamic_block_quant/block128/plain/bf16-i8": {"sweep", "threads"},
    "anti_quant/mul/channel/i8-bf16": {"sweep", "threads", "sizes"},
    "dequant/token/channel/i32-bf16": {"sweep", "threads", "sizes"},
    "requant/mul/channel/i32-i8": {"sweep", "threads", "sizes"},
}
FEW_SHAPES = {"sweep": ["1x4096", "8x4096", "64x4096", "512x4096", "4096x4096", "16384x4096"],
              "threads": ["512x4096/t2", "16384x4096/t2"], "sizes": ["1000000x8", "1x10000000"]}
VIEWS = ["every-second", "reversed", "broadcast", "transposed-x", "transposed-y"]
DATA = ["saturated", "nan", "subnormal"]


def _is_usual(kind, parameters, x, y):
    """float32 and bfloat16 to int8 everywhere, the other types where a model is likely to have them."""
    operator, mode = kind.split("/")
    if operator == "anti_quant":
        return y == "bf16" or x == "i8" or parameters == "channel"
    if operator == "dequant":
        return y == "bf16" or (parameters == "channel" and mode != "token-bias-i32")
    if operator == "requant":
        return True
    if (mode, parameters) == ("tensor", "smooth"):
        return False
    if y == "i8":
        return x != "f16" or operator == "dynamic_block_quant" or (parameters == "uniform" and mode != "div")
    return (x, y) == ("bf16", "i4") and parameters != "smooth" and mode not in ("tensor", "block32")


def elements(name):
    count = 1
    for extent in name.split("/")[4].split("x"):
        count *= int(extent)
    return count


def bits(dtype):
    return int(dtype.lstrip("bfiu"))


def memory(name):
    """About the bytes that measuring it takes: x, y, expected y, a copy of half of x and y, the parameters of each
    column of each group, and the memory of a variant."""
    x, y = (elements(name) * bits(dtype) // 8 for dtype in name.split("/")[3].split("-"))
    groups, columns = 64 if "/experts64/" in name else 1, int(name.split("/")[4].split("x")[-1])
    return (9 if re.search("/[a-z-]+$", name) else 3) * x // 2 + 5 * y // 2 + 8 * groups * columns


def is_dynamic(name):
    """Whether the operator finds its scales itself."""
    return name.startswith("dynamic_")


def cases():
    """Each case's name, and its sets."""
    found = {}

    def add(name, sets):
        found.setdefault(name, set()).update(sets)

    for kind, choices, types in KINDS:
        for parameters in choices:
            for y in ("i8", "u8", "i32", "i4", *FLOATS):
                for x in types.get(y, ()):
                    usual = _is_usual(kind, parameters, x, y)
                    for shape, sets in MODEL_SHAPES.items():
                        # Groups need a row each, except in group_quant, which is also called for one row.
                        if parameters != "experts64" or kind == "group_quant/mul" or int(shape.split("x")[0]) >= 64:
                            add(f"{kind}/{parameters}/{x}-{y}/{shape}", sets if usual else ())
    for length in 128, 1024, 4096, 16384, 1000000:
        add(f"trans_quant_param/nearest/channel/f32-i64/{length}", {"overhead" if length < 4096 else "models"})
    for name, shapes in FEW_SHAPES.items():
        for shape in shapes:
            for kind, sets in FEW.items():
                if name in sets:
                    add(f"{kind}/{shape}", {name})
    for channels in 64, 256, 1024:  # as in NCHW, about two million elements
        for inner in 1, 7, 16, 49, 3136:
            batch = max((1 << 21) // (channels * inner), 1)
            add(f"quantize/div/axis/f32-i8/{batch}x{channels}x{inner}", {"layout"})
    for shape in "64x1024", "4096x4096":
        for view in VIEWS:
            add(f"quantize/mul/uniform/f32-i8/{shape}/{view}", {"views"})
        add(f"quantize/mul/uniform/bf16-i8/{shape}/transposed-x", {"views"})
        add(f"dynamic_quant_asymmetric/token/plain/f32-i8/{shape}/transposed-x", {"views"})
    for data in DATA:
        for kind in "uniform/f32", "uniform/bf16", "channel/f32":
            add(f"quantize/mul/{kind}-i8/64x1024/{data}", {"data"})
    add("dynamic_quant_asymmetric/token/plain/f32-i8/64x1024/subnormal", {"data"})
    return found


if __name__ == "__main__":  # those of at most this many elements
    print(*(name for name in cases() if elements(name) <= int(sys.argv[1])))
