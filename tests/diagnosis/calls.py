# SPDX-License-Identifier: BSD-3-Clause
"""Hard inputs from the tool, and the tool's diagnosis of results."""
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np

TOOL = os.path.abspath(os.environ["NPUQUANT_TOOL"])


class Call:
    """A folder of inputs and its manifest.

    arguments: the options with their defaults, named as in the manifest. inputs: the arrays by name; bfloat16 is
    uint16. mistakes: the names of all mistakes that are possible in this call.
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
        """The mistakes, with this one, that give the same wrong results; empty where the mistake changes nothing."""
        first = {name: self.same_as[name] or name for name in self.mistakes if self.changed[name]}
        return [name for name in first if first[name] == first.get(mistake)]

    def diagnose(self, results):
        """The JSON of `npuquant diagnose` about these results, arrays by name. The results get their own folder, so
        that several threads may diagnose at once."""
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
    done = subprocess.run([TOOL, "hard-inputs", operator, *options, "-o", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Call(folder)


def names(finding):
    """The names of a finding's hypotheses."""
    return [hypothesis["name"] for hypothesis in finding["hypotheses"]]


def first_place(said):
    """The findings that explain all differences."""
    return [names(finding) for finding in said["findings"][: said["first_place"]]]
