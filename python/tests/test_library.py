# SPDX-License-Identifier: BSD-3-Clause
"""The library behind the module: how it is found, its errors, backends and threads."""
import _ctypes
import ast
import ctypes
import doctest
import graphlib
import importlib.util
import inspect
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import npuquant
import numpy_operators as expected
import pytest
from calls import usual
from npuquant import _library, _native
from npuquant_facts.operators import OPERATORS, OPTIONS
from numpy_operators import f4

PACKAGE = pathlib.Path(npuquant.__file__).parent
SOURCE = pathlib.Path(__file__).resolve().parents[2]
HEADER = SOURCE / "include" / "npuquant" / "npuquant.h"
GUIDES = SOURCE / "docs"
LOADED = os.path.abspath(os.environ.get("NPUQUANT_LIBRARY") or "")
ONE = np.ones(1, f4)


def python(code, *arguments, **environment):
    """Runs code in a Python of its own; a value of None takes a variable away."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), **environment}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={name: value for name, value in environment.items() if value is not None},
        cwd=PACKAGE,  # not its parent, where the module would be found whatever is installed
        capture_output=True, text=True, timeout=120, check=False,
    )


@pytest.mark.parametrize("name", ["python.md", "diagnose.md", "is-my-mx-kernel-right.md", "microscaling.md", "row-quant.md",
                                  "scales-by-groups.md"])
def test_examples_of_the_guides(name):
    done = doctest.testfile(str(GUIDES / name), module_relative=False,
                            optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert done.failed == 0 and done.attempted > 5


# ---- finding it ----

SHOW = "import npuquant; print(npuquant.version(), npuquant._library.library._name, sep='\\n')"
needs_named_library = pytest.mark.skipif(not os.path.isfile(LOADED), reason="NPUQUANT_LIBRARY names no file")
needs_elf = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="relies on Linux's loader")


def import_error(code="import npuquant", **environment):
    done = python(code, **environment)
    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    assert message.startswith("ImportError: npuquant: no usable library; install libnpuquant, or set NPUQUANT_LIBRARY")
    return message


@needs_named_library
def test_named_by_path(tmp_path):
    copy = tmp_path / "renamed.bin"
    shutil.copy(LOADED, copy)
    assert python(SHOW, NPUQUANT_LIBRARY=str(copy)).stdout.splitlines() == [npuquant.version(), str(copy)]
    relative = os.path.relpath(LOADED, PACKAGE)  # where python() runs
    assert python(SHOW, NPUQUANT_LIBRARY=relative).stdout.splitlines() == [npuquant.version(), LOADED]


@needs_elf
@needs_named_library
def test_found_by_the_loader(tmp_path):
    (tmp_path / _library.NAMES[0]).symlink_to(LOADED)
    for nothing in (None, ""):
        done = python(SHOW, NPUQUANT_LIBRARY=nothing, LD_LIBRARY_PATH=str(tmp_path))
        assert done.stdout.splitlines() == [npuquant.version(), _library.NAMES[0]], done.stderr


@pytest.mark.parametrize("module", ["npuquant.torch", "npuquant.torch_npu"])
def test_without_pytorch(module):
    done = python(f"import sys; sys.modules['torch'] = None; import {module}")
    assert done.returncode == 1
    assert re.fullmatch(r"ImportError: npuquant\.torch: PyTorch cannot be imported \(.*; Debian: python3-torch\)",
                        done.stderr.splitlines()[-1])


@needs_elf
def test_not_found(tmp_path):
    # A file that is no library stands before one that may be installed.
    for name in _library.NAMES:
        (tmp_path / name).write_text("no library")
    code = "import ctypes.util; ctypes.util.find_library = lambda name: 'libnpuquant.so.0'; import npuquant"
    message = import_error(code, NPUQUANT_LIBRARY=None, LD_LIBRARY_PATH=str(tmp_path))
    assert re.search(r" Tried: libnpuquant\.so\.0 \([^;]*\)$", message)
    code = "import ctypes.util; ctypes.util.find_library = lambda name: 'lib' + name + '.so.7'; import npuquant"
    message = import_error(code, NPUQUANT_LIBRARY=None, LD_LIBRARY_PATH=str(tmp_path))
    assert re.search(r" Tried: libnpuquant\.so\.0 \([^;]*\); libnpuquant.so.7 \([^;]*\)$", message)


@needs_elf
@needs_named_library
def test_a_name_excludes_the_loader(tmp_path):
    (tmp_path / _library.NAMES[0]).symlink_to(LOADED)
    missing = tmp_path / "missing.so"
    message = import_error(NPUQUANT_LIBRARY=str(missing), LD_LIBRARY_PATH=str(tmp_path))
    assert re.search(rf"Tried: {missing} \([^;]*\)$", message)


def test_another_library():
    other = getattr(_ctypes, "__file__", None)
    if other is None:
        pytest.skip("this Python has no extension module to stand for another library")
    assert f"Tried: {other} (not libnpuquant: " in import_error(NPUQUANT_LIBRARY=other)


@pytest.mark.parametrize(("major", "minor"), [(1, 0), (0, 1), (0, 10)])
def test_another_version(major, minor, monkeypatch):
    mine = [int(number) for number in npuquant.version().split(".")]
    version = f"{mine[0] + major}.{mine[1] + minor}.{mine[2]}"
    monkeypatch.setattr(_library, "__version__", version)
    with pytest.raises(ImportError, match=rf"is version {re.escape(npuquant.version())}; this module is for {version}"):
        _library._open(_library.library._name)


def test_other_patches_of_the_version(monkeypatch):
    major, minor, patch = npuquant.version().split(".")
    monkeypatch.setattr(_library, "__version__", f"{major}.{minor}.{int(patch) + 1}")
    assert _library._open(_library.library._name)


def copy_packages(folder, *ignored):
    for name in "npuquant", "npuquant_cli", "npuquant_facts":
        shutil.copytree(PACKAGE.parent / name, folder / name, ignore=shutil.ignore_patterns(*ignored))


def imports(tree, package, modules):
    """The modules of these packages that a module imports, in functions too. Only `if` at its start may have others: so
    npuquant has the command's handler of errors where it is run as the command."""
    for node in [node for top in tree.body if not isinstance(top, ast.If) for node in ast.walk(top)]:
        if isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & modules
        elif isinstance(node, ast.ImportFrom):
            above = package[:len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            inner = {f"{origin}.{alias.name}" for alias in node.names}
            yield from (inner & modules) | ({origin} & modules if inner - modules else set())


def test_imports_run_one_way():
    """No module imports one that imports it, be it by others."""
    paths = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).replace(".__init__", ""): path
             for path in PACKAGE.parent.glob("npuquant*/**/*.py*")
             if path.suffix in (".py", ".pyi") and path.stem != "__main__"}
    graph = {}
    for name, path in paths.items():
        package = name.split(".")[:None if path.stem == "__init__" else -1]
        graph[name] = set(imports(ast.parse(path.read_text("utf-8")), package, paths.keys()))
    assert graph["npuquant.torch"] > {"npuquant._torch.declared", "npuquant._native"}
    graphlib.TopologicalSorter(graph).prepare()


def test_version():
    assert npuquant.version() == npuquant.__version__


@needs_named_library
def test_the_package_has_a_library_of_its_own(tmp_path):
    """As in a wheel: it comes before the system's, and after one that is named."""
    package = tmp_path / "npuquant"
    copy_packages(tmp_path, "*.p", "__pycache__")
    own = package / _library.BUNDLED.name
    shutil.copy(LOADED, own)
    system = tmp_path / "system"
    system.mkdir()
    (system / _library.NAMES[0]).symlink_to(LOADED)

    def loaded(named):
        done = python(SHOW, PYTHONPATH=str(tmp_path), NPUQUANT_LIBRARY=named, LD_LIBRARY_PATH=str(system))
        return done.stdout.splitlines()[1]

    assert loaded(None) == loaded("") == str(own)
    assert loaded(LOADED) == LOADED
    if sys.platform.startswith("linux"):
        assert loaded("system") == _library.NAMES[0]


def test_without_the_compiled_part(tmp_path):
    copy_packages(tmp_path, "_native*")
    message = python("import npuquant", PYTHONPATH=str(tmp_path)).stderr.splitlines()[-1]
    assert message.startswith("ImportError: npuquant: the compiled part of the package is missing")


def test_the_api_and_nothing_else_is_listed():
    assert dir(npuquant) == sorted(npuquant.__all__)
    assert all(name == "__version__" or not name.startswith("_") for name in dir(npuquant))
    assert {"npu_quantize", "NpuquantError", "set_num_threads"} <= set(dir(npuquant))
    assert not {"np", "annotations", "Any"} & set(dir(npuquant))


# ---- the ABI ----


class View(ctypes.Structure):
    """npuq_tensor"""

    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("ndim", ctypes.c_int32),
                ("shape", ctypes.c_int64 * 8), ("strides", ctypes.c_int64 * 8)]

    def __str__(self):
        return f"{self.dtype} {self.shape[:self.ndim]} {self.strides[:self.ndim]}"


TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


class Executor(ctypes.Structure):
    """npuq_executor"""

    _fields_ = [("parallel_for", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, TASK, ctypes.c_void_p)),
                ("context", ctypes.c_void_p)]


@pytest.fixture
def take_calls():
    """Lets a function in Python take the calls of npuq_quantize()."""
    view = ctypes.POINTER(View)
    signature = ctypes.CFUNCTYPE(ctypes.c_int, view, view, view, ctypes.c_int32, ctypes.c_bool, view,
                                 ctypes.POINTER(Executor))
    standing_in = types.SimpleNamespace(**{name: getattr(_library.library, name) for name in _native.FUNCTIONS})

    def take(quantize):
        standing_in.npuq_quantize = signature(quantize)
        _library._bind(standing_in)

    yield take
    _library._bind(_library.library)


@pytest.fixture
def views(take_calls):
    """What npuq_quantize() would be given."""
    seen = []

    def quantize(x, scales, zero_points, axis, div_mode, y, executor):
        seen.extend([str(x[0]), str(scales[0]), bool(zero_points), axis, div_mode, str(y[0]), bool(executor)])
        return 0

    take_calls(quantize)
    return seen


def test_views_are_of_the_arrays_themselves(views):
    x = np.zeros((3, 4, 16), np.float16)[:, ::-2, 4:12]
    npuquant.npu_quantize(x, np.broadcast_to(f4(1), 8), None, "int8", -1)
    assert views == ["1 [3, 2, 8] [64, -32, 1]", "0 [8] [0]", False, -1, True, "2 [3, 2, 8] [16, 8, 1]", False]


def test_words_of_int4_are_told_from_int32(views):
    npuquant.npu_quantize(X, ONE, ONE, "int32")
    npuquant.npu_quantize(np.zeros((2, 16), np.uint16), ONE, None, "quint4x2", -2, False)
    assert views == ["0 [2, 3] [3, 1]", "0 [1] [1]", True, 1, True, "3 [2, 3] [3, 1]", False,
                     "27 [2, 16] [16, 1]", "0 [1] [1]", False, -2, False, "256 [2, 2] [2, 1]", False]


def test_an_x_of_one_element_is_copied(views):
    """The library takes an x whose strides are all 0 for one whose strides were forgotten."""
    npuquant.npu_quantize(np.broadcast_to(f4(1), (2, 3)), ONE, None, "int8")
    npuquant.npu_quantize(np.broadcast_to(f4([1, 2, 3]), (2, 3)), ONE, None, "int8")
    assert views[::7] == ["0 [2, 3] [3, 1]", "0 [2, 3] [0, 1]"]


def test_header():
    header = HEADER.read_text()
    values = {name: int(value) for name, value in re.findall(r"^    NPUQ_(\w+) = (\d+)", header, re.MULTILINE)}
    assert {name: option.numbers for name, option in OPTIONS.items() if option.numbers and name != "rule"} == {
        "div_mode": {"true": 1, "false": 0},
        "round_mode": {"0": values["ROUND_TRUNCATE"], "1": values["ROUND_NEAREST"]},
        "quant_mode": {"pertoken": values["PER_TOKEN"], "pertensor": values["PER_TENSOR"]},
        "scale_form": {"product": values["SCALE_PRODUCT"], "inverse": values["SCALE_INVERSE"]},
        "rounding": {"rint": values["MX_RINT"], "round": values["MX_ROUND"], "floor": values["MX_FLOOR"]},
    }
    assert f"#define NPUQ_MAX_NDIM {OPERATORS['quantize'].inputs[0].most}\n" in header
    assert {number: name for number, name in _library._backends()} == {
        value: name[len("BACKEND_"):].lower() for name, value in values.items() if name.startswith("BACKEND_")
    }


# ---- errors ----

X = f4([[1, 2, 3], [4, 5, 6]])
ROWS = np.array([1, 2])
INT8, SUMS = X.astype(np.int8), X.astype(np.int32)
MANY = np.ones((100, 100), f4)
SQUARE = INT8[:, :2]
SQUARES, CODES = X[:, :2], np.ones((2, 2), "u1")


@pytest.mark.parametrize(
    ("status", "says", "call"),
    [
        ("DTYPE", "quantize: y: ", lambda: npuquant.npu_quantize(X, ONE, None, np.uint8, 1, False)),
        ("SHAPE", "quantize: scales: ", lambda: npuquant.npu_quantize(X, np.ones(4, f4), None, np.int8)),
        ("SHAPE", "quantize: x: ", lambda: npuquant.npu_quantize(f4(3), ONE, None, np.int8)),
        ("SHAPE", "quantize: x: ", lambda: npuquant.npu_quantize(X, ONE, None, "quint4x2", -1, False)),
        ("LAYOUT", "quantize: scales: ",
         lambda: npuquant.npu_quantize(X, np.zeros(5, "u1")[1:].view(f4), None, np.int8)),
        ("AXIS", "quantize: axis: is 2; ", lambda: npuquant.npu_quantize(X, np.ones(3, f4), None, np.int8, 2)),
        ("DTYPE", "group_quant: y: ", lambda: npuquant.npu_group_quant(X, X, ROWS, dst_dtype=np.uint8)),
        ("GROUP_INDEX", "group_quant: group_index: ",
         lambda: npuquant.npu_group_quant(X, X, np.array([2**32 + 1, 2]))),
        ("SHAPE", "trans_quant_param: scale: ", lambda: npuquant.npu_trans_quant_param(np.zeros(0, f4))),
        ("SHAPE", "trans_quant_param: offset: ", lambda: npuquant.npu_trans_quant_param(X[0], X[0, :2])),
        ("SHAPE", "trans_quant_param: offset: ", lambda: npuquant.npu_trans_quant_param(X[:1], X)),
        ("ARGUMENT", "trans_quant_param: round_mode: ", lambda: npuquant.npu_trans_quant_param(X[0], None, 2)),
        ("SHAPE", "dynamic_quant_asymmetric: x: ",
         lambda: npuquant.npu_dynamic_quant_asymmetric(X[:0], quant_mode="pertensor")),
        ("ARGUMENT", "dynamic_quant_asymmetric: ",
         lambda: npuquant.npu_dynamic_quant_asymmetric(X, smooth_scales=X, group_index=ROWS, quant_mode="pertensor")),
        ("ARGUMENT", "dynamic_quant_asymmetric: ",
         lambda: npuquant.npu_dynamic_quant_asymmetric(X, smooth_scales=X)),
        ("GROUP_INDEX", "dynamic_quant_asymmetric: group_index: ",
         lambda: npuquant.npu_dynamic_quant_asymmetric(X, smooth_scales=X, group_index=ROWS[::-1])),
        ("DTYPE", "group_quant: y: ", lambda: npuquant.npu_group_quant(X, X[:1], np.array([len(X)]), dst_dtype="int32")),
        ("DTYPE", "dynamic_quant_asymmetric: y: ",
         lambda: npuquant.npu_dynamic_quant_asymmetric(X, dst_type="uint8")),
        ("LAYOUT", "quantize: y: overlaps itself: two indices share an element; expected distinct elements, such as "
                   "numpy.empty() makes for out",
         lambda: npuquant.npu_quantize(X, ONE, None, "int8", out=np.lib.stride_tricks.as_strided(
             np.zeros(X.shape[1], "i1"), X.shape, (0, 1)))),
        ("ARGUMENT", "dynamic_block_quant: block: is 0; ",
         lambda: npuquant.npu_dynamic_block_quant(X, col_block_size=0)),
        ("ARGUMENT", "dynamic_block_quant_float8: row_block: is 0; ",
         lambda: npuquant.dynamic_block_quant_float8(X, row_block_size=0)),
        ("ARGUMENT", "dynamic_block_quant_float8: column_block: is -1; ",
         lambda: npuquant.npu_dynamic_block_quant(X, col_block_size=-1, dst_type="float8_e5m2")),
        ("ARGUMENT", "dynamic_block_quant_float8: dst_type_max: is another number; expected 0, 15, 56, 224 or 32768",
         lambda: npuquant.dynamic_block_quant_float8(X, dst_type="hifloat8", dst_type_max=16)),
        ("SHAPE", "dynamic_block_quant_float8: x: has 1 dimension; ",
         lambda: npuquant.dynamic_block_quant_float8(X[0])),
        ("ARGUMENT", "dynamic_mx_quant: block_size: is 48; expected a multiple of 32",
         lambda: npuquant.dynamic_mx_quant(SQUARES, block_size=48)),
        ("ARGUMENT", "anti_mx_quant: block_size: is 33; ",
         lambda: npuquant.anti_mx_quant(CODES, CODES[..., None], axis=0, block_size=33)),
        ("ARGUMENT", "dynamic_mx_quant: round_mode: is 2 (floor); expected 0 (rint), as y is FLOAT8_E5M2",
         lambda: npuquant.dynamic_mx_quant(SQUARES, round_mode="floor", dst_type=23)),
        ("ARGUMENT", "dynamic_mx_quant: scale_alg: is 2; expected 0 or 1, as y is FLOAT8_E4M3FN",
         lambda: npuquant.dynamic_mx_quant(SQUARES, scale_alg=2, dst_type=24)),
        ("ARGUMENT", "dynamic_mx_quant: dst_type_max: is another number; expected 0, or 6 to 12",
         lambda: npuquant.dynamic_mx_quant(SQUARES, dst_type_max=3)),
        ("ARGUMENT", "dynamic_mx_quant: max_low_bound: is another number; expected 0, as scale_alg is 0",
         lambda: npuquant.dynamic_mx_quant(SQUARES, scale_alg=None, max_low_bound=1)),
        ("ARGUMENT", "dynamic_mx_quant: bad_groups: is 1 (NaN); expected 0, as y is FLOAT4_E2M1",
         lambda: npuquant.dynamic_mx_quant(SQUARES, bad_groups=1)),
        ("ARGUMENT", "dynamic_mx_quant: small_groups: is 3; ",
         lambda: npuquant.dynamic_mx_quant(SQUARES, small_groups=3)),
        ("AXIS", "dynamic_mx_quant: axis: is 2; ", lambda: npuquant.dynamic_mx_quant(SQUARES, axis=2)),
        ("SHAPE", "dynamic_mx_quant: x: last dimension is ", lambda: npuquant.dynamic_mx_quant(X[:, :1])),
        ("SHAPE", "dynamic_mx_quant: x: has 0 dimensions; ", lambda: npuquant.dynamic_mx_quant(X[0, 0])),
        ("DTYPE", "anti_mx_quant: mxscale: dtype is FLOAT32; expected FLOAT8_E8M0",
         lambda: npuquant.anti_mx_quant(CODES, X, axis=0)),
        ("SHAPE", "anti_mx_quant: mxscale: ", lambda: npuquant.anti_mx_quant(CODES, CODES, axis=0)),
        ("ARGUMENT", "dynamic_block_quant: min_scale: is inf; ",
         lambda: npuquant.npu_dynamic_block_quant(X, min_scale=float("inf"))),
        ("SHAPE", "anti_quant: x: ", lambda: npuquant.npu_anti_quant(np.int32(1), ONE)),
        ("SHAPE", "dequant: activation_scale: ", lambda: npuquant.dequant(SUMS, ONE, ONE)),
        ("ARGUMENT", "requant: words: ", lambda: npuquant.requant(SUMS, np.zeros(1, np.uint64))),
        # A negative scale's bits, extended by the sign.
        ("ARGUMENT", "requant: words: element 0 is 0xFFFFFFFFBF800000; expected bits 36..32 to be 0",
         lambda: npuquant.requant(SUMS, np.array([-1], "f4").view("i4").astype("i8"), dtype="float16")),
        ("ARGUMENT", "requant: words: ", lambda: npuquant.npu_quant_matmul(SQUARE, SQUARE, np.zeros(1, np.int64))),
    ],
)
def test_refusals(status, says, call, threads):
    with pytest.raises(npuquant.NpuquantError) as caught:
        call()
    assert caught.value.status == f"NPUQ_ERROR_{status}"
    assert str(caught.value).startswith(says) and "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("error", "says", "call"),
    [
        (TypeError, r"axis: is float; expected an integer", lambda: npuquant.npu_quantize(X, ONE, None, "int8", 1.0)),
        # Cut off to 32 bits it would be 1.
        (ValueError, r"axis: is 4294967297; ", lambda: npuquant.npu_quantize(X, ONE, None, "int8", 2**32 + 1)),
        # More digits than Python prints.
        (ValueError, r"axis: is too large a number; ", lambda: npuquant.npu_quantize(X, ONE, None, "int8", 10**5000)),
        (TypeError, r"div_mode: is str; ", lambda: npuquant.npu_quantize(X, ONE, None, "int8", 1, "false")),
        (TypeError, r"zero_points: is int; ", lambda: npuquant.npu_quantize(X, ONE, 0, "int8")),
        (TypeError, r"round_mode: is str; ", lambda: npuquant.npu_trans_quant_param(X[0], None, "0")),
        (TypeError, r"x: is given as input too; ", lambda: npuquant.npu_dynamic_quant_asymmetric(X, input=X)),
        (TypeError, r"x: is NoneType; ", lambda: npuquant.npu_dynamic_quant_asymmetric()),
        (TypeError, r"scales: is NoneType; ", lambda: npuquant.npu_quantize(X, None, None, "int8")),
        (ValueError, r"quant_mode: is 'perchannel'; expected 'pertoken' or 'pertensor'",
         lambda: npuquant.npu_dynamic_quant_asymmetric(X, quant_mode="perchannel")),
        (ValueError, r"quant_mode: is \[\]; ", lambda: npuquant.npu_dynamic_quant_asymmetric(X, quant_mode=[])),
        (ValueError, r"quant_mode: is None; expected 'pertoken' or 'pertensor'",
         lambda: npuquant.npu_dynamic_quant(X, quant_mode=None)),
        (ValueError, r"scale_form: is 'quotient'; expected 'product' or 'inverse' \[npu_\w+\]\Z",
         lambda: npuquant.npu_dynamic_quant(X, scale_form="quotient")),
        (ValueError, r"dst_type_max: is 15; expected 0.0, as y is int8 \[npu_dynamic_quant\]\Z",
         lambda: npuquant.npu_dynamic_quant(X, dst_type_max=15)),
        (ValueError, r"dst_type_max: is None; expected 0.0, as y is uint8 \[npu_dynamic_quant\]\Z",
         lambda: npuquant.npu_dynamic_quant(X, dst_type_max=None, dst_type="uint8")),
        (TypeError, r"dst_type_max: is NoneType; expected a number \[npu_dynamic_quant\]\Z",
         lambda: npuquant.npu_dynamic_quant(X, dst_type_max=None, dst_type="hifloat8")),
        (ValueError, r"scale_form: is 'inverse'; expected 'product', as y is hifloat8 \[npu_dynamic_quant\]\Z",
         lambda: npuquant.npu_dynamic_quant(X, scale_form="inverse", dst_type="hifloat8")),
        (ValueError, r"dst_type_max: is 15; expected 0.0: others are for types of the series Ascend 950",
         lambda: npuquant.npu_dynamic_quant_asymmetric(X, dst_type_max=15)),
        (ValueError, r"x: has 1 dimension; expected 2 to 8 \[dynamic_quant_float8\]\Z",
         lambda: npuquant.dynamic_quant_float8(X[0])),
        (ValueError, r"x: has 1 dimension; expected 2 to 8 \[npu_\w+\]\Z", lambda: npuquant.npu_dynamic_quant(X[0])),
        (ValueError, r"x: has 1 dimension; expected 2 to 8 \[npu_\w+\]\Z", lambda: npuquant.npu_dynamic_quant_asymmetric(X[0])),
        (ValueError, r"round_mode: is 'ceil'; expected 'rint', 'round' or 'floor' \[dynamic_mx_quant\]\Z",
         lambda: npuquant.dynamic_mx_quant(SQUARES, round_mode="ceil")),
        (TypeError, r"block_size: is str; expected an integer \[dynamic_mx_quant\]\Z",
         lambda: npuquant.dynamic_mx_quant(SQUARES, block_size="32")),
        (TypeError, r"axis: is float; expected an integer \[anti_mx_quant\]\Z",
         lambda: npuquant.anti_mx_quant(CODES, CODES, axis=0.0)),
        (TypeError, r"dst_type: is torch_npu.hifloat8 \(290\), .*; expected float8_e4m3fn, float8_e5m2, "
         r"float4_e2m1fn_x2 or float4_e1m2fn_x2 \[dynamic_mx_quant\]\Z",
         lambda: npuquant.dynamic_mx_quant(SQUARES, dst_type=290)),
        (TypeError, r"src_type: is 'float16'; expected float8_e4m3fn, float8_e5m2, .* \[anti_mx_quant\]\Z",
         lambda: npuquant.anti_mx_quant(CODES, CODES, axis=0, src_type="float16")),
        (TypeError, r"out: is ndarray; expected a tuple of two arrays, y and mxscale \[dynamic_mx_quant\]\Z",
         lambda: npuquant.dynamic_mx_quant(SQUARES, out=CODES)),
        (ValueError, r"row_block_size: is 2; expected 1, as y is int8 \[npu_\w+\]\Z",
         lambda: npuquant.npu_dynamic_block_quant(X, row_block_size=2)),
        (ValueError, r"round_mode: is 'floor'; expected 'rint', as y is int8 \[npu_\w+\]\Z",
         lambda: npuquant.npu_dynamic_block_quant(X, round_mode="floor")),
        (ValueError, r"round_mode: is 'rint'; expected 'round', as y is hifloat8 \[npu_\w+\]\Z",
         lambda: npuquant.npu_dynamic_block_quant(X, dst_type="hifloat8")),
        (ValueError, r"round_mode: is 'round'; expected 'rint', as y is float8_e5m2 \[npu_\w+\]\Z",
         lambda: npuquant.npu_dynamic_block_quant(X, dst_type="float8_e5m2", round_mode="round")),
        (ValueError, r"dst_type_max: is 15; expected 0.0, as y is uint8 \[npu_\w+\]\Z",
         lambda: npuquant.npu_dynamic_block_quant(X, dst_type_max=15, dst_type="uint8")),
        (TypeError, r"row_block_size: is str; expected an integer \[npu_\w+\]\Z",
         lambda: npuquant.npu_dynamic_block_quant(X, row_block_size="2", dst_type="float8_e5m2")),
        (TypeError, r"col_block_size: is float; expected an integer \[npu_\w+\]\Z",
         lambda: npuquant.npu_dynamic_block_quant(X, col_block_size=128.0)),
        (ValueError, r"col_block_size: is too large a number; expected an int64 \[npu_\w+\]\Z",
         lambda: npuquant.npu_dynamic_block_quant(X, col_block_size=2**63)),
        (ValueError, r"min_scale: is -?1e\+50; expected -3.4e\+38 to 3.4e\+38, the range of float32 \[npu_\w+\]\Z",
         lambda: npuquant.npu_dynamic_block_quant(X, min_scale=1e50)),
        (TypeError, r"min_scale: is str; expected a number \[npu_\w+\]\Z",
         lambda: npuquant.npu_dynamic_block_quant(X, min_scale="0")),
        (TypeError, r"src_dtype: is 'int8'; expected quint4x2 for an x of int32 \[npu_\w+\]\Z",
         lambda: npuquant.npu_anti_quant(SUMS, ONE, src_dtype="int8")),
        (TypeError, r"src_dtype: is 'int32'; expected quint4x2 for an x of int32 \[npu_\w+\]\Z",
         lambda: npuquant.npu_anti_quant(SUMS, ONE, src_dtype="int32")),
        (TypeError, r"src_dtype: is 16 \(quint4x2\); expected int8 for an x of int8 \[npu_\w+\]\Z",
         lambda: npuquant.npu_anti_quant(INT8, ONE, src_dtype=16)),
        (TypeError, r"src_dtype: is torch_npu.int4 \(285\); expected int8 for an x of int8 \[npu_\w+\]\Z",
         lambda: npuquant.npu_anti_quant(INT8, ONE, src_dtype=285)),
        (ValueError, r"name: \[\]; ", lambda: npuquant.set_backend([])),
        (TypeError, r"x: is a masked array; ", lambda: npuquant.npu_dynamic_quant_asymmetric(np.ma.masked_array(X))),
        (TypeError, r"scales: is list; expected a NumPy array or an object with __dlpack__ \[npu_\w+\]\Z",
         lambda: npuquant.npu_quantize(X, [1.0] * 1000, None, "int8")),
        (ValueError, r"operator: is ndarray; expected one of anti_mx_quant, dequant, ", lambda: npuquant.diagnose(X, MANY)),
        (ValueError, r"name: ndarray; expected one of ref, ", lambda: npuquant.set_backend(MANY)),
        (ValueError, r"name: 'sse2'; expected one of ref, ", lambda: npuquant.set_backend("sse2")),
        (ValueError, r"threads: is 0; ", lambda: npuquant.set_num_threads(0)),
        (TypeError, r"threads: is float; ", lambda: npuquant.set_num_threads(1.5)),
    ],
)
def test_arguments_of_the_wrong_kind(error, says, call):
    with pytest.raises(error, match=r"\A" + says) as caught:
        call()
    assert not isinstance(caught.value, npuquant.NpuquantError)


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_array_is_no_option(operator):
    """And is not printed."""
    call = usual(operator)
    tensors = {call.names[name] for name in call.inputs} | {"input", "out"}
    for name in inspect.signature(call.function).parameters.keys() - tensors:
        with pytest.raises((TypeError, ValueError), match=rf"\A{name}: is (numpy\.)?ndarray; expected .* \[\w+\]\Z"):
            call.function(**{**call.hard_call, name: MANY})


MATRIX = np.ones((2, 3, 4), np.int8)


@pytest.mark.parametrize(
    ("error", "says", "change"),
    [
        (TypeError, "x1: is uint8; expected int8 or int32", {"x1": SUMS.view(np.uint8)}),
        (TypeError, "x2: is float32; expected int8 or int32", {"x2": X}),
        (TypeError, "x2: is int32; expected int8, as x1 is: the device computes in another way with int8 and int4, "
                    "which is not defined here", {"x2": np.ones((4, 5), "i4")}),
        (TypeError, "x2: is int8; expected int32, as x1 is: the device computes in another way with int8 and int4, "
                    "which is not defined here", {"x1": SUMS}),
        (ValueError, "x2: has the shape [4, 5]; expected 1 row, as x1 has columns, or 8 if its words run along N",
         {"x1": np.ones((3, 1), "i4"), "x2": np.ones((4, 5), "i4")}),
        (ValueError, "scale: has the shape [4]; expected [1] or [40]",
         {"x1": np.ones((3, 1), "i4"), "x2": np.ones((8, 5), "i4"), "scale": np.ones(4, f4)}),
        (ValueError, "scale: has the shape [2, 5]; expected [1] or [5]: the device computes in another way with "
                     "scales of groups of terms, which is not defined here", {"scale": np.ones((2, 5), f4)}),
        (TypeError, "x1: is list; expected a NumPy array or an object with __dlpack__", {"x1": [[1]]}),
        (ValueError, "x1: has 1 dimension; expected 2 to 8", {"x1": MATRIX[0, 0]}),
        (ValueError, "x2: has 9 dimensions; expected 2 to 8", {"x2": MATRIX.reshape(1, 1, 1, 1, 1, 1, 2, 3, 4)}),
        (ValueError, "x2: has the shape [2, 3, 4]; expected 4 rows, as x1 has columns", {"x2": MATRIX}),
        (ValueError, "x2: has the batch dimensions [3]; expected some that can be broadcast with those of x1, [2]",
         {"x2": np.ones((3, 4, 5), np.int8)}),
        (TypeError, "output_dtype: is 'uint8'; expected int8, float16, bfloat16, float32 or int32",
         {"output_dtype": "uint8"}),
        (TypeError, "scale: is float16; expected float32, int64 or uint64, as output_dtype is int8",
         {"scale": np.ones(1, "f2")}),
        (TypeError, "scale: is float16; expected float32 or bfloat16 (or its bits as uint16), as output_dtype is "
                    "float32", {"scale": np.ones(1, "f2"), "output_dtype": "float32"}),
        (TypeError, "scale: is int64; expected float32 or bfloat16 (or its bits as uint16), as output_dtype is "
                    "bfloat16", {"scale": np.ones(1, "i8"), "output_dtype": "bfloat16"}),
        (TypeError, "scale: is int64; expected float32 or bfloat16 (or its bits as uint16), as output_dtype is "
                    "float16 and pertoken_scale is given",
         {"scale": np.ones(1, "i8"), "output_dtype": "float16", "pertoken_scale": np.ones(3, f4)}),
        (ValueError, "scale: has the shape [4]; expected [1] or [5]", {"scale": np.ones(4, f4)}),
        (ValueError, "scale: has the shape [1, 5]; expected [1] or [5]", {"scale": np.ones((1, 5), f4)}),
        (ValueError, "scale: has the shape [5, 1]; expected [1] or [5] or [1, 5]", {"scale": np.ones((5, 1), "i8")}),
        (TypeError, "offset: is int32; expected float32", {"offset": np.ones(1, "i4")}),
        (ValueError, "offset: has the shape [4]; expected [1] or [5]", {"offset": np.ones(4, f4)}),
        (ValueError, "offset: is given; expected None, as output_dtype is float16 and not int8",
         {"offset": ONE, "output_dtype": "float16"}),
        (ValueError, "offset: has the shape [4]; expected [1] or [5]",
         {"offset": np.ones(4, f4), "scale": np.ones(1, "i8")}),
        (ValueError, "pertoken_scale: is given; expected None, as output_dtype is int8",
         {"pertoken_scale": np.ones(3, f4)}),
        (ValueError, "pertoken_scale: is given; expected None, as output_dtype is int32",
         {"pertoken_scale": np.ones(3, f4), "output_dtype": "int32"}),
        (TypeError, "pertoken_scale: is float16; expected float32",
         {"pertoken_scale": np.ones(3, "f2"), "output_dtype": "float16"}),
        (ValueError, "pertoken_scale: has the shape [1]; expected [3] or [2, 3]",
         {"pertoken_scale": ONE, "output_dtype": "float16"}),
        (ValueError, "pertoken_scale: has the shape [3, 1]; expected [3]",
         {"x1": MATRIX[0], "pertoken_scale": np.ones((3, 1), f4), "output_dtype": "float16"}),
        (ValueError, "scale: has the shape [4]; expected [1]", {"x2": MATRIX[0, :1].T, "scale": np.ones(4, f4)}),
        (ValueError, "scale: has the shape [2, 1]; expected [1]: the device computes in another way with scales of "
                     "groups of terms, which is not defined here",
         {"x2": MATRIX[0, :1].T, "scale": np.ones((2, 1), f4)}),
        (TypeError, "bias: is float32; expected int32, as output_dtype is int8", {"bias": np.ones(5, f4)}),
        (TypeError, "bias: is float32; expected int32, as output_dtype is int32",
         {"bias": np.ones(5, f4), "output_dtype": "int32"}),
        (TypeError, "bias: is int64; expected int32, float32, float16 or bfloat16 (or its bits as uint16), as "
                    "output_dtype is bfloat16", {"bias": np.ones(5, "i8"), "output_dtype": "bfloat16"}),
        (ValueError, "bias: has the shape [1]; expected [5] or [2, 1, 5]", {"bias": np.ones(1, "i4")}),
        (ValueError, "bias: has the shape [1, 1, 5]; expected [5]",
         {"bias": np.ones((1, 1, 5), "i4"), "x1": MATRIX[0]}),
    ],
)
def test_products_that_are_refused(error, says, change):
    arguments = {"x1": MATRIX, "x2": np.ones((4, 5), np.int8), "scale": ONE, **change}
    with pytest.raises(error, match=rf"\A{re.escape(says)} \[\w+\]\Z") as caught:
        npuquant.npu_quant_matmul(**arguments)
    assert isinstance(caught.value, RuntimeError) and not isinstance(caught.value, npuquant.NpuquantError)


def test_errors_travel_between_processes():
    with pytest.raises(npuquant.NpuquantError) as caught:
        npuquant.npu_quantize(X, X, None, np.int8)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy), copy.status) == (npuquant.NpuquantError, str(caught.value), "NPUQ_ERROR_SHAPE")


def test_errors_of_two_threads_do_not_mix(threads):
    start = threading.Barrier(4)

    def refuse(axis):
        start.wait()
        for _ in range(500):
            with pytest.raises(npuquant.NpuquantError, match=f"axis: is {axis};"):
                npuquant.npu_quantize(X, f4([1, 2, 3]), None, np.int8, axis)

    with ThreadPoolExecutor(4) as pool:
        assert len([*pool.map(refuse, (7, -7, 1000, 12345))]) == 4


# ---- backends ----


def test_backends():
    names = npuquant.available_backends()
    assert names[0] == "ref" and npuquant.backend() in names
    for name in names:
        npuquant.set_backend(name)
        assert npuquant.backend() == name
    missing = [name for _, name in _library._backends() if name not in names]
    for name in missing:  # there is no machine with AVX2 and NEON
        with pytest.raises(npuquant.NpuquantError, match=name) as caught:
            npuquant.set_backend(name)
        assert caught.value.status == "NPUQ_ERROR_BACKEND"
        assert npuquant.backend() == names[-1]
    assert missing


def test_backend_of_the_environment():
    done = python("import npuquant; print(npuquant.backend())", NPUQ_BACKEND="ref")
    assert (done.stdout, done.stderr) == ("ref\n", "")


# ---- threads ----

LARGE = expected.random_floats((1200, 2500), "f4")
LARGE_RESULT = expected.dynamic(LARGE, None, None, False, "int8")


def assert_large(got):
    for one, wanted in zip(got, LARGE_RESULT):
        np.testing.assert_array_equal(one, wanted)


def test_threads_of_a_call(take_calls):
    ran = []
    together = threading.Barrier(3)

    def task(argument, begin, end):
        me = threading.get_ident()
        if me not in {ident for ident, _, _ in ran}:
            together.wait(60)
        ran.append((me, begin, end))

    def quantize(x, scales, zero_points, axis, div_mode, y, executor):
        executor[0].parallel_for(executor[0].context, 10007, TASK(task), None)
        return 0

    take_calls(quantize)
    npuquant.set_num_threads(3)
    assert npuquant.get_num_threads() == 3
    npuquant.npu_quantize(X, ONE, None, np.int8)
    ranges = sorted((begin, end) for _, begin, end in ran)
    assert [begin for begin, _ in ranges] == [0] + [end for _, end in ranges[:-1]] and ranges[-1][1] == 10007
    assert len({ident for ident, _, _ in ran}) == 3 and threading.get_ident() in {ident for ident, _, _ in ran}


def test_the_library_is_given_threads(views):
    for count in (1, 2, 1):
        npuquant.set_num_threads(count)
        npuquant.npu_quantize(X, ONE, None, np.int8)
    assert views[6::7] == [False, True, False]


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the threads of this process cannot be counted")
def test_threads_end_with_the_call():
    before = set(os.listdir("/proc/self/task"))
    npuquant.set_num_threads(3)
    for _ in range(20):
        assert_large(npuquant.npu_dynamic_quant_asymmetric(LARGE))
        assert set(os.listdir("/proc/self/task")) == before


def test_callers_on_threads_of_their_own():
    """And one who changes the number of threads meanwhile."""
    def call(_):
        for _ in range(10):
            assert_large(npuquant.npu_dynamic_quant_asymmetric(LARGE))

    npuquant.set_num_threads(2)
    with ThreadPoolExecutor(5) as pool:
        callers = pool.map(call, range(5))
        for count in [3, 1, 2, 4, 10**30] * 3:
            npuquant.set_num_threads(count)
            assert_large(npuquant.npu_dynamic_quant_asymmetric(LARGE))
        assert len([*callers]) == 5


NO_MORE_THREADS = """
import resource
import threading
import numpy as np
import npuquant

x = np.ones((1200, 2500), "f4")
out = npuquant.npu_dynamic_quant_asymmetric(x)
expected = [one.tobytes() for one in out]
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 2**20, -1))
try:
    threading.Thread(target=print).start()
except RuntimeError:
    pass
else:
    raise AssertionError("a thread could be had")
npuquant.set_num_threads(4)
for one in out:
    one[...] = 0
npuquant.npu_dynamic_quant_asymmetric(x, out=out)
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
assert [one.tobytes() for one in out] == expected
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_no_more_threads_to_be_had():
    done = python(NO_MORE_THREADS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


SECOND_INTERPRETER = """
import _xxsubinterpreters as interpreters
import numpy as np
import npuquant

x = np.ones((2, 4), "f4")
y = npuquant.npu_dynamic_quant(x)[0]
second = interpreters.create()
try:
    interpreters.run_string(second, "import warnings; warnings.simplefilter('ignore'); import npuquant")
except interpreters.RunFailedError as error:
    print(error)
interpreters.destroy(second)
assert (npuquant.npu_dynamic_quant(x)[0] == y).all()
"""


@pytest.mark.skipif(importlib.util.find_spec("_xxsubinterpreters") is None, reason="this Python has other interpreters")
def test_a_second_interpreter_is_refused():
    done = python(SECOND_INTERPRETER)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match("<class 'ImportError'>: .*(one interpreter|once|subinterpreters)", done.stdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_children_have_threads_of_their_own():
    npuquant.set_num_threads(3)
    assert_large(npuquant.npu_dynamic_quant_asymmetric(LARGE))
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)
            assert_large(npuquant.npu_dynamic_quant_asymmetric(LARGE))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


# Where the signal comes before the call, nothing is computed, else all of it, even if the exception hides the result.
INTERRUPTED = """
import signal
import numpy as np
import npuquant

x = np.random.default_rng(1).normal(size=(1200, 2500)).astype("f4")
out = npuquant.npu_dynamic_quant_asymmetric(x)
complete = [one.tobytes() for one in out]
untouched = [bytes(len(one)) for one in complete]
npuquant.set_num_threads(3)

signal.signal(signal.SIGALRM, signal.default_int_handler)
interrupted, delay = 0, 0.01
for trial in range(200):
    for one in out:
        one[...] = 0
    returned = False
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        npuquant.npu_dynamic_quant_asymmetric(x, out=out)
        returned = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        delay *= 0.8
    except KeyboardInterrupt:
        interrupted += 1
        delay *= 1.1
    got = [one.tobytes() for one in out]
    assert got == complete or got == untouched and not returned
assert 10 < interrupted < 190, interrupted
print("done")
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers")
def test_interrupts():
    done = python(INTERRUPTED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


IN_A_TEST = """
import numpy as np, npuquant
from npuquant.testing import assert_equal

ONE = np.ones(1, np.float32)

def test_an_error():
    npuquant.npu_anti_quant(ONE, ONE)

def test_a_name():
    npuquant.diagnose(ONE, "nope", ONE)

def test_a_difference():
    assert_equal(np.int8([5]), "npu_quantize", ONE, ONE, None, np.int8)
"""


def test_pytest_shows_the_line_that_calls(tmp_path):
    """And none of the package."""
    (tmp_path / "test_it.py").write_text(IN_A_TEST)
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_it.py"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert re.findall(r"(?m)^(\S+\.py):\d+: ", done.stdout) == ["test_it.py"] * 3, done.stdout
