#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The documentation's numbers. Runs every example of the operators' pages and of the pages about differing kernels, and
compares the output. Compares the error tables with all messages of the library, and lists of operators, functions and
files with what there is.

doctest runs a page's `pycon` blocks in order, in one empty folder; the commands of `console` blocks run there, too, and
their output is compared, except measured times. A `python` block that begins with a file's name in a comment is written
to this file there. A `c` block that begins with an #include is the program of the page's name in examples/.

python/tests/test_torch_page.py compares the pages of PyTorch, where the Python package and PyTorch are.

NPUQ_SOURCE and NPUQ_BUILD are the folders of the source and of the build; default: the folder above, and its `build`.
usage: test_docs.py            checks
       test_docs.py --record   writes outputs and programs into the pages; review the diff
"""
import doctest
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

SOURCE = os.path.abspath(os.environ.get("NPUQ_SOURCE") or os.path.join(os.path.dirname(__file__), os.pardir))
BUILD = os.path.abspath(os.environ.get("NPUQ_BUILD") or os.path.join(SOURCE, "build"))
DOCS = os.path.join(SOURCE, "docs")
OPERATORS = sorted(name[: -len(".md")] for name in os.listdir(os.path.join(DOCS, "operators")))
OPERATOR_PAGES = [f"operators/{name}.md" for name in OPERATORS]
PAGES = OPERATOR_PAGES + ["diagnose.md", "hypotheses.md", "is-my-mx-kernel-right.md", "scales-by-groups.md", "tool.md"]
TORCH_PAGES = ["torch.md", "mixture-of-experts.md"]
# The page with the errors of a function. A step has the operator's errors, except steps that make parameters.
ERRORS = {
    **{name: f"operators/{name}.md" for name in OPERATORS},
    "dynamic_quant_min_max": "operators/dynamic_quant_asymmetric.md",
    "dynamic_quant_params": "sharding.md",
    "dynamic_quant_apply": "operators/dynamic_quant_asymmetric.md",
    "dynamic_quant_symmetric_params": "sharding.md",
    "dynamic_quant_symmetric_apply": "operators/dynamic_quant.md",
    "dynamic_quant_float8": "operators/dynamic_quant.md",
    "dynamic_block_quant_float8": "operators/dynamic_block_quant.md",
    "mx_scale_shape": "operators/dynamic_mx_quant.md",
}

BLOCK = re.compile(r"^```(pycon|console|python|c)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
MEASURED = re.compile(r"backend \w+, \d+ threads?, \S+ s, \S+ \w+/s")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


# ---- examples ----


def example_program(page):
    """The program, without its head comments."""
    text = read(SOURCE, "examples", os.path.basename(page).replace("-", "_").replace(".md", ".c"))
    return text[text.index("#include") :]


def run_console(block, stderr):
    """The block with its commands' present outputs. `cd` lasts for later blocks."""
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*\n)", block, re.MULTILINE)
    result = ""
    status = 0
    for command in commands:
        done = subprocess.run(
            ["sh", "-c", f"(exit {status}); {command}"],
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        status = done.returncode
        if command.startswith("cd "):
            os.chdir(command[3:-1])
        result += "$ " + command + done.stdout
    return result


def run_doctest(block, page, variables):
    report = []
    test = doctest.DocTestParser().get_doctest(block, {}, page, page, 0)
    test.globs = variables
    doctest.DocTestRunner(verbose=False).run(test, out=report.append, clear_globs=False)
    return "".join(report)


def run_page(page):
    """The corrected page, the problems with its Python, and the number of blocks run."""
    problems = []
    counts = {"pycon": 0, "console": 0, "python": 0, "c": 0}
    variables = {}
    before = os.getcwd()
    # PyTorch's libraries may print warnings about the machine.
    stderr = subprocess.DEVNULL if page in TORCH_PAGES else subprocess.STDOUT
    # the command, and the Python with NumPy
    os.environ["PATH"] = os.pathsep.join([BUILD, os.path.dirname(sys.executable), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(BUILD, os.path.join(folder, "build"))
        os.symlink(os.path.join(SOURCE, "examples"), os.path.join(folder, "examples"))

        def run_block(match):
            language, block = match.groups()
            counts[language] += 1
            if language == "pycon":
                if problem := run_doctest(block, page, variables):
                    problems.append(problem)
            elif language == "console":
                block = run_console(block, stderr)
            elif language == "python":
                if name := re.match(r"# (\w+\.py)\n", block):
                    with open(name[1], "w", encoding="utf-8") as file:
                        file.write(block)
            elif not block or block.startswith("#include"):
                block = example_program(page)
            return f"```{language}\n{block}```\n"

        os.chdir(folder)
        try:
            with np.printoptions():  # a page may set its own
                text = BLOCK.sub(run_block, read(DOCS, page))
        finally:
            os.chdir(before)
    return text, problems, counts


class Examples(unittest.TestCase):
    maxDiff = None

    def test_examples(self):
        for page in PAGES:
            with self.subTest(page):
                text, problems, counts = run_page(page)
                self.assertEqual(problems, [])
                self.assertGreater(counts["console"], 0)
                self.assertEqual(counts["pycon"] > 0, page in OPERATOR_PAGES)
                self.assertEqual(MEASURED.sub("", read(DOCS, page)), MEASURED.sub("", text))

    def test_readme(self):
        printed = subprocess.check_output([os.path.join(BUILD, "examples", "quickstart")], encoding="utf-8", timeout=60)
        for part in (f"```c\n{example_program('quickstart.md')}```\n", f"    ./program  # prints {printed}"):
            self.assertIn(part, read(SOURCE, "README.md"))

    def test_reference(self):
        """A test contains the loops of the reference's page."""
        block, = re.findall(r"^```c\n(.*?)^```\n", read(DOCS, "reference.md"), re.DOTALL | re.MULTILINE)
        self.assertIn(block, read(SOURCE, "tests", "test_admissible.c"))

    def test_recipes(self):
        """The examples, which are compiled, run and compared, contain the code of the threads' page that does not need an
        engine."""
        names = [name for name in os.listdir(os.path.join(SOURCE, "examples")) if name.startswith("prepared")]
        examples = "".join(read(SOURCE, "examples", name) for name in names)
        engines = re.compile(r"^### (ggml|oneTBB|ONNX Runtime)\n.*?(?=^##)", re.DOTALL | re.MULTILINE)
        page = engines.sub("", read(DOCS, "threads.md"))
        blocks = re.findall(r"^```c\n(.*?)^```\n", page, re.DOTALL | re.MULTILINE)
        self.assertEqual(len(blocks), 4)
        for block in blocks:
            self.assertIn(block, examples)


# ---- fields ----


def paths(value, before=""):
    """The fields of a JSON value in tool.md's form: findings[].explained, inputs.NAME.file."""
    if isinstance(value, list):
        return {path for item in value for path in paths(item, before + "[]")}
    if not isinstance(value, dict):
        return {before.removesuffix("[]")}  # an array of numbers is one field
    named = before in ("arguments", "inputs", "outputs")
    return {
        path
        for key, item in value.items()
        for path in paths(item, ".".join(filter(None, [before, "NAME" if named else key])))
    }


class Fields(unittest.TestCase):
    """The tool's JSON has exactly the fields of tool.md's tables."""

    def documented(self, heading):
        section = read(DOCS, "tool.md").split(f"\n### {heading}\n")[1].split("\n##")[0]
        table = section[section.index("| field | meaning |") :]
        rows = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
        return {field for row in rows for field in re.findall(r"`(.*?)`", row)}

    def run_in(self, folder, *words):
        done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, encoding="utf-8", timeout=60, check=False)
        self.assertIn(done.returncode, (0, 1))
        return done.stdout

    def test_fields(self):
        tool = os.path.join(BUILD, "npuquant")
        with tempfile.TemporaryDirectory() as folder:
            self.run_in(folder, sys.executable, os.path.join(SOURCE, "examples", "faulty_kernels.py"))
            files = os.path.join(folder, "faulty_kernels")
            found = set()
            for dump in ("half_away", "overwritten", "scalar_tail", "tail", "shuffled"):
                words = [tool, "diagnose", "quantize", "x.npy", "--scales", "scales.npy", "--expect", dump + ".npy"]
                found |= paths(json.loads(self.run_in(files, *words, "--json")))
            words = [tool, "diagnose", "dynamic-quant", "varied.npy", "--expect-scale", "inverse_form.npy", "--json"]
            found |= paths(json.loads(self.run_in(files, *words)))
            self.assertEqual(found, self.documented("diagnose"))

            words = [tool, "explain", "dynamic-quant", "varied.npy", "--at", "1,2", "--json"]
            explained = paths({"element": json.loads(self.run_in(files, *words))[0]})
            self.assertLessEqual(explained, self.documented("diagnose"))

            self.run_in(folder, tool, "hard-inputs", "quantize", "--shape", "8,16", "-o", "hard")
            manifest = json.loads(read(folder, "hard", "manifest.json"))
            self.assertEqual(paths(manifest), self.documented("hard-inputs"))


# ---- error tables ----

ROW = re.compile(r"^\| (NPUQ_\w+) \| [^|]+ \| `([^`]+)` \|$", re.MULTILINE)
NAMED = re.findall(r"^    DO\((\w+), ", read(SOURCE, "src", "types.def"), re.MULTILINE)
DTYPE = f"(?:{'|'.join(NAMED)})"
ARGUMENT = r"(?:x|y|(?:(?:smooth|weight|activation)_|mx)?scales?|zero_points|group_index|offset|min|max|words|bias)"


def messages(pairs):
    """Pairs of status and message, without requant's random words."""
    return {(status, re.sub(r"0x[0-9A-F]+", "0xN", message)) for status, message in pairs}


def rows(page):
    return messages(ROW.findall(read(DOCS, page)))


def shape(row):
    """A row without argument, dtypes and numbers."""
    status, message = row
    rule = message.split(": ", 2)[2]
    rule = re.sub(rf"{DTYPE}(?:(?:, | or ){DTYPE})*", "DTYPE", rule)
    rule = re.sub(rf"overlap(s?) {ARGUMENT}\b", r"overlap\1 ARGUMENT", rule).replace("mode is true", "mode is false")
    number = r"-?\d+(?:\.\d+e-\d+)?|\b(?:inf|nan)\b"
    return status, re.sub(number, "N", rule).replace("N dimensions", "N dimension")


class Errors(unittest.TestCase):
    """Against all messages that test_errors provokes."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "messages")
            subprocess.run(
                [os.path.join(BUILD, "tests", "test_errors")],
                env=dict(os.environ, NPUQ_TEST_MESSAGES=log),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=True,
                timeout=300,
            )
            cls.given = messages(line.split("\t") for line in read(log).splitlines())
        cls.common = rows("errors.md")
        cls.own = {page: rows(page) for page in ERRORS.values()}

    def test_messages_are_given(self):
        for page, table in [("errors.md", self.common), *self.own.items()]:
            self.assertGreater(len(table), 0, page)
            self.assertEqual(table - self.given, set(), page)

    def test_none_is_missing(self):
        for name, page in ERRORS.items():
            wanted = {row for row in self.given if row[1].startswith(name + ": ")}
            self.assertGreater(len(wanted), 0, name)
            documented = {shape(row) for row in self.common | self.own[page]}
            self.assertEqual({row for row in wanted if shape(row) not in documented}, set(), name)

    def test_own_rows_are_the_operators(self):
        for page, table in self.own.items():
            names = {name for name in ERRORS if ERRORS[name] == page}
            self.assertEqual({row for row in table if row[1].split(": ")[0] not in names}, set(), page)


# ---- names ----


FOLDERS = (".ci", "bench", "cmake", "cross", "debian", "diagnosis", "docs", "examples", "include", "python", "scripts",
           "single-file", "src", "tests")


def source_files():
    """The paths in the source. Beside its folders may lie what a user made."""
    yield from (name for name in os.listdir(SOURCE) if re.search(r"\.(build|md|toml|txt)$", name))
    for folder in FOLDERS:
        for at, folders, files in os.walk(os.path.join(SOURCE, folder)):
            folders[:] = [name for name in folders if name != "__pycache__"]
            yield from (os.path.relpath(os.path.join(at, name), SOURCE) for name in files)


def texts():
    """The text of each file that is no page and no data."""
    data = re.compile(r"/corpus/|/results/|\.npy$|\.svg$|\.md$")
    return {path: read(SOURCE, path) for path in source_files() if not data.search(path)}


class AddingAnOperator(unittest.TestCase):
    """The page lists the files that name all operators."""

    WRITTEN_BY_A_COMMAND = {"tests/data/examples.txt"}

    def names(self, text):
        spellings = ((name, name.upper(), name.replace("_", "-")) for name in OPERATORS)
        return sum(any(re.search(rf"(?<![a-zA-Z]){each}(?![a-zA-Z])", text) for each in names) for names in spellings)

    def test_files(self):
        listed = re.findall(r"^\| `([^`]+)` \|", read(DOCS, "adding-an-operator.md"), re.MULTILINE)
        files = texts()
        for path in listed:
            self.assertGreater(self.names(files[path]), 1, path)
        for path, text in files.items():
            if "/mutation/" not in path and path not in self.WRITTEN_BY_A_COMMAND | {*listed}:
                self.assertLess(self.names(text), len(OPERATORS), path)


class Names(unittest.TestCase):
    """The files, functions, macros, options and tests that pages name exist. <x>, NAME, * and ... stand for any part.
    Pages may define names in their own blocks."""

    NOT_IN_FILES = {
        *("OMP_TOOL_LIBRARIES", "OPENBLAS_NUM_THREADS", "PYTHONHOME", "__bf16", "get_device_module", "to_mx",
          "ggml_gallocr_alloc_graph", "init_process_group", "quantize_per_channel"),  # of others
        *("offset_rows", "scale_blocks", "scale_rows"),  # made of parts; the class Fields has them
    }

    @staticmethod
    def named(text):
        """What a page without its blocks names: paths, names of files, words, tests."""
        spans = re.findall(r"`([^`]+)`", text)
        lists = re.findall(r"\b[Tt]ests? ((?:`\w+`(?:, | and )?)+)", text)
        lists += re.findall(r"^    (?:\S+ )?meson test -C build (.*?)(?:  |\n)", text, re.MULTILINE)
        calls = [re.fullmatch(r"(?:[\w.]+\.)?([\w<>*]+(?:\.{3})?)(\(.*\))?", span) for span in spans]
        yield "path", re.findall(rf"(?<![\w./-])(?:{'|'.join(FOLDERS)})/[\w.<>*/-]*[\w>*]", text)
        yield "word", [span for span in spans if re.fullmatch(r"\w+\.(c|h|py|def|ini)", span)]
        yield "word", [call[1] for call in calls if call and ("_" in call[1] or call[2] or call[1].isupper())]
        yield "test", [test for names in lists for test in re.findall(r"(?<!-)\b\w+", names) if test != "and"]

    def test_names(self):
        files = texts()
        del files["tests/test_docs.py"]
        everything = "\n".join(files.values())
        paths = set(source_files())
        known = {
            "path": paths | {path[: at.start()] for path in paths for at in re.finditer(r"[./]", path)},
            "word": {*re.findall(r"(?<!\w)(?:-D)?(\w+)", everything), *re.findall(r"\w+\.\w+", everything),
                     *map(os.path.basename, paths), *self.NOT_IN_FILES},
            "test": {*re.findall(r"'(\w+)'", "".join(files[path] for path in paths if path.endswith("meson.build")))},
        }
        missing = []
        count = 0
        for page in sorted(path for path in paths if path.endswith(".md")):
            blocks = re.compile(r"^ *```.*?^ *```|^ *>>> [^\n]*", re.DOTALL | re.MULTILINE)
            text = read(SOURCE, page)
            own = {*re.findall(r"[\w.]+", "".join(blocks.findall(text)))}
            for kind, names in self.named(blocks.sub("", text)):
                count += len(names)
                for name in {*names} - own - known[kind]:
                    pattern = r"[\w-]*".join(map(re.escape, re.split(r"<\w+>|NAME|\*|\.\.\.", name)))
                    if not any(re.fullmatch(pattern, each) for each in known[kind]):
                        missing.append((page, kind, name))
        self.assertEqual(missing, [])
        self.assertGreater(count, 900)


class Lists(unittest.TestCase):
    """What lists the operators, the functions and the files has all of them."""

    def test_front_page(self):
        links = set(re.findall(r"\]\((.*?)\)", read(SOURCE, "README.md")))
        self.assertEqual({f"docs/{page}" for page in OPERATOR_PAGES} - links, set())

    def test_design(self):
        """The files in the design exist, and so do the functions of a call's path. It has all files of diagnosis."""
        design = read(DOCS, "design.md")
        for path in re.findall(r"^\| `(src/[^`<]*)`", design, re.MULTILINE):
            self.assertTrue(any(os.path.exists(os.path.join(SOURCE, path + end)) for end in ("", ".c", ".h")), path)
        steps = re.findall(r"^\| `(src/[^`]*)` \| (`\w+.*`) \|", design, re.MULTILINE)
        self.assertGreater(len(steps), 10)
        for path, functions in steps:
            for function in re.findall(r"`(\w+)", functions):
                self.assertRegex(read(SOURCE, path), rf"\b{function}\)?\(")
        rows = set(re.findall(r"^\| `(\w+)(?:\.h)?` \|", design, re.MULTILINE))
        files = os.listdir(os.path.join(SOURCE, "diagnosis"))
        self.assertEqual({name[:-2] for name in files if name.endswith((".c", ".h"))} - rows, set())

    def test_groups(self):
        """Every function is in a group, a page of the site, and every operator has a group."""
        header = read(SOURCE, "include", "npuquant", "npuquant.h")
        self.assertIn("\nNPUQ_API ", header)
        self.assertNotIn("\nNPUQ_API ", re.sub(r"@{.*?@}", "", header, flags=re.DOTALL))
        for name in OPERATORS:
            self.assertIn(f"@defgroup api_{name} {name}\n", header)


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        if missing := [name for name in ("npuquant", "torch") if importlib.util.find_spec(name) is None]:
            print(f"{' and '.join(TORCH_PAGES)}: not recorded: no Python package {' and '.join(missing)}")
        for page in PAGES + TORCH_PAGES * (not missing):
            text, problems, _ = run_page(page)
            print("".join(problems), end="")
            if MEASURED.sub("", text) != MEASURED.sub("", read(DOCS, page)):
                with open(os.path.join(DOCS, page), "w", encoding="utf-8") as file:
                    file.write(text)
    else:
        unittest.main(verbosity=2)
