# SPDX-License-Identifier: BSD-3-Clause
"""The command npuquant. The package npuquant reads the facts of operators that are here."""
from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Optional, Sequence

from .errors import CommandError, print_text, report

if TYPE_CHECKING:
    import argparse


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a command line, without the program's name, and returns the exit status."""
    from . import options  # not with the package npuquant

    try:
        return run_command(options.parse(sys.argv[1:] if argv is None else argv))
    except CommandError as error:
        report(error)
    except MemoryError as error:  # NumPy's says how much was wanted
        report(CommandError(f"out of memory: {error}" if str(error) else "out of memory"))
    return 2


def run_command(arguments: argparse.Namespace) -> int:
    """Does the work, and returns the exit status."""
    if arguments.command == "print":
        print_text(arguments.text)
        return 0
    from . import hard, run  # they import NumPy

    if arguments.mode == "hard-inputs":
        return hard.make_hard_inputs(arguments)
    others = {"compare": run.compare_dumps, "hypotheses": run.list_hypotheses, "info": run.print_info}
    return others.get(arguments.command, run.run_operator)(arguments)


def start() -> None:
    """The program. Signals end it as they end a program in C: Python's own handlers would print a traceback for an
    interrupt, and an error for a pipe that nobody reads."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
