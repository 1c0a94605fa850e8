# SPDX-License-Identifier: BSD-3-Clause
"""npu_quant_matmul on PyTorch's tensors: int4 matrices, and the shapes that tracing sees."""
import numpy as np
import numpy_operators as expected
import pytest
from numpy_operators import random_floats, random_integers

torch = pytest.importorskip("torch")
npuquant_torch = pytest.importorskip("npuquant.torch")


def int4_matrices(rows, terms, columns):
    """x1 and a weight of a row for each column, as values and as words."""
    x1, weight = random_integers((rows, terms), "i1") >> 4, random_integers((columns, terms), "i1") >> 4
    return x1, weight, torch.from_numpy(expected.pack(x1)), torch.from_numpy(expected.pack(weight))


@pytest.mark.parametrize("along_columns", [False, True])
def test_int4(along_columns):
    """x2 as words along N, or as the transpose of the words of a weight."""
    x1, weight, left, words = int4_matrices(5, 160, 80)
    right = torch.from_numpy(expected.pack(np.ascontiguousarray(weight.T))) if along_columns else words.t()
    assert right.shape == ((160, 10) if along_columns else (20, 80))
    scale, pertoken = random_floats(80, "f4"), random_floats(5, "f4")
    for keywords, wanted in (
        ({"output_dtype": torch.float16}, (None, None, "float16")),
        ({"output_dtype": torch.bfloat16, "pertoken_scale": torch.from_numpy(pertoken)}, (pertoken, None, "bfloat16")),
    ):
        got = npuquant_torch.npu_quant_matmul(left, right, torch.from_numpy(scale), **keywords)
        bits = got.view(torch.int16).numpy()
        np.testing.assert_array_equal(bits, expected.quant_matmul(x1, weight.T, scale, None, *wanted).view(np.int16))
        traced = npuquant_torch.npu_quant_matmul(left.to("meta"), right.to("meta"), torch.ones(80, device="meta"),
                                                 output_dtype=keywords["output_dtype"])
        assert (traced.shape, traced.dtype) == (got.shape, got.dtype)


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="PyTorch 1 has no torch.compile")
def test_int4_of_unknown_sizes():
    """Tracing with dynamic=True decides by the shape too."""
    multiply = torch.compile(npuquant_torch.npu_quant_matmul, backend="aot_eager", dynamic=True, fullgraph=True)
    for rows, terms, columns in ((3, 16, 24), (5, 32, 8)):
        x1, weight, left, words = int4_matrices(rows, terms, columns)
        wanted = torch.from_numpy(x1.astype("i4") @ weight.T.astype("i4"))
        for right in (words.t(), torch.from_numpy(expected.pack(np.ascontiguousarray(weight.T)))):
            assert torch.equal(multiply(left, right, torch.ones(1), output_dtype=torch.int32), wanted)
