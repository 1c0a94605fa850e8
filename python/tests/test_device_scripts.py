# SPDX-License-Identifier: BSD-3-Clause
"""Scripts for the device run unchanged with the stand-in for torch_npu, and print what their comments say.

A comment directly behind a statement holds what the statement prints, or shows in an interactive session. A comment at
the end of the script holds what all print() calls before it print, back to the last such comment; its lines that begin
with a second # are headings.

Inputs that a script makes with torch.randn() and its like have other values in each run. Where the comments show them,
the script is run again with the printed values in their place, and what it prints must agree with the comments to the
last digit. If a random input is not shown, the types and shapes of tensors are compared, and all other text.

Beside that, each call of an operator must return what NumPy computes step by step.

The scripts are those in device_scripts, and in the folder that the environment variable NPUQ_DEVICE_SCRIPTS names.
"""
import ast
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import types

import numpy as np
import numpy_operators as expected
import pytest
import test_operators

torch = pytest.importorskip("torch")

import npuquant.torch_npu  # noqa: E402
from npuquant._torch.tensors import array_of  # noqa: E402

HERE = pathlib.Path(__file__).parent / "device_scripts"
FOLDERS = [HERE] + [pathlib.Path(folder) for folder in [os.environ.get("NPUQ_DEVICE_SCRIPTS")] if folder]

# ---- what is printed -------------------------------------------------------------------------------------------------


class Printed:
    """A tensor as PyTorch prints it. The device is not looked at: here it is the CPU, which is not printed."""

    def __init__(self, text):
        self.text = text
        values, *keywords = re.split(r",\s*(?=\w+=)", text)
        elements = re.findall(r"[^\s\[\],]+", values)
        self.ndim = re.match(r"[\s\[]*", values)[0].count("[")
        self.whole = "..." not in elements
        self.shape = np.shape(ast.literal_eval(re.sub(r"[^\s\[\],]+", "0", values).strip())) if self.whole else None
        elements = [element for element in elements if element != "..."]
        truth = {"True": 1, "False": 0}
        integers = all(element in truth or re.fullmatch(r"-?\d+", element) for element in elements)
        self.values = np.array([truth[element] if element in truth else int(element) if integers else float(element)
                                for element in elements])
        kind = "bool" if truth.keys() & set(elements) else "int64" if integers else "float32"
        self.dtype = dict(keyword.split("=") for keyword in keywords).get("dtype", "torch." + kind)
        # What the last printed digit is worth.
        digits = [re.fullmatch(r"-?\d+\.(\d+)(?:e([+-]\d+))?", element) for element in elements]
        self.unit = np.array([10.0 ** (int(digit[2] or 0) - len(digit[1])) if digit else 0 for digit in digits])

    def __repr__(self):
        return f"tensor({self.text})"

    def agrees(self, other, inputs):
        if (self.dtype, self.ndim, self.shape) != (other.dtype, other.ndim, other.shape):
            return False
        if inputs == "unknown":
            return True
        # Inputs that are put in have been rounded when they were printed.
        tolerance = 1.001 * other.unit if inputs == "printed" else 0
        with np.errstate(all="ignore"):
            near = np.abs(self.values - other.values) <= tolerance
        return bool(np.all(near | (self.values == other.values) | np.isnan(self.values) & np.isnan(other.values)))


def pieces(text):
    """The words and tensors of a text, in their order."""
    found = []
    while True:
        words, tensor, text = text.partition("tensor(")
        found += words.split()
        if not tensor:
            return found
        depth, end = 1, 0
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        found.append(Printed(text[:end - 1]))
        text = text[end:]


def comment_behind(lines, end, last):
    """The comment behind line number end; of the last statement it may stand further down."""
    found = []
    for line in lines[end:]:
        line = line.strip()
        if line.startswith("#"):
            line = line[1:].strip()
            found += [] if line.startswith("#") else [line]
        elif line or not (found and unclosed("\n".join(found)) or last):
            break
    return "\n".join(found)


def unclosed(text):
    return text.count("(") > text.count(")")


# ---- running ---------------------------------------------------------------------------------------------------------

RANDOM = ("normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm")


class Session:
    """A script that is run statement by statement, as in an interactive session.

    Attributes:
        pairs: what was printed, and what the comments say, as lists of pieces.
        names: for each pair the names of the variables whose tensors are among the pieces, or None.
        rest: what was printed, and no comment speaks of.
        random: for each variable that was assigned, how many random tensors were made for it.
        unknown: how many random tensors were made and not replaced.
    """

    def __init__(self, path, given):
        self.given, self.pairs, self.names, self.rest = given, [], [], ""
        self.random, self.unknown, self.target = {}, 0, None
        source = path.read_text(encoding="utf-8")
        lines, body = source.splitlines(), ast.parse(source, str(path)).body
        self.module = types.ModuleType("__main__")
        self.module.__file__ = str(path)
        names = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "__main__", self.module)
            patch.setattr(sys, "argv", [str(path)])
            patch.setattr(sys, "displayhook", self.display)
            for name in RANDOM:
                patch.setattr(torch, name, self.replaced(getattr(torch, name)))
            for statement in body:
                text, shown = self.execute(statement, str(path))
                last, says = statement is body[-1], ""
                if isinstance(statement, ast.Expr) or last:
                    says = comment_behind(lines, statement.end_lineno, last)
                    text += shown if says else ""
                self.rest += text
                names += self.tensors(statement, text)
                if says and self.rest:
                    self.pairs.append((pieces(self.rest), pieces(says)))
                    self.names.append(names)
                    self.rest, names = "", []

    def display(self, value):
        if value is not None:
            self.shown += repr(value) + "\n"

    def execute(self, statement, path):
        self.shown, self.target = "", None
        if isinstance(statement, ast.Expr):
            code = compile(ast.Interactive([statement]), path, "single")
        else:
            code = compile(ast.Module([statement], []), path, "exec")
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                self.target = statement.targets[0].id
                self.random[self.target] = 0
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(code, vars(self.module))
        return output.getvalue(), self.shown

    def tensors(self, statement, text):
        """For each tensor in the text the name of the variable that is printed, or None."""
        count = sum(isinstance(piece, Printed) for piece in pieces(text))
        values = []
        if isinstance(statement, ast.Expr):
            values = statement.value.args if isinstance(statement.value, ast.Call) else [statement.value]
        names = [value.id for value in values if isinstance(value, ast.Name)
                 and isinstance(vars(self.module).get(value.id), torch.Tensor)]
        return names if len(names) == count else [None] * count

    def replaced(self, function):
        def call(*args, **kwargs):
            made = function(*args, **kwargs)
            if self.target in self.random:
                self.random[self.target] += 1
            if self.target not in self.given:
                self.unknown += 1
                return made
            values = self.given[self.target].values
            assert values.size == made.numel(), f"{self.target}: {values.size} elements are printed"
            return torch.tensor(values, dtype=made.dtype).reshape(made.shape)

        return call

    def printed_inputs(self):
        """Of the variables that are one random tensor each, those that the comments show."""
        found = {}
        for (_, says), names in zip(self.pairs, self.names):
            for name, tensor in zip(names, [piece for piece in says if isinstance(piece, Printed)]):
                if self.random.get(name) == 1 and tensor.whole:
                    found.setdefault(name, tensor)
        return found

    def check(self):
        """Compares what was printed with what the comments say; returns how."""
        inputs = "unknown" if self.unknown else "printed" if self.given else "exact"
        for actual, says in self.pairs:
            assert len(actual) == len(says), f"prints {actual}; expected {says}"
            for one, other in zip(actual, says):
                both = isinstance(one, Printed) and isinstance(other, Printed)
                assert one.agrees(other, inputs) if both else one == other, f"prints {one}; expected {other}"
        return inputs


# ---- every call of an operator ---------------------------------------------------------------------------------------


TYPES = {str(way).replace("torch.", ""): name for name, ways in test_operators.WAYS.items() for way in ways}


def kind(dtype, default="int8"):
    """The name of a type that is given as torch_npu takes it."""
    return default if dtype is None else TYPES[str(dtype).replace("torch.", "")]


def quant_matmul(a):
    x1, x2 = a.x1, a.x2
    if x1.dtype == np.int32:  # eight int4 in each word; those of x2 run along its rows or its columns
        transposed = x2.shape[-2] == x1.shape[-1]
        x1, x2 = expected.unpack(x1), expected.unpack(x2.swapaxes(-1, -2) if transposed else x2)
        x2 = x2.swapaxes(-1, -2) if transposed else x2
    return expected.quant_matmul(x1, x2, a.scale, a.offset, a.pertoken_scale, a.bias, kind(a.output_dtype))


def dynamic(function, x, a, *form):
    return function(x, a.smooth_scales, a.group_index, a.quant_mode == "pertensor", *form, kind(a.dst_type))


#: What NumPy computes of a call's arguments, which have the names of the schema.
OPERATORS = {
    "npu_quantize": lambda a: expected.quantize(a.self, a.scales, a.zero_points, a.axis, a.div_mode, kind(a.dtype)),
    "npu_group_quant": lambda a: expected.group_quant(a.x, a.scale, a.group_index, a.offset, kind(a.dst_dtype)),
    "npu_trans_quant_param": lambda a: expected.trans_quant_param(a.scale, a.offset, a.round_mode).view(np.int64),
    "npu_dynamic_quant_asymmetric": lambda a: dynamic(expected.dynamic, a.input, a),
    "npu_dynamic_quant": lambda a: dynamic(
        expected.dynamic_quant, a.input, a, a.scale_form or ("product" if a.group_index is None else "inverse")),
    "npu_dynamic_block_quant": lambda a: expected.dynamic_block_quant(
        a.x, a.col_block_size, a.min_scale, kind(a.dst_type)),
    "npu_anti_quant": lambda a: expected.anti_quant(a.x, a.scale, a.offset, kind(a.dst_dtype, "float16")),
    "npu_quant_matmul": quant_matmul,
    "npu_dequant_bias": lambda a: expected.dequant(
        a.x, a.weight_scale, a.activation_scale, a.bias, kind(a.output_dtype, "float16")),
}


def arguments_of(name, args, kwargs):
    """Of a call, by the names of the schema, with the schema's defaults."""
    schema = getattr(torch.ops.npuquant, name).default._schema.arguments
    given = {**{argument.name: argument.default_value for argument in schema},
             **dict(zip((argument.name for argument in schema), args)), **kwargs}
    return types.SimpleNamespace(**{key: array_of(value) for key, value in given.items()})


@contextlib.contextmanager
def checked_calls():
    """Compares what each call returns with NumPy; gives the list of the operators that were called."""
    calls = []

    def checked(name, function):
        def call(*args, **kwargs):
            guard = torch._C._AutoDispatchBelowAutograd()  # not a context manager in PyTorch 1
            try:
                returned = getattr(torch.ops.npuquant, name)(*args, **kwargs)
            finally:
                del guard
            results = returned if isinstance(returned, tuple) else (returned,)
            if all(type(result) in (torch.Tensor, torch.nn.Parameter) for result in results):  # it is not traced
                wanted = function(arguments_of(name, args, kwargs))
                for result, want in zip(results, wanted if isinstance(wanted, tuple) else (wanted,)):
                    np.testing.assert_array_equal(array_of(result).reshape(want.shape), want)
                    assert array_of(result).tobytes() == want.tobytes()
                calls.append(name)
            return returned

        return call

    library = torch.library.Library("npuquant", "IMPL")
    for name, function in OPERATORS.items():
        library.impl(name, checked(name, function), "AutogradCPU")
    try:
        yield calls
    finally:
        if hasattr(library, "_destroy"):
            library._destroy()
        else:
            del library


# ---- the tests -------------------------------------------------------------------------------------------------------


@pytest.fixture
def device(monkeypatch):
    """The stand-in, and nothing left of a script behind it."""
    environment = dict(os.environ)
    npuquant.torch_npu.install()
    with checked_calls() as calls:
        yield calls
    npuquant.torch_npu.uninstall()
    os.environ.clear()
    os.environ.update(environment)
    if hasattr(torch, "_dynamo"):
        torch._dynamo.reset()


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for folder in FOLDERS
                                  for path in sorted(folder.glob("*.py"))])
def test_script(path, device):
    session = Session(path, {})
    given = session.printed_inputs()
    if given:
        device.clear()
        session = Session(path, given)
    how = session.check()
    assert device, "no operator was called"
    print(f"{how} inputs; {len(session.pairs)} comments; with NumPy: {', '.join(device)}")
    if path.parent == HERE:
        assert how != "unknown" and session.pairs and not session.rest


def test_as_a_program():
    path = HERE / "linear_layer.py"
    command = [sys.executable, "-m", "npuquant.torch_npu", str(path), "--device", "0"]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True)
    says = re.sub("^# ?", "", path.read_text().partition("\n    main()\n")[2], flags=re.M)
    assert run.stdout.split() == says.split()


SCRIPT = """import torch, torch_npu
x = torch.randn(2, 3).npu()
x
# tensor([[1.0000, 0.5000, -1.0000], [0.5000, 0.2500, -0.5000]], device='npu:0')
y, scale = torch_npu.npu_dynamic_quant(x.half())
print("y:", y.dtype, y)
print(scale)
# y: torch.int8 tensor([[127, 64, -127], [127, 64, -127]], device='npu:0', dtype=torch.int8)
# tensor([0.0079, 0.0039], device='npu:0')
"""


@pytest.mark.parametrize("old, new", [
    ("", ""),
    ("64, -127], [", "63, -127], ["),
    ("0.2500", "0.2400"),
    ("0.0079", "0.0081"),
    ("0.0079", "nan"),
    ("dtype=torch.int8)", "dtype=torch.uint8)"),
    ("[[127, 64, -127], [127, 64, -127]]", "[[127, 64, -127]]"),
    ("[[127, 64, -127], [127, 64, -127]]", "[127, 64, -127, 127, 64, -127]"),
    ("torch.int8 ", "torch.int32 "),
    ("# tensor([0.0079, 0.0039], device='npu:0')", ""),
])
def test_differences_are_found(old, new, tmp_path, device):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.replace(old, new))
    session = Session(path, Session(path, {}).printed_inputs())
    if old == new:
        assert session.check() == "printed"
    else:
        with pytest.raises(AssertionError):
            session.check()


def test_calls_are_compared_with_numpy(device, monkeypatch):
    monkeypatch.setattr(expected, "quantize", lambda x, *other: np.zeros(x.shape, np.int8))
    with pytest.raises(AssertionError):
        torch.ops.npu.npu_quantize(torch.ones(3), torch.ones(1), None, torch.qint8)
