# SPDX-License-Identifier: BSD-3-Clause
"""Which mistake a kernel makes: the kernels of tests/diagnosis, and operators in NumPy with one thing done otherwise."""
import ctypes
import gc
import html
import itertools
import json
import os
import re
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import dynamic_kernels
import numpy as np
import npuquant
import numpy_operators as expected
import pytest
from calls import Call, usual
from kernels import run
from npuquant import _native, _threads, testing
from npuquant._causes import diagnosis as _diagnosis
from npuquant_cli import compare
from npuquant_cli.files import Tensor
from npuquant_facts import operators
from numpy_operators import f4
from test_tensors import Forwarder, Producer
from test_verdicts import moved

OPERATORS = {name: getattr(npuquant, name) for name in _diagnosis._steps()}
#: On hard inputs.
CALLS = [(usual(name).function.__name__, usual(name).hard_call) for name in operators.OPERATORS]
CALLS += [(name, npuquant.hard_inputs(name, shape, **arguments).call) for name, shape, arguments in (
    ("npu_quantize", (12, 40), {"dtype": "uint8"}),
    ("npu_dynamic_quant", (12, 40), {"dst_type": "hifloat8", "dst_type_max": 15.0}),
    ("npu_dynamic_block_quant", (2, 7, 40), {"dst_type": "float8_e5m2", "row_block_size": 3, "col_block_size": 16}),
    *[("dynamic_mx_quant", (3, 70, 40), {"dst_type": dtype, "axis": axis, **options}) for dtype, axis, options in (
        ("float4_e2m1fn_x2", -1, {"scale_alg": 2, "dst_type_max": 7.0, "round_mode": "floor"}),
        ("float8_e5m2", 1, {"scale_alg": 1, "max_low_bound": 0.5, "bad_groups": 1, "dtypes": {"input": "bfloat16"}}),
        ("float4_e1m2fn_x2", 0, {"small_groups": 2, "dtypes": {"input": np.float16}}))],
    *[("anti_mx_quant", (3, 70, 40), {"src_type": source, "dst_type": dtype, "axis": axis, "block_size": block})
      for source, dtype, axis, block in (("float4_e1m2fn_x2", "float32", -1, 32), ("float8_e5m2", "float16", 1, 64),
                                         (296, 15, 0, 32))],
    ("npu_quantize", (12, 40), {"dtype": np.int32, "axis": 0, "dtypes": {"zero_points": "int8"}}),
    ("npu_quantize", (3, 4, 40), {"dtype": "quint4x2", "div_mode": False, "without": "zero_points"}),
    ("npu_group_quant", (12, 40), {"dtypes": {"x": "bfloat16", "group_index": np.int32}}),
    ("npu_trans_quant_param", (48,), {"round_mode": 1}),
    ("npu_trans_quant_param", (1, 48), {}),
    ("npu_dynamic_quant", (4, 6, 40), {"scale_form": "inverse"}),
    ("npu_dynamic_quant", (12, 40), {"dst_type": "quint4x2", "without": ("group_index",)}),
    ("npu_dynamic_quant_asymmetric", (12, 40), {"dtypes": {"x": np.float16}}),
    ("npu_dynamic_quant", (12, 40), {"dst_type": np.uint8, "without": ("smooth_scales", "group_index")}),
    ("npu_dynamic_block_quant", (12, 40), {"col_block_size": 16, "min_scale": 0.5, "dst_type": "uint8"}),
    ("row_quant", (4, 6, 40), {"rule": "moe_routing_8_5", "dtypes": {"v": "bfloat16"}}),
    ("row_quant", (48,), {"rule": "swiglu"}),
    ("npu_anti_quant", (12, 40), {"dst_dtype": "bfloat16", "dtypes": {"x": "quint4x2"}}),
    ("dequant", (12, 40), {"dtype": "bfloat16", "dtypes": {"bias": "float16"}}),
    ("requant", (12, 40), {"dtypes": {"words": "int64"}}),
)]

x = (np.arange(720, dtype=f4).reshape(12, 60) - 360) / 8  # of which half-away sees the halves
half = np.array([0.5], f4)


def names(findings):
    return [finding.name for finding in findings]


def one_in(count, cases, turn=expected.SEED):
    """One of so many cases; the suite diagnosis takes all."""
    count = 1 if "NPUQ_TEST_TIMES" in os.environ else count
    return list(cases)[turn % count::count]


def half_away(t, dtype):
    t = np.copysign(np.floor(np.abs(t.astype("f8")) + 0.5), t)
    return np.clip(t, *expected.RANGES[dtype]).astype("i8" if dtype == "quint4x2" else dtype)


AWAY = half_away(x / half, "int8")
QUANTIZE = ("npu_quantize", x, half, None, "int8")


# ---- diagnose ----


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_a_right_kernel_is_not_blamed(name, call):
    found = npuquant.diagnose(OPERATORS[name](**call), name, **call)
    assert (found.verdict, found.findings, found.first_place, found.element) == ("equal", (), (), None)
    assert str(found) == "diagnosis: nothing differs"
    assert all(result.differing == 0 < result.elements for result in found.results)


#: Verdicts on a finding that gives every element: how many decide, depends on the shape.
GIVEN = "explained", "possible"


def results_of(call, *mistakes):
    """What a kernel with these mistakes returns."""
    y, *others = run(call, set(mistakes)).values()
    return (y, *others) if others else y


def tokens(**arguments):
    return Call("dynamic_quant", (24, 96), **arguments)


def in_text(value, dtype):
    """An element of a result as a step shows it."""
    if value.dtype == np.int64:
        return f"0x{value.view('u8'):016X}"
    if dtype in ("float4_e2m1fn_x2", "float4_e1m2fn_x2"):
        return f"(0x{value:X})"
    if dtype == "bfloat16" or dtype in expected.SMALL or value.dtype.kind == "f":
        return f"(0x{int.from_bytes(value.tobytes(), sys.byteorder):0{2 * value.itemsize}X})"
    return str(value)


@pytest.mark.parametrize(
    ("mistake", "operator", "arguments"),
    [
        ("half-away", "quantize", {}),
        ("nibbles-swapped", "quantize", {"dtypes": {"x": "float16"}, "div_mode": False, "dtype": "quint4x2"}),
        ("group-late", "group_quant", {"dtypes": {"x": "bfloat16"}}),
        ("no-flag", "trans_quant_param", {"round_mode": 1}),
        ("smooth-left-out", "dynamic_quant", {"dtype": "uint8"}),
        ("scale-divided", "dynamic_quant", {}),
        ("min-scale-ignored", "dynamic_block_quant", {"block": 24, "min_scale": 20.0, "dtype": "uint8"}),
        ("product-float32", "row_quant", {"rule": "grouped_swiglu"}),
        ("offset-sign", "dynamic_quant_asymmetric", {}),
        ("scaled-before-offset", "anti_quant", {"dtype": "bfloat16"}),
        ("row-scale-first", "dequant", {"dtype": "float16", "dtypes": {"bias": "float32"}}),
        ("fused", "dequant", {"dtype": "float32", "dtypes": {"bias": "float32"}, "without": "activation_scale"}),
        ("all-scale-bits", "requant", {"dtype": "float16", "dtypes": {"words": "int64"}}),
    ],
)
def test_what_a_diagnosis_has(mistake, operator, arguments):
    """Of each operator. tests/diagnosis/test_hard.py asserts that each mistake is named."""
    call = Call(operator, (96,) if operator == "trans_quant_param" else (24, 96), **arguments)
    elements = call.changed[mistake]
    assert elements > 0 and call.alike(mistake) == [mistake]
    right, wrong = run(call, set()), run(call, {mistake})
    found = call.diagnosis(wrong)
    assert found.verdict in GIVEN and names(found.first_place) == [mistake]
    assert found.findings[0].explained == elements
    assert (found.findings[0].unexplained, found.findings[0].newly_wrong) == (0, 0)
    assert [result.name for result in found.results] == list(wrong)
    assert sum(result.differing for result in found.results) == elements
    assert re.match(f"diagnosis: (possibly )?{mistake}: explains {elements} of {elements} ", str(found))
    assert found.findings[0].hypotheses[0] in npuquant.hypotheses(call.function)
    element = found.element
    assert element.hypothesis == element.dump != element.definition
    assert element.steps and all(step.definition or step.hypothesis for step in element.steps)
    for results, text in (right, element.definition), (wrong, element.dump):
        values, dtype = results[element.result], None
        if element.result == "y":
            dtype = call.arguments.get("dtype")
            values = expected.unpack(values) if dtype == "quint4x2" else values
        assert text.endswith(in_text(values[element.index], dtype))


PLAIN = {"without": ("smooth_scales", "group_index")}


@pytest.mark.parametrize("operator, arguments, kinds", [
    ("dynamic_quant", PLAIN, ("least", "least-m", "added", "added-m", "divided-m")),
    ("dynamic_quant_asymmetric", PLAIN, ("least", "added")),
    ("dynamic_block_quant", {"block": 32}, ("least", "least-m", "added", "added-m", "divided-m")),
    ("row_quant", {"rule": "swiglu"}, ("least", "least-m", "added", "added-m")),
])
@pytest.mark.parametrize("bound", [3e-9, 1e-4, 2.5e-7, 1.23456e-6, 2.0**-14])
def test_any_bound_is_named(operator, arguments, kinds, bound, monkeypatch):
    """On rows of all sizes, some of zeros. The number is that of the kernel."""
    monkeypatch.setitem(dynamic_kernels.BOUNDS, "other", bound)
    call = Call(operator, (48, 64), **arguments)
    rng = np.random.default_rng(1)
    sizes = np.where(np.arange(48) % 9 == 0, 0, 10 ** -rng.uniform(0, 12, 48))[:, None]
    call.inputs["x"] = (rng.normal(size=(48, 64)) * sizes).astype(f4)
    for kind in kinds:
        found = call.diagnosis(run(call, {f"{kind}-other"}))
        named = {each.name: each.bound for each in found.first_place}  # a scale can be the bound times DMAX, too
        assert (found.verdict, found.findings[0].bound, named[f"{kind}-other"]) == ("explained", bound, bound)
        assert f"In this dump the number is {bound}." in str(found)
        assert found.to_dict()["findings"][0]["bound"] == bound
    alone = np.flatnonzero(sizes == 0)[:1]  # one wrong scale is no bound
    results = run(call, set())
    results["scale"][alone] = 1.23456e-6
    assert not any(each.bound for each in call.diagnosis(results).first_place)


@pytest.mark.parametrize("operator, kinds", [
    ("dynamic_quant", ("range-clipped", "range-clipped-divided")),
    ("dynamic_quant_asymmetric", ("range-clipped",)),
])
@pytest.mark.parametrize("number", [0.9, 0.5, 1.05, 0.8125])
def test_any_share_of_the_range_is_named(operator, kinds, number, monkeypatch):
    monkeypatch.setattr(dynamic_kernels, "CLIPPED", number)
    call = Call(operator, (48, 64), **PLAIN)
    call.inputs["x"] = np.random.default_rng(1).normal(size=(48, 64)).astype(f4)
    for kind in kinds:
        found = call.diagnosis(run(call, {kind}))
        named = {each.name: each.bound for each in found.first_place}  # a division may give the same
        assert (found.verdict, named[kind], set(named.values())) == ("explained", number, {number})


def test_to_dict():
    call = tokens()
    said = call.diagnose(run(call, {"scale-divided"}))
    assert sorted(said) == ["admissible", "device_weight", "element", "findings", "first_place", "format", "results",
                            "untried_pairs", "verdict"]
    assert (said["first_place"], said["untried_pairs"]) == (1, 0)
    for finding in said["findings"]:
        assert sorted(set(finding) - {"layout"}) == ["explained", "hypotheses", "newly_wrong", "unexplained",
                                                           "weight"]
        assert all(sorted(hypothesis) == ["advice", "name", "what"] for hypothesis in finding["hypotheses"])
    assert sorted(said["element"]) == ["definition", "dump", "hypothesis", "index", "name", "result", "steps"]
    assert said["element"]["name"] == "scale-divided"
    said = call.diagnose(run(call, set()))
    assert (said["verdict"], said["findings"], "element" in said) == ("equal", [], False)


def test_scales_as_words():
    """The operator refuses words that hold the scales' bits only; such a result is explained all the same."""
    sums = np.arange(512, dtype="i4").reshape(8, 64)
    call = npuquant.requant, sums, np.full(64, f4(0.01)).view("u4").astype("i8")
    found = npuquant.diagnose((sums * f4(0.01)).astype("f2"), *call, dtype="float16")
    assert names(found.first_place) == ["all-scale-bits"]
    with pytest.raises(npuquant.NpuquantError, match="expected bit 46 to be 1"):
        npuquant.explain(*call, at=(0, 0))


def test_two_mistakes_at_once():
    call = Call("group_quant", (24, 96))
    found = call.diagnosis(run(call, {"symmetric-range", "group-late"}))
    assert found.verdict == "explained"
    assert [each.name for each in found.first_place[0].hypotheses] == ["symmetric-range", "group-late"]
    assert found.first_place[0].name == "symmetric-range and group-late" in str(found)


@pytest.mark.parametrize(("mistake", "rule"), [
    ("scale-is-factor", "swiglu"), ("other-form", "add_rms_norm"), ("division", "dequant_swiglu"),
    *((rule.replace("_", "-"), rule) for rule in ("moe_routing", "moe_routing_8_5", "grouped_swiglu")),
])
def test_other_operators(mistake, rule):
    """Those that end like dynamic_quant, except some bits: test_operators.py has the results."""
    tokens = np.float16([[26, 44.75, -10.625, 22.375], [-30.25, 35.75, -5.375, 17.875], [31.75, -17.125, -4.75, 28.75],
                         [-22.75, 32.75, -24.375, -9.125], [2.25, -1, .5, 0], [3.25, -1, .5, 0]])
    found = npuquant.diagnose(npuquant.row_quant(tokens, rule), "npu_dynamic_quant", tokens)
    verdicts = ["admissible"] if mistake == "division" else GIVEN  # a device may have moved one quotient
    assert found.verdict in verdicts and found.findings[0].name == mistake


# Mistakes of public reports, made again. docs/diagnose.md describes them.


def test_float16_truncated():
    """microsoft/onnxruntime pull request 32452: a cast where QuantizeLinear rounds."""
    values, scales = np.linspace(-9, 9, 4096).astype("f2"), np.array([0.0999755859375], "f2")
    values[:2] = [0.050018310546875, -0.050018310546875]
    y = (values.astype(f4) / scales.astype(f4)).astype("i1")
    assert y[:2].tolist() == [0, 0]
    found = npuquant.diagnose(y, "npu_quantize", values, scales, None, "int8", 0)
    assert str(found).startswith("diagnosis: truncate: ")


def test_tail_rounds_half_away():
    """microsoft/onnxruntime pull request 28606: vectors of 16 round halves to even, the rest with std::round()."""
    values = np.random.default_rng(1).integers(-400, 400, (64, 40)).astype(f4) / 4
    t = values * 2 + 128
    t[:, :32] = np.rint(t[:, :32])
    y = np.clip(np.floor(t + 0.5), 0, 255).astype("u1")
    found = npuquant.diagnose(y, "npu_quantize", values, half, np.array([128], "u1"), "uint8")
    assert str(found).startswith("diagnosis: half-away in columns 32 to 39")


def test_factor_one_unit_high():
    """sgl-project/sglang pull request 33533: a fast division gives DMAX / m one unit too high."""
    values = np.random.default_rng(1).standard_normal((512, 256)).astype("f2").astype(f4)
    largest = np.abs(values).max(axis=1, keepdims=True)
    y = np.rint(values * np.nextafter(f4(127) / largest, f4(np.inf))).astype("i1")
    found = npuquant.diagnose((y, (largest * (f4(1) / f4(127))).reshape(-1)), "npu_dynamic_quant", values.astype("f2"))
    assert str(found).startswith("diagnosis: within the device's division")
    assert found.to_dict()["element"]["name"] == "quotient one unit higher"


def test_a_mistake_in_a_part():
    y = npuquant.npu_quantize(*QUANTIZE[1:])
    for where, part in (np.s_[:, 48:], "columns 48 to 59"), (np.s_[0:4], "rows 0 to 3"), (np.s_[4], "row 4"):
        actual = y.copy()
        actual[where] = np.trunc(x[where] / half).clip(-128, 127)
        assert npuquant.diagnose(actual, *QUANTIZE).findings[0].name == f"truncate in {part}"


def test_noise_is_explained_by_nothing():
    noise = np.random.default_rng(1).integers(-128, 128, size=x.shape, dtype="i1")
    found = npuquant.diagnose(noise, *QUANTIZE)
    assert (found.verdict, found.first_place, found.element.hypothesis) == ("none", (), None)
    assert found.element.dump == str(noise[found.element.index])
    assert str(found).startswith(
        "diagnosis: none of the hypotheses explains this\n"
        f"  What differs: {found.results[0].differing} elements of y in all 12 rows and all 60 columns.\n")


def test_what_remains():
    actual = AWAY.copy()
    actual[2, 3] ^= 1
    found = npuquant.diagnose(actual, *QUANTIZE)
    differ = found.results[0].differing
    assert (found.verdict, found.first_place, found.findings[0].unexplained) == ("partly", (), 1)
    assert str(found).startswith(f"diagnosis: half-away: explains {differ - 1} of {differ} differing")
    assert "\n  What remains: 1 element of y in row 2 of 12 and column 3 of 60.\n" in str(found)
    remainder = found.to_dict()["remainder"]
    assert (remainder["y"], remainder["rows"]["first"], remainder["columns"]["first"]) == (1, [2], [3])


def test_overwritten_column():
    """A column of one value is no mistake there, though offset-negated would give it: all clamp to 0."""
    values = f4(np.random.default_rng(1).normal(size=(20, 40)))
    call = "npu_quantize", values, f4([0.05]), np.array([100], "u1"), "uint8"
    actual = npuquant.npu_quantize(*call[1:])
    actual[:, 5] = 0
    assert names(npuquant.diagnose(actual, *call).first_place) == ["constant-columns"]


def test_same_results():
    """The diagnosis names all mistakes that fit."""
    values = f4([[0.5, 1.5, 2.5, 4.5, 6.5, 8.5]])
    found = npuquant.diagnose(np.int8([[1, 2, 3, 5, 7, 9]]), "npu_quantize", values, f4([1]), None, "int8")
    assert names(found.first_place)[:5] == ["half-away", "half-up", "half-added-up", "half-added-away", "ceiling"]
    assert "  On these inputs the same bits come from half-up, half-added-up, half-added-away, ceiling" in str(found)


def test_steps_that_are_not_done():
    call = Call("dequant", (24, 96))
    text = str(call.diagnosis(run(call, {"row-scale-left-out"})))
    assert re.search(r"\n  \* activation scale +\S+ \(0x[0-9A-F]{8}\)  +-\n", text)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (7,), (1, 2, 1, 2, 1, 2, 3, 4)])
def test_shapes(shape):
    call = "npu_quantize", np.full(shape, -300, f4), f4([1]), None, "int8", 0
    found = npuquant.diagnose(np.full(shape, -127, "i1"), *call)
    assert "symmetric-range" in names(found.first_place)
    assert found.element.index == (0,) * len(shape)


def test_results_that_are_not_compared():
    call = tokens()
    y, scale = results_of(call, "scale-divided")
    same_scale = ["moe-routing", "moe-routing-8-5", "grouped-swiglu"]  # which have other y
    for actual, compared, others in (((y, scale), ["y", "scale"], []), ([None, scale], ["scale"], same_scale),
                                     ((y, None), ["y"], [])):
        found = npuquant.diagnose(actual, call.function, **call.hard_call)
        assert [result.name for result in found.results] == compared
        assert names(found.first_place) == ["scale-divided", *others] * ("scale" in compared)


def fewer(results):
    """The results with y, and with some of the others or all."""
    y, *others = results
    for count in range(len(others) + 1):
        for given in itertools.combinations(others, count):
            yield {name: array if name in (y, *given) else None for name, array in results.items()}


@pytest.mark.parametrize("operator", [name for name, facts in operators.OPERATORS.items() if len(facts.results) > 1])
def test_more_results_are_no_worse(operator):
    """What y alone names is named with the scales of the same kernel, too, also if the first row is right."""
    call = Call(operator, (16, 40))
    right = run(call, set())
    for mistake in one_in(6, call.mistakes):
        wrong = run(call, {mistake})
        first_right = {name: np.concatenate([right[name][:1], array[1:]]) for name, array in wrong.items()}
        alone, *others = fewer(wrong)
        if call.diagnosis(alone).verdict in GIVEN:
            assert all(call.diagnosis(results).verdict in GIVEN for results in others), mistake
        if call.alike(mistake):
            assert mistake in names(call.diagnosis(wrong).first_place), mistake
        if call.diagnosis({**dict.fromkeys(wrong), "y": first_right["y"]}).verdict in GIVEN:
            assert call.diagnosis(first_right).verdict in GIVEN, mistake


@pytest.mark.parametrize("operator", ["dynamic_quant", "dynamic_quant_asymmetric"])
@pytest.mark.parametrize(("mistake", "own", "by"), [("scale-of-row-before", 0, 1), ("scale-of-next-row", -1, -1)])
@pytest.mark.parametrize("dtype", ["int8", "quint4x2"])
def test_a_row_late(operator, mistake, own, by, dtype):
    """The first row, or the last, keeps its own scale. The kernel returns the right scales, or those that it took."""
    call = Call(operator, (24, 96), dtype=dtype)
    right, wrong = run(call, set()), run(call, {mistake})
    wrong["y"][own] = right["y"][own]
    late = {name: np.roll(array, by) for name, array in right.items() if name != "y"}
    for name, array in late.items():
        array[own] = right[name][own]
    for given in fewer({**right, "y": wrong["y"]}), fewer({**wrong, **late}):
        for results in given:
            found = call.diagnosis(results)
            assert found.verdict == "explained"
            assert re.match(f"(scale|range)-of-{mistake[9:]}-but-(first|last)$", found.findings[0].name)


def test_int4_and_strides():
    """What is compared are the values of words; a view is as good as an array."""
    call = ("npu_quantize", x[:, 2:50], half / 4, None, "quint4x2", -1, False)
    wide = np.zeros((24, 12), "i4")
    wide[::-2, ::2] = expected.pack(half_away(x[:, 2:50] * (half / 4), "quint4x2"))
    found = npuquant.diagnose(wide[::-2, ::2], *call)
    assert names(found.first_place) == ["half-away", "half-added-away"]
    assert found.results == (("y", 12 * 48, found.findings[0].explained),)


def test_bfloat16_and_dlpack():
    weights, scale = np.arange(-120, 120, dtype="i1").reshape(4, 60), np.linspace(0.1, 3, 60).astype(f4)
    exact = weights.astype(f4) * scale
    cut = (exact.view(np.uint32) >> 16).astype(np.uint16)
    for actual in (cut, Forwarder(cut)) if hasattr(cut, "__dlpack__") else (cut,):
        found = npuquant.diagnose(actual, "npu_anti_quant", weights, scale, dst_dtype="bfloat16")
        assert names(found.first_place) == ["result-truncated"]
    ml_dtypes = pytest.importorskip("ml_dtypes")
    found = npuquant.diagnose(cut.view(ml_dtypes.bfloat16), "npu_anti_quant", weights, scale, dst_dtype="bfloat16")
    assert names(found.first_place) == ["result-truncated"]


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    values = torch.arange(-20, 20) / 4
    actual = torch.floor(values + 0.5).to(torch.int8)
    found = npuquant.diagnose(actual, "npu_quantize", values, torch.ones(1), None, torch.qint8, 0)
    assert names(found.first_place)[0] == "half-up"


def test_an_input_is_taken_once():
    """There is no second capsule."""
    scales = Producer(half)
    assert npuquant.diagnose(AWAY, "npu_quantize", x, scales, None, "int8").first_place
    assert scales.was_given_back()


def test_quant_matmul():
    rng = np.random.default_rng(2)
    x1, x2 = rng.integers(-128, 128, size=(3, 5, 32), dtype="i1"), rng.integers(-128, 128, size=(32, 24), dtype="i1")
    scale, rows, bias = rng.random(24).astype(f4), rng.random(5).astype(f4), rng.integers(-9, 9, size=24, dtype="i4")
    actual = expected.quant_matmul(x1, x2, scale, None, np.broadcast_to(rows, (3, 5)), None, "float16")
    for batches, given in ((x1, bias), (x1[:1], bias.reshape(1, 1, 24))):
        found = npuquant.diagnose(actual[:len(batches)], npuquant.npu_quant_matmul, batches, x2, scale,
                                  pertoken_scale=rows, bias=given, output_dtype="float16")
        assert names(found.first_place) == ["bias-left-out"] and len(found.element.index) == 3
    found = npuquant.diagnose(npuquant.npu_quant_matmul(x1, x2, scale / 200), npuquant.npu_quant_matmul, x1, x2,
                              scale / 200, offset=f4([3]), bias=100 * bias)
    assert names(found.first_place) == ["offset-left-out and bias-left-out"]
    with pytest.raises(ValueError, match=r"\Aoutput_dtype: is int32, whose sums have no steps behind them"):
        npuquant.explain("npu_quant_matmul", x1, x2, scale, output_dtype="int32", at=(0, 0, 0))
    for batches in (x1, x1[:0]):
        many = np.zeros((len(batches), 1, 24), "i4")
        with pytest.raises(ValueError, match=r"\Abias: has a row for each batch; expected one dimension"):
            npuquant.explain("npu_quant_matmul", batches, x2, scale, bias=many, at=(0, 0, 0))


def saturated(sums):
    return np.clip(sums, -32768, 32767)


def stepwise(a, b):
    sums = 0
    for k in range(a.shape[-1]):
        sums = saturated(sums + a[..., k, None] * b[k])
    return sums


def overlapping(a, b, tile):
    whole = a.shape[-1] // tile * tile
    return a[..., :whole] @ b[:whole] + a[..., -tile:] @ b[-tile:]


#: The sums of faulty products, from int64, and the bits of an element.
PRODUCTS = {
    "sums-saturated": lambda a, b, bits: stepwise(a, b),
    "sums-saturated-last": lambda a, b, bits: saturated(a @ b),
    "sums-wrapped": lambda a, b, bits: (a @ b + 32768) % 65536 - 32768,
    "k-tail-16-left-out": lambda a, b, bits: a[..., :112] @ b[:112],
    "k-tail-32-left-out": lambda a, b, bits: a[..., :96] @ b[:96],
    "k-tail-64-left-out": lambda a, b, bits: a[..., :64] @ b[:64],
    "k-tail-16-overlaps": lambda a, b, bits: overlapping(a, b, 16),
    "k-tail-32-overlaps": lambda a, b, bits: overlapping(a, b, 32),
    "k-tail-64-overlaps": lambda a, b, bits: overlapping(a, b, 64),
    "k-first-left-out": lambda a, b, bits: a[..., 1:] @ b[1:],
    "k-last-left-out": lambda a, b, bits: a[..., :-1] @ b[:-1],
    "k-twice": lambda a, b, bits: 2 * (a @ b),
    "x1-unsigned": lambda a, b, bits: np.where(a < 0, a + 2**bits, a) @ b,
    "x2-unsigned": lambda a, b, bits: a @ np.where(b < 0, b + 2**bits, b),
    "x1-zero-point": lambda a, b, bits: (a + 2**bits // 2) @ b,
    "x2-zero-point": lambda a, b, bits: a @ (b + 2**bits // 2),
    "x2-transposed": lambda a, b, bits: a @ b.T,
}


def multiplied(x1, x2, sums, bits=8, **options):
    """The call, and the results of a product with these sums."""
    rng = np.random.default_rng(3)
    scale, rows, bias = rng.uniform(1, 2, x2.shape[1]).astype(f4) / 2000, rng.uniform(1, 2, x1.shape[-2]).astype(f4), None
    if options.pop("bias", False):
        bias = rng.integers(-999, 999, x2.shape[1], dtype="i4")
    sums = sums(x1.astype("i8"), x2.astype("i8"), bits).astype("i4")
    if "output_dtype" in options:
        options["pertoken_scale"] = rows
        actual = npuquant.dequant(sums, scale, np.broadcast_to(rows, sums.shape[:-1]), bias, dtype=options["output_dtype"])
    else:
        actual = npuquant.requant(sums, npuquant.npu_trans_quant_param(scale), bias)
    return actual, scale, {**options, "bias": bias}


@pytest.mark.parametrize("mistake", PRODUCTS)
@pytest.mark.parametrize(("shape", "options"), [((12, 120), {"output_dtype": "float16", "bias": True}),
                                                ((3, 4, 120), {"bias": True}), ((12, 120), {})])
def test_a_mistake_in_a_product_is_named(mistake, shape, options):
    rng = np.random.default_rng(2)
    x1, x2 = rng.integers(-128, 128, shape, dtype="i1"), rng.integers(-128, 128, (120, 120), dtype="i1")
    actual, scale, given = multiplied(x1, x2, PRODUCTS[mistake], **options)
    found = npuquant.diagnose(actual, "npu_quant_matmul", x1, x2, scale, **given)
    assert (found.verdict, names(found.first_place)[0]) == ("explained", mistake)
    assert found.findings[0].hypotheses[0] in npuquant.hypotheses("npu_quant_matmul")
    assert found.element.hypothesis == found.element.dump != found.element.definition
    assert found.findings[0].explained == found.results[0].differing


def test_products_of_int4():
    rng = np.random.default_rng(2)
    x1, x2 = rng.integers(-8, 8, (12, 120)), rng.integers(-8, 8, (120, 120))
    for mistake in PRODUCTS:
        actual, scale, given = multiplied(x1, x2, PRODUCTS[mistake], 4, output_dtype="float16")
        found = npuquant.diagnose(actual, "npu_quant_matmul", expected.pack(x1), expected.pack(x2), scale, **given)
        few = mistake.startswith("sums-")  # sums of int4 have less than 16 bits here
        assert found.verdict == "equal" if few else names(found.first_place)[0] == mistake


def test_right_products_and_others():
    """Right sums, noise, and memory that was never written are no mistake in the product."""
    rng = np.random.default_rng(2)
    x1, x2 = rng.integers(-128, 128, (12, 40), dtype="i1"), rng.integers(-128, 128, (40, 40), dtype="i1")
    for sums, verdict, name in ((np.matmul, "equal", None), (lambda a, b: rng.integers(-99999, 99999, (12, 40)), "none", None),
                                (lambda a, b: np.zeros((12, 40)), "explained", "rows-untouched")):
        actual, scale, given = multiplied(x1, x2, lambda a, b, bits, sums=sums: sums(a, b), output_dtype="bfloat16")
        found = npuquant.diagnose(actual, "npu_quant_matmul", x1, x2, scale, **given)
        assert (found.verdict, names(found.first_place)[:1]) == (verdict, [name] * (name is not None))
    only = set(npuquant.hypotheses("npu_quant_matmul")) - set(npuquant.hypotheses("dequant") + npuquant.hypotheses("requant"))
    assert {each.name for each in only} == set(PRODUCTS)


TOKENS = "npu_dynamic_quant", x


@pytest.mark.parametrize(("error", "says", "actual", "call"), [
    (TypeError, ": is list; expected a NumPy array or an object with __dlpack__", [1], QUANTIZE),
    (TypeError, ": is NoneType; expected a NumPy array or an object with __dlpack__", None, QUANTIZE),
    (TypeError, ": is float32; expected int8", np.zeros((12, 60), f4), QUANTIZE),
    (TypeError, ": is uint8; expected int8", np.zeros((12, 60), "u1"), QUANTIZE),
    (TypeError, ": is a masked array; expected one without a mask", np.ma.zeros((12, 60), "i1"), QUANTIZE),
    (ValueError, ": has the shape (60, 12); expected (12, 60)", np.zeros((60, 12), "i1"), QUANTIZE),
    (ValueError, ": has the shape (720,); expected (12, 60)", np.zeros(720, "i1"), QUANTIZE),
    (TypeError, ": is ndarray; expected a tuple of 2, as npu_dynamic_quant() returns, with None for what", AWAY, TOKENS),
    (TypeError, ": is tuple; expected a tuple of 2", (AWAY, None, None), TOKENS),
    (ValueError, ": has None only; expected an array or more", (None, None), TOKENS),
    (TypeError, "[1]: is float64; expected float32", (AWAY, np.ones(12)), TOKENS),
    (ValueError, "[1]: has the shape (12, 1); expected (12,)", (None, np.ones((12, 1), f4)), TOKENS),
])
def test_what_is_not_comparable(error, says, actual, call):
    for function in npuquant.diagnose, testing.assert_equal:
        with pytest.raises(error, match=rf"\Aactual{re.escape(says)}"):
            function(actual, *call)


def test_types_that_are_not_comparable():
    for columns, hint in ((8, "; words of eight int4 are the result of quint4x2"), (24, "")):
        with pytest.raises(TypeError, match=rf"\Aactual\[0\]: is int32; expected int8{hint}\Z"):
            npuquant.diagnose((np.zeros((4, 1), "i4"), None), "npu_dynamic_quant", np.ones((4, columns), f4))
    swapped = np.dtype("u2").newbyteorder()
    with pytest.raises(TypeError, match=rf"\Aactual: is {swapped.str}; expected bfloat16 \(or its bits as uint16\)\Z"):
        npuquant.diagnose(np.zeros(3, swapped), "npu_anti_quant", np.zeros(3, "i1"), half, dst_dtype="bfloat16")


def test_any_layout_is_compared(monkeypatch):
    """A view that is not in C order, or whose elements do not lie where their type wants them, as in parts of files."""
    taken = []
    diagnose = _native.diagnose
    monkeypatch.setattr(_native, "diagnose", lambda call, arrays, threads: taken.extend(arrays)
                        or diagnose(call, arrays, threads))
    values = npuquant.npu_anti_quant(AWAY, np.ones(60, f4), dst_dtype="float32")
    misaligned = np.frombuffer(b"-" + values.tobytes(), f4, offset=1).reshape(values.shape)
    assert not misaligned.flags.aligned
    for actual in (misaligned, np.asfortranarray(values), np.repeat(values, 2, axis=1)[:, ::2]):
        found = npuquant.diagnose(actual, "npu_anti_quant", AWAY, np.ones(60, f4), dst_dtype="float32")
        assert found.verdict == "equal"
        assert taken[-1].flags.aligned and taken[-1].flags.c_contiguous


def test_calls_that_are_refused():
    """As the operator refuses them, and nothing is kept for the next call."""
    actual = np.zeros(x.shape, "i1")
    with pytest.raises(npuquant.NpuquantError, match=r"\Aquantize: axis: is 7;"):
        npuquant.diagnose(actual, "npu_quantize", x, np.ones(60, f4), None, "int8", 7)
    with pytest.raises(TypeError, match=r"\Ascales: is float64, which npuquant does not implement; expected float32"):
        npuquant.diagnose(actual, "npu_quantize", x, np.ones(1), None, "int8")
    with pytest.raises(TypeError, match="npu_quantize\\(\\) got an unexpected keyword argument 'axes'"):
        npuquant.diagnose(actual, "npu_quantize", x, half, None, "int8", axes=1)
    with pytest.raises(TypeError, match=r"\Aout: is given; expected None"):
        npuquant.diagnose(actual, "npu_quantize", x, half, None, "int8", out=actual)
    for operator in ("quantize", "version", np.zeros(3), None, npuquant.version, npuquant.diagnose):
        for call in (lambda: npuquant.diagnose(actual, operator, x), lambda: npuquant.hypotheses(operator),
                     lambda: npuquant.explain(operator, x, at=0), lambda: npuquant.hard_inputs(operator, (3,))):
            with pytest.raises(ValueError, match=r"\Aoperator: is .*; expected one of anti_mx_quant, dequant, (dynamic_\w+, )+npu_"):
                call()
    assert _threads._kept.get() is None


def test_a_diagnosis_is_neither_true_nor_false():
    with pytest.raises(TypeError, match="see verdict"):
        assert npuquant.diagnose(AWAY, *QUANTIZE)


def test_html():
    """Everything is there, and escaped: "use <, not <=" is an advice."""
    table = _diagnosis._table(["<"], [("&", None)])
    assert table == "<table><tr><th>&lt;</th></tr><tr><td>&amp;</td><td></td></tr></table>"
    call = Call("group_quant", (24, 96))
    found = call.diagnosis(run(call, {"group-late"}))
    assert found.findings[0].name == "group-late"
    page = found._repr_html_()
    assert "use &lt;, not &lt;=" in page and "<=" not in page
    for text in ("group-late", "explained", "newly wrong", *map(str, found.findings[0][1:4]), found.element.dump,
                 *(step.definition for step in found.element.steps)):
        assert html.escape(text) in page
    for page in (page, npuquant.hard_inputs("dequant", (4, 8))._repr_html_(),
                 npuquant.diagnose(np.zeros((12, 60), "i1"), *QUANTIZE)._repr_html_(),
                 npuquant.explain(*QUANTIZE, at=[(0, 1), (2, 3)])._repr_html_()):
        for table in re.findall("<table>.*?</table>", page):
            rows = [row.count("<td>") + row.count("<th>") for row in table.split("<tr>")[1:]]
            assert len(rows) > 1 and len(set(rows)) == 1
        assert page.count("<table>") >= 1


# ---- explain ----


def test_explain():
    shown = npuquant.explain(npuquant.npu_quantize, *QUANTIZE[1:], at=(0, 1))
    (element,) = shown.elements
    value = x[0, 1]
    assert (element.result, element.index, element.hypothesis, element.dump) == ("y", (0, 1), None, None)
    assert element.steps[0][:2] == ("x", f"{value:.9g} (0x{value.view('u4'):08X})")
    assert element.definition == str(npuquant.npu_quantize(x, half, None, "int8")[0, 1])
    lines = str(shown).splitlines()
    assert lines[0] == "y[0, 1]" and len(lines) == len(element.steps) + 2
    several = npuquant.explain(*QUANTIZE, at=[(0, 1), (-1, -60)])
    assert [element.index for element in several.elements] == [(0, 1), (11, 0)]
    assert str(several).startswith(str(shown) + "\n\ny[11, 0]\n")
    assert [element["index"] for element in several.to_dict()] == [[0, 1], [11, 0]]


@pytest.mark.parametrize(("name", "call"), [*CALLS, ("npu_dynamic_quant", {"input": x, "quant_mode": "pertensor"})])
def test_steps_end_with_the_result(name, call):
    """All options and types of a call are those of its steps."""
    result = OPERATORS[name](**call)
    y, *parameters = result if isinstance(result, tuple) else (result,)
    dtype = call.get("dtype", call.get("dst_type", call.get("dst_dtype")))
    y = expected.unpack(y) if dtype == "quint4x2" else y
    if expected.MX_TYPES.get(dtype) == 7:
        y = np.stack([y & 15, y >> 4], axis=-1).reshape(*y.shape[:-1], -1)
    if name == "anti_mx_quant":
        dtype = {15: "bfloat16"}.get(dtype, dtype)
    places = [tuple(np.random.default_rng(i).integers(y.shape)) for i in range(20)]
    for element in npuquant.explain(name, **call, at=places).elements:
        assert element.definition.endswith(in_text(y[element.index], dtype))
        steps = {step.step: step.definition for step in element.steps}
        if "mx_quant" in name:
            at, axis = list(element.index), call.get("axis", -1)
            at[axis] //= call.get("block_size", 32)
            pair = at.copy()
            pair[axis] //= 2
            assert steps["S"] == str([*parameters, call.get("mxscale")][0][(*pair, at[axis] % 2)])
            continue
        for each, values in zip(("scale", "offset"), parameters):
            *rows, column = element.index
            if "row_block_size" in call:
                rows[-1] //= call["row_block_size"]
            index = (*rows, column // call["col_block_size"]) if "col_block_size" in call else tuple(rows)
            value = values[index] if values.size > 1 else values.flat[0]
            assert np.isnan(value) or steps[each].endswith(in_text(value, None))


def steps_at(place, name, *args, **kwargs):
    (element,) = npuquant.explain(name, *args, at=place, **kwargs).elements
    return {step.step: step.definition for step in element.steps}


def test_values():
    assert steps_at((0, 1), "npu_quantize", f4([[-1.25, 3]]), half, None, "int8") == {
        "x": "3 (0x40400000)", "scale": "0.5 (0x3F000000)", "x / scale": "6 (0x40C00000)", "round": "6",
        "saturate": "6"}
    for values, last in ((f4([[127, -2.5]]), {"round": "-2", "saturate": "-2", "as uint8, XOR 0x80": "126"}),
                         (f4([[0, 0]]), {"NaN to an integer": "0", "as uint8, XOR 0x80": "128"})):
        steps = steps_at((0, 1), "npu_dynamic_quant", values, dst_type="uint8")
        assert list(steps.items())[-len(last):] == list(last.items())


@pytest.mark.parametrize("per_tensor", [False, True])
def test_parameters_and_extremes(per_tensor):
    random = np.random.default_rng(6)
    values, smooth = (random.standard_normal((4, 3, 50)) * 9).astype(f4), (random.random((2, 50)) + 0.1).astype(f4)
    ends, row, first = np.array([5, 12]), np.s_[2:3, 1:2], (2, 1)
    options = {"smooth_scales": smooth, "group_index": ends}
    if per_tensor:  # which has no groups
        row, first = np.s_[:], (0, 0)
        options = {"smooth_scales": smooth[0], "quant_mode": "pertensor"}
    factors = smooth[0] if per_tensor else smooth[expected.group_of_rows(ends, 12)].reshape(values.shape)
    smoothed = (values * factors)[row]

    def at(element):
        where = np.unravel_index(element, smoothed.shape)
        return f"[{where[0] + first[0]}, {where[1] + first[1]}, {where[2]}]"

    steps = steps_at((2, 1, 30), "npu_dynamic_quant", values, **options)
    assert steps["m is at"] == at(np.abs(smoothed).argmax())
    assert steps["m = max |v|"].endswith(in_text(np.abs(smoothed).max(), None))
    steps = steps_at((2, 1, 30), "npu_dynamic_quant_asymmetric", values, **options)
    assert (steps["hi is at"], steps["lo is at"]) == (at(smoothed.argmax()), at(smoothed.argmin()))
    assert steps["hi"].endswith(in_text(smoothed.max(), None)) and steps["lo"].endswith(in_text(smoothed.min(), None))


def odd_dumps(right):
    """Of a result's type: its least and largest bits, NaN of several kinds, infinities, and all of them in turn."""
    infinity = {"float32": 0x7F800000, "float16": 0x7C00, "uint16": 0x7F80}.get(right.dtype.name, 1)
    sign = 1 << 8 * right.itemsize - 1
    kinds = np.array([0, sign, sign - 1, infinity, sign | infinity, infinity + 1, sign | infinity + 1, 1],
                     f"u{right.itemsize}")
    chosen = np.random.default_rng(1).integers(len(kinds), size=right.shape)
    for indices in (chosen, chosen * 0, chosen * 0 + 3, chosen % 2 + 3, chosen % 2 + 5, chosen % 4 + 3):
        yield kinds[indices].view(right.dtype).reshape(right.shape)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("number", "name", "call"), [(number, *each) for number, each in enumerate(CALLS + [
    ("npu_quantize", {"input": np.ones(shape, f4), "scales": half, "zero_points": None, "dtype": "int8"})
    for shape in ((1,), (0, 4), (1, 1))])])
def test_odd_dumps(number, name, call):
    """Nothing warns of them, and each can be told and compared."""
    result = OPERATORS[name](**call)
    results = result if isinstance(result, tuple) else (result,)
    types = [found["dtype"] for found in npuquant.diagnose(result, name, **call)._facts["results"]]
    for i, right in enumerate(results):
        for odd in one_in(3, odd_dumps(right), number):
            dump = tuple(odd if k == i else None for k in range(len(results)))
            found = npuquant.diagnose(dump if len(dump) > 1 else odd, name, **call)
            assert str(found).startswith("diagnosis: ") and json.dumps(found.to_dict()) and found.explain_verdict()
            said = compare.Comparison(Tensor(right, types[i]), Tensor(odd, types[i]), is_parameter=i > 0)
            assert said.report("y", 3).startswith("y: ") and said.remarks() is not None


def test_special_values():
    values = f4([[np.nan, 1], [0, 0]])
    steps = steps_at((0, 1), "npu_dynamic_quant", values)
    assert (steps["m = max |v|"], steps["m is at"], steps["NaN to an integer"]) == ("NaN", "[0, 0]", "0")
    assert steps_at((1, 0), "npu_dynamic_quant", values)["r = DMAX / m"] == "inf (0x7F800000)"


def test_blocks():
    values = f4([[1, 2, 8, -4, 3, 5, 2.5]])
    assert steps_at((0, 6), "npu_dynamic_block_quant", values, col_block_size=4, min_scale=50.0) == {
        "m = max |x|": "5 (0x40A00000)", "m is at": "[0, 5]", "1 / m": "0.200000003 (0x3E4CCCCD)",
        "q = (1 / m) * DMAX": "25.3999996 (0x41CB3333)", "q, at least min_scale": "50 (0x42480000)",
        "scale": "0.0199999996 (0x3CA3D70A)", "x": "2.5 (0x40200000)", "x * q": "125 (0x42FA0000)", "round": "125",
        "saturate": "125"}
    found = npuquant.diagnose((None, f4([[8 / 127, 1]])), "npu_dynamic_block_quant", values, col_block_size=4)
    assert (found.element.result, found.element.index) == ("scale", (0, 1))


def test_steps_of_rows():
    """Those of the rule: no factor where v is divided by the scale."""
    values = np.array([[31.75, -17.125, -4.75, 28.75]], np.float16)
    shown = {"m = max |v|": "31.75 (0x41FE0000)", "m is at": "[0, 0]", "v": "-17.125 (0xC1890000)"}
    assert steps_at((0, 1), "row_quant", values, "swiglu") == {
        **shown, "r = DMAX / m": "4 (0x40800000)", "scale": "4 (0x40800000)", "v * r": "-68.5 (0xC2890000)",
        "round": "-68", "saturate": "-68"}
    assert steps_at((0, 1), "row_quant", values, "moe_routing_8_5") == {
        **shown, "scale": "0.25 (0x3E800000)", "v / scale": "-68.5 (0xC2890000)",
        "to float16, towards zero": "-68.5 (0xC2890000)", "round": "-69", "saturate": "-69"}


def test_places():
    assert npuquant.explain("npu_anti_quant", np.int8(3), half, at=()).elements[0].definition.startswith("1.5 ")
    assert npuquant.explain("npu_anti_quant", np.array([1, 3], "i1"), half, at=1).elements[0].index == (1,)
    values = np.arange(-8, 8)
    words = expected.pack(values.reshape(1, 16))
    for i in (0, 7, 15):
        shown = npuquant.explain("npu_anti_quant", words, half, dst_dtype="float32", at=(0, i))
        assert shown.elements[0].definition.startswith(f"{values[i] / 2:g} ")
        call = ("npu_quantize", values[None].astype(f4), f4([1]), None, "quint4x2", 1, False)
        assert npuquant.explain(*call, at=(0, i)).elements[0].definition == str(values[i])
    for error, at in ((ValueError, 1), (ValueError, (1,)), (ValueError, (1, 2, 3)), (IndexError, (12, 0)),
                      (IndexError, (0, -61)), (TypeError, (0, 1.5)), (TypeError, ("a", 0)), (ValueError, "a")):
        with pytest.raises(error, match=r"\Aat: is .*; expected "):
            npuquant.explain(*QUANTIZE, at=at)


# ---- hard inputs ----


def test_seeds():
    """Equal seeds give equal inputs with every NumPy on every machine."""
    made = [npuquant.hard_inputs("npu_quantize", (8, 16), dtype="int8", seed=seed).inputs for seed in (5, 5, 2**64 - 1)]
    assert all(made[0][name].tobytes() == made[1][name].tobytes() for name in made[0])
    assert made[0]["input"].tobytes() != made[2]["input"].tobytes()
    sums = [sum(zlib.crc32(array.astype(array.dtype.newbyteorder("<")).tobytes())
                for array in npuquant.hard_inputs(name, (8, 48)).inputs.values())
            for name in ("npu_group_quant", "npu_dynamic_quant_asymmetric", "npu_anti_quant", "dequant", "requant")]
    assert sums == [8020625810, 7060331049, 7939657815, 10905088036, 7605266961]


def test_what_is_made():
    hard = npuquant.hard_inputs(npuquant.npu_group_quant, [8, 16], dtypes={"scale": "torch.bfloat16"},
                                without=("offset",), dst_dtype="int8")
    assert [(name, array.dtype.name, array.shape) for name, array in hard.inputs.items()] == [
        ("x", "float32", (8, 16)), ("scale", "uint16", (4, 16)), ("group_index", "int64", (4,))]
    assert (hard.operator, hard.seed, hard.arguments) == ("npu_group_quant", 1, {"dst_dtype": "int8"})
    assert hard.call == {**hard.inputs, "offset": None, "dst_dtype": "int8"}
    assert str(hard).startswith("npu_group_quant: ") and "mistakes that are possible" in str(hard)
    assert {mistake.name for mistake in hard.mistakes} <= {each.name for each in npuquant.hypotheses(hard.operator)}
    assert not {"offset-left-out", "result-truncated"} & {mistake.name for mistake in hard.mistakes}
    hard.inputs["x"][0] = 0  # arrays of the caller's
    x2 = npuquant.hard_inputs("npu_trans_quant_param", (2, 16), without=("offset",)).inputs["scale"]
    assert x2.shape == (2, 16)


@pytest.mark.parametrize(
    ("error", "says", "arguments"),
    [
        (ValueError, "operator: is npu_quant_matmul; expected what follows its sums: dequant or requant",
         {"operator": "npu_quant_matmul"}),
        (TypeError, "shape: is int; expected a tuple of integers", {"shape": 3}),
        (TypeError, "shape: is float; expected an integer", {"shape": (3, 1.5)}),
        (ValueError, "shape: has 0 dimensions; expected 1 to 8", {"shape": ()}),
        (ValueError, "shape: has 9 dimensions; expected 1 to 8", {"shape": (1,) * 9}),
        (ValueError, "shape: dimension 1 is 0; expected 1 or more", {"shape": (3, 0)}),
        (ValueError, "shape: dimension 0 is -1; expected 1 or more", {"shape": (-1, 3)}),
        (ValueError, "shape: has more values than 1048576", {"shape": (1025, 1024)}),
        (ValueError, "shape: has more values than 1048576", {"shape": (2**80, 1024)}),
        (ValueError, "shape: dimension 1 is 12; expected a multiple of 8, as words hold eight int4",
         {"operator": "npu_anti_quant", "shape": (3, 12), "dtypes": {"x": "quint4x2"}, "dtype": ...}),
        (TypeError, "dtypes: is list; expected a dictionary", {"dtypes": [1]}),
        (ValueError, "dtypes: has 'x'; expected names of input, scales, zero_points", {"dtypes": {"x": "int8"}}),
        (TypeError, "dtypes: is 'float8'; expected float32, float16, bfloat16, int8, uint8, int32, ",
         {"dtypes": {"input": "float8"}}),
        (npuquant.NpuquantError, "quantize: x: dtype is INT8", {"dtypes": {"input": "int8"}}),
        (TypeError, "without: is int; expected a name of an argument, or a tuple of names", {"without": 3}),
        (ValueError, "without: has 'scales'; expected names of zero_points", {"without": "scales"}),
        (ValueError, "without: has 'scales'; expected names of zero_points", {"without": ["scales"]}),
        (ValueError, "without: has ['bias']; expected names of bias", {"operator": "requant", "without": [["bias"]]}),
        (TypeError, "seed: is str; expected an integer", {"seed": "1"}),
        (ValueError, "seed: is negative or has more than 64 bits", {"seed": -1}),
        (ValueError, "seed: is negative or has more than 64 bits", {"seed": 2**64}),
        (TypeError, "scales: is given; expected none, as hard_inputs() makes it", {"scales": half}),
        (TypeError, "out: is given; expected none", {"out": half}),
        (TypeError, "axis: is str; expected an integer", {"axis": "1"}),
        (npuquant.NpuquantError, "quantize: axis: is 2", {"axis": 2}),
        (npuquant.NpuquantError, "quantize: axis: is -2147483648", {"axis": -2**31}),
        (TypeError, "div_mode: is ndarray; expected a bool", {"div_mode": np.ones(2)}),
        (TypeError, "dtype: is 'int9'; expected int8, uint8, int32", {"dtype": "int9"}),
    ],
)
def test_hard_inputs_that_are_refused(error, says, arguments):
    call = {"operator": "npu_quantize", "shape": (4, 8), "dtype": "int8", **arguments}
    if call["dtype"] is ...:
        del call["dtype"]
    with pytest.raises(error, match=rf"\A{re.escape(says)}"):
        npuquant.hard_inputs(call.pop("operator"), call.pop("shape"), **call)


def test_hypotheses():
    for name in OPERATORS:
        listed = npuquant.hypotheses(name)
        assert len(listed) > 5 and len(set(listed)) == len(listed)
        assert all(text for each in listed for text in each)
        assert listed == npuquant.hypotheses(OPERATORS[name])
    both = [set(npuquant.hypotheses(name)) for name in ("dequant", "requant")]
    assert set(npuquant.hypotheses("npu_quant_matmul")) > both[0] | both[1]
    assert "smooth-left-out" not in [each.name for each in npuquant.hypotheses("dequant")]


def test_hypotheses_of_8_bit_floats():
    """Those about scales and casts to small floats belong to them; those about integers and their range do not."""
    known = {each.name for each in npuquant.hypotheses("dynamic_quant_float8")}
    assert known >= {"reciprocal", "factor", "dmax-first", "scale-divided", "other-form", "range-of-first-32", "one-scale",
                     "scale-of-next-row", "range-of-tensor", "scale-power-of-2-up", "range-clipped", "smooth-left-out",
                     "half-away", "truncate", "nan-low", "nan-kept", "overflows", "fnuz", "clamp-240", "scale-240"}
    assert known.isdisjoint({"half-up", "ceiling", "wrap", "symmetric-range", "indefinite", "minus-128", "plus-128",
                             "one-step-more", "half-step-more", "one-sided-range", "signed-extreme", "negated", "division",
                             "range-clipped-divided", "moe-routing", "inverse-first"})
    assert {each.name for each in npuquant.hypotheses("npu_dynamic_quant")} > known
    of_blocks = {each.name for each in npuquant.hypotheses("dynamic_block_quant_float8")}
    assert of_blocks >= {"reciprocal", "factor", "scale-product", "other-form", "row-block-ignored", "dst-type-max-ignored",
                         "whole-row", "half-block", "range-of-next-block", "min-scale-ignored", "least-min-scale"}
    assert of_blocks.isdisjoint({"division", "one-division", "scale-divided", "ggml-q8-0", "groups-bfloat16", "flush-inputs",
                                 "flush-results", "smoothquant", "range-of-tensor"})


@pytest.mark.parametrize("dtype, most", [("float8_e4m3fn", 0), ("float8_e5m2", 0), ("hifloat8", 15)])
def test_8_bit_floats_by_found_scales(dtype, most):
    """A kernel that multiplies by DMAX / m, as for int8, and a device with another code. Values of few bits are near
    the middle of two codes more often."""
    x = expected.floats(expected.round_to(np.random.default_rng(4).normal(size=(64, 256)).astype(f4), "bfloat16"))
    call = {"input": x, "dst_type": dtype, "dst_type_max": most}
    y, scale = npuquant.npu_dynamic_quant(**call)
    dmax = f4(most or {"float8_e4m3fn": 448, "float8_e5m2": 57344}[dtype])
    largest = abs(x).max(axis=1, keepdims=True)
    multiplied = expected.to_small(x * (dmax / largest), dtype)
    assert (multiplied != y).any()
    found = npuquant.diagnose((multiplied, scale), "npu_dynamic_quant", **call)
    assert "factor" in [each.name for each in found.first_place]
    t = expected.divided(x, scale[:, None])
    beside = [expected.to_small(np.nextafter(t, end), dtype) for end in (f4(-np.inf), f4(np.inf))]
    moved = np.where(beside[0] != y, beside[0], beside[1])
    at = np.flatnonzero((moved != y).ravel())[0]
    dump = y.copy()
    dump.ravel()[at] = moved.ravel()[at]
    found = npuquant.diagnose((dump, scale), "npu_dynamic_quant", **call)
    assert found.verdict == "admissible" and found.admissible.unit == "element"
    dump.ravel()[at] ^= 0x04
    found = npuquant.diagnose((dump, scale), "npu_dynamic_quant", **call)
    assert found.verdict == "none" and found.admissible.wrong == 1


def test_blocks_of_8_bit_floats():
    """In blocks of three rows, the page's admissible scales; a scale of another block, and its place in x. The sixth
    quotient is a half: a kernel that rounds it away, with an admissible scale, explains what no device gives."""
    codes = np.frombuffer(bytes.fromhex("7E 79 71 72 F3 6A FD 7A"), "u1")
    x = np.array([[0x3FB0, 0x3F5E, 0x3ED6, 0x3F02, 0xBF0D, 0x3E84, 0xBFA5, 0x3F73]], "u2").repeat(3, axis=0)
    call = {"x": np.vstack([x, x]), "dst_type": "float8_e4m3fn", "row_block_size": 3, "col_block_size": 8}
    y, right = npuquant.npu_dynamic_block_quant(**call)
    assert (y == codes).all() and right.view("u4").tolist() == [[0x3B492492], [0x3B492492]]
    for bits, sixth, verdict in ((0x3B492491, 0x6B, "admissible"), (0x3B492493, 0x6A, "admissible"),
                                 (0x3B492493, 0x6B, "possible"), (0x3B492494, 0x6A, "none")):
        dump, scale = y.copy(), right.copy()
        dump[3:, 5], scale[1, 0] = sixth, np.uint32(bits).view(f4)
        found = npuquant.diagnose((dump, scale), "npu_dynamic_block_quant", **call)
        assert (found.verdict, found.admissible.unit, found.admissible.units) == (verdict, "element", 50)
        assert found.admissible.differing == 1 + 3 * (sixth != 0x6A)
        assert (found.admissible.wrong > 0) == (verdict != "admissible")
    values = np.arange(1, 65, dtype=f4).reshape(4, 16)
    call = {"x": values, "dst_type": "float8_e4m3fn", "row_block_size": 2, "col_block_size": 8}
    y, scale = npuquant.npu_dynamic_block_quant(**call)
    scale[1, 0] = f4(57) / f4(448)  # that of [3, 8], in the next block
    assert "scale[1, 0] of the dump is the scale for m = |x[3, 8]|." in str(npuquant.diagnose((y, scale),
                                                                                             "npu_dynamic_block_quant", **call))


# ---- microscaling ----


@pytest.mark.parametrize("dtype, axis", [("float8_e4m3fn", -1), ("float8_e5m2", 0), ("float4_e2m1fn_x2", 1)])
def test_conventions_of_microscaling(dtype, axis):
    """Kernels that have the options of another convention, where the call has those of FLOOR."""
    x = np.rint(np.random.default_rng(5).normal(size=(64, 192)) * 8).astype(f4)  # there are halves
    call = {"input": x, "axis": axis, "dst_type": dtype}
    rules = {"FLOOR": "", "RCEIL": "scale-rceil", "EVEN": "scale-even-below", "FBGEMM EVEN": "scale-even-below",
             "Transformer Engine": "scale-rceil", "microxcaling": "half-away"}
    for row in npuquant.mx.CONVENTIONS:
        if dtype in row.types and row.options and row.options.get("dst_type_max") != 8:
            results = npuquant.dynamic_mx_quant(x, axis=axis, dst_type=dtype, **row.options)
            found = npuquant.diagnose(results, "dynamic_mx_quant", **call)
            rule = rules[row.name]
            assert found.verdict in (("explained", "possible") if rule else ("equal",)) and found.admissible is None
            assert not rule or rule in [finding.name for finding in found.first_place]
            fit = [each["name"] for each in found.to_dict().get("conventions", [])]
            assert (row.name in fit) == bool(rule) and (not rule or row.owned in " ".join(str(found).split()))
    npuquant.testing.assert_equal(npuquant.dynamic_mx_quant(**call), "dynamic_mx_quant", **call)
    y, mxscale = npuquant.dynamic_mx_quant(**call)
    with pytest.raises(AssertionError, match=r"\Adynamic_mx_quant: \d+ of \d+ elements of scale differ\n.*scales-swapped"):
        npuquant.testing.assert_equal((y, mxscale[..., ::-1]), "dynamic_mx_quant", **call)
    with pytest.raises(TypeError, match=r"\Aactual\[1\]: is float32; expected float8_e8m0fnu \(or its codes as uint8\)"):
        npuquant.diagnose((y, mxscale.astype(f4)), "dynamic_mx_quant", **call)
    with pytest.raises(ValueError, match=r"\Aadmissible: is True; expected False, as dynamic_mx_quant has no division"):
        npuquant.testing.assert_equal((y, mxscale), "dynamic_mx_quant", admissible=True, **call)


def test_owners_of_conventions():
    """The table says who has a rule: every rule of scales has a row, but those that are mistakes everywhere."""
    known = {each.name: each.what for each in npuquant.hypotheses("dynamic_mx_quant")}
    owned = {row.mistake for row in npuquant.mx.CONVENTIONS}
    assert owned <= known.keys()
    rules = {name for name in known if name.startswith("scale-") and not name.startswith("scale-of-")}
    assert rules - owned == {"scale-emax-less", "scale-emax-more", "scale-240"}
    for row in npuquant.mx.CONVENTIONS:
        assert row.name in known[row.mistake] and row.libraries.split(", ")[0] in known[row.mistake]
    x = np.rint(np.random.default_rng(5).normal(size=(64, 6, 32)) * 8).astype(f4)  # there are powers of two
    for name, mistake, who in ("CEIL", "scale-ceil", "CEIL (torchao)"), ("NKI", "scale-floor-plus-1", "NKI (AWS's "):
        row = next(row for row in npuquant.mx.CONVENTIONS if row.name == name)
        scales = row.codes(np.abs(x).max(axis=-1), "mxfp8")
        y = npuquant.mx.encode(x * np.ldexp(f4(1), 127 - scales.astype(int))[..., None], "mxfp8").reshape(64, 192)
        found = npuquant.diagnose((y, scales.reshape(64, 3, 2)), "dynamic_mx_quant", x.reshape(64, 192),
                                  dst_type="float8_e4m3fn")
        assert found.verdict == "explained" and found.findings[0].name == mistake
        assert f", as {who}" in found.findings[0].hypotheses[0].what and "conventions" not in found.to_dict()


def test_all_of_another_convention():
    """Where a convention differs in more than a pair of mistakes explains, it is the verdict."""
    hard = npuquant.hard_inputs("dynamic_mx_quant", (64, 256), **npuquant.mx.options("RCEIL", "mxfp8"))
    floor = npuquant.mx.quantize(hard.inputs["input"], "mxfp8")
    found = npuquant.diagnose(floor, "dynamic_mx_quant", **hard.call)
    assert (found.verdict, found.findings[0].name) == ("explained", "convention")
    assert found.to_dict()["conventions"] == [
        {"name": "FLOOR", "libraries": "OCP's MX 1.0, torchao", "options": {"scale_alg": 0, "small_groups": 2, "bad_groups": 1}}]
    floor[0][5, 7] ^= 1
    found = npuquant.diagnose(floor, "dynamic_mx_quant", **hard.call)
    assert found.verdict in ("none", "partly") and "conventions" not in found.to_dict()


def test_back_from_codes():
    """Kernels that take codes of scales, their places or codes of elements for others; the steps of an element."""
    codes = np.random.default_rng(7).integers(0, 256, (8, 160)).astype(np.uint8)
    mxscale = np.random.default_rng(8).integers(96, 150, (8, 3, 2)).astype(np.uint8)
    mxscale[:2, 0] = [[0, 255], [128, 200]]
    call = {"x": codes, "mxscale": mxscale, "src_type": "float8_e4m3fn", "dst_type": "float32"}
    right = npuquant.anti_mx_quant(**call)
    npuquant.testing.assert_equal(right, "anti_mx_quant", **call)
    by_shift = (mxscale.astype("u4") << 23).view(f4).reshape(8, -1)[:, :5].repeat(32, axis=1)
    with np.errstate(all="ignore"):
        kernel = npuquant.mx.decode(codes, "float8_e4m3fn") * by_shift
    for actual, name in (
            (np.where(np.isnan(kernel), f4(np.nan), kernel), "scale-shifted"),
            (npuquant.anti_mx_quant(**{**call, "mxscale": mxscale[..., ::-1]}), "scales-swapped"),
            (npuquant.anti_mx_quant(**{**call, "mxscale": np.where(mxscale < 255, mxscale + 1, mxscale).astype("u1")}),
             "scale-bias-126"),
            (npuquant.anti_mx_quant(**{**call, "src_type": "float8_e5m2"}), "x-read-as-e5m2"),
            (npuquant.npu_anti_quant(codes.view("i1"), np.ones(1, f4), dst_dtype="float32"), None)):
        found = npuquant.diagnose(actual, "anti_mx_quant", **call)
        assert found.verdict == ("explained" if name else "none") and found.admissible is None
        assert name in (None, *(finding.name for finding in found.first_place)), found
    steps = steps_at((0, 0), "anti_mx_quant", **call)
    assert list(steps) == ["x", "S", "scale = 2^(S - 127)", "x * scale"]
    assert steps["S"] == "0" and steps["scale = 2^(S - 127)"] == "5.87747175e-39 (0x00400000)"
    assert steps_at((0, 32), "anti_mx_quant", **call)["x * scale"] == "NaN"
    with pytest.raises(ValueError, match=r"\Adtypes: has 'x'; expected none, as src_type says what codes x has"):
        npuquant.hard_inputs("anti_mx_quant", (2, 64), dtypes={"x": np.int8})
    with pytest.raises(ValueError, match=r"\Ashape: dimension 1 is 63; expected a multiple of 2, as bytes hold two elements"):
        npuquant.hard_inputs("anti_mx_quant", (2, 63), src_type="float4_e2m1fn_x2")
    known = {each.name for each in npuquant.hypotheses("anti_mx_quant")}
    assert known.isdisjoint({"scale-bfloat16", "float64", "flush-inputs", "offset-of-next", "by-dimension-0", "scale-floor"})


def test_what_is_left_of_microscaling():
    """Values in the place of codes, and where codes of scales differ that nothing explains."""
    x = np.random.default_rng(6).normal(size=(8, 128)).astype(f4)
    y, mxscale = npuquant.dynamic_mx_quant(x, dst_type="float8_e4m3fn")
    mxscale[3, 1] += np.array([3, 5], np.uint8)
    found = npuquant.diagnose((y, mxscale), "dynamic_mx_quant", x, dst_type="float8_e4m3fn")
    assert found.verdict == "none" and found.element.index == (3, 1, 0)
    assert "2 elements of scale in row 3 of 8 and columns 2 to 3 of 4" in str(found)
    known = {each.name for each in npuquant.hypotheses("dynamic_mx_quant")}
    assert known >= {"scale-floor", "scale-rceil", "small-groups-kept", "bad-groups-nan", "groups-of-64", "other-axis"}
    assert known.isdisjoint({"division", "scale-float16", "half-up", "wrap", "range-of-tensor", "least-1e-12", "one-scale"})


# ---- rows of fused operators ----


@pytest.mark.parametrize("rule", expected.ROW_RULES)
def test_rows_of_devices(rule):
    """One quotient for a row, which swiglu returns and add_rms_norm inverts, or one for each element."""
    values = npuquant.hard_inputs("row_quant", (16, 96), rule=rule, dtypes={"v": "float16"}).inputs["v"]
    right, call = npuquant.row_quant(values, rule), ("row_quant", values, rule)
    if rule == "grouped_swiglu":
        assert npuquant.diagnose(right, *call).admissible is None
        return
    y, scale = expected.row_quant(values, rule, lambda quotients: moved(quotients, 1, expected.rng))
    found = npuquant.diagnose((y, scale), *call).admissible
    by_element = rule == "dequant_swiglu" or rule.startswith("moe")
    assert (found.unit, found.units, found.wrong) == (("element", y.size, 0) if by_element else ("row", 16, 0))
    assert found.differing > 0 and (y != right[0]).any()
    assert npuquant.diagnose((y, None), *call).admissible.wrong == 0
    scale[1] = 2 * scale[1] if rule in ("swiglu", "add_rms_norm") else np.nextafter(scale[1], f4(np.inf))
    assert npuquant.diagnose((y, scale), *call).admissible.wrong == 1  # other scales are exact
    if rule == "swiglu":  # no r gives both
        assert npuquant.diagnose((y, right[1]), *call).admissible.wrong == (y != right[0]).any(axis=1).sum()


def test_rows_within_the_division():
    row = np.array([[26, 44.75, -10.625, 22.375]], np.float16)
    for rule, last, verdict in (("dynamic_quant", 63, "admissible"), ("dequant_swiglu", 64, "admissible"),
                                ("moe_routing", 64, "admissible"), ("moe_routing_8_5", 64, "admissible"),
                                ("swiglu", 63, "wrong"), ("dynamic_quant", 62, "wrong"), ("moe_routing", 62, "wrong")):
        y, scale = npuquant.row_quant(row, rule)
        y[0, 3] = last
        assert npuquant.diagnose((y, scale), "row_quant", row, rule).admissible.verdict == verdict


# ---- testing ----


def test_admissible():
    """A device's quotient one unit off: 5.5 is 5.49999952."""
    x, scales = np.float32([[5.5, 7.25, 11, 22]]), np.ones(1, np.float32)
    right = npuquant.npu_quantize(x, scales, None, np.int8)
    call = "npu_quantize", x, scales, None, np.int8
    assert npuquant.diagnose(right, *call).admissible[:3] == ("equal", "element", None)
    testing.assert_equal(right, *call, admissible=True)
    device = right - np.int8([1, 0, 0, 0])
    found = npuquant.diagnose(device, *call)
    assert found.admissible == ("admissible", "element", 4, 1, 0, 0, 0, 1, 1, False)
    wrong = npuquant.diagnose(right + np.int8([0, 1, 0, 0]), *call)
    assert (wrong.admissible.verdict, wrong.admissible.wrong) == ("wrong", 1)
    assert npuquant.diagnose(right, *call, div_mode=False).admissible is None
    with pytest.raises(ValueError, match="admissible: is True; expected False, as npu_quantize has no division"):
        testing.assert_equal(right, *call, div_mode=False, admissible=True)
    with pytest.raises(AssertionError, match="1 of 4 elements"):
        testing.assert_equal(right + np.int8([0, 1, 0, 0]), *call, admissible=True)


def device_results(share):
    """A call with x near ties of its quotients, and the results of a device that has a share of the quotients one unit
    off."""
    random = np.random.default_rng(9)
    scales = (random.random(64) + 0.5).astype(f4)
    values = (random.integers(-200, 200, (48, 64)) * f4(0.5) * scales).astype(f4)
    return np.rint(moved(values / scales, share, random)).astype("i1"), ("npu_quantize", values, scales, None, "int8")


def test_within_the_devices_division():
    device, call = device_results(share=0.06)
    found = npuquant.diagnose(device, *call)
    counted, differing = found.admissible, found.results[0].differing
    assert (found.verdict, *counted[:5]) == ("admissible", "admissible", "element", device.size, differing, 0)
    assert counted.made + counted.exact_made == differing > 30 and not counted.too_many
    says = f"Admissible for the device's vector division: {differing} of {differing} differing elements."
    assert f"\n  {says}\n" in str(found)
    testing.assert_equal(device, *call, admissible=True)
    with pytest.raises(AssertionError, match="within the device's division"):
        testing.assert_equal(device, *call)


def test_not_within_the_devices_division():
    device, call = device_results(share=1)
    found = npuquant.diagnose(device, *call)
    assert (found.verdict, found.admissible.verdict, found.admissible.too_many) == ("none", "admissible", True)
    device, call = device_results(share=0)
    found = npuquant.diagnose(half_away(call[1] / call[2], "int8"), *call)
    assert (found.verdict, found.findings[0].name, found.admissible.verdict) == ("explained", "half-away", "admissible")
    device[3, 5] += 7
    found = npuquant.diagnose(device, *call)
    assert (found.verdict, found.admissible.verdict, found.admissible.wrong) == ("none", "wrong", 1)


def test_rows_within_the_devices_division():
    values = f4([[.26586914, -.75683594, -.2454834, 1.2402344]])
    lower, same = np.int8([[27, -77, -25, 127]]), np.int8([[27, -78, -25, 127]])
    for y, scale, verdict in ((lower, 0x3C200001, "admissible"), (same, 0x3C1FFFFF, "admissible"),
                              (lower, 0x3C200000, "wrong")):
        actual = y, np.array([scale], "u4").view(f4)
        found = npuquant.diagnose(actual, "npu_dynamic_quant", values, scale_form="inverse").admissible
        assert (found.verdict, found.unit) == (verdict, "row")


def test_assert_equal():
    right = npuquant.npu_quantize(*QUANTIZE[1:])
    testing.assert_equal(right, *QUANTIZE)
    for operator in ("npu_quantize", npuquant.npu_quantize):
        with pytest.raises(AssertionError) as caught:
            testing.assert_equal(AWAY, operator, *QUANTIZE[1:])
        found = npuquant.diagnose(AWAY, *QUANTIZE)
        assert str(caught.value) == f"npu_quantize: {(AWAY != right).sum()} of 720 elements of y differ\n{found}"
    call = Call("dynamic_quant_asymmetric", (24, 96))
    with pytest.raises(AssertionError, match=r"\Anpu_dynamic_quant_asymmetric: \d+ of 24 elements of offset differ\n"):
        testing.assert_equal(results_of(call, "offset-sign"), call.function, **call.hard_call)


# ---- threads and memory ----


def test_calls_of_other_threads_are_not_kept():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(threading.get_ident).result()  # a thread from before
        with _threads.keeping() as kept:
            result = pool.submit(npuquant.npu_quantize, x, half, None, "int8").result()
            npuquant.npu_group_quant(x, x, np.array([1] * 11 + [12]))
    assert [each.name for each in kept] == ["group_quant"]
    np.testing.assert_array_equal(result, expected.quantize(x, half, None, 1, True, "int8"))


def kept_call():
    with _threads.keeping() as kept:
        npuquant.npu_quantize(*QUANTIZE[1:])
    return kept[0].call


def test_the_extension_checks_what_it_is_given():
    """It trusts its own Python with nothing that could crash."""
    call, operation = kept_call(), _native.quantize.__self__
    for error, function, arguments in (
        (ValueError, _native.diagnose, (call, (AWAY[1:].copy(),), 1)),
        ((BufferError, ValueError), _native.diagnose, (call, (AWAY[:, ::2],), 1)),
        (TypeError, _native.diagnose, (call, (1,), 1)),
        (TypeError, _native.diagnose, (call, (AWAY,), None)),
        (ValueError, _native.diagnose, (operation, (AWAY,), 1)),
        (IndexError, _native.explain, (call, 720)),
        (IndexError, _native.explain, (call, -1)),
        (ValueError, _native.explain, (operation, 0)),
        (ValueError, _native.keep, (call, (), 1)),
        (TypeError, _native.keep, (operation, (), 1)),
        (TypeError, _native.keep, (operation, QUANTIZE[1:4], 1)),
        (ValueError, _native.predict, (operation, 1)),
        (IndexError, _native.predict, (call, -2)),
        (IndexError, _native.predict, (call, len(_native.hypotheses()))),
        (ValueError, _native.predict, (call, -1, np.array([720, 0, 0, 0]))),
        (ValueError, _native.predict, (call, -1, np.array([-1, 0, 0, 0]))),
        (ValueError, _native.predict, (call, -1, np.array([0, 0, 1, 0]))),
        ((BufferError, ValueError), _native.predict, (call, -1, AWAY[:, ::2])),
        (ValueError, _native.admission, (call, (AWAY[1:].copy(),), 1)),
        (ValueError, _native.admission, (operation, (AWAY,), 1)),
        (TypeError, _native.hypotheses, (operation,)),
    ):
        with pytest.raises(error):
            function(*arguments)
    tried = _native.predict(call, -1, np.array([0, f4(70.2).view("i4"), 0, f4(2).view("i4")]))
    assert np.frombuffer(tried, np.uint64) == 35 and _native.predict(call, -1)[:8] != tried


def test_diagnoses_of_several_threads():
    call = tokens()
    results = run(call, {"scale-divided"})
    wanted = str(call.diagnosis(results))
    npuquant.set_num_threads(2)
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda _: str(call.diagnosis(results)), range(4))] == [wanted] * 4


def test_others_run_while_a_diagnosis_does():
    """Noise takes longest, as pairs are tried for it."""
    large = np.random.default_rng(3).normal(size=(64, 512)).astype(f4)
    noise = np.random.default_rng(4).integers(-128, 128, size=large.shape, dtype="i1")
    worker = threading.Thread(target=npuquant.diagnose, args=((noise, None), "npu_dynamic_quant", large))
    worker.start()
    turns = 0
    while worker.is_alive():
        time.sleep(0.001)
        turns += 1
    assert turns > 5


def allocated():
    """How many bytes this process has from malloc()."""
    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
                                                         "fsmblks", "uordblks", "fordblks", "keepcost")]

    mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if not mallinfo2:
        pytest.skip("no mallinfo2()")
    mallinfo2.restype = Info
    gc.collect()
    info = mallinfo2()
    return info.uordblks + info.hblkhd


def refused(error, function, *args, **kwargs):
    with pytest.raises(error):
        function(*args, **kwargs)


@pytest.mark.parametrize(
    "call",
    [
        lambda: npuquant.explain(*QUANTIZE, at=(0, 0)),
        lambda: npuquant.diagnose(AWAY, *QUANTIZE),
        lambda: npuquant.hard_inputs("dequant", (12, 60)),
        lambda: npuquant.hypotheses("dequant"),
        lambda: _native.admission(kept_call(), (AWAY,), 1),
        lambda: npuquant.diagnose(AWAY + np.int8(1), *QUANTIZE).to_dict()["remainder"]["clues"],
        lambda: refused(npuquant.NpuquantError, npuquant.diagnose, AWAY, *QUANTIZE[:2], half.repeat(3), *QUANTIZE[3:]),
        lambda: refused(npuquant.NpuquantError, npuquant.hard_inputs, "dequant", (12, 60), dtypes={"x": "int8"}),
        lambda: refused(ValueError, npuquant.diagnose, AWAY[1:], *QUANTIZE),
        lambda: refused(IndexError, npuquant.explain, *QUANTIZE, at=(12, 0)),
    ],
)
def test_memory_is_given_back(call):
    gc.collect()  # what earlier tests have left
    counts = [sys.getrefcount(array) for array in (AWAY, x, half)]
    for _ in range(3):
        call()
    growth = []
    for _ in range(3):  # a table of Python's own grows once, what a call keeps grows in each round
        before = allocated()
        for _ in range(10):
            call()
        growth.append(allocated() - before)
    assert min(growth) < 10 * 500, growth  # x alone has 2880 bytes
    assert [sys.getrefcount(array) for array in (AWAY, x, half)] == counts


def test_each_allocation_of_facts_may_fail(capsys):
    """Python prints what it finds wrong when an array goes."""
    testcapi = pytest.importorskip("_testcapi")
    call, errors, failed = kept_call(), 0, True
    while failed:
        testcapi.set_nomemory(errors + 1, errors + 2)
        try:
            _native.diagnose(call, (AWAY,), 1)
            failed = False
        except MemoryError:
            errors += 1
        finally:
            testcapi.remove_mem_hooks()
    assert errors > 30 and capsys.readouterr().err == ""


# ---- the command ----


def test_the_command_says_the_same(run, tmp_path):
    hard = npuquant.hard_inputs("npu_dynamic_quant", (24, 96), seed=7)
    run("hard-inputs", "dynamic-quant", "--shape", "24,96", "--seed", "7", "-o", "hard")
    manifest = json.loads((tmp_path / "hard/manifest.json").read_text())
    assert [tuple(each.values()) for each in manifest["mistakes"]] == list(hard.mistakes)
    for name, array in hard.inputs.items():
        stored = np.load(tmp_path / "hard" / f"{'x' if name == 'input' else name}.npy")
        assert (stored.dtype, stored.tobytes()) == (array.dtype, array.tobytes())

    call = ["dynamic-quant", "hard/x.npy", "--smooth-scales", "hard/smooth_scales.npy", "--group-index",
            "hard/group_index.npy"]
    places = [(0, 1), (23, 95)]
    shown = npuquant.explain(hard.operator, **hard.call, at=places)
    assert run("explain", *call, "--at", "0,1", "--at", "23,95") == f"{shown}\n"
    assert json.loads(run("explain", *call, "--at", "0,1", "--at", "23,95", "--json")) == shown.to_dict()

    y, scale = results_of(tokens(seed=7), "scale-divided")
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "scale.npy", scale)
    found = npuquant.diagnose((y, scale), hard.operator, **hard.call)
    expect = ["--expect", "y.npy", "--expect-scale", "scale.npy"]
    assert run("diagnose", *call, *expect, status=1) == f"{found}\n"
    assert json.loads(run("diagnose", *call, *expect, "--json", status=1)) == found.to_dict()
