# SPDX-License-Identifier: BSD-3-Clause
"""The command's work, in the test's own process: main(argv) on files that NumPy writes."""
import json
import os
import pathlib
import re

import numpy as np
import npuquant
import numpy_operators as expected
import pytest
from command_inputs import assert_saved, save
from numpy_operators import f4, random_floats, random_integers, rng
from random_calls import RANDOM_CALLS, choose, random_quant_matmul

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
EXAMPLES = [line for line in (DATA / "examples.txt").read_text().splitlines() if line and not line.startswith("#")]
EXPECT = {"y": "--expect", "scale": "--expect-scale", "offset": "--expect-offset", "mxscale": "--expect-scale"}
OUTPUT = {"y": "-o", "scale": "--scale-output", "offset": "--offset-output", "mxscale": "--scale-output"}
pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples(line, run, monkeypatch):
    """The device's documented results, and cases of halves, saturation and special values, with every backend."""
    monkeypatch.chdir(DATA)
    for backend in npuquant.available_backends():
        assert f"backend {backend}, " in run(*line.split(), "--backend", backend)


def test_examples_of_microscaling(run):
    """There, and back from every code that has come out."""
    for _, x, arguments, y, mxscale in expected.mx_examples():
        words = [f"--{name.replace('_', '-')}={value}" for name, value in arguments.items() if name != "dst_type"]
        run("dynamic-mx-quant", *save(x=x), *words, "--dtype", arguments["dst_type"], "-o", "y.npy", "--scale-output",
            "groups.npy")
        assert_saved("y", y)
        assert_saved("groups", mxscale)
        axis, source = arguments["axis"], arguments["dst_type"]
        run("anti-mx-quant", "y.npy", "--mxscale", "groups.npy", words[0], "--src-type", source, "--dtype", "float16",
            "-o", "x.npy")
        assert_saved("x", expected.anti_mx_quant(y, mxscale, axis, 32, source, "float16"))


def plant(array):
    """Changes a bit, and returns the row."""
    place = rng.integers(array.size)
    array.view("u1").reshape(-1, array.itemsize)[place, 0] ^= 1
    return place // array.shape[-1]


@pytest.mark.parametrize("operator", [*RANDOM_CALLS, "quant_matmul"])
def test_random_calls(operator, run):
    """Results equal NumPy's and themselves, and not those with a changed bit."""
    command = operator.replace("_", "-")
    draw = RANDOM_CALLS.get(operator, random_quant_matmul)
    for _ in range(30):
        call = next(call for call in iter(draw, None) if call.results["y"].size)  # test_empty() has the others
        inputs = dict(call.inputs)
        if "x2" in inputs and call.options["dtype"] == "int32":
            del inputs["scale"]  # the command takes none for the sums
        words = [command, *save(1 + ("x2" in inputs), **inputs)]
        for name, value in call.options.items():
            words.append(f"--{name.replace('_', '-')}={str(value).lower()}")
        outputs = [word for name in call.results for word in (OUTPUT[name], f"{name}.npy")]
        run(*words, *outputs, "--threads", choose(0, 1, 3), "--repeat", choose(1, 3))
        for name, array in call.results.items():
            assert_saved(name, array)
    expect = [word for name in call.results for word in (EXPECT[name], f"{name}.npy")]
    said = run(*words, *expect)
    assert said.count(" equal\n") == len(call.results)
    y = np.load("y.npy")
    row = plant(y)
    np.save("y.npy", y)
    said = run(*words, *expect, status=1)
    assert said.startswith("y: 1 of ") and (f"\n  rows: 1 of {y.size // y.shape[-1]} hit: {row}\n" in said
                                            or y.size == y.shape[-1])


def test_broadcast_pertoken_scales(run):
    """The command does it for the package."""
    x1, x2, scale = random_integers((2, 3, 4, 5), "i1"), random_integers((5, 6), "i1"), np.ones(1, f4)
    for shape in ((4,), (1, 4), (3, 4), (1, 3, 4), (2, 1, 4), (1, 1, 4), (2, 3, 4)):
        rows = random_floats(shape, "f4", size=2.0)
        words = save(positional=2, x1=x1, x2=x2, scale=scale, pertoken_scale=rows)
        run("quant-matmul", *words, "--dtype", "float16", "-o", "y.npy")
        assert_saved("y", expected.quant_matmul(x1, x2, scale, None, rows, None, "float16"))


def test_threads(run):
    """Few for small tensors; matrices may be transposed."""
    x1, x2 = random_integers((130, 260), "i1"), np.asfortranarray(random_integers((260, 300), "i1"))
    words = ("quant-matmul", *save(positional=2, x1=x1, x2=x2), "--dtype", "int32", "--threads", 3, "-o", "y.npy")
    assert re.match(r"quant-matmul: x1 int8 \[130, 260\], y int32, backend \w+, 3 threads, ", run(*words))
    assert_saved("y", expected.quant_matmul(x1, x2, None, None, None, None, "int32"))
    for rows, threads in ((700, "3 threads"), (7, "1 thread")):
        x = random_floats((rows, 1100), "f2")
        said = run("dynamic-quant-asymmetric", *save(x=x), "-o", "y.npy", "--scale-output", "scale.npy",
                   "--offset-output", "offset.npy", "--threads", 3, "--repeat", 2)
        assert re.fullmatch(rf"dynamic-quant-asymmetric: x float16 \[{rows}, 1100\], y int8, backend \w+, {threads}, "
                            r"[0-9.]+ s, [0-9.]+ GB/s\n", said)
        for name, array in zip(OUTPUT, expected.dynamic(x, None, None, False, "int8")):
            assert_saved(name, array)


@pytest.mark.parametrize("shape, axis", [((3, 5, 7), 1), ((105,), 0)])
def test_default_axis(shape, axis, run):
    """torch_npu's is 1. Without a division, an axis other than -2 is the last."""
    x, scales, last = random_floats(shape, "f4"), *(np.arange(1, shape[i] + 1, dtype=f4) for i in (axis, -1))
    run("quantize", *save(x=x, scales=scales), "-o", "y.npy")
    assert_saved("y", expected.quantize(x, scales, None, axis, True, "int8"))
    for words in ([], ["--axis", "-1"], ["--axis", "0"], ["--axis", "99"]):
        run("quantize", *save(x=x, scales=last), "--div-mode", "false", *words, "-o", "y.npy")
        assert_saved("y", expected.quantize(x, last, None, -1, False, "int8"))


def test_empty(run):
    one = np.ones(1, f4)
    for shape in ((0,), (3, 0), (0, 2**31, 2)):
        run("quantize", *save(x=np.zeros(shape, f4), scales=one), "--axis", 0, "-o", "y.npy")
        assert_saved("y", np.zeros(shape, "i1"))
    run("dynamic-block-quant", *save(x=np.zeros((3, 0), f4)), "--scale-output", "s.npy")
    assert_saved("s", np.zeros((3, 0), f4))
    words = save(positional=2, x1=np.zeros((0, 1, 2, 3), "i1"), x2=np.zeros((5, 3, 4), "i1"), scale=one)
    for dtype, array in (("int8", "i1"), ("float16", "f2"), ("bfloat16", "u2")):
        run("quant-matmul", *words, "--dtype", dtype, "-o", "y.npy")
        assert_saved("y", np.zeros((0, 5, 2, 4), array))


@pytest.mark.parametrize("block, columns", [((), 128), (("--block", 2**62), 304)])
def test_blocks(block, columns, run):
    """The default is the device's; a block may be longer than a row."""
    x = random_floats((3, 304), "f2")
    run("dynamic-block-quant", *save(x=x), "-o", "y.npy", "--scale-output", "scale.npy", *block)
    for name, array in zip(OUTPUT, expected.dynamic_block_quant(x, columns, 0, "int8")):
        assert_saved(name, array)


def test_numbers(run):
    """A file without dimensions is one element."""
    x, sums, codes = random_floats((4, 6), "f4"), random_integers((4, 6), "i4"), random_integers((4, 6), "i1")
    scale, offset = f4(0.75), f4(-5)
    one, five = np.full(1, scale), np.full(1, offset)
    words = expected.trans_quant_param(one, five, 0)
    product = expected.quant_matmul(codes, codes.T, None, None, None, None, "int32")
    for command, inputs, wanted in (
        ("quantize", {"x": x, "scales": scale}, expected.quantize(x, one, None, 1, True, "int8")),
        ("quantize", {"x": x, "scales": scale, "zero_points": np.array(7, "u1")},
         expected.quantize(x, one, np.array([7], "u1"), 1, True, "int8")),
        ("anti-quant", {"x": codes, "scale": scale, "offset": offset},
         expected.anti_quant(codes, one, five, "float16")),
        ("dequant", {"x": sums, "weight_scale": scale}, expected.dequant(sums, one, None, None, "float16")),
        ("dequant", {"x": sums[0], "weight_scale": scale, "activation_scale": offset},
         expected.dequant(sums[0], one, offset, None, "float16")),
        ("requant", {"x": sums, "words": words[0]}, expected.requant(sums, words, None, "int8")),
        ("trans-quant-param", {"scale": scale, "offset": offset}, words.astype("i8")),
        ("group-quant", {"x": x, "scale": x[:1], "group_index": np.array([4]), "offset": offset},
         expected.group_quant(x, x[:1], np.array([4]), offset, "int8")),
        ("quant-matmul", {"x1": codes, "x2": codes.T, "scale": scale, "offset": offset},
         expected.requant(product, words, None, "int8")),
    ):
        run(command, *save(1 + ("x2" in inputs), **inputs), "-o", "y.npy")
        assert_saved("y", wanted)


def test_output_names_and_summary(run):
    words = save(x=np.ones((4, 8), f4), scales=np.ones(8, f4))
    assert run("quantize", *words).startswith("quantize: x float32 [4, 8], y int8, backend ")
    assert run("quantize", *words, "-q", "-o", "y.npy") == ""
    assert run("quantize", *words, "--expect", "y.npy").startswith("y: all 32 elements equal\nquantize: ")
    np.save("y.npy", np.load("y.npy") + np.eye(4, 8, dtype="i1"))
    said = run("quantize", *words, "-q", "--expect", "y.npy", status=1)
    assert said.startswith("y: 4 of 32 elements differ (12 %), by +1 (file - npuquant)\n")
    assert run("quantize", *words, "-q", "--expect", "y.npy", "--max-diff", 1) == ""


@pytest.mark.parametrize("name", ["scale", "offset"])
def test_shapes_of_parameters(name, run, refused):
    """They may be flat, or have other extents of 1. Places are those of the rows."""
    words = ("dynamic-quant-asymmetric", *save(x=random_floats((3, 4, 8), "f4", special=0)))
    run(*words, OUTPUT[name], "e.npy")
    ours = np.load("e.npy")
    words += (EXPECT[name], "e.npy")
    for shape in ((3, 4), (3, 1, 4, 1), (12,)):
        theirs = ours.reshape(shape).copy()
        np.save("e.npy", theirs)
        assert f"{name}: all 12 elements equal\n" in run(*words)
        theirs.flat[7] = -12345.5
        np.save("e.npy", theirs)
        assert "\n  [1, 3]: npuquant " in run(*words, status=1)
        assert '"differing": 1}' in run("diagnose", *words, "--json", status=1)
    for shape in ((24,), ()):
        np.save("e.npy", np.resize(ours, shape))
        refused(*words, says=f"e.npy: holds f4 {list(shape)}; expected f4 [3, 4] to compare with {name}, ")


@pytest.mark.parametrize("words, name", [
    ("dequant sums.npy", "weight_scale"), ("dequant sums.npy --weight-scale six.npy", "activation_scale"),
    ("quantize x.npy --axis=2", "scales"), ("quantize x.npy --axis=2 --scales six.npy", "zero_points"),
    ("dynamic-quant x.npy", "smooth_scales"),
])
def test_shapes_of_scales(words, name, run, refused):
    """Extents of 1 do not count in vectors, and activation scales may be flat."""
    sums = random_integers((2, 3, 6), "i4")
    six, array = random_floats(6, "f4", special=0), random_floats(6, "f4", special=0)
    save(sums=sums, x=sums.astype(f4), six=six)
    words = (*words.split(), f"--{name.replace('_', '-')}", "array.npy")
    wanted = array.reshape(2, 3) if name == "activation_scale" else array
    save(array=wanted)
    run(*words, "-o", "y.npy")
    for shape in ((6,), (6, 1), (1, 6, 1)):
        save(array=array.reshape(shape))
        assert "y: all 36 elements equal\n" in run(*words, "--expect", "y.npy")
    save(array=array.reshape(3, 2))
    refused(*words, says=f": {name}: ")


def test_bfloat16(run):
    """The bits in each type that a file may have, also float32, as an input and as an expected result."""
    bits = np.append(rng.integers(0, 2**16, 1022), [0x7F81, 0xFF80]).astype("u2").reshape(8, 128)
    bits.tofile("bits.bin")
    save(sums=random_integers((8, 128), "i4"), one=np.ones(1, f4))
    dequant = ("dequant", "sums.npy", "--weight-scale", "one.npy", "--dtype", "bfloat16")
    run(*dequant, "-o", "result.npy")
    run("quantize", "bits.bin:bfloat16:8,128", "--scales", "one.npy", "-o", "codes.npy")
    quantize = ("quantize", "x.npy", "--scales", "one.npy", "--bf16", "x", "--expect", "codes.npy")
    for array, words in ((np.load("result.npy"), (*dequant, "--expect", "x.npy")), (bits, quantize)):
        for stored in (array, array.view("i2"), array.view("V2"), (array.astype("u4") << 16).view(f4)):
            save(x=np.asarray(stored, order=choose("C", "F")))
            assert "y: all 1024 elements equal\n" in run(*words)


@pytest.mark.parametrize("shape", [(40, 24), (2, 3, 16), (8,)])
def test_layouts_of_int4(shape, run, refused):
    """Words, bytes of two values, and one in each byte."""
    x = random_floats(shape, "f2", special=0)
    words = ("quantize", *save(x=x, scales=np.ones(1, f4)), "--dtype=int4", "--div-mode=false")
    assert ", y quint4x2, " in run(*words, "-o", "y.npy")
    np.load("y.npy").tofile("y.bin")
    spread = expected.quantize(x, np.ones(1, f4), None, -1, False, "int8").clip(-8, 7)
    packed = (spread[..., ::2] & 15 | spread[..., 1::2] << 4)
    for theirs, column in ((spread, 3), (packed, 6), (packed.view("u1"), 6)):
        np.save("e.npy", np.asarray(theirs, order=choose("C", "F")))
        assert f"y: all {x.size} elements equal\n" in run(*words, "--expect", "e.npy")
        planted = theirs.copy()
        planted[..., 3:4] ^= 1
        np.save("e.npy", planted)
        said = run(*words, "--expect", "e.npy", status=1)
        assert f"\ny: {x.size // shape[-1]} of {x.size} elements differ" in said
        assert f"\n  {[0] * (len(shape) - 1) + [column]}: npuquant " in said
    extents = ",".join(map(str, (*shape[:-1], shape[-1] // 8)))
    assert " elements equal\n" in run(*words, "--expect", f"y.bin:quint4x2:{extents}")
    save(e=np.full(shape, 8, "i1"))
    refused(*words, "--expect", "e.npy", says=f"e.npy: {[0] * len(shape)} is 8, which no int4 is")
    save(e=np.zeros((*shape[:-1], shape[-1] // 4), "u1"))
    refused(*words, "--expect", "e.npy", says="expected i4 [")


def test_results_in_another_form(run):
    """One line says how a result was taken."""
    save(x=random_floats((16, 64), "f4", special=0))
    run("dynamic-quant", "x.npy", "-o", "y.npy", "--scale-output", "scale.npy")
    blocks = np.load("y.npy").astype(f4).reshape(1, 16, 2, 32).transpose(2, 0, 1, 3)
    save(y=(blocks.copy().view("u4") >> 16).astype("u2"), scale=np.load("scale.npy").reshape(16, 1))
    words = ("dynamic-quant", "x.npy", "--expect", "y.npy", "--expect-scale", "scale.npy", "--bf16", "expect")
    taken = ["y.npy: bfloat16 [2, 1, 16, 32], taken as int8 FRACTAL_NZ of [16, 64]",
             "scale.npy: float32 [16, 1], taken as float32 [16]"]
    lines = run(*words, "--layout", "fractal-nz").splitlines()
    assert lines[:4] == [taken[0], "y: all 1024 elements equal", taken[1], "scale: all 16 elements equal"]
    assert run(*words, "--quiet") == ""
    assert run("diagnose", *words).splitlines()[:2] == taken
    assert json.loads(run("diagnose", *words, "--json"))["taken"] == taken
    save(a=np.arange(6).reshape(2, 3), b=np.arange(6).reshape(2, 3).T)
    assert run("compare", "a.npy", "b.npy", "--layout", "transposed") == (
        "b.npy: int64 [3, 2], taken as int64 [2, 3], transposed\nb.npy: all 6 elements equal\n")


def test_words_of_both_types(run):
    save(scale=f4([1, 2, 3]))
    for dtype in ("i8", "u8"):
        save(e=expected.trans_quant_param(f4([1, 2, 3]), None, 0).astype(dtype))
        for words in ([], ["--dtype", "uint64"]):
            assert "y: all 3 elements equal\n" in run("trans-quant-param", "scale.npy", "--expect", "e.npy", *words)


def test_tolerances_of_each_result(run):
    """--max-diff is of integers, --max-ulp of scales and offsets. Outputs are written though something differs."""
    words = ["dynamic-quant-asymmetric", *save(x=random_floats((40, 24), "f2", special=0))]
    names = "y", "scale", "offset"
    run(*words, *[word for name in names for word in (OUTPUT[name], f"{name}.npy")])
    y, scale, offset = (np.load(f"{name}.npy") for name in names)
    y[3, 5] += 2 if y[3, 5] < 0 else -2
    scale.view("u4")[[3, 7]] += np.array([2, 5], "u4")
    save(y=y, scale=scale, offset=offset)
    words += [word for name in names for word in (EXPECT[name], f"{name}.npy")] + ["-q"]
    assert run(*words, "--max-diff", 2, "--max-ulp", 5) == ""
    said = run(*words, "--max-diff", 1, "--max-ulp", 4, "-o", "out.npy", status=1)
    assert "y: 1 of 960 elements differs by more than 1 (0.1 %), by " in said and "offset: " not in said
    assert "\nscale: 1 of 40 elements differs by more than 4 ulp (2.5 %), by +5 ulp (file - npuquant); 1 more" in said
    assert os.path.exists("out.npy")


def test_compare(run):
    ours = np.arange(-6, 6, dtype="i1").reshape(3, 4)
    np.save("a.npy", ours)
    np.save("b.npy", (ours.astype("i2") + 128).astype("u1"))
    assert run("compare", "a.npy", "a.npy") == "a.npy: all 12 elements equal\n"
    assert run("compare", "a.npy", "b.npy", status=1).endswith("\n  every difference is 128: one is int8, the other uint8\n")
