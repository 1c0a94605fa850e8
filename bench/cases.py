# SPDX-License-Identifier: BSD-3-Clause
"""The list of cases of npuquant-bench. A case's name says all of it:

    operator/mode/parameters/x-y/shape[/variant][/tN]      quantize/mul/uniform/f32-i8/4096x4096

x is of the type x, y the result; a variant is unusual data or an unusual view; tN are N threads."""

import re
import sys
from typing import NamedTuple

FLOATS = ("f32", "f16", "bf16")

#: Sets, each with the reason why a case is in it. A case that is in none is rare.
SETS = {
    "models": "usual shapes and types", "sweep": "sizes", "layout": "a scale for each index of the middle dimension",
    "overhead": "small calls", "threads": "two against one", "sizes": "short rows, a long row",
    "views": "strided, reversed, transposed", "data": "that saturates, NaN, subnormal numbers",
}


class Kind(NamedTuple):
    """What is known of an operator's mode."""
    name: str
    parameters: tuple  # of cases with usual shapes
    types: dict  # of y, each with those of x
    scale: float  # that brings usual data into the range of y; 0: x is the scales, or there are none
    offset: tuple  # type and value, if there is one
    work: dict  # vector instructions between load and store, see limits.py
    column: dict  # those to load the parameters of a column
    row_scale: float = 0


_QUANTISED = {"i8": FLOATS, "i4": FLOATS}
_SMALL = {"e4m3fn": FLOATS, "e5m2": FLOATS, "hif8": FLOATS}
_MX = {"e4m3fn": FLOATS, "e5m2": FLOATS}
_MULTIPLIED = {**_QUANTISED, **_SMALL}
_DIVIDED = {"i8": FLOATS, "u8": FLOATS, "i32": FLOATS, **_SMALL}
_FROM_WEIGHTS = {y: ("i8", "i4") for y in FLOATS}
_FROM_MX = {y: tuple(_MX) for y in FLOATS}
_FROM_SUMS = {y: ("i32",) for y in FLOATS}
_CHANNEL, _BOTH, _SMOOTH = ("channel",), ("uniform", "channel"), ("plain", "smooth")
_SUM = {"multiplications": 1, "additions": 1}
_PRODUCT = {"multiplications": 1}
_PRODUCTS = {"multiplications": 2}
_WORDS = {"loads": 2, "shuffles": 2, "integers": 2}  # a word has two halves of 32 bits
#: A correctly rounded quotient takes three steps from the inverse of the divisor. trans_quant_param rounds a scale at
#: bit 13, clamps an offset, and puts it beside the scale.
KINDS = [
    Kind("quantize/mul", _BOTH, _MULTIPLIED, 20.3, ("f32", 3), _SUM, {"loads": 2}),
    Kind("quantize/div", _BOTH, _DIVIDED, 0.0493, ("i32", 3), {"multiplications": 3, "additions": 1}, {"loads": 2}),
    Kind("group_quant/mul", ("experts64",), _QUANTISED, 20.3, ("f32", 3), _SUM, {"loads": 1}),
    Kind("dynamic_quant_asymmetric/token", (*_SMOOTH, "experts64"), _QUANTISED, 1, (), _SUM, {}),
    Kind("dynamic_quant_asymmetric/tensor", _SMOOTH, _QUANTISED, 1, (), _SUM, {}),
    Kind("dynamic_quant/token", (*_SMOOTH, "experts64"), _QUANTISED, 1, (), _PRODUCT, {}),
    Kind("dynamic_quant/tensor", _SMOOTH, _QUANTISED, 1, (), _PRODUCT, {}),
    Kind("dynamic_quant_float8/token", ("plain",), _SMALL, 1, (), {"multiplications": 3}, {}),
    Kind("dynamic_block_quant/block32", ("plain",), _QUANTISED, 0, (), _PRODUCT, {}),
    Kind("dynamic_block_quant/block128", ("plain",), _QUANTISED, 0, (), _PRODUCT, {}),
    Kind("dynamic_block_quant_float8/block128", ("plain",), _SMALL, 0, (), {"multiplications": 3}, {}),
    Kind("dynamic_mx_quant/block32", ("plain",), _MX, 0, (), _PRODUCT, {}),
    Kind("anti_mx_quant/block32", ("channel",), _FROM_MX, 1, (), _PRODUCT, {}),
    Kind("anti_quant/mul", _BOTH, _FROM_WEIGHTS, 0.0493, ("f32", 3), _SUM, {"loads": 2}),
    Kind("dequant/weight", _BOTH, _FROM_SUMS, 1e-6, (), _PRODUCT, {"loads": 1}),
    Kind("dequant/token", _CHANNEL, _FROM_SUMS, 1e-4, (), _PRODUCTS, {"loads": 1}, 0.01),
    Kind("dequant/token-bias-i32", _CHANNEL, _FROM_SUMS, 1e-4, ("i32", 1e6), {**_PRODUCTS, "integers": 1}, {"loads": 2},
         0.01),
    Kind("dequant/token-bias-f32", _CHANNEL, _FROM_SUMS, 1e-4, ("f32", 3), {**_PRODUCTS, "additions": 1}, {"loads": 2},
         0.01),
    Kind("requant/mul", _BOTH, {"i8": ("i32",), "f16": ("i32",)}, 4e-6, ("f32", 3), _PRODUCT, _WORDS),
    Kind("requant/symmetric", _CHANNEL, {"i8": ("i32",)}, 4e-6, (), _PRODUCT, _WORDS),
    Kind("trans_quant_param/nearest", (), {}, 0, ("f32", 3),
         {"loads": 1, "integers": 8, "additions": 2, "conversions": 1, "shuffles": 2, "stores": 1}, {}),
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
    if y in _SMALL:
        pairs = (("f32", "e4m3fn"), ("bf16", "e4m3fn"), ("bf16", "hif8"))
        return mode in ("mul", "token", "block128") and parameters in ("uniform", "plain") and (x, y) in pairs
    return (x, y) == ("bf16", "i4") and parameters != "smooth" and mode not in ("tensor", "block32")


def elements(name):
    count = 1
    for extent in name.split("/")[4].split("x"):
        count *= int(extent)
    return count


def bits(dtype):
    return 8 if dtype in _SMALL else int(dtype.lstrip("bfiu"))


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

    for kind in KINDS:
        for parameters in kind.parameters:
            for y in ("i8", "u8", "i32", "i4", *_SMALL, *FLOATS):
                for x in kind.types.get(y, ()):
                    usual = _is_usual(kind.name, parameters, x, y)
                    for shape, sets in MODEL_SHAPES.items():
                        # Groups need a row each, except in group_quant, which is also called for one row.
                        rows = int(shape.split("x")[0])
                        if parameters != "experts64" or kind.name == "group_quant/mul" or rows >= 64:
                            add(f"{kind.name}/{parameters}/{x}-{y}/{shape}", sets if usual else ())
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


def in_c():
    """For cases.c: how names begin, and what such a case has."""
    kinds = {kind.name: kind for kind in KINDS}
    dimensions = {name[:name.rindex("/") + 1]: name.count("x", name.rindex("/")) + 1
                  for name in cases() if name.count("/") == 4}
    for begin, ndim in dimensions.items():
        operator, mode, parameters, types, _ = begin.split("/")
        kind = kinds[f"{operator}/{mode}"]
        offset = kind.offset or ("f32", 0)
        words = [word.upper().replace("-", "_") for word in (operator, mode, parameters)]
        words += [*types.split("-"), offset[0]]
        scale = 0 if parameters == "plain" else kind.scale
        yield f'KIND("{begin}", {", ".join(words)}, {ndim}, {scale}, {offset[1]}, {kind.row_scale})'


if __name__ == "__main__":  # for the build: what cases.c has of them, or those of at most this many elements
    if sys.argv[1] == "--c":
        print(*in_c(), sep="\n")
    else:
        print(*(name for name in cases() if elements(name) <= int(sys.argv[1])))
