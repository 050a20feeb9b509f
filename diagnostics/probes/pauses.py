"""The collector's callback: in C where it was built, else the same in Python, at a higher price."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from diagnostics.recording.model import OLDEST_GENERATION

LONG_PAUSE_NS = 1_000_000


class Pause(NamedTuple):
    """A full collection, or one that took over 1 ms. The heap is in live Python bytes."""

    start_ns: int
    pause_ns: int
    heap_before: int | None
    heap_after: int | None
    generation: int
    collected: int
    uncollectable: int
    thread: int
    unit: int


class ShortPauses(NamedTuple):
    """The other collections of one generation in one thread, added up."""

    thread: int
    generation: int
    collections: int
    total_ns: int
    longest_ns: int
    collected: int
    uncollectable: int
    freed: int | None


class Pauses(Protocol):
    """Goes into ``gc.callbacks``."""

    cost_ns: int
    missed: int
    """Collections that had begun before, or that could not be taken down."""

    def __call__(self, phase: str, info: dict[str, int]) -> None: ...

    def drain(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """What came since the last call: the fields of ``Pause`` and of ``ShortPauses``."""
        ...


def watch_pauses(
    unit_variable: ContextVar[int], live_bytes: Callable[[], int | None] | None, zero_ns: int
) -> Pauses:
    """A callback that reads the clock from ``zero_ns`` on (by ``time.monotonic_ns``), the current
    unit from ``unit_variable`` and the heap's size from ``live_bytes``."""
    try:
        from diagnostics.probes import _pauses
    except ImportError:  # no compiler
        return PausesInPython(unit_variable, live_bytes, zero_ns)
    return _pauses.Pauses(unit_variable, live_bytes, zero_ns, LONG_PAUSE_NS)


class PausesInPython:
    """Takes no lock, since it runs in whatever thread triggers a collection, which may hold any: it
    appends to a deque, and the recorder thread does the sums. A Ctrl-C that comes during a
    collection may be raised in here, where the interpreter reports it and goes on.
    """

    def __init__(
        self,
        unit_variable: ContextVar[int],
        live_bytes: Callable[[], int | None] | None,
        zero_ns: int,
    ) -> None:
        self._unit_variable = unit_variable
        self._live_bytes = live_bytes or (lambda: None)
        self._zero_ns = zero_ns
        self._start: tuple[int, int | None] | None = None
        self._done: deque[tuple[Any, ...]] = deque()  # fields of Pause
        self.cost_ns = 0
        self.missed = 0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        now = time.monotonic_ns() - self._zero_ns
        try:
            self._take_down(phase, info, now)
        finally:
            self.cost_ns += time.monotonic_ns() - self._zero_ns - now

    def _take_down(self, phase: str, info: dict[str, int], now: int) -> None:
        # Collections exclude each other in the whole process, so one start is enough.
        if phase == "start":
            self._start = now, self._live_bytes()
            return
        if self._start is None:
            self.missed += 1
            return
        (start, heap_before), self._start = self._start, None
        self._done.append(
            (
                start,
                now - start,
                heap_before,
                self._live_bytes(),
                info["generation"],
                info["collected"],
                info["uncollectable"],
                threading.get_ident(),
                int(self._unit_variable.get()),
            )
        )

    def drain(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        events: list[tuple[Any, ...]] = []
        sums: dict[tuple[int, int], ShortPauses] = {}
        while self._done:
            one = Pause(*self._done.popleft())
            if one.generation >= OLDEST_GENERATION or one.pause_ns > LONG_PAUSE_NS:
                events.append(one)
            else:
                key = one.thread, one.generation
                sums[key] = _with(sums.get(key) or ShortPauses(*key, 0, 0, 0, 0, 0, 0), one)
        return events, list(sums.values())


def _with(before: ShortPauses, one: Pause) -> ShortPauses:
    freed = None
    if one.heap_before is not None and one.heap_after is not None:
        freed = one.heap_before - one.heap_after
    return ShortPauses(
        before.thread,
        before.generation,
        before.collections + 1,
        before.total_ns + one.pause_ns,
        max(before.longest_ns, one.pause_ns),
        before.collected + one.collected,
        before.uncollectable + one.uncollectable,
        total(before.freed, freed),
    )


def total(one: int | None, other: int | None) -> int | None:
    """The sum, None where a part is not known."""
    return None if one is None or other is None else one + other
