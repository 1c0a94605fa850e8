# SPDX-License-Identifier: BSD-3-Clause
"""python -m npuquant_cli: the command npuquant."""
from __future__ import annotations

from npuquant_cli import start

if __name__ == "__main__":
    start()
