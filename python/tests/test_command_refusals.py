# SPDX-License-Identifier: BSD-3-Clause
"""What the command refuses when it has read the files: their types and shapes, and what the library refuses."""
import npuquant
import numpy as np
import pytest
from command_inputs import save
from npuquant import _library
from numpy_operators import f4

FILES = {
    "floats": np.ones((2, 3), f4), "one": np.ones(1, f4), "number": np.ones((), f4),
    "tenth": f4([[1, 1, 1], [1, 1, 0.1]]), "double": np.ones(2, ">f8"), "complex": np.ones(2, "<c8"),
    "bits": np.ones((2, 3), "u2"), "signed": np.ones((2, 3), "i2"), "void": np.ones((2, 3), "V2"),
    "codes": np.ones((2, 3), "i1"), "unsigned": np.full((2, 3), 200, "u1"),
    "negative": np.full((2, 3), -1, "i1"), "large": np.full((2, 3), 300, "i4"), "thirds": np.full((2, 3), 1 / 3, "f2"),
    "turned": np.ones((3, 2), "i1"), "longs": np.full((2, 3), 200), "large_halves": np.full((2, 3), 300, "f2"),
    "sums": np.ones((2, 3), "i4"), "ends": np.array([1, 3]),
    "wide": np.ones((2, 24), f4), "packed": np.zeros((2, 3), "i4"),
    # Of products of [2, 3] by [3, 4].
    "x2": np.ones((3, 4), "i1"), "vector": np.ones(3, "i1"), "three": np.ones(3, f4), "four": np.ones(4, f4),
    "row": np.ones((1, 4), f4), "two": np.ones(2, f4), "column": np.ones((2, 1), f4), "fours": np.ones(4, "i4"),
    "words": np.full(4, 1 << 46), "word": np.full((1, 1), 1 << 46), "scalar": np.full(1, 1 << 46),
    "zero": np.array([1 << 46] * 3 + [0]), "empty": np.ones((2, 0), "i1"),
}
SCALED = "quantize floats --scales one"
TO_FLOAT = "quant-matmul codes x2 --scale four --dtype bfloat16 --pertoken-scale"


@pytest.mark.parametrize("line, says", [
    # Files, and what is said about them.
    (SCALED + " --backend abacus", "--backend: there is no 'abacus'; see npuquant info"),
    (SCALED + " --zero-points nowhere", "nowhere: No such file or directory"),
    (SCALED + " --expect nowhere", "nowhere: No such file or directory"),
    (SCALED + " -o nowhere/y.npy", "nowhere/y.npy: cannot be written: No such file or directory"),
    (SCALED + " -o .", ".: cannot be written: it is neither a file, a pipe nor a character device"),
    ("dynamic-quant floats -o y.npy --scale-output ./y.npy", "./y.npy: named for two outputs"),
    (SCALED + " --zero-points vector --bf16 zero-points",
     "vector.npy: holds i1; --bf16 zero-points is for u2, i2, V2 and f4"),
    ("quantize bits --scales one", "bits.npy: holds u2; if its 16 bits are bfloat16, say --bf16 x"),
    ("quantize signed --scales one", "signed.npy: holds i2; if its 16 bits are bfloat16, say --bf16 x"),
    ("quantize void --scales one", "void.npy: holds V2; if its 16 bits are bfloat16, say --bf16 x"),
    ("quantize floats --scales bits", "bits.npy: holds u2; if its 16 bits are bfloat16, say --bf16 scales"),
    ("quantize tenth --scales one --bf16 x", "tenth.npy: [1, 2] is 0.100000001 (0x3DCCCCCD), which no bfloat16 is\n"),
    ("quantize double --scales one", "double.npy: elements of type '>f8'; expected one of f4 f2 i1 u1 i4 i8 u8 u2 i2 "
                                     "V2; float64 becomes f4 with astype(np.float32)"),
    ("quantize complex --scales one", "complex.npy: elements of type '<c8'; expected one of f4 f2 i1 u1 i4 i8 u8 u2 i2 "
                                      "V2"),
    # What the library refuses: test_library.py and test_tensors.py have more.
    ("trans-quant-param bits --bf16 scale", "trans_quant_param: scale: dtype is BFLOAT16; expected FLOAT32"),
    ("quantize floats --scales floats", "quantize: scales: has 2 dimensions; expected 1, as div_mode is true"),
    ("quantize floats --scales column --div-mode false", "quantize: scales: dimension "),
    ("quantize codes --scales one", "quantize: x: dtype is INT8; expected FLOAT32, FLOAT16 or BFLOAT16"),
    ("quantize number --scales one", "quantize: x: has 0 dimensions; expected 1 to 8"),
    ("group-quant floats --scale floats --group-index ends", "group_quant: group_index: the last element is 3; "),
    ("row-quant floats --rule gelu", "rule: is 'gelu'; expected 'dynamic_quant', 'swiglu', "),
    ("anti-quant codes --scale column", "anti_quant: scale: dimension "),
    ("dequant sums --weight-scale one --activation-scale three", "dequant: activation_scale: dimension 0 is 3; "),
    # Products: test_library.py has more.
    ("quant-matmul floats x2 --scale four", "x1: is float32; expected int8 or int32"),
    ("quant-matmul empty x2 --scale four", "x2: has the shape [3, 4]; expected 0 rows, as x1 has columns"),
    ("quant-matmul codes x2 --scale fours --dtype float16", "scale: is int32; expected float32, int64 or uint64, as "),
    ("quant-matmul codes x2 --scale row", "scale: has the shape [1, 4]; expected [1] or [4]"),
    ("quant-matmul codes x2 --scale word", "scale: has the shape [1, 1]; expected [1] or [4] or [1, 4]"),
    ("quant-matmul codes x2 --scale zero", "requant: words: element 3 is 0x0; expected bit 46 to be 1"),
    (TO_FLOAT + " column", "pertoken_scale: has the shape [2, 1]; expected [2]"),
    (TO_FLOAT + " number", "pertoken_scale: has the shape []; expected [2]"),
    # What cannot be compared.
    (SCALED + " --expect tenth", "tenth.npy: [1, 2] is 0.100000001 (0x3DCCCCCD), which no int8 is\n"),
    (SCALED + " --expect bits", "bits.npy: holds u2 [2, 3]; expected i1 [2, 3] to compare with y, which is int8; if "
                                "its 16 bits are bfloat16, say --bf16 expect\n"),
    (SCALED + " --expect codes --bf16 expect", "codes.npy: holds i1; --bf16 expect is for u2, i2, V2 and f4"),
    (SCALED + " --expect turned", "turned.npy: has the shape [3, 2] in place of [2, 3]; expected --layout reshaped or "
                                  "--layout transposed\n"),
    (SCALED + " --expect turned --layout fractal-nz", "in place of [2, 3]; expected --layout reshaped or "),
    (SCALED + " --expect vector", "vector.npy: holds i1 [3]; expected i1 [2, 3] to compare with y, which is int8"),
    (SCALED + " --expect number", "number.npy: holds f4 []; expected i1 [2, 3] to compare with y, which is int8"),
    (SCALED + " --expect unsigned", "[0, 0] is 200, which no int8 is; if the file has uint8, say --dtype uint8\n"),
    (SCALED + " --expect large", "[0, 0] is 300, which no int8 is; if the file has int32, say --dtype int32\n"),
    (SCALED + " --expect longs", "[0, 0] is 200, which no int8 is; if the file has uint8, say --dtype uint8\n"),
    (SCALED + " --expect large_halves", "[0, 0] is 300 (0x5CB0), which no int8 is; if the file has int32, say --dty"),
    ("dynamic-quant floats --dtype uint8 --expect negative",
     "[0, 0] is -1, which no uint8 is; if the file has int8, say --dtype int8\n"),
    ("dynamic-quant floats --expect-scale floats", "expected f4 [2] to compare with scale, which is float32"),
    ("anti-quant codes --scale one --expect bits", "which is float16; if the file has bfloat16, say --dtype bfloat16"),
    ("anti-quant codes --scale one --expect tenth", "which no float16 is; if the file has float32, say --dtype float"),
    ("anti-quant codes --scale one --dtype bfloat16 --expect thirds", "if the file has float16, say --dtype float16"),
    ("anti-quant codes --scale one --dtype bfloat16 --expect tenth", "tenth.npy: [1, 2] is 0.100000001 (0x3DCCCCCD), "),
    ("compare codes tenth", "tenth.npy: [1, 2] is 0.100000001 (0x3DCCCCCD), which no int8 is"),
    ("compare turned codes", "codes.npy: has the shape [2, 3] in place of [3, 2]; expected --layout reshaped or "),
    ("compare words codes", "codes.npy: holds i1 [2, 3]; expected i8 [4] to compare with words.npy, which is int64"),
    ("compare floats three", "three.npy: holds f4 [3]; expected f4 [2, 3] to compare with floats.npy, "),
    ("compare three floats", "floats.npy: holds f4 [2, 3]; expected f4 [3] to compare with three.npy, "),
    ("compare bits bits --bf16 a", "bits.npy: holds u2; if its 16 bits are bfloat16, say --bf16 b"),
    ("compare floats nowhere", "nowhere: No such file or directory"),
    ("compare floats floats --max-diff 1", "--max-diff: does not apply to a result of type float32; expected "),
    ("compare codes codes --max-ulp 1", "--max-ulp: does not apply to a result of type int8; expected --max-diff"),
    # Words of int4 without their --dtype. The hint is only for a call that it helps.
    ("dynamic-quant wide --expect packed", "packed.npy: holds i4 [2, 3]; expected i1 [2, 24] to compare with y, which "
                                           "is int8; if the file has words of eight int4, say --dtype quint4x2"),
    ("diagnose dynamic-quant-asymmetric wide --expect packed", "eight int4, say --dtype quint4x2"),
    ("quantize wide --scales one --expect packed", "of eight int4, say --dtype quint4x2 --div-mode false"),
    ("dynamic-quant wide --expect fours", "to compare with y, which is int8\n"),
    ("dynamic-quant wide --dtype int4 --expect fours", "expected i4 [2, 3] to compare with y, which is quint4x2\n"),
    ("dynamic-quant wide --expect-scale packed", "to compare with scale, which is float32\n"),
    ("requant packed --words scalar --expect fours", "to compare with y, which is int8\n"),
])
def test_refused(line, says, refused):
    words = line.split()
    save(**{name: FILES[name] for name in words if name in FILES})
    refused(*(f"{word}.npy" if word in FILES else word for word in words), says=says)


def test_backends_that_are_not_there(refused):
    """There is no machine with AVX2 and NEON."""
    missing = {name for _, name in _library._backends()} - {*npuquant.available_backends()}
    assert missing
    words = save(x=FILES["floats"], scales=FILES["one"])
    for name in missing:
        refused("quantize", *words, "--backend", name, says=f"backend: {name} ")


def test_what_does_not_fit_into_memory(refused):
    """A few bytes do not cost gigabytes for scales; large files are mapped, and their product is not computed."""
    for name, dtype, shape in (("rows", "<f4", (2**33, 0)), ("x1", "|i1", (2**33, 1)), ("x2", "|i1", (1, 2**33))):
        with open(f"{name}.npy", "wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
            file.truncate(file.tell() + np.prod(shape, dtype="i8"))
    refused("dynamic-quant-asymmetric", "rows.npy")
    refused("quant-matmul", "x1.npy", "x2.npy", "--dtype", "int32", says=" is too big")
