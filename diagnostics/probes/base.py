"""What a probe is: a few hooks that the recorder calls, and an account of its own cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from diagnostics.recording.model import LogLevel
from diagnostics.recording.writer import RecordingWriter


class ProbeMissingError(Exception):
    """Raised by ``start`` when this platform or installation cannot offer the probe.

    The message says what is missing; the run goes on without the probe, and the recording and
    the screen say so.
    """


@dataclass(frozen=True, slots=True)
class Session:
    """What a probe may know of the recording it serves."""

    now_ns: Callable[[], int]
    """Monotonic nanoseconds since the start of the recording."""
    current_unit: Callable[[], int]
    """The unit of the calling thread or task, 0 outside any."""
    is_own_thread: Callable[[int], bool]
    """Whether a thread (by ``threading.get_ident()``) belongs to the workbench."""
    log: Callable[[LogLevel, str, str], None]
    """Leave a line (level, source, message) in the recording; callable from any thread."""
    live_bytes: Callable[[], int | None] | None = None
    """Live Python bytes, cheap enough for a collector's callback; None where nobody counts so, or
    not just now."""
    unit_variable: ContextVar[int] = ContextVar("page87_no_unit", default=0)  # noqa: RUF009
    """The variable behind ``current_unit``, for a core that reads it without running Python."""


class Probe(Protocol):
    """One source of measurements.

    ``start`` and ``stop`` run in the thread that starts and stops the recording; ``unit_started``
    and ``unit_ended`` in the loader's threads, several at once perhaps; ``tick`` in the recorder
    thread, which alone may use the writer; ``finish`` once, after ``stop``. ``abandon`` runs in a
    forked child and undoes what ``start`` hooked into the interpreter, without measuring.

    A hook that raises takes its probe out of the recording, with a line in the log, and the run
    goes on.
    """

    name: str
    detail: str
    """How the probe works here, for people: the method, the limits."""
    cost_ns: int
    """CPU time spent in the hooks of the loader's threads so far."""
    dropped: int
    """Measurements lost so far."""

    def start(self, session: Session) -> None: ...
    def unit_started(self, unit: int) -> None: ...
    def unit_ended(self, unit: int) -> None: ...
    def tick(self, writer: RecordingWriter, t_ns: int) -> None: ...
    def stop(self) -> None: ...
    def finish(self, writer: RecordingWriter, t_ns: int) -> None: ...
    def abandon(self) -> None: ...


class BaseProbe:
    """A probe whose hooks do nothing, to derive from."""

    name = ""

    def __init__(self) -> None:
        self.detail = ""
        self.cost_ns = 0
        self.dropped = 0

    def start(self, session: Session) -> None:
        self.session = session

    def unit_started(self, unit: int) -> None: ...

    def unit_ended(self, unit: int) -> None: ...

    def tick(self, writer: RecordingWriter, t_ns: int) -> None: ...

    def stop(self) -> None: ...

    def finish(self, writer: RecordingWriter, t_ns: int) -> None: ...

    def abandon(self) -> None: ...

    @contextmanager
    def accounted(self) -> Iterator[None]:
        """Adds the CPU time of the calling thread inside ``with`` to ``cost_ns``."""
        start = time.thread_time_ns()
        try:
            yield
        finally:
            self.cost_ns += time.thread_time_ns() - start


_GROWTH = 1.5


class Budget:
    """Says when a costly measurement may run again, so that it stays under a share of the run.

    ``set_aside`` gives a context manager for the time of a measurement: what the measurement takes
    of the process's memory is not to be counted as the loader's.

    A measurement is due when everything spent so far, and half as much again as the last one took,
    fits into ``share`` of the CPU time that the process used since the budget was made. (The costs
    of a snapshot grow with a leak, so the next is taken to be dearer than the last.) The first is
    taken to cost ``first_ns``. With ``earns`` it is the share of what that clock counts instead.
    """

    def __init__(
        self,
        share: float,
        clock: Callable[[], int] = time.process_time_ns,
        set_aside: Callable[[], AbstractContextManager[None]] = nullcontext,
        first_ns: int = 0,
        earns: Callable[[], int] | None = None,
    ) -> None:
        if not 0 < share <= 1:
            raise ValueError("share is a part of the run, above 0 and up to 1")
        self._share = share
        self._clock = clock
        self._set_aside = set_aside
        self._earns = earns or clock
        self._start_ns = self._earns()
        self._last_ns = first_ns
        self.spent_ns = 0

    def is_due(self) -> bool:
        """Whether the next measurement is within the budget."""
        expected = self.spent_ns + self._last_ns * _GROWTH
        return expected <= self._share * (self._earns() - self._start_ns)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Books the time spent inside ``with`` and sets when the next one is due."""
        start = self._clock()
        try:
            with self._set_aside():
                yield
        finally:
            self._last_ns = self._clock() - start
            self.spent_ns += self._last_ns
