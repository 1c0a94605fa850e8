# SPDX-License-Identifier: BSD-3-Clause
"""Text and JSON of what the extension finds."""
import json

import numpy as np
import npuquant
import pytest
from npuquant import _native, _report, _threads

X = np.float32([[5.5, 7.25, 11, 22]])
CALL = "npu_quantize", X, np.ones(1, np.float32), None, np.int8
RIGHT = npuquant.npu_quantize(*CALL[1:])


def admission(actual, **kwargs):
    with _threads.keeping() as kept:
        npuquant.npu_quantize(*CALL[1:], **kwargs)
    return _native.admission(kept[0].call, (actual,), 1)


@pytest.mark.parametrize(
    ("dtype", "bits", "text"),
    [
        ("float32", 0x3DCCCCCD, "0.100000001 (0x3DCCCCCD)"),
        ("float32", 0x80000000, "-0 (0x80000000)"),
        ("float32", 0x7FC00000, "nan (0x7FC00000)"),
        ("float32", 0xFFC00000, "-nan (0xFFC00000)"),
        ("float16", 0x2E66, "0.099976 (0x2E66)"),
        ("float16", 0xFC00, "-inf (0xFC00)"),
        ("bfloat16", 0x3DCD, "0.1001 (0x3DCD)"),
        ("int8", 0xFF, "-1"),
        ("uint8", 0xFF, "255"),
        ("int32", 0x80000000, "-2147483648"),
        ("quint4x2", 0x8, "-8"),
        ("int64", 1 << 46, "0x0000400000000000"),
        ("uint64", 2**64 - 1, "0xFFFFFFFFFFFFFFFF"),
    ],
)
def test_values(dtype, bits, text):
    assert _report.format_value(dtype, bits) == text


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
        "diagnosis: half-down: explains 1 of 1 differing elements and changes no other", *within]


def test_json_is_the_callers():
    found = npuquant.diagnose(np.zeros((1, 4), np.int8), *CALL)
    said = found.to_dict()
    assert next(iter(said.items())) == ("format", 1) and json.loads(json.dumps(said)) == said
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
