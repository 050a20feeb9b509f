"""Standard output and Ctrl-C, where a run needs them otherwise than a plain command does."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


def take_standard_output() -> TextIO:
    """Standard output for our answer alone; whatever else is printed goes to standard error.

    The switch is made below Python, and for good: processes that the code starts, libraries in C
    and what is printed at the interpreter's end must not get into the answer either.
    """
    sys.stdout.flush()
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    os.dup2(2, 1)
    return answer


class Streams:
    """Standard output and standard error as they were, whatever people's code does to them."""

    def __init__(self) -> None:
        self._streams = {1: sys.stdout, 2: sys.stderr}
        # None: closed before we were started, so there is nothing to keep.
        self._copies = {
            number: os.dup(number) for number, stream in self._streams.items() if stream is not None
        }

    def restore(self) -> None:
        """Open again what was closed, and undo a redirection."""
        for number, copy in self._copies.items():
            if not _is_same(number, copy):
                os.dup2(copy, number)
            if self._streams[number].closed:
                self._streams[number] = os.fdopen(
                    os.dup(copy), "w", encoding="utf-8", errors="backslashreplace"
                )
        sys.stdout, sys.stderr = self._streams[1], self._streams[2]


def _is_same(number: int, copy: int) -> bool:
    """Whether ``number`` still is what it was; it may be closed, and taken by another file."""
    try:
        return os.path.samestat(os.fstat(number), os.fstat(copy))
    except OSError:
        return False


class Interrupts:
    """Lets Ctrl-C through until ``hold`` is called, and again behind ``with``."""

    def hold(self) -> None:
        """From now on Ctrl-C does nothing: impatience must not spoil what is being completed."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    before = signal.getsignal(signal.SIGINT)
    try:
        yield Interrupts()
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
