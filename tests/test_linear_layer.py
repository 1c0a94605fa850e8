#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/linear-layer.md and its programs: the page's C is that of linear_layer.c, which prints what is printed there; the
page's Python has the same results.

NPUQ_SOURCE and NPUQ_BUILD are the folders of the source and of the build.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(os.environ["NPUQ_SOURCE"])
PROGRAM = os.path.join(os.path.abspath(os.environ["NPUQ_BUILD"]), "examples", "linear_layer")


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```\n", read("docs", "linear-layer.md"), re.DOTALL | re.MULTILINE)


class LinearLayer(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_in_folder(self, *command, **environment):
        return subprocess.run(command, cwd=self.folder, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", timeout=60, check=False)

    def make_inputs(self):
        done = self.run_in_folder(sys.executable, os.path.join(SOURCE, "examples", "linear_layer.py"), "inputs.bin")
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_code(self):
        """Every block is in the programs, apart from indentation."""
        def stripped(text):
            return "\n" + "\n".join(line.strip() for line in text.splitlines()) + "\n"

        self.assertGreater(len(blocks("c")), 5)
        for block in blocks("c"):
            self.assertIn(stripped(block), stripped(read("examples", "linear_layer.c")))
        self.assertIn("\n" + blocks("python")[0], read("examples", "linear_layer.py"))

    def test_results(self):
        """Also where oneDNN's products saturate: on CPUs of x86 without VNNI, of which this may be one."""
        self.make_inputs()
        made, printed = blocks("console")
        self.assertEqual(made, "$ python3 examples/linear_layer.py inputs.bin\n")
        for environment in {}, {"DNNL_MAX_CPU_ISA": "AVX2"}:
            done = self.run_in_folder(PROGRAM, "inputs.bin", "results.bin", **environment)
            self.assertEqual("$ build/examples/linear_layer inputs.bin results.bin\n" + done.stdout, printed)
            done = self.run_in_folder(sys.executable, "-c", blocks("python")[1])
            self.assertEqual((done.returncode, done.stdout), (0, "equal: True\n"))

    def test_times(self):
        self.make_inputs()
        done = self.run_in_folder(PROGRAM, "inputs.bin", "results.bin", "2")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"\nnpuq_dynamic_quant\(\) +[\d.]+ ms\nint8 product +[\d.]+ ms\n"
                                      r"npuq_dequant\(\) +[\d.]+ ms\n\Z")

    def test_refusals(self):
        self.make_inputs()
        os.truncate(os.path.join(self.folder, "inputs.bin"), 4000)
        for arguments, line in (((), "usage: .*"), (("inputs.bin",), "usage: .*"),
                                (("missing", "out"), "missing or out cannot be opened, or has too few bytes"),
                                (("inputs.bin", "out"), "inputs.bin or out cannot be opened, or has too few bytes")):
            done = self.run_in_folder(PROGRAM, *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stdout, rf"\A{line}\n\Z")


if __name__ == "__main__":
    unittest.main(verbosity=2)
