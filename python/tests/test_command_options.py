# SPDX-License-Identifier: BSD-3-Clause
"""The command line of npuquant: what it takes, what it refuses in which words, and its help."""
import inspect
import os
import re
import shlex
import signal
import subprocess
import sys

import npuquant
import npuquant_cli
import pytest
from command_inputs import save_example
from npuquant_cli import options
from npuquant_cli.errors import CommandError
from npuquant_cli.run import function_of

TYPES_OF_QUANTIZE = "int8|uint8|int32|quint4x2|float8_e4m3fn|float8_e5m2|hifloat8|int4"
QUANTIZE = "quantize x.npy --scales s.npy"
MATMUL = "quant-matmul x1 x2"
REQUANT = "requant sums --words w"
HARD = "hard-inputs quantize --shape 8,8 -o hard"
#: Each mode and operator that go together.
PAIRS = [(mode, name) for mode in ("", *options.MODES) for name in options.OPERATORS if options.takes(mode, name)]


# ---- what is taken ----


@pytest.mark.parametrize("words, expected", [
    (QUANTIZE, {
        "command": "quantize", "mode": "", "inputs": {"x": "x.npy", "scales": "s.npy"}, "outputs": {}, "expect": {},
        "bf16": set(), "type": {}, "without": set(), "at": [], "shape": None, "axis": None, "div_mode": True,
        "round_mode": None, "quant_mode": None, "scale_form": None, "block": None, "min_scale": None, "dst_type_max": None,
        "row_block": None, "dtype": "int8",
        "max_diff": 0, "max_ulp": 0, "max_diffs": 10, "admissible": False, "backend": None, "threads": 0,
        "repeat": 1, "quiet": False, "json": None, "seed": None, "run": None,
    }),
    ("quantize --scales=s -q x --zero-points z",
     {"inputs": {"x": "x", "scales": "s", "zero-points": "z"}, "quiet": True}),
    ("quantize -:x --scales 'a b=c'", {"inputs": {"x": "-:x", "scales": "a b=c"}}),
    ("quantize --scales s -- -q", {"inputs": {"x": "-q", "scales": "s"}, "quiet": False}),
    ("quantize - --scales --axis", {"inputs": {"x": "-", "scales": "--axis"}}),
    ("quant-matmul --scale s -- -a -b", {"inputs": {"x1": "-a", "x2": "-b", "scale": "s"}}),
    (f"{QUANTIZE} --axis -2", {"axis": -2}),
    (f"{QUANTIZE} --axis ' +1' --axis=-2147483648", {"axis": -(2**31)}),
    (f"{QUANTIZE} -o -", {"outputs": {"y": "-"}}),
    (f"{QUANTIZE} -oy.npy", {"outputs": {"y": "y.npy"}}),
    (f"{QUANTIZE} -o=y.npy", {"outputs": {"y": "=y.npy"}}),
    (f"{QUANTIZE} --output=y=z.npy", {"outputs": {"y": "y=z.npy"}}),
    (f"{QUANTIZE} --output a -o b", {"outputs": {"y": "b"}}),
    (f"{QUANTIZE} --expect - --max-diff 1 --max-diffs=0", {"expect": {"y": "-"}, "max_diff": 1, "max_diffs": 0}),
    (f"{QUANTIZE} --expect e --admissible", {"admissible": True}),
    (f"{QUANTIZE} --dtype int4 --div-mode false", {"dtype": "quint4x2", "div_mode": False}),
    (f"{QUANTIZE} --dtype=uint8 --dtype=int32", {"dtype": "int32"}),
    (f"{QUANTIZE} --bf16 x --bf16=scales,x", {"bf16": {"x", "scales"}}),
    (f"{QUANTIZE} --zero-points z --bf16 zero_points", {"bf16": {"zero-points"}}),
    ("group-quant x --scale s --group-index g --offset o",
     {"inputs": {"x": "x", "scale": "s", "group-index": "g", "offset": "o"}}),
    ("trans-quant-param scale.npy --round-mode 1",
     {"inputs": {"scale": "scale.npy"}, "round_mode": 1, "dtype": "int64", "div_mode": None, "max_diff": None}),
    ("dynamic-quant-asymmetric x -o y --scale-output s --offset-output o",
     {"outputs": {"y": "y", "scale": "s", "offset": "o"}, "quant_mode": "pertoken", "scale_form": None}),
    ("dynamic-quant-asymmetric x --expect ey --expect-scale es --expect-offset eo --max-ulp 2",
     {"expect": {"y": "ey", "scale": "es", "offset": "eo"}, "max_ulp": 2}),
    ("dynamic-quant x --scale-form inverse --quant-mode pertensor",
     {"scale_form": "inverse", "quant_mode": "pertensor"}),
    ("dynamic-block-quant x --min-scale -1", {"min_scale": -1.0, "block": 128}),
    ("dynamic-block-quant x --min-scale 1e-3 --block=9223372036854775807", {"min_scale": 1e-3, "block": 2**63 - 1}),
    ("dynamic-block-quant-float8 x", {"row_block": 1, "block": 128, "min_scale": 0.0, "dst_type_max": 0.0}),
    ("dynamic-block-quant-float8 x --row-block 64 --dst-type-max 15", {"row_block": 64, "dst_type_max": 15.0}),
    (f"{REQUANT} --dtype float16 --expect e --max-ulp 3", {"dtype": "float16", "max_ulp": 3}),
    (f"{MATMUL} --dtype int32 --bias b", {"inputs": {"x1": "x1", "x2": "x2", "bias": "b"}}),
    ("compare a.npy b.npy --bf16 a,b", {
        "command": "compare", "mode": "", "inputs": {"a": "a.npy", "b": "b.npy"}, "bf16": {"a", "b"}, "max_diff": 0,
        "max_ulp": 0, "max_diffs": 10,
    }),
    (f"diagnose {QUANTIZE} --expect y --json",
     {"command": "quantize", "mode": "diagnose", "expect": {"y": "y"}, "json": True, "max_diff": None}),
    ("diagnose dynamic-quant x --expect-scale s", {"expect": {"scale": "s"}, "json": False}),
    (f"explain {QUANTIZE} --at 1,0 --at=2,3", {"mode": "explain", "at": [(1, 0), (2, 3)], "admissible": None}),
    (f"explain {QUANTIZE} {'--at 0,0 ' * 64}", {"at": [(0, 0)] * 64}),
    (HARD, {
        "mode": "hard-inputs", "shape": (8, 8), "output": "hard", "outputs": {}, "inputs": {}, "seed": 1, "run": None,
        "threads": None,
    }),
    (f"{HARD} --shape 4,8 --type x=bfloat16 --type=scales=float32,x=int4 --without zero_points --run 'sh run.sh' "
     "--json", {
        "shape": (4, 8), "type": {"x": "quint4x2", "scales": "float32"}, "without": {"zero-points"},
        "run": "sh run.sh", "json": True,
    }),
    ("hypotheses", {"command": "hypotheses", "mode": "", "operator": None, "json": False}),
    ("hypotheses --json dequant", {"operator": "dequant", "json": True}),
    ("info", {"command": "info", "mode": ""}),
])
def test_taken(words, expected):
    arguments = options.parse(shlex.split(words))
    assert {name: getattr(arguments, name) for name in expected} == expected


def test_inputs_are_in_the_order_of_the_table():
    words = ("quant-matmul", "--bias", "b", "--offset", "o", "--scale", "s", "x1", "x2")
    assert list(options.parse(words).inputs) == ["x1", "x2", "scale", "offset", "bias"]


# ---- what is refused ----


@pytest.mark.parametrize("words, says", [
    ("", "no command given; see npuquant --help"),
    ("quantise", "there is no command quantise; did you mean quantize?"),
    ("npu_group_quant", "there is no command npu_group_quant; did you mean group-quant?"),
    ("npu_quantize", "there is no command npu_quantize; did you mean quantize?"),
    ("dynamic", "there is no command dynamic; did you mean dynamic-quant?"),
    ("inof", "there is no command inof; did you mean info?"),
    ("halp", "there is no command halp; did you mean help?"),
    ("diagnoze", "there is no command diagnoze; did you mean diagnose?"),
    ("'x\n\x1b[1m'", "there is no command x??[1m; see npuquant --help"),
    ("--nonsense", "unknown option --nonsense before the command; see npuquant --help"),
    ("--HELP", "unknown option --HELP; did you mean --help?"),
    ("-v", "unknown option -v before the command; see npuquant --help"),
    ("q" * 5000, f"there is no command {'q' * 5000}; see npuquant --help"),
    ("''", "there is no command ; see npuquant --help"),
    ("help info quantize", "help: unexpected argument quantize"),
    ("help quantise", "there is no command quantise; did you mean quantize?"),
    ("help explain quantize x", "help: unexpected argument x"),
    ("help explain dynamic", "there is no operator dynamic; did you mean dynamic-quant?"),
    ("info x", "info: unexpected argument x; see npuquant info --help"),
    ("info --json", "info: unexpected argument --json; see npuquant info --help"),
    ("hypotheses npu_dynamic_quant", "there is no operator npu_dynamic_quant; did you mean dynamic-quant?"),
    ("hypotheses dequant requant", "hypotheses: unexpected argument requant; see npuquant hypotheses --help"),
    ("diagnose", "diagnose: no operator given; see npuquant diagnose --help"),
    ("diagnose info", "there is no operator info; see npuquant --help"),
    ("hard-inputs quant-matmul",
     "hard-inputs: not for quant-matmul; expected the operator behind its sums, dequant or requant"),
    ("quantize", "no X given; see --help"),
    ("quant-matmul x1", "no X2 given; see --help"),
    ("quantize x", "no --scales given; see --help"),
    ("trans-quant-param", "no SCALE given; see --help"),
    ("group-quant x --scale s", "no --group-index given; see --help"),
    ("dequant x --scale s", "this command has no option --scale; see --help"),
    ("dynamic-quant x --offset-output o", "this command has no option --offset-output; did you mean --scale-output?"),
    ("dynamic-block-quant x --quant-mode pertensor", "this command has no option --quant-mode; see --help"),
    ("compare a", "no B given; see --help"),
    ("compare a b c", "unexpected argument c; see --help"),
    ("compare a b --expect c", "this command has no option --expect; see --help"),
    (f"{MATMUL} s", "unexpected argument s; see --help"),
    (f"{QUANTIZE} y.npy", "unexpected argument y.npy; see --help"),
    (f"{QUANTIZE} -- -y", "unexpected argument -y; see --help"),
    ("quantize '' --scales s", "X: an empty name"),
    (f"{QUANTIZE} --scale s", "this command has no option --scale; did you mean --scales?"),
    (f"{QUANTIZE} --smooth-scales s", "this command has no option --smooth-scales; see --help"),
    ("group-quant x --scale s --group-index g --max-ulp=1", "this command has no option --max-ulp=1; see --help"),
    (f"{QUANTIZE} --zero_points=z", "unknown option --zero_points=z; did you mean --zero-points?"),
    (f"{QUANTIZE} --exp y", "unknown option --exp; did you mean --expect?"),
    (f"{QUANTIZE} --dytpe int8", "unknown option --dytpe; did you mean --dtype?"),
    (f"{QUANTIZE} --thread 2", "unknown option --thread; did you mean --threads?"),
    (f"{QUANTIZE} --x y", "unknown option --x; see --help"),
    (f"{QUANTIZE} -axis 0", "unknown option -axis; did you mean --axis?"),
    (f"{QUANTIZE} -z", "unknown option -z; see --help"),
    (f"{QUANTIZE} --=", "unknown option --=; see --help"),
    (f"{QUANTIZE} -q1", "unknown option -q1; see --help"),
    (f"{QUANTIZE} -qo y", "unknown option -qo; see --help"),
    (f"{QUANTIZE} --quiet=1", "--quiet=1: --quiet takes no value"),
    (f"{QUANTIZE} --nonsense -h", "unknown option --nonsense; see --help"),
    (f"{QUANTIZE} --axis", "--axis: no value given; see --help"),
    (f"{QUANTIZE} --expect=--", "--expect=--: no value given; see --help"),
    (f"{QUANTIZE} --axis 1_0", "--axis: '1_0' is not a number from -2147483648 to 2147483647"),
    (f"{QUANTIZE} --axis {'9' * 5000}", f"--axis: '{'9' * 5000}' is not a number from -2147483648 to 2147483647"),
    (f"{QUANTIZE} --threads -1", "--threads: '-1' is not a number from 0 to 4096"),
    (f"{QUANTIZE} --repeat 0", "--repeat: '0' is not a number from 1 to 1000000"),
    (f"{QUANTIZE} --max-diff -1", "--max-diff: '-1' is not a number from 0 to 2147483647"),
    ("dynamic-block-quant x --block 0", "--block: '0' is not a number from 1 to 9223372036854775807"),
    ("dynamic-quant x --scale-form sum", "--scale-form: 'sum' is none of product|inverse"),
    ("dynamic-quant-asymmetric x --dtype uint8", "--dtype: 'uint8' is none of int8|quint4x2|int4"),
    ("anti-quant x --scale s --dtype int8", "--dtype: 'int8' is none of float16|bfloat16|float32"),
    (f"{QUANTIZE} --dtype int", f"--dtype: 'int' is none of {TYPES_OF_QUANTIZE}"),
    (f"{QUANTIZE} --dtype 'int8|uint8'", f"--dtype: 'int8|uint8' is none of {TYPES_OF_QUANTIZE}"),
    (f"{QUANTIZE} --div-mode ''", "--div-mode: '' is none of true|false"),
    ("dynamic-block-quant x --min-scale 1e", "--min-scale: '1e' is not a number"),
    (f"{QUANTIZE} --bf16 x,,scales", "--bf16: there is no input called ''"),
    (f"{QUANTIZE} -o ''", "--output: an empty name"),
    # What goes together.
    (f"{QUANTIZE} --bf16 zero-points", "--bf16 zero-points: no --zero-points given"),
    (f"{QUANTIZE} --max-diff 0", "--max-diff: nothing is compared; expected --expect, too"),
    (f"{QUANTIZE} --layout reshaped", "--layout: nothing is compared; expected --expect, too"),
    (f"{QUANTIZE} --bf16 expect", "--bf16 expect: no --expect given"),
    (f"{QUANTIZE} --max-diffs 10", "--max-diffs: nothing is compared; expected --expect, too"),
    (f"{QUANTIZE} --dtype int4",
     "--dtype: quint4x2 (int4) needs --div-mode false; expected another type without"),
    (f"{QUANTIZE} --dtype uint8 --div-mode false",
     "--dtype: uint8 needs --div-mode true; expected another type without"),
    ("quantize - --scales s --expect -:y", "stdin (-): is named for x and for expect; expected one of them"),
    ("compare - -", "stdin (-): is named for a and for b; expected one of them"),
    (f"{QUANTIZE} --admissible", "--admissible: nothing is compared; expected --expect FILE"),
    (f"{QUANTIZE} --admissible --expect y --max-diff 1",
     "--admissible: given with --max-diff or --max-ulp; expected one of them"),
    (f"{QUANTIZE} --admissible --expect y --div-mode false",
     "--admissible: quantize --div-mode false has no division on the device's vector unit: every bit must be equal"),
    ("row-quant x --rule grouped_swiglu --admissible --expect y",
     "--admissible: row-quant --rule grouped_swiglu has no division on the device's vector unit: every bit must be "
     "equal"),
    ("row-quant x", "no --rule given; see --help"),
    (f"{REQUANT} --admissible",
     "--admissible: requant has no division on the device's vector unit: every bit must be equal"),
    (f"{REQUANT} --expect y --max-ulp 1", "--max-ulp: does not apply to a result of type int8; expected --max-diff"),
    (f"{REQUANT} --expect y --max-diff 1 --dtype float16",
     "--max-diff: does not apply to a result of type float16; expected --max-ulp"),
    (MATMUL, "no --scale given; only --dtype int32 needs none"),
    (f"{MATMUL} --dtype int32 --pertoken-scale p",
     "--pertoken-scale: is not applied to the sums, which are the result with --dtype int32; expected none"),
    (f"{MATMUL} --scale s --pertoken-scale p",
     "--pertoken-scale: cannot be applied with --dtype int8; expected --dtype float16, bfloat16 or float32"),
    (f"{MATMUL} --scale s --offset o --dtype float16",
     "--offset: cannot be applied with --dtype float16; expected --dtype int8"),
    (f"{MATMUL} --scale s --expect y --max-ulp 1",
     "--max-ulp: does not apply to a result of type int8; expected --max-diff"),
    # Modes.
    (f"diagnose {QUANTIZE}", "no --expect given; see --help"),
    (f"diagnose {QUANTIZE} --expect y --repeat 2", "this command has no option --repeat; see --help"),
    (f"explain {QUANTIZE}", "no --at given; see --help"),
    (f"explain {QUANTIZE} --at -1,0", "--at: '-1,0': expected at most 8 numbers from 0 on, separated by commas"),
    (f"explain {QUANTIZE} --at 1,", "--at: '1,': expected at most 8 numbers from 0 on, separated by commas"),
    (f"explain {QUANTIZE} --at 0,0,0,0,0,0,0,0,0",
     "--at: '0,0,0,0,0,0,0,0,0': expected at most 8 numbers from 0 on, separated by commas"),
    (f"explain {QUANTIZE} {'--at 0,0 ' * 65}", "--at: is given more than 64 times"),
    (f"explain {QUANTIZE} --at 0,0 --expect y", "this command has no option --expect; see --help"),
    ("hard-inputs quantize --shape 8,8", "no --output given; see --help"),
    ("hard-inputs quantize -o d", "no --shape given; see --help"),
    (f"{HARD} --shape 0,8", "--shape: '0,8': expected at most 8 numbers from 1 on, separated by commas"),
    (f"{HARD} --shape 1024,1025", "--shape: has more values than 1048576; expected fewer"),
    (f"{HARD} --shape 9,9 --div-mode=false --dtype=int4",
     "--shape: dimension 1 is 9; expected a multiple of 8, as words hold eight int4"),
    ("hard-inputs anti-quant --shape 4 --type x=int4 -o d",
     "--shape: dimension 0 is 4; expected a multiple of 8, as words hold eight int4"),
    (f"{HARD} --type x", "--type: no type given for x; expected x=TYPE"),
    (f"{HARD} --type x=float",
     "--type: x: there is no type 'float'; expected float32, float16, bfloat16, int8, uint8, int32, int64, uint64 or "
     "quint4x2 (int4)"),
    (f"{HARD} --type x=float16,y=int8", "--type: there is no input called 'y'"),
    (f"{HARD} --without zero-points,scales", "--without: scales is required"),
    (f"{HARD} --json", "--json: nothing is diagnosed; expected --run, too"),
    (f"{HARD} --threads 2", "this command has no option --threads; see --help"),
    (f"{HARD} x.npy", "unexpected argument x.npy; see --help"),
])
def test_refused(words, says, capsys):
    assert npuquant_cli.main(shlex.split(words)) == 2
    assert capsys.readouterr() == ("", f"npuquant: {says}\n")


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_words_have_no_tolerance(dtype):
    arguments = options.parse(("compare", "a", "b", "--max-diff", "1"))
    with pytest.raises(CommandError, match=f"--max-diff, --max-ulp: do not apply to {dtype}: words are compared as"):
        options.checks.check_tolerance(arguments, dtype)


# ---- the table ----


def test_results_have_options():
    for name in options.OPERATORS:
        returned = inspect.signature(function_of(name)).return_annotation.partition("], ")[0]
        rows = [row for row in options.ROWS if name in row.commands]
        for kind in (options.Kind.OUTPUT, options.Kind.EXPECTED):
            assert sum(row.kind is kind for row in rows) == returned.count("np.ndarray")


# ---- help ----


def printed(capsys, *words):
    assert npuquant_cli.main(words) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert all(len(line) <= 80 for line in out.splitlines())
    return out


def flat(text):
    """The words: where lines end says nothing."""
    return " ".join(text.split())


@pytest.mark.parametrize("mode, name", [*PAIRS, *(("", name) for name in options.OTHERS)])
def test_help_of_commands(mode, name, capsys):
    words = [*filter(None, [mode]), name]
    text = printed(capsys, *words, "--help")
    assert text == printed(capsys, "help", *words)
    assert text == printed(capsys, *words, "-h", "--nonsense", "--axis")
    assert text.startswith(f"usage: npuquant {' '.join(words)} ")
    assert "\nexit status: 0 " in text
    for row in options.ROWS:
        named = row.value if options.is_positional(row) else f"--{row.name}"
        if options.is_for(row, mode, name):
            assert f"{named} {'' if row.kind is options.Kind.FLAG else row.value}".split()[0] in text
            default = f" (default {row.default})" if row.default else ""
            assert flat(row.help) + (" (required)" if row.required else "") + default in flat(text)
    listed = set(re.findall(r"(?m)^  (?:-\w(?: [A-Z]+)?, )?--([a-z0-9-]+)", text))
    assert listed == {row.name for row in options.ROWS
                      if options.is_for(row, mode, name) and not options.is_positional(row)}


@pytest.mark.parametrize("mode, name", PAIRS)
def test_examples_work(mode, name, run):
    save_example(name)
    text = run(*filter(None, [mode]), name, "--help")
    example = text.split("\nexample:\n  npuquant ")[1].replace("\\\n", "").split()
    arguments = options.parse(example)
    assert (arguments.mode, arguments.command) == (mode, name)
    if mode == "diagnose":
        run(*example[1:example.index("--expect")], "-o", "y.npy")
    said = run(*example)
    first = {"diagnose": r"diagnosis: nothing differs\n\Z", "explain": r"y\[(0, )?1\]\n  ", "hard-inputs": "hard: "}
    assert re.match(first.get(mode, ""), said)


def test_help_of_modes(capsys):
    for mode in options.MODES:
        text = printed(capsys, mode, "--help")
        assert text == printed(capsys, "help", mode)
        assert text.startswith(f"usage: npuquant {mode} OPERATOR ...\n")
        named = [name for name in options.OPERATORS if f"\n  {name}\n" in text]
        assert named == [name for name in options.OPERATORS if options.takes(mode, name)]
        assert "  --json " in text


def test_general_help(capsys):
    text = printed(capsys, "--help")
    for words in (["-h"], ["help"], ["help", "help"], ["help", "--help"]):
        assert text == printed(capsys, *words)
    for name, words in options.COMMANDS.items():
        assert f"\n  {name} " in text and words.summary in flat(text)
    assert "\n  128 + n  " in text


def test_help_is_as_wide_on_each_terminal(capsys, monkeypatch):
    text = printed(capsys, "quantize", "--help")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert text == printed(capsys, "quantize", "--help")


# ---- the program ----


def test_version(program):
    for word in ("--version", "-V"):
        assert program(word, text=True).stdout == f"npuquant {npuquant.__version__}\n"


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["help", "quantize"], ["quantize"], ["quantise"]])
def test_no_numpy_without_work(words):
    script = f"import sys, npuquant_cli; npuquant_cli.main({words}); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          timeout=60).returncode == 0


posix = pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="this system has no such signals")


@posix
def test_unread_stdout(program):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = program("--help", stdout=writer, text=True)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


@posix
@pytest.mark.parametrize("handler, status", [(signal.SIG_DFL, -signal.SIGINT), (signal.SIG_IGN, 0)])
def test_interrupt(handler, status):
    """It ends the program without a traceback, unless whoever started the program has it ignored."""
    script = ("import os, signal, npuquant_cli\n"
              "npuquant_cli.main = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
              "npuquant_cli.start()")
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, timeout=60,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, handler))
    assert (done.returncode, done.stderr) == (status, b"")
