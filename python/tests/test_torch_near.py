# SPDX-License-Identifier: BSD-3-Clause
"""values="near": PyTorch's functions in float32, an exact tail, and a report of the operators so computed."""
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import numpy_operators
import pytest

torch = pytest.importorskip("torch", reason="PyTorch cannot be imported (Debian: python3-torch)")

import npuquant  # noqa: E402
from npuquant import pytest_npu  # noqa: E402
from npuquant import torch_npu as stand_in  # noqa: E402
from npuquant._torch import declared as _declared, near as _near  # noqa: E402

f, h, bf, i1, i4 = torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int32
TYPES = pytest.mark.parametrize("dtype", [f, h, bf], ids=["float32", "float16", "bfloat16"])
HALVES = pytest.mark.parametrize("dtype", [h, bf], ids=["float16", "bfloat16"])
#: Options of microscaling: dst_type, its name, scale_alg and round_mode.
MX = pytest.mark.parametrize("options", [
    (292, "float8_e4m3fn", 0, "rint"), (24, "float8_e4m3fn", 1, "rint"), (23, "float8_e5m2", 0, "rint"),
    (291, "float8_e5m2", 1, "rint"), (296, "float4_e2m1fn_x2", 0, "rint"), (296, "float4_e2m1fn_x2", 0, "floor"),
    (297, "float4_e1m2fn_x2", 0, "round")], ids=lambda options: f"{options[1]}-{options[2]}-{options[3]}")


@pytest.fixture(autouse=True)
def near():
    stand_in.install(values="near")
    yield
    stand_in.uninstall()
    _near.take_report()


@pytest.fixture
def random():
    generator = np.random.RandomState(numpy_operators.SEED % 2**32)

    def numbers(*shape, dtype=f, low=-4.0, high=4.0):
        return torch.from_numpy(generator.uniform(low, high, shape)).to(dtype)

    return numbers


def exact(tensor):
    return tensor.double().numpy()


def assert_near(made, expected, dtype):
    """To a unit of a type of 16 bits. The errors of PyTorch's functions in float32 are some units."""
    assert made.dtype == dtype and tuple(made.shape) == expected.shape
    tolerance = {f: 2e-6, h: 2**-10, bf: 2**-7}[dtype]
    np.testing.assert_allclose(exact(made), expected, rtol=tolerance, atol=5e-7)


def assert_same(made, expected):
    np.testing.assert_array_equal(made.numpy(), np.asarray(expected))


def assert_rows(y, scale, v, rule):
    """A tail of dynamic quantisation: codes and scales are those of v, by the rule."""
    for made, expected in zip((y, scale), npuquant.row_quant(v, rule)):
        assert_same(made, expected)


def keywords_of(options):
    return dict(zip(("dst_type", "scale_alg", "round_mode"), (options[0], *options[2:])))


def microscaled(v, dtype, options, small_groups, axis=-1):
    """The codes and scales of v, which is rounded to dtype first."""
    x = numpy_operators.round_to(v.numpy(), str(dtype)[len("torch."):])
    _, name, algorithm, rounding = options
    return numpy_operators.dynamic_mx_quant(x, axis, 32, numpy_operators.ROUNDINGS.index(rounding), algorithm,
                                            small_groups, 0, 0, 0, name)


def assert_codes(made, wanted):
    assert made.dtype == torch.uint8 or "float8" in str(made.dtype)
    assert_same(made.view(torch.uint8), wanted)


def quantised(v, scales=torch.ones(1), zeros=None, divide=False):
    return npuquant.npu_quantize(v, scales, zeros, "qint8", -1, divide)


def silu(x):
    return x / (1 + np.exp(-x))


def rms_norm(x, gamma, epsilon=1e-6, dimensions=(-1,)):
    rstd = 1 / np.sqrt((x * x).mean(dimensions, keepdims=True) + epsilon)
    return x * rstd * gamma, rstd


# ---- activations -----------------------------------------------------------------------------------------------------


@TYPES
@pytest.mark.parametrize("dim", [-1, 0])
def test_swiglu(random, dtype, dim):
    x = random(6, 8, dtype=dtype)
    first, second = np.split(exact(x), 2, dim)
    assert_near(stand_in.npu_swiglu(x, dim), silu(first) * second, dtype)


@TYPES
def test_gelu(random, dtype):
    x = random(5, 7, dtype=dtype)
    numbers = exact(x)
    erf = np.vectorize(__import__("math").erf)
    assert_near(stand_in.npu_gelu(x), numbers * (1 + erf(numbers / np.sqrt(2))) / 2, dtype)
    tanh = np.tanh(np.sqrt(2 / np.pi) * (numbers + 0.044715 * numbers**3))
    assert_near(torch.ops.npu.npu_gelu(x, approximate="tanh"), numbers * (1 + tanh) / 2, dtype)
    with pytest.raises(RuntimeError, match="^approximate: is 'fast'; expected 'none' or 'tanh'"):
        stand_in.npu_gelu(x, approximate="fast")


def gated(x, left):
    """What the activation alone returns, as float32: a tail begins with it."""
    halves = x.float().chunk(2, -1)
    return stand_in.npu_swiglu(torch.cat(halves if left else halves[::-1], -1))


@TYPES
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("ends", [False, True])
def test_swiglu_quant(random, dtype, left, ends):
    """Rows behind the groups have no smooth scales."""
    x, smooth = random(2, 3, 8, dtype=dtype), random(3, 4, low=0.5, high=2)
    v, experts = gated(x, left), [0, 0, 2, 2]
    y, scale = stand_in.npu_swiglu_quant(x, activate_left=left, quant_mode=1)
    assert_rows(y, scale, v, "swiglu")
    of_rows = torch.ones(6, 4)
    of_rows[:4] = smooth[experts]
    groups = torch.tensor([2, 2, 4] if ends else [2, 0, 2], dtype=i4)
    y, scale = stand_in.npu_swiglu_quant(x, activate_left=left, quant_mode=1, smooth_scales=smooth, group_index=groups,
                                         group_list_type=int(not ends))
    assert_rows(y, scale, v * of_rows.reshape(2, 3, 4), "swiglu")


@pytest.mark.parametrize("shape", [(1, 4), (1,)])
def test_static_swiglu_quant(random, shape):
    x, smooth, offsets = random(5, 8), random(*shape, low=5, high=20), random(*shape)
    y, scale = stand_in.npu_swiglu_quant(x, activate_left=True, smooth_scales=smooth, offsets=offsets)
    v = gated(x, True)
    assert_same(y, quantised(v, smooth.reshape(-1), offsets.reshape(-1)))
    assert not scale.any() and scale.shape == (5,)
    with pytest.raises(NotImplementedError, match=r"^smooth_scales\.dim\(\): is 1; npuquant has near values of 2 only"):
        stand_in.npu_swiglu_quant(x, smooth_scales=torch.ones(1), quant_mode=1)


def test_rounding():
    v = torch.tensor([0.5, 1.5, -2.5, 126.5, 127.5, 200, -128.5, -1e9, float("inf"), -float("inf"), float("nan"), -0.0])
    assert_same(_near._rounded(v), quantised(v))


PARTS = {mode: lambda x, left: np.split(x, 2, -1)[::1 if left else -1] for mode in (0, 2, 3)}
PARTS[1] = lambda x, left: (x[:, ::2], x[:, 1::2])


GATE = {"clamp_limit": 3.0, "glu_alpha": 1.5, "glu_bias": 0.75}


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("left", [False, True])
def test_modes_of_gates(random, mode, left):
    """The scale of a dynamic call shows the function: it is the largest number of the row, divided by 127. Codes of
    microscaling have three bits behind the first one, or are below 2^-15 of the largest."""
    x, (limit, alpha, bias) = random(6, 128, dtype=bf, low=-9, high=9), GATE.values()
    gate, other = PARTS[mode](exact(x), left)
    if mode == 0:
        v = silu(gate) * other
    elif mode == 3:
        v = np.minimum(silu(gate), limit) * np.clip(other, -limit, limit)
    else:
        gate = np.minimum(gate, limit)
        v = gate / (1 + np.exp(-alpha * gate)) * (np.clip(other, -limit, limit) + bias)
    options = {"activate_left": left, "swiglu_mode": mode, **GATE}
    if mode < 3:
        y, scale = stand_in.npu_dequant_swiglu_quant(x, quant_mode=1, **options)
        assert_near(scale, np.abs(v).max(-1) / 127, f)
        assert np.abs(y.numpy() - v / exact(scale)[:, None]).max() < 0.5 + 1e-3
    back = stand_in.npu_anti_mx_quant(*stand_in.npu_swiglu_mx_quant(x, dst_type=292, scale_alg=1, **options))
    assert (np.abs(exact(back) - v) < 0.07 * np.abs(v) + np.abs(v).max() * 2**-15).all()


def gated_along(random, shape, dtype, left, dim):
    """x, and what is gated as float32, which is about 2^-126 in some columns."""
    times = 2 if dim in (-1, 1) else 1
    small = torch.where(random(shape[-1] // times, low=0, high=1) < 0.3, 2.0**-63, 1.0).repeat(times)
    x = (random(*shape) * small).to(dtype)
    halves = x.float().chunk(2, dim)
    return x, stand_in.npu_swiglu(torch.cat(halves if left else halves[::-1], dim), dim)


@HALVES
@MX
@pytest.mark.parametrize("left, dim, axis", [(False, -1, -1), (True, 1, -2), (True, -2, 1), (False, 0, 0)])
def test_swiglu_mx_quant(random, dtype, options, left, dim, axis):
    """Small groups have rule E."""
    x, v = gated_along(random, (70, 140), dtype, left, dim)
    made = stand_in.npu_swiglu_mx_quant(x, activate_left=left, activate_dim=dim, axis=axis, **keywords_of(options))
    for one, wanted in zip(made, microscaled(v, dtype, options, 1, axis)):
        assert_codes(one, wanted)


def test_swiglu_mx_quant_of_three_dimensions(random):
    x = random(2, 40, 128, dtype=bf)
    for axis in -1, -2:
        made = stand_in.npu_swiglu_mx_quant(x, activate_left=True, axis=axis)
        for one, wanted in zip(made, microscaled(gated(x, True), bf, (296, "float4_e2m1fn_x2", 0, "rint"), 1, axis)):
            assert_codes(one, wanted)


SIZES = pytest.mark.parametrize("sizes", [[3, 0, 100, 40], [64, 65, 1], [0, 0], [150]])


@MX
@SIZES
def test_groups_of_swiglu_mx_quant(random, options, sizes):
    """Along the columns the scales of a group begin behind those of the one before. The rest of y and of the scales is
    not written."""
    x, v = gated_along(random, (150, 16), bf, False, -1)
    count, keywords = sum(sizes), {"group_index": torch.tensor(sizes), **keywords_of(options)}
    wanted, scales = [], []
    for part in v[:count].split(sizes):
        if len(part):
            for one, into in zip(microscaled(part, bf, options, 1, 0), (wanted, scales)):
                into.extend(one)
    for axis in -2, -1:
        if axis == -1:
            wanted, scales = microscaled(v[:count], bf, options, 1) if count else ([], [])
        stand_in.install(values="near", unset="nan")
        y, mxscale = stand_in.npu_swiglu_mx_quant(x, axis=axis, **keywords)
        assert len(y) == 150 and len(mxscale) == (150 if axis == -1 else 150 // 64 + len(sizes))
        for one, written in (y, wanted), (mxscale, scales):
            if len(written):
                assert_codes(one[:len(written)], np.array(written))
            assert (one[len(written):].view(torch.uint8) == 0xFF).all()
            unset = stand_in.unset(one)
            assert not unset[:len(written)].any() and unset[len(written):].all()


def test_groups_of_three_dimensions(random):
    """Rows are counted through all dimensions."""
    x = random(3, 5, 128, dtype=bf)
    y, mxscale = stand_in.npu_swiglu_mx_quant(x, group_index=torch.tensor([2, 5]), dst_type=292)
    wanted, scales = stand_in.npu_swiglu_mx_quant(x.reshape(15, 128), dst_type=292)
    for made, whole in (y, wanted), (mxscale, scales):
        flat = made.view(torch.uint8).flatten(0, 1)
        assert torch.equal(flat[:7], whole.view(torch.uint8)[:7]) and not flat[7:].any()
        assert stand_in.unset(made).flatten(0, 1)[:, 0].reshape(15, -1)[:, 0].tolist() == [False] * 7 + [True] * 8


@pytest.mark.parametrize("bias_type, pairs", [(None, False), (None, True), (i4, False), (f, False)])
def test_dequant_swiglu_quant(random, bias_type, pairs):
    """Experts 2 and 0 have three rows and one; what lies behind is not written."""
    x = random(6, 16, dtype=i4, low=-1000, high=1000)
    weight_scale, activation_scale = random(3, 16, low=1e-4, high=1e-2), random(6, 1, low=0.5, high=2)
    quant_scale = random(3, 8, low=0.5, high=2)
    bias = None if bias_type is None else random(3, 16, dtype=bias_type, low=-50, high=50)
    # Pairs come in any order, and the first without rows ends them.
    groups, experts = (torch.tensor([[2, 3], [0, 1], [1, 0]]), [2, 2, 2, 0]) if pairs else (
        torch.tensor([1, 0, 3]), [0, 2, 2, 2])
    rows = x[:4] + bias[experts] if bias_type == i4 else x[:4]
    v = rows.float() * weight_scale[experts] * activation_scale[:4]
    if bias_type == f:
        v = v + bias[experts]
    y, scale = stand_in.npu_dequant_swiglu_quant(
        x, weight_scale=weight_scale, activation_scale=activation_scale, bias=bias, quant_scale=quant_scale,
        group_index=groups, quant_mode=1)
    assert_rows(y[:4], scale[:4], gated(v, False) * quant_scale[experts], "dequant_swiglu")
    assert not y[4:].any() and not scale[4:].any()


def test_static_dequant_swiglu_quant(random):
    """It divides by scales of the columns, and multiplies by the reciprocal of one."""
    x, by, offset = random(6, 16, dtype=bf), random(2, 8, low=0.01, high=0.1), random(2, 8)
    v, groups = gated(x, False), torch.tensor([2, 3])
    y, scale = stand_in.npu_dequant_swiglu_quant(x, quant_scale=by, quant_offset=offset, group_index=groups)
    for rows, expert in (slice(0, 2), 0), (slice(2, 5), 1):
        assert_same(y[rows], quantised(v[rows], by[expert], offset[expert], True))
    assert not y[5:].any() and not scale.any()
    y, _ = stand_in.npu_dequant_swiglu_quant(x, quant_scale=by[0, :1], quant_offset=offset[0, :1])
    assert_same(y, quantised(v, 1 / by[0, :1], offset[0, :1]))
    y, _ = stand_in.npu_dequant_swiglu_quant(x, weight_scale=torch.full((16,), 2.0))  # only int32 is dequantised
    assert_same(y, quantised(v))


def weighted(x, weight=None, limit=None):
    """What npu_swiglu_group_quant quantises, a row for each of x."""
    gate, other = x.float().flatten(0, -2).chunk(2, -1)
    if limit is not None:
        gate, other = gate.clamp(max=limit), other.clamp(-limit, limit)
    v = stand_in.npu_swiglu(torch.cat([gate, other], -1))
    return v.numpy() if weight is None else v.numpy() * weight.numpy().reshape(-1, 1)


def exponents_up(a, dtype):
    """Of the power of two from the quotient by the largest value on; a is 1e-4 or more."""
    inverse = np.uint32({"float8_e4m3fn": 0x3B124925, "float8_e5m2": 0x37924925}[dtype]).view("f4")
    fraction, exponent = np.frexp(np.maximum(a, np.float32(1e-4)) * inverse)
    return exponent - (fraction == 0.5)


def of_all_sizes(random, dtype, group):
    """x of 3 and 2 rows, whose activation has groups of all sizes, and zeros of both signs."""
    x, size = random(3, 2, 1024, dtype=dtype), 2.0 ** random(512 // group, low=-14, high=7).round()
    size[3] = 0
    return x * torch.cat([torch.ones(512), size.repeat_interleave(group)]).to(dtype)


EIGHT_BITS = pytest.mark.parametrize("dst_type, name", [(292, "float8_e4m3fn"), (23, "float8_e5m2")])
GROUPED = pytest.mark.parametrize("sizes", [None, [0, 3, 1], [9]])


@HALVES
@EIGHT_BITS
@GROUPED
@pytest.mark.parametrize("power_of_two", [False, True])
def test_swiglu_group_quant_in_blocks(random, dtype, dst_type, name, sizes, power_of_two):
    """What is no finite number does not count in the scale, and is cast as it is. Rows behind the groups are not
    written."""
    x, weight = of_all_sizes(random, dtype, 128), random(6, 1)
    x[0, 0, 512:515] = torch.tensor([float("inf"), -float("inf"), float("nan")])
    x[0, 0, :3], weight[0] = 1, 1
    groups = None if sizes is None else torch.tensor(sizes)
    y, scale, origin = stand_in.npu_swiglu_group_quant(x, dst_type=dst_type, weight=weight, group_index=groups,
                                                       round_scale=power_of_two)
    v = weighted(x, weight).reshape(6, 4, 128) + np.float32(0)
    with np.errstate(invalid="ignore"):
        a = np.maximum(np.where(np.isfinite(v), np.abs(v), 0).max(-1, keepdims=True), np.float32(1e-4))
    most = np.float32(numpy_operators.small_value(name, numpy_operators.SMALL[name]))
    scales = np.ldexp(np.float32(1), exponents_up(a, name)) if power_of_two else a * (1 / most)
    t = v * (1 / scales if power_of_two else most / a)
    codes = numpy_operators.to_small(np.where(np.isfinite(t), t, 0), name)
    codes[0, 0, :3] = [[0x7F, 0xFF, 0x7F], [0x7C, 0xFC, 0x7F]][name == "float8_e5m2"]
    count = 6 if sizes is None else min(sum(sizes), 6)
    made = y.view(torch.uint8).reshape(6, 512).numpy()
    made[0, 2] &= 0x7F  # NaN of either sign
    assert_same(torch.from_numpy(made[:count]), codes.reshape(6, 512)[:count])
    assert_same(scale.reshape(6, 4)[:count], scales[:count, :, 0])
    for one in y, scale:
        assert not one.reshape(6, -1)[count:].float().any() and origin.shape == (0,)
        assert stand_in.unset(one).any(-1).flatten().tolist() == [False] * count + [True] * (6 - count)


@HALVES
@EIGHT_BITS
@GROUPED
def test_swiglu_group_quant_in_mx_groups(random, dtype, dst_type, name, sizes):
    """No group counts as smaller than 1e-4, also none of zeros."""
    x, groups = of_all_sizes(random, dtype, 32), None if sizes is None else torch.tensor(sizes)
    y, mxscale, _ = stand_in.npu_swiglu_group_quant(x, dst_type=dst_type, quant_mode=1, round_scale=True,
                                                    group_index=groups, clamp_limit=2.5)
    v = weighted(x, None, 2.5).reshape(6, 16, 32) + np.float32(0)
    exponents = exponents_up(np.abs(v).max(-1), name)
    codes = numpy_operators.to_small(v * np.ldexp(np.float32(1), -exponents)[..., None], name)
    count = 6 if sizes is None else min(sum(sizes), 6)
    assert_same(y.view(torch.uint8).reshape(6, 512)[:count], codes.reshape(6, 512)[:count])
    assert_same(mxscale.reshape(6, 16)[:count], (exponents + 127)[:count])
    for one in y, mxscale:
        assert stand_in.unset(one).reshape(6, -1).any(-1).tolist() == [False] * count + [True] * (6 - count)
    x[0, 0, 512] = float("inf")
    with pytest.raises(NotImplementedError, match="^x: its activation has NaN or an infinity"):
        stand_in.npu_swiglu_group_quant(x, dst_type=dst_type, quant_mode=1, round_scale=True)


@pytest.mark.parametrize("number, name", [(296, "float4_e2m1fn_x2"), (297, "float4_e1m2fn_x2")])
def test_swiglu_group_quant_to_4_bits(random, number, name):
    """Small groups have rule E."""
    x, weight = random(5, 512, dtype=bf), random(5)
    x[:, 256 + 32:256 + 64] *= 2.0**-129
    y, mxscale, _ = stand_in.npu_swiglu_group_quant(x, dst_type=number, quant_mode=1, round_scale=True, weight=weight)
    wanted = microscaled(torch.from_numpy(weighted(x, weight)), bf, (number, name, 0, "rint"), 1)
    for one, other in zip((y, mxscale), wanted):
        assert_codes(one, other)


@TYPES
@GROUPED
def test_swiglu_group_quant_by_scales(random, dtype, sizes):
    """y behind the groups is 0."""
    sizes = [0, 3, 2] if sizes == [9] else sizes
    x, scale = random(3, 2, 512, dtype=dtype), 2.0 ** random(1 if sizes is None else 3, low=-9, high=14)
    y, none, origin = stand_in.npu_swiglu_group_quant(
        x, quant_mode=2, scale=scale, group_index=None if sizes is None else torch.tensor(sizes), output_origin=True)
    v, experts = weighted(x), [0] * 6 if sizes is None else np.repeat(np.arange(3), sizes)
    wanted = np.zeros((6, 256), np.uint8)
    wanted[:len(experts)] = numpy_operators.to_small(v[:len(experts)] * scale.numpy()[experts, None], "hifloat8")
    assert_same(y.reshape(6, 256), wanted)
    assert y.dtype == torch.uint8 and none.shape == (0,) and not stand_in.unset(y).any()
    assert origin.dtype == dtype and torch.equal(origin.reshape(6, 256), torch.from_numpy(v).to(dtype))


# ---- norms -----------------------------------------------------------------------------------------------------------


@TYPES
@pytest.mark.parametrize("shape", [(8,), (3, 8)])
def test_rms_norm(random, dtype, shape):
    x, gamma = random(2, 3, 8, dtype=dtype), random(*shape, dtype=dtype)
    dimensions = tuple(range(-len(shape), 0))
    expected = rms_norm(exact(x), exact(gamma), 1e-3, dimensions)
    y, rstd = stand_in.npu_rms_norm(x, gamma, epsilon=1e-3)
    assert_near(y, expected[0], dtype)
    assert_near(rstd, expected[1], f)


@TYPES
def test_add_rms_norm(random, dtype):
    x1, x2, gamma = random(3, 8, dtype=dtype), random(3, 8, dtype=dtype), random(8, dtype=dtype)
    y, rstd, x = stand_in.npu_add_rms_norm(x1, x2, gamma)
    expected = rms_norm(exact(x1) + exact(x2), exact(gamma))
    assert_near(y, expected[0], dtype)
    assert_near(rstd, expected[1], f)
    assert_same(x.float(), (x1.float() + x2.float()).to(dtype).float())


def normed(x, gamma, beta=None):
    """What the norm alone returns, as float32: a tail begins with it."""
    v = stand_in.npu_rms_norm(x.float(), gamma.float())[0]
    return v if beta is None else v + beta.float()


@TYPES
def test_rms_norm_quant(random, dtype):
    x, gamma, beta = (random(*shape, dtype=dtype) for shape in ((3, 32), (32,), (32,)))
    scale, offset = torch.tensor([0.03125], dtype=dtype), torch.tensor([3], dtype=i1)
    expected = (normed(x, gamma, beta) * (1 / scale.float()) + offset).half()
    assert_same(stand_in.npu_rms_norm_quant(x, gamma, beta, scale, offset), quantised(expected))


@TYPES
@pytest.mark.parametrize("divide", [True, False])
def test_add_rms_norm_quant(random, dtype, divide):
    x1, x2, gamma, beta = (random(*shape, dtype=dtype) for shape in ((3, 32), (3, 32), (32,), (32,)))
    scales, zeros = random(32, low=0.01, high=0.1) if divide else random(32, low=10, high=50), random(32, dtype=i4)
    v = normed(x1.float() + x2.float(), gamma, beta)
    y1, y2, x = stand_in.npu_add_rms_norm_quant(x1, x2, gamma, scales, zeros, beta, div_mode=divide)
    assert_same(y1, quantised(v, scales, zeros.float(), divide))
    assert not y2.any()
    assert_same(x.float(), (x1.float() + x2.float()).to(dtype).float())
    y1, y2, _ = stand_in.npu_add_rms_norm_quant(x1, x2, gamma, scales, None, beta, scales * 2, zeros, div_mode=divide)
    assert_same(y1, quantised(v, scales, None, divide))
    assert_same(y2, quantised(v, scales * 2, zeros.float(), divide))


@TYPES
@pytest.mark.parametrize("mask", [None, [True, False], [False, True], [True, True]])
def test_add_rms_norm_dynamic_quant(random, dtype, mask):
    x1, x2, gamma, beta, smooth1, smooth2 = (
        random(*shape, dtype=dtype) for shape in ((2, 3, 8), (2, 3, 8), (8,), (8,), (8,), (8,)))
    v = normed(x1.float() + x2.float(), gamma, beta)
    y1, y2, x, scale1, scale2 = stand_in.npu_add_rms_norm_dynamic_quant(
        x1, x2, gamma, smooth_scale1=smooth1, smooth_scale2=smooth2, beta=beta, output_mask=mask)
    for wanted, y, scale, smooth in zip(mask or [True, True], (y1, y2), (scale1, scale2), (smooth1, smooth2)):
        if not wanted:
            assert y.shape == scale.shape == ()
            continue
        assert_rows(y, scale, v * smooth.float(), "add_rms_norm")
    assert_same(x.float(), (x1.float() + x2.float()).to(dtype).float())
    y, _, _, scale, _ = stand_in.npu_add_rms_norm_dynamic_quant(x1, x2, gamma)
    assert_rows(y, scale, normed(x1.float() + x2.float(), gamma), "add_rms_norm")


@HALVES
@MX
def test_rms_norm_dynamic_mx_quant(random, dtype, options):
    """Small groups have rule S."""
    x1, x2, beta = random(2, 3, 96, dtype=dtype), random(2, 3, 96, dtype=dtype), random(96)
    small = torch.tensor([2.0**-122, 1, 2.0**-127]).repeat_interleave(32)  # a factor of each group
    gamma, beta, keywords = random(96) * small, random(96) * small, keywords_of(options)
    for bias in None, beta:
        y, mxscale, rstd = stand_in.npu_rms_norm_dynamic_mx_quant(x1, gamma, beta=bias, **keywords)
        v = normed(x1, gamma, bias)
        for one, wanted in zip((y, mxscale), microscaled(v, dtype, options, 0)):
            assert_codes(one, wanted)
        assert_same(rstd, stand_in.npu_rms_norm(x1.float(), gamma)[1])
        y, x, mxscale, rstd = stand_in.npu_add_rms_norm_dynamic_mx_quant(x1, x2, gamma, beta=bias, **keywords)
        added = x1.float() + x2.float()
        for one, wanted in zip((y, mxscale), microscaled(normed(added, gamma, bias), dtype, options, 0)):
            assert_codes(one, wanted)
        assert_same(rstd, stand_in.npu_rms_norm(added, gamma)[1])
        assert_same(x.float(), added.to(dtype).float())


# ---- mixtures of experts ---------------------------------------------------------------------------------------------


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def largest(scores, k):
    return np.argsort(-scores, -1, kind="stable")[..., :k]


def logits(*shape, dtype):
    """Each number twice in a row, and no two others are near each other."""
    generator = np.random.RandomState(7)
    rows = [generator.permutation(np.repeat(np.arange(shape[-1] // 2), 2)) for _ in range(int(np.prod(shape[:-1])))]
    return (torch.tensor(np.array(rows)).reshape(shape) / 4 - 2).to(dtype)


@TYPES
@pytest.mark.parametrize("shape", [(5, 16), (2, 3, 16)])
def test_gating_softmax(dtype, shape):
    x, rows = logits(*shape, dtype=dtype), int(np.prod(shape[:-1]))
    finished = torch.arange(rows).reshape(shape[:-1]) % 2 == 1
    experts = largest(exact(x), 3)
    y, expert_idx, row_idx = stand_in.npu_moe_gating_top_k_softmax(x, finished, k=3)
    assert_near(y, np.take_along_axis(softmax(exact(x)), experts, -1), dtype)
    assert_same(expert_idx, np.where(finished[..., None], 16, experts))
    assert_same(row_idx.reshape(rows, 3), np.arange(rows)[:, None] + rows * np.arange(3))
    assert expert_idx.dtype == row_idx.dtype == i4
    assert_same(stand_in.npu_moe_gating_top_k_softmax(x)[1], largest(exact(x), 1))


@TYPES
@pytest.mark.parametrize("sigmoid", [False, True])
@pytest.mark.parametrize("mode, groups, k_group", [(0, 1, 1), (0, 4, 2), (1, 4, 2), (1, 4, 4)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_gating(dtype, sigmoid, mode, groups, k_group, with_bias):
    x = logits(6, 16, dtype=dtype)
    bias = torch.arange(16).to(dtype) if with_bias else None
    scores = 1 / (1 + np.exp(-exact(x))) if sigmoid else softmax(exact(x))
    choice = (scores.astype(np.float32) + (exact(bias) if with_bias else 0)).reshape(6, groups, -1)
    best = choice.max(-1) if mode == 0 else np.sort(choice, -1)[..., -2:].sum(-1)
    others = np.ones((6, groups), np.bool_)
    np.put_along_axis(others, largest(best, k_group), False, -1)
    choice[others] = -np.inf
    experts = largest(choice.reshape(6, 16), 3)
    weights = np.take_along_axis(scores, experts, -1)
    if sigmoid:
        weights = weights / (weights.sum(-1, keepdims=True) + 0.5)
    options = {"bias": bias, "k_group": k_group, "group_count": groups, "group_select_mode": mode,
               "norm_type": int(sigmoid), "routed_scaling_factor": 2.5, "eps": 0.5}
    y, expert_idx, norm_out = stand_in.npu_moe_gating_top_k(x, 3, out_flag=True, **options)
    assert_near(y, weights * 2.5, dtype)
    assert_same(expert_idx, experts)
    assert_near(norm_out, scores, f)
    assert not stand_in.npu_moe_gating_top_k(x, 3, **options)[2].any()


@pytest.mark.parametrize("says, keywords", [
    ("k: is 9; expected 1 to 8", {"k": 9}), ("k: is 0; expected 1 to 8", {"k": 0}),
    ("k: is 3; expected at most 2, the experts of k_group groups", {"k": 3, "group_count": 4}),
    ("group_count: is 3; expected a divisor of 8", {"group_count": 3}),
    ("group_count: is 8; .* with 2 or more in a group", {"group_count": 8, "group_select_mode": 1}),
    ("k_group: is 5; expected 1 to group_count, 4", {"k_group": 5, "group_count": 4}),
    ("renorm: is 1; expected 0", {"renorm": 1}), ("norm_type: is 2; expected 0 or 1", {"norm_type": 2}),
    (r"bias: has the shape \[4\]; expected \[8\]", {"bias": torch.ones(4)}),
    ("bias: is float16; expected float32, as x is", {"bias": torch.ones(8, dtype=h)}),
    ("tid2eid: is given without input_ids", {"input_ids": torch.zeros(3, dtype=i4)})])
def test_gating_refuses(says, keywords):
    with pytest.raises(RuntimeError, match=f"^{says}"):
        stand_in.npu_moe_gating_top_k(torch.ones(3, 8), **{"k": 1, **keywords})


def test_empty():
    x, gamma = torch.zeros(0, 8), torch.ones(8)
    for name, values, shapes in (
            ("npu_swiglu_quant", [x], [(0, 4), (0,)]), ("npu_dequant_swiglu_quant", [x.half()], [(0, 4), (0,)]),
            ("npu_rms_norm", [x, gamma], [(0, 8), (0, 1)]),
            ("npu_swiglu_mx_quant", [x.half()], [(0, 2), (0, 1, 2)]),
            ("npu_swiglu_group_quant", [torch.zeros(0, 256, dtype=h)], [(0, 128), (0, 1), (0,)]),
            ("npu_rms_norm_dynamic_mx_quant", [x.half(), gamma], [(0, 4), (0, 1, 2), (0, 1)]),
            ("npu_add_rms_norm_dynamic_quant", [x, x, gamma], [(0, 8), (), (0, 8), (0,), ()]),
            ("npu_moe_gating_top_k_softmax", [x, None, 3], [(0, 3)] * 3),
            ("npu_moe_gating_top_k", [x, 3], [(0, 3), (0, 3), (0, 8)])):
        assert [one.shape for one in getattr(stand_in, name)(*values)] == shapes


# ---- what has no near values -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.* returns zeros")
@pytest.mark.parametrize("says, name, values, keywords", [
    ("dst_type: is 'quint4x2'", "npu_swiglu_quant", [torch.ones(3, 16)], {"dst_type": 16}),
    ("dst_type: is 'hifloat8'", "npu_dequant_swiglu_quant", [torch.ones(3, 16, dtype=h)], {"dst_type": 290}),
    ("round_mode: is 2", "npu_dequant_swiglu_quant", [torch.ones(3, 16, dtype=h)], {"round_mode": 2}),
    ("activate_dim: is 0", "npu_dequant_swiglu_quant", [torch.ones(4, 16, dtype=h)], {"activate_dim": 0}),
    ("dst_dtype: is 'quint4x2'", "npu_rms_norm_quant", [torch.ones(3, 8), *[torch.ones(8)] * 2, *[torch.ones(1)] * 2],
     {"dst_dtype": 16}),
    ("y_dtype: is 'quint4x2'", "npu_add_rms_norm_dynamic_quant", [*[torch.ones(3, 8)] * 2, torch.ones(8)],
     {"y_dtype": 16}),
    ("quant_mode: is 3", "npu_swiglu_group_quant", [torch.ones(3, 256, dtype=h)], {"quant_mode": 3}),
    ("x.dtype: is torch.float16", "npu_swiglu_group_quant", [torch.ones(3, 256, dtype=h)],
     {"quant_mode": 1, "round_scale": True, "dst_type": 296}),
    ("group_mode: is 1", "npu_swiglu_mx_quant", [torch.ones(3, 16, dtype=h)],
     {"group_mode": 1, "group_index": torch.tensor([3])}),
    ("input_ids: is given", "npu_moe_gating_top_k", [torch.ones(3, 8), 2],
     {"input_ids": torch.zeros(3, dtype=i4), "tid2eid": torch.zeros(4, 2, dtype=i4)}),
])
def test_not_near(says, name, values, keywords):
    with pytest.raises(NotImplementedError, match=f"^{says}; npuquant has near values of .* only$"):
        getattr(stand_in, name)(*values, **keywords)
    assert _near.take_report() == ""
    stand_in.install(values="zeros")
    getattr(stand_in, name)(*values, **keywords)


def test_operators_without_near_values():
    calls = [("npu_swiglu", [torch.ones(2, 4)]), ("npu_clipped_swiglu", [torch.ones(2, 4)])]
    for values, offers in ("near", [None, False]), ("exact", [True, False]):
        stand_in.install(values=values)
        for (name, tensors), offer in zip(calls, offers):
            if offer is None:
                assert getattr(stand_in, name)(*tensors).any()
                continue
            with pytest.raises(NotImplementedError) as raised:
                getattr(stand_in, name)(*tensors)
            text = str(raised.value)
            assert ("values=\"near\"" in text) == offer and "values=\"zeros\"" in text
            assert text.endswith(f"a test can replace it: monkeypatch.setattr(\"torch_npu.{name}\", ...)")


def test_strict(random):
    """Arguments that the series A2 and A3 ignore change nothing."""
    x = random(3, 16, dtype=h)
    expected = stand_in.npu_dequant_swiglu_quant(x, quant_mode=1)
    stand_in.install(values="near", strict=True)
    made = stand_in.npu_dequant_swiglu_quant(x, quant_mode=1, dst_type=291, activate_dim=0, round_mode=3)
    assert all(map(torch.equal, made, expected))


def test_gradients():
    """Results are new tensors without gradient."""
    x = torch.ones(2, 4, requires_grad=True)
    assert not stand_in.npu_swiglu(x).requires_grad
    assert stand_in.npu_swiglu_quant(x, quant_mode=1)[0].eq(127).all()


# ---- the report ------------------------------------------------------------------------------------------------------

SCRIPT = """\
import torch
import torch_npu

x = torch.ones(2, 4).npu()
for _ in range(3):
    torch_npu.npu_swiglu(x)
torch.ops.npu.npu_swiglu(x)
torch_npu.npu_swiglu(x), torch_npu.npu_gelu(x)
torch_npu.npu_swiglu(x)
torch_npu.npu_swiglu(x)
"""
REPORT = """\
npuquant computed these operators with PyTorch's functions (values="near"):
  npu_gelu: 1 call, {0}:{1}
  npu_swiglu: 7 calls, {0}:{2}, {0}:{3}, {0}:{1} and 2 more
What depends on their results is not the device's to the bit.
"""
WORKERS = """\
import multiprocessing
import sys

import npuquant.torch_npu
import torch


def work():
    npuquant.torch_npu.install(values="near")
    torch.ops.npu.npu_gelu(torch.ones(2))


if __name__ == "__main__":
    npuquant.torch_npu.install(values="near")
    torch.ops.npu.npu_swiglu(torch.ones(2))
    worker = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    worker.start()
    worker.join()
"""


def ran(folder, *words, **environment):
    return subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=str(folder),
                          universal_newlines=True, env={**os.environ, **environment})


def test_report_of_a_script(tmp_path):
    (tmp_path / "layer.py").write_text(SCRIPT)
    done = ran(tmp_path, "-m", "npuquant.torch_npu", "--values", "near", "layer.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", REPORT.format("layer.py", 8, 6, 7))


def test_report_of_a_process(tmp_path):
    """It needs no stand-in at the end."""
    (tmp_path / "layer.py").write_text(
        f"import npuquant.torch_npu as stand_in\nstand_in.install(values='near')\n{SCRIPT}"
        "stand_in.install(values='exact')\nstand_in.uninstall()\nraise SystemExit(3)\n")
    done = ran(tmp_path, "layer.py")
    path = "layer.py" if sys.version_info < (3, 9) else tmp_path / "layer.py"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", REPORT.format(path, 10, 8, 9))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_report_of_workers(tmp_path, method):
    """Each process reports its own calls."""
    (tmp_path / "layer.py").write_text(WORKERS)
    lines = ran(tmp_path, "layer.py", method).stderr.splitlines()
    assert [line.split(",")[0] for line in lines[1::3]] == ["  npu_gelu: 1 call", "  npu_swiglu: 1 call"]
    assert len(lines) == 6


@pytest.mark.parametrize("words", [["-p", "npuquant_pytest", "--npu=near"], ["-p", "npuquant.pytest_npu"]])
def test_report_of_pytest(tmp_path, words):
    (tmp_path / "test_layer.py").write_text("def test_layer():\n    import torch, torch_npu\n\n"
                                            "    assert torch_npu.npu_swiglu(torch.ones(2, 4)).all()\n")
    done = ran(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, NPUQUANT_VALUES="near")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and done.stderr == "", done.stderr
    begin = next(i for i, line in enumerate(lines) if " npuquant " in line)
    assert lines[begin + 1].startswith("npuquant computed these operators")
    assert lines[begin + 2] == f"  npu_swiglu: 1 call, {tmp_path}/test_layer.py:4"
    assert done.stdout.count("npu_swiglu") == 1


def test_report_of_xdist():
    """pytest-xdist gives a worker's session an output, which the session that reports gets with the worker's node."""
    stand_in.npu_gelu(torch.ones(2))
    for _ in range(2):
        stand_in.npu_gelu(torch.ones(2))
    worker = SimpleNamespace(workeroutput={})
    pytest_npu.pytest_sessionfinish(SimpleNamespace(config=SimpleNamespace()))
    pytest_npu.pytest_sessionfinish(SimpleNamespace(config=worker))
    assert sorted(worker.workeroutput["npuquant"].pop("npu_gelu").values()) == [1, 2]
    assert _near.take_report() == "" and worker.workeroutput == {"npuquant": {}}
    worker.workeroutput["npuquant"]["npu_gelu"] = {"test_a.py:3": 2, "test_b.py:4": 1}
    for node in worker, SimpleNamespace(), worker:  # one of them crashed
        pytest_npu.pytest_testnodedown(node)
    assert "\n  npu_gelu: 6 calls, test_a.py:3, test_b.py:4\n" in _near.take_report()


def test_values_of_pytest(tmp_path):
    done = ran(tmp_path, "-m", "pytest", "-p", "npuquant_pytest", "--npu=some")
    assert done.returncode == 4
    assert done.stderr.strip() == "ERROR: --npu: values: is 'some'; expected 'exact', 'zeros' or 'near'"


# ---- a layer ---------------------------------------------------------------------------------------------------------


def test_layer(random):
    """A layer of experts with int8 weights and a shared one with bfloat16, against the same layer in float64."""
    tokens, hidden, inner, experts, k = 5, 32, 16, 4, 2
    x, gamma = random(tokens, hidden, dtype=bf), random(hidden, dtype=bf, low=0.5, high=1.5)
    gate = random(hidden, experts)
    up, down = (random(experts, *shape, dtype=i1, low=-128, high=127)
                for shape in ((hidden, 2 * inner), (inner, hidden)))
    shared = [random(*shape, dtype=bf, low=-0.25, high=0.25) for shape in ((hidden, 2 * inner), (inner, hidden))]
    up_scale, down_scale = random(experts, 2 * inner, low=1e-3, high=2e-3), random(experts, hidden, low=1e-3, high=2e-3)

    normal, _ = stand_in.npu_rms_norm(x, gamma)
    weights, ids, _ = stand_in.npu_moe_gating_top_k(normal.float() @ gate, k, norm_type=1)
    rows, where, counts, scale = stand_in.npu_moe_init_routing_v2(
        normal, ids, expert_num=experts, active_expert_range=[0, experts], expert_tokens_num_type=1,
        expert_tokens_num_flag=True, quant_mode=1)
    sums, = stand_in.npu_grouped_matmul([rows], [up], split_item=2, group_list=counts, group_list_type=1, group_type=0,
                                         output_dtype=i4)
    y, scale = stand_in.npu_dequant_swiglu_quant(
        sums, weight_scale=up_scale, activation_scale=scale, group_index=counts, activate_left=True, quant_mode=1)
    out, = stand_in.npu_grouped_matmul([y], [down], scale=[down_scale.to(bf)], per_token_scale=[scale], split_item=2,
                                        group_list=counts, group_list_type=1, group_type=0, output_dtype=bf)
    result = stand_in.npu_moe_token_unpermute(out, where, weights)
    result += stand_in.npu_swiglu(normal @ shared[0]) @ shared[1]
    assert result.shape == x.shape and result.dtype == bf

    v = rms_norm(exact(x), exact(gamma))[0]
    first, second = np.split(v @ exact(shared[0]), 2, -1)
    expected = silu(first) * second @ exact(shared[1])
    for token, row in enumerate(v):
        for weight, expert in zip(exact(weights)[token], ids[token].tolist()):
            first, second = np.split(row @ exact(up[expert]) * exact(up_scale[expert]), 2)
            expected[token] += weight * (silu(first) * second @ exact(down[expert]) * exact(down_scale[expert]))
    assert np.abs(exact(result) - expected).max() < 0.05 * np.abs(expected).max()
    report = _near.take_report()
    assert [line.split(":")[0].strip() for line in report.splitlines()[1:-1]] == [
        "npu_dequant_swiglu_quant", "npu_moe_gating_top_k", "npu_rms_norm", "npu_swiglu"]
    assert report.count(__file__) == 4


def test_every_operator():
    """The operators with near values are the ones that this file tests."""
    assert {name for name, row in _declared.ROWS.items() if row.near} == {
        "npu_swiglu", "npu_dequant_swiglu_quant", "npu_swiglu_quant", "npu_gelu", "npu_rms_norm", "npu_add_rms_norm",
        "npu_rms_norm_quant", "npu_add_rms_norm_quant", "npu_add_rms_norm_dynamic_quant",
        "npu_moe_gating_top_k_softmax", "npu_moe_gating_top_k", "npu_swiglu_mx_quant",
        "npu_swiglu_group_quant", "npu_rms_norm_dynamic_mx_quant",
        "npu_add_rms_norm_dynamic_mx_quant"}
    assert all(row.values is None for row in _declared.ROWS.values() if row.near)


@pytest.mark.skipif(not hasattr(torch, "compile"), reason=f"PyTorch {torch.__version__} has no torch.compile")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile(backend, random):
    torch._dynamo.reset()
    x, gamma, gating = random(4, 64), random(64), random(4, 32)

    def layer(x):
        y, root = stand_in.npu_rms_norm(x, gamma)
        codes, scale = stand_in.npu_dynamic_quant(stand_in.npu_swiglu(y))
        return [y, root, codes, scale, *stand_in.npu_moe_gating_top_k_softmax(gating, None, 4)]

    for made, expected in zip(torch.compile(layer, fullgraph=True, backend=backend)(x), layer(x)):
        assert made.dtype == expected.dtype and torch.equal(made, expected)
