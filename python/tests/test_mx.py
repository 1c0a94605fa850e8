# SPDX-License-Identifier: BSD-3-Clause
"""npuquant.mx: the conventions of others beside what the operator makes, and the conversions of codes."""
import collections
import re
import sys
import types

import numpy as np
import npuquant
import numpy_operators as expected
import pytest
import test_docs
from npuquant import mx
from npuquant_facts.dtypes import TYPES
from numpy_operators import MX_TYPES, f4, rng
from test_operators import near_small_floats

MODES = ("FLOOR", "CEIL", "EVEN", "RCEIL")
BFLOAT16 = np.arange(0x8000, dtype=np.int64) << 16
FLOAT16 = np.arange(0x8000, dtype=np.uint16).view(np.float16)
OPTIONS = [(row, dtype) for row in mx.CONVENTIONS if row.options is not None for dtype in row.types]
OF_OPTIONS = pytest.mark.parametrize(
    ("row", "dtype"), OPTIONS, ids=[f"{row.name}-{dtype}-{row.options['scale_alg']}" for row, dtype in OPTIONS])


def float32_maxima():
    """The bits of magnitudes of each exponent, at and beside what the operator may round at, and others."""
    steps = np.arange(0, 1 << 23, 1 << 15)[:, None] + np.array([-1, 0, 1])
    chosen = np.r_[steps.ravel(), rng.integers(0, 1 << 23, 100)] & 0x7FFFFF
    bits = (np.arange(256)[:, None] << 23 | chosen).ravel()
    return np.r_[bits[:: 5], 0x01FFFFFE, 0x01FFFFFF, 0x02000000, 0x7F800000]


def floats(bits):
    return bits.astype(np.uint32).view(f4)


def torchao(a, mode, dtype):
    """The code of the scale 2^n by ScaleCalculationMode. FLOOR: n = floor(log2(a)) - emax; CEIL: with ceil; EVEN: as
    FLOOR, of a rounded to the type's mantissa, a half up; RCEIL: n = ceil(log2(a / largest value))."""
    largest = expected.small_value(dtype, MX_TYPES[dtype])
    a = a.astype(np.float64)
    if mode == "EVEN":
        unit = np.ldexp(1.0, np.frexp(a)[1] - 1 - expected.FORMATS[dtype][0])
        with np.errstate(invalid="ignore"):
            a = np.where(np.isfinite(a), np.floor(a / unit + 0.5) * unit, a)
    (most, top), (part, power) = np.frexp(largest), np.frexp(a)
    n = power - top + {"CEIL": part > 0.5, "RCEIL": part > most}.get(mode, 0)
    n = np.where(a == 0, -127, np.clip(n, -127, 127))
    return np.where(a < 2.0**128, n + 127, 255).astype(np.uint8)


@pytest.mark.parametrize("dtype", [dtype for dtype in MX_TYPES if "e1m2" not in dtype])
@pytest.mark.parametrize("mode", MODES)
def test_scales_of_torchao(mode, dtype):
    """By their definition, of all bfloat16 and float16, and of many float32."""
    rows = [row for row in mx.CONVENTIONS if row.name == mode and dtype in row.types]
    assert all("torchao" in row.libraries for row in rows) and rows
    for a in floats(BFLOAT16), f4(FLOAT16), floats(float32_maxima()):
        for row in rows:
            np.testing.assert_array_equal(row.codes(a, dtype), torchao(a, mode, dtype))


def test_scales_of_others():
    """At and beside where they change, and of special groups."""
    def codes(name, dtype, *a):
        row = next(row for row in mx.CONVENTIONS if row.name == name and mx.FORMATS[dtype] in row.types)
        return row.codes(f4(a), dtype).tolist()

    special = [0, 2**-149, np.inf, -np.inf, np.nan]
    assert codes("Transformer Engine", "mxfp8", 448, 449, *special) == [127, 128, 0, 0, 254, 254, 255]
    assert codes("FBGEMM EVEN", "mxfp4", 7, 7.01, 8, *special) == [127, 128, 128, 0, 0, 255, 255, 255]
    assert codes("MLX", "mxfp8", 448 * 2**.499, 448 * 2**.501, *special) == [127, 128, 0, 0, 255, 255, 255]
    assert codes("MLX", "mxfp4", 6 * 2**.499, 6 * 2**.501, 3e38) == [127, 128, 252]
    assert codes("NKI", "mxfp8", 256, 448, 511, 512, *special) == [128, 128, 128, 129, 1, 1, 255, 255, 255]
    assert codes("RoundScale", "mxfp8", 448, 449, 449.9, 450, 450.1, 2**-118, *special) == [
        127, 127, 127, 128, 128, 1, 0, 1, 255, 255, 255]
    for name in "microxcaling", "ggml":
        assert codes(name, "mxfp4", 4, 7.9, 8, *special) == [127, 127, 128, 0, 0, 255, 255, 255]


LESS = re.compile(r"(?:(.*): )?S is 1 less here for a / 2\^e in ([\[(])([\d.]+), ([\d.]+)([\])])")
BELOW = {  # of the bits of a
    "bfloat16: S is 1 less here for a = 1.75 * 2^e": lambda bits, x: (bits & 0x7FFFFF == 0x600000) & (bits >> 23 >= 2),
    "S is 1 less here for a = 2^e, e from -123 on": lambda bits, x: (bits & 0x7FFFFF == 0) & (bits >= 4 << 23),
    "S is 1 less here for a from 2^-124 to below 2^-123, except the float32 01FFFFFF":
        lambda bits, x: (bits >> 23 == 3) & (bits != 0x01FFFFFF),
}
NOT_NUMBERS = {  # FF on one side only
    "EVEN has S = FF from 1.75 * 2^127 on":
        lambda bits, x: (bits >= 0x7F600000) & ((bits < 0x7F7F8000) | (x != "float32 along another axis")),
    "float32 along another axis: S is FF here from 7F7F8000 on":
        lambda bits, x: (bits >= 0x7F7F8000) & (x == "float32 along another axis"),
}
INFINITE = "an infinity has S = FE there"
#: What no maximum shows. The first two have tests of their own; the others say what other libraries do.
OF_CODES = {
    "codes differ with small_groups 1 where a is subnormal, and with 0 wherever S is 0",
    "codes of a group with S = FF are +0 here: float4_e2m1 has no NaN",
    "codes of a group with S = 0 are zeros there", "its floor is towards zero, and round_mode floor is not",
    "halves go away from zero", "halves go towards zero", "byte j of a group has the elements j and j + 16",
}


def stated(row, bits, x):
    """Where a row says that S is 1 less here, and where it is FF on one side only."""
    less, bad = (np.zeros(bits.shape, bool) for _ in range(2))
    for text in row.but:
        interval = LESS.fullmatch(text)
        if interval:
            kinds, opens, low, high, closes = interval.groups()
            part = 1 + (bits & 0x7FFFFF) / 2**23
            inside = (part >= float(low) if opens == "[" else part > float(low)) & (
                part <= float(high) if closes == "]" else part < float(high))
            less |= inside & (bits >> 23 >= 2) & (x in kinds.split(", or "))
        elif text in BELOW:
            less |= BELOW[text](bits, x) & (not text.startswith("bfloat16") or x == "bfloat16")
        elif text in NOT_NUMBERS:
            bad |= NOT_NUMBERS[text](bits, x) & (bits < 0x7F800000)
        else:
            assert text in OF_CODES | {INFINITE}, "no test has these words"
    return less & ~bad & (bits < 0x7F800000), bad


def groups_of(bits, x):
    """Groups with these largest magnitudes, which come first: once with either sign, and smaller ones."""
    others = (rng.random((len(bits), 30)) ** 3 * (bits[:, None] + 1)).astype(np.int64)
    patterns = np.concatenate([bits[:, None], bits[:, None], others], axis=1)
    signs = rng.integers(0, 2, patterns.shape) << 31
    signs[:, :2] = 0, 1 << 31
    if x == "bfloat16":
        return (patterns >> 16 | signs >> 16).astype(np.uint16)
    values = floats(patterns | signs)
    return values if x.startswith("float32") else values.astype(np.float16)


@OF_OPTIONS
def test_options_give_the_bits_of_conventions(row, dtype):
    """Scales and codes, but for what the row says, and there as it says: of all bfloat16 and float16, and of many
    float32 along either axis."""
    for x, bits in (("bfloat16", BFLOAT16), ("float16", f4(FLOAT16).view(np.uint32).astype(np.int64)),
                    ("float32 along the last axis", float32_maxima()), ("float32 along another axis", float32_maxima())):
        groups = groups_of(bits, x)
        if x.endswith("another axis"):
            y, mxscale = npuquant.dynamic_mx_quant(groups.T, axis=0, dst_type=dtype, **row.options)
            S, codes = mxscale[0, :, 0], mx_codes(y, dtype).T
        else:
            y, mxscale = npuquant.dynamic_mx_quant(groups, dst_type=dtype, **row.options)
            S, codes = mxscale[:, 0, 0], mx_codes(y, dtype)
        theirs = row.codes(floats(bits), dtype)
        less, bad = stated(row, bits, x)
        infinite = (bits == 0x7F800000) & (INFINITE in row.but)
        differs = less | bad | infinite
        np.testing.assert_array_equal(S[~differs], theirs[~differs])
        np.testing.assert_array_equal(S[less], theirs[less] - 1)
        assert ((S[bad] == 255) != (theirs[bad] == 255)).all()
        assert (S[infinite] == 255).all() and (theirs[infinite] == 254).all()
        values = expected.floats(groups)
        with np.errstate(over="ignore", invalid="ignore"):
            p = values * np.ldexp(f4(1), 127 - S.astype(np.int32))[:, None]
        wanted = expected.to_small(p, dtype, row.options.get("round_mode", "rint"))
        of_nan = np.where(np.isnan(values) & np.signbit(values), 0xFF, 0x7F) if MX_TYPES[dtype] != 7 else 0
        np.testing.assert_array_equal(codes, np.where(S[:, None] == 255, of_nan, wanted))


def in_nibbles(codes):
    return codes[..., ::2] | codes[..., 1::2] << 4


def mx_codes(y, dtype):
    return y if MX_TYPES[dtype] != 7 else np.stack([y & 15, y >> 4], axis=-1).reshape(*y.shape[:-1], -1)


@OF_OPTIONS
def test_small_groups_of_conventions(row, dtype):
    """The rules of the device and of its relatives change the codes that are not zero, where the row says so."""
    groups = groups_of(BFLOAT16, "bfloat16")
    y, mxscale = npuquant.dynamic_mx_quant(groups, dst_type=dtype, **row.options)
    says = "codes differ with small_groups 1 where a is subnormal, and with 0 wherever S is 0" in row.but
    assert says == ("small_groups" in row.options)
    small = (mxscale[:, 0, 0] == 0) & says
    magnitudes = mx_codes(y, dtype) & (7 if MX_TYPES[dtype] == 7 else 0x7F)
    for rule, where in (0, small), (1, small & (BFLOAT16 < 1 << 23)):
        changed, scales = npuquant.dynamic_mx_quant(groups, dst_type=dtype, **{**row.options, "small_groups": rule})
        np.testing.assert_array_equal(scales, mxscale)
        np.testing.assert_array_equal((changed != y).any(axis=1), where & (magnitudes != 0).any(axis=1))


def test_options():
    """Names in any case, formats and types; each row that has options is the first of its name, or is another way."""
    for row, dtype in OPTIONS:
        found = mx.options(row.name.lower(), dtype)
        assert found.pop("dst_type") == dtype
        first = next(each for each in mx.CONVENTIONS if (each.name, each.types) == (row.name, row.types))
        assert found == first.options
    assert mx.options("RCEIL", "MXFP8_E5M2") == mx.options("RCEIL", 291) == mx.options("RCEIL", "float8_e5m2")
    for scale, dtype, says in (
        ("CEIL", "mxfp4", "scale: is 'CEIL', which no options give for float4_e2m1fn_x2; expected FLOOR, RCEIL, E"),
        ("MLX", "mxfp8", "scale: is 'MLX', which no options give for float8_e4m3fn; expected FLOOR, RCEIL or Trans"),
        ("nearest", "mxfp8", "scale: is 'nearest'; expected FLOOR, RCEIL or Transformer Engine"),
        ("FLOOR", "float4_e1m2fn_x2", "scale: is 'FLOOR'; expected a format other than float4_e1m2fn_x2, which only"),
        ("FLOOR", "nvfp4", "format: is 'nvfp4', which has two levels of scales, and is not MX; expected mxfp8, mxfp8_e"),
        ("FLOOR", "int8", "format: is 'int8'; expected mxfp8, mxfp8_e4m3, mxfp8_e5m2, mxfp4 or mxfp4_e2m1, or a type "),
    ):
        with pytest.raises(RuntimeError, match=rf"\A{re.escape(says)}.*\[options\]\Z"):
            mx.options(scale, dtype)


def test_page():
    """The page has the table: words of more than two rows are below it."""
    counts = collections.Counter(text for row in mx.CONVENTIONS for text in row.but)
    letters = dict(zip((text for text, count in counts.items() if count > 2), ("(a)", "(b)")))
    rows = [[row.name, ", ".join(re.findall(r"e\dm\d(?:fn\b(?!_))?", " ".join(row.types))),
             "none" if row.options is None else ", ".join(f"{name}={value}" for name, value in row.options.items()),
             row.libraries, "; ".join(letters.get(text, text) for text in row.but)] for row in mx.CONVENTIONS]
    page = test_docs.read(test_docs.DOCS, "microscaling.md")
    table = page[page.index("| convention |"):]
    assert table.split("\n\n")[0].splitlines()[2:] == [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows]
    assert table.split("\n\n")[2].splitlines() == [f"- {letter} {text}" for text, letter in letters.items()]


def test_options_of_the_command():
    """The page for kernels has them, for each convention to 8 and to 4 bits, or the mistake that diagnose() names."""
    rows = {}
    for row in mx.CONVENTIONS:
        words = " ".join(f"--{name.replace('_', '-')} {f'{value:g}' if name == 'dst_type_max' else value}"
                         for name, value in (row.options or {}).items())
        for column in {int("float4" in dtype) for dtype in row.types}:
            cells = rows.setdefault(row.name, [row.owned, "", ""])
            cells[1 + column] = cells[1 + column] or f"`{words or row.mistake}`"
    page = test_docs.read(test_docs.DOCS, "is-my-mx-kernel-right.md")
    table = page[page.index("| convention |"):].split("\n\n")[0].splitlines()
    assert table[2:] == [f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in rows.values()]


@pytest.mark.parametrize("dtype", ["mxfp8", "mxfp8_e5m2", "mxfp4"])
def test_right_kernels_without_options(dtype):
    """With the options of FLOOR the diagnosis names what is in the table, and nothing besides."""
    given = mx.options("FLOOR", dtype)
    hard = npuquant.hard_inputs("dynamic_mx_quant", (64, 256), **given)
    groups = hard.inputs["input"].reshape(64, 8, 32)
    for row in mx.CONVENTIONS:
        if row.options is None and given["dst_type"] in row.types and row.mistake[:6] == "scale-":
            scales = row.codes(np.abs(groups).max(axis=-1), dtype)
            with np.errstate(all="ignore"):
                codes = mx.encode(groups * np.ldexp(f4(1), 127 - scales.astype(int))[..., None], dtype)
            codes[scales == 255] = 0 if dtype == "mxfp4" else 0x7F
            found = npuquant.diagnose((codes.reshape(64, -1), scales), "dynamic_mx_quant", **hard.call)
            assert (found.verdict, found.findings[0].name) == ("explained", row.mistake)


@pytest.mark.parametrize("dtype", ["mxfp8", "mxfp8_e5m2", "mxfp4"])
def test_quantize(dtype):
    """One scale for each group, along any axis, and values that are near."""
    x = rng.normal(size=(3, 70, 4)).astype(f4)
    for axis, groups in (1, (3, 3, 4)), (-2, (3, 3, 4)), (2, (3, 70, 1)), (0, (1, 70, 4)):
        codes, scales = mx.quantize(x, dtype, scale="RCEIL", axis=axis)
        assert scales.shape == groups
        kept = np.repeat(mx.decode(scales, 293), 32, axis=axis).take(np.arange(x.shape[axis]), axis=axis)
        assert np.abs(mx.decode(codes, dtype) * kept - x).max() < 1
        y, pairs = npuquant.dynamic_mx_quant(x, axis=axis, **mx.options("RCEIL", dtype))
        assert (y == codes).all()
        assert (np.take(pairs, 0, axis=-1).take(0, axis=axis) == scales.take(0, axis=axis)).all()
        y, scales = mx.quantize(x, dtype, axis=axis)
        pairs = npuquant.dynamic_mx_quant(x, axis=axis, **mx.options("FLOOR", dtype))[1]
        np.testing.assert_array_equal(mx.in_pairs(scales, axis=axis), pairs)
        assert npuquant.diagnose((y, scales), "dynamic_mx_quant", x, axis=axis, **mx.options("FLOOR", dtype)).verdict == "equal"
    assert mx.in_pairs(np.zeros((3, 0), np.uint8)).shape == (3, 0, 2)
    assert mx.quantize(x, dtype, axis=1, block_size=96)[1].shape == (3, 1, 4)
    assert mx.quantize(x[:, :0], dtype, axis=1)[1].shape == (3, 0, 4)


@pytest.mark.parametrize("dtype", [*MX_TYPES, "hifloat8", "float8_e8m0fnu"])
def test_codes_and_values(dtype):
    kind = TYPES[dtype]
    bits = np.arange(1 << kind.bits, dtype=np.uint8)
    stored = in_nibbles(bits) if kind.elements > 1 else bits
    values = mx.decode(stored, kind.number + 256)
    assert values.dtype == f4 and values.shape == bits.shape
    if dtype == "float8_e8m0fnu":
        np.testing.assert_array_equal(values, np.r_[np.ldexp(f4(1), np.arange(-127, 128)), np.nan])
        np.testing.assert_array_equal(mx.encode(values, dtype), stored)
        for wrong in f4([1.5]), f4([-1]), f4([0]), f4([np.inf]), f4([2**-128]):
            with pytest.raises(ValueError, match=r"\Avalues: has others; expected powers of two .*\[encode\]\Z"):
                mx.encode(wrong, dtype)
        return
    if dtype != "hifloat8":
        np.testing.assert_array_equal(values, expected.values_of_codes(dtype))
    x = near_small_floats(dtype)
    x = x[:len(x) // 2 * 2]
    wanted = expected.to_small(x, dtype)
    np.testing.assert_array_equal(mx.encode(x, dtype), in_nibbles(wanted) if kind.elements > 1 else wanted)
    finite, codes = expected.small_values(dtype)
    np.testing.assert_array_equal(values[codes], f4(finite))
    half = x.astype(np.float16)
    np.testing.assert_array_equal(mx.encode(half, dtype), mx.encode(half.astype(f4), dtype))
    assert mx.encode(np.array([0x3F80, 0xBF80], np.uint16), dtype).tolist() == mx.encode(f4([1, -1]), dtype).tolist()


#: Of these values the codes of hifloat8 by both roundings, and two more that only differ in their last bits.
HIFLOAT8 = f4([0, -0.0, 1, -1, 1.0625, 1.1875, 15, 16, 17, 18, 20, 22, 256, 320, 384, 448, 32768, 40960, 1e9, np.inf,
               -np.inf, np.nan, 2**-15, 2**-16, 2**-22, 2**-23, 1.999 * 2**-24, -2**-23, .1, -.3, 3.3, 100])
ROUND = "00 00 08 88 09 0A 2F 40 40 41 41 42 60 61 61 62 6E 6E 6E 6E EE 00 7E 07 01 01 00 81 52 B2 15 4A"
HYBRID = "00 00 08 88 09 0A 2F 41 41 41 42 42 61 61 62 62 6E 6E 6E 6E EE 00 7F 7E 02 01 00 81 53 B2 15 4B"


def test_roundings_of_hifloat8():
    assert mx.encode(HIFLOAT8, "hifloat8").tobytes().hex(" ").upper() == ROUND
    assert mx.encode(HIFLOAT8, "hifloat8", hybrid=True).tobytes().hex(" ").upper() == HYBRID
    assert mx.encode(floats(np.array([0x34000001, 0x34003FFF])), 290, hybrid=True).tolist() == [1, 0]
    assert mx.encode(np.array([0x4180], np.uint16), 290, hybrid=True).tolist() == [0x41]  # bfloat16, 16
    for dtype, values in ("hifloat8", np.float16([1])), ("float8_e5m2", f4([1])):
        with pytest.raises(ValueError, match=rf"\Ahybrid: is true; expected false for {dtype} of "):
            mx.encode(values, dtype, hybrid=True)


#: The largest value that a cast keeps, the next float32, what that and NaN become.
ENDS = [("float8_e4m3fn", 464, 0x7F, 0x7F), ("float8_e5m2", np.nextafter(f4(61440), f4(0)), 0x7C, 0x7F),
        ("hifloat8", np.nextafter(f4(40960), f4(0)), 0x6F, 0x80)]


@pytest.mark.parametrize("dtype, most, infinity, nan", ENDS)
def test_npu_dtype_cast(dtype, most, infinity, nan):
    x, beyond = near_small_floats(dtype), np.nextafter(f4(most), f4(np.inf))
    x = x[np.abs(x) <= f4(most)]
    np.testing.assert_array_equal(npuquant.npu_dtype_cast(x, dtype), mx.encode(x, dtype))
    wanted = [infinity, infinity | 0x80, infinity, infinity | 0x80, nan]
    assert npuquant.npu_dtype_cast(f4([beyond, -beyond, np.inf, -np.inf, np.nan]), dtype).tolist() == wanted
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(npuquant.npu_dtype_cast(codes, np.float32, dtype), mx.decode(codes, dtype))
    again = npuquant.npu_dtype_cast(npuquant.npu_dtype_cast(codes, "bfloat16", dtype), dtype)
    at = np.isfinite(mx.decode(codes, dtype))
    np.testing.assert_array_equal(again[at], codes[at])


@pytest.mark.parametrize("dtype", ["float4_e2m1fn_x2", "float4_e1m2fn_x2"])
def test_npu_dtype_cast_to_4_bits(dtype):
    """By way of bfloat16: what is a little above a half is a half first."""
    x = near_small_floats(dtype)
    x = x[:len(x) // 2 * 2]
    bits = x.view(np.uint32)
    rounded = np.where(np.isnan(x), 0x7FC00000, bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000).astype(np.uint32)
    np.testing.assert_array_equal(npuquant.npu_dtype_cast(x, dtype), mx.encode(rounded.view(f4), dtype))
    half = f4(mx.decode(np.uint8([0x01]), dtype)[0] / 2)
    assert npuquant.npu_dtype_cast(np.nextafter(f4([half, -half]), f4(9)), dtype).tolist() == [0x80]
    assert mx.encode(np.nextafter(f4([half, -half]), f4(9)), dtype).tolist() == [0x81]


def test_npu_dtype_cast_refuses():
    for text, arguments in (
            ("dtype: is int8; npuquant casts between", (f4([1]), "int8")),
            ("input_dtype: is int32; npuquant casts between", (np.int32([1]), "float16")),
            ("input: is int8; expected hifloat8 or uint8, as", (np.int8([1]), "float16", 290)),
            (r"input: has the shape \[3\]; expected an even", (f4([1, 2, 3]), 296))):
        with pytest.raises((ValueError, TypeError, NotImplementedError), match=rf"\A{text}"):
            npuquant.npu_dtype_cast(*arguments)


def test_conversions_that_are_refused():
    codes, coded = np.zeros(2, np.uint8), "float8_e4m3fn, float8_e5m2, hifloat8, .* or float8_e8m0fnu"
    for says, call, *arguments in (
        (f"dtype: is 'uint8'; expected {coded}", mx.decode, codes),
        ("codes: is int8; expected uint8 or float8_e4m3fn", mx.decode, codes.view(np.int8), "mxfp8"),
        ("values: is int8; expected float32, float16 or bfloat16", mx.encode, codes.view(np.int8), "mxfp8"),
        (r"values: has the shape \(3,\); expected an even last extent, as dtype is float4_e2m1fn_x2", mx.encode,
         np.zeros(3, f4), "mxfp4"),
        ("scales: is float32; expected uint8 or float8_e8m0fnu", mx.in_pairs, np.zeros(2, f4)),
        (f"array: is 'float32'; expected {coded}", mx.from_ml_dtypes, np.zeros(2, f4)),
    ):
        with pytest.raises(RuntimeError, match=rf"\A{says} \[{call.__name__}\]\Z"):
            call(*arguments)


def stand_in(name):
    """In place of a type of ml_dtypes, which needs C: the class of its arrays. view() takes a class, too."""
    dtype = type("dtype", (), {"name": name, "__str__": lambda self: name})()
    return type("ndarray", (np.ndarray,), {"dtype": property(lambda self: dtype, lambda self, other: None)})


def test_ml_dtypes(monkeypatch):
    """No Debian has the package: its types are those of a stand-in."""
    names = {"float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e8m0fnu": 1, "float4_e2m1fn": 2}
    monkeypatch.setitem(sys.modules, "ml_dtypes", types.SimpleNamespace(**{name: stand_in(name) for name in names}))
    codes = np.arange(256, dtype=np.uint8).reshape(4, 64)
    for name, elements in names.items():
        dtype = "mxfp4" if elements == 2 else name
        array = mx.to_ml_dtypes(codes, dtype)
        assert str(array.dtype) == name and array.shape == (4, 64 * elements)
        assert np.shares_memory(array, codes) == (elements == 1)
        back = mx.from_ml_dtypes(array)
        assert type(back) is np.ndarray and back.dtype == np.uint8 and (back == codes).all()
        if elements == 1:
            np.testing.assert_array_equal(mx.decode(array), mx.decode(codes, dtype))
    for missing in "hifloat8", "float4_e1m2fn_x2":
        with pytest.raises(TypeError, match=rf"\Adtype: is {missing}; expected a type that ml_dtypes has \[to_ml_dty"):
            mx.to_ml_dtypes(codes, missing)
    x = rng.normal(size=(4, 64)).astype(f4)
    y, mxscale = npuquant.dynamic_mx_quant(x, dst_type="float8_e4m3fn")
    out = mx.to_ml_dtypes(np.zeros_like(y), "mxfp8"), mx.to_ml_dtypes(np.zeros_like(mxscale), "float8_e8m0fnu")
    assert npuquant.dynamic_mx_quant(x, dst_type="float8_e4m3fn", out=out) is out
    assert (mx.from_ml_dtypes(out[0]) == y).all() and (mx.from_ml_dtypes(out[1]) == mxscale).all()
    np.testing.assert_array_equal(npuquant.anti_mx_quant(*out), npuquant.anti_mx_quant(y, mxscale))


@pytest.mark.parametrize("dtype", ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp4_e2m1"])
def test_conventions_are_those_of_gfloat(dtype):
    """FLOOR: the scales of all finite bfloat16, and the values of some groups."""
    gfloat = pytest.importorskip("gfloat", reason="no gfloat (Debian 13: python3-gfloat)")
    form = getattr(pytest.importorskip("gfloat.formats"), f"format_info_{dtype}")
    bits = BFLOAT16[:0x7F80]
    groups = groups_of(bits, "bfloat16")
    values = expected.floats(groups).astype(np.float64)
    codes, scales = mx.quantize(groups, dtype)
    wanted = [gfloat.compute_scale_amax(form.etype.emax, group) for group in values]
    np.testing.assert_array_equal(mx.decode(scales, "float8_e8m0fnu")[:, 0], f4(wanted))
    kept = mx.decode(codes, dtype).astype(np.float64) * mx.decode(scales, "float8_e8m0fnu")
    for group in [*range(4), *rng.integers(0, len(bits), 60)]:
        np.testing.assert_array_equal(
            kept[group], gfloat.quantize_block(form, values[group], gfloat.compute_scale_amax))
