# SPDX-License-Identifier: BSD-3-Clause
"""How many threads the operators run on."""
from __future__ import annotations

import operator
from typing import Any

_threads = 1


def set_num_threads(threads: int) -> None:
    """Lets later calls run on up to so many threads each; 1, as at the start, means the calling thread alone.

    The threads of a call end with it. Results never change; small tensors are not worth a second thread, and the
    library does not use one for them.
    """
    global _threads
    try:
        threads = operator.index(threads)
    except TypeError:
        raise TypeError(f"threads: is {type(threads).__name__}; expected an integer") from None
    if threads < 1:
        raise ValueError(f"threads: is {threads}; expected 1 or more")
    _threads = min(threads, 2**31 - 1)


def get_num_threads() -> int:
    """On how many threads at most a call runs."""
    return _threads


def run(function: Any, *arguments: Any) -> None:
    """Calls an operator of _native."""
    function(*arguments, _threads)
