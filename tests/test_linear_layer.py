#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/linear-layer.md and its two programs.

Page: its C is that of the programs, and linear_layer_variants prints what is printed there.
Layer: the page's Python computes the checksums of w8a8_linear.

NPUQ_SOURCE and NPUQ_BUILD are the folders of the source and of the build.
usage: test_linear_layer.py Page | Layer
"""
import os
import platform
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(os.environ["NPUQ_SOURCE"])
PROGRAMS = os.path.join(os.path.abspath(os.environ["NPUQ_BUILD"]), "examples")


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```\n", read("docs", "linear-layer.md"), re.DOTALL | re.MULTILINE)


def run(*command, **environment):
    return subprocess.run(
        command,
        env=dict(os.environ, **environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


class Page(unittest.TestCase):
    maxDiff = None

    def test_code(self):
        """Every block is in one of the programs, apart from indentation."""
        programs = [
            "\n".join(line.strip() for line in read("examples", name).splitlines())
            for name in ("w8a8_linear.c", "linear_layer_variants.c")
        ]
        self.assertGreater(len(blocks("c")), 5)
        for block in blocks("c"):
            code = "\n".join(line.strip() for line in block.splitlines())
            self.assertTrue(any(f"\n{code}\n" in program for program in programs), block)

    def test_variants(self):
        done = run(os.path.join(PROGRAMS, "linear_layer_variants"))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(blocks("console"), ["$ build/examples/linear_layer_variants\n" + done.stdout])


class Layer(unittest.TestCase):
    SIZES = ("5", "264", "200")
    ONE_TOKEN = ("1", "256", "64")  # in its calibration, some inputs are 0

    def layer(self, sizes=SIZES, **environment):
        return run(os.path.join(PROGRAMS, "w8a8_linear"), *sizes, **environment)

    def exact_layer(self, sizes=SIZES):
        """Skips the test where oneDNN's products saturate: on CPUs of x86 without VNNI."""
        done = self.layer(sizes)
        if "not exact" in done.stdout:
            self.skipTest("oneDNN's sums are not exact on this CPU")
        return done

    def test_checksums(self):
        """Of the int8 activations, of the sums, and of the result."""
        (code,) = blocks("python")
        for sizes in (self.SIZES, self.ONE_TOKEN):
            done = self.exact_layer(sizes)
            self.assertEqual(done.returncode, 0, done.stdout)
            with tempfile.TemporaryDirectory() as folder:
                program = os.path.join(folder, "layer.py")
                with open(program, "w", encoding="utf-8") as file:
                    file.write(code)
                python = run(sys.executable, program, *sizes)
            self.assertEqual(python.returncode, 0, python.stdout)
            self.assertRegex(python.stdout, r"\Acrc32: x_q \w{8}, sums \w{8}, y \w{8}\n\Z")
            self.assertIn("\n" + python.stdout, done.stdout)

    def test_error(self):
        """Smooth scales make the error smaller: here to less than a third."""
        printed = self.exact_layer().stdout
        errors = re.findall(r"^with(?:out)? smooth scales +([\d.]+) % +([\d.]+) %$", printed, re.MULTILINE)
        self.assertEqual(len(errors), 2)
        for without, with_scales in zip(*errors):
            self.assertLess(3 * float(with_scales), float(without))

    @unittest.skipUnless(platform.machine() in ("x86_64", "AMD64"), "oneDNN can leave out instructions of x86 only")
    def test_sums_that_saturate(self):
        done = self.layer(DNNL_MAX_CPU_ISA="AVX2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("The sums are not exact", done.stdout)

    def test_usage(self):
        for arguments in (["0"], ["x"], [""], ["65537"], ["1", "2", "3", "1", "5"]):
            done = run(os.path.join(PROGRAMS, "w8a8_linear"), *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stdout, r"\Ausage: .*\n\Z")


if __name__ == "__main__":
    unittest.main(defaultTest=sys.argv.pop(1), verbosity=2)
