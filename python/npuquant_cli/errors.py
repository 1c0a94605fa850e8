# SPDX-License-Identifier: BSD-3-Clause
"""What the command prints: answers, and errors in one line."""
from __future__ import annotations

import os
import sys
from typing import Optional, TextIO

#: A file's name may hold anything: a line feed would make two lines, an escape could overwrite others.
PRINTABLE = {**dict.fromkeys(range(ord(" ")), "?"), 0x7F: "?"}


class CommandError(Exception):
    """An error of the user, told in one line; the exit status is 2."""


def report(error: CommandError) -> None:
    """Prints the line."""
    print("npuquant: " + str(error).translate(PRINTABLE), file=sys.stderr)


def print_text(text: str, stream: Optional[TextIO] = None) -> None:
    """Prints to stdout, or a stream, and waits until it is written: a full disk must not look like success."""
    try:
        print(text, end="", file=stream, flush=True)
    except OSError as error:
        # Python flushes again when it ends, and would report the same failure in other words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise CommandError("cannot write to stdout") from error
