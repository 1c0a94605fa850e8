#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tool from outside: NumPy writes its inputs, reads its outputs, and computes the expected results.

NPUQUANT_TOOL is the path of the tool. NPUQ_TEST_SEED repeats a run. The end lists skipped tests; on Linux with CI=true
they fail the run, unless a test needs rights that a container may lack.
"""
import ctypes
import gzip
import io
import json
import os
import pickle
import pty
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
import zipfile

import numpy as np
from numpy_operators import (SEED, anti_quant, dequant, dynamic, dynamic_block_quant, dynamic_quant, f4, quant_matmul,
                             quantize, random_floats, random_integers, random_words, requant, rng, round_to,
                             trans_quant_param)
from random_calls import RANDOM_CALLS, choose, random_words_of

TOOL = os.path.abspath(os.environ["NPUQUANT_TOOL"])
COMMANDS = [operator.replace("_", "-") for operator in RANDOM_CALLS] + ["quant-matmul"]
TRIALS = 200
DEFAULTS = {"quant_mode": "pertoken", "round_mode": "0", "scale_form": "product", "block": "128", "min_scale": "0.0"}
NO_RIGHTS = "no rights here: "  # reasons that begin so are nobody's fault


# ---- files ----


def save(path, array, order=None, version=None):
    """Writes an array in a given or random layout, byte order and version of the format."""
    if (order or rng.choice(["C", "F"])) == "F" and array.ndim > 0:  # NumPy would make a scalar 1-D
        array = np.asfortranarray(array)
    if order is None and array.dtype.itemsize > 1 and rng.random() < 0.3:
        array = array.astype(array.dtype.newbyteorder(">"))
    version = version or ((1, 0), (2, 0), (3, 0))[rng.integers(3)]
    with open(path, "wb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.lib.format.write_array(file, array, version=version)


def npy_bytes(header, data=b"", version=(1, 0), length=None):
    """Writes a file with any header."""
    text = header if isinstance(header, bytes) else header.encode("latin-1")
    size = (len(text) if length is None else length).to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + bytes(version) + size + text + data


def header(descr="'<f4'", order="False", shape="(2,)"):
    return "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n" % (descr, order, shape)


class ToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def run_tool(self, *words, **options):
        done = subprocess.run(
            [TOOL, *map(str, words)], cwd=self.folder, capture_output=True, check=False, timeout=60, **options
        )
        done.out, done.err = done.stdout.decode(errors="replace"), done.stderr.decode()
        return done

    def run_well(self, *words, status=0, **options):
        done = self.run_tool(*words, **options)
        self.assertEqual((done.returncode, done.err), (status, ""), f"{words}\n{done.out}{done.err}")
        return done.out

    def run_badly(self, *words, says="", prints=r"\Z", **options):
        """Exit status 2, one line on stderr, and no new or lost file."""
        before = sorted(os.listdir(self.folder))
        done = self.run_tool(*words, **options)
        self.assertEqual(done.returncode, 2, f"{words}\n{done.out}{done.err}")
        self.assertRegex(done.err, r"\Anpuquant: [^\n]+\n\Z")
        self.assertRegex(done.out, r"\A" + prints)
        self.assertIn(says, done.err)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        return done.err

    def save_inputs(self, positional=1, **arrays):
        """Saves the given inputs; returns the words that name them, the first without an option."""
        words, named = [], []
        for name, array in arrays.items():
            if array is None:
                continue
            option = name.replace("_", "-")
            save(self.path(f"{name}.npy"), array)
            words += [f"{name}.npy"] if len(words) < positional else [f"--{option}", f"{name}.npy"]
            if array.dtype == np.uint16:
                named.append(rng.choice([name, option]))
        if named and rng.random() < 0.5:
            words += ["--bf16", ",".join(named)]
        else:
            for name in named:
                words += [f"--bf16={name}"]
        return words

    def available_backends(self):
        line = re.search("^backends: (.*)$", self.run_well("info"), re.MULTILINE).group(1)
        return re.findall(r"(\w+) \((?:active|available)\)", line)

    def random_settings(self, backends):
        return ["--backend", rng.choice(backends), "--threads", str(rng.integers(0, 4))]

    def in_mounted(self, options, script, *words):
        """Runs a shell script in a mounted file system, on the folder "disk". Without mounts, two other tests still
        check refused writes: a file too large, and an unwritable folder."""
        os.makedirs(self.path("disk"), exist_ok=True)
        mount = f"mount -t tmpfs -o {options} none disk 2>&1"
        for namespace in (["unshare", "-m"], ["unshare", "-rm"]):
            try:
                if subprocess.run([*namespace, "sh", "-c", mount], cwd=self.folder, capture_output=True,
                                  check=False).returncode == 0:
                    break
            except FileNotFoundError:
                self.skipTest("there is no unshare")
        else:
            self.skipTest(NO_RIGHTS + "a small disk can be mounted neither as root nor in a namespace of one's own")
        words = [*namespace, "sh", "-c", f"{mount} && cd disk && {script}", "sh", TOOL, *words]
        return subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)

    def without_rights_to_write(self, folder):
        """A function that a process calls first, so that an unwritable folder refuses its files."""
        prctl = getattr(ctypes.CDLL(None), "prctl", lambda *arguments: None)  # only Linux needs it here

        def as_others_are():  # root may write anywhere, by CAP_DAC_OVERRIDE, until PR_CAPBSET_DROP and exec()
            prctl(24, 1, 0, 0, 0)

        if subprocess.run(["test", "-w", folder], cwd=self.folder, preexec_fn=as_others_are).returncode == 0:
            self.skipTest(NO_RIGHTS + "root cannot give up that it may write anywhere")
        return as_others_are

    def assert_output(self, name, expected):
        got = np.load(self.path(name))
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
        np.testing.assert_array_equal(got, expected)
        self.assertEqual(got.tobytes(), expected.tobytes())  # also the sign of zeros, and NaN

    def save_example_inputs(self, operator):
        """The files in the example of the operator's help."""
        inputs = {
            "x.npy": np.ones((4, 8), "f4"), "s.npy": np.ones(8, "f4"), "z.npy": np.ones(8, "u1"),
            "scale.npy": np.ones(8, "f4"), "offset.npy": np.ones(8, "f4"), "ends.npy": np.array([4]),
            "smooth.npy": np.ones(8, "f4"), "weight.npy": np.ones((8, 8), "i1"), "sums.npy": np.ones((4, 8), "i4"),
            "rows.npy": np.ones(4, "f4"), "words.npy": np.full(8, 1 << 46), "x1.npy": np.ones((4, 8), "i1"),
        }
        if operator == "group-quant":
            inputs.update({"x.npy": np.ones((4, 8), "u2"), "s.npy": np.ones((1, 8), "f4")})
        for name, array in inputs.items():
            save(self.path(name), array)


class Results(ToolTest):
    def check(self, operator):
        backends = self.available_backends()
        for _ in range(TRIALS):
            call = RANDOM_CALLS[operator]()
            settings = self.random_settings(backends)
            if operator == "trans_quant_param":  # it has no threads, and a type that is the command's alone
                settings, dtype = settings[:2], choose("int64", "uint64")
                call = call._replace(options={**call.options, "dtype": dtype},
                                     results={"y": call.results["y"].astype(dtype)})
            words = self.save_inputs(**call.inputs)
            for name, value in call.options.items():
                option, value = "--" + name.replace("_", "-"), str(value).lower()
                if DEFAULTS.get(name) != value or rng.random() < 0.5:
                    words += choose([option, value], [f"{option}={value}"])
            words += choose(["-o", "y.npy"], ["-oy.npy"], ["--output=y.npy"])
            for name in list(call.results)[1:]:
                words += [f"--{name}-output", f"{name}.npy"]
            self.run_well(operator.replace("_", "-"), *words, *settings)
            for name, array in call.results.items():
                self.assert_output(f"{name}.npy", array)

    def test_random_calls(self):
        for operator in RANDOM_CALLS:
            with self.subTest(operator):
                self.check(operator)

    def random_scale(self, dtype, pertoken, columns):
        """Words for the result, with an offset if there is one."""
        count = columns if rng.random() < 0.8 else 1
        if dtype == "int32":
            return None, None
        if dtype not in ("int8", "float16") or pertoken:
            return random_floats(count, size=10.0 ** rng.integers(-9, 1)), None
        if rng.random() < 0.5:
            return random_words_of(columns, dtype), None
        offset = random_floats(columns if rng.random() < 0.5 else 1, "f4", size=200.0)
        return random_floats(count, "f4", size=0.01), offset if dtype == "int8" and rng.random() < 0.7 else None

    def test_quant_matmul(self):
        backends = self.available_backends()
        for _ in range(TRIALS):
            dtype = str(rng.choice(["int8", "float16", "bfloat16", "float32", "int32"]))
            rows, depth, columns = (int(n) for n in rng.integers(1, 20, size=3))
            batch = tuple(int(n) for n in rng.integers(1, 4, size=rng.integers(0, 4)))
            batches = [tuple(n if rng.random() < 0.7 else 1 for n in batch)[rng.integers(len(batch) + 1) :]
                       for _ in range(3)]
            x1 = random_integers(batches[0] + (rows, depth), "i1")
            x2 = random_integers(batches[1] + (depth, columns), "i1")
            pertoken_scale = None
            if dtype not in ("int8", "int32") and rng.random() < 0.6:
                result = np.broadcast_shapes(batches[0], batches[1])
                repeated = [n if extent == n else 1 for n, extent in zip(result[::-1], batches[2][::-1])][::-1]
                pertoken_scale = random_floats((*repeated, rows), "f4", size=2.0)
            scale, offset = self.random_scale(dtype, pertoken_scale is not None, columns)
            bias = random_integers(columns, "i4") if rng.random() < 0.5 else None
            if dtype in ("bfloat16", "float32") and rng.random() < 0.5:
                bias = random_floats(columns)
            words = self.save_inputs(positional=2, x1=x1, x2=x2, scale=scale, offset=offset,
                                     pertoken_scale=pertoken_scale, bias=bias)
            self.run_well("quant-matmul", *words, "--dtype", dtype, "-o", "y.npy", *self.random_settings(backends))
            self.assert_output("y.npy", quant_matmul(x1, x2, scale, offset, pertoken_scale, bias, dtype))

    def test_large_products(self):
        """On threads, with transposed weights and sums that wrap."""
        x1 = random_integers((130, 260), "i1")
        x2 = random_integers((260, 300), "i1")
        save(self.path("x1.npy"), x1, "C")
        for order in "CF":
            save(self.path("x2.npy"), x2, order)
            out = self.run_well("quant-matmul", "x1.npy", "x2.npy", "--dtype", "int32", "--threads", 3, "-o", "y.npy")
            self.assertRegex(out, r"\Aquant-matmul: x1 int8 \[130, 260\], y int32, backend \w+, 3 threads, ")
            self.assert_output("y.npy", quant_matmul(x1, x2, None, None, None, None, "int32"))
        save(self.path("x1.npy"), np.full((1, 2**17 + 3), -128, "i1"), "C")
        save(self.path("x2.npy"), np.full((2**17 + 3, 2), -128, "i1"), "C")
        self.run_well("quant-matmul", "x1.npy", "x2.npy", "--dtype", "int32", "-o", "y.npy")
        self.assert_output("y.npy", np.full((1, 2), 3 * 2**14 - 2**31, "i4"))

    def test_large_on_threads(self):
        x = random_floats((700, 1100), "f2")
        save(self.path("x.npy"), x, "C")
        y, scale, offset = dynamic(x, None, None, False, "int8")
        out = self.run_well("dynamic-quant-asymmetric", "x.npy", "-o", "y.npy", "--scale-output", "s.npy", "--threads",
                            3, "--repeat", 2)
        self.assertRegex(out, r"\Adynamic-quant-asymmetric: x float16 \[700, 1100\], y int8, backend \w+, 3 threads, "
                              r"[0-9.]+ s, [0-9.]+ GB/s\n\Z")
        self.assert_output("y.npy", y)
        self.assert_output("s.npy", scale)
        save(self.path("offset.npy"), offset)
        self.run_well("dynamic-quant-asymmetric", "x.npy", "--expect-offset", "offset.npy")

    def test_default_axis(self):
        x = random_floats((3, 5, 7), "f4")
        for shape, axis in (((3, 5, 7), 1), ((105,), 0)):
            scales = np.arange(1, shape[axis] + 1, dtype=f4)
            words = self.save_inputs(x=x.reshape(shape), scales=scales)
            self.run_well("quantize", *words, "-o", "y.npy")
            self.assert_output("y.npy", quantize(x.reshape(shape), scales, None, axis, True, "int8"))
            last = np.arange(1, shape[-1] + 1, dtype=f4)
            words = self.save_inputs(x=x.reshape(shape), scales=last)
            for option in ([], ["--axis", "-1"], ["--axis", "0"], ["--axis", "1"], ["--axis", "99"]):
                self.run_well("quantize", *words, "--div-mode", "false", *option, "-o", "y.npy")
                self.assert_output("y.npy", quantize(x.reshape(shape), last, None, -1, False, "int8"))

    def test_empty(self):
        for shape in ((0,), (3, 0), (0, 2**62, 2**62)):
            self.write("x.npy", npy_bytes(header(shape=str(shape))))
            save(self.path("scales.npy"), np.array([1], f4))
            self.run_well("quantize", "x.npy", "--scales", "scales.npy", "--axis", "0", "-o", "y.npy")
            self.assertIn(str(shape).encode(), self.read("y.npy"))
        save(self.path("x1.npy"), np.zeros((0, 1, 2, 3), "i1"))
        save(self.path("x2.npy"), np.zeros((5, 3, 4), "i1"))
        for dtype in ("int8", "float16", "bfloat16"):
            self.run_well("quant-matmul", "x1.npy", "x2.npy", "--scale", "scales.npy", "--dtype", dtype, "-o", "y.npy")
            self.assertEqual(np.load(self.path("y.npy")).shape, (0, 5, 2, 4))

    def test_output_header_is_aligned(self):
        for ndim in range(1, 9):
            x = np.ones((1,) * (ndim - 1) + (3,), f4)
            words = self.save_inputs(x=x, scales=np.array([1], f4))
            self.run_well("quantize", *words, "-o", "y.npy")
            self.assertEqual((len(self.read("y.npy")) - 3) % 64, 0)
            self.assert_output("y.npy", x.astype("i1"))


class Headers(ToolTest):
    data = np.array([1, -2.5], "<f4").tobytes()

    def setUp(self):
        super().setUp()
        save(self.path("one.npy"), np.array([1], f4), "C")

    def quantize(self, *options, **subprocess_options):
        return self.run_well("quantize", "x.npy", "--scales", "one.npy", "-o", "y.npy", *options, **subprocess_options)

    def test_spellings(self):
        for text in (
            header(),
            "{'descr':'<f4','fortran_order':False,'shape':(2,)}",
            '{"shape" : ( 2 , ) ,\n "fortran_order":\tTrue, "descr":"<f4"}   \n',
            "  { 'shape': (2L,), 'descr': '<f4', 'fortran_order': False }",
        ):
            for version in ((1, 0), (2, 0), (3, 0)):
                for padding in range(4):  # so that the data is aligned, and is not
                    self.write("x.npy", npy_bytes(text + " " * padding, self.data, version))
                    self.quantize()
                    self.assert_output("y.npy", np.array([1, -2], "i1"))

    def test_byte_orders(self):
        for order in "<>=|":
            stored = np.array([1, -2.5], ">f4" if order == ">" else "<f4" if order == "<" else "=f4")
            self.write("x.npy", npy_bytes(header(f"'{order}f4'"), stored.tobytes()))
            self.quantize()
            self.assert_output("y.npy", np.array([1, -2], "i1"))

    def test_bfloat16(self):
        """bfloat16 as 16-bit types and as float32, with special values: as inputs and in comparisons."""
        bits = np.append(rng.integers(0, 2**16, 1022), [0x7FC0, 0x7F81]).astype("u2").reshape(8, 128)
        sums = random_integers((8, 128), "i4")
        save(self.path("sums.npy"), sums)
        save(self.path("bits.npy"), bits)
        self.run_well("quantize", "bits.npy", "--scales", "one.npy", "--bf16", "x", "-o", "quantized.npy")
        dequant = ("dequant", "sums.npy", "--weight-scale", "one.npy", "--dtype", "bfloat16")
        self.run_well(*dequant, "-o", "result.npy")
        for file, words in (("bits.npy", ("quantize", "x.npy", "--scales", "one.npy", "--bf16", "x", "--expect",
                                          "quantized.npy")),
                            ("result.npy", (*dequant, "--expect", "x.npy"))):
            array = np.load(self.path(file)).astype("u2")  # in this machine's byte order
            for stored in (array.view("i2"), array.view("V2"), (array.astype("u4") << 16).view(f4)):
                for order in "CF":
                    save(self.path("x.npy"), stored, order)
                    self.assertIn("elements equal", self.run_well(*words))
                    if stored.dtype.kind != "V":  # NumPy writes V2 without a byte order
                        save(self.path("x.npy"), stored.astype(stored.dtype.newbyteorder(">")), order)
                        self.assertIn("elements equal", self.run_well(*words))
            done = self.run_well(*[word.replace("x.npy", "/dev/stdin") for word in words], input=self.read("x.npy"))
            self.assertIn("elements equal", done)
        # As ml_dtypes writes it.
        self.write("x.npy", npy_bytes(header("'<V2'"), f4([1, -2.5]).view("<u2")[1::2].tobytes()))
        self.run_well("quantize", "x.npy", "--scales", "one.npy", "--bf16=x", "-o", "y.npy")
        self.assert_output("y.npy", np.array([1, -2], "i1"))

    def test_no_bfloat16(self):
        x = np.ones((3, 4, 5), f4)
        x[1, 2, 3] = 0.1
        words = ("quantize", "x.npy", "--scales", "one.npy", "--bf16=x")
        says = "[1, 2, 3] is 0.100000001 (0x3DCCCCCD), which no bfloat16 is: its lower 16 bits are not 0\n"
        save(self.path("int8.npy"), x.astype("i1"))
        for order in "CF":
            save(self.path("x.npy"), x, order)
            self.run_badly(*words, says="x.npy: " + says)
            self.run_badly("anti-quant", "int8.npy", "--scale", "one.npy", "--dtype=bfloat16", "--expect", "x.npy",
                           says="x.npy: " + says)
        for dtype in ("i2", "V2"):
            save(self.path("x.npy"), np.zeros(3, dtype), "C")
            self.run_badly(*words[:-1], says=f"x.npy: holds {dtype}; if its 16 bits are bfloat16, say --bf16 x\n")
        save(self.path("x.npy"), np.zeros((0, 4), f4))
        self.run_well(*words, "--axis=0")

    def test_scalar(self):
        words = self.save_inputs(x=np.ones((2, 2), f4), scale=np.ones((1, 2), f4), group_index=np.array([2]),
                                 offset=np.array(3, f4))
        self.run_well("group-quant", *words, "-o", "y.npy")
        self.assert_output("y.npy", np.full((2, 2), 4, "i1"))

    def test_scalars(self):
        """A number without dimensions, where one element is enough."""
        x = random_floats((4, 6), "f4")
        save(self.path("x.npy"), x)
        for scale, zero_point in ((f4(0.5), None), (f4(0.25), f4(3)), (np.float16(2), np.array(7, "u1"))):
            words = ["--scales", "s.npy"]
            np.save(self.path("s.npy"), scale)
            if zero_point is not None:
                np.save(self.path("z.npy"), zero_point)
                words += ["--zero-points", "z.npy"]
            self.run_well("quantize", "x.npy", *words, "-o", "y.npy")
            one = np.reshape(scale, 1)
            self.assert_output("y.npy", quantize(x, one, zero_point and np.reshape(zero_point, 1), 1, True, "int8"))
        weights, sums = random_integers((3, 5), "i1"), random_integers((3, 5), "i4")
        words = trans_quant_param(f4([0.75]), f4([-5]), 0)
        save(self.path("w.npy"), weights)
        save(self.path("sums.npy"), sums)
        np.save(self.path("words.npy"), words[0])
        np.save(self.path("offset.npy"), f4(-5))
        np.save(self.path("s.npy"), f4(0.75))
        for expected, *arguments in (
            (anti_quant(weights, f4([0.75]), f4([-5]), "float16"), "anti-quant", "w.npy", "--scale", "s.npy",
             "--offset", "offset.npy"),
            (dequant(sums, f4([0.75]), None, None, "float16"), "dequant", "sums.npy", "--weight-scale", "s.npy"),
            (requant(sums, words, None, "int8"), "requant", "sums.npy", "--words", "words.npy"),
            (requant(quant_matmul(weights, weights.T, None, None, None, None, "int32"), words, None, "int8"),
             "quant-matmul", "w.npy", "wt.npy", "--scale", "s.npy", "--offset", "offset.npy"),
        ):
            save(self.path("wt.npy"), weights.T)
            self.run_well(*arguments, "-o", "y.npy")
            self.assert_output("y.npy", expected)
        self.run_well("trans-quant-param", "s.npy", "--offset", "offset.npy", "-o", "y.npy")
        self.assert_output("y.npy", trans_quant_param(np.array([0.75], f4), np.array([-5], f4), 0).astype("i8"))

    def test_output_over_input(self):
        self.write("x.npy", npy_bytes(header(), self.data))
        self.run_well("quantize", "x.npy", "--scales", "one.npy", "-o", "x.npy")
        self.assert_output("x.npy", np.array([1, -2], "i1"))

    def test_permissions_are_those_of_new_files(self):
        self.write("x.npy", npy_bytes(header(), self.data))
        self.quantize(preexec_fn=lambda: os.umask(0o027))
        self.assertEqual(os.stat(self.path("y.npy")).st_mode & 0o777, 0o640)

    def test_pipes(self):
        for count in (0, 1, 16400, 100000):
            x = random_floats(count, "f4")
            save(self.path("x.npy"), x, "C")
            save(self.path("big.npy"), x.astype(">f4"), "C")
            for name in ("x.npy", "big.npy"):
                self.run_well("quantize", "/dev/stdin", "--scales", "one.npy", "-o", "y.npy", input=self.read(name))
                self.assert_output("y.npy", quantize(x, np.array([1], f4), None, 0, True, "int8"))
            for data, says in ((self.read("x.npy")[:-1], "truncated"), (self.read("x.npy") + b"\0", "too long")):
                if count > 0 or says == "too long":
                    self.run_badly("quantize", "/dev/stdin", "--scales", "one.npy", input=data, says=says)
        self.run_badly("quantize", "/dev/zero", "--scales", "one.npy", says="not a .npy file")
        promise = npy_bytes(header(shape="(1000000000000,)"))
        self.run_badly("quantize", "/dev/stdin", "--scales", "one.npy", input=promise, says="truncated")


class Archives(ToolTest):
    """.npz files: those of NumPy, of other writers of zip, and damaged ones."""

    def setUp(self):
        super().setUp()
        self.x = random_floats((5, 7), "f4")
        self.arrays = {"x": self.x, "s": np.array([0.5], f4), "f": np.asfortranarray(self.x), "b": self.x.astype(">f4")}
        self.y = quantize(self.x, self.arrays["s"], None, 1, True, "int8")
        np.savez(self.path("all.npz"), **self.arrays)
        np.savez(self.path("y.npz"), self.y)
        np.savez(self.path("s.npz"), scales=self.arrays["s"])

    def quantize(self, name, **options):
        out = self.run_well("quantize", name, "--scales", "s.npz", "--expect", "y.npz", **options)
        self.assertIn("y: all 35 elements equal\n", out)

    def test_members(self):
        for name in ("all.npz:x", "all.npz:f", "all.npz:b.npy", "./all.npz:x"):
            self.quantize(name)
        self.run_well("quantize", "all.npz:x", "--scales", "all.npz:s", "--expect", "y.npz:arr_0", "-o", "out.npy")
        self.assert_output("out.npy", self.y)
        np.savez(self.path("one.npz"), x=self.x)
        self.quantize("one.npz")
        self.quantize("/dev/stdin", input=self.read("one.npz"))
        self.quantize("-:x", input=self.read("all.npz"))
        os.rename(self.path("one.npz"), self.path("all.npz:x"))  # the whole name of a file wins
        os.rename(self.path("all.npz"), self.path("a:b:c.npz"))
        self.quantize("all.npz:x")
        self.quantize("a:b:c.npz:f")

    def test_alignment(self):
        for length in range(9):
            np.savez(self.path("one.npz"), **{"x" * (length + 1): self.x})
            self.quantize("one.npz")

    def zip(self, *members, comment=b"", **options):
        with zipfile.ZipFile(self.path("made.npz"), "w") as archive:
            for name, data in members:
                with archive.open(zipfile.ZipInfo(name), "w", **options) as file:
                    file.write(data)
            archive.comment = comment
        return self.read("made.npz")

    def test_other_writers(self):
        np.save(self.path("x.npy"), self.x)
        x = self.read("x.npy")
        for comment in (b"", b"PK\5\6" * 10, bytes(65535)):
            for force_zip64 in (False, True):
                data = self.zip(("notes.txt", b"no array"), ("x.npy", x), comment=comment, force_zip64=force_zip64)
                self.quantize("made.npz")
                self.quantize("made.npz:x.npy", input=data)
        # Writers that cannot seek put the sizes after the data. Then more members than the small directory can count.
        stream = io.BytesIO()
        stream.seekable = lambda: False
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("x.npy", x)
            for i in range(70000):
                archive.writestr(f"{i}", b"")
        self.write("many.npz", stream.getvalue())
        self.quantize("many.npz")
        # The directory's numbers in 64 bits.
        plain = self.zip(("x.npy", x))
        begin, size = len(plain) - 22 - 46 - 5, 46 + 5
        entry = bytearray(plain[begin : begin + size])
        wide = b"".join(n.to_bytes(8, "little") for n in (len(x), len(x), 0))
        entry[20:28], entry[42:46], entry[30:32] = b"\xff" * 8, b"\xff" * 4, (4 + 24 + 4).to_bytes(2, "little")
        entry += b"\2\0\0\0" + b"\1\0\x18\0" + wide
        end64 = (b"PK\6\6" + (44).to_bytes(8, "little") + bytes(28) + len(entry).to_bytes(8, "little")
                 + begin.to_bytes(8, "little"))
        locator = b"PK\6\7" + bytes(4) + (begin + len(entry)).to_bytes(8, "little") + bytes(4)
        end = b"PK\5\6" + bytes(8) + b"\xff" * 8 + bytes(2)
        self.write("wide.npz", plain[:begin] + entry + end64 + locator + end)
        self.quantize("wide.npz")

    def test_refusals(self):
        np.savez_compressed(self.path("small.npz"), x=self.x)
        np.savez(self.path("none.npz"))
        np.save(self.path("x.npy"), self.x)
        np.savez(self.path("wrong.npz"), x=self.x.astype("f8"))
        self.zip(("x.npy", b"no array"))
        encrypted = bytearray(self.read("s.npz"))
        encrypted[encrypted.rindex(b"PK\1\2") + 8] |= 1
        self.write("secret.npz", encrypted)
        for name, says in (
            ("small.npz", "small.npz: x is compressed; write it with numpy.savez, not numpy.savez_compressed\n"),
            ("all.npz", "all.npz: an archive of 4 arrays; name one behind a colon, such as :x\n"),
            ("all.npz:z", "all.npz:z: no such member; the first of 4 is x\n"),
            ("all.npz:", "all.npz:: no such member; "),
            ("none.npz", "none.npz: not a .npy file but a zip archive without one\n"),
            ("x.npy:x", "x.npy:x: is not an .npz archive, and has no member x\n"),
            ("missing.npz:x", "missing.npz:x: No such file"),
            ("wrong.npz", "elements of type '<f8'; "),
            ("made.npz", "made.npz: not a .npy file\n"),
            ("secret.npz", "secret.npz: scales is encrypted; "),
        ):
            self.run_badly("quantize", name, "--scales", "s.npz", says=says)
        for name in ("small.npz", "all.npz", "x.npy:x"):
            file, _, member = name.partition(":")
            self.run_badly("quantize", "-" + (member and ":" + member), "--scales", "s.npz", input=self.read(file))
        self.run_badly("quantize", "-:x", "--scales", "-:s", input=self.read("all.npz"), says="is named for x and for ")

    def test_damaged_archives(self):
        np.savez(self.path("one.npz"), x=np.ones((2, 3), f4))
        good = self.read("one.npz")
        for length in rng.integers(0, len(good), size=60):
            self.write("bad.npz", good[:length])
            self.run_badly("quantize", "bad.npz", "--scales", "s.npz", says="bad.npz: ")
        places = [*range(30), *range(len(good) - 100, len(good))]
        for _ in range(300):
            damaged = bytearray(good)
            for place in rng.choice(places, size=rng.integers(1, 4)):
                damaged[place] = rng.choice([0, 1, 127, 255, rng.integers(256)])
            self.write("bad.npz", damaged)
            done = self.run_tool("quantize", "bad.npz", "--scales", "s.npz")
            self.assertIn(done.returncode, (0, 2), bytes(damaged))
            self.assertEqual(done.err.count("\n"), 1 if done.returncode == 2 else 0)


class RawFiles(ToolTest):
    """Files of elements alone: file.bin:TYPE:SHAPE."""

    def setUp(self):
        super().setUp()
        self.x = random_floats((4, 16), "f2", special=0)
        self.x.tofile(self.path("x.bin"))
        np.array([0.5], f4).tofile(self.path("s.bin"))
        self.scales = ("--scales", "s.bin:float32:1")

    def test_types(self):
        y = quantize(self.x, np.array([0.5], f4), None, 1, True, "int8")
        y.tofile(self.path("y.bin"))
        self.x.astype(">f2").tofile(self.path("big.bin"))
        for name in ("x.bin:float16:4,16", "x.bin:f2:4,16", "big.bin:>f2:4,16"):
            out = self.run_well("quantize", name, *self.scales, "--expect", "y.bin:int8:4,16")
            self.assertIn("y: all 64 elements equal\n", out)
        file = name.split(":")[0]
        for pipe in ("-", "/dev/stdin"):
            self.run_well("quantize", f"{pipe}:>f2:4,16", *self.scales, "--expect", "y.bin:i1:4,16",
                          input=self.read(file))
        words = ("quantize", "x.bin:float16:4,16", *self.scales, "--div-mode=false", "--dtype=int4")
        self.run_well(*words, "-o", "y.npy")
        np.load(self.path("y.npy")).tofile(self.path("int4.bin"))
        for name in ("int4.bin:uint8:4,8", "int4.bin:int32:4,2", "int4.bin:quint4x2:4,2"):
            self.assertIn("y: all 64 elements equal\n", self.run_well(*words, "--expect", name))

    def test_bfloat16(self):
        bits = rng.integers(0, 2**16, 12).astype("u2").reshape(3, 4)
        save(self.path("x.npy"), bits)
        bits.tofile(self.path("x.bin"))
        self.run_well("quantize", "x.npy", *self.scales, "--bf16=x", "-o", "y.npy")
        for words in (("x.bin:bfloat16:3,4",), ("x.bin:bfloat16:3,4", "--bf16=x"), ("x.bin:u2:3,4", "--bf16=x")):
            self.run_well("quantize", *words, *self.scales, "--expect", "y.npy")
        self.run_badly("quantize", "x.bin:u2:3,4", *self.scales, says="x.bin:u2:3,4: holds u2; if its 16 bits are ")

    def test_archives_are_not_opened(self):
        self.write("x.bin", b"PK\3\4" + bytes(4))
        self.run_well("quantize", "x.bin:f4:2", *self.scales)
        self.run_well("quantize", "/dev/stdin:f4:2", *self.scales, input=self.read("x.bin"))

    def test_refusals(self):
        for name, says in (
            ("x.bin", "x.bin: not a .npy file\n"),
            ("x.bin:float16", "x.bin:float16: is not an .npz archive, and has no member float16\n"),
            ("x.bin:float8:4,16", "elements of type 'float8'; expected one of f4 f2 "),
            ("x.bin:f8:4,16", "elements of type 'f8'; expected one of f4 f2 "),
            ("x.bin::4,16", "elements of type ''; "),
            ("x.bin:" + "f" * 100 + ":4,16", "elements of type 'fffffffffffffff'; "),
            ("x.bin:float16:", "shape '': expected numbers, separated by commas\n"),
            ("x.bin:float16:4,", "shape '4,': expected numbers"),
            ("x.bin:float16:,4", "shape ',4': expected numbers"),
            ("x.bin:float16:4,,16", "shape '4,,16': expected numbers"),
            ("x.bin:float16:4x16", "shape '4x16': expected numbers"),
            ("x.bin:float16:-4,-16", "shape '-4,-16': expected numbers"),
            ("x.bin:float16:4:16", "shape '4:16': expected numbers"),
            ("x.bin:float16:" + ",".join("1" * 9), "more than 8 dimensions\n"),
            (f"x.bin:float16:{2**64}", "shape is too large: "),
            (f"x.bin:float16:{2**32},{2**32}", "shape is too large: "),
            ("x.bin:float16:4,17", "truncated: the shape promises 136 bytes of data, the file has 128\n"),
            ("x.bin:float16:4,15", "too long: the shape promises 120 bytes of data, the file has 128\n"),
            ("x.bin:float16:1000000000,1000000000", "truncated: the shape promises "),
            ("/dev/zero:float16:4,16", "too long: the shape promises 128 bytes of data, the file has "),
            ("none.bin:float16:4,16", "none.bin:float16:4,16: No such file"),
        ):
            self.run_badly("quantize", name, *self.scales, says=says)


class Comparing(ToolTest):
    def setUp(self):
        super().setUp()
        self.x = random_floats((40, 24), "f2", special=0)
        save(self.path("x.npy"), self.x, "C")
        save(self.path("one.npy"), np.array([1], f4), "C")
        self.y = quantize(self.x, np.array([1], f4), None, 0, True, "int8")

    def quantize(self, *options, status=0):
        return self.run_well("quantize", "x.npy", "--scales", "one.npy", "--expect", "expected.npy", *options,
                             status=status)

    def test_equal(self):
        for order in "CF":
            save(self.path("expected.npy"), self.y, order)
            self.assertIn("y: all 960 elements equal\n", self.quantize())
            self.assertEqual(self.quantize("--quiet"), "")

    def indices(self, text):
        """The indices in a report's list, and how many more the list mentions."""
        more = re.search(r", and (\d+) more\Z", text)
        text = re.sub(r", and \d+ more\Z| \(the (first|last) \d+\)\Z", "", text)
        found = []
        for part in text.split(", "):
            if steps := re.fullmatch(r"(\d+)\.\.(\d+) in steps of (\d+)", part):
                found += range(int(steps[1]), int(steps[2]) + 1, int(steps[3]))
            else:
                ends = [int(end) for end in part.split("..")]
                found += range(ends[0], ends[-1] + 1)
        return found, int(more[1]) if more else 0

    def check_hits(self, line, name, extent, hit):
        hit = sorted(set(int(index) for index in hit))
        if len(hit) == extent:
            self.assertEqual(line, f"  {name}: all {extent} hit")
            return
        start = f"  {name}: {len(hit)} of {extent} hit: "
        self.assertEqual(line[: len(start)], start)
        rest = line[len(start) :]
        if rest.startswith("all but "):
            self.assertGreater(2 * len(hit), extent)
            rest, hit = rest[len("all but ") :], sorted(set(range(extent)) - set(hit))
        found, more = self.indices(rest)
        self.assertEqual(found, hit[: len(found)], line)
        self.assertEqual(len(found) + more, len(hit), line)

    def check_report(self, lines, ours, theirs, max_diffs=10, tolerance=0):
        """The full report about a 2-D y of small integers, against NumPy."""
        apart = theirs.astype("i8") - ours
        hit = np.abs(apart) > tolerance
        differ = np.count_nonzero(hit)
        words = f"y: {differ} of {ours.size} elements {'differs' if differ == 1 else 'differ'}"
        words += f" by more than {tolerance} (" if tolerance else " ("
        self.assertEqual(lines[0][: len(words)], words)
        percent, least, most = re.search(r"\(([\d.]+) %\), by ([+-]\d+)(?:\.\.([+-]\d+))? \(file - npuquant\)",
                                         lines.pop(0)).groups()
        self.assertTrue(100 * differ / ours.size * 0.9 - 1 < float(percent) <= 100 * differ / ours.size * 1.05)
        self.assertEqual((int(least), int(most or least)), (apart[hit].min(), apart[hit].max()))
        bars, counted = 0, 0
        while bar := re.fullmatch(r" +([+-]\d+)(?:\.\.([+-]\d+))?  +(\d+)  #+", lines[0]):
            least, most = int(bar[1]), int(bar[2] or bar[1])
            inside = apart[hit & (least <= apart) & (apart <= most)]
            self.assertEqual((inside.size, inside.min(), inside.max()), (int(bar[3]), least, most))
            bars, counted = bars + 1, counted + inside.size
            lines.pop(0)
        self.assertIn((bars, counted), [(bars, differ) for bars in range(2, 9)] + [(0, 0)])
        if len(ours) > 1:
            self.check_hits(lines.pop(0), "rows", ours.shape[0], np.nonzero(hit)[0])
        self.check_hits(lines.pop(0), "columns", ours.shape[1], np.nonzero(hit)[1])
        shown = np.argwhere(hit)[:max_diffs]
        self.assertEqual(lines[: len(shown)], [f"  [{row}, {column}]: npuquant {ours[row, column]}, "
                                               f"file {theirs[row, column]}" for row, column in shown])
        more = [f"  ... and {differ - len(shown)} more (see --max-diffs)"] if differ > len(shown) > 0 else []
        rest = lines[len(shown) :]
        if not tolerance and len(rest) > len(more):  # test_tool_causes.py checks this line
            self.assertRegex(rest[len(more)], r"^  Admissible for the device's vector division: [1-9]")
            del rest[len(more) :]
        self.assertEqual(rest, more)

    def test_different(self):
        for count in (1, 2, 13, 200, 959, 960):
            for order in "CF":
                with self.subTest(count=count, order=order):
                    theirs = self.y.copy()
                    places = rng.choice(960, size=count, replace=False)
                    theirs.flat[places] ^= rng.choice([1, 3, 128, 255], size=count).astype("u1").view("i1")
                    save(self.path("expected.npy"), theirs, order)
                    max_diffs = int(rng.choice([0, 1, 5, 10, 1000]))
                    out = self.quantize("-o", "y.npy", "--quiet", "--max-diffs", max_diffs, status=1)
                    self.check_report(out.splitlines(), self.y, theirs, max_diffs)
                    self.assert_output("y.npy", self.y)  # written all the same

    def compare_zeros(self, theirs, *options, status=1):
        save(self.path("x.npy"), np.zeros(theirs.shape, f4), "C")
        save(self.path("expected.npy"), theirs)
        return self.quantize(*options, "--quiet", status=status).splitlines()

    def test_where(self):
        def hit(rows, columns, shape=(512, 1024), value=1):
            theirs = np.zeros(shape, "i1")
            theirs[rows, columns] = value
            return self.compare_zeros(theirs, "--max-diffs", 0)

        everything = slice(None)
        self.assertEqual(hit([17, 400], everything), [
            "y: 2048 of 524288 elements differ (0.39 %), by +1 (file - npuquant)", "  rows: 2 of 512 hit: 17, 400",
            "  columns: all 1024 hit"])
        self.assertEqual(hit(everything, slice(960, None))[1:3],
                         ["  rows: all 512 hit", "  columns: 64 of 1024 hit: 960..1023 (the last 64)"])
        self.assertEqual(hit(everything, slice(3, None, 8), value=-1)[2],
                         "  columns: 128 of 1024 hit: 3..1019 in steps of 8")
        self.assertEqual(hit(everything, slice(None, None, 2))[2],
                         "  columns: 512 of 1024 hit: 0..1022 in steps of 2")
        self.assertEqual(hit(slice(128, 256), 7)[1:3],
                         ["  rows: 128 of 512 hit: 128..255", "  columns: 1 of 1024 hit: 7"])
        self.assertEqual(hit(slice(0, 510), everything)[1], "  rows: 510 of 512 hit: all but 510..511 (the last 2)")
        self.assertEqual(hit([0, 1, 5], 0)[1], "  rows: 3 of 512 hit: 0..1, 5")
        self.assertEqual(hit(everything, slice(None, None, 3), shape=(1, 9))[1],
                         "  columns: 3 of 9 hit: 0..6 in steps of 3")
        self.assertEqual(hit(everything, [0, 1, 2, 3], shape=(1, 9))[1], "  columns: 4 of 9 hit: 0..3 (the first 4)")
        places = [1, 4, 5, 8, 11, 14, 17, 20, 23, 25, 27]
        self.assertEqual(hit(places, 0, shape=(64, 8))[1], "  rows: 11 of 64 hit: 1, 4..5, 8, 11, 14, 17, 20, 23, and "
                                                           "2 more")

    def test_dimensions(self):
        theirs = np.zeros((4, 3, 2, 5), "i1")
        theirs[:, 1, 1, 2] = 4
        self.assertEqual(self.compare_zeros(theirs)[:5], [
            "y: 4 of 120 elements differ (3.3 %), by +4 (file - npuquant)", "  rows: 4 of 24 hit: 3..21 in steps of 6",
            "  dimension 1: 1 of 3 hit: 1", "  dimension 2: 1 of 2 hit: 1", "  columns: 1 of 5 hit: 2"])
        self.assertEqual(self.compare_zeros(np.array([0, 0, 7], "i1")), [
            "y: 1 of 3 elements differs (33 %), by +7 (file - npuquant)", "  elements: 1 of 3 hit: 2",
            "  [2]: npuquant 0, file 7"])
        self.assertEqual(self.compare_zeros(np.array([-7], "i1"), "--max-diffs", 1), [
            "y: 1 of 1 element differs (100 %), by -7 (file - npuquant)", "  [0]: npuquant 0, file -7"])

    def test_histogram(self):
        """Bars cover one or more powers of 2: the test wants few bars, and both ends."""
        theirs = np.zeros((1, 300), "i4")
        theirs[0, :7] = 1, 2, 2, 3, -1, 127, -128
        half = "#" * 20
        self.assertEqual(self.compare_zeros(theirs, "--dtype", "int32")[1:6], [
            f"    -128  1  {half[:14]}", f"      -1  1  {half[:14]}", f"      +1  1  {half[:14]}",
            f"  +2..+3  3  {half}{half}", f"    +127  1  {half[:14]}"])
        theirs[0, 7:] = rng.integers(-(2**31), 2**31, size=293)
        theirs[0, -2:] = -(2**31), 2**31 - 1
        lines = self.compare_zeros(theirs, "--dtype", "int32")
        self.assertIn("by -2147483648..+2147483647 ", lines[0])
        self.assertLessEqual(sum(line.endswith("#") for line in lines), 8)
        self.check_report(lines, np.zeros(theirs.shape, "i4"), theirs)

    def test_tolerance(self):
        theirs = self.y.copy()
        theirs[theirs >= 0] -= 1
        theirs[3, 5:8] = np.where(self.y[3, 5:8] < 0, self.y[3, 5:8] + 9, self.y[3, 5:8] - 9)
        save(self.path("expected.npy"), theirs)
        apart = theirs.astype(int) - self.y
        lines = self.quantize("--max-diff", 1, "--quiet", status=1).splitlines()
        self.assertIn(f"; {np.count_nonzero(np.abs(apart) == 1)} more by no more than 1", lines[0])
        self.check_report(lines, self.y, theirs, tolerance=1)
        self.check_report(self.quantize("--quiet", status=1).splitlines(), self.y, theirs)
        self.assertEqual(self.quantize("--max-diff", 9, "--quiet"), "")
        apart = apart[apart != 0]
        says = self.quantize("--max-diff", 9).splitlines()[0]
        self.assertRegex(says, rf"\Ay: all 960 elements within 9: {apart.size} differ \([\d.]+ %\), by ")
        self.assertTrue(says.endswith(f", by {apart.min():+}..{apart.max():+} (file - npuquant)"), says)

    def test_nibbles(self):
        y = quantize(self.x, np.array([1], f4), None, 0, False, "quint4x2")
        words = y.view(np.uint32).copy()
        words[2, 1] ^= 0x00500000  # element 8 + 5 of row 2
        words[39, 2] ^= 0x10000001
        save(self.path("expected.npy"), words.view(np.int32))
        out = self.quantize("--div-mode", "false", "--dtype", "quint4x2", "--quiet", status=1)

        def nibbles(words):
            values = (words.view(np.uint32)[..., None] >> np.arange(0, 32, 4, dtype="u4") & 15).astype("i8")
            return np.where(values > 7, values - 16, values).reshape(len(words), -1)

        self.check_report(out.splitlines(), nibbles(y), nibbles(words))

    def test_ulps(self):
        y, scale, offset = dynamic(self.x, None, None, False, "int8")
        save(self.path("y.npy"), y)
        near = scale.view(np.uint32).copy()
        near[[3, 7]] += np.array([2, 5], np.uint32)
        near[20] -= 3
        near = near.view(f4)
        save(self.path("scale.npy"), near)
        save(self.path("offset.npy"), offset)
        words = ("dynamic-quant-asymmetric", "x.npy", "--expect", "y.npy", "--expect-scale", "scale.npy",
                 "--expect-offset", "offset.npy", "--max-ulp")

        def element(i, ulps):
            return (f"  [{i}]: npuquant {float('%.9g' % scale[i]):.9g} (0x{scale.view('u4')[i]:08X}), "
                    f"file {float('%.9g' % near[i]):.9g} (0x{near.view('u4')[i]:08X}), {ulps:+} ulp")

        self.assertEqual(self.run_well(*words, 5, "--quiet"), "")
        self.assertIn("scale: all 40 elements within 5 ulp: 3 differ (7.5 %), by -3..+5 ulp (file - npuquant)\n",
                      self.run_well(*words, 5))
        self.assertEqual(self.run_well(*words, 4, "--quiet", status=1).splitlines(), [
            "scale: 1 of 40 elements differs by more than 4 ulp (2.5 %), by +5 ulp (file - npuquant); "
            "2 more by no more than 4", "  rows: 1 of 40 hit: 7", element(7, 5)])
        lines = self.run_well(*words, 0, "--quiet", status=1).splitlines()
        self.assertEqual(lines[0], "scale: 3 of 40 elements differ (7.5 %), by -3..+5 ulp (file - npuquant)")
        self.assertEqual(lines[4:], ["  rows: 3 of 40 hit: 3, 7, 20", element(3, 2), element(7, 5), element(20, -3)])

    def test_rows_of_scales(self):
        """A report places a scale of rows by its two dimensions and by the row."""
        x = random_floats((3, 4, 8), "f2", special=0)
        save(self.path("x.npy"), x)
        scale = dynamic(x, None, None, False, "int8")[1]
        scale.view("u4")[2, 1] += 1
        save(self.path("scale.npy"), scale)
        lines = self.run_well("dynamic-quant-asymmetric", "x.npy", "--expect-scale", "scale.npy", "-q",
                              status=1).splitlines()
        self.assertEqual(lines[1:4], ["  rows: 1 of 12 hit: 9", "  dimension 0: 1 of 3 hit: 2",
                                      "  dimension 1: 1 of 4 hit: 1"])
        self.assertEqual(lines[4][:8], "  [2, 1]")

    def test_nan_and_infinity(self):
        x = np.array([[1, 2], [np.nan, 1], [np.inf, 1]], "f2")
        save(self.path("x.npy"), x)
        _, scale, offset = dynamic(x, None, None, False, "int8")
        offset.view(np.uint32)[1] = 0xFFC12345  # a NaN is a NaN
        save(self.path("offset.npy"), offset)
        save(self.path("scale.npy"), np.where(np.isinf(scale), np.finfo(f4).max, scale))
        self.run_well("dynamic-quant-asymmetric", "x.npy", "--expect-offset", "offset.npy")
        out = self.run_well("dynamic-quant-asymmetric", "x.npy", "--expect-scale", "scale.npy", "--max-ulp", 1000,
                            "--quiet", status=1)
        self.assertEqual(out, "scale: 1 of 3 elements differs by more than 1000 ulp (33 %); NaN or an infinity against "
                              "another value in 1\n  rows: 1 of 3 hit: 2\n"
                              "  [2]: npuquant inf (0x7F800000), file 3.40282347e+38 (0x7F7FFFFF)\n")

    def test_float_results(self):
        """Bits differ; steps of the type count the distance."""
        sums = np.array([[-3, -2, -1, 0], [1, 2, 3, 100000]], "i4")
        save(self.path("sums.npy"), sums, "C")
        for dtype, width, largest in (("float16", 16, "inf (0x7C00)"), ("bfloat16", 16, "9.984e+04 (0x47C3)"),
                                      ("float32", 32, "100000 (0x47C35000)")):
            with self.subTest(dtype):
                y = dequant(sums, f4([1]), None, None, dtype)
                theirs = y.view(f"u{width // 8}").copy()
                words = ("dequant", "sums.npy", "--weight-scale", "one.npy", "--dtype", dtype, "--expect", "e.npy")
                save(self.path("e.npy"), theirs.view(y.dtype))
                self.assertIn("y: all 8 elements equal\n", self.run_well(*words))
                theirs[0, 0] += 3  # further from 0
                theirs[1, 1] -= 1
                save(self.path("e.npy"), theirs.view(y.dtype))
                lines = self.run_well(*words, "-q", status=1).splitlines()
                self.assertEqual(lines[0], "y: 2 of 8 elements differ (25 %), by -3..-1 ulp (file - npuquant)")
                self.assertRegex(lines[-2], rf"\A  \[0, 0\]: npuquant -3 \(0x{theirs[0, 0] - 3:X}\), "
                                            rf"file -3\.0\d+ \(0x{theirs[0, 0]:X}\), -3 ulp\Z")
                self.assertIn("y: all 8 elements within 3 ulp: 2 differ (25 %), by -3..-1 ulp (file - npuquant)\n",
                              self.run_well(*words, "--max-ulp", 3))
                lines = self.run_well(*words, "-q", "--max-ulp", 2, status=1).splitlines()
                self.assertEqual(lines[0], "y: 1 of 8 elements differs by more than 2 ulp (12 %), by -3 ulp (file - "
                                           "npuquant); 1 more by no more than 2")
                theirs = y.view(f"u{width // 8}").copy()
                theirs[0, 3] |= 1 << width - 1  # -0
                theirs[1, 3] = theirs[1, 0] = round_to(f4([-np.inf]), dtype).view(theirs.dtype)[0]
                save(self.path("e.npy"), theirs.view(y.dtype))
                self.assertEqual(self.run_well(*words, "-q", status=1).splitlines(), [
                    "y: 3 of 8 elements differ (37 %); NaN or an infinity against another value in 2; zeros of the "
                    "other sign in 1", "  rows: all 2 hit", "  columns: 2 of 4 hit: 0, 3",
                    f"  [0, 3]: npuquant 0 (0x{0:0{width // 4}X}), file -0 (0x{1 << width - 1:X})",
                    f"  [1, 0]: npuquant 1 (0x{y.view(theirs.dtype)[1, 0]:0{width // 4}X}), "
                    f"file -inf (0x{theirs[1, 0]:X})",
                    f"  [1, 3]: npuquant {largest}, file -inf (0x{theirs[1, 3]:X})"])
                lines = self.run_well(*words, "-q", "--max-ulp", 1, status=1).splitlines()
                self.assertEqual(lines[0], "y: 2 of 8 elements differ by more than 1 ulp (25 %); NaN or an infinity "
                                           "against another value in 2; 1 more by no more than 1")

    def test_float_values(self):
        """A report shows the value of every float16 and bfloat16."""
        save(self.path("x.npy"), np.zeros((1, 2**16), "i1"), "C")
        bits = np.arange(2**16, dtype="u2").reshape(1, -1)
        for dtype, values in (("float16", bits.view("f2").astype("f8")),
                              ("bfloat16", (bits.astype("u4") << 16).view("f4").astype("f8"))):
            save(self.path("e.npy"), bits.view("f2" if dtype == "float16" else "u2"), "C")
            out = self.run_well("anti-quant", "x.npy", "--scale", "one.npy", "--dtype", dtype, "--expect", "e.npy",
                                "-q", "--max-diffs", 2**16, status=1)
            shown = re.findall(r"file (\S+) \(0x(....)\)", out)
            self.assertEqual([int(text, 16) for _, text in shown], list(range(1, 2**16)))
            shown = np.array([float(text) for text, _ in shown])
            np.testing.assert_allclose(shown, values[0, 1:], rtol=5e-5 if dtype == "float16" else 5e-4, atol=0)

    def test_nan_in_results(self):
        """Results have one NaN: another NaN differs."""
        save(self.path("x.npy"), np.array([[1, 1]], "i1"), "C")
        save(self.path("nan.npy"), np.array([np.nan], f4))
        for dtype, ours, theirs in (("float16", 0x7E00, 0x7E01), ("bfloat16", 0x7FC0, 0xFFC0)):
            words = ("anti-quant", "x.npy", "--scale", "nan.npy", "--dtype", dtype, "--expect", "e.npy", "-q")
            stored = "f2" if dtype == "float16" else "u2"
            save(self.path("e.npy"), np.array([[ours, ours]], "u2").view(stored))
            self.run_well(*words)
            save(self.path("e.npy"), np.array([[ours, theirs]], "u2").view(stored))
            lines = self.run_well(*words, "--max-ulp", 100000, status=1).splitlines()
            self.assertEqual(lines[0], "y: 1 of 2 elements differs by more than 100000 ulp (50 %); NaN or an infinity "
                                       "against another value in 1")

    def test_planted_differences(self):
        """Every operator of a quantised layer equals its own result, and differs from one with a changed bit."""
        sums, weights = random_integers((20, 24), "i4"), random_integers((24, 24), "i1")
        save(self.path("sums.npy"), sums)
        save(self.path("w.npy"), weights)
        save(self.path("words.npy"), random_words(24, "int8"))
        for words, columns in (
            (("dynamic-quant", "x.npy"), 24),
            (("dynamic-quant", "x.npy", "--dtype", "quint4x2"), 3),
            (("dynamic-quant", "x.npy", "--dtype", "uint8"), 24),
            (("dynamic-block-quant", "x.npy", "--block", "10", "--min-scale", "0.5"), 24),
            (("anti-quant", "w.npy", "--scale", "one.npy"), 24),
            (("anti-quant", "sums.npy", "--scale", "one.npy", "--dtype", "bfloat16"), 192),
            (("dequant", "sums.npy", "--weight-scale", "one.npy", "--dtype", "float32"), 24),
            (("requant", "sums.npy", "--words", "words.npy"), 24),
            (("requant", "sums.npy", "--words", "words.npy", "--dtype", "float16"), 24),
            (("quant-matmul", "w.npy", "w.npy", "--dtype", "int32"), 24),
            (("quant-matmul", "w.npy", "w.npy", "--scale", "words.npy"), 24),
        ):
            with self.subTest(words):
                self.run_well(*words, "-o", "y.npy")
                self.assertIn("elements equal\n", self.run_well(*words, "--expect", "y.npy"))
                y = np.load(self.path("y.npy"))
                self.assertEqual(y.shape[1], columns)
                bits = y.view(f"u{y.dtype.itemsize}")
                place = int(rng.integers(len(y))), int(rng.integers(columns))
                bits[place] ^= bits.dtype.type(1 << int(rng.integers(8 * y.dtype.itemsize)))
                save(self.path("planted.npy"), y)
                out = self.run_well(*words, "--expect", "planted.npy", status=1)
                self.assertRegex(out, r"\Ay: 1 of \d+ elements differs ")
                self.assertIn(f"\n  rows: 1 of {len(y)} hit: {place[0]}\n", out)

    def test_scales_of_dynamic_quant(self):
        """Scales are compared as dynamic_quant's: as values, in steps."""
        scale = dynamic_quant(self.x, None, None, False, "product", "int8")[1]
        scale.view("u4")[5] += 2
        save(self.path("scale.npy"), scale)
        words = ("dynamic-quant", "x.npy", "--expect-scale", "scale.npy", "-q")
        self.run_well(*words, "--max-ulp", 2)
        lines = self.run_well(*words, status=1).splitlines()
        self.assertEqual(lines[0], "scale: 1 of 40 elements differs (2.5 %), by +2 ulp (file - npuquant)")

    def test_blocks(self):
        """A row's last block may be short; the defaults are the device's; a row without columns has no block."""
        wide = random_floats((3, 304), "f2")
        save(self.path("wide.npy"), wide)
        for words, block, least in (([], 128, 0), (["--block=8", "--min-scale", "2.5e0"], 8, 2.5),
                                    (["--block", 2**62], 304, 0)):
            y, scale = dynamic_block_quant(wide, block, least, "int8")
            self.run_well("dynamic-block-quant", "wide.npy", "-o", "y.npy", "--scale-output", "s.npy", *words)
            np.testing.assert_array_equal(np.load(self.path("y.npy")), y)
            np.testing.assert_array_equal(np.load(self.path("s.npy")), scale)
        self.run_badly("dynamic-block-quant", "wide.npy", "--dtype=int4", "--block=4", says="block_quant: block: is 4; ")
        save(self.path("none.npy"), np.zeros((3, 0), f4))
        self.run_well("dynamic-block-quant", "none.npy", "-o", "y.npy", "--scale-output", "s.npy")
        self.assertEqual(np.load(self.path("s.npy")).shape, (3, 0))

    def test_words(self):
        scale = np.array([1, 2, 3], f4)
        save(self.path("scale.npy"), scale)
        words = trans_quant_param(scale, None, 0)
        for dtype in ("u8", "i8"):
            save(self.path("expected.npy"), words.astype(dtype))
            self.run_well("trans-quant-param", "scale.npy", "--expect", "expected.npy")
        words[0] ^= np.uint64(3 << 37)
        words[1] |= 1 << 63
        words[2] ^= np.uint64(1 << 45 | 1 << 31)
        save(self.path("expected.npy"), words)
        out = self.run_well("trans-quant-param", "scale.npy", "--expect", "expected.npy", "--quiet", status=1)
        self.assertEqual(out, "y: 3 of 3 elements differ (100 %): the scale in 1, the offset in 2, other bits in 1\n"
                              "  elements: all 3 hit\n"
                              "  [0]: npuquant 0x000040003F800000 (scale 1, offset 0), "
                              "file 0x000040603F800000 (scale 1, offset 3)\n"
                              "  [1]: npuquant 0x0000400040000000 (scale 2, offset 0), "
                              "file 0x8000400040000000 (scale 2, offset 0)\n"
                              "  [2]: npuquant 0x0000400040400000 (scale 3, offset 0), "
                              "file 0x00006000C0400000 (scale -3, offset -256)\n")

    def test_shapes_of_parameters(self):
        """Dimensions of extent 1 do not count, and flat files fit."""
        x = random_floats((3, 4, 8), "f4")
        save(self.path("x.npy"), x)
        words = ("dynamic-quant-asymmetric", "x.npy")
        self.run_well(*words, "--scale-output", "scale.npy", "--offset-output", "offset.npy")
        for name in ("scale", "offset"):
            ours = np.load(self.path(f"{name}.npy"))
            for shape in ((3, 4), (3, 4, 1), (1, 3, 4), (3, 1, 1, 4), (12,), (12, 1), (1, 12)):
                for order in "CF":
                    theirs = ours.reshape(shape)
                    save(self.path("e.npy"), theirs, order)
                    expect = (*words, f"--expect-{name}", "e.npy")
                    self.assertIn(f"{name}: all 12 elements equal\n", self.run_well(*expect))
                    theirs = theirs.copy()
                    theirs.reshape(-1)[7] = -12345.5
                    save(self.path("e.npy"), theirs, order)
                    self.assertIn("\n  [1, 3]: npuquant ", self.run_well(*expect, status=1))
                    self.assertIn('"results"', self.run_well("diagnose", *expect, "--json", status=1))
            for shape in ((4, 3), (6, 2), (3, 4, 2), (24,), (3, 2, 2), (), (0,)):
                save(self.path("e.npy"), np.resize(ours, shape))
                self.run_badly(*words, f"--expect-{name}", "e.npy", says=f"expected f4 [3, 4] to compare with {name}, ")
        for shape in ((), (1,), (1, 1)):  # of a tensor
            save(self.path("x.npy"), x)
            pertensor = ("dynamic-quant", "x.npy", "--quant-mode=pertensor")
            self.run_well(*pertensor, "--scale-output", "scale.npy")
            save(self.path("e.npy"), np.load(self.path("scale.npy")).reshape(shape))
            self.run_well(*pertensor, "--expect-scale", "e.npy")
        save(self.path("x.npy"), x[:0])
        for shape in ((0, 4), (0,), (1, 0, 4), (0, 7, 1)):
            save(self.path("e.npy"), np.zeros(shape, f4))
            if shape[-1] != 1:
                self.run_well("dynamic-quant", "x.npy", "--expect-scale", "e.npy")
            else:
                self.run_badly("dynamic-quant", "x.npy", "--expect-scale", "e.npy", says="holds f4 [0, 7, 1]; ")
        save(self.path("e.npy"), np.zeros((0, 4, 8, 1), "i1"))
        self.run_badly("dynamic-quant", "x.npy", "--expect", "e.npy",
                       says="holds i1 [0, 4, 8, 1]; expected i1 [0, 4, 8] ")

    def test_shapes_of_scales(self):
        sums = random_integers((2, 3, 6), "i4")
        save(self.path("sums.npy"), sums)
        save(self.path("x.npy"), sums.astype(f4))
        six, rows = (random_floats(n, "f4", special=0) for n in (6, (2, 3)))
        save(self.path("six.npy"), six)
        save(self.path("rows.npy"), rows)
        dequant = ("dequant", "sums.npy", "--weight-scale")
        quantize = ("quantize", "x.npy", "--axis=2", "--scales")
        for words, array, name in (
            (dequant, six, "six.npy"),
            ((*dequant, "six.npy", "--activation-scale"), rows, "rows.npy"),
            (quantize, six, "six.npy"),
            ((*quantize, "six.npy", "--zero-points"), six, "six.npy"),
            (("dynamic-quant", "x.npy", "--smooth-scales"), six, "six.npy"),
        ):
            self.run_well(*words, name, "-o", "y.npy")
            for shape in ((6, 1), (1, 6), (1, 6, 1), (6,)):
                save(self.path("s.npy"), array.reshape(shape))
                self.assertIn("elements equal\n", self.run_well(*words, "s.npy", "--expect", "y.npy"))
            save(self.path("s.npy"), array.reshape(3, 2))
            self.run_badly(*words, "s.npy")
        save(self.path("s.npy"), six.reshape(6, 1))  # has a meaning there
        save(self.path("w.npy"), random_integers((2, 6), "i1"))
        self.run_badly("anti-quant", "w.npy", "--scale", "s.npy", says="scale: dimension ")
        self.run_badly(*quantize, "s.npy", "--div-mode=false",
                       says="scales: has 2 dimensions; expected 1, or as many as x, which has 3, as div_mode is false\n")

    def test_what_cannot_be_compared(self):
        for expected, holds, hint in ((self.y.astype("u1"), "u1 [40, 24]", "; if the file has uint8, say --dtype uint8"),
                                      (self.y.astype("i4"), "i4 [40, 24]", "; if the file has int32, say --dtype int32"),
                                      (self.y[:-1], "i1 [39, 24]", ""), (self.y.reshape(-1), "i1 [960]", ""),
                                      (self.y.astype("u2"), "u2 [40, 24]", ""), (self.y[0, 0], "i1 []", "")):
            save(self.path("expected.npy"), expected)
            self.run_badly("quantize", "x.npy", "--scales", "one.npy", "--expect", "expected.npy", "-o", "y.npy",
                           says=f"expected.npy: holds {holds}; expected i1 [40, 24] to compare with y, which is int8{hint}\n")
        for dtype, expected in (("float16", "u2"), ("bfloat16", "f2"), ("float32", "f2"), ("float16", "f4")):
            save(self.path("expected.npy"), self.y.astype(expected))
            fitting = {"u2": "bfloat16", "f2": "float16", "f4": "float32"}[expected]
            self.run_well("quantize", "x.npy", "--scales", "one.npy", "-o", "values.npy")
            self.run_badly("anti-quant", "values.npy", "--scale", "one.npy", "--dtype", dtype, "--expect", "expected.npy",
                           says=f", which is {dtype}; if the file has {fitting}, say --dtype {fitting}\n")
        self.run_badly("quantize", "x.npy", "--scales", "one.npy", "--expect", "x.npy", "--dtype", "quint4x2",
                       "--div-mode", "false", says="x.npy: holds f2 [40, 24]; expected i4 [40, 3] to compare with y, "
                                                   "which is quint4x2\n")
        for command in ("dynamic-quant", "dynamic-block-quant"):
            for dtype, holds, other, expected in (("int8", "i1", "uint8", "u1"), ("uint8", "u1", "int8", "i1")):
                self.run_well(command, "x.npy", "--dtype", dtype, "-o", "y.npy")
                self.run_badly(command, "x.npy", "--dtype", other, "--expect", "y.npy",
                               says=f"y.npy: holds {holds} [40, 24]; expected {expected} [40, 24] to compare with y, "
                                    f"which is {other}; if the file has {dtype}, say --dtype {dtype}\n")

    def test_unnamed_int4(self):
        save(self.path("packed.npy"), np.zeros((40, 3), "i4"))
        hint = "; if the file has words of eight int4, say --dtype quint4x2"
        for words, says in ((("dynamic-quant", "x.npy"), hint + "\n"),
                            (("diagnose", "dynamic-quant-asymmetric", "x.npy"), hint + "\n"),
                            (("quantize", "x.npy", "--scales", "one.npy"), hint + " --div-mode false\n")):
            self.run_badly(*words, "--expect", "packed.npy",
                           says=f"holds i4 [40, 3]; expected i1 [40, 24] to compare with y, which is int8{says}")
        # The hint does not help these.
        save(self.path("sums.npy"), np.zeros((40, 24), "i4"))
        save(self.path("words.npy"), np.full(1, 1 << 46))
        save(self.path("square.npy"), np.zeros((3, 3), "i4"))
        for words in (("requant", "sums.npy", "--words", "words.npy", "--expect", "packed.npy"),
                      ("dynamic-quant", "x.npy", "--dtype", "int4", "--expect", "square.npy"),
                      ("dynamic-quant", "x.npy", "--expect", "square.npy"),
                      ("dynamic-quant", "x.npy", "--expect-scale", "packed.npy")):
            self.assertRegex(self.run_badly(*words), r"expected .*, which is \w+\n\Z")

    def test_layouts_of_int4(self):
        """Words, bytes with two values, and one value in each byte."""
        for shape in ((40, 24), (2, 3, 16), (8,)):
            x = random_floats(shape, "f2", special=0)
            save(self.path("x.npy"), x)
            words = ("quantize", "x.npy", "--scales", "one.npy", "--dtype=int4", "--div-mode=false")
            spread = quantize(x, np.array([1], f4), None, -1, False, "int8").clip(-8, 7)
            nibbles = spread & 15
            packed = (nibbles[..., ::2] | nibbles[..., 1::2] << 4).astype("u1")
            self.run_well(*words, "-o", "y.npy")
            self.assertEqual(packed.tobytes(), np.load(self.path("y.npy")).astype("<i4").tobytes())
            for theirs in (packed, packed.view("i1"), spread):
                for order in "CF":
                    save(self.path("e.npy"), theirs, order)
                    self.assertIn(f"y: all {x.size} elements equal\n", self.run_well(*words, "--expect", "e.npy"))
                    planted = theirs.copy()
                    planted[..., 3:4] ^= 1
                    save(self.path("e.npy"), planted, order)
                    out = self.run_well(*words, "--expect", "e.npy", status=1)
                    self.assertRegex(out, rf"\Ay: {x.size // shape[-1]} of {x.size} elements differ")
                    column = 3 if theirs is spread else 6
                    self.assertIn(f"{[0] * (len(shape) - 1) + [column]}: npuquant ", out)
            self.run_well("diagnose", *words, "--expect", "e.npy", status=1)
        spread = np.zeros((40, 24), "i1")
        save(self.path("x.npy"), spread.astype(f4))
        for value in (-9, 8, 127):
            spread[3, 4] = value
            for order in "CF":
                save(self.path("e.npy"), spread, order)
                self.run_badly(*words, "--expect", "e.npy",
                               says=f"e.npy: [3, 4] is {value}, which no int4 is: these are -8..7\n")
        for shape, dtype in (((40, 24), "u1"), ((40, 13), "i1"), ((40, 10), "u1"), ((39, 12), "u1"), ((480,), "u1"),
                             ((40, 12), "i4"), ((40, 0), "u1"), ((), "u1")):
            save(self.path("e.npy"), np.zeros(shape, dtype))
            self.run_badly(*words, "--expect", "e.npy", says=f"holds {dtype} {list(shape)}; expected i4 [40, 3] ")

    def test_int4(self):
        """int4 is another name of quint4x2."""
        files = ["-o", "y.npy", "--scale-output", "s.npy"]
        for command in ("dynamic-quant", "dynamic-quant-asymmetric", "dynamic-block-quant"):
            self.assertIn("y quint4x2", self.run_well(command, "x.npy", "--dtype", "int4", *files))
            self.run_well(command, "x.npy", "--dtype=quint4x2", "--expect", "y.npy", "--expect-scale", "s.npy")
        self.run_well("hard-inputs", "anti-quant", "--shape", "4,16", "--type", "x=int4,scale=float16", "-o", "hard")
        self.assertIn("--type: x: there is no type 'int5'; ",
                      self.run_badly("hard-inputs", "anti-quant", "--shape", "4,16", "--type", "x=int5", "-o", "bad"))
        self.run_well("hard-inputs", "dynamic-quant", "--shape", "4,16", "--dtype", "int4", "-o", "made")
        with open(self.path("made/manifest.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["arguments"]["dtype"], "quint4x2")


class TwoDumps(ToolTest):
    """compare: the report of --expect about two files, and remarks."""

    EQUAL = "b.npy: all {} elements equal\n"
    CODES = "  every difference is 128: one is int8, the other uint8"
    ULP = "  no difference is more than one unit in the last place"
    ORDER = "  the same values in another order"

    def compare(self, a, b, *options, status=1):
        save(self.path("a.npy"), a)
        save(self.path("b.npy"), b)
        return self.run_well("compare", "a.npy", "b.npy", *options, status=status)

    def remarks(self, a, b, *options):
        """The remarks after the report."""
        lines = self.compare(a, b, "--max-diffs", 0, *options).splitlines()
        self.assertRegex(lines[0], r"\Ab\.npy: \d+ of \d+ elements? differs?[ ,]")
        return [line for line in lines if line in (self.CODES, self.ULP) or line.startswith(self.ORDER)]

    def test_equal(self):
        for dtype in ("f4", "f2", "i1", "u1", "i4", "i8", "u8"):
            x = random_integers((5, 6, 7), "i1").astype(dtype)
            self.assertEqual(self.compare(x, x, status=0), self.EQUAL.format(210))
            self.assertEqual(self.compare(x, x, "--quiet", status=0), "")
        x = np.zeros((2, 0), f4)
        self.assertEqual(self.compare(x, x, status=0), self.EQUAL.format(0))

    def test_report(self):
        """The report of --expect, with other names, whatever the layout of both files."""
        x = random_floats((6, 5, 8), "f2", special=0)
        save(self.path("x.npy"), x)
        save(self.path("one.npy"), np.array([1], f4))
        words = "quantize", "x.npy", "--scales", "one.npy", "--axis", "0"
        self.run_well(*words, "-o", "y.npy")
        y = np.load(self.path("y.npy"))
        for count in (1, 30, 240):
            theirs = y.copy()
            theirs.flat[rng.choice(240, size=count, replace=False)] ^= 3
            said = self.compare(y, theirs)
            expected = self.run_well(*words, "--expect", "b.npy", "-q", status=1)
            expected = expected.split("  Admissible")[0].replace("(file - npuquant)", "(B - A)")
            expected = expected.replace(": npuquant ", ": A ").replace(", file ", ", B ").replace("y: ", "b.npy: ", 1)
            self.assertTrue(said.startswith(expected), said + expected)
            self.assertEqual(self.compare(y, theirs, "-q"), said)

    def test_tolerance(self):
        x = np.array([[0, 100], [7, -7]], "i1")
        y = np.array([[0, 102], [8, -7]], "i1")
        self.assertEqual(self.compare(x, y, "--max-diff", 2, status=0),
                         "b.npy: all 4 elements within 2: 2 differ (50 %), by +1..+2 (B - A)\n")
        self.assertIn("1 of 4 elements differs by more than 1 ", self.compare(x, y, "--max-diff", 1))
        ones = np.ones(3, f4)
        self.compare(ones, np.nextafter(ones, f4(2)), "--max-ulp", 1, status=0)
        self.run_badly("compare", "a.npy", "b.npy", "--max-diff", 1, says="--max-diff: does not apply to a result of "
                                                                           "type float32; expected --max-ulp\n")
        self.compare(x, x, status=0)
        self.run_badly("compare", "a.npy", "b.npy", "--max-ulp", 1, says="type int8; expected --max-diff\n")
        self.compare(x.astype("u8"), x.astype("i8"), status=0)  # the same bits
        for option in ("--max-diff", "--max-ulp"):
            self.run_badly("compare", "a.npy", "b.npy", option, 1, says="do not apply to uint64: words are compared as")

    def test_codes(self):
        codes = np.array([[-128, -5, 0], [5, 6, 127]], "i1")
        added = (codes.astype("i2") + 128).astype("u1")
        self.assertEqual(self.remarks(codes, added), [self.CODES])
        self.assertEqual(self.remarks(added, codes), [self.CODES])
        self.assertEqual(self.remarks(codes, added.view("i1")), [self.CODES])
        self.assertEqual(self.remarks(codes.view("u1"), added), [self.CODES])
        self.assertIn("by +128 (B - A)\n", self.compare(codes, added))
        self.assertIn("  [0, 1]: A -5, B 123\n", self.compare(codes, added))
        for off in (1, -1, 2):
            other = added.copy()
            other[0, 1] += off
            self.assertEqual(self.remarks(codes, other), [])
        other = codes.copy()
        other[0, 1:] = 123, 2
        self.assertEqual(self.remarks(codes, other, "--max-diff", 2), [])
        # As numbers, not bits.
        self.compare(codes[1], codes[1].view("u1"), status=0)
        self.assertIn("2 of 6 elements differ (33 %), by +256 (B - A)", self.compare(codes, codes.view("u1")))

    def test_one_ulp(self):
        for dtype in ("f4", "f2", "u2"):
            bits = "u4" if dtype == "f4" else "u2"
            x = (np.arange(-6, 6, dtype=f4) + f4(0.3)).reshape(3, 4)
            x = (x.view("u4") >> 16).astype("u2") if dtype == "u2" else x.astype(dtype)
            near = x.copy()
            near.view(bits)[1, :2] += np.array([1, -1], "i4").astype(bits)
            options = ["--bf16", "a,b"] if dtype == "u2" else []
            self.assertEqual(self.remarks(x, near, *options), [self.ULP])
            self.assertEqual(self.remarks(x, near[::-1], *options), [])
            near.view(bits)[2, 2] += 2
            self.assertEqual(self.remarks(x, near, *options), [])
        largest = np.array([np.finfo(f4).max], f4)
        self.assertEqual(self.remarks(largest, f4([np.inf])), [])
        self.assertEqual(self.remarks(np.array([1], "i4"), np.array([2], "i4")), [])

    def test_order(self):
        x = np.arange(-30, 30, dtype="i1").reshape(5, 3, 4)  # 15 rows
        y = x.copy()
        y[[0, 4]] = y[[4, 0]]
        self.assertEqual(self.remarks(x, y), [
            self.ORDER + ": 6 of 15 rows moved; row 0 of B is row 12 of A, row 1 of B is row 13 of A, "
                         "row 2 of B is row 14 of A"])
        y = x.reshape(15, 4).copy()
        y[[2, 3]] = y[[3, 2]]
        self.assertEqual(self.remarks(x.reshape(15, 4), y), [
            self.ORDER + ": 2 of 15 rows moved; row 2 of B is row 3 of A, row 3 of B is row 2 of A"])
        y[7, 0] += 1
        self.assertEqual(self.remarks(x.reshape(15, 4), y), [])
        y[7, 2] -= 1  # again the same sum
        self.assertEqual(self.remarks(x.reshape(15, 4), y), [])
        y = x.reshape(15, 4).copy()
        y[[2, 3]] = y[[3, 2]]
        y[9, :2] = y[9, 1::-1]  # not only whole rows
        self.assertEqual(self.remarks(x.reshape(15, 4), y), [self.ORDER])
        flat = x.reshape(-1)
        self.assertEqual(self.remarks(flat, flat[::-1]), [self.ORDER])
        self.assertEqual(self.remarks(x, x[..., ::-1]), [self.ORDER])
        self.assertEqual(self.remarks(x[4], x[4, ::-1].view("u1")), [
            self.ORDER + ": 2 of 3 rows moved; row 0 of B is row 2 of A, row 2 of B is row 0 of A"])
        self.assertEqual(self.remarks(np.array([1, 2, 2], "i1"), np.array([1, 1, 2], "i1")), [])
        self.assertEqual(self.remarks(f4([0]), f4([-0.0])), [self.ULP])
        floats = random_floats((9, 5), "f4", special=0)
        self.assertIn(self.ORDER, "\n".join(self.remarks(floats, floats[::-1], "--max-ulp", 1)))

    def test_nan(self):
        """Bits are compared, as in operators' results."""
        nan = np.array([0x7FC00000, 0x3F800000], "u4")
        self.compare(nan.view(f4), nan.view(f4), status=0)
        other = nan + np.array([1, 0], "u4")
        self.assertIn("; NaN or an infinity against another value in 1\n",
                      self.compare(nan.view(f4), other.view(f4), "--max-ulp", 1000))

    def test_shapes(self):
        x = random_integers((3, 4), "i1")
        for shape in ((3, 1, 4), (1, 3, 4), (3, 4, 1), (1, 1, 3, 1, 4, 1)):
            self.compare(x, x.reshape(shape), status=0)
            self.compare(x.reshape(shape), x, status=0)
        self.compare(x, x.reshape(12), status=0)
        self.compare(np.asfortranarray(x), x.reshape(12), status=0)
        y = x.copy()
        y[2, 1] ^= 1
        self.assertIn("\n  [2, 1]: A ", self.compare(x, y.reshape(3, 1, 4)))  # places are A's
        self.assertIn("\n  [2, 0, 1]: A ", self.compare(x.reshape(3, 1, 4), y))
        self.compare(x[0, 0], x[:1, 0], status=0)
        self.compare(x[:1, 0], x[0, 0], status=0)
        for shape in ((4, 3), (11,), (2, 6), (3, 2, 2), ()):
            other = x.reshape(12)[:11] if shape == (11,) else x[0, 0] if shape == () else x.reshape(shape)
            save(self.path("a.npy"), x)
            save(self.path("b.npy"), other)
            self.run_badly("compare", "a.npy", "b.npy",
                           says=f"b.npy: holds i1 {list(shape)}; expected i1 [3, 4] to compare with a.npy, which is int8\n")
            self.run_badly("compare", "b.npy", "a.npy", says=f"a.npy: holds i1 [3, 4]; expected i1 {list(shape)} to ")

    def test_what_cannot_be_compared(self):
        x = np.zeros((3, 4), f4)
        save(self.path("a.npy"), x)
        save(self.path("b.npy"), x.astype("f2"))
        self.run_badly("compare", "a.npy", "b.npy",
                       says="b.npy: holds f2 [3, 4]; expected f4 [3, 4] to compare with a.npy, which is float32\n")
        save(self.path("b.npy"), x.astype("i4"))
        save(self.path("a.npy"), x.astype("i1"))
        self.run_badly("compare", "a.npy", "b.npy", says="b.npy: holds i4 [3, 4]; expected i1 [3, 4] to ")
        save(self.path("b.npy"), x.astype("u2"))
        self.run_badly("compare", "b.npy", "b.npy", "--bf16", "a",
                       says="b.npy: holds u2; if its 16 bits are bfloat16, say --bf16 b\n")
        whole = npy_bytes(header(), bytes(8))
        self.write("a.npy", whole)
        self.write("cut.npy", whole[:-1])
        for words, says in ((("a.npy", "cut.npy"), "cut.npy: truncated: "), (("cut.npy", "a.npy"), "cut.npy: truncated: "),
                            (("a.npy", "none.npy"), "none.npy: "), (("a.npy",), "no B given; see --help\n"), ((), "no A "),
                            (("a.npy", "a.npy", "a.npy"), "unexpected argument a.npy; see --help\n"),
                            (("-", "-"), "stdin (-): is named for a and for b; expected one of them\n"),
                            (("a.npy", "a.npy", "--expect", "a.npy"), "this command has no option --expect")):
            self.run_badly("compare", *words, says=says)
        self.assertEqual(self.run_well("compare", "a.npy", "-", input=whole), "stdin: all 2 elements equal\n")

    def test_help(self):
        text = self.run_well("compare", "--help")
        self.assertEqual(text, self.run_well("help", "compare"))
        self.assertTrue(text.startswith("usage: npuquant compare A B [OPTION]...\n"))
        self.run_badly("comapre", says="there is no command comapre; did you mean compare?\n")


class Failures(ToolTest):
    """One line of error, exit status 2, and no partial output."""

    def setUp(self):
        super().setUp()
        save(self.path("one.npy"), np.array([1], f4), "C")
        save(self.path("x.npy"), np.ones((2, 3), f4), "C")

    def test_hostile_files(self):
        good = npy_bytes(header(), bytes(8))
        hostile = {
            "empty": b"",
            "no magic": b"x" * 200,
            "only magic": good[:6],
            "half a preamble": good[:9],
            "no header": good[:10],
            "half a header": good[:40],
            "short by one": good[:-1],
            "long by one": good + b"\0",
            "version 0": npy_bytes(header(), bytes(8), (0, 0)),
            "version 4": npy_bytes(header(), bytes(8), (4, 0)),
            "version 1.1": npy_bytes(header(), bytes(8), (1, 1)),
            "long header": npy_bytes(header(), bytes(8), length=65535),
            "huge header": npy_bytes(header(), bytes(8), (2, 0), 2**32 - 1),
            "large header": npy_bytes(header() + " " * 70000, bytes(8), (2, 0)),
            "no dictionary": npy_bytes("[]"),
            "empty dictionary": npy_bytes("{}"),
            "no shape": npy_bytes("{'descr': '<f4', 'fortran_order': False}", bytes(8)),
            "two shapes": npy_bytes(header(order="False, 'shape': (2,)"), bytes(8)),
            "other key": npy_bytes("{'x': 1}"),
            "end inside a key": npy_bytes("{'descr"),
            "end inside a tuple": npy_bytes("{'shape': (1, "),
            "more behind": npy_bytes(header() + "{}", bytes(8)),
            "no comma": npy_bytes("{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}", bytes(8)),
            "NUL": npy_bytes(b"{\0}"),
            "line feed in key": npy_bytes("{'a\nb': 1}"),
            "escape in key": npy_bytes("{'a\x1b[2Jb': 1}"),
            "order": npy_bytes(header(order="0"), bytes(8)),
            "number": npy_bytes(header(shape="(2)"), bytes(8)),
            "negative": npy_bytes(header(shape="(-2,)"), bytes(8)),
            "no number": npy_bytes(header(shape="(a,)"), bytes(8)),
            "fraction": npy_bytes(header(shape="(2.0,)"), bytes(8)),
            "too many dimensions": npy_bytes(header(shape=str((1,) * 9)), bytes(4)),
            "65 bits": npy_bytes(header(shape=f"({2**64},)"), bytes(8)),
            "overflow": npy_bytes(header(shape=f"({2**32}, {2**32})"), bytes(8)),
            "overflow of bytes": npy_bytes(header(shape=f"({2**62},)"), bytes(8)),
            "large": npy_bytes(header(shape=f"({2**40},)"), bytes(8)),
            "structure": npy_bytes(header("[('a', '<f4')]"), bytes(8)),
            "objects": npy_bytes(header("'|O'"), bytes(16)),
            "float64": npy_bytes(header("'<f8'"), bytes(16)),
            "no order": npy_bytes(header("'<'"), bytes(8)),
            "long descr": npy_bytes(header("'%s'" % ("<f4" * 100)), bytes(8)),
        }
        for name, data in hostile.items():
            with self.subTest(name):
                self.write("bad.npy", data)
                self.run_badly("quantize", "bad.npy", "--scales", "one.npy", "-o", "y.npy", says="bad.npy: ")
                self.run_badly("quantize", "x.npy", "--scales", "bad.npy", "-o", "y.npy", says="bad.npy: ")
                self.run_badly("quantize", "/dev/stdin", "--scales", "one.npy", input=data, says="/dev/stdin: ")

    def test_files_of_other_kinds(self):
        """One line that names the solution. Python writes the files; those of PyTorch and safetensors are made by
        hand."""
        zipped = io.BytesIO()
        with zipfile.ZipFile(zipped, "w") as archive:
            archive.writestr("archive/data.pkl", b"\x80\x02.")
        zipped = zipped.getvalue()
        text = b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        pickles = [(pickle.dumps(np.ones(2), protocol), "a pickle; load it") for protocol in range(2, 6)]
        for data, says in (
            (zipped, "PyTorch's; write it with numpy.save(path, tensor.cpu().numpy())\n"),
            (bytes.fromhex("80028a0a6cfc9c46f9206aa850192e"), "PyTorch's; write it"),
            (gzip.compress(npy_bytes(header(), bytes(8))), "gzip; gunzip it first\n"),
            (b"\x89HDF\r\n\x1a\n" + bytes(40), "HDF5; "),
            (len(text).to_bytes(8, "little") + text + bytes(4), "safetensors; write it with numpy.save("),
            *pickles,
        ):
            with self.subTest(says):
                self.write("bad", data)
                for words, options in ((("bad",), {}), (("/dev/stdin",), {"input": data})):
                    self.run_badly("quantize", *words, "--scales", "one.npy", says="not a .npy file but " + says,
                                   **options)
                for length in range(min(len(data), 60)):
                    self.write("bad", data[:length])
                    self.run_badly("quantize", "x.npy", "--scales", "one.npy", "--expect", "bad",
                                   says="bad: " + ("" if data == zipped else "not a .npy file"))

    def test_one_byte(self):
        self.write("bad.npy", npy_bytes(header("'|i1'", shape="(1,)")))
        self.run_badly("quantize", "bad.npy", "--scales", "one.npy", says="promises 1 byte of data, the file has 0\n")

    def test_damaged_files(self):
        good = npy_bytes(header(), bytes(8))
        for _ in range(150):
            damaged = bytearray(good)
            for place in rng.integers(0, len(good), size=rng.integers(1, 4)):
                damaged[place] = rng.integers(256)
            self.write("bad.npy", bytes(damaged))
            done = self.run_tool("quantize", "bad.npy", "--scales", "one.npy")
            self.assertIn(done.returncode, (0, 2), bytes(damaged))
            self.assertEqual(done.err.count("\n"), 1 if done.returncode == 2 else 0)

    def test_missing_files(self):
        self.run_badly("quantize", "none.npy", "--scales", "one.npy", says="none.npy: No such file")
        self.run_badly("quantize", ".", "--scales", "one.npy", says=".: Is a directory")
        self.run_badly("quantize", "x\n\x1b[1mx.npy", "--scales", "one.npy", says="x??[1mx.npy: No such file")
        self.run_badly("quantize", "x" * 3000, "--scales", "one.npy", says="xxx")

    def test_command_lines(self):
        x = ("quantize", "x.npy", "--scales", "one.npy")
        save(self.path("int8.npy"), np.ones(1, "i1"))
        for words, says in (
            ((), "no command"),
            (("quantise",), "no command quantise; did you mean quantize?\n"),
            (("npu_group_quant",), "no command npu_group_quant; did you mean group-quant?\n"),
            (("dynamic",), "no command dynamic; did you mean dynamic-quant?\n"),
            (("npu_quant_matmul",), "no command npu_quant_matmul; did you mean quant-matmul?\n"),
            (("inof",), "no command inof; did you mean info?\n"),
            (("--nonsense",), "unknown option --nonsense before the command; see npuquant --help\n"),
            (("--versio",), "unknown option --versio; did you mean --version?\n"),
            (("--HELP",), "unknown option --HELP; did you mean --help?\n"),
            (("-v",), "unknown option -v before the command; see npuquant --help\n"),
            (("q" * 5000,), "; see npuquant --help\n"),
            (("",), "no command ; see npuquant --help\n"),
            (("help", "quantise"), "no command quantise; did you mean quantize?\n"),
            (("help", "info", "quantize"), "help: unexpected argument quantize\n"),
            (("info", "x"), "unexpected argument x"),
            (("quantize",), "no X given"),
            (("trans-quant-param",), "no SCALE given"),
            (("quantize", "x.npy"), "no --scales given"),
            (("group-quant", "x.npy", "--scale", "one.npy"), "no --group-index given"),
            ((*x, "x.npy"), "unexpected argument x.npy"),
            ((*x, "--bf16", "zero-points"), "no --zero-points given"),
            ((*x, "--scale", "one.npy"), "this command has no option --scale; did you mean --scales?\n"),
            ((*x, "--zero_points=z.npy"), "unknown option --zero_points=z.npy; did you mean --zero-points?\n"),
            ((*x, "--max-dif", "1"), "unknown option --max-dif; did you mean --max-diff?\n"),
            ((*x, "--mx-diffs", "1"), "unknown option --mx-diffs; did you mean --max-diffs?\n"),
            ((*x, "--max-ulp=1"), "this command has no option --max-ulp=1; see --help\n"),
            ((*x, "--max-diff", "0"), "--max-diff: nothing is compared; expected --expect, too\n"),
            ((*x, "--max-diffs", "3"), "--max-diffs: nothing is compared; expected --expect, too\n"),
            ((*x, "--dytpe", "int8"), "unknown option --dytpe; did you mean --dtype?\n"),
            ((*x, "-axis", "0"), "unknown option -axis; did you mean --axis?\n"),
            ((*x, "--exp", "y.npy"), "unknown option --exp; did you mean --expect?\n"),
            ((*x, "--smooth-scales", "y.npy"), "this command has no option --smooth-scales; see --help\n"),
            ((*x, "--" + "x" * 5000), "; see --help\n"),
            ((*x, "--="), "unknown option --=; see --help\n"),
            ((*x, "-z"), "unknown option -z; see --help\n"),
            ((*x, "--quiet=1"), "--quiet=1: --quiet takes no value"),
            ((*x, "-q1"), "unknown option -q1"),
            ((*x, "--axis"), "--axis: no value"),
            ((*x, "--axis", "one"), "--axis: 'one' is not a number"),
            ((*x, "--axis", ""), "--axis: '' is not a number"),
            ((*x, "--axis", "99999999999"), "--axis: '99999999999' is not a number from"),
            ((*x, "--axis", "9" * 30), "is not a number from"),
            ((*x, "--threads", "-1"), "--threads: '-1' is not"),
            ((*x, "--repeat", "0"), "--repeat: '0' is not"),
            ((*x, "--max-diff", "-1"), "--max-diff: '-1' is not"),
            ((*x, "--max-diffs", "-1"), "--max-diffs: '-1' is not"),
            ((*x, "--max-ulp", "1"), "this command has no option --max-ulp; see --help\n"),
            ((*x, "--dtype", "quint4x2"), "--dtype: quint4x2 (int4) needs --div-mode false;"),
            ((*x, "--dtype", "int4"), "--dtype: quint4x2 (int4) needs --div-mode false;"),
            ((*x, "--dtype", "int32", "--div-mode", "false"), "--dtype: int32 needs --div-mode true;"),
            ((*x, "--dtype", "uint8", "--div-mode", "false"), "--dtype: uint8 needs --div-mode true;"),
            ((*x, "--dtype", "int"), "--dtype: 'int' is none of int8|uint8|int32|quint4x2|int4"),
            ((*x, "--dtype", ""), "--dtype: '' is none of"),
            ((*x, "--dtype", "int8|uint8"), "--dtype: 'int8|uint8' is none of"),
            ((*x, "--div-mode", "yes"), "--div-mode: 'yes' is none of true|false"),
            ((*x, "--bf16", "y"), "no input called 'y'"),
            ((*x, "--bf16", "x,,scales"), "no input called ''"),
            ((*x, "--bf16", ""), "no input called ''"),
            ((*x, "--zero-points", "int8.npy", "--bf16", "zero-points"),
             "int8.npy: holds i1; --bf16 zero-points is for u2, i2, V2 and f4\n"),
            ((*x, "--backend", "abacus"), "no 'abacus'"),
            ((*x, "-o", ""), "--output: an empty name"),
            ((*x, "--zero-points", "none.npy"), "none.npy"),
            ((*x, "--axis", "5", "--scales", "x.npy"), "quantize: "),
        ):
            with self.subTest(words):
                self.run_badly(*words, says=says)

    def test_products(self):
        """The errors of quant-matmul itself: the library sees only the sums."""
        for name, array in {
            "x1": np.ones((2, 3), "i1"), "x2": np.ones((3, 4), "i1"), "batch": np.ones((2, 2, 3), "i1"),
            "batches": np.ones((3, 3, 4), "i1"), "vector": np.ones(3, "i1"), "none": np.ones((2, 0), "i1"),
            "s4": np.ones(4, f4), "s4f2": np.ones(4, "f2"), "s3": np.ones(3, f4), "row": np.ones((1, 4), f4),
            "rows": np.ones(2, f4), "rows2d": np.ones((1, 2), f4), "number": np.ones((), f4),
            "column": np.ones((2, 1), f4), "i3": np.ones(3, "i4"), "i4": np.ones(4, "i4"),
            "words": np.full(4, 1 << 46), "word": np.full((1, 1), 1 << 46), "bad": np.array([1 << 46] * 3 + [0]),
            "sign": f4([1, -1, 1, 1]).view("i4").astype("i8"),
        }.items():
            save(self.path(f"{name}.npy"), array)

        def scaled(scale, *words):
            return "x1", "x2", "--scale", scale, *words

        for words, says in (
            (("x1",), "no X2 given; see --help\n"),
            (("x1", "x2", "s4"), "unexpected argument s4.npy; see --help\n"),
            (("x1", "x2"), "no --scale given; only --dtype int32 needs none\n"),
            (scaled("s4", "--dtype", "int32"), "--scale: is not applied to the sums, which are the result with --dtype "
                                               "int32; expected none\n"),
            (("x1", "x2", "--dtype", "int32", "--pertoken-scale", "rows"), "--pertoken-scale: is not applied to the "),
            (("x1", "x2", "--dtype", "int32", "--offset", "s4"), "--offset: is not applied to the sums, "),
            (scaled("s4", "--pertoken-scale", "rows"), "--pertoken-scale: cannot be applied with --dtype int8; "
                                                       "expected --dtype float16, bfloat16 or float32\n"),
            (scaled("s4", "--offset", "s4", "--dtype", "float16"), "--offset: cannot be applied with --dtype float16; "
                                                                   "expected --dtype int8\n"),
            (scaled("words", "--offset", "s4"), "--offset: is in the words already; expected none, or --scale to be "),
            (scaled("s4f2"), "--scale: holds f2; expected f4, i8 or u8 with --dtype int8\n"),
            (scaled("i4", "--dtype", "float16"), "--scale: holds i4; expected f4, i8 or u8 with --dtype float16\n"),
            (scaled("words", "--dtype", "bfloat16"), "--scale: holds i8; expected f4, f2 or u2 (bfloat16) with --dtype "
                                                     "bfloat16\n"),
            (scaled("words", "--dtype", "float16", "--pertoken-scale", "rows"),
             "--scale: holds i8; expected f4, f2 or u2 (bfloat16) with --dtype float16 and --pertoken-scale\n"),
            (scaled("s4", "--offset", "s4f2"), "--offset: holds f2; expected f4 with --dtype int8\n"),
            (scaled("s4", "--dtype", "bfloat16", "--pertoken-scale", "s4f2"), "--pertoken-scale: holds f2; expected "),
            (scaled("s4", "--bias", "s4"), "--bias: holds f4; expected i4 with --dtype int8\n"),
            (("x1", "x2", "--dtype", "int32", "--bias", "s4f2"), "--bias: holds f2; expected i4 with --dtype int32\n"),
            (scaled("words", "--bias", "words", "--dtype", "float16"), "--bias: holds i8; expected i4 with --dtype "),
            (scaled("s3"), "--scale: has shape [3]; expected [1] or [4]\n"),
            (scaled("x.npy"), "--scale: has shape [2, 3]; expected [1] or [4]\n"),
            (scaled("row"), "--scale: has shape [1, 4]; expected [1] or [4]\n"),
            (scaled("word"), "--scale: has shape [1, 1]; expected [1] or [4]\n"),
            (scaled("s4", "--offset", "s3"), "--offset: has shape [3]; expected [1] or [4]\n"),
            (scaled("s4", "--bias", "i3"), "--bias: has shape [3]; expected [4]\n"),
            (("x1", "x2", "--bias", "i3", "--dtype", "int32"), "--bias: has shape [3]; expected [4]\n"),
            (scaled("s4", "--dtype", "bfloat16", "--pertoken-scale", "s3"),
             "--pertoken-scale: has shape [3]; expected one for each row of the result, which has shape [2, 4]\n"),
            (scaled("s4", "--dtype", "bfloat16", "--pertoken-scale", "column"), "--pertoken-scale: has shape [2, 1]; "),
            (scaled("s4", "--dtype", "bfloat16", "--pertoken-scale", "rows2d"), "--pertoken-scale: has shape [1, 2]; "),
            (scaled("s4", "--dtype", "bfloat16", "--pertoken-scale", "number"), "--pertoken-scale: has shape []; "),
            (scaled("bad"), "requant: words: element 3 is 0x0; expected bit 46 to be 1"),
            (scaled("sign", "--dtype", "float16"), "requant: words: element 1 is 0xFFFFFFFFBF800000; expected bits 36"),
            (("x", "x2", "--scale", "s4"), "X1: holds f4; expected i1\n"),
            (("x1", "x", "--scale", "s4"), "X2: holds f4; expected i1\n"),
            (("vector", "x2", "--scale", "s4"), "X1: has 1 dimension; expected 2 or more\n"),
            (("x1", "vector", "--scale", "s4"), "X2: has 1 dimension; expected 2 or more\n"),
            (("x1", "x1", "--scale", "s4"), "X2: has shape [2, 3]; expected the last but one to be 3, as X1 has shape "
                                            "[2, 3]\n"),
            (("none", "x2", "--scale", "s4"), "X1: its last dimension is 0; expected 1 or more\n"),
            (("batch", "batches", "--scale", "s4"), "X2: has shape [3, 3, 4]; expected the dimensions before the last "
                                                    "two to be those of X1, which has shape [2, 2, 3], or 1\n"),
            (scaled("s4", "--max-ulp", "1", "--expect", "x1"), "--max-ulp: does not apply to a result of type int8; "
                                                               "expected --max-diff\n"),
            (scaled("s4", "--max-diff", "1", "--dtype", "bfloat16", "--expect", "x1"),
             "--max-diff: does not apply to a result of type bfloat16; expected --max-ulp\n"),
        ):
            with self.subTest(words):
                files = [f"{word}.npy" if os.path.exists(self.path(f"{word}.npy")) else word for word in words]
                self.run_badly("quant-matmul", *files, "-o", "y.npy", says=says)

    def test_product_beyond_memory(self):
        """Two sparse files, small enough to map, with a product that is not."""
        for name, shape in (("x1.npy", (2**33, 1)), ("x2.npy", (1, 2**33))):
            self.write(name, npy_bytes(header("'|i1'", shape=str(shape))))
            os.truncate(self.path(name), len(self.read(name)) + 2**33)
        self.run_badly("quant-matmul", "x1.npy", "x2.npy", "--dtype", "int32",
                       says="the result's shape [8589934592, 8589934592] is too large: it does not fit in the address")

    def test_layer_command_lines(self):
        save(self.path("sums.npy"), np.ones((2, 3), "i4"))
        save(self.path("words.npy"), np.full(3, 1 << 46))
        for words, says in (
            (("anti-quant", "sums.npy"), "no --scale given; see --help\n"),
            (("dequant", "sums.npy", "--scale", "one.npy"), "this command has no option --scale; "),
            (("dequant", "sums.npy"), "no --weight-scale given; see --help\n"),
            (("requant", "sums.npy"), "no --words given; see --help\n"),
            (("dynamic-quant", "x.npy", "--offset-output", "o.npy"), "this command has no option --offset-output"),
            (("dynamic-quant-asymmetric", "x.npy", "--dtype", "uint8"), "'uint8' is none of int8|quint4x2|int4\n"),
            (("dynamic-quant", "x.npy", "--scale-form", "sum"), "--scale-form: 'sum' is none of product|inverse\n"),
            (("dynamic-block-quant", "x.npy", "--block", "0"), "--block: '0' is not a number from 1 to "),
            (("dynamic-block-quant", "x.npy", "--min-scale", "1e"), "--min-scale: '1e' is not a number\n"),
            (("dynamic-block-quant", "x.npy", "--min-scale", ""), "--min-scale: '' is not a number\n"),
            (("dynamic-block-quant", "x.npy", "--min-scale", "-1"), "dynamic_block_quant: min_scale: is -1; expected "),
            (("dynamic-block-quant", "x.npy", "--quant-mode", "pertensor"), "this command has no option --quant-mode"),
            (("anti-quant", "sums.npy", "--scale", "one.npy", "--dtype", "int8"), "--dtype: 'int8' is none of "
                                                                               "float16|bfloat16|float32\n"),
            (("dequant", "sums.npy", "--weight-scale", "one.npy", "--max-diff", "1"), "has no option --max-diff"),
            (("requant", "sums.npy", "--words", "words.npy", "--max-ulp", "1", "--expect", "y.npy"),
             "--max-ulp: does not apply to a result of type int8; expected --max-diff\n"),
            (("requant", "sums.npy", "--words", "words.npy", "--dtype", "float16", "--max-diff=1", "--expect=y.npy"),
             "--max-diff: does not apply to a result of type float16; expected --max-ulp\n"),
            (("anti-quant", "x.npy", "--scale", "one.npy"), "anti_quant: x: "),
            (("dequant", "x.npy", "--weight-scale", "one.npy"), "dequant: x: "),
            (("dequant", "sums.npy", "--weight-scale", "one.npy", "--activation-scale", "one.npy"),
             "dequant: activation_scale: "),
            (("requant", "sums.npy", "--words", "one.npy"), "requant: words: "),
        ):
            with self.subTest(words):
                self.run_badly(*words, says=says)

    def test_backends_that_are_not_there(self):
        line = re.search("^backends: (.*)$", self.run_well("info"), re.MULTILINE).group(1)
        for name in re.findall(r"(\w+) \(not available\)", line):
            self.run_badly("quantize", "x.npy", "--scales", "one.npy", "--backend", name, says=name)

    def test_float64(self):
        self.write("wide.npy", npy_bytes(header("'>f8'"), bytes(16)))
        self.run_badly("quantize", "wide.npy", "--scales", "one.npy", says="wide.npy: elements of type '>f8'; expected "
                       "one of f4 f2 i1 u1 i4 i8 u8 u2 i2 V2; float64 becomes f4 with astype(np.float32)\n")
        self.write("wide.npy", npy_bytes(header("'<c8'"), bytes(16)))
        self.run_badly("quantize", "wide.npy", "--scales", "one.npy",
                       says="expected one of f4 f2 i1 u1 i4 i8 u8 u2 i2 V2\n")

    def test_unnamed_bfloat16(self):
        save(self.path("u.npy"), np.ones((2, 3), "u2"))
        self.run_badly("quantize", "u.npy", "--scales", "one.npy", says="u.npy: holds u2; if its 16 bits are "
                       "bfloat16, say --bf16 x\n")
        self.run_badly("trans-quant-param", "u.npy", "--bf16", "scale", says="trans_quant_param: scale: ")

    def test_the_library_refuses(self):
        save(self.path("ends.npy"), np.array([1, 3]))
        save(self.path("scale.npy"), np.ones((2, 3), f4))
        says = self.run_badly("group-quant", "x.npy", "--scale", "scale.npy", "--group-index", "ends.npy", "-o",
                              "y.npy")
        self.assertIn("group_quant: group_index: ", says)
        save(self.path("zero.npy"), np.zeros((), f4))
        self.run_badly("quantize", "zero.npy", "--scales", "one.npy", says="quantize: x: ")
        self.run_badly("dynamic-quant-asymmetric", "zero.npy", says="dynamic_quant_asymmetric: x: ")
        save(self.path("none.npy"), np.zeros(0, f4))
        self.run_badly("trans-quant-param", "none.npy", says="trans_quant_param: scale: ")
        self.run_badly("group-quant", "x.npy", "--scale", "zero.npy", "--group-index", "ends.npy",
                       says="group_quant: scale: has 0 dimensions; expected 2")

    def test_many_rows_of_nothing(self):
        """A few bytes must not cost gigabytes for scales and offsets."""
        with open(self.path("rows.npy"), "wb") as file:
            file.write(npy_bytes(header(shape=str((2**33, 0)))))
        self.run_badly("dynamic-quant-asymmetric", "rows.npy", says="last dimension is 0")

    def test_unwritable_outputs(self):
        x = ("dynamic-quant-asymmetric", "x.npy", "-o", "y.npy")
        self.run_badly(*x, "--scale-output", "none/s.npy", says="none/s.npy: cannot be written: No such file")
        self.run_badly(*x, "--scale-output", "y.npy", says="y.npy: named for two outputs")
        self.run_badly(*x, "--scale-output", "./y.npy", says="named for two outputs")
        self.run_badly(*x, "--scale-output", self.path("y.npy"), says="named for two outputs")
        self.run_badly(*x, "--scale-output", ".", says=".: cannot be written: it is neither a file, a pipe nor a ")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_stdout(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TOOL, "info"], stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, b"npuquant: cannot write to stdout\n"))


class Writing(ToolTest):
    """Errors after the results exist: every name keeps its file, and nothing else stays."""

    before = b"what was there"
    summary = r"dynamic-quant-asymmetric: [^\n]+\n\Z"

    def setUp(self):
        super().setUp()
        self.x = random_floats((6, 8), "f4", special=0)
        save(self.path("x.npy"), self.x, "C")
        self.write("y.npy", self.before)

    def test_file_too_large(self):
        """The first output, and a later one: the limit's signal does not end the tool."""
        for shape, refused in (((100, 300), "y.npy"), ((10000, 1), "s.npy")):
            save(self.path("x.npy"), np.ones(shape, f4), "C")
            self.run_badly("dynamic-quant-asymmetric", "x.npy", "-o", "y.npy", "--scale-output", "s.npy",
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)),
                           says=f"{refused}: cannot be written: File too large")
            self.assertEqual(self.read("y.npy"), self.before)

    def test_full_disk(self):
        script = 'printf old > y.npy && { "$@"; echo $?; ls -A; cat y.npy; }'
        for shape, refused in (((100, 300), "y.npy"), ((9000, 1), "s.npy")):
            save(self.path("x.npy"), np.ones(shape, f4), "C")
            done = self.in_mounted("size=24k", script, "dynamic-quant-asymmetric", "../x.npy", "-o", "y.npy",
                                   "--scale-output", "s.npy")
            self.assertEqual((done.stdout, done.stderr),
                             ("2\ny.npy\nold", f"npuquant: {refused}: cannot be written: No space left on device\n"))

    def test_read_only_file_system(self):
        script = 'printf old > y.npy; mount -o remount,bind,ro . || exit 77; "$@"; echo $?; ls -A; cat y.npy'
        done = self.in_mounted("size=24k", script, "dynamic-quant-asymmetric", "../x.npy", "-o", "y.npy")
        if done.returncode == 77:
            self.skipTest(NO_RIGHTS + "a mount cannot be made read-only")
        self.assertEqual((done.stdout, done.stderr),
                         ("2\ny.npy\nold", "npuquant: y.npy: cannot be written: Read-only file system\n"))

    def test_unwritable_folder(self):
        os.mkdir(self.path("theirs"))
        self.write("theirs/y.npy", self.before)
        os.chmod(self.path("theirs"), 0o555)
        as_others_are = self.without_rights_to_write("theirs")
        self.run_badly("dynamic-quant-asymmetric", "x.npy", "-o", "theirs/y.npy", preexec_fn=as_others_are,
                       says="theirs/y.npy: cannot be written: Permission denied")
        self.assertEqual(os.listdir(self.path("theirs")), ["y.npy"])
        self.assertEqual(self.read("theirs/y.npy"), self.before)

    def test_refused_rename(self):
        """A temporary name can be written, but not the output's name; the other outputs are taken back."""
        long = "o" * 300
        x = self.read("x.npy")
        refused = {"says": f"{long}: cannot be written: File name too long", "prints": self.summary}
        for y in ("y.npy", "x.npy", "new.npy"):
            self.run_badly("dynamic-quant-asymmetric", "x.npy", "-o", y, "--scale-output", "s.npy", "--offset-output",
                           long, **refused)
            self.assertEqual((self.read("x.npy"), self.read("y.npy")), (x, self.before))
        self.run_badly("dynamic-quant-asymmetric", "x.npy", "-o", "y.npy", "--scale-output", long, "--offset-output",
                       "o.npy", **refused)
        self.run_badly("dynamic-quant-asymmetric", "x.npy", "-o", long, **refused)
        self.assertEqual(self.read("y.npy"), self.before)

    def run_unheard(self, stdout, *words):
        """Replaces y.npy unless stdout fails; returns status and stderr."""
        words = [TOOL, "dynamic-quant-asymmetric", "x.npy", "-o", "y.npy", "--scale-output", "s.npy", *words]
        done = subprocess.run(words, cwd=self.folder, stdout=stdout, stderr=subprocess.PIPE, check=False, timeout=60)
        return done.returncode, done.stderr

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_stdout(self):
        """The tool sees a failed stdout when all is printed: the summary, or the differences."""
        self.run_well("dynamic-quant-asymmetric", "x.npy", "-o", "same.npy")
        np.save(self.path("other.npy"), np.load(self.path("same.npy")) ^ 1)
        before = sorted(os.listdir(self.folder))
        for words in ((), ("--expect", "same.npy"), ("--expect", "other.npy"), ("--expect", "other.npy", "--quiet")):
            with self.subTest(words), open("/dev/full", "wb") as full:
                self.assertEqual(self.run_unheard(full, *words), (2, b"npuquant: cannot write to stdout\n"))
                self.assertEqual(self.read("y.npy"), self.before)
                self.assertEqual(sorted(os.listdir(self.folder)), before)
        with open("/dev/full", "wb") as full:  # with --quiet, nothing is printed
            self.assertEqual(self.run_unheard(full, "--quiet"), (0, b""))
        self.assertEqual(self.read("y.npy"), self.read("same.npy"))

    def test_unread_stdout(self):
        """A pipe without a reader."""
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "wb") as pipe:
            self.assertEqual(self.run_unheard(pipe), (-signal.SIGPIPE, b""))
        self.assertEqual(self.read("y.npy"), self.before)
        self.assertEqual(sorted(os.listdir(self.folder)), ["x.npy", "y.npy"])

    def test_symbolic_links(self):
        """The tool replaces a link, not its target, and can restore the link."""
        os.symlink("y.npy", self.path("link.npy"))
        self.run_badly("dynamic-quant-asymmetric", "x.npy", "-o", "link.npy", "--scale-output", "s" * 300,
                       prints=self.summary)
        self.assertEqual(os.readlink(self.path("link.npy")), "y.npy")
        self.run_well("dynamic-quant-asymmetric", "x.npy", "-o", "link.npy", "--scale-output", "s.npy")
        self.assertFalse(os.path.islink(self.path("link.npy")))
        self.assertEqual(self.read("y.npy"), self.before)

    def test_replaced_outputs(self):
        self.write("s.npy", self.before)
        y, scale, offset = dynamic(self.x, None, None, False, "int8")
        for _ in range(2):
            self.run_well("dynamic-quant-asymmetric", "x.npy", "-o", "y.npy", "--scale-output", "s.npy",
                          "--offset-output", "o.npy")
            for name, expected in (("y.npy", y), ("s.npy", scale), ("o.npy", offset)):
                self.assert_output(name, expected)
        self.assertEqual(sorted(os.listdir(self.folder)), ["o.npy", "s.npy", "x.npy", "y.npy"])

    # ---- signals ----

    large = (1 << 23,)

    def temporaries(self):
        return [name for name in os.listdir(self.folder) if name.startswith(".npuquant-")]

    def stopped_while_writing(self, **options):
        """A run that is stopped between its temporary file and its result."""
        save(self.path("x.npy"), np.ones(self.large, "f2"), "C")
        save(self.path("one.npy"), np.array([1], f4), "C")
        words = [TOOL, "quantize", "x.npy", "--scales", "one.npy", "--dtype", "int32", "-o", "y.npy"]
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            process = subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            while process.poll() is None and not self.temporaries():
                time.sleep(0.0001)
            if process.poll() is None:
                process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if self.temporaries() and self.read("y.npy") == self.before:
                return process
            process.send_signal(signal.SIGCONT)
            process.communicate()
            self.write("y.npy", self.before)
        return self.skipTest("the tool was never caught while it wrote")

    def end(self, process, number):
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(err, b"")
        return process.returncode, out

    def test_signals(self):
        numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGALRM,
                   signal.SIGXCPU, signal.SIGUSR1, signal.SIGUSR2)

        def at_start():  # no core dump, and the ignored signals of nohup
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for number in numbers:
                signal.signal(number, signal.SIG_DFL)

        for number in numbers:
            with self.subTest(number):
                status, out = self.end(self.stopped_while_writing(preexec_fn=at_start), number)
                self.assertEqual(status, -number)
                self.assertRegex(out, rb"\A(quantize: [^\n]+\n)?\Z")  # the summary may have been printed
                self.assertEqual(sorted(os.listdir(self.folder)), ["one.npy", "x.npy", "y.npy"])
                self.assertEqual(self.read("y.npy"), self.before)

    def test_kill(self):
        """Nothing is cleaned up, but the output's name keeps its file, and the next run succeeds."""
        status, _ = self.end(self.stopped_while_writing(), signal.SIGKILL)
        self.assertEqual(status, -signal.SIGKILL)
        self.assertEqual(self.read("y.npy"), self.before)
        self.assertEqual(len(self.temporaries()), 1)
        self.run_well("quantize", "x.npy", "--scales", "one.npy", "-o", "y.npy")
        self.assert_output("y.npy", np.ones(self.large, "i1"))

    def test_ignored_signals(self):
        process = self.stopped_while_writing(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        status, out = self.end(process, signal.SIGHUP)
        self.assertEqual((status, out[:9]), (0, b"quantize:"))
        self.assert_output("y.npy", np.ones(self.large, "i4"))
        self.assertEqual(self.temporaries(), [])


class Streams(ToolTest):
    def setUp(self):
        super().setUp()
        self.x = random_floats((6, 8), "f4", special=0)
        save(self.path("x.npy"), self.x, "C")
        save(self.path("one.npy"), np.array([1], f4), "C")
        self.words = ("dynamic-quant-asymmetric", "x.npy")
        self.y, self.scale, self.offset = dynamic(self.x, None, None, False, "int8")

    def assert_stream(self, data, expected):
        self.write("stream.npy", data)
        self.assert_output("stream.npy", expected)

    def test_stdin(self):
        file = self.read("x.npy")
        expected = quantize(self.x, np.array([1], f4), None, 1, True, "int8")
        for data in ("x.npy", "one.npy"):
            words = ["-" if name == data else name for name in ("x.npy", "one.npy")]
            with open(self.path(data), "rb") as regular:  # a mapped file
                self.run_well("quantize", words[0], "--scales", words[1], "-o", "y.npy", stdin=regular)
            self.assert_output("y.npy", expected)
            self.run_well("quantize", words[0], "--scales", words[1], "-o", "y.npy", input=self.read(data))
            self.assert_output("y.npy", expected)
        save(self.path("expected.npy"), expected)
        for option in (["--expect", "-"], ["--expect=-"]):
            self.assertIn("all 48 elements equal", self.run_well("quantize", "x.npy", "--scales", "one.npy", *option,
                                                                  input=self.read("expected.npy")))
        self.write("behind.npy", b"read before" + file)
        with open(self.path("behind.npy"), "rb", buffering=0) as regular:  # only the rest is the file
            regular.read(len("read before"))
            self.run_well("quantize", "-", "--scales", "one.npy", "-o", "y.npy", stdin=regular)
        self.assert_output("y.npy", expected)

    def test_bad_stdin(self):
        self.run_badly("quantize", "-", "--scales", "one.npy", input=b"", says="stdin: not a .npy file")
        self.run_badly("quantize", "-", "--scales", "one.npy", input=self.read("x.npy")[:-1], says="stdin: truncated: ")
        self.run_badly("quantize", "x.npy", "--scales", "one.npy", "--expect", "-", input=self.read("x.npy"),
                       says="stdin: holds f4 [6, 8]; expected i1 [6, 8] to compare with y")
        self.run_badly("quantize", "-", "--scales", "one.npy", "--bf16", "x", input=self.read("x.npy"),
                       says="which no bfloat16 is: ")
        self.run_badly("quantize", "-", "--scales", "-", input=b"",
                       says="stdin (-): is named for x and for scales; expected one of them")
        self.run_badly("quantize", "-", "--scales", "one.npy", "--expect", "-", says="for x and for expect;")
        self.run_badly("quantize", "-", "--scales", "one.npy", says="stdin: ", preexec_fn=lambda: os.close(0))

    def test_stdout(self):
        """stdout has the result alone; other text goes to stderr."""
        os.mkfifo(self.path("pipe"))
        with subprocess.Popen(["cat", "pipe"], cwd=self.folder, stdout=subprocess.PIPE) as reader:
            with open(self.path("pipe"), "wb") as pipe:
                subprocess.run([TOOL, *self.words, "-o", "pipe"], cwd=self.folder, stdout=pipe, stderr=subprocess.PIPE,
                               check=True)
            self.assert_stream(reader.communicate(timeout=60)[0], self.y)
        for name in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            if name.startswith("/proc") and not os.path.exists(name):
                continue
            done = self.run_tool(*self.words, "-o", name)
            self.assertRegex(done.err, r"\Adynamic-quant-asymmetric: x float32 \[6, 8\], y int8, [^\n]+\n\Z")
            self.assertEqual(done.returncode, 0)
            self.assert_stream(done.stdout, self.y)
            with open(self.path("redirected.npy"), "wb") as file:  # no other file replaces this one
                subprocess.run([TOOL, *self.words, "-q", "-o", name], cwd=self.folder, stdout=file, check=True)
            self.assert_output("redirected.npy", self.y)
        self.assertTrue(os.path.exists("/dev/stdout"))
        save(self.path("expected.npy"), self.y ^ 1)
        done = self.run_tool(*self.words, "--scale-output", "-", "-o", "y.npy", "--expect", "expected.npy")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.err.startswith("y: 48 of 48 elements differ "))
        self.assert_stream(done.stdout, self.scale)
        self.assert_output("y.npy", self.y)

    def test_pipeline(self):
        command = ('"$0" quantize - --scales one.npy -o - <x.npy 2>first |'
                   ' "$0" quantize x.npy --scales one.npy --expect - --quiet')
        done = subprocess.run(["sh", "-c", command, TOOL], cwd=self.folder, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        self.assertTrue(self.read("first").startswith(b"quantize: "))

    def test_layer(self):
        """A quantised linear layer: the activations' scales bypass the product, and the sums go through a pipe."""
        weights = random_integers((8, 5), "i1")
        scale = random_floats(5, "f4", special=0)
        save(self.path("w.npy"), weights)
        save(self.path("scale.npy"), scale)
        command = ('"$0" dynamic-quant x.npy -q -o q.npy --scale-output rows.npy &&'
                   ' "$0" quant-matmul - w.npy --scale scale.npy --pertoken-scale rows.npy --dtype bfloat16 -o y.npy -q'
                   ' <q.npy && "$0" dynamic-quant x.npy -q -o - | "$0" quant-matmul - w.npy -q --dtype int32 -o - |'
                   ' "$0" dequant - --weight-scale scale.npy --activation-scale rows.npy --dtype bfloat16'
                   ' --expect y.npy -q')
        done = subprocess.run(["sh", "-c", command, TOOL], cwd=self.folder, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        y, rows = dynamic_quant(self.x, None, None, False, "product", "int8")
        self.assert_output("rows.npy", rows)
        self.assert_output("y.npy", quant_matmul(y, weights, scale, None, rows, None, "bfloat16"))

    def test_devices(self):
        self.run_well(*self.words, "-o", "/dev/null", "--scale-output", "/dev/null", "--offset-output", "o.npy")
        self.assertFalse(os.path.isfile("/dev/null"))
        self.assert_output("o.npy", self.offset)
        self.assertEqual(sorted(os.listdir(self.folder)), ["o.npy", "one.npy", "x.npy"])

    def test_pipes_and_descriptors(self):
        os.mkfifo(self.path("fifo"))
        with subprocess.Popen(["cat", "fifo"], cwd=self.folder, stdout=subprocess.PIPE) as reader:
            self.run_well(*self.words, "-o", "fifo")
            data = reader.communicate(timeout=60)[0]
        self.assert_stream(data, self.y)
        with open(self.path("open.npy"), "wb") as file:
            self.run_well(*self.words, "-o", f"/dev/fd/{file.fileno()}", pass_fds=[file.fileno()])
        self.assert_output("open.npy", self.y)

    def test_two_for_one_stream(self):
        for name in ("-", "/dev/stdout"):
            self.run_badly(*self.words, "-o", "-", "--scale-output", name, says=f"{name}: named for two outputs")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_stream(self):
        """Streams come first: if one fails, all files keep their content."""
        self.write("s.npy", b"before")
        self.run_badly(*self.words, "-o", "/dev/full", "--scale-output", "s.npy", prints="dynamic",
                       says="/dev/full: cannot be written: No space left on device")
        self.assertEqual(self.read("s.npy"), b"before")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TOOL, *self.words, "-q", "-o", "-", "--scale-output", "s.npy"], cwd=self.folder,
                                  stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (2, b"npuquant: stdout: cannot be written: No space left on device\n"))
        self.assertEqual(self.read("s.npy"), b"before")

    def test_what_cannot_be_taken_back(self):
        long = "o" * 300
        for words in (("-o", "-", "--scale-output", "s.npy", "--offset-output", long),
                      ("-o", long, "--scale-output", "s.npy", "--offset-output", "-")):
            done = self.run_tool(*self.words, "-q", *words)
            self.assertEqual((done.returncode, done.err), (2, f"npuquant: {long}: cannot be written: File name too "
                                                              "long; but stdout is, and cannot be taken back\n"))
            self.assertEqual(sorted(os.listdir(self.folder)), ["one.npy", "x.npy"])


class Shrinking(ToolTest):
    """Other programs truncate inputs while the tool has them mapped."""

    size = 300000

    def run_with_cut(self, name, size, *words):
        """Quantises x.npy, and changes the size of a file while the tool, which has mapped x.npy, waits for the
        scales."""
        if not os.path.exists(self.path("scales.npy")):
            os.mkfifo(self.path("scales.npy"))
        words = [TOOL, "quantize", "x.npy", "--scales", "scales.npy", "-o", "y.npy", *words]
        with subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            self.addCleanup(process.kill)
            with open(self.path("scales.npy"), "wb") as fifo:  # opens when the tool does
                os.truncate(self.path(name), size)
                fifo.write(npy_bytes(header("'<f4'", shape="(1,)")) + np.array([1], "<f4").tobytes())
            _, err = process.communicate(timeout=60)
        return process.returncode, err.decode()

    def test_cut_input(self):
        """Empty; cut after the header; cut in the last page, whose rest reads as zeros."""
        for size in (0, 200, self.size * 4):
            for threads in ("1", "4"):
                with self.subTest(size=size, threads=threads):
                    save(self.path("x.npy"), random_floats((self.size,), "f4"), "C")
                    self.write("y.npy", b"before")
                    status, err = self.run_with_cut("x.npy", size, "--threads", threads)
                    self.assertEqual(status, 2)
                    self.assertRegex(err, r"\Anpuquant: x\.npy: [^\n]*was cut short while it was in use[^\n]*\n\Z")
                    self.assertEqual(self.read("y.npy"), b"before")
                    self.assertEqual(sorted(os.listdir(self.folder)), ["scales.npy", "x.npy", "y.npy"])

    def test_signal_of_another_cause(self):
        """SIGBUS from another process ends the tool by its default action."""
        save(self.path("x.npy"), random_floats((self.size,), "f4"), "C")
        os.mkfifo(self.path("scales.npy"))
        words = [TOOL, "quantize", "x.npy", "--scales", "scales.npy", "-o", "y.npy"]
        no_core = lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with subprocess.Popen(words, cwd=self.folder, preexec_fn=no_core) as process:
            self.addCleanup(process.kill)
            with open(self.path("scales.npy"), "wb"):  # opens when the tool does
                process.send_signal(signal.SIGBUS)
                self.assertEqual(process.wait(timeout=60), -signal.SIGBUS)

    def test_grown_input(self):
        """Bytes after the data may change once the file was accepted."""
        x = random_floats((self.size,), "f4")
        save(self.path("x.npy"), x, "C")
        self.assertEqual(self.run_with_cut("x.npy", self.size * 5), (0, ""))
        self.assert_output("y.npy", quantize(x, np.array([1], f4), None, 0, True, "int8"))


class Talking(ToolTest):
    """Help, information, progress."""

    @unittest.skipUnless(hasattr(os, "sched_setaffinity"), "this system cannot keep a program to one processor")
    def test_processors(self):
        one = {"preexec_fn": lambda: os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])}
        out = subprocess.run([TOOL, "info"], stdout=subprocess.PIPE, check=True, **one).stdout.decode()
        self.assertRegex(out, r"(?m)^processors: +1$")

    def test_help(self):
        general = self.run_well("--help")
        for words in (("-h",), ("help",), ("help", "help"), ("help", "--help")):
            self.assertEqual(general, self.run_well(*words))
        for command in COMMANDS:
            self.assertIn(f"  {command} ", general)
            text = self.run_well(command, "--help")
            self.assertEqual(text, self.run_well(command, "x.npy", "--quiet", "-h", "--nonsense"))
            self.assertEqual(text, self.run_well("help", command))
            self.assertTrue(text.startswith(f"usage: npuquant {command} "))
            self.assertIn(f"example:\n  npuquant {command} ", text)
            for option in ("--output", "--expect", "--bf16", "--backend", "--threads", "--help"):
                self.assertIn(option, text)
        for words in ("group-quant X", "trans-quant-param SCALE", "quant-matmul X1 X2"):
            self.assertTrue(self.run_well("help", words.split()[0]).startswith(f"usage: npuquant {words} [OPTION]..."))
        self.assertIn("example:", self.run_well("info", "--help"))
        self.assertEqual(self.run_well("help", "info"), self.run_well("info", "--help"))

    def test_help_examples_work(self):
        for command in COMMANDS:
            self.save_example_inputs(command)
            words = self.run_well(command, "--help").split("example:\n  npuquant ")[1].replace("\\\n", "").split()
            self.run_well(*words)

    def test_help_fits_a_terminal(self):
        general = self.run_well("help")
        commands = re.findall("^  ([a-z][a-z-]*) ", general, re.MULTILINE)
        self.assertEqual(set(COMMANDS) - set(commands), set())
        texts = {(): general, **{(command,): self.run_well("help", command) for command in commands}}
        for mode in commands:
            operators = re.findall("^  ([a-z][a-z-]*)$", texts[mode,], re.MULTILINE)
            texts.update({(mode, operator): self.run_well("help", mode, operator) for operator in operators})
        self.assertIn(("hard-inputs", "quantize"), texts)
        long = [(*words, line) for words, text in texts.items() for line in text.splitlines() if len(line) > 80]
        self.assertEqual(long, [])

    def test_info(self):
        text = self.run_well("info")
        self.assertEqual(self.run_well("--version").split()[1], text.split()[1].rstrip(","))
        self.assertEqual(self.run_well("-V"), self.run_well("--version"))
        for line in ("backends: ref ", "CPU features:", "processors: ", "system: ", "compiler: "):
            self.assertIn("\n" + line, text)
        self.assertEqual(text.count("(active)"), 1)

    def test_backend_by_environment(self):
        def info(name):
            environment = {**os.environ, "NPUQ_BACKEND": name}
            return subprocess.run([TOOL, "info"], env=environment, capture_output=True, text=True, check=True)

        named = info("ref")
        self.assertIn("ref (active)", named.stdout)
        self.assertEqual(named.stderr, "")
        for name in ("nonsense", "REF", "neon" if "neon (not" in named.stdout else "avx512"):
            ignored = info(name)
            self.assertRegex(ignored.stderr, rf"^npuquant: NPUQ_BACKEND={name} .*; using \w+\n$")
            self.assertNotIn(f"{name} (active)", ignored.stdout)

    def test_progress(self):
        save(self.path("x.npy"), np.ones((1000, 1000), f4), "C")
        try:
            terminal, end = pty.openpty()
        except OSError:
            self.skipTest(NO_RIGHTS + "there are no pseudo-terminals (devpts is not mounted)")
        words = ["dynamic-quant-asymmetric", "x.npy", "--backend", "ref", "--threads", "1", "--repeat", "300"]
        with subprocess.Popen([TOOL, *words], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=end) as process:
            os.close(end)
            seen = b""
            try:
                while chunk := os.read(terminal, 4096):
                    seen += chunk
            except OSError:  # Linux: the other end is closed
                pass
        os.close(terminal)
        self.assertEqual(process.returncode, 0)
        self.assertRegex(seen, rb"\A(\rdynamic-quant-asymmetric: +\d+ %)+\r\x1b\[K\Z")


def run_tests():
    """Runs the tests of the program that was started."""
    print(f"NPUQ_TEST_SEED={SEED}", flush=True)
    result = unittest.main(verbosity=1, exit=False).result
    for test, reason in result.skipped:
        print(f"SKIPPED: {test.id()}: {reason}")
    strict = sys.platform == "linux" and os.environ.get("CI") == "true"
    wanted = [test for test, reason in result.skipped if strict and not reason.startswith(NO_RIGHTS)]
    sys.exit(not result.wasSuccessful() or len(wanted) > 0)


if __name__ == "__main__":
    run_tests()
