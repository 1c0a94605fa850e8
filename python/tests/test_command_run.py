# SPDX-License-Identifier: BSD-3-Clause
"""The command's work, in the test's own process: main(argv) on files that NumPy writes."""
import pathlib

import numpy as np
import npuquant
import npuquant_cli
import numpy_operators as expected
import pytest
from command_inputs import assert_saved, save
from numpy_operators import f4, rng
from random_calls import RANDOM_CALLS, choose

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
EXAMPLES = [line for line in (DATA / "examples.txt").read_text().splitlines() if line and not line.startswith("#")]
OUTPUT = {"y": "-o", "scale": "--scale-output", "offset": "--offset-output"}
pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples(line, run, monkeypatch):
    """The device's documented results, and cases of halves, saturation and special values, with every backend."""
    monkeypatch.chdir(DATA)
    for backend in npuquant.available_backends():
        assert f"backend {backend}, " in run(*line.split(), "--backend", backend)


@pytest.mark.parametrize("operator", RANDOM_CALLS)
def test_random_calls(operator, run):
    for _ in range(30):
        call = RANDOM_CALLS[operator]()
        words = [operator.replace("_", "-"), *save(**call.inputs)]
        for name, value in call.options.items():
            words.append(f"--{name.replace('_', '-')}={str(value).lower()}")
        for name in call.results:
            words += [OUTPUT[name], f"{name}.npy"]
        run(*words, "--threads", choose(0, 1, 3), "--repeat", choose(1, 3))
        for name, array in call.results.items():
            assert_saved(name, array)


def test_quant_matmul(run):
    for _ in range(40):
        dtype = choose("int8", "float16", "bfloat16", "float32", "int32")
        batch, rows, depth, columns = choose((), (3,), (2, 3)), *(int(n) for n in rng.integers(1, 20, size=3))
        x1 = expected.random_integers((*batch, rows, depth), "i1")
        x2 = expected.random_integers((depth, columns), "i1")
        tokens = choose(None, (rows,), (*(1 for _ in batch), rows)) if dtype[0] not in "i" else None
        tokens = tokens and expected.random_floats(tokens, "f4", size=2.0)
        scale = None if dtype == "int32" else expected.random_floats(choose(1, columns), "f4", size=0.01)
        bias = choose(None, expected.random_integers(columns, "i4"))
        words = save(positional=2, x1=x1, x2=x2, scale=scale, pertoken_scale=tokens, bias=bias)
        run("quant-matmul", *words, "--dtype", dtype, "-o", "y.npy")
        assert_saved("y", expected.quant_matmul(x1, x2, scale, None, tokens, bias, dtype))


def test_output_names_and_summary(run):
    words = save(x=np.ones((4, 8), f4), scales=np.ones(8, f4))
    assert run("quantize", *words).startswith("quantize: x float32 [4, 8], y int8, backend ")
    assert run("quantize", *words, "-q", "-o", "y.npy") == ""
    assert run("quantize", *words, "--expect", "y.npy").startswith("y: all 32 elements equal\nquantize: ")
    np.save("y.npy", np.load("y.npy") + np.eye(4, 8, dtype="i1"))
    said = run("quantize", *words, "-q", "--expect", "y.npy", status=1)
    assert said.startswith("y: 4 of 32 elements differ (12 %), by +1 (file - npuquant)\n")
    assert run("quantize", *words, "-q", "--expect", "y.npy", "--max-diff", 1) == ""


def test_compare(run):
    ours = np.arange(-6, 6, dtype="i1").reshape(3, 4)
    np.save("a.npy", ours)
    np.save("b.npy", (ours.astype("i2") + 128).astype("u1"))
    assert run("compare", "a.npy", "a.npy") == "a.npy: all 12 elements equal\n"
    assert run("compare", "a.npy", "b.npy", status=1).endswith("\n  every difference is 128: one is int8, the other uint8\n")


def test_out_of_memory(capsys, monkeypatch):
    def compare(*arguments, **keywords):
        raise MemoryError("Unable to allocate 8 EiB")

    monkeypatch.setattr("npuquant_cli.compare.Comparison", compare)
    np.save("a.npy", np.zeros(3, f4))
    assert npuquant_cli.main(["compare", "a.npy", "a.npy"]) == 2
    assert capsys.readouterr() == ("", "npuquant: out of memory: Unable to allocate 8 EiB\n")
