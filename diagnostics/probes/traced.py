"""The exact heap engine: tracemalloc, read within a budget."""

from __future__ import annotations

import threading
import tracemalloc
from collections import deque
from dataclasses import dataclass

from diagnostics.probes.base import BaseProbe, Budget, Session
from diagnostics.probes.grouping import StackSum, live_sums
from diagnostics.probes.own import is_hosted, is_own_stack
from diagnostics.probes.sites import SiteBook
from diagnostics.probes.turns import Turn
from diagnostics.recording.model import HeapTotal
from diagnostics.recording.writer import RecordingWriter

MOST_FRAMES = 25
_QUIET_NS = 2_000_000_000
"""Without a unit's end for so long, the recorder thread takes the snapshot."""


@dataclass(frozen=True, slots=True)
class _Picture:
    """A snapshot, summed up: what the run holds by stack."""

    t_ns: int
    unit: int
    sums: list[StackSum]


class TracemallocEngine(BaseProbe):
    """Every live Python block by the stack that allocated it.

    Totals come each tick. Snapshots come at unit ends in the loader's own thread, so that one
    shows the heap as the unit left it, as often as ``budget`` allows; from the recorder thread
    where no unit ends for two seconds; and once at the end. A snapshot holds the interpreter still
    while it is taken.

    What the workbench allocates itself is left out. Where tracemalloc runs already, that tracing
    is used, with its own number of frames, and goes on afterwards.
    """

    name = "heap"
    engine_name = "exact"

    def __init__(self, frames: int, budget: Budget) -> None:
        super().__init__()
        self._frames = frames
        self._budget = budget
        self._turn = Turn(budget)
        self._sites = SiteBook()
        self._done: deque[_Picture] = deque()
        self._one_at_a_time = threading.Lock()
        self._started_here = False
        self._own_bytes = 0
        self._taken = 0
        self._last_ns = 0
        self._total: HeapTotal | None = None
        self._keeps_counting = False

    def start(self, session: Session) -> None:
        super().start(session)
        self._hosted = is_hosted()
        self._started_here = not tracemalloc.is_tracing()
        if self._started_here:
            tracemalloc.start(self._frames)
        else:
            self._frames = tracemalloc.get_traceback_limit()
            session.log(
                "info",
                self.name,
                f"tracemalloc was running already, with {self._frames} frame(s) a stack; it is"
                " used as it is, and what was allocated before the recording is in the picture",
            )
        self._describe()

    def unit_ended(self, unit: int) -> None:
        if self._turn.has_come():
            with self.accounted():
                self._take(unit)

    def tick(self, writer: RecordingWriter, t_ns: int) -> None:
        if tracemalloc.is_tracing():
            if t_ns - self._last_ns > _QUIET_NS and self._turn.has_come():
                self._take(0)
            self._total = self._now()
        if self._total is not None:
            writer.put_heap_total(self._total)
            self._total = None
        while self._done:
            picture = self._done.popleft()
            state = self._sites.state(writer, picture.sums)
            writer.add_frame("heap", picture.t_ns, picture.unit, state)
        self._describe()

    def stop(self) -> None:
        if tracemalloc.is_tracing():
            with self.accounted():
                self._take(self.session.current_unit())
                self._total = self._now()
        if not self._keeps_counting:
            self.stop_counting()

    def live_bytes(self) -> tuple[int, int | None, int | None] | None:
        """Live Python bytes, the workbench's own included; tracemalloc cannot tell which of them
        lie in pymalloc's arenas. None where it does not trace."""
        if not tracemalloc.is_tracing():
            return None
        return tracemalloc.get_traced_memory()[0], None, None

    def keep_counting(self) -> None:
        """Let ``live_bytes`` go on beyond ``stop``, until ``stop_counting``."""
        self._keeps_counting = True

    def stop_counting(self) -> None:
        """End the tracing, if it was begun here. Safe to call at any time."""
        self.abandon()

    def abandon(self) -> None:
        if self._started_here:
            tracemalloc.stop()
            self._started_here = False

    def _now(self) -> HeapTotal:
        live, _peak = tracemalloc.get_traced_memory()
        t_ns = self.session.now_ns()  # the tick may have waited for the GIL since it began
        total = max(0, live - self._own_bytes)
        return HeapTotal(t_ns, total, tracemalloc.get_tracemalloc_memory())

    def _take(self, unit: int) -> None:
        """Leave a picture for the recorder thread; only sums by stack leave this method."""
        if not self._one_at_a_time.acquire(blocking=False):
            return  # another thread takes one this very moment
        try:
            with self._budget.measured():
                self._last_ns = self.session.now_ns()
                sums = live_sums()
                run = [one for one in sums if not is_own_stack(one[0], self._hosted)]
                self._own_bytes = _bytes(sums) - _bytes(run)
                self._done.append(_Picture(self._last_ns, unit, run))
                self._taken += 1
            self._turn.taken()
        finally:
            self._one_at_a_time.release()

    def _describe(self) -> None:
        self.detail = (
            f"tracemalloc, {self._frames} frame(s) a stack, {self._taken} snapshot(s);"
            f" {self._own_bytes} bytes of the workbench left out"
        )


def _bytes(sums: list[StackSum]) -> int:
    return sum(size for _stack, size, _blocks in sums)
