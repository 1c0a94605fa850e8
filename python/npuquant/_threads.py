# SPDX-License-Identifier: BSD-3-Clause
"""How the operators of _native are run: on how many threads, and whether the calls are kept."""
from __future__ import annotations

import contextlib
import contextvars
import operator
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from npuquant_facts.dtypes import NUMBERED, Type
from npuquant_facts.operators import OPERATORS

from . import _native

__tracebackhide__ = True  # pytest shows the line that calls the package

_threads = 1


def set_num_threads(threads: int) -> None:
    """Lets each later call run on up to this many threads; 1, as at the start, means the calling thread alone.

    The threads end with the call. For small tensors the library uses one thread. Results do not depend on the number.
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
    """The number of threads that a call may use."""
    return _threads


class Kept(NamedTuple):
    """A call of an operator of _native that is kept with its arguments and results."""

    name: str
    call: Any  # for _native
    function: Any  # of _native
    arguments: Tuple[Any, ...]  # the inputs and options, the results, and the numbers of types: see run()

    @property
    def result(self) -> Type:
        """The type of the first result."""
        return NUMBERED[self.arguments[-2 if "READS_CODES" in OPERATORS[self.name].traits else -1]]


_kept: contextvars.ContextVar[Optional[List[Kept]]] = contextvars.ContextVar("npuquant_kept", default=None)


@contextlib.contextmanager
def keeping() -> Iterator[List[Kept]]:
    """Keeps the calls that this thread makes in the with block."""
    kept: List[Kept] = []
    token = _kept.set(kept)
    try:
        yield kept
    finally:
        _kept.reset(token)


def run(function: Any, *arguments: Any) -> None:
    """Calls an operator of _native; the last of the arguments is the number of the first result's type, and where x has
    codes, behind it that of x's."""
    kept = _kept.get()
    if kept is None:
        function(*arguments, _threads)
    else:
        call = _native.keep(function.__self__, arguments, _threads)
        kept.append(Kept(function.__name__, call, function, arguments))


def keep(name: str, call: Any) -> None:
    """Keeps a call of an operator that is computed here, by the name of its function."""
    kept = _kept.get()
    if kept is not None:
        kept.append(Kept(name, call, None, ()))
