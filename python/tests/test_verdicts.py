# SPDX-License-Identifier: BSD-3-Clause
"""How a verdict is weighed: docs/verdicts.md. Dumps of few elements, of devices, and of kernels by formulas."""
import npuquant
import numpy as np
import numpy_operators as expected
import pytest
from numpy_operators import f4
from test_report import changed, written

HALVES = "half-away", "half-added-away"


def diagnosis_of_halves(count, extra=0):
    """A kernel that rounds halves away from zero, where this shows in so many elements, none like another; others are
    changed besides."""
    x = np.zeros((4, 64), f4)
    x.flat[:count] = np.arange(count) * 2 + f4(0.5)
    y = npuquant.npu_quantize(x + f4(0.25), np.ones(1, f4), None, np.int8, div_mode=False)
    y[3, 64 - extra:] = 99
    return npuquant.diagnose(y, "npu_quantize", x, np.ones(1, f4), None, np.int8, div_mode=False)


# ---- explained, possible, partly ----


@pytest.mark.parametrize(("count", "verdict"), [(1, "possible"), (20, "possible"), (40, "explained"), (64, "explained")])
def test_elements_decide(count, verdict):
    """A half away from zero is worth a bit: 20 and how common the mistake is make it sure."""
    found = diagnosis_of_halves(count)
    assert (found.verdict, found.first_place[0].name, found.findings[0].weight["gained"]) == (verdict, HALVES[0], count)
    weight = found.findings[0].weight
    assert (weight["score"] >= 20) == (verdict == "explained")
    assert weight["score"] == pytest.approx(weight["prior"] + weight["gained"], abs=0.11)
    says = f"Only {count} element{'s decide' if count > 1 else ' decides'}: an unknown mistake may give the same."
    assert (says in str(found)) == (verdict == "possible")


def test_commonest_first():
    found = diagnosis_of_halves(64)
    priors = [finding.weight["prior"] for finding in found.first_place]
    assert priors == sorted(priors, reverse=True) and priors[0] > priors[-1]
    assert f"the same bits come from {found.first_place[1].name}" in str(found)


@pytest.mark.parametrize(("extra", "verdict"), [(1, "partly"), (2, "partly"), (32, "none")])
def test_a_little_is_left(extra, verdict):
    """One rare mistake more is likelier than another cause, if it makes little."""
    assert diagnosis_of_halves(64, extra).verdict == verdict


def test_explain_verdict():
    found = diagnosis_of_halves(30)
    first, *rows = found.explain_verdict().splitlines()
    assert "docs/verdicts.md" in first and rows[0].split()[-4:] == ["common", "for", "against", "score"]
    weight = found.findings[0].weight
    assert rows[1].split() == [HALVES[0], str(weight["prior"]), "30.0", "0.0", str(weight["score"])]
    rows = rows[:rows.index("")]
    assert rows[-1].split() == ["an", "unknown", "mistake", "-", "-", "-", "0.0"]
    assert not any("device" in row for row in rows) and found.to_dict()["device_weight"] is None


def test_m_127_is_commoner_than_float64():
    x = f4([[9, 1, -2]])
    s = f4(9) / f4(127)
    found = npuquant.diagnose((np.rint(x / s).astype("i1"), s.reshape(1)), "npu_dynamic_quant", x)
    assert (found.verdict, found.first_place[0].name) == ("possible", "scale-divided")
    assert "float64" in [finding.name for finding in found.first_place]


# ---- devices ----


def moved(quotients, share, rng):
    """Some quotients one unit off; 0, infinities and NaN stay."""
    beside = np.nextafter(quotients, np.where(rng.random(quotients.shape) < 0.5, f4(-np.inf), f4(np.inf)))
    moves = (rng.random(quotients.shape) < share) & np.isfinite(quotients) & (quotients != 0)
    return np.where(moves, beside, quotients)


def device_dump(rng, share):
    """Few values of few bits, so that ties are common: what a device returns, and the call."""
    rows, columns, kind = int(rng.integers(10, 81)), 8 * int(rng.integers(1, 9)), rng.integers(4)
    x = (rng.integers(-1000, 1001, (rows, columns)) / 256).astype("f2")
    dtype, low, high = ("quint4x2", -8, 7) if kind == 1 else ("int8", -128, 127)
    if kind > 1:
        scales = (2.0 ** rng.integers(-6, 0, columns)).astype(f4) * f4(rng.choice([1, 3, 1.1]))
        t, others = moved(x.astype(f4) / scales, share, rng), ()
        call = "npu_quantize", x, scales, None, dtype
    else:
        form = rng.choice(["product", "inverse"])
        m = np.abs(x.astype(f4)).max(axis=1)
        r = moved(f4(high) / m, share, rng)
        t, others = x.astype(f4) * r[:, np.newaxis], (m * (f4(1) / f4(high)) if form == "product" else f4(1) / r,)
        call = "npu_dynamic_quant", x, None, None, dtype, True, "pertoken", form
    y = np.clip(np.rint(t), low, high).astype("i8")
    y = expected.pack(y) if kind == 1 else y.astype("i1")
    return (y, *others) if others else y, call


def call_of(call):
    name, *arguments = call
    if name == "npu_dynamic_quant":
        return name, arguments[:1], {"dst_type": arguments[3], "scale_form": arguments[6]}
    return name, arguments, {}


def test_right_devices_are_not_blamed():
    rng = np.random.default_rng(61)
    differing = unusual = 0
    for _ in range(1000):
        actual, call = device_dump(rng, 0.06)
        name, arguments, options = call_of(call)
        found = npuquant.diagnose(actual, name, *arguments, **options)
        assert found.verdict in ("equal", "admissible", "none"), (call, found)
        assert found.admissible.wrong in (0, None)
        differing += found.verdict != "equal"
        unusual += found.verdict == "none"
    assert differing > 500 and unusual <= 3


def test_a_device_moves_few_ties():
    """Neither all ties moved, nor ties to odd, are a device's."""
    x = (np.arange(-64, 64, dtype=f4) + f4(0.5)).reshape(2, 64) * 3
    odd = (np.floor(x / 3) + (np.floor(x / 3) % 2 == 0)).astype("i1")
    for y, verdict, says in (
            (np.floor(np.abs(x / 3) + f4(0.5)) * np.sign(x), "explained", "diagnosis: half-away: "),
            (odd, "none", "diagnosis: a device's division explains each difference, but a device moves fewer quotients")):
        found = npuquant.diagnose(np.clip(y, -128, 127).astype("i1"), "npu_quantize", x, f4([3]), None, "int8")
        assert (found.verdict, found.admissible.verdict, found.admissible.too_many) == (verdict, "admissible", True)
        assert str(found).startswith(says) and found.to_dict()["device_weight"] < -100
        assert "a device without a mistake" in found.explain_verdict()


# ---- what the dump holds ----


NORMAL = (np.random.default_rng(2).normal(size=(64, 40)) * 20).astype(f4)
HELD = "npu_quantize", NORMAL, np.ones(1, f4), None, "int8", -1, False
KEPT = npuquant.npu_quantize(*HELD[1:])


@pytest.mark.parametrize(("name", "actual", "says"), [
    ("constant", changed(KEPT, np.s_[2:6, 4:36], value=7), "y is 7 in every element that differs"),
    ("clamped", np.clip(KEPT, -20, 25), "y is never less than -20 or more than 25, and just that where it should be"),
    ("constant-rows", changed(KEPT, 3, value=-128), "in y row 3 of 64 is a row of -128"),
    ("rows-elsewhere", changed(KEPT, 3, value=KEPT[1]), "in y row 3 holds row 1"),
    ("stride", written(64, 0, KEPT), "in y rows lie 64 apart and not 40"),
])
def test_what_the_dump_holds(name, actual, says):
    found = npuquant.diagnose(actual, *HELD)
    assert (found.verdict, found.findings[0].name, len(found.first_place)) == ("explained", name, 1)
    text = " ".join(str(found).split())
    assert f" {name}: the kernel leaves this: {says}. " in text and " What differs: " in text
    assert found.findings[0].explained == found.results[0].differing == found.to_dict()["remainder"]["y"]


def test_what_may_be_chance_or_saturation():
    found = npuquant.diagnose(changed(KEPT, np.s_[0, :9], value=126), *HELD)
    assert (found.verdict, found.findings[0].name) == ("possible", "constant")
    assert npuquant.diagnose(changed(KEPT, np.s_[2:6, 4:36], value=127), *HELD).verdict == "none"


@pytest.mark.parametrize(("kind", "one"), [("float16", 0x3C00), ("bfloat16", 0x3F80)])
def test_held_floats(kind, one):
    x = (np.arange(64 * 40) % 97 + 2).astype("i1").reshape(64, 40)
    y = npuquant.npu_anti_quant(x, np.ones(1, f4), dst_dtype=kind)
    y.view("u2")[:, 5] = one
    found = npuquant.diagnose(y, "npu_anti_quant", x, np.ones(1, f4), dst_dtype=kind)
    assert found.findings[0].hypotheses[0].what == "leaves this: in y column 5 of 40 is a column of 1"


# ---- numbers that are read off the dump ----

TOKENS = np.random.default_rng(79).normal(size=(32, 256)).astype(f4)
RIGHT, SCALES = npuquant.npu_dynamic_quant(TOKENS)


def codes(t):
    return np.clip(np.rint(t), -128, 127).astype("i1")


def named(actual, *call):
    found = npuquant.diagnose(actual, *call)
    return found.verdict, [finding.name for finding in found.first_place], " ".join(str(found).split())


@pytest.mark.parametrize("divides", [False, True])
def test_a_scale_from_calibration(divides):
    s = f4(0.026)
    y = codes(TOKENS / s if divides else TOKENS * (1 / s))
    verdict, names, text = named((y, np.full(32, s)), "npu_dynamic_quant", TOKENS)
    assert verdict == "explained" and names[0] in ("one-scale", "division and one-scale")
    assert "Every scale is 0.026, whatever the row: a scale from elsewhere." in text


def test_a_scale_and_an_offset_from_calibration():
    y = codes(TOKENS / f4(0.031) - 3)
    verdict, names, text = named((y, np.full(32, f4(0.031)), np.full(32, f4(-3))), "npu_dynamic_quant_asymmetric", TOKENS)
    assert (verdict, names) == ("explained", ["one-scale"])
    assert "Every scale is 0.031 and every offset -3.0, whatever the row: a scale from elsewhere." in text


def test_one_scale_with_the_right_y():
    assert named((RIGHT, np.full(32, f4(0.026))), "npu_dynamic_quant", TOKENS)[:2] == ("possible", ["one-scale-returned"])


def test_one_scale_is_said_first():
    found = npuquant.diagnose((RIGHT[::-1] ^ np.int8(5), np.full(32, f4(0.026))), "npu_dynamic_quant", TOKENS)
    assert found.verdict == "none"
    assert found.to_dict()["remainder"]["clues"][0] == "Every scale is 0.026, whatever the row: one from elsewhere."


def test_a_unit_is_no_bound():
    verdict, names, text = named((RIGHT, np.nextafter(SCALES, f4(9))), "npu_dynamic_quant", TOKENS)
    assert (verdict, names) == ("none", []) and "in steps of float32: +1 in 100 %" in text


# ---- few values ----


@pytest.mark.parametrize(("x", "y", "scale"), [(1, 0, 0.02), (1, 0, 1), (0, 1, 2), (1, 7, 0.5)])
def test_a_smoke_test_proves_nothing(x, y, scale):
    call = "npu_quantize", np.full((16, 128), x, f4), np.full(1, scale, f4), None, np.int8
    found = npuquant.diagnose(np.full((16, 128), y, "i1"), *call)
    assert found.verdict == "possible" and found.findings[0].name == "rows-untouched"
    assert "too much alike" in str(found) and all(finding.weight["gained"] <= 8 for finding in found.findings)


def test_a_dead_zone_is_no_constant():
    call = "npu_quantize", TOKENS * f4(0.3), np.full(1, 0.4, f4), None, np.int8
    y = npuquant.npu_quantize(*call[1:])
    found = npuquant.diagnose(np.where(abs(y) <= 1, 0, y).astype("i1"), *call)
    assert found.verdict == "none"
    assert "y is 0 in every element that differs, and should be -1 or 1." in found.to_dict()["remainder"]["clues"]


def test_a_row_of_zeros():
    x = np.concatenate([TOKENS[:1] * 0, TOKENS[1:2]])
    x[1, 0] = 127
    y, scale = npuquant.npu_dynamic_quant(x)
    verdict, names, _ = named((y, np.where(scale == 0, f4(1), scale)), "npu_dynamic_quant", x)
    assert (verdict, names[0]) == ("possible", "one-for-zero")


# ---- one mistake behind another ----


@pytest.mark.parametrize("seed", range(4))
def test_wrong_elements_do_not_hide_moved_ones(seed):
    """Each half is admissible by itself, but a device does not move all of them."""
    rng = np.random.default_rng(seed)
    x = (rng.integers(-300, 300, (4, 64)) / f4(4)).astype(f4)
    x[rng.random(x.shape) < 0.12] = np.nan
    q = x / f4(1.5)
    y = np.where(np.isnan(q), -128, codes(np.floor(np.nan_to_num(q) + f4(0.5)))).astype("i1")
    verdict, names, _ = named(y, "npu_quantize", x, np.full(1, 1.5, f4), None, np.int8)
    assert (verdict, names[0]) == ("possible", "half-up and nan-low")


# ---- ranges that reach into another row ----


@pytest.mark.parametrize(("name", "begin", "end"), [("range-reaches-next-row", 0, 28), ("range-begins-before", -4, 0)])
def test_windows(name, begin, end):
    x = np.random.default_rng(80).normal(size=(64, 100)).astype(f4) * np.linspace(1, 4, 64, dtype=f4)[::-1, None]
    at = (np.arange(64)[:, None] * 100 + np.arange(begin, 100 + end)).clip(0, x.size - 1)
    largest = abs(x.ravel()[at]).max(axis=1)
    y = codes(x * (f4(127) / largest)[:, None])
    found = npuquant.diagnose((y, largest * (f4(1) / f4(127))), "npu_dynamic_quant", x)
    assert (found.verdict, found.first_place[0].name) == ("explained", name)
    assert found.findings[0].window == end - begin
