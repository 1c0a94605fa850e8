# SPDX-License-Identifier: BSD-3-Clause
"""The command as a program: pipelines, stdout, terminals, processors, full disks and files that shrink."""
import contextlib
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import sys

import npuquant
import npuquant_cli.run
import numpy as np
import numpy_operators as expected
import pytest
from command_inputs import FULL, assert_saved, read, save, save_example, saved, write
from npuquant_cli import options
from numpy_operators import f4, random_floats, random_integers

DYNAMIC = ("dynamic-quant-asymmetric", "x.npy", "-o", "y.npy", "--scale-output", "s.npy")
pytestmark = pytest.mark.usefixtures("folder")


# ---- streams ----


def test_a_layer_in_pipes():
    """The scales of the activations bypass the product."""
    x, weight, scale = random_floats((6, 8), "f4"), random_integers((8, 5), "i1"), random_floats(5, "f4", special=0)
    save(x=x, w=weight, scale=scale)
    script = ("run() { \"$0\" -m npuquant_cli \"$@\" -q; }; set -e\n"
              "run dynamic-quant x.npy -o q.npy --scale-output rows.npy\n"
              "run quant-matmul - w.npy --scale scale.npy --pertoken-scale rows.npy --dtype bfloat16 -o y.npy <q.npy\n"
              "run dynamic-quant x.npy -o - | run quant-matmul - w.npy --dtype int32 -o - |"
              " run dequant - --weight-scale scale.npy --activation-scale rows.npy --dtype bfloat16 --expect y.npy")
    done = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    q, rows = expected.dynamic_quant(x, None, None, False, "product", "int8")
    assert_saved("rows", rows)
    assert_saved("y", expected.quant_matmul(q, weight, scale, None, rows, None, "bfloat16"))


def test_stdout_has_the_result_alone(program):
    x = random_floats((6, 8), "f4", special=0)
    y, scale = expected.dynamic_quant(x, None, None, False, "product", "int8")
    save(x=x)
    words = ("dynamic-quant", "x.npy", "--scale-output", "-", "-o", "y.npy", "--expect", "-")
    done = program(*words, input=saved(y ^ 1))
    assert (done.returncode, done.stdout) == (1, saved(scale))
    assert re.match(rb"y: 48 of 48 elements differ (.|\n)*\ndynamic-quant: x float32 \[6, 8\], y int8, ", done.stderr)
    assert_saved("y", y)


@FULL
@pytest.mark.parametrize("words, status", [((), 2), (("--expect", "e.npy", "-q"), 2), (("-q",), 0)])
def test_full_stdout(words, status, program):
    """No output replaces a file before all text is printed: the summary, or the differences."""
    save(x=np.ones((2, 3), f4), e=np.full((2, 3), 99, "i1"))
    write("y.npy", b"before")
    with open("/dev/full", "wb") as full:
        done = program(*DYNAMIC, *words, stdout=full)
    assert (done.returncode, done.stderr) == (status, b"npuquant: cannot write to stdout\n" * (status == 2))
    assert (read("y.npy") == b"before", os.path.exists("s.npy")) == (status == 2, status == 0)


# ---- what surrounds the command ----

#: What a file's name may begin with: a byte that is not UTF-8, another letter, a line feed, and escapes.
NAME = os.fsdecode(b"\xff\xc3\xa9\n\x1b[2J\xc2\x9b2J")
# Of the operators, which share all that is tried here, some; test_command_options.py runs the examples of all.
LINES = [*(options.example_of("", name) for name in list(options.OPERATORS)[::4]),
         *(options.example_of(mode, "dynamic-quant") for mode in options.MODES),
         *(command.example for command in options.OTHERS.values()), "help"]


@pytest.mark.parametrize("script, status, says", [
    ('PYTHONIOENCODING=ascii "$@"', None, ""),
    ('PYTHONIOENCODING=utf-8:strict "$@" <&- 2>&-', None, ""),
    ('"$@" >&-', 2, "cannot write to stdout"),
    pytest.param('"$@" >/dev/full', 2, "cannot write to stdout", marks=FULL),
    ('PYTHONIOENCODING=ascii "$@" "--none$0"', 2, " --none?\\xe9??[2J?2J"),
    ('"$@" --none 2>&-', 2, ""),
    pytest.param('"$@" --none 2>/dev/full', 2, "", marks=FULL),
    ('NPUQUANT_LIBRARY=numpy.py "$@"', 2, "the Python package does not load: npuquant: no usable library; install "),
    ('echo import none >numpy.py; "$@"', 2, "the Python package does not load: No module named 'none'\n"),
    ('echo raise MemoryError >numpy.py; "$@"', 2, "out of memory\n"),
    ('echo 1/0 >numpy.py; "$@"', 2, "internal error: ZeroDivisionError: division by zero (numpy.py, line 1)\n"),
])
@pytest.mark.parametrize("line", LINES, ids=lambda line: "-".join(line.split()[:2]))
def test_status_and_streams(line, script, status, says, tmp_path_factory):
    """1 means that something differs, and nothing else. Each error is one line, and changes no file."""
    save_example(line, NAME)
    before = {path.name: path.read_bytes() for path in pathlib.Path().iterdir()}
    words = [NAME + word if word.endswith(".npy") or word == "hard" else word for word in line.split()]
    done = subprocess.run(["sh", "-c", script, NAME, sys.executable, "-m", "npuquant_cli", *words], check=False,
                          capture_output=True, timeout=60, env={
                              **os.environ, "PYTHONDONTWRITEBYTECODE": "",  # which would take most of the time
                              "PYTHONPYCACHEPREFIX": str(tmp_path_factory.getbasetemp() / "cache")})
    if "numpy.py" in script and line == "help":
        status, says = 0, ""  # it needs no NumPy
    usual = 1 if line.split()[0] in ("diagnose", "compare") else 0
    assert done.returncode == (usual if status is None else status), done
    assert re.fullmatch("npuquant: .*\n" if says else "", done.stderr.decode()) and says.encode() in done.stderr
    assert all(text.isprintable() for text in (done.stdout + done.stderr).decode().split("\n"))
    if status == 2:
        after = {path.name: path.read_bytes() for path in pathlib.Path().iterdir()}
        after.pop("numpy.py", None)
        assert (done.stdout, after) == (b"", before)


@FULL
@pytest.mark.parametrize("end", ["2>&-", "2>/dev/full"])
def test_stderr_that_does_not_take_the_text(end):
    """stdout has the array or nothing."""
    save(x=np.ones((2, 3), f4), e=np.full((2, 3), 99, "i1"))
    for words, status in ((("-o", "-"), 2), (("-o", "-", "--expect", "e.npy", "-q"), 2), (("-o", "-", "-q"), 0)):
        done = subprocess.run(["sh", "-c", f'"$@" {end}', "sh", sys.executable, "-m", "npuquant_cli", "dynamic-quant",
                               "x.npy", *words], check=False, capture_output=True, timeout=60)
        assert (done.returncode, done.stdout) == (status, b"" if status else saved(np.full((2, 3), 127, "i1")))


LAUNCHER = pathlib.Path(npuquant_cli.__file__).parents[2] / "npuquant"


@pytest.mark.skipif(not LAUNCHER.exists() or b"--block-signal" not in LAUNCHER.read_bytes(),
                    reason="env cannot block a signal (GNU coreutils 8.31 can), or the package is not in a build")
def test_interrupt_while_python_starts():
    write("sitecustomize.py", b"import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    done = subprocess.run([LAUNCHER, "info"], capture_output=True, check=False, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.getcwd()})
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.skipif(not LAUNCHER.exists(), reason="the package is not in a build")
def test_launcher_without_package():
    write("npuquant", LAUNCHER.read_bytes().replace(os.fsencode(LAUNCHER.parent), b"none"))
    says = b"npuquant: the Python package does not load: No module named 'npuquant_cli'\n"
    for end, error in (("", says), ("2>&-", b"")):
        done = subprocess.run(["sh", "-c", f'"$0" -IS npuquant {end}', sys.executable], capture_output=True,
                              check=False, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (2, b"", error)


@pytest.mark.skipif(not hasattr(sys, "orig_argv"), reason="Python 3.10 tells a package how it is run")
@pytest.mark.parametrize("script, says", [
    (b"import none", b"the Python package does not load: No module named 'none'"),
    (b"open('none')", b"none: No such file or directory"),
])
def test_package_as_a_program(script, says):
    """Python imports the package before the command."""
    write("numpy.py", script)
    done = subprocess.run([sys.executable, "-m", "npuquant", "help", "quantize"], capture_output=True, check=False,
                          timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"npuquant: %b\n" % says)


def test_out_of_memory(program):
    """Of a file that is neither mapped nor read."""
    with open("x.bin", "wb") as file:
        file.truncate(1 << 30)
    done = program("dynamic-quant", "x.bin:int8:1,1073741824", env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28)))
    assert (done.returncode, done.stderr) == (2, b"npuquant: x.bin:int8:1,1073741824: out of memory\n")


# ---- files ----


def mounted(script, *words):
    """Runs a shell script in a small file system, on the folder "disk"."""
    os.makedirs("disk", exist_ok=True)
    mount = "mount -t tmpfs -o size=24k none disk 2>&1"
    for namespace in (["unshare", "-m"], ["unshare", "-rm"]):
        with contextlib.suppress(FileNotFoundError):
            if subprocess.run([*namespace, "sh", "-c", mount], capture_output=True, check=False).returncode == 0:
                command = [sys.executable, "-m", "npuquant_cli", *words]
                return subprocess.run([*namespace, "sh", "-c", f"{mount} && cd disk && {script}", "sh", *command],
                                      capture_output=True, text=True, check=False, timeout=60)
    return pytest.skip("a small disk can be mounted neither as root nor in a namespace of one's own")


@pytest.mark.parametrize("shape, refused", [((100, 300), "y.npy"), ((9000, 1), "s.npy")])
def test_full_disk(shape, refused):
    save(x=np.ones(shape, f4))
    done = mounted('printf old >y.npy && { "$@"; echo $?; ls -A; cat y.npy; }', DYNAMIC[0], "../x.npy", *DYNAMIC[2:])
    assert (done.stdout, done.stderr) == (
        "2\ny.npy\nold", f"npuquant: {refused}: cannot be written: No space left on device\n")


def test_read_only_file_system():
    save(x=np.ones((2, 3), f4))
    done = mounted('printf old >y.npy; mount -o remount,bind,ro . || exit 77; "$@"; echo $?; ls -A; cat y.npy',
                   DYNAMIC[0], "../x.npy", *DYNAMIC[2:])
    if done.returncode == 77:
        pytest.skip("a mount cannot be made read-only")
    assert (done.stdout, done.stderr) == (
        "2\ny.npy\nold", "npuquant: y.npy: cannot be written: Read-only file system\n")


@pytest.mark.parametrize("size, status, says", [
    (0, -signal.SIGBUS, b""), (10**6, 2, b"npuquant: x.npy: was cut short while it was in use\n"), (10**7, 0, b""),
])
def test_inputs_that_change(size, status, says):
    """The command has mapped x, and waits for the scales. Missing pages end it by a signal; a part of the last page
    reads as zeros. Bytes after the data may change."""
    x = random_floats(250_000, "f4")  # 1,000,000 bytes and the header
    save(x=x)
    write("y.npy", b"before")
    os.mkfifo("scales.npy")
    words = ("quantize", "x.npy", "--scales", "scales.npy", "-q", "-o", "y.npy")
    with subprocess.Popen([sys.executable, "-m", "npuquant_cli", *words], stderr=subprocess.PIPE,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))) as process:
        with open("scales.npy", "wb") as fifo:  # opens when the command does
            os.truncate("x.npy", size)
            fifo.write(saved(np.ones(1, f4)))
        error = process.communicate(timeout=60)[1]
    assert (process.returncode, error) == (status, says)
    if status:
        assert (read("y.npy"), sorted(os.listdir())) == (b"before", ["scales.npy", "x.npy", "y.npy"])
    else:
        assert_saved("y", expected.quantize(x, np.ones(1, f4), None, 0, True, "int8"))


# ---- the machine ----


def test_info(run):
    text = run("info")
    assert text.startswith(f"npuquant {npuquant.__version__}, library {npuquant.version()}\nbackends: ref ")
    assert text.count("(active)") == 1 and f"{npuquant.backend()} (active)" in text
    for name in ("tuning", "CPU features", "processors", "system", "compiler"):
        assert f"\n{name}: " in text


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a program cannot be kept to one processor")
def test_processors(run):
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, list(before)[:1])
    try:
        assert "\nprocessors: 1\n" in run("info")
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize("name", ["ref", "REF", "neon" if "neon" not in npuquant.available_backends() else "avx512"])
def test_backend_of_the_environment(name, program):
    done = program("info", text=True, env={**os.environ, "NPUQ_BACKEND": name})
    assert done.returncode == 0 and (f"{name} (active)" in done.stdout) == (name == "ref")
    assert re.fullmatch(rf"(npuquant: NPUQ_BACKEND={name} .*; using \w+\n)?", done.stderr)
    assert (done.stderr == "") == (name == "ref")


@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_progress(quiet, run, monkeypatch):
    """On a terminal, for work on threads that takes long; in the end the line is empty."""
    monkeypatch.setattr(npuquant_cli.run, "QUIET_SECONDS", 0.01)
    try:
        terminal, end = pty.openpty()
    except OSError:
        pytest.skip("there are no pseudo-terminals (devpts is not mounted)")
    with open(end, "w") as stream, monkeypatch.context() as context:
        context.setattr(sys, "stderr", stream)
        run("dynamic-quant-asymmetric", *save(x=np.ones((1000, 1000), f4)), "--backend", "ref", "--threads", 2,
            "--repeat", 20, *quiet)
    seen = b""
    with contextlib.suppress(OSError):  # Linux: the other end is closed
        while chunk := os.read(terminal, 4096):
            seen += chunk
    os.close(terminal)
    assert re.fullmatch(rb"" if quiet else rb"(\rdynamic-quant-asymmetric: +\d+ %)+\r\x1b\[K", seen)
