# SPDX-License-Identifier: BSD-3-Clause
"""python -m npuquant: the command npuquant, as the script that pip installs."""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys

# Beside this file in a wheel; a build has it elsewhere.
BUNDLED = pathlib.Path(__file__).with_name("bin") / ("npuquant.exe" if os.name == "nt" else "npuquant")


def main() -> int:
    """Becomes the command, with the same arguments."""
    tool = os.environ.get("NPUQUANT_TOOL") or str(BUNDLED)
    command = [tool, *sys.argv[1:]]
    try:
        if os.name == "nt":  # there the shell does not wait for a program that execv() starts
            return subprocess.call(command)
        os.execv(tool, command)
    except OSError as error:
        sys.exit(f"npuquant: the command cannot be run: {tool}: {error.strerror}; install the package with pip, or set "
                 "NPUQUANT_TOOL to the command's path")


if __name__ == "__main__":
    sys.exit(main())
