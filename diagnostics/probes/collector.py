"""The garbage collector: when it ran, for how long, and what it found."""

from __future__ import annotations

import contextlib
import gc
import time

from diagnostics.probes.base import BaseProbe, Session
from diagnostics.probes.pauses import Pause, ShortPauses, total, watch_pauses
from diagnostics.recording.model import GcEvent, GcSummary
from diagnostics.recording.writer import RecordingWriter


class GcProbe(BaseProbe):
    """A ``GcEvent`` for each full collection and each pause over 1 ms, sums of the rest each tick.

    ``t_ns`` of an event is the start of its pause. Small collections that a thread of the workbench
    triggered are left out.
    """

    name = "gc"

    def __init__(self) -> None:
        super().__init__()
        self._own = 0

    def start(self, session: Session) -> None:
        super().start(session)
        zero_ns = time.monotonic_ns() - session.now_ns()
        self._pauses = watch_pauses(session.unit_variable, session.live_bytes, zero_ns)
        self._describe()
        gc.callbacks.append(self._pauses)

    def tick(self, writer: RecordingWriter, t_ns: int) -> None:
        events, short = self._pauses.drain()
        self.cost_ns, self.dropped = self._pauses.cost_ns, self._pauses.missed
        writer.add_gc_events([self._event(Pause(*event)) for event in events])
        sums: dict[int, GcSummary] = {}
        for one in map(ShortPauses._make, short):
            if self.session.is_own_thread(one.thread):
                self._own += one.collections
                continue
            before = sums.get(one.generation) or GcSummary(t_ns, one.generation, 0, 0, 0, 0, 0, 0)
            sums[one.generation] = _add(before, one)
        writer.add_gc_summaries(sums.values())
        self._describe()

    def stop(self) -> None:
        # Somebody may have emptied the list meanwhile; then there is nothing left to undo.
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(self._pauses)

    def abandon(self) -> None:
        self.stop()

    def _describe(self) -> None:
        self.detail = (
            "full collections and pauses over 1 ms one by one, the others summed each tick;"
            f" {self._own} small ones in the workbench's own threads left out"
        )

    def _event(self, pause: Pause) -> GcEvent:
        return GcEvent(
            t_ns=pause.start_ns,
            pause_ns=pause.pause_ns,
            generation=pause.generation,
            collected=pause.collected,
            uncollectable=pause.uncollectable,
            unit=pause.unit,
            own=self.session.is_own_thread(pause.thread),
            heap_before=pause.heap_before,
            heap_after=pause.heap_after,
        )


def _add(before: GcSummary, more: ShortPauses) -> GcSummary:
    return GcSummary(
        before.t_ns,
        before.generation,
        before.count + more.collections,
        before.pause_total_ns + more.total_ns,
        max(before.pause_max_ns, more.longest_ns),
        before.collected + more.collected,
        before.uncollectable + more.uncollectable,
        total(before.freed, more.freed),
    )
