# SPDX-License-Identifier: BSD-3-Clause
"""Results, bit for bit those of the operators in NumPy, on every backend, on one thread and several."""
import inspect
import re
import tracemalloc

import numpy as np
import npuquant
import numpy_operators as expected
import pytest
from numpy_operators import f4, random_floats, random_integers, rng
from npuquant_facts.dtypes import TYPES
from npuquant_facts.operators import OPERATORS, OPTIONS, extents
from random_calls import RANDOM_CALLS, choose, random_quant_matmul

PACKAGE = npuquant  # test_torch.py has its own functions called in place of the package's
TRIALS = 150


# As in op_plugin/config/op_plugin_functions.yaml of Ascend/op-plugin. The documentation of torch_npu has the same
# names, but calls self input. scale_form is this package's.
SCHEMAS = {
    "npu_quantize": "(Tensor self, Tensor scales, Tensor? zero_points, int dtype, int axis=1, bool div_mode=True)"
                    " -> Tensor",
    "npu_group_quant": "(Tensor x, Tensor scale, Tensor group_index, *, Tensor? offset=None,"
                       " ScalarType? dst_dtype=None) -> Tensor",
    "npu_trans_quant_param": "(Tensor scale, Tensor? offset=None, int? round_mode=0) -> Tensor",
    "npu_dynamic_quant_asymmetric": '(Tensor input, *, Tensor? smooth_scales=None, Tensor? group_index=None,'
                                    ' int? dst_type=None, str quant_mode="pertoken", float dst_type_max=0.0)'
                                    ' -> (Tensor, Tensor, Tensor)',
    "npu_dynamic_quant": '(Tensor input, *, Tensor? smooth_scales=None, Tensor? group_index=None, int? dst_type=None,'
                         ' str quant_mode="pertoken", float dst_type_max=0.0, str? scale_form=None)'
                         ' -> (Tensor, Tensor)',
    "npu_dynamic_block_quant": '(Tensor x, *, float min_scale=0.0, str round_mode="rint", int dst_type=1,'
                               ' int row_block_size=1, int col_block_size=128, float dst_type_max=0.0)'
                               ' -> (Tensor, Tensor)',
    "npu_anti_quant": "(Tensor x, Tensor scale, *, Tensor? offset=None, int? dst_dtype=None, int? src_dtype=None)"
                      " -> Tensor",
    "npu_quant_matmul": "(Tensor x1, Tensor x2, Tensor scale, *, Tensor? offset=None, Tensor? pertoken_scale=None,"
                        " Tensor? bias=None, int? output_dtype=None, int? x1_dtype=None, int? x2_dtype=None,"
                        " int? pertoken_scale_dtype=None, int? scale_dtype=None, int[]? group_sizes=None,"
                        " Tensor? y_scale=None) -> Tensor",
    "npu_quant_scatter": "(Tensor self, Tensor indices, Tensor updates, Tensor quant_scales,"
                         " Tensor? quant_zero_points=None, int axis=-2, int quant_axis=-1, str reduce='update',"
                         " int? dst_type=None, str? round_mode='rint') -> Tensor",
    "npu_dequant_bias": "(Tensor x, Tensor weight_scale, Tensor? activation_scale, Tensor? bias, *,"
                        " ScalarType? output_dtype=None) -> Tensor",
}


def documented(name):
    """A schema's arguments without their types."""
    types = r"(Tensor|ScalarType|int|float|bool|str)(\[\])?\?? "
    text = re.sub(types, "", SCHEMAS[name].partition(" ->")[0]).replace("self", "input").replace('"', "'")
    if name == "npu_dynamic_quant_asymmetric":  # x is called input too, and so cannot be required by its name
        text = text.replace("(input,", "(x=None,").replace(")", ", input=None)")
    return text


def signature_of(function, without=()):
    parameters = inspect.signature(function).parameters.values()
    return str(inspect.Signature([parameter.replace(annotation=inspect.Parameter.empty)
                                  for parameter in parameters if parameter.name not in without]))


# test_experts.py has the others.
@pytest.mark.parametrize("name", [name for name in npuquant.__all__ if name.startswith("npu_")
                                  and not name.startswith(("npu_dtype_", "npu_grouped_", "npu_moe_"))])
def test_signatures_are_those_of_torch_npu_and_out(name):
    """What npu_quant_matmul() lacks selects types and groups that are not defined here."""
    function = getattr(npuquant, name)
    wanted = re.sub(", x1_dtype.*", ")", documented(name)).replace("scale_form=None", "scale_form='product'")
    assert signature_of(function, ["out"]) == wanted
    out = inspect.signature(function).parameters.get("out")
    assert name == "npu_quant_scatter" if out is None else (out.kind, out.default) == (out.KEYWORD_ONLY, None)


def bits(array):
    """A NaN in a result is always the same one."""
    if array.dtype == f4:
        array = np.where(np.isnan(array), np.uint32(0x7FC00000).view(f4), array)
    return array.dtype.str, array.shape, array.tobytes()


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def assert_same(got, *wanted):
    """The results of a call, one or several."""
    assert len(as_tuple(got)) == len(wanted)
    for one, other in zip(as_tuple(got), wanted):
        assert type(one) is np.ndarray and one.flags.c_contiguous and one.flags.writeable
        assert (one.dtype.str, one.shape, one.tobytes()) == bits(other)


def in_any_layout(array):
    """The same values, somewhere else, in other strides."""
    if array is None:
        return None
    kind = rng.integers(5)
    if kind == 1:
        array = np.array(array, order="F")
    elif kind == 2:
        array = np.flip(np.flip(array).copy())
    elif kind == 3 and array.ndim > 0:
        spread = np.zeros(tuple(2 * extent + 1 for extent in array.shape), array.dtype)
        view = spread[(slice(1, None, 2),) * array.ndim]
        view[...] = array
        array = view
    elif kind == 4 and array.ndim > 1:
        array = np.moveaxis(np.moveaxis(array, 0, -1).copy(), -1, 0)
    array = np.asarray(array).view()
    array.flags.writeable = bool(rng.integers(2))
    return array


WAYS = {
    "int8": ["int8", np.int8, np.dtype("i1"), "qint8", npuquant.qint8, "torch.qint8", "torch.int8", 1, 12, np.int64(1),
             258],
    "uint8": ["uint8", np.uint8, np.dtype("u1"), "quint8", npuquant.quint8, "torch.quint8", 0, 13, 260],
    "int32": ["int32", np.int32, np.dtype("i4"), "qint32", npuquant.qint32, "torch.qint32", 3, 14, 259],
    "quint4x2": ["quint4x2", npuquant.quint4x2, "torch.quint4x2", "int4", 16],
    "float16": ["float16", np.float16, np.dtype("f2"), "torch.float16", "half", 5, 257],
    "float32": ["float32", np.float32, np.dtype("f4"), "torch.float32", 6, 256],
    "bfloat16": ["bfloat16", "torch.bfloat16", 15, 283],
    "float8_e4m3fn": ["float8_e4m3fn", "torch.float8_e4m3fn", 24],
    "float8_e5m2": ["float8_e5m2", "torch.float8_e5m2", 23],
    "hifloat8": ["hifloat8", 290, np.int64(290)],
    "float4_e2m1fn_x2": ["float4_e2m1fn_x2", "torch.float4_e2m1fn_x2", 296],
    "float4_e1m2fn_x2": ["float4_e1m2fn_x2", 297, np.int64(297)],
}


def as_destination(dtype):
    """One of the ways to say it."""
    return choose(*WAYS[dtype])


def call_package(name, inputs, options):
    """Calls a function of the package, with inputs in any layout and the type of the result in any of its spellings."""
    if name.endswith("_float8"):
        name = choose(name, f"npu_{name[:-len('_float8')]}")
    parameters = inspect.signature(getattr(PACKAGE, name)).parameters
    first, *others = inputs
    arguments = {next(iter(parameters)): inputs[first], **{other: inputs[other] for other in others}}
    arguments = {argument: in_any_layout(array) for argument, array in arguments.items()}
    for option, value in options.items():
        if option == "dtype":
            option = next(each for each in ("dtype", "dst_dtype", "dst_type", "output_dtype") if each in parameters)
            value = None if value == "int8" and parameters[option].default is None else as_destination(value)
        value = as_destination(value) if option == "src_type" else value
        arguments[option if option in parameters else OPTIONS[option].npu_name] = value
    if "round_mode" in parameters and options.get("dtype") == "hifloat8":
        arguments["round_mode"] = "round"
    bound = inspect.signature(getattr(PACKAGE, name)).bind(**arguments)
    return getattr(npuquant, name)(*bound.args, **bound.kwargs)


def check_random_calls(operator, draw=None):
    name = next(each for each in (f"npu_{operator}", operator) if hasattr(PACKAGE, each))
    for _ in range(TRIALS):
        inputs, options, results = (draw or RANDOM_CALLS[operator])()
        if operator == "anti_quant":
            dtype, number = ("quint4x2", 285) if inputs["x"].dtype == np.int32 else ("int8", 258)
            options = {**options, "src_dtype": choose(None, as_destination(dtype), number)}
        if options.get("scale_alg") == 0:
            options = {**options, "scale_alg": choose(0, None)}
        assert_same(call_package(name, inputs, options), *results.values())


@pytest.mark.parametrize("operator", RANDOM_CALLS)
def test_random_calls(operator, backend, threads):
    check_random_calls(operator)


def in_values(array, dtype):
    return TYPES.get(dtype, TYPES["int8"]).in_values(array.shape)


def without_ones(shape):
    return [extent for extent in shape if extent != 1]


@pytest.mark.parametrize("operator", [name for name in RANDOM_CALLS if name != "trans_quant_param"])
def test_shapes_follow_from_the_rows(operator):
    """Those of drawn calls, which the library accepts. A parameter may be one for all columns, and may have other
    dimensions, of 1. In C the rules are the shapes of calls that the tests draw."""
    facts = OPERATORS[operator]
    for _ in range(TRIALS):
        inputs, options, results = RANDOM_CALLS[operator]()
        packed = "quint4x2" in facts.inputs[0].types and inputs["x"].dtype == np.int32
        x = in_values(inputs["x"], "quint4x2" if packed else options.get("src_type"))
        ends, scale = inputs.get("group_index"), inputs.get("scale", f4(1))
        groups = ends.shape if ends is not None else scale.shape[:-1] if operator == "anti_quant" else ()
        has_axis = options.get("div_mode", True) or options.get("axis") == -2
        axis, block = options.get("axis", -1) if has_axis else -1, options.get("block", options.get("block_size", 1))
        for tensor in (*facts.inputs, *facts.results):
            array = {**inputs, **results}[tensor.name]
            if array is None:
                continue
            shape = extents(tensor.shape, x, groups, options.get("quant_mode") == "pertensor", block, axis,
                            options.get("row_block", 1))
            got = x if tensor.use == "data" else in_values(array, options["dtype"] if tensor.name == "y" else None)
            one = (*shape[:-1], 1) if tensor.use in ("input", "optional") else shape
            assert without_ones(got) in (without_ones(shape), without_ones(one)), tensor.name


# ---- products ----


def test_quant_matmul(backend, threads):
    check_random_calls("quant_matmul", random_quant_matmul)


# ---- scatter ----


def scattered(into, indices, updates, scales, zero_points, axis):
    """Element by element, as the operator's text says."""
    y = into.copy()
    for place in np.ndindex(updates.shape):
        target = list(place)
        target[axis] += indices[place[0]]
        t = f4(updates[place]) / f4(scales[place[-1]]) + (0 if zero_points is None else f4(zero_points[place[-1]]))
        y[tuple(target)] = min(max(round(float(t)), -128), 127)
    return y


def test_quant_scatter():
    for _ in range(TRIALS // 3):
        shape = tuple(rng.integers(1, 6, size=rng.integers(3, 6)))
        axis = int(rng.integers(1, len(shape) - 1))
        sizes = [*shape]
        sizes[0], sizes[axis] = rng.integers(sizes[0] + 1), rng.integers(sizes[axis] + 1)
        into, updates = random_integers(shape, "i1"), random_floats(sizes, choose("f2", "f4"), special=0)
        indices = rng.integers(shape[axis] - sizes[axis] + 1, size=sizes[0]).astype(choose("i4", "i8"))
        scales, zero_points = rng.uniform(0.1, 4, shape[-1]).astype("f4"), random_integers(shape[-1], "i4") % 9
        zero_points = choose(None, zero_points)
        before = into.copy()
        got = npuquant.npu_quant_scatter(
            in_any_layout(into), in_any_layout(indices), in_any_layout(updates), scales.reshape(1, -1), zero_points,
            axis=choose(axis, axis - len(shape)), quant_axis=choose(-1, len(shape) - 1))
        assert_same(got, scattered(into, indices, updates, scales, zero_points, axis))
        np.testing.assert_array_equal(into, before)


CACHE, UPDATES, SCATTER_SCALES = np.zeros((3, 5, 4), "i1"), np.ones((2, 2, 4), f4), np.ones(4, f4)


@pytest.mark.parametrize(("changed", "message"), [
    ({"indices": np.array([0, 4])}, r"indices: \[1\] is 4; expected 0 to 3, as input has 5 and updates 2 along "
     "dimension 1"),
    ({"indices": np.array([-1, 0])}, r"indices: \[0\] is -1; expected 0 to 3, .*"),
    ({"indices": np.array([0, 1, 2])}, r"indices: has the shape \[3\]; expected \[2\]"),
    ({"indices": np.array([0.5, 1])}, "indices: is float64, .*; expected int32 or int64"),
    ({"input": CACHE[0]}, "input: has 2 dimensions; expected 3 to 8"),
    ({"input": CACHE.view("u1")}, "input: is uint8; expected int8"),
    ({"updates": UPDATES[0]}, "updates: has 2 dimensions; expected those of input, 3"),
    ({"updates": UPDATES[..., :3]}, r"updates: has the shape \[2, 2, 3\]; expected \[3, 5, 4\], or less in the "
     "dimensions 0 and 1"),
    ({"quant_scales": SCATTER_SCALES[:3]}, "quant_scales: has 3 elements; expected 4, the last extent of updates"),
    ({"quant_zero_points": SCATTER_SCALES[:1]}, "quant_zero_points: has 1 elements; expected 4, .*"),
    ({"axis": 0}, "axis: is 0; expected one between the first and the last dimension of input, which has 3"),
    ({"axis": -1}, "axis: is -1; expected one between .*"),
    ({"quant_axis": 1}, "quant_axis: is 1; expected -1 or 2"),
    ({"round_mode": "floor"}, "round_mode: is 'floor'; expected 'rint' or None"),
    ({"dst_type": np.uint8}, "dst_type: is .*uint8.*; expected int8"),
])
def test_refused_scatters(changed, message):
    call = {"input": CACHE, "indices": np.array([0, 3]), "updates": UPDATES, "quant_scales": SCATTER_SCALES,
            "reduce": "none", "dst_type": "int8", "round_mode": None}
    assert npuquant.npu_quant_scatter(**call).sum() == 16
    with pytest.raises(RuntimeError, match=rf"\A{message} \[\w+\]\Z"):
        npuquant.npu_quant_scatter(**{**call, **changed})
    with pytest.raises(NotImplementedError, match="indices: has two dimensions"):
        npuquant.npu_quant_scatter(**{**call, "indices": np.zeros((2, 2), "i4")})


# ---- sums ----


def sums_of(x1, x2):
    return npuquant.npu_quant_matmul(x1, x2, np.ones(1, f4), output_dtype="int32")


def test_the_order_of_int4_in_words():
    """The first is in the lowest bits; x2 are the rows of ones that pick each number of x1."""
    x1 = np.array([[0x76543210, 0xFEDCBA98]], np.uint32).view(np.int32)
    along_rows = np.array([[1 << 4 * (n % 8) if m == n // 8 else 0 for m in range(2)] for n in range(16)], "i4")
    wanted = [[*range(8), *range(-8, 0)]]
    assert sums_of(x1, along_rows).tolist() == sums_of(x1, along_rows.T).tolist() == wanted


@pytest.mark.parametrize("terms", [1023, 1024, 1025, 2048, 3000])
def test_products_are_exact(terms):
    """With the largest products that there are and one that is odd: float32 does not have such a sum from 1025 on."""
    x1, x2 = np.full((3, terms), -128, np.int8), np.full((terms, 5), -128, np.int8)
    assert (sums_of(x1, x2) == terms * 2**14).all()
    x1[:, -1] = x2[-1] = 127
    assert (sums_of(x1, x2) == (terms - 1) * 2**14 + 127 * 127).all()
    x1, x2 = random_integers((37, terms), "i1"), random_integers((terms, 41), "i1")
    assert_same(sums_of(x1, x2), (x1.astype(np.int64) @ x2.astype(np.int64)).astype(np.int32))


def test_products_of_many_rows_and_columns():
    x1, x2 = random_integers((2100, 5), "i1"), random_integers((2050, 5), "i1").T
    assert_same(sums_of(x1, x2), (x1.astype(np.int64) @ x2.astype(np.int64)).astype(np.int32))


def test_products_wrap_around():
    """140,000 times 2^14 is more than 2^31."""
    x1, x2 = np.full((2, 140_000), -128, np.int8), np.full((140_000, 3), -128, np.int8)
    assert (sums_of(x1, x2) == 140_000 * 2**14 - 2**32).all()
    bias = np.array([0, 1, -2**31], np.int32)
    got = npuquant.npu_quant_matmul(x1, x2, np.ones(1, f4), bias=bias, output_dtype="int32")
    assert got[0].tolist() == [-2001207296, -2001207295, 146276352]


def test_the_memory_of_a_product_is_bounded():
    """float32 copies are of blocks, not of the matrices."""
    x1, x2 = np.ones((8, 4_000_000), np.int8), np.broadcast_to(np.ones((), np.int8), (4_000_000, 8))
    tracemalloc.start()
    try:
        assert (sums_of(x1, x2) == 4_000_000).all()
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_linear_layer():
    """Weights and activations quantised, multiplied, and dequantised: close to the product of what they were."""
    x, weight = rng.normal(size=(4, 6, 256)).astype(f4), rng.normal(size=(32, 256)).astype(f4)
    q, pertoken = npuquant.npu_dynamic_quant(x)
    w, scale = npuquant.npu_dynamic_quant(weight)
    got = npuquant.npu_quant_matmul(q, w.T, scale, pertoken_scale=pertoken, output_dtype="float32")
    assert np.abs(got - x @ weight.T).max() < 1.5
    np.testing.assert_array_equal(
        npuquant.npu_anti_quant(q[0, 0], pertoken[0, :1], dst_dtype="float32"), q[0, 0] * pertoken[0, 0])


def test_large(backend, threads):
    """Enough for the library to ask for threads."""
    x = random_floats((700, 2200), "f2")
    smooth = random_floats((3, 2200), "u2", special=0)
    ends = np.array([200, 200, 700])
    columns = random_floats((1500, 704), "u2", special=0).T[:, :1496]
    words = random_integers((700, 275), "i4")
    scales, offsets = random_floats((2, 100, 2200), "u2", special=0)
    x1, x2 = random_integers((700, 64), "i1"), random_integers((64, 2200), "i1")
    assert_same(npuquant.npu_dynamic_quant_asymmetric(x, smooth_scales=smooth, group_index=ends),
                *expected.dynamic(x, smooth, ends, False, "int8"))
    assert_same(npuquant.npu_dynamic_quant_asymmetric(columns, dst_type="quint4x2", quant_mode="pertensor"),
                *expected.dynamic(columns, None, None, True, "quint4x2"))
    assert_same(npuquant.npu_group_quant(x, smooth, ends, dst_dtype="quint4x2"),
                expected.group_quant(x, smooth, ends, None, "quint4x2"))
    assert_same(npuquant.npu_quantize(x.T, smooth[1, :700], None, np.uint8),
                expected.quantize(x.T, smooth[1, :700], None, 1, True, "uint8"))
    assert_same(npuquant.npu_dynamic_quant(x, smooth_scales=smooth, group_index=ends, scale_form="inverse"),
                *expected.dynamic_quant(x, smooth, ends, False, "inverse", "int8"))
    assert_same(npuquant.npu_anti_quant(words, smooth[0], offset=smooth[1], dst_dtype="bfloat16"),
                expected.anti_quant(words, smooth[0], smooth[1], "bfloat16"))
    assert_same(npuquant.npu_anti_quant(words, scales, offset=offsets),
                expected.anti_quant(words, scales, offsets, "float16"))
    assert_same(npuquant.npu_quant_matmul(x1, x2, smooth[0], pertoken_scale=f4(x[:, 0]), bias=smooth[1],
                                          output_dtype="float16"),
                expected.quant_matmul(x1, x2, smooth[0], None, f4(x[:, 0]), smooth[1], "float16"))
    assert_same(npuquant.npu_quant_matmul(x1, x2, f4([1e-3])),
                expected.quant_matmul(x1, x2, f4([1e-3]), None, None, None, "int8"))


def test_halves_saturation_and_special_values(backend):
    x = np.array([.5, 1.5, 2.5, -.5, -1.5, -2.5, 127.5, 128.5, -128.5, 1e9, -1e9, np.inf, -np.inf, np.nan], f4)
    one = np.ones(1, f4)
    for dtype, zero, wanted in (
        ("int8", None, [0, 2, 2, 0, -2, -2, 127, 127, -128, 127, -128, 127, -128, 0]),
        ("int32", None, [0, 2, 2, 0, -2, -2, 128, 128, -128, 10**9, -10**9, 2**31 - 1, -2**31, 0]),
        ("uint8", np.ones(1, "u1"), [2, 2, 4, 0, 0, 0, 128, 130, 0, 255, 0, 255, 0, 0]),
    ):
        assert npuquant.npu_quantize(x, one, zero, dtype, 0).tolist() == wanted
    assert npuquant.npu_quantize(f4([-1, 0, 2]), f4([0]), None, "int8", 0).tolist() == [-128, 0, 127]
    int4 = np.array([.5, 1.5, 2.5, -7.5, 100, -100, 3.49, -3.51], np.float16)
    packed = npuquant.npu_quantize(int4, one, None, "quint4x2", -1, False)
    assert packed.view(np.uint32).tolist() == [0xC3878220]


CASTS = {
    "float8_e4m3fn": ([448, 464, 465, -464.00003, 1e9, np.inf, -np.inf, np.nan, 0, -0.0, 2**-9, 2**-10, 1.0001 * 2**-10,
                       3 * 2**-10, 17, 18, 19, -17, -18.5, .0019, .2, -.3, 1 / 3],
                      "7E 7E 7E FE 7E 7E FE 00 00 80 01 00 01 02 58 59 5A D8 D9 01 25 AA 2B"),
    "hifloat8": ([0, -0.0, 1, -1, 1.0625, 1.1875, 15, 16, 17, 18, 20, 22, 256, 320, 384, 448, 32768, 40960, 1e9, np.inf,
                  -np.inf, np.nan, 2**-15, 2**-16, 2**-22, 2**-23, 1.999 * 2**-24, -2**-23, .1, -.3, 3.3, 100],
                 "00 00 08 88 09 0A 2F 40 40 41 41 42 60 61 61 62 6E 6E 6E 6E EE 00 7E 07 01 01 00 81 52 B2 15 4A"),
}
CASTS["float8_e5m2"] = CASTS["float8_e4m3fn"][0], "5F 5F 5F DF 7B 7B FB 00 00 80 18 14 14 1A 4C 4C 4D CC CD 18 32 B5 35"


def near_small_floats(dtype):
    """Each value, the middle of each two, half a step beyond the last, and the floats beside these; the ends of float32.
    With either sign."""
    values, _ = expected.small_values(dtype)
    values = np.append(values, 2 * values[-1] - values[-2])
    exact = f4([*values, *(values[:-1] + values[1:]) / 2])
    ends = np.array([1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000], np.uint32).view(f4)
    x = np.concatenate([exact, np.nextafter(exact, f4(np.inf)), np.nextafter(exact, -f4(np.inf)), ends])
    return np.concatenate([x, -x])


def cast_to_small_floats(x, dtype):
    """By either formula, whose scale is 1."""
    divided = npuquant.npu_quantize(x, np.ones(1, f4), None, dtype, 0)
    assert_same(npuquant.npu_quantize(x, np.ones(1, f4), None, dtype, -1, False), divided)
    return divided


@pytest.mark.parametrize("dtype", CASTS)
def test_casts_to_small_floats(dtype, backend):
    values, codes = CASTS[dtype]
    assert_same(cast_to_small_floats(f4(values), dtype), np.frombuffer(bytes.fromhex(codes), np.uint8))
    values, codes = expected.small_values(dtype)
    assert_same(cast_to_small_floats(f4(values), dtype), codes)
    x = near_small_floats(dtype)
    assert_same(cast_to_small_floats(x, dtype), expected.to_small(x, dtype))


@pytest.mark.parametrize(("dtype", "name"), [("float8_e4m3fn", "e4m3"), ("float8_e5m2", "e5m2")])
def test_casts_to_small_floats_are_those_of_gfloat(dtype, name):
    """Which keeps NaN, and has no hifloat8."""
    gfloat = pytest.importorskip("gfloat", reason="no gfloat (Debian 13: python3-gfloat)")
    form = getattr(pytest.importorskip("gfloat.formats"), f"format_info_ocp_{name}")
    x = near_small_floats(dtype)
    x = x[~np.isnan(x)]
    codes = [gfloat.encode_float(form, gfloat.round_float(form, value, sat=True)) for value in x.tolist()]
    assert_same(cast_to_small_floats(x, dtype), np.uint8(codes))


USUAL = [.5, -1.25, 3, 0, 2.75, -.375, 1.5, -2]


@pytest.mark.parametrize("row, dtype, most, scale, codes", [
    ([2**-119, -2**-119, 2**-126, 0, -0.0], "float8_e4m3fn", 0, 0x00249249, "7E FE 7E 00 00"),
    ([np.inf, 1, -1, -np.inf], "float8_e5m2", 0, 0x7F800000, "00 00 80 00"),
    ([np.inf, 1, -1, -np.inf], "hifloat8", 15, 0x7F800000, "00 00 00 00"),
    ([np.nan, 1, np.inf, -1], "float8_e4m3fn", 0, 0x7FC00000, "00 00 00 00"),
    (USUAL, "hifloat8", 15, 0x3E4CCCCE, "12 A4 2F 00 2E 8F 27 AA"),
])
def test_rows_to_small_floats(row, dtype, most, scale, codes):
    """Special rows: scales below 2^-126, of which all or nothing is left, infinite ones and NaN; and a usual one."""
    for quant_mode, shape in (("pertoken", (2,)), ("pertensor", (1,))):
        got = npuquant.npu_dynamic_quant(f4([row] * 2), dst_type=dtype, dst_type_max=most, quant_mode=quant_mode)
        y = np.frombuffer(bytes.fromhex(codes) * 2, np.uint8).reshape(2, -1)
        assert_same(got, y, np.full(shape, scale, np.uint32).view(f4))


@pytest.mark.parametrize("row, keywords, scale, codes", [
    (f4(USUAL), {"dst_type": "float8_e4m3fn"}, 0x3BDB6DB7, "69 F4 7E 00 7D E6 76 F9"),
    (f4(USUAL), {"dst_type": "float8_e4m3fn", "min_scale": 200}, 0x3BA3D70A, "6C F8 7E 00 7E E9 79 FC"),
    (f4(USUAL), {"dst_type": "hifloat8", "dst_type_max": 15, "round_mode": "round"}, 0x3E4CCCCD,
     "12 A5 2F 00 2E 8F 27 AA"),
    (f4([np.inf, 1, -1, 0]), {"dst_type": "float8_e4m3fn"}, 0x7F800000, "00 00 80 00"),
    (f4([2**-118, -2**-118, 2**-126, 0]), {"dst_type": "float8_e4m3fn"}, 0, "7E FE 7E 00"),
    (f4([2**-117, -2**-118, 2**-127]), {"dst_type": "float8_e4m3fn"}, 0x00924925, "7E F6 00"),
    (np.array([0x3FB0, 0x3F5E, 0x3ED6, 0x3F02, 0xBF0D, 0x3E84, 0xBFA5, 0x3F73], "u2"), {"dst_type": "float8_e4m3fn"},
     0x3B492492, "7E 79 71 72 F3 6A FD 7A"),
])
def test_blocks_to_small_floats(row, keywords, scale, codes):
    """Two matrices of three rows in blocks of one or two rows, of all columns."""
    x = np.tile(row, (2, 3, 1))
    for rows, blocks in (1, 3), (2, 2), (64, 1):
        got = npuquant.npu_dynamic_block_quant(x, row_block_size=rows, **keywords)
        y = np.tile(np.frombuffer(bytes.fromhex(codes), np.uint8), (2, 3, 1))
        assert_same(got, y, np.full((2, blocks, 1), scale, np.uint32).view(f4))


@pytest.mark.parametrize("name, x, arguments, y, mxscale", expected.mx_examples())
def test_examples_of_microscaling(name, x, arguments, y, mxscale):
    assert_same(npuquant.dynamic_mx_quant(x, **arguments), y, mxscale)
    for dtype, number in ("float16", 5), ("float32", 6), ("bfloat16", 15):
        axis, source = (arguments[each] for each in ("axis", "dst_type"))
        wanted = expected.anti_mx_quant(y, mxscale, axis, 32, source, dtype)
        assert_same(npuquant.anti_mx_quant(y, mxscale, axis=axis, dst_type=number, src_type=source), wanted)


#: A group of 32 rows and one of a single row, in pairs for each column.
SHORT_GROUP = (np.float16([[1, -2, 3, -.5]] * 32 + [[8, .25, -1, 0]]),
               np.uint8([[0xE6, 0xE7]] * 32 + [[0x66, 0x0E]]),
               np.uint8([[[0x7D, 0x80], [0x7E, 0x7B], [0x7E, 0x7D], [0x7C, 0]]]))


def test_layout_of_microscaling():
    x, y, mxscale = SHORT_GROUP
    assert_same(npuquant.dynamic_mx_quant(x, axis=0), y, mxscale)
    back = npuquant.anti_mx_quant(y, mxscale, axis=0, dst_type="float16", src_type=296)
    assert_same(back, x)
    for made in npuquant.dynamic_mx_quant(x, axis=-2, block_size=64):
        assert len(made) in (33, 1)
    for shape, axis, scales in (((0, 6), 1, (0, 1, 2)), ((5, 0), 1, (5, 0, 2)), ((0, 6), 0, (0, 6, 2))):
        assert_same(npuquant.dynamic_mx_quant(np.zeros(shape, f4), axis=axis),
                    np.zeros((shape[0], shape[1] // 2), "u1"), np.zeros(scales, "u1"))


def test_values_that_the_documentation_shows():
    words = npuquant.npu_trans_quant_param(f4([1.0458984375, 0.1741943359375, 1.421875]), f4([1, -2, 0]))
    assert words.tolist() == [70507248869376, 140463653937152, 70369813069824]
    x = np.array([[.7261, .3726, .9126], [.9023, .999, .1279], [.8628, .624, .9028]], np.float16)
    assert npuquant.npu_dynamic_quant(x)[0].tolist() == [[101, 52, 127], [115, 127, 16], [121, 88, 127]]
    two = f4([2])
    assert npuquant.npu_anti_quant(np.array([1, 2, 3, 4], "i1"), two, offset=two).tolist() == [6, 8, 10, 12]


def test_blocks_and_their_least_scale():
    """Of four columns, and of more than there are."""
    x = np.array([[.5, -1.25, 3, 0, 2.75, -.375, 1.5, -2]], np.float16)
    for columns, least, y, scale in (
        (4, 0, [21, -53, 127, 0, 127, -17, 69, -92], [0x3CC18306, 0x3CB162C6]),
        (128, 50, [25, -62, 127, 0, 127, -19, 75, -100], [0x3CA3D70A]),
        (2**62, 50, [25, -62, 127, 0, 127, -19, 75, -100], [0x3CA3D70A]),
    ):
        got = npuquant.npu_dynamic_block_quant(x, min_scale=least, col_block_size=columns)
        assert (got[0].tolist(), got[1].view("u4").tolist()) == ([y], [scale])


# y of each of these rows, by any rule but those that have values of their own.
ROWS_OF_RULES = [
    ([26, 44.75, -10.625, 22.375], [74, 127, -30, 64],
     dict.fromkeys(("dequant_swiglu", "moe_routing", "moe_routing_8_5"), [74, 127, -30, 63])),
    ([-30.25, 35.75, -5.375, 17.875], [-107, 127, -19, 64],
     dict.fromkeys(("moe_routing", "moe_routing_8_5"), [-107, 127, -19, 63])),
    ([31.75, -17.125, -4.75, 28.75], [127, -68, -19, 115], {"moe_routing_8_5": [127, -69, -19, 115]}),
    ([-22.75, 32.75, -24.375, -9.125], [-88, 127, -95, -35], {"grouped_swiglu": [-88, 127, -94, -35]}),
    ([48.25, -19, -42.25, 24.125], [127, -50, -111, 64], {}),
]
FOURTHS = {"swiglu": [0x4261C71C, 0x421C4EC5], "add_rms_norm": [0x3C912245, 0x3CD1A346],
           **dict.fromkeys(("dynamic_quant", "dequant_swiglu"), [0x3C912244, 0x3CD1A346]),
           **dict.fromkeys(("moe_routing", "moe_routing_8_5", "grouped_swiglu"), [0x3C912245, 0x3CD1A347])}
TINY = {**dict.fromkeys(("dynamic_quant", "swiglu", "add_rms_norm", "grouped_swiglu"), [127, -128, 0, 127]),
        **dict.fromkeys(("dequant_swiglu", "moe_routing", "moe_routing_8_5"), [127, -64, 0, 0])}


@pytest.mark.parametrize("rule", expected.ROW_RULES)
def test_rows_of_fused_operators(rule, threads):
    y, scale = npuquant.row_quant(np.array([row for row, _, _ in ROWS_OF_RULES], np.float16), rule)
    assert y.tolist() == [others.get(rule, usual) for _, usual, others in ROWS_OF_RULES]
    y, scale = npuquant.row_quant(f4([[2.25, -1, .5, 0], [3.25, -1, .5, 0]]), rule)
    assert (y.tolist(), scale.view("u4").tolist()) == ([[127, -56, 28, 0], [127, -39, 20, 0]], FOURTHS[rule])
    halves = np.array([0xB3BA, 0x3D90, 0x39E9, 0x2E16], "u2").view("f2")
    assert rule != "grouped_swiglu" or npuquant.row_quant(halves, rule)[0].tolist() == [-22, 127, 67, 9]
    assert npuquant.row_quant(f4([1e-39, -5e-40, 0, 1e-45]), rule)[0].tolist() == TINY[rule]
    y, scale = npuquant.row_quant(f4([[0, -0.0], [-np.inf, 2], [np.inf, np.nan]]), rule)
    assert not y.any()
    assert scale.view("u4").tolist() == [0x7F800000 if rule == "swiglu" else 0, 0 if rule == "swiglu" else 0x7F800000,
                                         0x7FC00000]


@pytest.mark.parametrize("rule", expected.ROW_RULES)
def test_random_rows_of_fused_operators(rule, threads):
    steps = np.arange(-254, 255, dtype=f4) / 2
    for again in range(12):
        dtype = ("f4", "f2", "u2")[again % 3]
        x = random_floats(expected.random_shape(1, 8), dtype, size=10.0 ** rng.integers(-9, 9))
        ties = expected.as_dtype(steps * rng.choice(f4([1, .5, 2.25, 3.3]), (7, 1)), dtype)  # t is near x.5
        large = random_floats((40, 600), dtype, special=0)
        for v in (x, ties, large, large.T):
            assert_same(npuquant.row_quant(v, rule), *expected.row_quant(v, rule))
    for shape in ((0, 3), (0, 0), (2, 0, 3)):
        assert_same(npuquant.row_quant(np.zeros(shape, dtype), rule), np.zeros(shape, "i1"), np.zeros(shape[:-1], f4))


def test_rows_that_are_refused():
    for v, rule, error, says in (
        (f4([1]).astype("f8"), "swiglu", TypeError, "v: is float64, which npuquant does not implement; expected "
                                                    "float32, float16 or bfloat16 (or its bits as uint16)"),
        (f4(1), "swiglu", ValueError, "v: has 0 dimensions; expected 1 to 8"),
        (np.zeros((2, 0), f4), "swiglu", ValueError, "v: has the shape (2, 0); expected an element or more in a row"),
        (f4([1]), "gelu", ValueError, "rule: is 'gelu'; expected 'dynamic_quant', 'swiglu', 'add_rms_norm', "
                                      "'dequant_swiglu', 'moe_routing', 'moe_routing_8_5' or 'grouped_swiglu'"),
    ):
        with pytest.raises(error, match=rf"\A{re.escape(says)} \[\w+\]\Z"):
            npuquant.row_quant(v, rule)


def test_special_values_of_floating_results():
    """Rounding to each type, and the one NaN that each has."""
    x = np.array([0x7654321F], np.int32)
    scale = f4([1, 2, 3, 4, 5, 6, 1e5, -1e5])
    assert npuquant.npu_anti_quant(x, scale).view("u2").tolist() == [
        0xBC00, 0x4000, 0x4600, 0x4A00, 0x4D00, 0x4F80, 0x7C00, 0xFC00]
    sums = np.array([100, -100, 2**24 + 1, 2**31 - 1], np.int32)
    weight = f4([.5, .1, 1e-3, 1e-5])
    assert npuquant.dequant(sums, weight).view("u2").tolist() == [0x5240, 0xC900, 0x7419, 0x753E]
    assert npuquant.dequant(sums, weight, dtype="bfloat16").tolist() == [0x4248, 0xC120, 0x4683, 0x46A8]
    nan = np.array([0xFFC12345], np.uint32).view(f4)
    for dtype, bits in (("float32", 0x7FC00000), ("float16", 0x7E00), ("bfloat16", 0x7FC0)):
        got = npuquant.dequant(sums, nan, dtype=dtype)
        assert got.view(f"u{got.itemsize}").tolist() == [bits] * 4
    words = npuquant.npu_trans_quant_param(weight, f4([3, -20, 100, -256]))
    assert npuquant.requant(sums, words).tolist() == [53, -30, 127, -1]
    for kind in "i8", "u8":  # a scale's bits alone are enough for float16
        got = npuquant.requant(sums, weight.view("u4").astype(kind), dtype="float16")
        assert got.view("u2").tolist() == [0x5240, 0xC900, 0x7418, 0x753E]


def test_scales_of_groups_of_rows():
    """As calls for each group; from one group to groups of one row, in any layout."""
    for x in (random_integers((12, 16), "i1"), random_integers((12, 3), "i4")):
        columns = x.shape[1] * (8 if x.dtype == np.int32 else 1)
        for groups in (1, 3, 12):
            scale, offset = random_floats((2, groups, columns), "f4")
            layouts = [(scale, offset), (scale, None), *((np.asfortranarray(s), s[:, ::-1]) for s in (scale, offset)),
                       (np.broadcast_to(scale[:, :1], scale.shape), np.broadcast_to(offset[0], offset.shape))]
            for s, o in layouts:
                for dtype in ("float16", "bfloat16", "float32"):
                    wanted = [npuquant.npu_anti_quant(rows, s[g], offset=None if o is None else o[g], dst_dtype=dtype)
                              for g, rows in enumerate(np.split(x, groups))]
                    assert_same(npuquant.npu_anti_quant(x, s, offset=o, dst_dtype=dtype), np.concatenate(wanted))


def test_zero_strides():
    scales = np.broadcast_to(f4(0.5), 5)
    for x in (np.broadcast_to(f4([1.5, -2.5, 300]), (4, 5, 3)), np.broadcast_to(f4(-2.5), (4, 5, 3))):
        assert_same(npuquant.npu_quantize(x, scales, None, np.int8, np.int64(1), np.True_),
                    expected.quantize(x, scales, None, 1, True, "int8"))
    x = np.broadcast_to(np.float16(3), (4, 8))
    assert_same(npuquant.npu_dynamic_quant_asymmetric(x)[0], expected.dynamic(x, None, None, False, "int8")[0])
    words = np.broadcast_to(np.int32(0x12345678), (3, 2))
    assert_same(npuquant.npu_anti_quant(words, f4([1])), expected.anti_quant(words, f4([1]), None, "float16"))
    sums = np.broadcast_to(np.int32(7), (3, 2))
    assert_same(npuquant.dequant(sums, f4([1])), np.full((3, 2), 7, np.float16))
    column = npuquant.dequant(sums, f4([1]), f4([[2], [3], [4]]))
    assert_same(column, npuquant.dequant(sums, f4([1]), f4([2, 3, 4])))
    ends = np.broadcast_to(np.int64(4), 1)
    assert_same(npuquant.npu_group_quant(x, x[:1], ends), expected.group_quant(x, x[:1], ends, None, "int8"))


def test_the_other_name_of_x():
    x = random_floats((3, 8))
    assert_same(npuquant.npu_dynamic_quant_asymmetric(input=x), *npuquant.npu_dynamic_quant_asymmetric(x))


def test_round_mode_none_is_0():
    assert npuquant.npu_trans_quant_param(f4([0.1]), None, None) == npuquant.npu_trans_quant_param(f4([0.1]))


@pytest.mark.parametrize(
    ("scale", "offset", "shape"),
    [
        ((3,), None, (3,)), ((1, 3), None, (1, 3)), ((4, 1), None, (4, 1)),
        ((3,), (3,), (3,)), ((1,), (3,), (3,)), ((3,), (1,), (3,)), ((1, 3), (1, 3), (1, 3)),
        ((1, 3), (3,), (1, 3)), ((3,), (1, 3), (3,)), ((1,), (1, 3), (1, 3)), ((1,), (1, 1), (1, 1)),
        ((3,), (1, 1), (3,)), ((1, 1), (1,), (1, 1)), ((1, 1), (3,), (1, 3)),
    ],
)
def test_trans_quant_param_returns_the_shape_that_torch_npu_returns(scale, offset, shape):
    scale, offset = random_floats(scale, "f4"), None if offset is None else random_floats(offset, "f4")
    got = npuquant.npu_trans_quant_param(scale, offset)
    assert_same(got, expected.trans_quant_param(scale, offset, 0).astype("i8").reshape(shape))


def test_the_default_axis_of_one_dimension_is_the_last_when_multiplying():
    got = npuquant.npu_quantize(f4([1, 2, 3]), f4([1, 10, 20]), None, "int8", div_mode=False)
    assert got.tolist() == [1, 20, 60]


# ---- out ----

X = f4([[0.5, -1.25, 3, 0, 2.75, -0.375, 1.5, -2], [1, 2, 3, 4, 5, 6, 7, 8]])
INT8 = (X * 16).astype(np.int8)
SUMS = (X * 1000).astype(np.int32)
WORDS = expected.trans_quant_param(X[0], X[1], 0).view(np.int64)
CALLS = [
    lambda **out: npuquant.npu_quantize(X, f4([0.5]), None, "uint8", **out),
    lambda **out: npuquant.npu_quantize(X, f4([0.5]), None, "int32", **out),
    lambda **out: npuquant.npu_quantize(X, f4([0.5]), None, "quint4x2", -1, False, **out),
    lambda **out: npuquant.npu_group_quant(X, X, np.array([1, 2]), **out),
    lambda **out: npuquant.npu_group_quant(X, X, np.array([1, 2]), dst_dtype="quint4x2", **out),
    lambda **out: npuquant.npu_trans_quant_param(X[1], X[0], **out),
    lambda **out: npuquant.npu_anti_quant(INT8, X[0], **out),
    lambda **out: npuquant.npu_anti_quant(SUMS, X[0, :1], dst_dtype="float32", **out),
    lambda **out: npuquant.dequant(SUMS, X[0], X[1, :2], X[1], **out),
    lambda **out: npuquant.dequant(SUMS, X[0], dtype="bfloat16", **out),
    lambda **out: npuquant.requant(SUMS, WORDS, SUMS[0], **out),
    lambda **out: npuquant.requant(SUMS, WORDS, dtype="float16", **out),
    lambda **out: npuquant.npu_dynamic_quant_asymmetric(X, **out),
    lambda **out: npuquant.npu_dynamic_quant_asymmetric(X, dst_type="quint4x2", quant_mode="pertensor", **out),
    lambda **out: npuquant.npu_dynamic_quant(X, **out),
    lambda **out: npuquant.npu_dynamic_quant(X, dst_type="uint8", **out),
    lambda **out: npuquant.npu_dynamic_block_quant(X, col_block_size=3, **out),
    lambda **out: npuquant.npu_dynamic_block_quant(X, row_block_size=2, dst_type="float8_e5m2", **out),
    lambda **out: npuquant.dynamic_mx_quant(X, axis=0, dst_type=292, **out),
    lambda **out: npuquant.anti_mx_quant(np.ones((3, 40), "u1"), np.ones((3, 1, 2), "u1"), axis=1, **out),
]
#: Whose shape the package computes.
PRODUCT_CALLS = [
    lambda **out: npuquant.npu_quant_matmul(INT8, INT8.T, X[0, 1:3], **out),
    lambda **out: npuquant.npu_quant_matmul(INT8, INT8.T, X[0, 1:3], output_dtype="float32", **out),
    lambda **out: npuquant.npu_quant_matmul(INT8, INT8.T, X[0, 1:3], bias=SUMS[0, :2], output_dtype="int32", **out),
    lambda **out: npuquant.npu_quant_matmul(INT8[None], INT8.T, X[0, 1:3], bias=SUMS[None, :1, :2], **out),
]


def spread(array):
    """An array like another, not contiguous."""
    return np.full((*array.shape, 2), 99, array.dtype)[..., 0]


@pytest.mark.parametrize("like", [np.empty_like, spread])
@pytest.mark.parametrize("call", CALLS + PRODUCT_CALLS)
def test_out(call, like, threads):
    wanted = call()
    out = tuple(map(like, as_tuple(wanted)))
    got = as_tuple(call(out=out if isinstance(wanted, tuple) else out[0]))
    assert len(got) == len(out) and all(one is mine for one, mine in zip(got, out))
    for mine, one in zip(out, as_tuple(wanted)):
        np.testing.assert_array_equal(mine, one)


def refused(says, call, out, error=TypeError):
    with pytest.raises(error, match=rf"\Aout: {says} \[\w+\]\Z"):
        call(out=out)


@pytest.mark.parametrize("call", CALLS + PRODUCT_CALLS)
def test_out_that_does_not_fit(call):
    results = call()
    y, *others = as_tuple(results)

    def given(out):
        """With the other results, if there are any."""
        return (out, *others) if others else out

    dtype = r"bfloat16 \(or its bits as uint16\)" if y.dtype == "u2" else y.dtype
    refused(f"is int16; expected {dtype}", call, given(y.astype(np.int16)))
    refused("is list; expected a NumPy array or an object with __dlpack__", call, given(y.tolist()))
    for wrong in (np.empty((*y.shape[:-1], y.shape[-1] + 1), y.dtype), np.empty((), y.dtype)):
        if call in PRODUCT_CALLS:
            refused(r"has the shape \(.*\); expected \(.*2, 2\)", call, wrong, ValueError)
        else:
            with pytest.raises(npuquant.NpuquantError, match="y: ") as caught:
                call(out=given(wrong))
            assert caught.value.status == "NPUQ_ERROR_SHAPE"
    before = y.copy()
    y.flags.writeable = False
    refused("is read-only; expected an array that can be written to", call, given(y), ValueError)
    np.testing.assert_array_equal(y, before)
    if y.dtype == "u2":
        refused(f"is float16; expected {dtype}", call, y.view(np.float16))
    if others:
        names = "three arrays, y, scale and offset" if len(results) == 3 else r"two arrays, y and (mx)?scale"
        for wrong in (y, results[1:], list(results), (*results, y), (y, None, *others[1:])):
            refused(rf"is \w+; expected a tuple of {names}", call, wrong)
        refused(f"is float64; expected {others[0].dtype}", call, (before, others[0].astype("f8"), *others[1:]))
    if len(others) == 2:
        with pytest.raises(npuquant.NpuquantError, match="offset: .*scale"):
            call(out=(before, others[0], others[0]))


def test_out_in_the_memory_of_another_argument():
    """It has the result, or is left as it was."""
    x1 = random_integers((3, 4, 4), "i1")
    bias = random_floats((3, 1, 4), "f4", special=0)
    wanted = npuquant.npu_quant_matmul(x1, x1, X[0, :4], bias=bias, output_dtype="float32")
    out = np.empty((3, 4, 4), f4)
    out[2, 0] = X[0, :4]
    out[1:, 3:] = bias[1:]
    got = npuquant.npu_quant_matmul(x1, x1, out[2, 0], bias=bias, output_dtype="float32", out=out)
    np.testing.assert_array_equal(got, wanted)
    scale = out[2, 0]
    before = out.copy()
    with pytest.raises(npuquant.NpuquantError, match="overlaps"):
        npuquant.npu_quant_matmul(x1, x1, scale, output_dtype="float32", out=out)
    np.testing.assert_array_equal(out, before)


def test_out_in_a_file(tmp_path):
    out = np.memmap(tmp_path / "y", np.int8, "w+", shape=X.shape)
    assert npuquant.npu_quantize(X, f4([1]), None, "int8", out=out) is out
    np.testing.assert_array_equal(out, npuquant.npu_quantize(X, f4([1]), None, "int8"))


def test_out_in_the_memory_of_x():
    x = f4([1, 2, 3, 4])
    with pytest.raises(npuquant.NpuquantError, match="overlaps") as caught:
        npuquant.npu_quantize(x, f4([1]), None, "int8", 0, out=x.view(np.int8)[4:8])
    assert caught.value.status == "NPUQ_ERROR_LAYOUT" and x.tolist() == [1, 2, 3, 4]


def test_empty():
    one = np.ones(1, f4)
    assert_same(npuquant.npu_quantize(np.zeros((3, 0, 2), f4), one, None, np.uint8), np.zeros((3, 0, 2), "u1"))
    assert_same(npuquant.npu_quantize(np.zeros((0, 16), f4), one, None, "quint4x2", -1, False), np.zeros((0, 2), "i4"))
    assert_same(npuquant.npu_anti_quant(np.zeros((2, 0), "i4"), one), np.zeros((2, 0), "f2"))
    assert_same(npuquant.npu_anti_quant(np.zeros((4, 0), "i1"), np.ones((2, 0), f4)), np.zeros((4, 0), "f2"))
    assert_same(npuquant.npu_anti_quant(np.zeros((0, 1), "i4"), np.ones((2, 8), f4)), np.zeros((0, 8), "f2"))
    assert_same(npuquant.dequant(np.zeros((0, 3), "i4"), one, dtype="bfloat16"), np.zeros((0, 3), "u2"))
    assert_same(npuquant.npu_quant_matmul(np.zeros((2, 0), "i1"), np.zeros((0, 3), "i1"), one,
                                          bias=np.array([0, 1, 2], "i4")),
                np.array([[0, 1, 2]] * 2, "i1"))
    none = np.zeros(0, f4)
    assert_same(npuquant.npu_dynamic_quant(np.zeros((0, 4), np.float16)), np.zeros((0, 4), "i1"), none)
    assert_same(npuquant.npu_dynamic_quant_asymmetric(np.zeros((0, 4), "f2")), np.zeros((0, 4), "i1"), none, none)
    for shape in ((3, 0), (0, 300)):
        assert_same(npuquant.npu_dynamic_block_quant(np.zeros(shape, f4)), np.zeros(shape, "i1"),
                    np.zeros((shape[0], -(-shape[1] // 128)), f4))
        assert_same(npuquant.npu_dynamic_block_quant(np.zeros(shape, f4), dst_type="float8_e5m2", row_block_size=2),
                    np.zeros(shape, "u1"), np.zeros((-(-shape[0] // 2), -(-shape[1] // 128)), f4))


def test_results_belong_to_the_caller_alone(threads):
    x = np.ones((300, 5000), f4)
    first = npuquant.npu_quantize(x, f4([0.5]), None, np.int8)
    second = npuquant.npu_quantize(x, f4([0.25]), None, np.int8)
    assert not np.shares_memory(first, second)
    assert (first == 2).all() and (second == 4).all()
    assert (x == 1).all()
