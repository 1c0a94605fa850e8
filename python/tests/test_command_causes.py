# SPDX-License-Identifier: BSD-3-Clause
"""The cause of a result, by the command: hypotheses, diagnose, --admissible, explain and hard-inputs.

What they find is the package's, whose tests are in test_diagnose.py.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import types

import kernels
import npuquant
import numpy as np
import numpy_operators as expected
import pytest
from command_inputs import FULL, assert_saved, save, write
from npuquant_cli import options
from numpy_operators import f4, rng
from test_diagnose import device_results

#: Hard inputs of each operator, with what its options change, and a mistake that shows on them.
CASES = [
    ("offset-left-out", "quantize --shape 16,40 --axis 1"),
    ("nibbles-swapped", "quantize --shape 5,4,24 --axis -1 --div-mode false --dtype int4 "
                        "--type x=bfloat16,scales=bfloat16,zero_points=bfloat16"),
    ("half-away", "quantize --shape 40,40 --dtype uint8 --without zero-points"),
    ("offset-left-out", "quantize --shape 1,2,1,2,1,2,3,4 --axis 7 --dtype int32 --type zero-points=int32"),
    ("group-late", "group-quant --shape 16,40 --type x=float16 --without offset"),
    ("no-flag", "trans-quant-param --shape 48 --round-mode 1"),
    ("halves-swapped", "trans-quant-param --shape 1,48 --dtype uint64"),
    ("scale-is-factor", "dynamic-quant --shape 16,40"),
    ("smooth-left-out", "dynamic-quant --shape 20,5,8 --scale-form inverse --dtype uint8 --without group-index"),
    ("offset-sign", "dynamic-quant-asymmetric --shape 16,40 --type x=bfloat16 --dtype quint4x2"),
    ("min-scale-ignored", "dynamic-block-quant --shape 20,5,8 --block 3 --min-scale 20"),
    ("offset-left-out", "anti-quant --shape 16,40 --type x=quint4x2,scale=bfloat16 --dtype bfloat16"),
    ("row-scale-left-out", "dequant --shape 16,40 --type weight-scale=bfloat16 --type bias=float32 --dtype bfloat16"),
    ("bias-left-out", "requant --shape 7,20"),
    ("all-scale-bits", "requant --shape 16,40 --dtype float16 --type words=int64"),
]
EACH = pytest.mark.parametrize(("mistake", "form"), CASES)
FORM = CASES[0][1].split()
DIVIDING = ("quantize", "dynamic-quant", "dynamic-block-quant")
pytestmark = pytest.mark.usefixtures("folder")


def contents(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


MADE = {}  # hard inputs by their form, which are the same each time


def make(run, form, folder="."):
    """Makes hard inputs. Returns the manifest, the words of the call, and those that name its results."""
    if form not in MADE:
        run("hard-inputs", *form.split(), "-o", "made", "-q")
        MADE[form] = contents("made")
        shutil.rmtree("made")
    os.makedirs(folder, exist_ok=True)
    for name, data in MADE[form].items():
        write(os.path.join(folder, name), data)
    manifest = json.loads(MADE[form]["manifest.json"])
    words = manifest["diagnose"].split()
    end = words.index("--expect")
    assert words[:3] == ["npuquant", "diagnose", manifest["operator"]]
    return manifest, words[2:end], words[end:]


def assert_described(array, entry):
    stored = {"bfloat16": "uint16", "quint4x2": "int32"}.get(entry["dtype"], entry["dtype"])
    assert (array.dtype, list(array.shape)) == (stored, entry["shape"])


def save_results(manifest, mistake=None, folder="."):
    """Saves what a kernel with a mistake, or without, gives on hard inputs of the current folder."""
    results = kernels.run(types.SimpleNamespace(
        operator=manifest["operator"].replace("-", "_"), arguments=manifest["arguments"],
        inputs={name: np.load(entry["file"]) for name, entry in manifest["inputs"].items()},
        types={name: entry["dtype"] for name, entry in manifest["inputs"].items()}), {mistake} - {None})
    assert sorted(results) == sorted(manifest["outputs"])
    for name, array in results.items():
        entry = manifest["outputs"][name]
        array = array.view("u8") if entry["dtype"] == "uint64" else array  # which the kernels do not have
        assert_described(array, entry)
        np.save(os.path.join(folder, entry["file"]), array)


def assert_names(text, mistake):
    """A diagnosis that names a mistake alone, with its table and the steps of an element."""
    assert max(map(len, text.splitlines())) <= 100
    count = re.match(rf"diagnosis: (?:possibly )?{mistake}: explains (\d+) of \1 differing elements and changes no other "
                     rf"{mistake}: the kernel ", re.sub(r"\s+", " ", text))[1]
    assert re.search(rf"\n  hypothesis +explained  unexplained  newly wrong\n  {mistake} +{count} +0 +0\n", text)
    assert re.search(rf"\n[a-z]+\[[0-9, ]+\], step by step:\n  step +definition +{mistake}\n", text)
    *_, ours, theirs = text.splitlines()
    assert re.match(r"  (y|scale|offset)  ", ours) and theirs.startswith("  in the dump  ")
    _, definition, hypothesis = re.split("  +", ours.strip())
    assert re.split("  +", theirs.strip())[1] == hypothesis != definition


# ---- hypotheses ----


def test_hypotheses(run):
    entries = json.loads(run("hypotheses", "--json"))
    for entry in entries:
        assert sorted(entry) == ["advice", "name", "operators", "what"]
        assert entry["operators"] and set(entry["operators"]) <= set(options.OPERATORS)
        assert re.fullmatch("[a-z0-9-]+", entry["name"])
        assert not entry["what"].endswith(".") and entry["advice"].endswith(".")
    words = [(entry["name"], entry["what"], entry["advice"]) for entry in entries]
    assert len(set(words)) == len(words)
    wraps = next(entry for entry in entries if entry["name"] == "wrap")
    assert wraps["operators"] == [name for name in options.OPERATORS if name in wraps["operators"]]  # in their order
    assert {"quantize", "group-quant", "dynamic-quant", "dynamic-quant-asymmetric"} <= {*wraps["operators"]}


@pytest.mark.parametrize("operator", [None, *options.OPERATORS])
def test_hypotheses_of_an_operator(operator, run):
    entries = [entry for entry in json.loads(run("hypotheses", "--json")) if operator in (None, *entry["operators"])]
    words = ["hypotheses", *filter(None, [operator])]
    assert len(entries) > 5 and json.loads(run(*words, "--json")) == entries
    text = run(*words)
    assert max(map(len, text.splitlines())) <= 100
    assert [" ".join(part.split()) for part in text.split("\n\n")] == [
        f"{entry['name']}: the kernel {entry['what']}. {entry['advice']} operators: {', '.join(entry['operators'])}"
        for entry in entries]


# ---- diagnose ----


@EACH
def test_a_mistake_is_named(mistake, form, run):
    manifest, call, expect = make(run, form)
    save_results(manifest, mistake)
    assert_names(run("diagnose", *call, *expect, status=1), mistake)


@pytest.mark.parametrize(("mistake", "parameters", "dtype"), [
    ("bias-left-out", {"bias": np.arange(-10, 10, dtype="i4") * 99}, "float16"),
    ("row-scale-left-out", {"pertoken_scale": np.linspace(0.1, 1, 7, dtype=f4)}, "bfloat16"),
    ("all-scale-bits", {}, "float16"),
])
def test_quant_matmul(mistake, parameters, dtype, run):
    x1, x2 = expected.random_integers((7, 30), "i1"), expected.random_integers((30, 20), "i1")
    scale = np.linspace(1, 2, 20, dtype=f4)
    y = expected.quant_matmul(x1, x2, scale, None, None, None, dtype)
    if mistake == "all-scale-bits":  # the words that the command makes have the bits that requant ignores
        y = ((x1.astype("i4") @ x2.astype("i4")).astype(f4) * scale).astype("f2")
    np.save("y.npy", y)
    words = save(positional=2, x1=x1, x2=x2, scale=scale, **parameters)
    assert_names(run("diagnose", "quant-matmul", *words, "--dtype", dtype, "--expect", "y.npy", status=1), mistake)


def test_layouts_and_threads(run):
    """Byte order, Fortran order and threads change no diagnosis."""
    x, scales = (rng.standard_normal((300, 400)) * 40).astype(f4), f4([0.3])
    y = np.maximum(expected.quantize(x, scales, None, 0, True, "int8"), -127)
    words = ["diagnose", "quantize", *save(x=x, scales=scales), "--expect", "y.npy"]
    np.save("y.npy", y)
    said = run(*words, "--threads", 1, status=1)
    assert said.startswith("diagnosis: symmetric-range: explains ")
    assert run(*words, "--threads", 3, status=1) == said
    save(x=np.asfortranarray(x.astype(">f4")), scales=scales.astype(">f4"))
    np.save("y.npy", np.asfortranarray(y))
    assert run(*words, status=1) == said


@pytest.mark.parametrize(("mode", "status"), [("diagnose", 1), ("explain", 0)])
def test_results_are_written(mode, status, run, program):
    """If stdout takes them, the text goes to stderr."""
    manifest, call, expect = make(run, CASES[0][1])
    run(*call, "-q", "-o", "right.npy")
    save_results(manifest, CASES[0][0])
    words = [mode, *call, *(expect if mode == "diagnose" else ["--at", "1,2"])]
    text = run(*words, status=status)
    assert run(*words, "-o", "written.npy", status=status) == text
    assert_saved("written", np.load("right.npy"))
    done = program(*words, "-o", "-")
    assert (done.returncode, done.stderr.decode()) == (status, text)
    assert done.stdout == pathlib.Path("right.npy").read_bytes()


@pytest.mark.parametrize(("words", "says"), [
    ("diagnose quantize x.npy --scales x.npy --expect x.npy", "quantize: scales: has 2 dimensions; expected 1"),
    ("diagnose quantize x.npy --scales ones.npy --expect x.npy --backend x", "--backend: there is no 'x'; "),
    ("diagnose quantize x.npy --scales ones.npy --expect x.npy", "x.npy: [0, 0] is 0.5 (0x3F000000), which no int8 "),
    ("diagnose quant-matmul x1.npy x2.npy --dtype int32 --expect sums.npy", "--dtype: int32 results are the sums of "),
    ("explain quant-matmul x1.npy x2.npy --dtype int32 --at 0,0", "--dtype: int32 results are the sums of products "),
    ("explain quantize x.npy --scales ones.npy --at 1",
     "--at: has 1 index; expected 2, one for each dimension of the result\n"),
    ("explain quantize x.npy --scales ones.npy --at 1,2 --at 1,2,3", "--at: has 3 indices; expected 2, one for each "),
    ("explain quantize x.npy --scales ones.npy --at 3,0", "--at: index 3 of dimension 0; expected less than 3"),
    ("explain quantize x.npy --scales ones.npy --at 0,8", "--at: index 8 of dimension 1; expected less than 8"),
    ("explain quantize empty.npy --scales ones.npy --at 0,0", "--at: index 0 of dimension 0; expected less than 0"),
    ("hard-inputs group-quant --shape 8 -o hard", "group_quant: x: has 1 dimension; expected 2"),
    ("hard-inputs quantize --shape 8,8 --axis 5 -o hard", "quantize: axis: is 5; expected -2 to 1, as div_mode is "),
    ("hard-inputs quantize --shape 8,8 --type x=int8 -o hard", "quantize: x: dtype is INT8; expected FLOAT32, FLOAT16"),
    ("hard-inputs quantize --shape 8,8 --without x -o hard", "--without: x is required"),
    ("hard-inputs quantize --shape 8,8 -o hard --seed -1", "--seed: '-1' is not a number from 0 to 92233720368547758"),
    ("hard-inputs quantize --shape 8,8 -o hard --run=", "--run: an empty name"),
])
def test_calls_that_are_refused(words, says, refused):
    save(x=np.full((3, 8), 0.5, f4), ones=f4([1]), empty=np.ones((0, 8), f4), sums=np.full((2, 2), 4, "i4"),
         x1=np.ones((2, 3), "i1"), x2=np.ones((3, 2), "i1"))
    assert refused(*words.split()).startswith(f"npuquant: {says}")


@pytest.mark.parametrize("mode", ["diagnose", "explain", "hard-inputs"])
@FULL
def test_full_stdout(mode, run, program):
    """No output has its name."""
    manifest, call, expect = make(run, CASES[0][1])
    save_results(manifest)
    os.mkdir("new")
    words = {"diagnose": [*call, *expect, "-o", "new/y.npy"], "explain": [*call, "--at", "0,0", "-o", "new/y.npy"],
             "hard-inputs": [*FORM, "-o", "new"]}
    with open("/dev/full", "wb") as full:
        done = program(mode, *words[mode], stdout=full)
    assert (done.returncode, done.stderr) == (2, b"npuquant: cannot write to stdout\n")
    assert os.listdir("new") == []


# ---- --admissible ----


def test_admissible(run):
    device, (_, x, scales, *_) = device_results(share=0.06)
    words = ["quantize", *save(x=x, scales=scales), "--expect", "y.npy"]
    run(*words[:-2], "-o", "y.npy")
    right = np.load("y.npy")
    wrong = device.copy()
    wrong[3, 5] = right[3, 5] + 7
    for y, status, says in ((right, 0, ""), (device, 0, "\ndiagnosis: within the device's division\n"),
                            (wrong, 1, "\ndiagnosis: none of the hypotheses explains this\n")):
        np.save("y.npy", y)
        for command in ([], ["diagnose"]):
            assert says in "\n" + run(*command, *words, "--admissible", status=status)
            run(*command, *words, status=int(bool(says)))
    np.save("y.npy", device)
    assert "\n  Admissible for the device's vector division: " in run(*words, status=1)


@pytest.mark.parametrize("form", [form for _, form in CASES if form.split()[0] not in DIVIDING])
def test_admissible_needs_a_division(form, run, refused):
    _, call, expect = make(run, form)
    refused("diagnose", *call, *expect, "--admissible",
            says=f"--admissible: {call[0]} has no division on the device's vector unit: every bit must be equal\n")


# ---- explain ----


@EACH
def test_explain(mistake, form, run):
    """The text has what the JSON has."""
    _, call, _ = make(run, form)
    last = [int(extent) - 1 for extent in form.split()[2].split(",")]
    places = [[0] * len(last), last]
    words = ["explain", *call]
    for place in places:
        words += ["--at", ",".join(map(str, place))]
    said = json.loads(run(*words, "--json"))
    assert [(element["result"], element["index"]) for element in said] == [("y", place) for place in places]
    text = run(*words)
    assert max(map(len, text.splitlines())) <= 100
    assert text == "\n".join(
        "".join([f"y[{', '.join(map(str, element['index']))}]\n"] + [
            f"  {step['step'] + ' ':32}{step['definition']}\n"
            for step in [*element["steps"], {"step": "y", "definition": element["definition"]}]])
        for element in said)


@pytest.mark.parametrize("shape", [(16,), (1, 2, 1, 2, 1, 2, 3, 16)])
def test_explain_counts_int4_one_by_one(shape, run):
    """Of any layout."""
    x = np.arange(np.prod(shape), dtype=f4).reshape(shape) - 8
    for stored in (x, np.asfortranarray(x.astype(">f4"))):
        text = run("explain", "quantize", *save(x=stored, scales=f4([1])), "--div-mode", "false", "--dtype", "quint4x2",
                   "--at", ",".join(str(n - 1) for n in shape))
        assert re.search(rf"\n  x +{int(x.max())} .*\n(.*\n)*  saturate +7\n", text)


# ---- hard-inputs ----


@EACH
def test_hard_inputs(mistake, form, run):
    """Right results are equal, also those of a program, and a changed element is not."""
    manifest, call, expect = make(run, form)
    os.mkdir("right")
    save_results(manifest, folder="right")
    copy = ("hard-inputs", *form.split(), "-o", ".", "--run", "cp right/*.npy .; :")
    assert run(*copy).endswith("\ndiagnosis: nothing differs\n")
    assert run("diagnose", *call, *expect, "--quiet") == ""
    assert json.loads(run("diagnose", *call, *expect, "--json"))["verdict"] == "equal"
    y = np.load("y.npy")
    y.view("u1").flat[-1] ^= 1
    np.save("y.npy", y)
    assert json.loads(run("diagnose", *call, *expect, "--json", status=1))["verdict"] != "equal"


@EACH
def test_manifest(mistake, form, run):
    manifest, call, _ = make(run, form, "hard")
    assert sorted(manifest) == [
        "arguments", "diagnose", "inputs", "mistakes", "npuquant", "operator", "outputs", "seed"]
    assert (manifest["npuquant"], manifest["operator"], manifest["seed"]) == (npuquant.__version__, form.split()[0], 1)
    for entry in manifest["inputs"].values():
        assert_described(np.load(f"hard/{entry['file']}"), entry)
    assert sorted(os.listdir("hard")) == sorted(
        ["manifest.json", *(entry["file"] for entry in manifest["inputs"].values())])
    names = [entry["name"] for entry in manifest["mistakes"]]
    assert mistake in names and len(set(names)) == len(names)
    assert set(names) <= {entry["name"] for entry in json.loads(run("hypotheses", call[0], "--json"))}
    for i, entry in enumerate(manifest["mistakes"]):
        assert sorted(entry) == ["elements", "name", "same_as"] and entry["same_as"] in (None, *names[:i])


def test_types_and_shapes(run):
    manifest, _, _ = make(run, CASES[1][1])
    assert manifest["inputs"] == {
        "x": {"file": "x.npy", "dtype": "bfloat16", "shape": [5, 4, 24]},
        "scales": {"file": "scales.npy", "dtype": "bfloat16", "shape": [24]},
        "zero_points": {"file": "zero_points.npy", "dtype": "bfloat16", "shape": [24]}}
    assert manifest["outputs"] == {"y": {"file": "y.npy", "dtype": "quint4x2", "shape": [5, 4, 3]}}
    assert manifest["arguments"] == {"axis": -1, "div_mode": False, "dtype": "quint4x2"}


def test_seed(run):
    for folder, seed in (("a", 1), ("b", 2), ("c", 9223372036854775807)):
        manifest, _, _ = make(run, f"{CASES[0][1]} --seed {seed}", folder)
        assert manifest["seed"] == seed
    a, b, c = map(contents, "abc")
    assert sorted(a) == sorted(b) and len({a["x.npy"], b["x.npy"], c["x.npy"]}) == 3
    run("hard-inputs", *FORM, "-o", "b")  # over existing files
    assert contents("b") == a


def test_what_is_said_of_the_mistakes(run):
    assert re.fullmatch(r"hard: (\d+) of \1 mistakes that are possible in this call change its results\n",
                        run("hard-inputs", *FORM, "-o", "hard"))
    text = run("hard-inputs", "trans-quant-param", "--shape", "1", "-o", "one")
    mistakes = json.loads(pathlib.Path("one/manifest.json").read_text())["mistakes"]
    first, *lines = text.splitlines()
    assert first == (f"one: {sum(entry['elements'] > 0 for entry in mistakes)} of {len(mistakes)} mistakes that are "
                     "possible in this call change its results")
    assert len(lines) > 4 and lines == [
        f"  {entry['name']} " + (f"gives the same results as {entry['same_as']}" if entry["elements"] else
                                 "changes nothing here")
        for entry in mistakes if entry["same_as"] or not entry["elements"]]


# ---- hard-inputs --run ----


@pytest.mark.parametrize("i", [0, 9])
def test_a_faulty_program(i, run):
    mistake, form = CASES[i]
    manifest, _, _ = make(run, form)
    os.mkdir("wrong")
    save_results(manifest, mistake, "wrong")
    words = ("hard-inputs", *form.split(), "-o", ".", "--run", "cp wrong/*.npy .; :")
    summary, diagnosis = run(*words, status=1).split("diagnosis: ")
    assert summary.splitlines()[0].endswith(" mistakes that are possible in this call change its results")
    assert run(*words, "-q", status=1) == f"diagnosis: {diagnosis}"
    assert_names(f"diagnosis: {diagnosis}", mistake)
    said = json.loads(run(*words, "--json", status=1))
    assert said["findings"][0]["hypotheses"][0]["name"] == mistake


def test_a_program_has_the_manifest_as_its_first_argument(run, program):
    """Also in the middle of the shell's words. Without scales, only y is compared. stdout has only the diagnosis."""
    form = "dynamic-quant --shape 16,40"
    manifest, _, _ = make(run, form)
    save_results(manifest)
    done = program("hard-inputs", *form.split(), "-o", "an 'a' $folder", "--json", "--run",
                   'cp y.npy "${1%/*}"; echo ready; :')
    assert (done.returncode, done.stderr) == (0, b"ready\n")
    assert [(result["name"], result["differing"]) for result in json.loads(done.stdout)["results"]] == [("y", 0)]


@pytest.mark.parametrize(("command", "says"), [
    ("exit 3;", "--run: the command failed with status 3\n"),
    ("kill -9 $$;", "--run: the command failed with status 137\n"),
    ("set -e; false;", "--run: the command failed with status 1\n"),
    ("./no-such-program; exit;", "--run: the command failed with status 127\n"),
    ("cp zeros.npy hard/y.npy; exit 4;", "--run: the command failed with status 4\n"),
    ("", "--run: the command has left no hard/y.npy\n"),
    ("cp short.npy hard/y.npy;", "hard/y.npy: holds i1 [16, 39]; expected i1 [16, 40] to compare with y, which is "
                                 "int8\n"),
    ("cp wide.npy hard/y.npy;", "hard/y.npy: [0, 0] is 300, which no int8 is; if the file has int32, say --dtype "
                                "int32\n"),
    ("cp text.npy hard/y.npy;", "hard/y.npy: not a .npy file"),
])
def test_a_program_that_fails(command, says, run, refused):
    run("hard-inputs", *FORM, "-o", "hard", "-q")
    save(zeros=np.zeros((16, 40), "i1"), short=np.zeros((16, 39), "i1"), wide=np.full((16, 40), 300, "i4"))
    pathlib.Path("text.npy").write_text("no array")
    np.save("hard/y.npy", np.zeros((16, 40), "i1"))  # of an earlier run
    refused("hard-inputs", *FORM, "-o", "hard", "-q", "--run", f"{command} :", says=f": {says}")


def test_a_signal_while_a_program_runs(run, program):
    """The inputs are complete, and there is no other file."""
    make(run, CASES[0][1], "right")
    done = program("hard-inputs", *FORM, "-o", "hard", "--run", "kill -TERM $PPID; :")
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, b"")
    assert contents("hard") == contents("right")


# ---- what cannot be written ----


@pytest.mark.parametrize(("out", "why"), [("file", "File exists"), ("no/folder", "No such file or directory"),
                                          ("x" * 300, "File name too long")])
def test_folders_that_cannot_be_made(out, why, refused):
    pathlib.Path("file").touch()
    refused("hard-inputs", *FORM, "-o", out, says=f"npuquant: {out}: cannot be made: {why}\n")


@pytest.mark.parametrize(("name", "words"), [("y.npy", ["--run", "true"]), ("manifest.json", [])])
def test_a_folder_in_place_of_a_file(name, words, refused):
    """All files of hard inputs are new, or none."""
    os.makedirs(f"hard/{name}")
    pathlib.Path("hard/x.npy").write_text("before")
    refused("hard-inputs", *FORM, "-o", "hard", *words, says=f"npuquant: hard/{name}: cannot be written: ")
    assert sorted(os.listdir("hard")) == sorted([name, "x.npy"])
    assert pathlib.Path("hard/x.npy").read_text() == "before"


def test_manifest_of_microscaling(run):
    run("hard-inputs", "dynamic-mx-quant", "--shape", "16,64", "-o", "hard")
    outputs = json.loads(pathlib.Path("hard/manifest.json").read_text())["outputs"]
    assert outputs == {"y": {"file": "y.npy", "dtype": "float4_e2m1fn_x2", "shape": [16, 32]},
                       "scale": {"file": "scale.npy", "dtype": "float8_e8m0fnu", "shape": [16, 1, 2]}}


def test_forms_of_microscales(run, refused):
    """One scale for each group is taken, also by the command. What else others have for scales is named."""
    x = np.random.default_rng(7).normal(size=(8, 96)).astype(f4)
    y, pairs = npuquant.dynamic_mx_quant(x, dst_type="float8_e4m3fn")
    alone = npuquant.mx.quantize(x, "mxfp8")[1]
    value = npuquant.mx.decode(alone, "float8_e8m0fnu")
    words = ["dynamic-mx-quant", *save(x=x), "--dtype", "float8_e4m3fn", "--expect-scale", "scales.npy"]
    for scales in alone, alone.view("i1"), pairs.reshape(8, 4):
        np.save("scales.npy", scales)
        taken = f"scales.npy: float8_e8m0fnu {list(scales.shape)}, a scale for each group, taken as pairs, [8, 2, 2]\n"
        assert run("diagnose", *words) == f"{taken}diagnosis: nothing differs\n"
        assert run(*words).startswith(f"{taken}scale: all 32 elements equal\n")
        assert npuquant.diagnose((y, scales.view("u1")), "dynamic_mx_quant", x, dst_type="float8_e4m3fn").verdict == "equal"
    byte = "; a scale is a byte that stands for 2^(byte - 127), and these are "
    least, most = alone.min(), alone.max()
    two_levels = ("; NVFP4 has groups of 16 with scales of float8_e4m3fn and another of the tensor: two levels of scales are "
                  "no MX")
    for scales, hint in (
        (value, f"{byte}the powers of two for {least} to {most}: npuquant.mx.encode() makes the bytes"),
        (value.astype(np.float64), f"{byte}the powers of two for {least} to {most}: npuquant.mx.encode() makes the bytes"),
        (value * 3, f"{byte}no powers of two, but {value.min() * 3:g} to {value.max() * 3:g}"),
        (alone.astype("i4") - 127, f"{byte}no powers of two, but {int(least) - 127} to {int(most) - 127}"),
        (npuquant.mx.quantize(x, "mxfp8")[1].repeat(2, axis=1), two_levels), (np.zeros((8, 3, 2), f4), two_levels),
        (np.zeros((128, 4), "u1"), "; as many are in tiles of 128 rows and 4 groups: bring them into the order of rows"),
        (np.zeros((8, 5), "u1"), ""), (np.zeros((8, 3), "u2"), "")):
        with pytest.raises((TypeError, ValueError), match=rf"\Aactual\[1\]: .*{re.escape(hint)}\Z") as caught:
            npuquant.diagnose((y, scales), "dynamic_mx_quant", x, dst_type="float8_e4m3fn")
        assert hint or str(caught.value).endswith(("expected (8, 2, 2), or (8, 3) with a scale for each group", "as uint8)"))
        if scales.dtype not in (np.float64, np.uint16):
            np.save("scales.npy", scales)
            refused(*words, says=f"to compare with scale, which is float8_e8m0fnu{hint}")
    assert npuquant.diagnose((y, None), "dynamic_mx_quant", x, dst_type="float8_e4m3fn").verdict == "equal"
