# SPDX-License-Identifier: BSD-3-Clause
"""Hard inputs from the tool, and what it says about results for them."""
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np

TOOL = os.path.abspath(os.environ["NPUQUANT_TOOL"])


class Call:
    """A folder of inputs and its manifest.

    arguments has the options with their defaults filled in, as the manifest names them; inputs the arrays by name, of
    which those of bfloat16 are uint16; mistakes the names of all that can be made in this call.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        manifest = json.loads((self.folder / "manifest.json").read_text())
        self.operator = manifest["operator"]
        self.arguments = manifest["arguments"]
        self.types = {name: entry["dtype"] for name, entry in manifest["inputs"].items()}
        self.inputs = {name: np.load(self.folder / entry["file"]) for name, entry in manifest["inputs"].items()}
        self.outputs = manifest["outputs"]
        self.command = manifest["diagnose"].split()
        self.same_as = {entry["name"]: entry["same_as"] for entry in manifest["mistakes"]}
        self.changed = {entry["name"]: entry["elements"] for entry in manifest["mistakes"]}
        self.mistakes = list(self.same_as)

    def alike(self, mistake):
        """The mistakes, this one included, that give the same wrong results; none where it changes nothing."""
        first = {name: self.same_as[name] or name for name in self.mistakes if self.changed[name]}
        return [name for name in first if first[name] == first.get(mistake)]

    def diagnose(self, results):
        """What `npuquant diagnose` says, as JSON, when a kernel has returned these results, arrays by name.

        They are written to a folder of their own, so that several may be diagnosed at once.
        """
        with tempfile.TemporaryDirectory() as folder:
            paths = {f"{name}.npy": os.path.join(folder, f"{name}.npy") for name in results}
            for name, array in results.items():
                np.save(paths[f"{name}.npy"], array)
            command = [TOOL, *(paths.get(word, word) for word in self.command[1:]), "--json"]
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        said = json.loads(done.stdout)
        assert done.returncode == (said["verdict"] != "equal"), said
        return said


def hard_inputs(folder, operator, *options):
    """Makes hard inputs in a folder."""
    done = subprocess.run([TOOL, "hard-inputs", operator, *options, "-o", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Call(folder)


def names(finding):
    """The names of a finding's hypotheses."""
    return [hypothesis["name"] for hypothesis in finding["hypotheses"]]


def first_place(said):
    """The findings that explain everything."""
    return [names(finding) for finding in said["findings"][: said["first_place"]]]
