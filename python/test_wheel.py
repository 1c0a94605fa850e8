# SPDX-License-Identifier: BSD-3-Clause
"""The wheel that `pip install ./python` builds works alone: without a network, the source, a library or a command."""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[1]
MISSING = [module for module in ("pip", "mesonpy") if importlib.util.find_spec(module) is None]

USE = """
import numpy as np, npuquant
from npuquant import _library

x = np.array([[0.5, -1.25, 3, 0, 2.75, -0.375, 1.5, -2]], np.float16)
y, scale, offset = npuquant.npu_dynamic_quant_asymmetric(x)
assert y.tolist() == [[0, -90, 127, -26, 114, -45, 50, -128]] and offset == -26
assert npuquant.npu_quantize(x, np.ones(1, "f4"), None, "int8").tolist() == [[0, -1, 3, 0, 3, 0, 2, -2]]
assert npuquant.npu_group_quant(x, x, np.array([1])).tolist() == [[0, 2, 9, 0, 8, 0, 2, 4]]
assert npuquant.npu_trans_quant_param(np.array([1.421875], "f4"), np.zeros(1, "f4")) == 70369813069824
y, scale = npuquant.npu_dynamic_quant(x)
assert npuquant.npu_quant_matmul(y, y.T, scale, pertoken_scale=scale, output_dtype="float32").round() == [[25]]
assert npuquant.npu_anti_quant(y, scale).dtype == np.float16
assert npuquant.version() == npuquant.__version__
away = np.array([[1, -1, 3, 0, 3, 0, 2, -2]], "i1")
found = npuquant.diagnose(away, "npu_quantize", x, np.ones(1, "f4"), None, "int8")
assert found.first_place[0].name == "half-away", found
print(_library.library._name)
"""

SAVE = """
import numpy as np, npuquant

x = np.arange(8, dtype="f4").reshape(1, 8)
np.save("x.npy", x)
np.save("y.npy", npuquant.npu_dynamic_quant(x)[0] + np.eye(1, 8, dtype="i1"))
"""

SCRIPT = """
import torch, torch_npu

x = torch.tensor([[0.5, -1.25, 3, 2.75]]).npu()
print(torch_npu.npu_quantize(x, torch.ones(1), None, torch.qint8, -1).tolist())
"""


def pip(*arguments):
    done = subprocess.run([sys.executable, "-m", "pip", *arguments, "--no-index", "--no-deps", "--no-cache-dir",
                           "--disable-pip-version-check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=500)
    assert done.returncode == 0, done.stdout


def test_cross_build(tmp_path):
    """A cross build refuses to make a wheel, in the words of docs/python.md."""
    (tmp_path / "cross.ini").write_text("""
[binaries]
c = 'cc'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
""")
    done = subprocess.run(["meson", "setup", "--cross-file", tmp_path / "cross.ini", "-Dwheel=true", tmp_path / "build",
                           SOURCE], stdout=subprocess.PIPE, text=True, timeout=500)
    refusal = re.search(r"ERROR: Problem encountered: (The Python .*)", done.stdout)
    assert refusal and done.returncode == 1, done.stdout
    assert f'"{refusal[1]}"' in " ".join((SOURCE / "docs" / "python.md").read_text().split())


@pytest.mark.skipif(bool(MISSING), reason=f"no {' and no '.join(MISSING)}")
def test_wheel(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns(".git", "build*", "__pycache__"))
    pip("wheel", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(source / "python"))
    shutil.rmtree(source)
    (wheel,) = tmp_path.glob("npuquant-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [pathlib.PurePosixPath(name) for name in archive.namelist() if ".dist-info/" not in name]
    compiled = {name for name in names if name.name.startswith(("_native.c", "libnpuquant."))}
    assert len(compiled) == 2
    made = {"npuquant_facts/_rows.py"}
    folder = SOURCE / "python"
    sources = {str(path.relative_to(folder)) for package in ("npuquant", "npuquant_cli", "npuquant_facts")
               for path in (folder / package).rglob("*") if path.name.endswith((".py", ".pyi", "py.typed"))}
    assert {str(name) for name in set(names) - compiled} == {"npuquant_pytest.py", *made, *sources}

    pip("install", "--quiet", "--target", str(target), str(wheel))
    environment = {**os.environ, "PYTHONPATH": str(target)}
    environment.pop("NPUQUANT_LIBRARY", None)

    def python(*arguments):
        return subprocess.run([sys.executable, *arguments], env=environment, cwd=tmp_path, capture_output=True,
                              text=True, timeout=60)

    done = python("-c", USE)
    assert done.returncode == 0, done.stderr
    assert pathlib.Path(done.stdout.strip()).parent == target / "npuquant"

    (tmp_path / "save.py").write_text(SAVE)
    assert python("save.py").returncode == 0
    script = str(target / "bin" / "npuquant")
    assert os.access(script, os.X_OK)
    for command in (["-m", "npuquant"], [script]):
        done = python(*command, "-V")
        assert (done.returncode, done.stdout) == (0, f"npuquant {wheel.name.split('-')[1]}\n"), done.stderr
        done = python(*command, "dynamic-quant", "x.npy", "--expect", "y.npy")
        assert (done.returncode, done.stderr) == (1, "") and "[0, 0]: npuquant 0, file 1" in done.stdout, done.stdout
        done = python(*command, "nonsense")
        assert (done.returncode, done.stderr) == (2, "npuquant: there is no command nonsense; see npuquant --help\n")

    # The package's entry point: in every session of pytest the option, and no more.
    done = python("-m", "pytest", "--help")
    assert "--npu=VALUES" in done.stdout, done.stdout + done.stderr

    (tmp_path / "script.py").write_text(SCRIPT)
    done = python("-m", "npuquant.torch_npu", "script.py")
    if importlib.util.find_spec("torch"):
        assert (done.returncode, done.stdout) == (0, "[[0, -1, 3, 3]]\n"), done.stderr
    else:
        assert done.returncode == 1 and "PyTorch cannot be imported" in done.stderr.splitlines()[-1]
