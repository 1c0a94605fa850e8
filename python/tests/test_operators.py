# SPDX-License-Identifier: BSD-3-Clause
"""Results, bit for bit those of the operators in NumPy, on every backend, on one thread and several."""
import inspect
import math

import numpy as np
import npuquant
import numpy_operators as expected
import pytest
from numpy_operators import f4, random_ends, random_floats, random_shape, rng

TRIALS = 150
KEYWORD = inspect.Parameter.KEYWORD_ONLY
EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
REQUIRED = inspect.Parameter.empty


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        ("npu_quantize", [("input", EITHER, REQUIRED), ("scales", EITHER, REQUIRED), ("zero_points", EITHER, REQUIRED),
                          ("dtype", EITHER, REQUIRED), ("axis", EITHER, 1), ("div_mode", EITHER, True)]),
        ("npu_group_quant", [("x", EITHER, REQUIRED), ("scale", EITHER, REQUIRED), ("group_index", EITHER, REQUIRED),
                             ("offset", KEYWORD, None), ("dst_dtype", KEYWORD, None)]),
        ("npu_trans_quant_param", [("scale", EITHER, REQUIRED), ("offset", EITHER, None), ("round_mode", EITHER, 0)]),
        # x is called input too, and so cannot be required by its name.
        ("npu_dynamic_quant_asymmetric", [("x", EITHER, None), ("smooth_scales", KEYWORD, None),
                                          ("group_index", KEYWORD, None), ("dst_type", KEYWORD, None),
                                          ("quant_mode", KEYWORD, "pertoken"), ("input", KEYWORD, None)]),
    ],
)
def test_signatures_are_those_of_torch_npu_and_out(function, parameters):
    signature = inspect.signature(getattr(npuquant, function))
    got = [(p.name, p.kind, p.default) for p in signature.parameters.values()]
    assert got == [*parameters, ("out", KEYWORD, None)]


def bits(array):
    """A NaN in a result is always the same one."""
    if array.dtype == f4:
        array = np.where(np.isnan(array), np.uint32(0x7FC00000).view(f4), array)
    return array.dtype.str, array.shape, array.tobytes()


def assert_same(got, wanted):
    assert type(got) is np.ndarray and got.flags.c_contiguous and got.flags.writeable
    assert (got.dtype.str, got.shape, got.tobytes()) == bits(wanted)


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
    array = array.view()
    array.flags.writeable = bool(rng.integers(2))
    return array


WAYS = {
    "int8": ["int8", np.int8, np.dtype("i1"), "qint8", npuquant.qint8, "torch.qint8", "torch.int8", 1, 12, np.int64(1)],
    "uint8": ["uint8", np.uint8, np.dtype("u1"), "quint8", npuquant.quint8, "torch.quint8", 0, 13],
    "int32": ["int32", np.int32, np.dtype("i4"), "qint32", npuquant.qint32, "torch.qint32", 3, 14],
    "quint4x2": ["quint4x2", npuquant.quint4x2, "torch.quint4x2", 16],
}


def as_destination(dtype):
    """One of the ways to say it."""
    ways = WAYS[dtype]
    return ways[rng.integers(len(ways))]


def test_quantize(backend, threads):
    for _ in range(TRIALS):
        div_mode = bool(rng.random() < 0.5)
        dtype = str(rng.choice(["int8", "uint8", "int32"] if div_mode else ["int8", "quint4x2"]))
        x = random_floats(random_shape(1, 8 if rng.random() < 0.1 else 4, 8 if dtype == "quint4x2" else 1))
        axis = int(rng.integers(-x.ndim if div_mode else -min(2, x.ndim), x.ndim))
        dimension = axis % x.ndim if div_mode else x.ndim - (2 if axis == -2 else 1)
        count = x.shape[dimension] if rng.random() < 0.8 else 1
        shape = [count]
        if not div_mode and rng.random() < 0.3:
            shape = [count if d == dimension else 1 for d in range(x.ndim)]
        scales = random_floats(shape, size=2.0, special=0.05)
        zero_points = None
        if rng.random() < 0.7:
            if div_mode and rng.random() < 0.5:
                zero_points = rng.integers(0, 100, size=shape).astype(rng.choice(["i1", "u1", "i4"]))
            else:
                zero_points = random_floats(shape, scales.dtype.str if not div_mode else None, special=0)
        got = npuquant.npu_quantize(in_any_layout(x), in_any_layout(scales), in_any_layout(zero_points),
                                    as_destination(dtype), axis, div_mode)
        assert_same(got, expected.quantize(x, scales, zero_points, axis, div_mode, dtype))


def test_group_quant(backend, threads):
    for _ in range(TRIALS):
        dtype = str(rng.choice(["int8", "quint4x2"]))
        x = random_floats(random_shape(2, 2, 8))
        groups = int(rng.integers(1, 6))
        scale = random_floats((groups, x.shape[1]), size=3.0)
        ends = random_ends(groups, len(x))
        offset = random_floats(() if rng.random() < 0.5 else 1, scale.dtype.str) if rng.random() < 0.5 else None
        got = npuquant.npu_group_quant(in_any_layout(x), in_any_layout(scale), in_any_layout(ends), offset=offset,
                                       dst_dtype=as_destination(dtype))
        assert_same(got, expected.group_quant(x, scale, ends, offset, dtype))


def test_trans_quant_param(backend):
    for _ in range(TRIALS):
        count = int(rng.integers(1, 50))
        scale = rng.integers(0, 2**32, size=count, dtype=np.uint32).view(f4)
        offset = random_floats(count, "f4", size=200.0)
        kind = rng.integers(6)
        if kind == 0:
            offset = None
        elif kind == 1:
            scale = scale[:1]
        elif kind == 2:
            offset = offset[:1]
        elif kind == 3:
            scale, offset = scale.reshape(1, -1), offset.reshape(1, -1)
        elif kind == 4:
            scale, offset = scale.reshape(-1, 1), None
        mode = int(rng.integers(2))
        got = npuquant.npu_trans_quant_param(in_any_layout(scale), in_any_layout(offset), mode)
        assert_same(got, expected.trans_quant_param(scale, offset, mode).astype("i8"))


def test_dynamic_quant_asymmetric(backend, threads):
    for _ in range(TRIALS):
        dtype = str(rng.choice(["int8", "quint4x2"]))
        x = random_floats(random_shape(2, 4, 8), special=rng.choice([0, 0.02]))
        smooth = ends = None
        kind = rng.integers(4)
        if kind == 1:
            smooth = random_floats(x.shape[-1], size=2.0, special=0.01)
        elif kind == 2:
            groups = int(rng.integers(1, 5))
            smooth = random_floats((groups, x.shape[-1]), size=2.0, special=0.01)
            ends = random_ends(groups, math.prod(x.shape[:-1]))
        got = npuquant.npu_dynamic_quant_asymmetric(
            in_any_layout(x), smooth_scales=in_any_layout(smooth), group_index=in_any_layout(ends),
            dst_type=as_destination(dtype), quant_mode="pertensor" if kind == 3 else "pertoken")
        for one, wanted in zip(got, expected.dynamic(x, smooth, ends, kind == 3, dtype)):
            assert_same(one, wanted)


def test_large(backend, threads):
    """Enough for the library to ask for threads."""
    x = random_floats((700, 2200), "f2")
    smooth = random_floats((3, 2200), "u2", special=0)
    ends = np.array([200, 200, 700])
    for one, wanted in zip(npuquant.npu_dynamic_quant_asymmetric(x, smooth_scales=smooth, group_index=ends),
                           expected.dynamic(x, smooth, ends, False, "int8")):
        assert_same(one, wanted)
    columns = random_floats((1500, 704), "u2", special=0).T
    for one, wanted in zip(npuquant.npu_dynamic_quant_asymmetric(columns[:, :1496], dst_type="quint4x2",
                                                                 quant_mode="pertensor"),
                           expected.dynamic(columns[:, :1496], None, None, True, "quint4x2")):
        assert_same(one, wanted)
    assert_same(npuquant.npu_group_quant(x, smooth, ends, dst_dtype="quint4x2"),
                expected.group_quant(x, smooth, ends, None, "quint4x2"))
    assert_same(npuquant.npu_quantize(x.T, smooth[1, :700], None, np.uint8),
                expected.quantize(x.T, smooth[1, :700], None, 1, True, "uint8"))


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


def test_values_that_the_documentation_shows():
    words = npuquant.npu_trans_quant_param(f4([1.0458984375, 0.1741943359375, 1.421875]), f4([1, -2, 0]))
    assert words.tolist() == [70507248869376, 140463653937152, 70369813069824]


def test_zero_strides():
    scales = np.broadcast_to(f4(0.5), 5)
    for x in (np.broadcast_to(f4([1.5, -2.5, 300]), (4, 5, 3)), np.broadcast_to(f4(-2.5), (4, 5, 3))):
        assert_same(npuquant.npu_quantize(x, scales, None, np.int8, np.int64(1), np.True_),
                    expected.quantize(x, scales, None, 1, True, "int8"))
    x = np.broadcast_to(np.float16(3), (4, 8))
    assert_same(npuquant.npu_dynamic_quant_asymmetric(x)[0], expected.dynamic(x, None, None, False, "int8")[0])
    ends = np.broadcast_to(np.int64(4), 1)
    assert_same(npuquant.npu_group_quant(x, x[:1], ends), expected.group_quant(x, x[:1], ends, None, "int8"))


def test_the_other_name_of_x():
    x = random_floats((3, 8))
    for one, wanted in zip(npuquant.npu_dynamic_quant_asymmetric(input=x), npuquant.npu_dynamic_quant_asymmetric(x)):
        assert_same(one, wanted)


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
CALLS = [
    lambda **out: npuquant.npu_quantize(X, f4([0.5]), None, "uint8", **out),
    lambda **out: npuquant.npu_quantize(X, f4([0.5]), None, "int32", **out),
    lambda **out: npuquant.npu_quantize(X, f4([0.5]), None, "quint4x2", -1, False, **out),
    lambda **out: npuquant.npu_group_quant(X, X, np.array([1, 2]), **out),
    lambda **out: npuquant.npu_group_quant(X, X, np.array([1, 2]), dst_dtype="quint4x2", **out),
    lambda **out: npuquant.npu_trans_quant_param(X[1], X[0], **out),
]
DYNAMIC_CALLS = [
    lambda **out: npuquant.npu_dynamic_quant_asymmetric(X, **out),
    lambda **out: npuquant.npu_dynamic_quant_asymmetric(X, dst_type="quint4x2", quant_mode="pertensor", **out),
]


def spread(array):
    """An array like another, not contiguous."""
    return np.full((*array.shape, 2), 99, array.dtype)[..., 0]


@pytest.mark.parametrize("like", [np.empty_like, spread])
def test_out(like, threads):
    for call in CALLS:
        wanted = call()
        out = like(wanted)
        assert call(out=out) is out
        np.testing.assert_array_equal(out, wanted)
    for call in DYNAMIC_CALLS:
        wanted = call()
        out = tuple(like(one) for one in wanted)
        for got, mine, one in zip(call(out=out), out, wanted):
            assert got is mine
            np.testing.assert_array_equal(mine, one)


def test_out_that_does_not_fit():
    for call in CALLS:
        fits = call()
        with pytest.raises(TypeError, match=rf"\Aout: is int16; expected {fits.dtype}\Z"):
            call(out=fits.astype(np.int16))
        with pytest.raises(TypeError, match=r"\Aout: is list; expected a NumPy array\Z"):
            call(out=fits.tolist())
        with pytest.raises(npuquant.NpuquantError, match="y: ") as caught:
            call(out=np.empty((*fits.shape[:-1], fits.shape[-1] + 1), fits.dtype))
        assert caught.value.status == "NPUQ_ERROR_SHAPE"
        before = fits.copy()
        fits.flags.writeable = False
        with pytest.raises(ValueError, match=r"\Aout: is read-only; expected an array that can be written to\Z"):
            call(out=fits)
        np.testing.assert_array_equal(fits, before)
    for call in DYNAMIC_CALLS:
        y, scale, offset = call()
        for wrong in (y, (y, scale), [y, scale, offset]):
            with pytest.raises(TypeError, match=r"\Aout: is \w+; expected a tuple of three arrays, y, scale and offset"):
                call(out=wrong)
        with pytest.raises(TypeError, match=r"\Aout: is float64; expected float32\Z"):
            call(out=(y, scale, offset.astype("f8")))
        with pytest.raises(npuquant.NpuquantError, match="offset: .*scale"):
            call(out=(y, scale, scale))


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
    y, scale, offset = npuquant.npu_dynamic_quant_asymmetric(np.zeros((0, 4), np.float16))
    assert_same(y, np.zeros((0, 4), "i1"))
    assert_same(scale, np.zeros(0, f4))
    assert_same(offset, np.zeros(0, f4))


def test_results_belong_to_the_caller_alone(threads):
    x = np.ones((300, 5000), f4)
    first = npuquant.npu_quantize(x, f4([0.5]), None, np.int8)
    second = npuquant.npu_quantize(x, f4([0.25]), None, np.int8)
    assert not np.shares_memory(first, second)
    assert (first == 2).all() and (second == 4).all()
    assert (x == 1).all()
