# SPDX-License-Identifier: BSD-3-Clause
"""npuquant hard-inputs: a folder of inputs on which mistakes show, and a program that is run on them."""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
from typing import Any, Dict, Sequence

import numpy as np

import npuquant
from npuquant._causes import reports
from npuquant._tensors import NAMES

from . import files, options
from .errors import CommandError, print_text, printable
from .files import Tensor
from .run import EQUAL, RESULTS, function_of, python_arguments, run_operator, settings_of


def _entry(name: str, array: np.ndarray, dtype: str) -> Dict[str, Any]:
    return {"file": f"{name}.npy", "dtype": dtype, "shape": list(array.shape)}


def _diagnose_command(given: argparse.Namespace, inputs: Dict[str, Tensor], settings: Dict[str, Any],
                      results: Sequence[str]) -> str:
    """The command for the results, to be run in the folder."""
    words = ["npuquant", "diagnose", given.command]
    for i, option in enumerate(inputs):
        words += [f"--{option}"] * (i > 0) + [f"{option.replace('-', '_')}.npy"]
    bfloat16 = [option for option, tensor in inputs.items() if tensor.dtype == "bfloat16"]
    words += ["--bf16", ",".join(bfloat16)] if bfloat16 else []
    for option, value in settings.items():
        words += [f"--{option}", str(value).lower() if isinstance(value, bool) else f"{value}"]
    for name in results:
        words += ["--expect" if name == "y" else f"--expect-{name}", f"{name}.npy"]
    return " ".join(words)


def make_hard_inputs(given: argparse.Namespace) -> int:
    """Makes inputs on which mistakes show; writes them and a manifest to a folder. Runs a program on them if asked."""
    settings = settings_of(given, len(given.shape))
    names = python_arguments(given.command, {row.name: row.name for row in options.inputs_of(given.command)})
    function = function_of(given.command)
    try:
        hard = npuquant.hard_inputs(
            function, given.shape, dtypes=python_arguments(given.command, given.type),
            without=[name for name in names if names[name] in given.without], seed=given.seed,
            **python_arguments(given.command, settings))
        results = function(**hard.call)
    except (TypeError, ValueError) as error:
        words = str(error)
        raise CommandError(f"--{words}" if words.startswith(("shape:", "without:")) else words) from None
    results = results if isinstance(results, tuple) else (results,)
    inputs = {names[python_name]: Tensor(array, given.type.get(names[python_name]) or NAMES[array.dtype])
              for python_name, array in hard.inputs.items()}
    folder = given.output
    operator = options.operator_of(given.command)
    types = [given.dtype, *[result.types[0] for result in (operator.results if operator else ())[1:]]]
    manifest = {
        "npuquant": npuquant.__version__,
        "operator": given.command,
        "seed": given.seed,
        "arguments": {name.replace("-", "_"): value for name, value in settings.items()},
        "inputs": {name.replace("-", "_"): _entry(name.replace("-", "_"), tensor.array, tensor.dtype)
                   for name, tensor in inputs.items()},
        "outputs": {name: _entry(name, array, dtype) for name, array, dtype in zip(RESULTS, results, types)},
        "diagnose": _diagnose_command(given, inputs, settings, RESULTS[:len(results)]),
        "mistakes": [mistake._asdict() for mistake in hard.mistakes],
    }
    paths = {name: os.path.join(folder, f"{name.replace('-', '_')}.npy") for name in inputs}
    manifest_path = os.path.join(folder, "manifest.json")
    results_of_program = {name: os.path.join(folder, f"{name}.npy") for name in RESULTS[:len(results)]}
    if given.run:
        files.check_outputs(results_of_program)
    with files.Outputs() as outputs:
        outputs.add_folder(folder)
        for name, tensor in inputs.items():
            outputs.add(paths[name], tensor.array)
        outputs.add_text(manifest_path, json.dumps(manifest, indent=2) + "\n")
        if not given.quiet and not given.json:
            print_text(f"{printable(folder)}: {reports.mistakes_text(manifest['mistakes'])}\n")
        outputs.commit()
    if not given.run:
        return EQUAL
    _run_program(given.run, manifest_path, results_of_program)
    expect = {name: path for name, path in results_of_program.items() if os.path.exists(path)}
    diagnosed = argparse.Namespace(**{
        **vars(given), "mode": "diagnose", "inputs": paths, "outputs": {}, "expect": expect,
        "files": {**paths, **{options.RESULTS[name][1]: path for name, path in expect.items()}},
        "bf16": {name for name, tensor in inputs.items() if tensor.dtype == "bfloat16"}})
    return run_operator(diagnosed)


def _run_program(command: str, manifest_path: str, results: Dict[str, str]) -> None:
    """Runs the user's program, which must leave at least y."""
    for path in results.values():  # of an earlier run
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
    # The shell has the name of the manifest as $1.
    words = [f'{command} "{manifest_path}"'] if os.name == "nt" else [f'{command} "$1"', "sh", manifest_path]
    status = subprocess.call(words, shell=True, stdout=2)  # to stderr
    status = 128 - status if status < 0 else status  # as shells report a signal
    if status != 0:
        raise CommandError(f"--run: the command failed with status {status}")
    if not os.path.exists(results["y"]):
        raise CommandError(f"--run: the command has left no {results['y']}")
