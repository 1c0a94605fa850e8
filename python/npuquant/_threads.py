# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the operators, on the calling thread or spread over several."""
from __future__ import annotations

import _thread
import collections
import operator
import os
import queue
import threading
from typing import Any, List, Optional

# More slices than threads, so that one that is held up does not hold up the rest.
SLICES_PER_THREAD = 4


class _Slices:
    """Slices of range(count), for whoever comes to take them before the end."""

    def __init__(self, count: int, step: int, work: Any):
        self.count, self.step, self.work = count, step, work
        self.begins = collections.deque(range(0, count, step))
        self.failures: List[BaseException] = []
        self.lock = threading.Lock()
        self.helping = 0
        self.ended = False
        self.idle = threading.Lock()
        self.idle.acquire()

    def take(self) -> None:
        while True:
            try:
                begin = self.begins.popleft()
            except IndexError:
                return
            self.work(begin, min(begin + self.step, self.count))

    def help(self) -> None:
        with self.lock:
            if self.ended:  # what it would work on may be gone
                return
            self.helping += 1
        try:
            self.take()
        except BaseException as failure:
            self.failures.append(failure)
        finally:
            with self.lock:
                self.helping -= 1
                if self.ended and self.helping == 0:
                    self.idle.release()

    def end(self) -> None:
        """Returns when nobody helps any more, nor will."""
        with self.lock:
            self.ended = True
            helping = self.helping
        if helping > 0:
            self.idle.acquire()


def _serve(calls: queue.SimpleQueue[Any]) -> None:
    while True:
        call = calls.get()
        if call is None:
            calls.put(None)  # for the next
            return
        call()
        del call


class _Pool:
    """Threads that take the main thread's calls, and help with each other's; none is started before it is needed."""

    def __init__(self, threads: int):
        self.threads = threads
        self.started = 0
        self.calls: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def __del__(self) -> None:
        self.calls.put(None)

    def start(self) -> None:
        # Not threading.Thread, which waits for its start in a way that Ctrl-C can break.
        try:
            while self.started < self.threads:
                _thread.start_new_thread(_serve, (self.calls,))
                self.started += 1
        except RuntimeError:  # no more threads to be had: those that are there do it all
            pass

    def share(self, count: int, work: Any) -> None:
        """Calls work(begin, end) for slices of range(count), here and on other threads."""
        slices = _Slices(count, max(1, count // (self.threads * SLICES_PER_THREAD)), work)
        try:
            for _ in range(min(self.threads, len(slices.begins)) - 1):
                self.calls.put(slices.help)
            slices.take()
        finally:
            slices.end()
        if slices.failures:
            raise slices.failures.pop()

    def call(self, function: Any, holder: List[Any]) -> None:
        """Calls an operator that shares its work.

        The holder has the arguments: when this is done, only the caller still refers to them, so that they go when it
        lets go, and not some time later.
        """
        function(*holder.pop(), self.share)

    def call_elsewhere(self, function: Any, holder: List[Any]) -> None:
        """The same on a thread that no signal interrupts; for the main thread.

        Ctrl-C raises its exception there between any two steps. It must not cut off code that the library is waiting
        for, nor memory that it works on. Queue and lock are those written in C: what the standard library has in Python
        (futures, events) can be left locked.
        """
        failures = []
        done = threading.Lock()
        done.acquire()

        def call() -> None:
            try:
                self.call(function, holder)
            except BaseException as failure:
                failures.append(failure)
            finally:
                done.release()

        self.calls.put(call)
        done.acquire()
        if failures:
            raise failures.pop()


_pool: Optional[_Pool] = None


def set_num_threads(threads: int) -> None:
    """Spreads the work of later calls over so many threads; 1, as at the start, means the calling thread alone.

    Calls at the same time share them. Results never change; small tensors are not worth a second thread, and the
    library does not use one for them.
    """
    global _pool
    try:
        threads = operator.index(threads)
    except TypeError:
        raise TypeError(f"threads: is {type(threads).__name__}; expected an integer") from None
    if threads < 1:
        raise ValueError(f"threads: is {threads}; expected 1 or more")
    _pool = _Pool(threads) if threads > 1 else None


def get_num_threads() -> int:
    """What set_num_threads() was told."""
    return 1 if _pool is None else _pool.threads


if hasattr(os, "register_at_fork"):
    # A child process has the pool, but none of its threads.
    os.register_at_fork(after_in_child=lambda: set_num_threads(get_num_threads()))


def run(function: Any, *arguments: Any) -> None:
    """Calls an operator of _native."""
    pool = _pool
    if pool is not None:
        pool.start()
    if pool is None or pool.started == 0:
        function(*arguments, None)
    elif threading.current_thread() is threading.main_thread():
        pool.call_elsewhere(function, [arguments])
    else:
        pool.call(function, [arguments])
