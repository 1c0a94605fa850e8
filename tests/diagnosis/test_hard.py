#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tool diagnoses a kernel with one mistake on hard inputs: every possible mistake of every operator and type.

The kernels use NumPy, and share no line with the tool. NPUQUANT_TOOL is the path of the tool.
usage: test_hard.py [OPERATOR...]
       test_hard.py K/N             every Nth call of each operator, from call K on
"""
import itertools
import pathlib
import sys
import tempfile
import unittest

from calls import first_place, hard_inputs
from kernels import KERNELS, run

FLOATS = ("float32", "float16", "bfloat16")
ROWS = ("--shape", "64,128")


def forms(operator):
    """Options of hard-inputs, a list for each call."""
    make = {
        "quantize": quantize_forms,
        "group-quant": group_quant_forms,
        "trans-quant-param": trans_quant_param_forms,
        "dynamic-quant": dynamic_quant_forms,
        "dynamic-quant-asymmetric": dynamic_forms,
        "dynamic-block-quant": dynamic_block_quant_forms,
        "anti-quant": anti_quant_forms,
        "dequant": dequant_forms,
        "requant": requant_forms,
    }
    return list(make[operator]())


def without(*names):
    """With all optional inputs, and without the named ones."""
    return ([], ["--without", ",".join(names)])


def quantize_forms():
    for x, y, axis, left_out in itertools.product(FLOATS, ("int8", "uint8", "int32"), "01", without("zero-points")):
        yield ["--shape", "48,72", "--type", f"x={x}", "--dtype", y, "--axis", axis, *left_out]
    for x, y, left_out in itertools.product(FLOATS, ("int8", "quint4x2"), without("zero-points")):
        yield ["--shape", "48,72", "--type", f"x={x}", "--dtype", y, "--div-mode", "false", "--axis", "-1", *left_out]
    for half, left_out in itertools.product(("float16", "bfloat16"), without("zero-points")):
        types = ["--type", f"x={half},scales={half},zero_points={half}", *left_out]
        yield ["--shape", "48,72", "--dtype", "int8", *types]
        yield ["--shape", "48,72", "--dtype", "int32", *types]
        yield ["--shape", "48,72", "--dtype", "int8", "--div-mode", "false", *types]
        yield ["--shape", "48,72", "--dtype", "quint4x2", "--div-mode", "false", "--axis", "-2", *types]
    for scales, integer in zip(FLOATS, ("int8", "uint8", "int32")):
        yield ["--shape", "48,72", "--type", f"scales={scales},zero_points={integer}", "--dtype", integer]
    for axis in "0", "1", "-1":
        yield ["--shape", "6,8,72", "--axis", axis]
    yield ["--shape", "48,96"]
    yield ["--shape", "2,3,8,72", "--axis", "-2", "--div-mode", "false"]


def group_quant_forms():
    for x, y, left_out in itertools.product(FLOATS, ("int8", "quint4x2"), without("offset")):
        yield ["--shape", "48,72", "--type", f"x={x}", "--dtype", y, *left_out]
    for x, scale, y in itertools.product(FLOATS, ("float16", "bfloat16"), ("int8", "quint4x2")):
        types = f"x={x},scale={scale},offset={scale},group_index=int32"
        yield ["--shape", "48,72", "--type", types, "--dtype", y]


def trans_quant_param_forms():
    for mode, shape, left_out in itertools.product("01", ("72", "1,72"), without("offset")):
        yield ["--shape", shape, "--round-mode", mode, *left_out]
        yield ["--shape", shape, "--round-mode", mode, "--dtype", "uint64", *left_out]
    yield ["--shape", "3,24", "--without", "offset"]


def dynamic_quant_forms():
    yield [*ROWS, "--dtype", "uint8"]
    yield from dynamic_forms()
    for x, y in zip(FLOATS, ("int8", "quint4x2", "uint8")):
        yield [*ROWS, "--type", f"x={x}", "--dtype", y, "--scale-form", "inverse"]


def dynamic_forms():
    optionals = ([], ["--without", "group-index"], ["--without", "smooth-scales,group-index"])
    for x, y, left_out in itertools.product(FLOATS, ("int8", "quint4x2"), optionals):
        yield [*ROWS, "--type", f"x={x}", "--dtype", y, *left_out]
    yield [*ROWS, "--type", "group_index=int32"]
    yield ["--shape", "4,16,128"]
    yield ["--shape", "64,512"]
    for x, (y, left_out) in itertools.product(FLOATS, (("int8", "group-index"), ("quint4x2", optionals[2][1]))):
        yield [*ROWS, "--type", f"x={x}", "--dtype", y, "--quant-mode", "pertensor", "--without", left_out]


def dynamic_block_quant_forms():
    for x, y, least in itertools.product(FLOATS, ("int8", "quint4x2"), ("0", "50")):
        yield [*ROWS, "--type", f"x={x}", "--dtype", y, "--min-scale", least, "--block", "24"]
    yield ["--shape", "64,256", "--type", "x=bfloat16"]
    yield ["--shape", "4,16,50", "--block", "7", "--min-scale", "0.01"]
    yield ["--shape", "64,128", "--block", "1000", "--min-scale", "2e4"]
    yield [*ROWS, "--dtype", "uint8", "--min-scale", "50", "--block", "24"]


def anti_quant_forms():
    types = itertools.product(("int8", "quint4x2"), ("float32", "bfloat16"), FLOATS, without("offset"))
    for x, scale, y, left_out in types:
        yield ["--shape", "48,72", "--type", f"x={x},scale={scale}", "--dtype", y, *left_out]
    for x, y, shape in itertools.product(("int8", "quint4x2"), FLOATS, ("6,8,72", "72")):
        yield ["--shape", shape, "--type", f"x={x},scale=float16", "--dtype", y]
    for x in "int8", "quint4x2":
        yield ["--shape", "48,128", "--type", f"x={x}"]


def dequant_forms():
    for bias, y, left_out in itertools.product(("int32", "float32", "bfloat16"), FLOATS, without("activation-scale")):
        yield ["--shape", "48,72", "--type", f"bias={bias}", "--dtype", y, *left_out]
    for y, names in itertools.product(FLOATS, ("bias", "bias,activation-scale")):
        yield ["--shape", "48,72", "--dtype", y, "--without", names]
    for scale, y, left_out in itertools.product(("float16", "bfloat16"), FLOATS, without("activation-scale")):
        yield ["--shape", "6,8,72", "--type", f"weight-scale={scale},bias=float16", "--dtype", y, *left_out]


def requant_forms():
    for y, left_out in itertools.product(("int8", "float16"), without("bias")):
        yield ["--shape", "48,72", "--dtype", y, *left_out]
    for y, shape in itertools.product(("int8", "float16"), ("6,8,72", "72")):
        yield ["--shape", shape, "--type", "words=int64", "--dtype", y]


def prove(self, operator, first, step):
    """In each form, the right kernel is right, and the tool names each mistake alone and without a doubt.

    One scale for a tensor leaves no room for all kinds of rows. Then the manifest says which mistakes change nothing,
    and which give equal results and are named together.
    """
    for options in forms(operator)[first::step]:
        with tempfile.TemporaryDirectory() as folder:
            call = hard_inputs(pathlib.Path(folder), operator, *options)
            with self.subTest(operator=operator, options=options, mistake="none"):
                if call.arguments.get("quant_mode") != "pertensor":
                    wrong = [name for name in call.mistakes if call.alike(name) != [name]]
                    self.assertEqual(wrong, [], "they look like others here, or like none")
                self.assertEqual(call.diagnose(run(call, set()))["verdict"], "equal")
            for mistake in call.mistakes:
                with self.subTest(operator=operator, options=options, mistake=mistake):
                    said = call.diagnose(run(call, {mistake}))
                    alike = call.alike(mistake)
                    self.assertEqual(said["verdict"], "explained" if alike else "equal")
                    self.assertEqual(first_place(said), [[name] for name in alike])


class HardInputs(unittest.TestCase):
    def test_halves(self):
        """Each half type can be taken only for the other; a product of halves is exact, but a sum is not."""
        for half, other in ("float16", "bfloat16"), ("bfloat16", "float16"):
            with tempfile.TemporaryDirectory() as folder:
                types = f"x={half},scale={half},offset={half}"
                call = hard_inputs(folder, "group-quant", "--shape", "48,72", "--type", types)
            self.assertLessEqual({f"x-{other}", f"scale-{other}", "float64"}, set(call.mistakes))
            self.assertTrue({f"x-{half}", f"scale-{half}", "fused"}.isdisjoint(call.mistakes))


if __name__ == "__main__":
    operators, first, step = sys.argv[1:] or KERNELS, 0, 1
    if "/" in "".join(sys.argv[1:]):
        operators, (first, step) = KERNELS, (int(number) for number in sys.argv[1].split("/"))
        first -= 1
    for operator in operators:
        name = "test_" + operator.replace("-", "_")
        setattr(HardInputs, name, lambda self, operator=operator: prove(self, operator, first, step))
    unittest.main(argv=sys.argv[:1], verbosity=2)
