"""When captures are taken: as retention grows, at the end of a run, and when somebody asks."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from diagnostics.probes.base import Budget
from diagnostics.probes.limit_watch import LimitWatch
from diagnostics.probes.resident import ResidentSet
from diagnostics.recording.model import CaptureReason
from diagnostics.recording.writer import RecordingWriter
from diagnostics.scribe import Scribe
from diagnostics.units import UnitBook

if TYPE_CHECKING:
    from diagnostics.holders.sources import SuspectSource
    from diagnostics.holders.taking import CaptureRows, Limits

FIRST_GROWTH_BYTES = 8 << 20
"""So much left behind by units that have ended is worth the first look."""

_WHATEVER_IT_COSTS = 48 << 20
"""So much left behind is worth the first look at once: it costs more the longer it waits, and at
the end of the run who holds it may be gone."""

_RECENT_UNITS = 3
"""What these hold may be about to go: the last result, a page that is prefetched."""

_GROWTH = 2.0
_END_BYTES = 1 << 20
_GROWTH_UNSEEN = 24 << 20
"""After the first unit a process may grow by so much without a look at its end."""


class Retention(Protocol):
    """A heap engine that knows the birth unit of what lives."""

    def retained_bytes(self, leave_out: Iterable[int]) -> int:
        """Live bytes born in any unit, but for those of some units."""
        ...

    def source(self) -> SuspectSource:
        """Where a capture finds its suspects."""
        ...

    def site(self, node: int, writer: RecordingWriter) -> int | None:
        """The recording's site of one of the engine's own numbers."""
        ...


class Captures:
    """Decides when a capture is due, and has it taken and written.

    While the run goes on, one is taken when what ended units left behind reaches 8 MB and each
    time it has doubled since, as soon as all of them together take no more than 1 % of the CPU
    time (the first no later than at 50 MB, whatever it takes); and one when 85 % of a memory limit
    are used.
    """

    def __init__(
        self,
        scribe: Scribe,
        book: UnitBook,
        now_ns: Callable[[], int],
        is_own_thread: Callable[[int], bool],
        budget: Budget,
    ) -> None:
        # Imported here: code that only carries unit marks must not pay for it, and a module that
        # comes while units go on would set off collections among what they leave.
        from diagnostics.holders.taking import Limits, take_capture

        self._take_capture = take_capture
        self._at_leisure = Limits()
        self._in_haste = Limits(seconds=2.0)
        self._in_passing = Limits(seconds=2.0, suspects=4, objects=4)
        self._scribe = scribe
        self._book = book
        self._now_ns = now_ns
        self._is_own_thread = is_own_thread
        self._budget = budget
        self._retention: Retention | None = None
        self._growth_source: Callable[[], SuspectSource] | None = None
        self._number = 0
        self._next_growth = FIRST_GROWTH_BYTES
        self._asked: CaptureReason | None = None
        self._signal: AwaitedSignal | None = None
        # A signal's handler can ask for a capture in the thread that is just taking one.
        self._lock = threading.RLock()
        self._is_taking = False
        self._resident = ResidentSet()
        self._rss_at_first = 0
        self._limit = LimitWatch()
        if self._limit.missing:
            scribe.log("warning", "captures", f"no memory limit is watched: {self._limit.missing}")
        scribe.at_tick.append(self._look)

    def follow(
        self, retention: Retention | None, growth_source: Callable[[], SuspectSource] | None
    ) -> None:
        """Say who knows what was left behind; ``growth_source`` serves where no engine does."""
        self._retention = retention
        self._growth_source = growth_source

    def await_signal(self, number: signal.Signals) -> None:
        """Have one taken by the recorder thread each time when the signal came.

        Raises ``ValueError`` outside of the main thread.
        """
        self._signal = AwaitedSignal(number)

    def end_signal(self) -> None:
        """Give the signal back to whoever had it."""
        if self._signal is not None:
            self._signal.end()

    def ask(self, reason: CaptureReason) -> None:
        """Have one taken by the recorder thread at its next tick; callable from anywhere.

        It takes no lock: a signal's handler may come between any two steps of another ``ask``.
        """
        self._asked = reason

    def take(self, reason: CaptureReason, *, ended: bool = False) -> CaptureRows | None:
        """Take one in the calling thread; None where nothing can be suspected here (no engine and
        no type counts). While another thread is taking one it waits for that; while its own is (a
        signal's handler asked for it) none is taken, and the log says so."""
        return self._take(reason, ended, self._at_leisure)

    def take_last(self) -> None:
        """At the end of a run, before its result is released: where units left something, or where
        the process grew by more than they left (small handles may hold native memory)."""
        self._scribe.flush()  # what is retained is known as of the last tick; who asked is answered
        retained = 0 if self._retention is None else self._retention.retained_bytes(())
        grown = self._resident.read() - self._rss_at_first if self._rss_at_first else 0
        if self._retention is None or max(retained, grown - _GROWTH_UNSEEN) >= _END_BYTES:
            self.take("end of the run", ended=True)

    def _look(self) -> None:
        if self._rss_at_first == 0 and self._book.last_index > 1:
            self._rss_at_first = self._resident.read()
        asked, self._asked = self._asked, None
        if self._signal is not None and self._signal.has_come():
            asked = "signal"
        if asked is not None:
            self._take(asked, False, self._at_leisure)
        elif self._limit.comes_near(self._now_ns()):
            self._take("near the limit", False, self._in_haste)
        elif self._has_grown():
            self._next_growth = int(self._left_behind() * _GROWTH)
            self._take("retention grew", False, self._in_passing)

    def _has_grown(self) -> bool:
        left = self._left_behind()
        if self._number == 0 and left >= _WHATEVER_IT_COSTS:
            return True
        return left >= self._next_growth and self._budget.is_due()

    def _left_behind(self) -> int:
        if self._retention is None:
            return 0
        last = self._book.last_index
        recent = range(max(1, last - _RECENT_UNITS + 1), last + 1)
        return self._retention.retained_bytes(self._book.running() | set(recent))

    def _take(self, reason: CaptureReason, ended: bool, limits: Limits) -> CaptureRows | None:
        source = self._source()
        if source is None:
            return None
        # One at a time: the recorder thread may be taking one that the end of the run waits for.
        with self._lock:
            if self._is_taking:
                text = f"a capture ({reason}) was left out: its thread was just taking another"
                self._scribe.log("warning", "captures", text)
                return None
            self._is_taking = True
            try:
                with self._budget.measured():
                    self._number += 1
                    rows = self._take_capture(
                        source,
                        number=self._number,
                        reason=reason,
                        unit=self._book.last_index,
                        ended=ended,
                        now_ns=self._now_ns,
                        is_own_thread=self._is_own_thread,
                        limits=limits,
                    )
            finally:
                self._is_taking = False
        self._scribe.leave(lambda writer: self._write(rows, writer))
        return rows

    def _source(self) -> SuspectSource | None:
        if self._retention is not None:
            return self._retention.source()
        return self._growth_source() if self._growth_source is not None else None

    def _write(self, rows: CaptureRows, writer: RecordingWriter) -> None:
        retention = self._retention
        suspects, objects = rows.suspects, rows.objects
        if retention is not None:  # the capture speaks of the engine's nodes, the file of sites
            suspects = [
                replace(row, site=_site(retention, row.site, writer)) for row in rows.suspects
            ]
            objects = [
                replace(row, site=_site(retention, row.site, writer)) for row in rows.objects
            ]
        writer.put_capture(rows.capture, suspects, objects, rows.references, rows.chains)


def _site(retention: Retention, node: int | None, writer: RecordingWriter) -> int | None:
    return None if node is None else retention.site(node, writer)


class AwaitedSignal:
    """Notes that a signal came. Raises ``ValueError`` where it is not begun in the main thread."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number
        # The handler takes the number out of this. As a function in C it runs no Python code: it
        # takes no lock, cannot be interrupted by the next signal, and keeps no frame.
        self._awaited: dict[int, None] = {int(number): None}
        self._handler: Callable[[int, FrameType | None], object] = self._awaited.pop
        self._before = signal.signal(number, self._handler)

    def has_come(self) -> bool:
        """Whether it came since the last call."""
        if self._awaited:
            return False
        self._awaited[int(self._number)] = None
        return True

    def end(self) -> None:
        """Give the signal back to whoever had it, unless the program has given it to another since.

        Where that cannot be done (from another thread; to a handler that Python does not know) ours
        stays, and does no harm.
        """
        is_main = threading.current_thread() is threading.main_thread()
        is_ours = signal.getsignal(self._number) is self._handler
        if is_main and is_ours and self._before is not None:
            signal.signal(self._number, self._before)
