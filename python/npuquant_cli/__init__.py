# SPDX-License-Identifier: BSD-3-Clause
"""The command npuquant."""
from __future__ import annotations

import os
import signal
import sys
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Optional, Sequence, Type

from .errors import print_text, report

if TYPE_CHECKING:
    import argparse


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a command line, without the program's name, and returns the exit status."""
    try:
        from . import options  # not with the package npuquant

        return run_command(options.parse(sys.argv[1:] if argv is None else argv))
    except Exception as error:  # of any kind: Python's own status for it is 1, which means that something differs
        report(error)
    return 2


def run_command(arguments: argparse.Namespace) -> int:
    """Does the work, and returns the exit status."""
    if arguments.command == "print":
        print_text(arguments.text)
        return 0
    if arguments.mode == "hard-inputs":
        from . import hard  # imports NumPy, and what other commands do not need

        return hard.make_hard_inputs(arguments)
    from . import run

    others = {"compare": run.compare_dumps, "hypotheses": run.list_hypotheses, "info": run.print_info}
    return others.get(arguments.command, run.run_operator)(arguments)


def open_streams() -> None:
    """Opens standard streams that are closed, so that each use of them fails. Otherwise the next file that is opened
    takes their place, and print() succeeds without printing."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 0 else os.O_RDONLY)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)


def end(kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]) -> NoReturn:
    """Ends the program by an exception outside of main(), as main() would: a function for sys.excepthook."""
    open_streams()
    report(error)
    sys.exit(2)


def start() -> None:
    """The program. Signals end it as they end a program in C: Python's own handlers would print a traceback for an
    interrupt, and an error for a pipe that nobody reads."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # which the program's first line blocks
    open_streams()
    sys.exit(main())
