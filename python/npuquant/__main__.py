# SPDX-License-Identifier: BSD-3-Clause
"""python -m npuquant: the command npuquant."""
from npuquant_cli import start

if __name__ == "__main__":
    start()
