# SPDX-License-Identifier: BSD-3-Clause
"""The text of a comparison: cases of docs/tool.md, and counts by NumPy. test_report.py has the text of values."""
import math
import re
import tracemalloc

import numpy as np
import pytest
from npuquant_cli import compare
from npuquant_cli.compare import Comparison
from npuquant_cli.files import Tensor
from npuquant_facts.dtypes import TYPES, WORDS
from npuquant_facts.operators import TAKEN
from numpy_operators import rng, unpack

STORED = {name: kind.stored for name, kind in TYPES.items()}
NAN = 0x7FC00000


def tensor(values, dtype):
    return Tensor(np.array(values, STORED[dtype]), dtype)


def of_bits(bits, dtype):
    stored = np.dtype(STORED[dtype])
    return Tensor(np.array(bits, f"u{stored.itemsize}").view(stored), dtype)


def report(ours, theirs, max_diffs=10, **settings):
    return Comparison(ours, theirs, **settings).report("y", max_diffs).splitlines()


def remarks(ours, theirs, tolerance=0):
    return Comparison(ours, theirs, tolerance, our_name="A", their_name="B").remarks().splitlines()


# ---- the conclusion --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TAKEN)
@pytest.mark.parametrize(("shape", "elements"), [((), "1 element"), ((1,), "1 element"), ((3, 4), "12 elements"),
                                                 ((2, 0, 5), "0 elements"), ((0, 10**12), "0 elements")])
def test_equal(dtype, shape, elements):
    if TYPES[dtype].elements > 1:
        if shape == ():
            return  # a word has several elements of the last dimension
        elements = f"{TYPES[dtype].elements * math.prod(shape)} elements"
    zeros = Tensor(np.zeros(shape, STORED[dtype]), dtype)
    assert report(zeros, zeros) == [f"y: all {elements} equal"]
    assert remarks(zeros, zeros) == []


@pytest.mark.parametrize(("ours", "theirs", "settings", "conclusion"), [
    # Integers: theirs minus ours, as numbers.
    (tensor([5], "int8"), tensor([-7], "int8"), {}, "1 of 1 element differs (100 %), by -12 (file - npuquant)"),
    (tensor(5, "int8"), tensor(-7, "int8"), {}, "1 of 1 element differs (100 %), by -12 (file - npuquant)"),
    (tensor([0, 0, 0], "int32"), tensor([-(2**31), 2**31 - 1, 0], "int32"), {},
     "2 of 3 elements differ (66 %), by -2147483648..+2147483647 (file - npuquant)"),
    (tensor([-128, 127], "int8"), tensor([128, 127], "uint8"), {},
     "1 of 2 elements differs (50 %), by +256 (file - npuquant)"),
    (tensor([200, 1], "uint8"), tensor([-56, 1], "int8"), {},
     "1 of 2 elements differs (50 %), by -256 (file - npuquant)"),
    (tensor([1, 2], "int8"), tensor([2, 2], "int8"), {"our_name": "A", "their_name": "B"},
     "1 of 2 elements differs (50 %), by +1 (B - A)"),
    # Floats: steps, away from zero and across it; NaN and infinities; zeros.
    (tensor([1, -1, 0, 2], "float32"), of_bits([0x3F800001, 0xBF800002, 0, 0x40000000], "float32"), {},
     "2 of 4 elements differ (50 %), by -2..+1 ulp (file - npuquant)"),
    (of_bits([0x8002], "float16"), of_bits([3], "float16"), {},
     "1 of 1 element differs (100 %), by +5 ulp (file - npuquant)"),
    (of_bits([NAN, NAN, 0x7F7FFFFF, 0x7F800000], "float32"), of_bits([NAN, NAN + 1, 0x7F800000, 0xFF800000], "float32"),
     {}, "3 of 4 elements differ (75 %); NaN or an infinity against another value in 3"),
    (of_bits([0x7F80, 0, 0x8000, 7], "bfloat16"), of_bits([0x7F7F, 0x8000, 0, 6], "bfloat16"), {},
     "4 of 4 elements differ (100 %), by -1 ulp (file - npuquant); NaN or an infinity against another value in 1; "
     "zeros of the other sign in 2"),
    # Parameters are compared as values.
    (of_bits([0, NAN, NAN, 5], "float32"), of_bits([1 << 31, 0xFFC00001, NAN, 6], "float32"), {"is_parameter": True},
     "1 of 4 elements differs (25 %), by +1 ulp (file - npuquant)"),
    (of_bits([NAN, 0x7F800000], "float32"), of_bits([0x7F800000, NAN], "float32"), {"is_parameter": True},
     "2 of 2 elements differ (100 %); NaN or an infinity against another value in 2"),
    (of_bits([0, NAN], "float32"), of_bits([1 << 31, 0xFFC00001], "float32"), {"is_parameter": True},
     "all 2 elements equal"),
    # A tolerance.
    (tensor([0, 0, 0, 0], "int8"), tensor([1, -2, 0, 0], "int8"), {"tolerance": 2},
     "all 4 elements within 2: 2 differ (50 %), by -2..+1 (file - npuquant)"),
    (tensor([0, 0, 0, 0], "int8"), tensor([1, -2, 3, 0], "int8"), {"tolerance": 2},
     "1 of 4 elements differs by more than 2 (25 %), by +3 (file - npuquant); 2 more by no more than 2"),
    (tensor([0], "uint8"), tensor([255], "uint8"), {"tolerance": 255},
     "all 1 element within 255: 1 differs (100 %), by +255 (file - npuquant)"),
    (of_bits([0, 5, 0x7F7FFFFF], "float32"), of_bits([1 << 31, 6, 0x7F800000], "float32"), {"tolerance": 2**31 - 1},
     "1 of 3 elements differs by more than 2147483647 ulp (33 %); NaN or an infinity against another value in 1; "
     "2 more by no more than 2147483647"),
    (of_bits([0, 5], "float16"), of_bits([1 << 15, 5], "float16"), {"tolerance": 1},
     "all 2 elements within 1 ulp: 1 differs (50 %), by +0 ulp (file - npuquant)"),
    # Words have a scale in bits 0 to 31 and an offset in bits 37 to 45.
    (tensor([0, 0, 0, 0], "uint64"), tensor([1, 1 << 31, 1 << 37, 3 << 45], "int64"), {},
     "4 of 4 elements differ (100 %): the scale in 2, the offset in 2, other bits in 1"),
    (tensor([0, 7], "int64"), tensor([1 << 46 | 1 << 36, 7], "uint64"), {},
     "1 of 2 elements differs (50 %): other bits in 1"),
    # Eight int4 in a word, the first in the lowest bits.
    (tensor([[0x00000070]], "quint4x2"), of_bits([[0x80000080]], "int32"), {},
     "2 of 8 elements differ (25 %), by -15..-8 (file - npuquant)"),
    (tensor([[0x00000001]], "quint4x2"), tensor([[0x00000010]], "int32"), {"tolerance": 1},
     "all 8 elements within 1: 2 differ (25 %), by -1..+1 (file - npuquant)"),
])
def test_conclusion(ours, theirs, settings, conclusion):
    assert report(ours, theirs, **settings)[0] == f"y: {conclusion}"


@pytest.mark.parametrize(("elements", "differ", "share"), [
    (3, 1, "(33 %)"), (3, 3, "(100 %)"), (1000, 999, "(99 %)"), (1000, 100, "(10 %)"), (1000, 99, "(9.9 %)"),
    (3000, 1, "(0.033 %)"), (1000000, 1, "(0.0001 %)"), (1000001, 1, "(less than 0.0001 %)")])
def test_share(elements, differ, share):
    theirs = np.zeros(elements, "i1")
    theirs[:differ] = 1
    conclusion = report(tensor(np.zeros(elements), "int8"), tensor(theirs, "int8"))[0]
    assert re.search(r"\(.* %\)", conclusion)[0] == share


# ---- the histogram ---------------------------------------------------------------------------------------------------


def histogram(steps):
    zeros = tensor(np.zeros(len(steps)), "int32")
    return [line for line in report(zeros, tensor(steps, "int32"), max_diffs=0) if line.endswith("#")]


def test_histogram():
    assert histogram([7, 7, 0]) == []
    assert histogram([4, 7, 5, -1]) == ["      -1  1  " + "#" * 14, "  +4..+7  3  " + "#" * 40]
    # The longest bar has 40 characters, the shortest has one.
    assert histogram([1] * 100 + [2] * 50 + [4]) == ["  +1  100  " + "#" * 40, "  +2   50  " + "#" * 20,
                                                     "  +4    1  #"]
    # Eight powers of 2 have a bar each. Nine do not: two share one, counted from 2^0 on either side.
    powers = [-(2**i) for i in range(4)] + [2**i for i in range(4)]
    assert [line.split()[0] for line in histogram(powers)] == ["-8", "-4", "-2", "-1", "+1", "+2", "+4", "+8"]
    assert [line.split()[:2] for line in histogram([*powers, 31])] == [
        ["-8..-4", "2"], ["-2..-1", "2"], ["+1..+2", "2"], ["+4..+8", "2"], ["+31", "1"]]
    # All powers: sixteen on either side make four bars.
    powers = [-(2**i) for i in range(32)] + [2**i for i in range(31)]
    assert [line.split()[:2] for line in histogram(powers)] == [
        ["-2147483648..-16777216", "8"], ["-8388608..-65536", "8"], ["-32768..-256", "8"], ["-128..-1", "8"],
        ["+1..+128", "8"], ["+256..+32768", "8"], ["+65536..+8388608", "8"], ["+16777216..+1073741824", "7"]]


# ---- where -----------------------------------------------------------------------------------------------------------


def places(shape, *where):
    """The lines about places, if elements with these indices differ."""
    theirs = np.zeros(shape, "i1")
    for index in where:
        theirs[index] = 1
    return report(tensor(np.zeros(shape), "int8"), tensor(theirs, "int8"), max_diffs=0)[1:]


@pytest.mark.parametrize(("hit", "line"), [
    (range(512), "all 512 hit"),
    ([7], "1 of 512 hit: 7"),
    ([0], "1 of 512 hit: 0"),
    ([511], "1 of 512 hit: 511"),
    ([17, 400], "2 of 512 hit: 17, 400"),
    ([0, 1, 5], "3 of 512 hit: 0..1, 5"),
    (range(128, 256), "128 of 512 hit: 128..255"),
    (range(4), "4 of 512 hit: 0..3 (the first 4)"),
    (range(448, 512), "64 of 512 hit: 448..511 (the last 64)"),
    (range(256), "256 of 512 hit: 0..255 (the first 256)"),
    (range(257), "257 of 512 hit: all but 257..511 (the last 255)"),
    ([i for i in range(512) if i != 3], "511 of 512 hit: all but 3"),
    (range(3, 512, 8), "64 of 512 hit: 3..507 in steps of 8"),
    (range(0, 512, 2), "256 of 512 hit: 0..510 in steps of 2"),
    ([0, 255, 510], "3 of 512 hit: 0..510 in steps of 255"),
    ([0, 256], "2 of 512 hit: 0, 256"),
    ([0, 256, 511], "3 of 512 hit: 0, 256, 511"),
    ([1, 4, 5, 8, 11, 14, 17, 20, 23, 25, 27], "11 of 512 hit: 1, 4..5, 8, 11, 14, 17, 20, 23, and 2 more"),
])
def test_hits(hit, line):
    hit = list(hit)
    assert places((512, 3), (hit, slice(None))) == [f"  rows: {line}", "  columns: all 3 hit"]
    assert places((3, 512), (slice(None), hit)) == ["  rows: all 3 hit", f"  columns: {line}"]
    assert places((512,), hit) == [f"  elements: {line}"]


def test_dimensions():
    assert places((1, 4), (0, 2)) == ["  columns: 1 of 4 hit: 2"]
    assert places((4, 1), (2, 0)) == ["  rows: 1 of 4 hit: 2"]
    assert places((4, 3, 2, 5), (slice(None), 1, 1, 2)) == [
        "  rows: 4 of 24 hit: 3..21 in steps of 6", "  dimension 1: 1 of 3 hit: 1", "  dimension 2: 1 of 2 hit: 1",
        "  columns: 1 of 5 hit: 2"]
    ours, theirs = np.zeros((3, 4), "f4"), np.zeros((3, 4), "f4")
    theirs[2, 1] = 1
    assert report(tensor(ours, "float32"), tensor(theirs, "float32"), is_parameter=True)[1:] == [
        "  rows: 1 of 12 hit: 9", "  dimension 0: 1 of 3 hit: 2", "  dimension 1: 1 of 4 hit: 1",
        "  [2, 1]: npuquant 0 (0x00000000), file 1 (0x3F800000), +1065353216 ulp"]


def test_quint4x2_counts_and_indexes_int4():
    assert report(tensor([[0, 0], [0, 0]], "quint4x2"), of_bits([[0, 0x00F00000], [0, 0x80000000]], "int32")) == [
        "y: 2 of 32 elements differ (6.2 %), by -8..-1 (file - npuquant)",
        f"  -8  1  {'#' * 40}",
        f"  -1  1  {'#' * 40}",
        "  rows: all 2 hit",
        "  columns: 2 of 16 hit: 13, 15",
        "  [0, 13]: npuquant 0, file -1",
        "  [1, 15]: npuquant 0, file -8"]


# ---- single differences ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset_bits", "offset"), [(0, 0), (255, 255), (256, -256), (511, -1)])
def test_offset_of_a_word(offset_bits, offset):
    last = report(tensor([1 << 63], "uint64"), tensor([offset_bits << 37], "uint64"))[-1]
    assert last.endswith(f"(scale 0, offset {offset})")


def test_single_differences():
    word = 0x3F800000 | 0x1FF << 37  # a scale of 1, an offset of -1
    assert report(tensor([0, 1], "uint64"), tensor([word, 1 | 255 << 37], "int64"))[2:] == [
        "  [0]: npuquant 0x0000000000000000 (scale 0, offset 0), file 0x00003FE03F800000 (scale 1, offset -1)",
        "  [1]: npuquant 0x0000000000000001 (scale 1.40129846e-45, offset 0), "
        "file 0x00001FE000000001 (scale 1.40129846e-45, offset 255)"]
    ours, theirs = of_bits([[0, 0x3C00], [0x3C00, 1]], "float16"), of_bits([[0x8000, 0x3BFF], [0x7C00, 1]], "float16")
    lines = ["  [0, 0]: npuquant 0 (0x0000), file -0 (0x8000)",
             "  [0, 1]: npuquant 1 (0x3C00), file 0.99951 (0x3BFF), -1 ulp",
             "  [1, 0]: npuquant 1 (0x3C00), file inf (0x7C00)"]
    assert report(ours, theirs)[3:] == lines
    assert report(ours, theirs, max_diffs=3)[3:] == lines
    assert report(ours, theirs, max_diffs=2)[3:] == lines[:2] + ["  ... and 1 more (see --max-diffs)"]
    assert report(ours, theirs, max_diffs=0)[3:] == []
    # Differences within the tolerance are not shown.
    assert report(ours, theirs, tolerance=1)[-1] == lines[2]


# ---- two dumps -------------------------------------------------------------------------------------------------------

CODES = "  every difference is 128: one is int8, the other uint8"
ULP = "  no difference is more than one unit in the last place"
ORDER = "  the same values in another order"


@pytest.mark.parametrize(("ours", "theirs", "tolerance", "said"), [
    (tensor([-128, 0, 127], "int8"), tensor([0, 128, 255], "uint8"), 0, [CODES]),
    (tensor([0, 128, 255], "uint8"), tensor([-128, 0, 127], "int8"), 0, [CODES]),
    (tensor([-1, 1, 0], "int8"), tensor([127, -127, 0], "int8"), 0, [CODES]),
    (tensor([-1, 1], "int8"), tensor([127, 128], "uint8"), 0, []),
    (tensor([-1, 1], "int8"), tensor([127, 130], "uint8"), 0, []),
    (tensor([-1, 1], "int8"), tensor([127, 2], "int8"), 1, []),
    (of_bits([0, 5, 0x3F800000], "float32"), of_bits([1 << 31, 4, 0x3F800001], "float32"), 0, [ULP]),
    (of_bits([0], "float16"), of_bits([1 << 15], "float16"), 0, [ULP]),
    (of_bits([5, 5], "bfloat16"), of_bits([4, 7], "bfloat16"), 0, []),
    (of_bits([5, 0x7F7FFFFF], "float32"), of_bits([4, 0x7F800000], "float32"), 0, []),
    (tensor([5], "int32"), tensor([4], "int32"), 0, []),
    (of_bits([5, 300], "float16"), of_bits([133, 172], "float16"), 0, []),
    (tensor([1, 2, 3], "int8"), tensor([3, 1, 2], "int8"), 0, [ORDER]),
    (tensor([1, 2, 3], "int8"), tensor([2, 3, 1], "uint8"), 0, [ORDER]),
    (tensor([-1, 2], "int8"), tensor([2, 255], "uint8"), 0, []),  # the same bits, but not the same numbers
    (tensor([1, 2, 2], "int8"), tensor([1, 1, 2], "int8"), 0, []),
    (tensor([0, 4, 5], "int32"), tensor([1, 2, 6], "int32"), 0, []),  # with the same sum, also of squares
    (tensor([1, 2], "uint64"), tensor([2, 1], "int64"), 0, [ORDER]),
    (of_bits([3, 4], "float32"), of_bits([4, 3], "float32"), 0, [ULP, ORDER]),
])
def test_remarks(ours, theirs, tolerance, said):
    assert remarks(ours, theirs, tolerance) == said


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int32", "uint64"])
def test_moved_rows(dtype):
    ours = np.arange(60).reshape(5, 3, 4).astype(STORED[dtype])

    def said(theirs):
        return [line for line in remarks(Tensor(ours, dtype), Tensor(theirs, dtype)) if line != ULP]

    assert said(ours[[4, 1, 2, 3, 0]]) == [
        ORDER + ": 6 of 15 rows moved; row 0 of B is row 12 of A, row 1 of B is row 13 of A, "
                "row 2 of B is row 14 of A"]
    rows = ours.reshape(15, 4)
    theirs = rows.copy()
    theirs[[2, 3]] = theirs[[3, 2]]
    assert said(theirs.reshape(ours.shape)) == [
        ORDER + ": 2 of 15 rows moved; row 2 of B is row 3 of A, row 3 of B is row 2 of A"]
    theirs[9, :2] = theirs[9, 1::-1]  # not only whole rows
    assert said(theirs.reshape(ours.shape)) == [ORDER]
    assert said(ours[:, :, ::-1]) == [ORDER]


def test_moved_rows_with_a_tolerance():
    """A few rows may have other differences, if the tolerance allows them."""
    ours = np.arange(64).reshape(16, 4)
    theirs = ours[[0, 1, 5, 3, 4, 2, *range(6, 16)]]
    theirs[9:11, :2] = theirs[9:11, 1::-1]
    assert remarks(tensor(ours, "int32"), tensor(theirs, "int32"), 1) == [
        ORDER + ": 2 of 16 rows moved; row 2 of B is row 5 of A, row 5 of B is row 2 of A"]
    theirs[11, :2] = theirs[11, 1::-1]
    assert remarks(tensor(ours, "int32"), tensor(theirs, "int32"), 1) == [ORDER]


def test_moved_rows_of_one_column_with_values_that_repeat():
    """The first of rows with the same values goes with the first."""
    assert remarks(tensor([[1], [1], [2], [2], [5]], "int32"), tensor([[2], [2], [1], [1], [5]], "int32")) == [
        ORDER + ": 4 of 5 rows moved; row 0 of B is row 2 of A, row 1 of B is row 3 of A, row 2 of B is row 0 of A"]


# ---- drawn pairs -----------------------------------------------------------------------------------------------------


def elements_of(tensor):
    """The bits of each element, a number in the order of the type, and its magnitude against that of infinity."""
    kind = TYPES[tensor.dtype]
    bits = tensor.array.view(f"u{tensor.array.itemsize}")
    if tensor.dtype == "quint4x2":
        values = unpack(tensor.array)
        return values, values.astype("i8"), np.full(values.shape, -1)
    if kind.elements == 2:
        bits = np.stack([bits & 15, bits >> 4], axis=-1).reshape(kind.in_values(bits.shape))
    if kind.is_integer or kind.kind in ("WORD", "EXPONENT"):
        return bits, tensor.array.astype("i8"), np.full(bits.shape, -1)
    magnitude, infinity = bits.astype("i8") % (1 << kind.bits - 1), kind.infinity
    if kind.is_small_float:
        sizes = [kind.value(code) for code in range(1 << kind.bits - 1)]
        infinity = len([size for size in sizes if np.isfinite(size)])
        if kind.kind == "TAPERED_FLOAT":  # NaN is in the place of -0
            magnitude = np.append(np.argsort(np.argsort(sizes)), 128)[np.where(bits == 128, 128, magnitude)]
    return bits, np.where(bits >> kind.bits - 1 != 0, -magnitude, magnitude), magnitude - infinity


def expected_counts(ours, theirs, tolerance, is_parameter):
    """The places of differences, their steps, and how many are not numbers."""
    theirs = Tensor(theirs.array, theirs.dtype if theirs.dtype in ("int8", "uint8") else ours.dtype)
    (our_bits, our_values, our_size), (their_bits, their_values, their_size) = elements_of(ours), elements_of(theirs)
    steps, is_finite = their_values - our_values, np.maximum(our_size, their_size) < 0
    same = steps == 0 if ours.dtype != theirs.dtype else our_bits == their_bits
    if is_parameter:
        same |= (steps == 0) | (np.minimum(our_size, their_size) > 0)
    tolerated = ~same & is_finite & (abs(steps) <= tolerance) & (tolerance > 0)
    wrong = ~same & ~tolerated
    return {"places": list(map(tuple, np.argwhere(wrong))), "infinite": (wrong & ~is_finite).sum(),
            "zeros": (wrong & is_finite & (steps == 0)).sum(), "tolerated": tolerated.sum(),
            "steps": steps[wrong & is_finite & (steps != 0)].tolist()}


def number_after(pattern, text):
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def check_counts(lines, found):
    """The numbers of a report that shows all differences."""
    conclusion = lines[0]
    steps = found["steps"]
    if not found["places"]:
        assert number_after(r": (\d+) differs? \(", conclusion) == found["tolerated"]
        return
    assert number_after(r"\Ay: (\d+) of ", conclusion) == len(found["places"])
    assert number_after(r"another value in (\d+)", conclusion) == found["infinite"]
    assert number_after(r"other sign in (\d+)", conclusion) == found["zeros"]
    assert number_after(r"; (\d+) more by", conclusion) == found["tolerated"]
    ends = re.search(r", by ([+-]\d+)(?:\.\.([+-]\d+))?", conclusion)
    assert (ends is None) == (steps == [])
    if ends:
        assert (int(ends[1]), int(ends[2] or ends[1])) == (min(steps), max(steps))
    bars = [re.fullmatch(r" +([+-]\d+)(?:\.\.([+-]\d+))? +(\d+)  #+", line) for line in lines]
    bars = [(int(bar[1]), int(bar[2] or bar[1]), int(bar[3])) for bar in bars if bar]
    for least, most, count in bars:
        inside = [step for step in steps if least <= step <= most]
        assert (min(inside), max(inside), len(inside)) == (least, most, count)
    assert sum(count for _, _, count in bars) in (len(steps), 0)
    shown = [tuple(int(i) for i in re.findall(r"\d+", line.split("]")[0])) for line in lines if line[:3] == "  ["]
    assert shown == found["places"]


def draw_layout(array):
    """The same values in another layout."""
    choice = rng.integers(4)
    if array.ndim == 0 or choice == 0:
        return array
    if choice == 1:
        return np.asfortranarray(array)
    if choice == 2:
        return np.flip(np.flip(array).copy())
    return np.repeat(array, 2, axis=-1)[..., ::2]


def draw_pair(dtype, their_dtype):
    shape = tuple(int(extent) for extent in rng.integers(0 if rng.random() < 0.1 else 1, 6, rng.integers(1, 5)))
    bits = np.dtype(f"u{np.dtype(STORED[dtype]).itemsize}")
    special = [0, 1 << 8 * bits.itemsize - 1, 1]
    if TYPES[dtype].is_float:
        infinity = TYPES[dtype].infinity
        special += [infinity - 1, infinity, infinity + 1, infinity | special[1], infinity + 1 | special[1]]
    ours = np.where(rng.random(shape) < 0.5, rng.choice(np.array(special, bits), shape),
                    rng.integers(0, np.iinfo(bits).max, shape, dtype=bits, endpoint=True))
    near = ours + rng.integers(0, 5, shape).astype(bits) - bits.type(2)
    theirs = np.where(rng.random(shape) < rng.random(), ours, np.where(rng.random(shape) < 0.5, near, rng.permutation(
        ours.ravel()).reshape(shape)))
    return (Tensor(draw_layout(ours.view(STORED[dtype])), dtype),
            Tensor(draw_layout(theirs.view(STORED[their_dtype])), their_dtype))


@pytest.mark.parametrize(("dtype", "their_dtype"), [
    *((dtype, dtype) for dtype in TAKEN), ("int8", "uint8"), ("uint8", "int8"), ("uint64", "int64"),
    ("quint4x2", "int32")])
def test_counts(dtype, their_dtype, monkeypatch):
    for _ in range(60):
        ours, theirs = draw_pair(dtype, their_dtype)
        tolerance = int(rng.choice([0, 1, 3])) if dtype not in WORDS else 0
        is_parameter = dtype == "float32" and rng.random() < 0.5
        lines = report(ours, theirs, 10**6, tolerance=tolerance, is_parameter=is_parameter)
        found = expected_counts(ours, theirs, tolerance, is_parameter)
        if dtype in WORDS:
            found.update(steps=[], zeros=0)
        check_counts(lines, found)
        both = lines, remarks(ours, theirs, tolerance)
        with monkeypatch.context() as context:  # blocks end within rows
            context.setattr(compare, "_BLOCK", 3)
            assert (report(ours, theirs, 10**6, tolerance=tolerance, is_parameter=is_parameter),
                    remarks(ours, theirs, tolerance)) == both


@pytest.mark.parametrize("dtype", ["float32", "quint4x2", "uint64"])
def test_memory_does_not_grow_with_the_tensors(dtype):
    """Two layouts, and all elements differ. Their places alone would take 8 bytes for each."""
    rows, columns = 512, 2048
    ours = np.broadcast_to(np.arange(columns).astype(STORED[dtype]), (rows, columns))
    theirs = np.broadcast_to(-np.arange(1, rows + 1).astype(STORED[dtype]), (columns, rows)).T
    tracemalloc.start()
    try:
        comparison = Comparison(Tensor(ours, dtype), Tensor(theirs, dtype))
        text = comparison.report("y", 10) + comparison.remarks()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "rows: all 512 hit" in text
    values = rows * columns * (8 if dtype == "quint4x2" else 1)
    assert peak < 8 * values
