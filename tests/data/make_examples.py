#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the worked examples of the operators: .npy files, and examples.txt with a command line for each. With --check
it writes nothing, and fails if a file has other contents. With --header it prints examples.h, the same calls for C.

Nothing here computes an operator's formula: all numbers are written out. The "device" examples are printed in the
operators' documentation as results of a device. Results are compared in every bit.
"""
import io
import os
import re
import shlex
import sys
import textwrap
import warnings

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from numpy_operators import SMALL, round_to  # noqa: E402

lines = []
written = {}
contents = {}  # of each file
arrays = {}  # of examples.h: a C type and the values, to the name
table = []

f4, f2, i1, u1, i4, i8 = (np.dtype(name) for name in ("f4", "f2", "i1", "u1", "i4", "i8"))


def bfloat16(values):
    """The nearest bfloat16, ties to even, as the u2 that NumPy stores."""
    return round_to(np.asarray(values, f4), "bfloat16")


def bits(values):
    """float32 values from their bits."""
    return np.array(values, "u4").view(f4)


def halves_of(values):
    """float16 values from their bits."""
    return np.array(values, "u2").view(f2)


def words(values):
    """quint4x2 words, as the command stores them."""
    return np.array(values, "u4").view(i4)


def codes(*rows):
    """Codes of 8-bit floats, rows of them in hexadecimal."""
    return np.array([[*bytes.fromhex(row)] for row in rows], u1)


def save(name, array, version):
    """Writes an array unless an equal file exists; returns the file's name."""
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    key = (array.dtype.str, array.shape, order, version, array.tobytes())
    if key not in written:
        written[key] = name + ".npy"
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy says that it cannot read versions 2 and 3 everywhere
            np.lib.format.write_array(file, array, version=version)
        contents[written[key]] = file.getvalue()
    return written[key]


# ---- examples.h ----

#: Of each NumPy type: the library's; the type of its elements in C, hexadecimal for floats.
TYPES = {"f4": ("FLOAT32", "uint32_t"), "f2": ("FLOAT16", "uint16_t"), "u2": ("BFLOAT16", "uint16_t"),
         "i1": ("INT8", "int8_t"), "u1": ("UINT8", "uint8_t"), "i4": ("INT32", "int32_t"),
         "i8": ("INT64", "int64_t"), "u8": ("UINT64", "uint64_t")}
WRAPPED = {"width": 119, "break_long_words": False, "break_on_hyphens": False}


def c_array(name, array, is_words):
    """The name of a C array with the elements in their order in memory, and the library's type."""
    dtype, c_type = ("QUINT4X2", "uint32_t") if is_words else TYPES[array.dtype.str[1:]]
    flat = array.ravel("K").view(c_type[:-2])
    form = "0x{:X}" if is_words or array.dtype.kind == "f" or dtype == "BFLOAT16" or flat.max() >= 2**31 else "{}"
    key = c_type, ", ".join(map(form.format, flat.tolist()))
    return arrays.setdefault(key, re.sub("[^a-z0-9]+", "_", name.lower())), dtype


def c_argument(stem, argument, array, is_words, data=None):
    """data: "NULL" for a result that is not compared."""
    name, dtype = c_array(f"{stem} {argument}", array, is_words)
    is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    shape = ", ".join(map(str, array.shape))
    slot = argument.upper().replace("-", "_")
    return f"{{{slot}, NPUQ_{dtype}, {{{shape}}}, {data or name}, {str(is_fortran).lower()}}}"


def c_example(name, command, inputs, expected, options):
    given = dict(zip((option[2:].replace("-", "_") for option in options[::2]), options[1::2]))
    made = given.pop("dtype", "")
    is_packed = made == "quint4x2"
    fields = {"op": "TEST_" + command.upper().replace("-", "_")}
    if command == "quantize":
        fields.update(axis=min(1, inputs["x"].ndim - 1), div_mode="true")
    if command.startswith("dynamic-block-quant"):
        fields["block"] = 128
    if command == "dynamic-block-quant-float8":
        fields["row_block"] = 1
    for option, value in given.items():
        named = {"pertensor": "NPUQ_PER_TENSOR", "product": "NPUQ_SCALE_PRODUCT", "inverse": "NPUQ_SCALE_INVERSE"}
        is_nearest = option == "round_mode" and value == "1"
        fields[option] = "NPUQ_ROUND_NEAREST" if is_nearest else named.get(value, value)
    fields.pop("src_type", None)
    if "mx-quant" in command:
        fields["axis"] = -1
    call = ", ".join(f".{field} = {value}" for field, value in fields.items())
    arguments = [c_argument(name, argument, array, command == "anti-quant" and argument == "x" and array.dtype == i4)
                 for argument, array in inputs.items()]
    arguments += [c_argument(name, argument, array, is_packed and argument == "y")
                  for argument, array in expected.items()]
    if made in SMALL:
        arguments = [argument.replace("NPUQ_UINT8", f"NPUQ_{made.upper()}") for argument in arguments]
    if "src_type" in given:
        arguments[0] = arguments[0].replace("NPUQ_UINT8", f"NPUQ_{given['src_type'].upper()}")
    if "mx-quant" in command:
        arguments = [re.sub("(MX)?SCALE, NPUQ_\\w+", "MXSCALE, NPUQ_FLOAT8_E8M0", each) for each in arguments]
    if command == "dynamic-quant-asymmetric" and "offset" not in expected:
        arguments.append(c_argument(name, "offset", expected["scale"], False, "NULL"))
    rows = textwrap.fill(", ".join(arguments).replace(", ", ",\0").replace("},\0{", "}, {"), initial_indent=" " * 5,
                         subsequent_indent=" " * 5, **WRAPPED).replace("\0", " ")
    table.append(f'    {{"{name}", {{{call}}}, {{\n{rows}}}}},\n')


def examples_h():
    """Arrays wrapped; no element is one that a formatter would move."""
    said = ["/* SPDX-License-Identifier: BSD-3-Clause */\n"
            "/* The worked examples of the operators, written by make_examples.py. */\n/* clang-format off */\n"]
    for (c_type, values), name in arrays.items():
        said.append(textwrap.fill(f"static const {c_type} {name}[] = {{{values}}};", subsequent_indent="    ",
                                  **WRAPPED) + "\n")
    return "".join([*said, "\nstatic const struct example examples[] = {\n", *table, "};\n"])


# ---- an example ----


def example(name, command, inputs, expected, *options, version=(1, 0)):
    """The first input has no option; u2 arrays are bfloat16."""
    stem = name.replace(" ", "_")
    files = {argument: save(f"{stem}_{argument}", np.asanyarray(array), version) for argument, array in inputs.items()}
    first, *others = files
    line = [command, files[first]]
    for argument in others:
        line += [f"--{argument}", files[argument]]
    for argument, array in expected.items():
        line += ["--expect" if argument == "y" else f"--expect-{argument}", save(f"{stem}_{argument}", array, version)]
    named = [argument for argument, array in inputs.items() if np.asanyarray(array).dtype == np.dtype("u2")]
    if named:
        line += ["--bf16", ",".join(named)]
    lines.append(f"# {name}\n{shlex.join(line + list(options))}\n")
    arguments = {argument: np.asanyarray(array) for argument, array in inputs.items()}
    if all(array.dtype.isnative for array in arguments.values()):  # files may have the other byte order, arguments not
        c_example(name, command, arguments, expected, options)


# ---- quantize ----

example(
    "quantize device bfloat16",
    "quantize",
    {
        "x": bfloat16([0.9609, 1.3281, -0.6172, 0.5469, -1.1797, -1.1719, -0.7422, 0.9727, -0.9062, -0.0815, -0.8047,
                       1.0703]),
        "scales": bfloat16([0.1] * 12),
    },
    {"y": np.zeros(12, i1)},
    "--axis", "-1", "--div-mode", "false",
)

device_x = np.array([
    [[-7.7834e-01, -1.0473, -1.1155, 1.2233, -1.2271, -2.5612, -1.8274e-01, 2.8293, 1.9029e-01, -1.9333, -4.9270e-01,
      -1.0650],
     [-8.9416e-01, 3.1869e-02, -5.8144e-01, -4.9477e-01, 9.7323e-02, -3.8681e-01, 2.1969e-03, -6.3244e-01, 7.1591e-01,
      -1.8587e-01, -1.3381, -2.6253e-01],
     [1.8462e-02, 1.2397e-01, -9.0656e-01, -9.9280e-01, -4.4235e-02, 1.0623, -9.8437e-02, 1.2941, 1.0805, -1.7269e-01,
      -9.9205e-02, -6.1429e-01]],
    [[1.3678, -2.7348e-01, -4.1354e-01, -9.4638e-01, 4.2792e-01, 8.0462e-01, 9.3584e-01, 6.3704e-01, 1.1269, -1.5329,
      5.8572e-01, -1.3966],
     [3.5882e-01, 8.7029e-01, -1.3176, 1.1601, -3.6984e-01, 7.3642e-01, -1.0755, 6.6557e-01, 3.1149, -6.8776e-01,
      -1.0913, 4.4962e-01],
     [-1.2505, 1.5474, -7.4332e-02, -1.6657, 1.3275, 5.8914e-02, 8.4287e-01, -1.7109, 1.8256e-01, 3.2937e-01, 2.4875,
      1.3921]],
], f4)
device_y = np.array([
    [[-2, -3, -3, 4, -4, -8, -1, 8, 1, -6, -1, -3],
     [-3, 0, -2, -1, 0, -1, 0, -2, 2, -1, -4, -1],
     [0, 0, -3, -3, 0, 3, 0, 4, 3, -1, 0, -2]],
    [[4, -1, -1, -3, 1, 2, 3, 2, 3, -5, 2, -4],
     [1, 3, -4, 3, -1, 2, -3, 2, 9, -2, -3, 1],
     [-4, 5, 0, -5, 4, 0, 3, -5, 1, 1, 7, 4]],
], i1)
threes = np.full(12, 3.0, f4)
multiply_last = ("--axis", "-1", "--div-mode", "false")

example("quantize device float32", "quantize", {"x": device_x, "scales": threes}, {"y": device_y}, *multiply_last)
example("quantize Fortran order", "quantize", {"x": np.asfortranarray(device_x), "scales": threes},
        {"y": np.asfortranarray(device_y)}, *multiply_last)
example("quantize big-endian", "quantize", {"x": device_x.astype(">f4"), "scales": threes.astype(">f4")},
        {"y": device_y}, *multiply_last)

example(
    "quantize to int32",
    "quantize",
    {
        "x": np.array([[0.3382, -0.0919], [0.7564, 0.0234], [3.1024, 1.0761], [0.4228, 1.4621]], f4),
        "scales": np.array([1, -3], f4),
        "zero-points": np.array([2, 10], i4),
    },
    {"y": np.array([[2, 10], [3, 10], [5, 10], [2, 10]], i4)},
    "--axis", "1", "--dtype", "int32",
)

halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 127.5, 128.5, -128.5, 1e9, -1e9, np.inf, -np.inf, np.nan], f4)
one = np.array([1], f4)
example("quantize halves to int8", "quantize", {"x": halves, "scales": one},
        {"y": np.array([0, 2, 2, 0, -2, -2, 127, 127, -128, 127, -128, 127, -128, 0], i1)})
example("quantize halves to int32", "quantize", {"x": halves, "scales": one},
        {"y": np.array([0, 2, 2, 0, -2, -2, 128, 128, -128, 1000000000, -1000000000, 2147483647, -2147483648, 0], i4)},
        "--dtype", "int32")
example("quantize halves to uint8", "quantize", {"x": halves, "scales": one, "zero-points": np.array([1], u1)},
        {"y": np.array([2, 2, 4, 0, 0, 0, 128, 130, 0, 255, 0, 255, 0, 0], u1)}, "--dtype", "uint8")
example("quantize division by zero", "quantize", {"x": np.array([-1, 0, 2], f4), "scales": np.array([0], f4)},
        {"y": np.array([-128, 0, 127], i1)})

quarters = np.array([[-1.5, -1.25, -1, -0.75], [-0.5, -0.25, 0, 0.25], [0.5, 0.75, 1, 1.25]], f4)
example("quantize rows multiply", "quantize",
        {"x": quarters, "scales": np.array([[1], [2], [4]], f4), "zero-points": np.array([[0.5], [0], [-0.5]], f4)},
        {"y": np.array([[-1, -1, 0, 0], [-1, 0, 0, 0], [2, 2, 4, 4]], i1)}, "--axis", "-2", "--div-mode", "false")
example("quantize rows divide", "quantize",
        {"x": quarters, "scales": np.array([0.25, 0.5, -0.1], f4), "zero-points": np.array([3, 0, 250], u1)},
        {"y": np.array([[0, 0, 0, 0], [0, 0, 0, 0], [245, 242, 240, 238]], u1)}, "--axis", "0", "--dtype", "uint8")

for name, values, packed in (
    ("quantize to quint4x2", [0.5, 1.5, 2.5, -7.5, 100, -100, 3.49, -3.51], 0xC3878220),
    ("quantize to quint4x2 negative", range(-8, 0), 0xFEDCBA98),
    ("quantize to quint4x2 positive", range(8), 0x76543210),
):
    example(name, "quantize", {"x": np.array(values, f2), "scales": one}, {"y": words([packed])},
            "--div-mode", "false", "--dtype", "quint4x2")

# ---- group_quant ----

group = {
    "x": np.array([[1.0029, -1.2373, 1.0107, -0.2681], [0.5791, 0.1101, 1.0059, -0.9658],
                   [-1.7637, 1.7588, -1.3193, 0.3989], [1.3262, 0.4854, 1.9551, 0.9697],
                   [-0.8770, -1.8828, 2.1777, -0.0050], [0.4722, 0.5605, 0.8267, -0.9810]], f2),
    "scale": np.array([[-0.2710, -0.9381, 0.2850, -1.1230], [0.5217, -0.7233, -0.1730, -0.1245],
                       [-1.5433, -0.9129, -2.2095, 1.7371], [-0.8253, 0.3973, 0.1430, 0.3885]], f4),
    "group-index": np.array([1, 4, 6, 6], i4),
    "offset": np.array([-1.1658], f4),
}
group_y = np.array([[-1, 0, -1, -1], [-1, -1, -1, -1], [-2, -2, -1, -1], [0, -2, -2, -1], [0, 1, -6, -1],
                    [-2, -2, -3, -3]], i1)
example("group-quant device", "group-quant", group, {"y": group_y})
example("group-quant big-endian", "group-quant",
        {**{name: array.astype(array.dtype.newbyteorder(">")) for name, array in group.items()},
         "group-index": group["group-index"].astype(">i8")}, {"y": group_y}, version=(2, 0))

# ---- trans_quant_param ----

example("trans-quant-param device", "trans-quant-param",
        {"scale": np.array([1.0458984375, 0.1741943359375, 1.421875], f4), "offset": np.array([1, -2, 0], f4)},
        {"y": np.array([70507248869376, 140463653937152, 70369813069824], i8)})

scales = {"scale": np.array([1, 0.1, -2.5, 1e-3, 3e38], f4), "offset": np.array([0, 1.5, -2.5, -300, 1e9], f4)}
truncated = [0x40003F800000, 0x40403DCCC000, 0x7FC0C0200000, 0x60003A830000, 0x5FE07F61A000]
rounded = [0x40003F800000, 0x40403DCCC000, 0x7FC0C0200000, 0x60003A832000, 0x5FE07F61C000]
example("trans-quant-param truncated", "trans-quant-param", scales, {"y": np.array(truncated, i8)})
example("trans-quant-param rounded", "trans-quant-param", scales, {"y": np.array(rounded, "u8")},
        "--round-mode", "1", "--dtype", "uint64")
example("trans-quant-param broadcast", "trans-quant-param",
        {"scale": one, "offset": np.array([0.5, 1.5, -1, 300, -300], f4)},
        {"y": np.array([0x40003F800000 | v << 37 for v in (0, 2, 511, 255, 256)], i8)})

edges = (
    (0x3F800FFF, 0x3F800000, 0x3F800000),
    (0x3F801000, 0x3F800000, 0x3F800000),
    (0x3F801001, 0x3F800000, 0x3F802000),
    (0x3F803000, 0x3F802000, 0x3F804000),
    (0x7F7FFFFF, 0x7F7FE000, 0x7F800000),
    (0x00000001, 0x00000000, 0x00000000),
    (0x807FFFFF, 0x807FE000, 0x80000000),
    (0x7F800001, 0x7F800000, 0x7F800000),
    (0x7FC00000, 0x7FC00000, 0x7FC00000),
    (0xFF800000, 0xFF800000, 0xFF800000),
)
for mode in (0, 1):
    example(f"trans-quant-param edges mode {mode}", "trans-quant-param", {"scale": bits([edge[0] for edge in edges])},
            {"y": np.array([1 << 46 | edge[1 + mode] for edge in edges], i8)}, "--round-mode", str(mode))

# ---- dynamic_quant_asymmetric ----

command = "dynamic-quant-asymmetric"
rows = np.array([
    [0.5, -1.25, 3, 0, 2.75, -0.375, 1.5, -2],
    [1] * 8,
    [0] * 8,
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
], f2)
rows_y = np.array([
    [0, -90, 127, -26, 114, -45, 50, -128],
    [0] * 8,
    [127] * 8,
    [-128, -92, -55, -19, 18, 54, 91, 127],
], i1)
rows_expected = {
    "y": rows_y,
    "scale": bits([0x3CA0A0A1, 0x2B8CBCCC, 0x2B8CBCCC, 0x3B33DBDC]),
    "offset": bits([0xC1D00000, 0xD368D4A5, 0x42FE0000, 0xC3246DB6]),
}
example("dynamic to int8", command, {"x": rows}, rows_expected)
example("dynamic Fortran order", command, {"x": np.asfortranarray(rows)}, rows_expected, version=(2, 0))
example("dynamic big-endian", command, {"x": rows.astype(">f2")},
        {name: array.astype(array.dtype.newbyteorder(">")) for name, array in rows_expected.items()}, version=(3, 0))
example("dynamic to quint4x2", command, {"x": rows}, {
    "y": words([[0x82D6E7A0], [0], [0x77777777], [0x7531ECA8]]),
    "scale": bits([0x3EAAAAAB, 0x2B8CBCCC, 0x2B8CBCCC, 0x3D3F199A]),
    "offset": bits([0xC0000000, 0xD368D4A5, 0x40E00000, 0xC1224924]),
}, "--dtype", "quint4x2")
example("dynamic bfloat16", command,
        {"x": np.array([[0x3DCD, 0x3E4D, 0x3E9A, 0x3ECD, 0x3F00, 0x3F1A, 0x3F33, 0x3F4D]], "u2")},
        {"y": np.array([[-128, -92, -55, -19, 18, 54, 90, 127]], i1), "scale": bits([0x3B341414]),
         "offset": bits([0xC3246DB6])})

smooth = np.array([1, 2, 0.5, -1, 4, 1, 1, 0.25], f2)
example("dynamic smooth scales", command, {"x": rows, "smooth-scales": smooth}, {
    "y": np.array([
        [-71, -128, -52, -81, 127, -88, -52, -90],
        [-26, 25, -52, -128, 127, -26, -26, -64],
        [127] * 8,
        [-75, -43, -70, -128, 127, -22, -11, -64],
    ], i1),
    "scale": bits([0x3D58D8D9, 0x3CA0A0A1, 0x2B8CBCCC, 0x3C1A3232]),
    "offset": bits([0xC2A18E38, 0xC29A0000, 0x42FE0000, 0xC2AB046E]),
})
groups = {
    "x": rows,
    "smooth-scales": np.array([smooth, [2] * 8, smooth[::-1]], f2),
    "group-index": np.array([1, 1, 4], i8),
}
example("dynamic groups", command, groups, {
    "y": np.array([
        [-71, -128, -52, -81, 127, -88, -52, -90],
        [-64, -26, -26, 127, -128, -52, 25, -26],
        [127] * 8,
        [-64, -43, -31, 127, -128, -31, 103, 30],
    ], i1),
    "scale": bits([0x3D58D8D9, 0x3CA0A0A1, 0x2B8CBCCC, 0x3C06E6E7]),
    "offset": bits([0xC2A18E38, 0xC29A0000, 0x42FE0000, 0xC2868C80]),
})
example("dynamic per tensor", command, {"x": rows}, {
    "y": np.array([rows_y[0], [25] * 8, [-26] * 8, [-21, -16, -11, -6, 0, 5, 10, 15]], i1),
    "scale": bits([0x3CA0A0A1]),
    "offset": bits([0xC1D00000]),
}, "--quant-mode", "pertensor")
example("dynamic scale of one", command, {"x": np.array([[0, 1, 2, 3, 4, 5, 6, 255]], f2)}, {
    "y": np.array([[-128, -127, -126, -125, -124, -123, -122, 127]], i1),
    "scale": one,
    "offset": np.array([-128], f4),
})

tiny = bits([0x2B8CBCCC])
example("dynamic constant 1", command, {"x": np.full((1, 8), 1, f2)},
        {"y": np.zeros((1, 8), i1), "scale": tiny, "offset": bits([0xD368D4A5])})
example("dynamic constant 65504", command, {"x": np.full((1, 8), 65504, f2)},
        {"y": np.full((1, 8), -128, i1), "scale": tiny})
example("dynamic constant subnormal", command, {"x": np.full((1, 8), 2, "u2").view(f2)},
        {"y": np.full((1, 8), 127, i1), "scale": tiny, "offset": bits([0xC7E89525])})
example("dynamic infinities and NaN", command, {
    "x": np.array([
        [1, np.inf, -2, 3, 0, 0.5, 4, -5],
        [1, -np.inf, -2, 3, 0, 0.5, -np.inf, -5],
        [1, np.nan, -2, 3, 0, 0.5, 4, -5],
    ], f2),
}, {
    "y": np.array([[0] * 8, [127, 0, 127, 127, 127, 127, 0, 127], [0] * 8], i1),
    "scale": np.array([np.inf, np.inf, tiny[0]], f4),
    "offset": np.array([np.nan, 127, np.nan], f4),
})

# ---- dynamic_quant ----

command = "dynamic-quant"
device_x = np.array([[0.7261, 0.3726, 0.9126], [0.9023, 0.999, 0.1279], [0.8628, 0.624, 0.9028]], f2)
device_y = np.array([[101, 52, 127], [115, 127, 16], [121, 88, 127]], i1)
example("dynamic-quant device", command, {"x": device_x},
        {"y": device_y, "scale": bits([0x3BEB76EE, 0x3C00E1C3, 0x3BE8F1E4])})
example("dynamic-quant device inverse", command, {"x": device_x},
        {"y": device_y, "scale": bits([0x3BEB76ED, 0x3C00E1C3, 0x3BE8F1E3])}, "--scale-form", "inverse")

rows_y = np.array([[21, -53, 127, 0, 116, -16, 64, -85], [127] * 8, [0] * 8, [16, 32, 48, 64, 79, 95, 111, 127]], i1)
rows_words = words([[0xB4F607D1], [0x77777777], [0], [0x76544321]])
rows_scale = bits([0x3CC18306, 0x3C010204, 0, 0x3BCE5CB9])
for form, narrow_scale in (
    ("product", bits([0x3EDB6DB8, 0x3E124925, 0, 0x3DEA0001])),
    ("inverse", bits([0x3EDB6DB7, 0x3E124925, 0, 0x3DE9FFFF])),
):
    example(f"dynamic-quant to int8 {form}", command, {"x": rows}, {"y": rows_y, "scale": rows_scale},
            "--scale-form", form)
    example(f"dynamic-quant to quint4x2 {form}", command, {"x": rows}, {"y": rows_words, "scale": narrow_scale},
            "--dtype", "quint4x2", "--scale-form", form)

smooth_y = np.array([
    [6, -29, 17, 0, 127, -4, 17, -6],
    [32, 64, 16, -32, 127, 32, 32, 8],
    [0] * 8,
    [6, 25, 10, -25, 127, 38, 44, 13],
], i1)
example("dynamic-quant smooth scales", command, {"x": rows, "smooth-scales": smooth},
        {"y": smooth_y, "scale": bits([0x3DB162C6, 0x3D010204, 0, 0x3C810204])})
example("dynamic-quant groups", command, groups, {
    "y": np.array([smooth_y[0], [8, 32, 32, 127, -32, 16, 64, 32], [0] * 8, [2, 16, 24, 127, -40, 24, 111, 64]], i1),
    "scale": bits([0x3DB162C6, 0x3D010204, 0, 0x3C4E5CB9]),
})
example("dynamic-quant per tensor", command, {"x": rows}, {
    "y": np.array([rows_y[0], [42] * 8, [0] * 8, [4, 8, 13, 17, 21, 25, 30, 34]], i1),
    "scale": bits([0x3CC18306]),
}, "--quant-mode", "pertensor")

special = {
    "x": bfloat16([
        [1e-38, -2e-38, 0, 1e-37, 5e-39, -1e-37, 0, 1e-40],
        [1, -np.inf, 2, 0, 0, 0, 0, 0],
        [np.nan, 1, 2, 3, 4, 5, 6, 7],
    ]),
}
special_y = np.array([[127, -128, 0, 127, 127, -128, 0, 127], [0] * 8, [0] * 8], i1)
for form, least in (("product", 0x00089122), ("inverse", 0)):
    example(f"dynamic-quant special rows {form}", command, special,
            {"y": special_y, "scale": bits([least, 0x7F800000, 0x7FC00000])}, "--scale-form", form)

# ---- dynamic_quant_float8 ----

command = "dynamic-quant-float8"
example("dynamic-quant-float8 small scale", command, {"x": bits([[0x04000000, 0x84000000, 0x00800000, 0, 0x80000000]])},
        {"y": codes("7E FE 7E 00 00"), "scale": bits([0x00249249])}, "--dtype", "float8_e4m3fn")
example("dynamic-quant-float8 infinity and NaN", command, {"x": np.array([[np.inf, 1, -1, 0], [1, np.nan, 2, 3]], f4)},
        {"y": codes("00 00 80 00", "00 00 00 00"), "scale": bits([0x7F800000, 0x7FC00000])}, "--dtype", "float8_e5m2")
example("dynamic-quant-float8 dst_type_max", command, {"x": rows[:1]},
        {"y": codes("12 A4 2F 00 2E 8F 27 AA"), "scale": bits([0x3E4CCCCE])},
        "--dtype", "hifloat8", "--dst-type-max", "15")

# ---- dynamic_block_quant_float8 ----

command = "dynamic-block-quant-float8"
special = bits([[0x7F800000, 0x3F800000, 0xBF800000, 0], [0x7FC00000, 0x3F800000, 0, 0],
                [0x04800000, 0x84800000, 0x00800000, 0], [0x05000000, 0x84800000, 0x00400000, 0]])
example("dynamic-block-quant-float8 special blocks", command, {"x": special},
        {"y": codes("00 00 80 00", "00 00 00 00", "7E FE 7E 00", "7E F6 00 00"),
         "scale": bits([[0x7F800000], [0x7FC00000], [0], [0x00924925]])}, "--dtype", "float8_e4m3fn")
example("dynamic-block-quant-float8 least scale", command, {"x": rows[:1]},
        {"y": codes("6C F8 7E 00 7E E9 79 FC"), "scale": bits([[0x3BA3D70A]])},
        "--dtype", "float8_e4m3fn", "--min-scale", "200")
example("dynamic-block-quant-float8 of two rows", command,
        {"x": np.array([[.5, -1.25, 3, 0], [2.75, -.375, 1.5, -2], [0, 4, -1, 7.5]], f4)},
        {"y": codes("12 A5 2F 00", "2E 8F 27 AA", "00 28 90 2F"), "scale": np.array([[0.2], [0.5]], f4)},
        "--dtype", "hifloat8", "--dst-type-max", "15", "--row-block", "2")

# ---- dynamic_mx_quant: mx_examples.def has more ----

example("dynamic-mx-quant", "dynamic-mx-quant", {"x": np.array([[.5, -1.25, 3, 0, 2.75, -.375, 1.5, -2]], f4)},
        {"y": codes("68 F2 7C 00 7B E4 74 F8"), "scale": np.array([[[0x78, 0]]], u1)}, "--dtype", "float8_e4m3fn")

example("anti-mx-quant", "anti-mx-quant",
        {"x": codes("68 F2 7C 00 7B E4 74 F8"), "mxscale": np.array([[[0x78, 0]]], u1)},
        {"y": np.array([[.5, -1.25, 3, 0, 2.75, -.375, 1.5, -2]], f4)},
        "--src-type", "float8_e4m3fn", "--dtype", "float32")

# ---- dynamic_block_quant ----

command = "dynamic-block-quant"
example("dynamic-block-quant of 4", command, {"x": rows}, {
    "y": np.array([[21, -53, 127, 0, 127, -17, 69, -92], [127] * 8, [0] * 8,
                   [32, 64, 95, 127, 79, 95, 111, 127]], i1),
    "scale": bits([[0x3CC18306, 0x3CB162C6], [0x3C010204, 0x3C010204], [0, 0], [0x3B4E5CB9, 0x3BCE5CB9]]),
}, "--block", "4")
example("dynamic-block-quant least scale", command, {"x": rows}, {
    "y": np.array([[25, -62, 127, 0, 127, -19, 75, -100], [127] * 8, [0] * 8,
                   [16, 32, 48, 64, 79, 95, 111, 127]], i1),
    "scale": bits([[0x3CA3D70A], [0x3C010204], [0], [0x3BCE5CB9]]),
}, "--min-scale", "50")
special = {"x": bfloat16([[np.inf, 1, -2, 0], [np.nan, 1, 2, 3]])}
example("dynamic-block-quant special blocks", command, special,
        {"y": np.zeros((2, 4), i1), "scale": bits([[0x7F800000], [0x7FC00000]])})
example("dynamic-block-quant special blocks, least scale", command, special,
        {"y": np.array([[127, 50, -100, 0], [0] * 4], i1), "scale": bits([[0x3CA3D70A], [0x7FC00000]])},
        "--min-scale", "50")
narrow_scale = bits([[0x3EDB6DB8], [0x3E124925], [0], [0x3DEA0001]])
example("dynamic-block-quant to quint4x2", command, {"x": rows}, {"y": rows_words, "scale": narrow_scale},
        "--dtype", "quint4x2")
example("dynamic-block-quant to quint4x2 and backwards", command, {"x": np.hstack([rows, rows[:, ::-1]])}, {
    "y": np.hstack([rows_words, words([[0x1D706F4B], [0x77777777], [0], [0x12344567]])]),
    "scale": np.repeat(narrow_scale, 2, axis=1),
}, "--dtype", "quint4x2", "--block", "8")

# ---- anti_quant ----

two = np.array([2], f4)
example("anti-quant offset before the product", "anti-quant",
        {"x": np.array([1, 2, 3, 4], i1), "scale": two, "offset": two}, {"y": np.array([6, 8, 10, 12], f4)},
        "--dtype", "float32")
tenths = {"x": np.array([-128, -1, 0, 1, 2, 100, 126, 127], i1), "scale": np.array([0.1], f4),
          "offset": np.array([0.5], f4)}
example("anti-quant to float16", "anti-quant", tenths,
        {"y": halves_of([0xCA60, 0xAA66, 0x2A66, 0x30CD, 0x3400, 0x4906, 0x4A53, 0x4A60])})
example("anti-quant to bfloat16", "anti-quant", tenths,
        {"y": np.array([0xC14C, 0xBD4D, 0x3D4D, 0x3E1A, 0x3E80, 0x4121, 0x414A, 0x414C], "u2")}, "--dtype", "bfloat16")
example("anti-quant quint4x2", "anti-quant",
        {"x": words([0x7654321F]), "scale": np.array([1, 2, 3, 4, 5, 6, 1e5, -1e5], f4)},
        {"y": halves_of([0xBC00, 0x4000, 0x4600, 0x4A00, 0x4D00, 0x4F80, 0x7C00, 0xFC00])})

groups = {"x": np.array([[1, -2], [3, 4], [-128, 127], [5, -6]], i1), "scale": np.array([[0.5, 0.1], [2, -3]], f4)}
example("anti-quant groups of rows", "anti-quant", groups,
        {"y": halves_of([[0x3800, 0xB266], [0x3E00, 0x3666], [0xDC00, 0xDDF4], [0x4900, 0x4C80]])})
example("anti-quant groups of rows with offset", "anti-quant",
        {**groups, "offset": np.array([[0, 1], [-1, 0.5]], f4)},
        {"y": halves_of([[0x3800, 0xAE66], [0x3E00, 0x3800], [0xDC08, 0xDDFA], [0x4800, 0x4C20]])})

# ---- dequant ----

sums = np.array([[100, -100, 16777217, 2147483647], [-1, 0, 123456, -2147483648]], i4)
dequant = {"x": sums, "weight-scale": np.array([0.5, 0.1, 1e-3, 1e-5], f4)}
per_row = {**dequant, "activation-scale": np.array([0.25, 3], f4)}
example("dequant to float16", "dequant", dequant,
        {"y": halves_of([[0x5240, 0xC900, 0x7419, 0x753E], [0xB800, 0x0000, 0x57B7, 0xF53E]])})
example("dequant to bfloat16", "dequant", dequant,
        {"y": np.array([[0x4248, 0xC120, 0x4683, 0x46A8], [0xBF00, 0x0000, 0x42F7, 0xC6A8]], "u2")},
        "--dtype", "bfloat16")
example("dequant activation scale", "dequant", per_row,
        {"y": halves_of([[0x4A40, 0xC100, 0x6C19, 0x6D3E], [0xBE00, 0x0000, 0x5DC9, 0xFBDD]])})
example("dequant int32 bias", "dequant", {**per_row, "bias": np.array([1, -1, 1000, 1], i4)},
        {"y": halves_of([[0x4A50, 0xC10D, 0x6C19, 0xED3E], [0x0000, 0xB4CD, 0x5DD5, 0xFBDD]])})
example("dequant float32 bias", "dequant", {**per_row, "bias": np.array([0.1, 0.2, 0.3, 0.4], f4)},
        {"y": halves_of([[0x4A4D, 0xC09A, 0x6C19, 0x6D3E], [0xBD9A, 0x3266, 0x5DCB, 0xFBDD]])})

# ---- requant ----

requant = {"x": sums, "words": np.array([0x40603F000000, 0x7D803DCCC000, 0x4C803A830000, 0x60003727C000], i8)}
example("requant to int8", "requant", requant, {"y": np.array([[53, -30, 127, -1], [3, -20, 127, -128]], i1)})
example("requant to float16", "requant", requant,
        {"y": halves_of([[0x5240, 0xC900, 0x7418, 0x753E], [0xB800, 0x0000, 0x57B6, 0xF53E]])}, "--dtype", "float16")
clamped_twice = {
    "x": np.array([600, -600, 5, 7], i4),
    "words": np.array([0x40003F800000 | (-200 & 0x1FF) << 37, 0x40003F800000 | 200 << 37, 0x40003F000000,
                       0x40003F000000], "u8"),
}
example("requant two clamps", "requant", clamped_twice, {"y": np.array([55, -56, 2, 4], i1)})
example("requant bias", "requant", {**clamped_twice, "bias": np.array([0, 0, 0, -4], i4)},
        {"y": np.array([55, -56, 2, 2], i1)})

contents["examples.txt"] = "".join(lines).encode()
if sys.argv[1:] == ["--header"]:
    print(examples_h(), end="")
    sys.exit()
if sys.argv[1:] == ["--check"]:
    found = {}
    for entry in os.scandir(HERE):
        if entry.name.endswith((".npy", ".txt")):
            with open(entry.path, "rb") as file:
                found[entry.name] = file.read()
    differing = sorted(name for name in {*found, *contents} if found.get(name) != contents.get(name))
    sys.exit(f"run {os.path.relpath(__file__)}: other contents in {', '.join(differing)}" if differing else 0)
for name, content in contents.items():
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(content)
