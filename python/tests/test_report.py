# SPDX-License-Identifier: BSD-3-Clause
"""Text and JSON of what the extension finds."""
import json
import pathlib
import re

import numpy as np
import npuquant
import numpy_operators as expected
import pytest
from npuquant import _native, _threads
from npuquant._causes import reports as _report
from npuquant_facts.dtypes import TYPES

X = np.float32([[5.5, 7.25, 11, 22]])
CALL = "npu_quantize", X, np.ones(1, np.float32), None, np.int8
RIGHT = npuquant.npu_quantize(*CALL[1:])


def admission(actual, **kwargs):
    with _threads.keeping() as kept:
        npuquant.npu_quantize(*CALL[1:], **kwargs)
    return _native.admission(kept[0].call, (actual,), 1)


@pytest.mark.parametrize(("dtype", "bits", "text"), [
    ("int8", 0xFF, "-1"), ("uint8", 0xFF, "255"), ("int32", 0x80000000, "-2147483648"), ("quint4x2", 0xF, "-1"),
    ("quint4x2", 7, "7"), ("quint4x2", 8, "-8"), ("int64", 2**64 - 1, "0xFFFFFFFFFFFFFFFF"),
    ("int64", 1 << 46, "0x0000400000000000"), ("uint64", 2**64 - 1, "0xFFFFFFFFFFFFFFFF"),
    ("uint64", 0x1F, "0x000000000000001F"), ("float32", 0x3DCCCCCD, "0.100000001 (0x3DCCCCCD)"),
    ("float32", 0x80000000, "-0 (0x80000000)"), ("float32", 1, "1.40129846e-45 (0x00000001)"),
    ("float32", 0x7F7FFFFF, "3.40282347e+38 (0x7F7FFFFF)"), ("float16", 0x2E66, "0.099976 (0x2E66)"),
    ("float16", 0xFC00, "-inf (0xFC00)"), ("float16", 1, "5.9605e-08 (0x0001)"),
    ("bfloat16", 0x3DCD, "0.1001 (0x3DCD)"), ("bfloat16", 0x47C3, "9.984e+04 (0x47C3)"),
    ("float32", 0x7FC00000, "nan (0x7FC00000)"),
    ("float32", 0xFFC00000, "-nan (0xFFC00000)"), ("float32", 0x7F800001, "nan (0x7F800001)"),
    ("float16", 0xFE00, "-nan (0xFE00)"), ("bfloat16", 0xFFC0, "-nan (0xFFC0)"),
    ("float8_e4m3fn", 0x7E, "448 (0x7E)"), ("float8_e4m3fn", 0xFF, "-nan (0xFF)"),
    ("float8_e4m3fn", 1, "0.00195 (0x01)"), ("float8_e5m2", 0x7B, "5.7e+04 (0x7B)"),
    ("float8_e5m2", 0xFC, "-inf (0xFC)"), ("float8_e5m2", 0x7D, "nan (0x7D)"), ("hifloat8", 0x6E, "3.28e+04 (0x6E)"),
    ("hifloat8", 0xEF, "-inf (0xEF)"), ("hifloat8", 0x80, "nan (0x80)"), ("hifloat8", 0xB2, "-0.312 (0xB2)"),
    ("float8_e8m0fnu", 0, "5.9e-39 (0x00)"), ("float8_e8m0fnu", 0x80, "2 (0x80)"),
    ("float8_e8m0fnu", 0xFF, "nan (0xFF)"), ("float4_e2m1fn_x2", 0xF, "-6 (0xF)"),
    ("float4_e2m1fn_x2", 8, "-0 (0x8)"), ("float4_e1m2fn_x2", 7, "1.8 (0x7)"),
])
def test_values(dtype, bits, text):
    assert _report.format_value(dtype, bits) == text


def hifloat8(code):
    """The value by the letters of the code's form: exponent's sign s and bits x, mantissa's bits m."""
    bits = f"{code & 0x7F:07b}"
    form = next(form for form in ("0000mmm", "0001mmm", "001smmm", "01sxmmm", "10sxxmm", "11sxxxm")
                if all(letter in "sxm" or letter == bit for letter, bit in zip(form, bits)))
    s, x, m = ("".join(bit for letter, bit in zip(form, bits) if letter == name) for name in "sxm")
    value = 2.0 ** (int(m, 2) - 23) if form == "0000mmm" else (
        2.0 ** (int("1" + x, 2) * (-1 if s == "1" else 1) if s else 0) * (1 + int(m, 2) / 2 ** len(m)))
    value = {0: 0, 0x80: np.nan, 0x6F: np.inf, 0xEF: np.inf}.get(code, value)
    return -value if code & 0x80 else value


@pytest.mark.parametrize(("dtype", "exponents", "fraction", "largest"), [
    ("float8_e4m3fn", range(-6, 9), 3, 448), ("float8_e5m2", range(-14, 16), 2, 57344),
    ("float4_e2m1fn_x2", range(3), 1, 6), ("float4_e1m2fn_x2", range(1), 2, 1.75)])
def test_small_values(dtype, exponents, fraction, largest):
    """In the order of their codes: subnormals, then each exponent's."""
    ones = range(2**fraction)
    values = [one / 2**fraction * 2.0**exponents[0] for one in ones]
    values += [(1 + one / 2**fraction) * 2.0**exponent for exponent in exponents for one in ones]
    values = [value for value in values if value <= largest]
    sign = 1 << TYPES[dtype].bits - 1
    assert [TYPES[dtype].value(code) for code in range(len(values))] == values
    assert [-TYPES[dtype].value(code | sign) for code in range(len(values))] == values
    assert not any(np.isfinite(TYPES[dtype].value(code)) for code in range(len(values), sign))


def test_hifloat8_values():
    np.testing.assert_array_equal([TYPES["hifloat8"].value(code) for code in range(256)], [*map(hifloat8, range(256))])


@pytest.mark.parametrize(("dtype", "digits"), [("float16", 5e-5), ("bfloat16", 5e-4)])
def test_values_of_16_bits(dtype, digits):
    bits = np.arange(0, 2**16, 7, dtype="u2")
    shown = [_report.format_value(dtype, word).split() for word in bits.tolist()]
    assert [word for _, word in shown] == [f"(0x{word:04X})" for word in bits]
    values = expected.floats(bits.view("f2") if dtype == "float16" else bits).astype("f8")
    np.testing.assert_allclose([float(value) for value, _ in shown], values, rtol=digits, atol=0)


def test_admission():
    """Of a comparison without a diagnosis."""
    within = ["  Admissible for the device's vector division: 1 of 1 differing element.",
              "  Quotients one unit off: 0 of 0 rounded ones that can show it, 1 of 1 exact ones; a device moves",
              "  some 6 %.",
              "  docs/device.md says what is known of the device's division."]
    below, above = RIGHT - np.int8([1, 0, 0, 0]), RIGHT + np.int8([0, 1, 0, 0])
    assert "\n".join(_report.admission_lines(admission(below))).splitlines() == within
    assert list(_report.admission_lines(admission(below + above - RIGHT))) == [
        "  Admissible for the device's vector division: 1 of 2 differing elements; the rest is wrong."]
    for actual, options in (RIGHT, {}), (above, {}), (below, {"div_mode": False}):
        assert not list(_report.admission_lines(admission(actual, **options)))
    found = npuquant.diagnose(below, *CALL)
    assert _report.verdict_text(found._facts).splitlines() == [
        "diagnosis: within the device's division", *within]
    assert "the same bits come from truncate, floor, half-down" in str(found)


# ---- sentences ----


def overwritten(size):
    """Groups of a kernel that stores more bytes than a row has."""
    call = "dynamic_mx_quant", np.arange(1, 257, dtype=np.float32).reshape(4, 64)
    y, mxscale = npuquant.dynamic_mx_quant(call[1])
    return (changed(y, (slice(1, None), slice(size)), value=0), mxscale), call



def quantize(x, scales=np.ones(1, np.float32), zero_points=None):
    """A call that multiplies."""
    return "npu_quantize", x, scales, zero_points, "int8", -1, False


def changed(right, *places, value=99):
    wrong = right.copy()
    for place in places:
        wrong[place] = value
    return wrong


EIGHTHS = (np.arange(192, dtype=np.float32).reshape(8, 24) - 96) / 8
ROUNDED, FLOORS = np.rint(EIGHTHS).astype(np.int8), np.floor(EIGHTHS).astype(np.int8)
SCATTERED = [(6, 5), (2, 5), (1, 9), (1, 13), (3, 17), (3, 21)]
ZEROS = np.zeros((8, 512), np.float32), np.zeros((8, 512), np.int8)
OCTAVES = [(i % 8, column) for i, column in enumerate([3, 11, 35, 43, 107, 131, 219, 307])]
DIAGONAL = np.kron(np.diag([0, 1, 1, 1]), np.arange(1, 257).reshape(16, 16) % 100 + 1).astype(np.int8)
WIDE = (np.arange(512, dtype=np.float32) * 197 % 512).reshape(16, 32) / np.float32(4.1) - 62
TOKENS = (np.arange(512, dtype=np.float32) * 197 % 509).reshape(16, 32) / 7 - 30
PEAK = TOKENS[5].argmax()
STEPS = WIDE / 2, np.linspace(1, 1.5, 32, dtype=np.float32)
OFFSETS = np.float32(np.arange(32) * 7 % 23 - 10)
CODES = npuquant.npu_quantize(*quantize(WIDE)[1:])
GROUPS = WIDE / 4, np.stack([STEPS[1], 2 * STEPS[1]]), np.array([7, len(WIDE)])
FLAT = np.zeros((64, 64), np.float32)
RANGES = [(1, 16 * i + 4 + i % 4) for i in range(32)]
THREES = [(i, i) for i in range(9)]
INT4 = "npu_quantize", WIDE / 8, np.ones(1, np.float32), None, "quint4x2", -1, False


def fitting(factor, addend, noise=0):
    """y is a line of x, with noise in some of a hundred elements."""
    i = np.arange(512).reshape(WIDE.shape)
    return np.rint(WIDE * factor + addend) + np.where(i * 37 % 100 < noise, np.where(i % 2, 40, -33), 0)


def largest(columns):
    """The scales of these columns alone."""
    return np.abs(TOKENS[:, columns]).max(axis=1) * np.float32(1 / 127)


def scattered(where):
    """y of 64 x 64 zeros, with values in these places."""
    return changed(np.zeros((64, 64), np.int8), where, value=np.arange(1, 4097).reshape(64, 64)[where] % 97 + 1)


def tokens(change, call=("npu_dynamic_quant", TOKENS)):
    """A dump with other scales."""
    y, scale, *offset = getattr(npuquant, call[0])(*call[1:])
    return (y, change(scale), *offset), call


def asymmetric(change_scale, change_offset):
    call = "npu_dynamic_quant_asymmetric", TOKENS
    y, scale, offset = npuquant.npu_dynamic_quant_asymmetric(TOKENS)
    return (y, change_scale(scale), change_offset(offset)), call


@pytest.mark.parametrize(
    ("actual", "call", "sentence"),
    [
        (changed(FLOORS, (6, 5)), quantize(EIGHTHS), "What remains: 1 element of y in row 6 of 8 and column 5 of 24."),
        (changed(FLOORS, *SCATTERED[:2]), quantize(EIGHTHS),
         "What remains: 2 elements of y in 2 of 8 rows (2, 6) and column 5 of 24."),
        (changed(FLOORS, *SCATTERED), quantize(EIGHTHS),
         "6 elements of y in 4 of 8 rows (1, 2, 3, 6) and columns 5 to 21 of 24 in steps of 4."),
        (changed(FLOORS, *SCATTERED, (3, 22)), quantize(EIGHTHS),
         "and 6 of 24 columns (5, 9, 13, 17 and others up to 22)."),
        (changed(ROUNDED, slice(3, 6)), quantize(EIGHTHS),
         "What differs: 72 elements of y in rows 3 to 5 of 8 and all 24 columns."),
        (changed(ROUNDED[:1], (0, 1)), quantize(EIGHTHS[:1]), "1 element of y in the only row and column 1 of 24."),
        (changed(ZEROS[1], *OCTAVES), quantize(ZEROS[0]),
         "8 of 512 columns (3, 11, 35, 43 and others up to 307; each is 3 more than a multiple of 8)."),
        (changed(ZEROS[1], *RANGES), quantize(ZEROS[0]), "; each is 4 to 7 more than a multiple of 16)."),
        (DIAGONAL, quantize(FLAT),
         "They are in 3 of 16 tiles of 16 rows and columns, the first from row 16 and column 16 on."),
        (fitting(1.05, 0), quantize(WIDE),
         "y looks like the value before rounding * 1.05, rounded: that gives 100 % of"),
        (fitting(1.02, 3, noise=5), quantize(WIDE), "y looks like the value before rounding * 1.02 + 3, rounded: "),
        (fitting(1, -2), quantize(WIDE), "y looks like the value before rounding - 2, rounded: "),
        (fitting(-2, 0), quantize(WIDE), "y looks like the value before rounding * -2, rounded: "),
        (npuquant.npu_quantize(INT4[1] * np.float32(1.5), *INT4[2:]), INT4,
         "y looks like the value before rounding * 1.5, rounded: that gives 100 % of"),
        (np.rint(WIDE) + changed(np.zeros((16, 32)), *THREES, value=3), quantize(WIDE),
         "Differences of y, dump minus expected: +3 in 100 %."),
        (np.rint(WIDE) + changed(changed(np.zeros((16, 32)), *THREES, value=3), (9, 9), value=-7), quantize(WIDE),
         "Differences of y, dump minus expected: +3 in 90 %, -7 in 10 %."),
        (npuquant.npu_quantize(*quantize(*STEPS, OFFSETS)[1:]), quantize(*STEPS),
         "The call has no zero points for each channel, and with -10, -3, 4, 11 and so on it gives all of y."),
        (npuquant.npu_quantize(*quantize(*STEPS, np.full_like(OFFSETS, 3))[1:]), quantize(*STEPS),
         "The call has no zero points, and with 3 it gives all of y."),
        (npuquant.npu_anti_quant(CODES, STEPS[1], offset=OFFSETS), ("npu_anti_quant", CODES, STEPS[1]),
         "The call has no offset for each channel, and with -10, -3, 4, 11 and so on it gives all of y."),
        (npuquant.npu_group_quant(*GROUPS, offset=np.float32(5)), ("npu_group_quant", *GROUPS),
         "The call has no offset, and with 5 it gives all of y."),
        (*tokens(lambda scale: changed(scale, 5, value=abs(TOKENS[5, 7]) / 127)),
         "What differs: 1 element of scale in row 5 of 16. scale[5] of the dump is the scale for m = |x[5, 7]|."),
        (*tokens(lambda scale: largest(np.s_[24:])), "All scales are those that columns 24 to 31 alone give."),
        (*tokens(lambda scale: largest(np.s_[:8])), "All scales are those that columns 0 to 7 alone give."),
        (*tokens(lambda scale: np.concatenate([scale[:1], scale[3:], scale[-2:]])),
         "in scale rows 1 to 13 of 16 hold the row 2 after."),
        (*tokens(lambda scale: scale * np.float32(128 / 127)), "But for its last bits, scale is 1.007874 (128 / 127) "
         "times what is expected in 16 of 16 differing elements."),
        (*asymmetric(lambda scale: scale, lambda offset: offset + 1),
         "But for its last bits, offset is 1 more than expected in 16 of 16 differing elements."),
        (*asymmetric(lambda scale: changed(scale, 5, value=np.ptp(TOKENS[5, [9, PEAK]]) / 255), lambda offset: offset),
         "scale[5] of the dump is the scale for lo = x[5, 9]."),
        (changed(ROUNDED, (slice(None), slice(16, None)), value=FLOORS[:, 16:]), quantize(EIGHTHS),
         "The rest of y is right: look at the code for columns 16 to 23 of 24, such as what a vector loop leaves"),
        (changed(ROUNDED, (slice(None), slice(16, None))), quantize(EIGHTHS),
         "Untouched from column 16 on, a multiple of 16: the last 8 of 24."),
        (*overwritten(3), "Overwritten: the first 6 of 64 columns."),
        (ROUNDED[[0, 1, 2, 4, 3, 5, 6, 7]], quantize(EIGHTHS),
         "2 of 8 rows are elsewhere; row 3 holds what belongs to row 4."),
        (np.full((8, 24), 7, np.int8), quantize(EIGHTHS),
         "Every element of y is the same, as of memory that was never written."),
    ],
)
def test_sentences(actual, call, sentence):
    """Each of what is found."""
    actual = actual.astype(np.int8) if call[0] == "npu_quantize" and actual.dtype.kind == "f" else actual
    found = npuquant.diagnose(actual, *call)
    assert sentence in " ".join(str(found).split())
    if sentence.startswith(("They", "Differences")):
        assert sentence in found.to_dict()["remainder"]["clues"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_factors_of_floats(dtype):
    weights, scale = np.rint(WIDE).astype(np.int8), np.linspace(1, 2, 32, dtype=np.float32)
    actual = npuquant.npu_anti_quant(weights, scale * np.float32(1.1), dst_dtype=dtype)
    found = npuquant.diagnose(actual, "npu_anti_quant", weights, scale, dst_dtype=dtype)
    clue, = found.to_dict()["remainder"]["clues"]
    assert re.match(r"But for its last bits, y is 1\.(1|09|10)\d* times what is expected in \d+ of", clue)


@pytest.mark.parametrize(
    ("actual", "call", "words"),
    [
        (changed(ZEROS[1], *RANGES, (0, 0), (0, 12)), quantize(ZEROS[0]), "each is"),
        (scattered(np.random.default_rng(2).random((64, 64)) < 0.02), quantize(FLAT), "tiles"),
        (scattered(np.eye(64, dtype=bool) & (np.arange(64) % 16 == 0)), quantize(FLAT), "tiles"),
        (scattered(np.s_[16:32]), quantize(FLAT), "tiles"),
        (fitting(1, 0, noise=40), quantize(WIDE), "looks like"),  # no line fits better than the definition
        (fitting(1.05, 0, noise=30), quantize(WIDE), "looks like"),  # too few elements are near
        (np.random.default_rng(3).integers(-128, 128, (16, 32), np.int8), quantize(WIDE), ""),
        (np.rint(WIDE) + changed(np.zeros((16, 32)), *THREES[:5], value=3), quantize(WIDE), ""),  # few: one sees them
        (changed(npuquant.npu_quantize(*quantize(*STEPS, OFFSETS)[1:]), (3, 4)), quantize(*STEPS), "The call has"),
        (*tokens(lambda scale: changed(largest(np.s_[24:]), 3, value=0.123)), "alone"),
        (*tokens(lambda scale: changed(scale, 5, value=0.123)), ""),
        (*tokens(lambda scale: scale * (1 + np.arange(1, 17, dtype=np.float32) / 64)), ""),
    ],
)
def test_what_is_not_said(actual, call, words):
    """No sentence has these words; "" means that there is no clue at all. No hypothesis is named."""
    actual = actual.astype(np.int8) if np.asarray(actual[0]).dtype.kind == "f" else actual
    found = npuquant.diagnose(actual, *call)
    assert found.verdict == "none" or found.findings[0].name == "constant"
    assert not [clue for clue in found.to_dict()["remainder"]["clues"] if words in clue]
    assert not words or words not in str(found)


NOISE = np.random.default_rng(1).integers(-128, 128, (64, 40), np.int8)
OTHER = np.random.default_rng(2).permutation(NOISE.ravel()).reshape(NOISE.shape)
LEVELS = np.repeat(np.arange(64, dtype=np.int8)[:, None], 40, axis=1)  # each row has one value
SPARSE = np.where(NOISE % 8, 0, NOISE).astype(np.int8)


def written(stride, fill, y=NOISE):
    """The first elements of rows, or scales, that lie at this distance."""
    memory = np.full(max(stride, y.shape[-1]) * len(y), fill, y.dtype)
    for i, row in enumerate(y):
        memory[i * stride:][:y.shape[-1]] = row
    return memory[:y.size].reshape(y.shape)


def scales_apart(stride):
    return tokens(lambda scale: written(stride, 0, scale[:, None])[:, 0],
                  ("npu_dynamic_quant", NOISE.astype(np.float32) * np.linspace(1, 2, 64, dtype=np.float32)[:, None]))


@pytest.mark.parametrize(
    ("actual", "call", "words"),
    [
        (changed(NOISE, np.s_[1:4, :8], value=0), NOISE, [("y is 0 in every element that differs.", True, 1)]),
        (changed(NOISE, np.s_[1:4, :8], (9, 9), value=0) + changed(0 * NOISE, (20, 20), value=7), NOISE, []),
        (changed(NOISE, 3, value=-128), NOISE, [("In y row 3 of 64 is a row of -128.", True, 1)]),
        (changed(NOISE, np.s_[3:6], (9, 9), value=-128), NOISE,
         [("y is -128 in every element that differs.", False, 1),
          ("In y rows 3 to 5 of 64 are rows of -128.", False, 1)]),
        (changed(NOISE, np.s_[:, 3], value=5), NOISE, [("In y column 3 of 40 is a column of 5.", True, 1)]),
        (changed(NOISE, 3, value=NOISE[1]), NOISE, [("In y row 3 holds row 1.", True, 1)]),
        (changed(changed(NOISE, np.s_[3:5], value=NOISE[1:3]), (9, 9)), NOISE,
         [("In y rows 3 to 4 of 64 hold the row 2 before.", False, 2)]),
        (changed(NOISE[:4], 3, value=NOISE[1]), NOISE[:4], [("In y row 3 holds row 1.", True, 1)]),  # and lies 80 apart
        (NOISE[[0, 0, 1, 1]], NOISE[:4],
         [("In y 3 of 4 rows hold others: row 1 holds row 0, row 2 holds row 1, row 3 holds row 1.", True, 3)]),
        (changed(written(41, 9, SPARSE), (20, 20)), SPARSE, [("In y row 41 holds row 40.", False, 1)]),  # by its stride
        (changed(NOISE, np.s_[:, 3], value=NOISE[:, 1]), NOISE, [("In y column 3 holds column 1.", True, 1)]),
        (written(64, 0), NOISE, [("In y rows lie 64 apart and not 40.", True, 1)]),
        (written(41, 9, SPARSE), SPARSE, [("In y rows lie 41 apart and not 40.", True, 1)]),
        (written(32, 9), NOISE,
         [("In y rows lie 32 apart and not 40: the next one overwrites each from column 32 on.", True, 1)]),
        (*scales_apart(8), [("The scales lie 32 bytes apart.", True, 1)]),
        (*scales_apart(16), [("The scales lie 64 bytes apart.", True, 1)]),
        (*tokens(lambda scale: changed(scale, np.s_[:9], value=0)),
         [("scale is 0 in every element that differs.", True, 1)]),
        (changed(LEVELS, 3, value=7), LEVELS, [("y is 7 in every element that differs, and should be 3.", False, 1)]),
        (OTHER, NOISE, []),
        (np.where(OTHER % 8, 0, OTHER).astype(np.int8), SPARSE, []),
        (*tokens(lambda scale: scale * NOISE[0, :16]), []),
    ],
)
def test_words(actual, call, words):
    """What the dump holds, whether that is all that differs, and how many numbers it has. Noise has no words."""
    found = npuquant.diagnose(actual, *(call if isinstance(call, tuple) else quantize(call.astype(np.float32))))
    assert [word[1:] for word in found._facts["remainder"]["words"]] == words
    assert found.to_dict()["remainder"]["clues"][:len(words)] == [text for text, *_ in words]


#: A dump for each verdict, and what the rule compares last, which decides; two for "explained", as a finding may be
#: what the dump holds.
EACH_VERDICT = pytest.mark.parametrize(("verdict", "name", "actual", "call", "decision"), [
    ("equal", "", RIGHT, CALL, "Nothing differs."),
    ("explained", "floor", FLOORS, quantize(EIGHTHS), "Its score, {score}, is at least 20."),
    ("explained", "stride", written(64, 0), quantize(NOISE.astype(np.float32)), "Its score, {score}, is at least 20."),
    ("admissible", "quotient one unit lower", RIGHT - np.int8([1, 0, 0, 0]), CALL,
     "No more quotients moved than a device moves."),
    ("possible", "floor", changed(ROUNDED, np.s_[:1], value=FLOORS[:1])[:1], quantize(EIGHTHS[:1]),
     "Its score, {score}, is less than 20."),
    ("partly", "floor", changed(FLOORS, (6, 5)), quantize(EIGHTHS),
     "Its score, {score}, is at least 30. A device without a mistake cannot give this dump. "
     "The weight of another cause that agrees so far, {other}, is less than -10."),
    ("none", "", OTHER, quantize(NOISE.astype(np.float32)), "No finding is left to weigh."),
])


@EACH_VERDICT
def test_verdicts(verdict, name, actual, call, decision):
    found = npuquant.diagnose(actual, *call)
    heads = re.findall("<tr><th>step</th>(.*?)</tr>", found._repr_html_())
    beside = f"<th>{name}</th>" if name not in ("", "stride") else ""
    assert found.verdict == verdict
    assert heads == [f"<th>definition</th>{beside}<th>actual</th>"] * (verdict != "equal")
    score, rivals = (found.findings[0].weight["score"] if found.findings else 0), found._facts["rivals"]
    words = " ".join(found.explain_verdict().split(f"The verdict is {verdict}:")[1].split())
    assert words.endswith(decision.format(score=score, other=f"{(rivals or {}).get('other_cause', 0):.1f}"))


@EACH_VERDICT
def test_fields(verdict, name, actual, call, decision):
    """docs/tool.md says which fields each verdict has, and what they hold."""
    page = (pathlib.Path(__file__).parents[2] / "docs" / "tool.md").read_text(encoding="utf-8")
    table = page.split("#### Fields of each verdict")[1].split("\n|---|---|---|---|\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()]
    row, = (cells for cells in rows if ("the same" in cells[0] if name == "stride" else f"`{verdict}`" in cells[0]))
    found = npuquant.diagnose(actual, *call)
    said, best = found.to_dict(), found.findings[:1]
    element, differing = said.get("element", {}), sum(result.differing for result in found.results)
    left = best[0].unexplained + best[0].newly_wrong if verdict == "partly" else differing
    assert ("remainder" in said, "element" in said) == tuple(cell != "absent" for cell in row[1:3])
    assert said.get("remainder", {"y": left})["y"] == left
    assert {"hypothesis", "name"} & element.keys() == ({"hypothesis", "name"} if row[3] != "absent" else set())
    assert element.get("name", "") == ("" if name == "stride" else name)
    assert verdict != "admissible" or f"`{name}`" in row[3]
    is_possible = found.admissible is not None and found.admissible.verdict == "admissible"
    assert (said["device_weight"] is not None) == is_possible


ROWS = (np.random.default_rng(5).normal(size=(12, 64)) * np.linspace(1, 3, 12)[:, None]).astype(np.float32)
ONES = np.linspace(0.02, 0.05, 12, dtype=np.float32)
SUMS, WEIGHTS = np.rint(ROWS * 9999).astype(np.int32), np.linspace(1, 2, 64, dtype=np.float32) / 1000
EXPERTS, ENDS = np.random.default_rng(6).uniform(10, 30, (4, 64)).astype(np.float32), np.array([2, 5, 9, 12])
OWN = np.repeat(np.arange(4), np.diff(ENDS, prepend=0))


def codes(values):
    return np.clip(np.rint(values), -128, 127).astype(np.int8)


def shared(where, by):
    """y, and for a dynamic operator its scales, of a kernel that there takes what belongs to the row so many before."""
    factors = np.float32(127) / abs(ROWS).max(axis=1)
    y, scale = npuquant.npu_dynamic_quant(ROWS)
    y[where] = codes(ROWS * np.roll(factors, by)[:, None])[where]
    return (y, scale), ("npu_dynamic_quant", ROWS)


def shared_scale(where, by, *, divides):
    per_row = ONES if divides else 1 / ONES[:, None]
    call = "npu_quantize", ROWS, per_row, None, "int8", 0 if divides else -2, divides
    y = npuquant.npu_quantize(*call[1:])
    moved = np.roll(per_row, by, axis=0).reshape(-1, 1)
    y[where] = codes(ROWS / moved if divides else ROWS * moved)[where]
    return y, call


def shared_sums(where, by):
    call = "dequant", SUMS, WEIGHTS, ONES
    y = npuquant.dequant(*call[1:])
    y[where] = (SUMS.astype(np.float32) * WEIGHTS * np.roll(ONES, by)[:, None])[where]
    return y, call


def grouped(groups):
    """y of a kernel that takes these groups' scales for the rows."""
    return codes(ROWS * EXPERTS[groups]), ("npu_group_quant", ROWS, EXPERTS, ENDS)


def grouped_tokens(groups):
    v = ROWS * EXPERTS[groups]
    largest = abs(v).max(axis=1)
    y = codes(v * (np.float32(127) / largest)[:, None])
    options = {"smooth_scales": EXPERTS, "group_index": ENDS}
    return (y, largest * np.float32(1 / 127)), ("npu_dynamic_quant", ROWS, options)


@pytest.mark.parametrize(
    ("dump", "says"),
    [
        (shared(np.s_[1:, :3], 1),
         "diagnosis: scale-of-row-before-but-first in columns 0 to 2: explains"),
        (shared(np.s_[:-1, -5:], -1),
         "diagnosis: scale-of-next-row-but-last in columns 59 to 63: explains"),
        (shared_scale(np.s_[1:, :4], 1, divides=True),
         "in y columns 0 to 3 take the scale of the row before, in each row but the first."),
        (shared_scale(np.s_[3:7, -16:], -1, divides=False),
         "in y columns 48 to 63 take the scale of the row after, in rows 3 to 6 of 12."),
        (shared_sums(np.s_[1:, :3], 1),
         "diagnosis: scale-of-row-before-but-first in columns 0 to 2: explains"),
        (grouped(3 - OWN), "rows take the groups in reverse order."),
        (grouped(np.repeat(np.arange(4), [3, 4, 3, 2])), "rows take the sizes of groups in reverse order."),
        (grouped(np.array([2, 1, 3, 0])[OWN]),
         "group 0 takes group 2's scales, group 2 takes group 3's scales, group 3 takes group 0's scales."),
        (grouped(changed(changed(OWN, 6, value=1), slice(3, 5), value=3)),
         "rows 3 to 4 take group 3's scales, row 6 takes group 1's scales."),
        (grouped_tokens(3 - OWN), "rows take the groups in reverse order."),
        (grouped_tokens(np.array([0, 2, 1, 3])[OWN]), "group 1 takes group 2's scales, group 2 takes group 1's scales."),
    ],
)
def test_parameters_of_others(dump, says):
    """Rows, or columns of them, with the parameters of other rows, whichever results are given."""
    actual, call = dump
    dumps = [actual, (actual[0], None)] if isinstance(actual, tuple) else [actual]
    for given in dumps:
        options = call[-1] if isinstance(call[-1], dict) else {}
        found = npuquant.diagnose(given, *call[:len(call) - bool(options)], **options)
        assert found.verdict == "explained" and says in " ".join(str(found).split())


def test_pairs_that_were_not_tried():
    facts = {**npuquant.diagnose(RIGHT, *CALL)._facts, "untried_pairs": 7}
    assert "\n  7 pairs of hypotheses were not tried: " in _report.summary_text(facts)


def test_periods():
    remainder = npuquant.diagnose(changed(ZEROS[1], *OCTAVES), *quantize(ZEROS[0])).to_dict()["remainder"]
    assert remainder["columns"] == {"of": 512, "count": 8, "first": [3, 11, 35, 43], "last": 307, "step": 0,
                                    "period": 8, "from": 3, "to": 3}


def test_json_is_the_callers():
    found = npuquant.diagnose(np.zeros((1, 4), np.int8), *CALL)
    said = found.to_dict()
    assert next(iter(said.items())) == ("format", 2) and json.loads(json.dumps(said)) == said
    said["findings"].clear()
    said["element"]["steps"].clear()
    assert found.to_dict()["findings"] and found.to_dict()["element"]["steps"]


def test_steps_of_both():
    """Those of one step are on one line; a value that is the same is not repeated, but 0 is not -0."""
    def steps(*lines):
        return {"steps": lines, "bits": 0}

    nan = float("nan")
    element = {"result": "y", "index": (1,), "dtype": "int8", "dump": None,
               "definition": steps(("x", "float", nan), ("a", "float", 0.1), ("b", "integer", 0.0)),
               "hypothesis": steps(("x", "float", nan), ("m is at", "place", (2, 3)), ("b", "integer", -0.0))}
    said = _report.element_json(element, "truncate")["steps"]
    assert said == [{"step": "x", "definition": "NaN", "hypothesis": "NaN"},
                    {"step": "a", "definition": "0.10000000000000001"},
                    {"step": "m is at", "hypothesis": "[2, 3]"},
                    {"step": "b", "definition": "0", "hypothesis": "-0"}]
    assert [line.split() for line in _report._element_lines(element, "truncate")] == [
        ["step", "definition", "truncate"], ["x", "NaN"], ["a", "0.10000000000000001", "-"],
        ["m", "is", "at", "-", "[2,", "3]"], ["b", "0", "-0"], ["y", "0", "0"]]
