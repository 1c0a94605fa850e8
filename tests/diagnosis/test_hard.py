#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A kernel with one mistake is diagnosed on hard inputs: every possible mistake of every operator and type.

The kernels use NumPy, and share no line with the diagnosis. PYTHONPATH names the folders of the package and of tests;
NPUQUANT_LIBRARY is the path of the library.
usage: test_hard.py [OPERATOR...]
       test_hard.py K/N             every Nth call of each operator, from call K on
"""
import itertools
import sys
import unittest

from calls import GIVEN, Call, first_place
from dynamic_kernels import ROW_RULES
from kernels import KERNELS, run
from npuquant_facts.operators import OPERATORS
from numpy_operators import MX_TYPES, SMALL

FLOATS = ("float32", "float16", "bfloat16")
LINES = 48, 72
ROWS = 64, 128


def forms(operator):
    """Arguments of Call, a dictionary for each call."""
    make = globals().get(f"{operator}_forms")
    return list(make() if make else forms_of_rows(operator))


def forms_of_rows(operator):
    """All types of x and y, with all optional inputs and without."""
    facts = OPERATORS[operator]
    optional = [tensor.name for tensor in facts.inputs if tensor.use == "optional"]
    shape = ROWS if "FINDS_SCALES" in facts.traits else LINES
    for x, y, left_out in itertools.product(facts.inputs[0].types, facts.results[0].types, without(*optional)):
        yield dict(shape=shape, dtypes={"x": x}, dtype=y, without=left_out)


def without(*names):
    """With all optional inputs, and without the named ones."""
    return (), names


def quantize_forms():
    for x, y, axis, left_out in itertools.product(FLOATS, ("int8", "uint8", "int32"), (0, 1), without("zero_points")):
        yield dict(shape=LINES, dtypes={"x": x}, dtype=y, axis=axis, without=left_out)
    for x, y, left_out in itertools.product(FLOATS, ("int8", "quint4x2"), without("zero_points")):
        yield dict(shape=LINES, dtypes={"x": x}, dtype=y, div_mode=False, axis=-1, without=left_out)
    for x, y, divides in itertools.product(FLOATS, SMALL, (False, True)):
        left_out = without("zero_points")[divides == (x == "float32")]
        yield dict(shape=LINES, dtypes={"x": x}, dtype=y, div_mode=divides, axis=-1, without=left_out)
    for half, left_out in itertools.product(("float16", "bfloat16"), without("zero_points")):
        halves = dict(shape=LINES, dtypes=dict(x=half, scales=half), without=left_out)
        if not left_out:
            halves["dtypes"]["zero_points"] = half
        yield dict(halves, dtype="int8")
        yield dict(halves, dtype="int32")
        yield dict(halves, dtype="int8", div_mode=False)
        yield dict(halves, dtype="quint4x2", div_mode=False, axis=-2)
    for scales, integer in zip(FLOATS, ("int8", "uint8", "int32")):
        yield dict(shape=LINES, dtypes=dict(scales=scales, zero_points=integer), dtype=integer)
    for axis in 0, 1, -1:
        yield dict(shape=(6, 8, 72), axis=axis)
    yield dict(shape=(48, 96))
    yield dict(shape=(2, 3, 8, 72), axis=-2, div_mode=False)
    for axis in 1, -1:
        yield dict(shape=(4, 16, 6, 20), axis=axis)


def group_quant_forms():
    yield from forms_of_rows("group_quant")
    for x, scale, y in itertools.product(FLOATS, ("float16", "bfloat16"), ("int8", "quint4x2")):
        yield dict(shape=LINES, dtypes=dict(x=x, scale=scale, offset=scale, group_index="int32"), dtype=y)


def trans_quant_param_forms():
    for mode, shape, left_out in itertools.product((0, 1), ((72,), (1, 72)), without("offset")):
        yield dict(shape=shape, round_mode=mode, without=left_out)
    yield dict(shape=(3, 24), without="offset")


def dynamic_quant_forms():
    yield dict(shape=ROWS, dtype="uint8")
    yield from dynamic_quant_asymmetric_forms()
    for x, y in zip(FLOATS, ("int8", "quint4x2", "uint8")):
        yield dict(shape=ROWS, dtypes={"x": x}, dtype=y, scale_form="inverse")


def dynamic_quant_float8_forms():
    optionals = (), ("group_index",), ("smooth_scales", "group_index")
    for (x, y), left_out in zip(itertools.product(FLOATS, SMALL), itertools.cycle((*optionals, optionals[2]))):
        yield dict(shape=ROWS, dtypes={"x": x}, dtype=y, without=left_out, dst_type_max=15.0 * (y == "hifloat8"))
    yield dict(shape=ROWS, dtype="hifloat8", without=optionals[1])
    yield dict(shape=(4, 16, 128), dtype="float8_e4m3fn")
    for x, y, left_out in zip(FLOATS, SMALL, optionals[1:] * 2):
        yield dict(shape=ROWS, dtypes={"x": x}, dtype=y, quant_mode="pertensor", without=left_out)


def dynamic_quant_asymmetric_forms():
    optionals = (), ("group_index",), ("smooth_scales", "group_index")
    for x, y, left_out in itertools.product(FLOATS, ("int8", "quint4x2"), optionals):
        yield dict(shape=ROWS, dtypes={"x": x}, dtype=y, without=left_out)
    yield dict(shape=ROWS, dtypes={"group_index": "int32"})
    yield dict(shape=(4, 16, 128))
    yield dict(shape=(64, 1088))
    for x, (y, left_out) in itertools.product(FLOATS, (("int8", optionals[1]), ("quint4x2", optionals[2]))):
        yield dict(shape=ROWS, dtypes={"x": x}, dtype=y, quant_mode="pertensor", without=left_out)


def dynamic_block_quant_forms():
    for x, y, least in itertools.product(FLOATS, ("int8", "quint4x2"), (0.0, 50.0)):
        yield dict(shape=ROWS, dtypes={"x": x}, dtype=y, min_scale=least, block=24)
    yield dict(shape=(64, 256), dtypes={"x": "bfloat16"})
    yield dict(shape=(4, 16, 50), block=7, min_scale=0.01)
    yield dict(shape=ROWS, block=1000, min_scale=2e4)
    yield dict(shape=ROWS, dtype="uint8", min_scale=50.0, block=24)


def dynamic_block_quant_float8_forms():
    for (x, y), least in zip(itertools.product(FLOATS, SMALL), itertools.cycle((0.0, 50.0))):
        most = 15.0 * (y == "hifloat8")
        yield dict(shape=ROWS, dtypes={"x": x}, dtype=y, min_scale=least, dst_type_max=most, block=24)
        yield dict(shape=(96, 160), dtypes={"x": x}, dtype=y, min_scale=50 - least, dst_type_max=most, row_block=4, block=24)
    yield dict(shape=ROWS, dtype="hifloat8", block=24)
    yield dict(shape=(3, 40, 100), dtypes={"x": "bfloat16"}, row_block=3, block=7)
    yield dict(shape=(4, 16, 128), dtype="float8_e5m2", row_block=64, block=8, min_scale=0.01)


def dynamic_mx_quant_forms():
    """All types; then all options, in turn."""
    for x, y in itertools.product(FLOATS, MX_TYPES):
        yield dict(shape=ROWS, dtypes={"x": x}, dtype=y)
    for (x, y), rule in zip(itertools.product(FLOATS, ("float8_e4m3fn", "float8_e5m2")), (1, 2) * 3):
        yield dict(shape=ROWS, dtypes={"x": x}, dtype=y, scale_alg=1, max_low_bound=0.25 * (rule == 1), bad_groups=1)
        yield dict(shape=ROWS, dtypes={"x": x}, dtype=y, small_groups=rule, bad_groups=1)
    for (x, most), rule in zip(itertools.product(FLOATS, (0.0, 6.0, 7.0, 8.0)), itertools.cycle((0, 1, 2))):
        yield dict(shape=ROWS, dtypes={"x": x}, dtype="float4_e2m1fn_x2", scale_alg=2, dst_type_max=most,
                   small_groups=rule, round_mode=("rint", "round", "floor")[rule])
    for x, y in zip(FLOATS, MX_TYPES):
        yield dict(shape=(128, 64), dtypes={"x": x}, dtype=y, axis=0)
        yield dict(shape=(4, 96, 48), dtypes={"x": x}, dtype=y, axis=1, small_groups=1)
        yield dict(shape=(64, 200), dtypes={"x": x}, dtype=y, block_size=64)
    yield dict(shape=(64, 160), dtypes={"x": "bfloat16"}, dtype="float4_e1m2fn_x2", round_mode="floor")
    yield dict(shape=(256, 256), dtypes={"x": "bfloat16"})  # scales in tiles
    yield dict(shape=(128, 64), dtypes={"x": "float32"}, dtype="float4_e2m1fn_x2", scale_alg=2, axis=0)  # rounds a


def anti_mx_quant_forms():
    """All types; then other axes, blocks and odd numbers of groups, in turn."""
    for x, y in itertools.product(MX_TYPES, FLOATS):
        yield dict(shape=ROWS, src_type=x, dtype=y)
    for x, y in zip(MX_TYPES, (*FLOATS, "float16")):
        yield dict(shape=(128, 64), src_type=x, dtype=y, axis=0)
        yield dict(shape=(4, 96, 48), src_type=x, dtype=y, axis=1)
        yield dict(shape=(64, 320), src_type=x, dtype=y, block_size=64)
        yield dict(shape=(64, 160), src_type=x, dtype=y)
        yield dict(shape=(128, 256), src_type=x, dtype=y)


def row_quant_forms():
    """Float16 hides the difference of some factors if x has so few bits itself."""
    for rule, x in itertools.product(ROW_RULES, FLOATS):
        if x == "float32" or not (rule == "grouped_swiglu" or (rule == "moe_routing" and x == "float16")):
            yield dict(shape=ROWS, dtypes={"x": x}, rule=rule)


def anti_quant_forms():
    types = itertools.product(("int8", "quint4x2"), ("float32", "bfloat16"), FLOATS, without("offset"))
    for x, scale, y, left_out in types:
        yield dict(shape=LINES, dtypes=dict(x=x, scale=scale), dtype=y, without=left_out)
    for x, y, shape in itertools.product(("int8", "quint4x2"), FLOATS, ((6, 8, 72), (72,))):
        yield dict(shape=shape, dtypes=dict(x=x, scale="float16"), dtype=y)
    for x in "int8", "quint4x2":
        yield dict(shape=(48, 128), dtypes={"x": x})


def dequant_forms():
    for bias, y, left_out in itertools.product(("int32", "float32", "bfloat16"), FLOATS, without("activation_scale")):
        yield dict(shape=LINES, dtypes={"bias": bias}, dtype=y, without=left_out)
    for y, left_out in itertools.product(FLOATS, (("bias",), ("bias", "activation_scale"))):
        yield dict(shape=LINES, dtype=y, without=left_out)
    for scale, y, left_out in itertools.product(("float16", "bfloat16"), FLOATS, without("activation_scale")):
        yield dict(shape=(6, 8, 72), dtypes=dict(weight_scale=scale, bias="float16"), dtype=y, without=left_out)


def requant_forms():
    yield from forms_of_rows("requant")
    for y, shape in itertools.product(("int8", "float16"), ((6, 8, 72), (72,))):
        yield dict(shape=shape, dtypes={"words": "int64"}, dtype=y)


def prove(self, operator, first, step):
    """In each form, the right kernel is right, and the diagnosis names each mistake alone and without a doubt.

    One scale for a tensor leaves no room for all kinds of rows. Then the call says which mistakes change nothing,
    and which give equal results and are named together.
    """
    for form in forms(operator)[first::step]:
        call = Call(operator, **form)
        with self.subTest(operator, form=form, mistake="none"):
            if call.arguments.get("quant_mode") != "pertensor":
                wrong = [name for name in call.mistakes if call.alike(name) != [name]]
                self.assertEqual(wrong, [], "they look like others here, or like none")
            self.assertEqual(call.diagnose(run(call, set()))["verdict"], "equal")
        for mistake in call.mistakes:
            with self.subTest(operator, form=form, mistake=mistake):
                said = call.diagnose(run(call, {mistake}))
                alike = call.alike(mistake)
                self.assertIn(said["verdict"], GIVEN if alike else ["equal"])
                self.assertCountEqual(first_place(said), [[name] for name in alike])


class HardInputs(unittest.TestCase):
    def test_halves(self):
        """Each half type can be taken only for the other; a product of halves is exact, but a sum is not."""
        for half, other in ("float16", "bfloat16"), ("bfloat16", "float16"):
            call = Call("group_quant", LINES, dtypes=dict(x=half, scale=half, offset=half))
            self.assertLessEqual({f"x-{other}", f"scale-{other}", "float64"}, set(call.mistakes))
            self.assertTrue({f"x-{half}", f"scale-{half}", "fused"}.isdisjoint(call.mistakes))


if __name__ == "__main__":
    operators, first, step = sys.argv[1:] or KERNELS, 0, 1
    if "/" in "".join(sys.argv[1:]):
        operators, (first, step) = KERNELS, (int(number) for number in sys.argv[1].split("/"))
        first -= 1
    for operator in operators:
        name = f"test_{operator}"
        setattr(HardInputs, name, lambda self, operator=operator: prove(self, operator, first, step))
    unittest.main(argv=sys.argv[:1], verbosity=2)
