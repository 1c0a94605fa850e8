# SPDX-License-Identifier: BSD-3-Clause
"""What the command prints: answers, and errors in one line."""
from __future__ import annotations

import contextlib
import os
import sys
import textwrap
import traceback
from typing import Optional, TextIO


class CommandError(Exception):
    """An error of the user, told in one line; the exit status is 2."""


def printable(text: str) -> str:
    """The text in one line. A file's name may hold anything: a line feed would make two lines, an escape could
    overwrite others."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def reason(error: BaseException) -> str:
    """What an exception says, in one line."""
    text = getattr(error, "strerror", None) or textwrap.shorten(str(error), 400, placeholder=" ...")
    if isinstance(error, MemoryError):  # NumPy's says how much was wanted
        return f"out of memory: {text}" if text else "out of memory"
    return text or type(error).__name__


def _line(error: BaseException) -> str:
    """The line about an exception of any kind."""
    if isinstance(error, CommandError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {reason(error)}"
    if isinstance(error, ImportError):
        return f"the Python package does not load: {reason(error)}"
    if isinstance(error, (MemoryError, OSError)):
        return reason(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (f"internal error: {type(error).__name__}: {reason(error)} ({os.path.basename(place.filename)}, line "
            f"{place.lineno})")


def report(error: BaseException) -> None:
    """Prints the line. If stderr does not take it, only the exit status tells."""
    with contextlib.suppress(CommandError):
        print_text(f"npuquant: {printable(_line(error))}\n", sys.stderr)


def print_text(text: str, stream: Optional[TextIO] = None) -> None:
    """Prints to stdout, or a stream, and waits until it is written: a full disk must not look like success."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), end="", file=stream, flush=True)
    except OSError as error:
        # Python flushes again when it ends, and would report the same failure in other words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise CommandError(f"cannot write to {'stderr' if stream is sys.stderr else 'stdout'}") from error
