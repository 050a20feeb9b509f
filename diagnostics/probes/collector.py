"""The garbage collector: when it ran, for how long, and what it found."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections import deque
from typing import Any, NamedTuple

from diagnostics.probes.base import BaseProbe, Session
from diagnostics.recording.model import GcEvent, GcSummary
from diagnostics.recording.writer import RecordingWriter

_LONG_PAUSE_NS = 1_000_000
_OLDEST = 2


class _Collection(NamedTuple):
    start_ns: int
    pause_ns: int
    heap_before: int | None
    heap_after: int | None
    generation: int
    collected: int
    uncollectable: int
    thread: int
    unit: int


def _is_event(generation: int, pause_ns: int) -> bool:
    return generation >= _OLDEST or pause_ns > _LONG_PAUSE_NS


class GcProbe(BaseProbe):
    """A ``GcEvent`` for each full collection and each pause over 1 ms, sums of the rest each tick.

    ``t_ns`` of an event is the start of its pause. The hook runs in whatever thread triggers a
    collection, which may hold any lock, so it takes none: it appends to a deque, and the recorder
    thread does the sums. Small collections that a thread of the workbench triggered are left out.
    """

    name = "gc"

    def __init__(self) -> None:
        super().__init__()
        self._start: tuple[int, int | None] | None = None
        self._done: deque[tuple[Any, ...]] = deque()  # fields of _Collection
        self._own = 0

    def start(self, session: Session) -> None:
        super().start(session)
        self._describe()
        gc.callbacks.append(self._collecting)

    def tick(self, writer: RecordingWriter, t_ns: int) -> None:
        events: list[GcEvent] = []
        sums: dict[int, GcSummary] = {}
        while self._done:
            one = _Collection(*self._done.popleft())
            own = self.session.is_own_thread(one.thread)
            if _is_event(one.generation, one.pause_ns):
                events.append(
                    GcEvent(
                        one.start_ns,
                        one.pause_ns,
                        one.generation,
                        one.collected,
                        one.uncollectable,
                        one.unit,
                        own,
                        one.heap_before,
                        one.heap_after,
                    )
                )
            elif own:
                self._own += 1
            else:
                before = sums.get(one.generation) or GcSummary(t_ns, one.generation, 0, 0, 0, 0, 0)
                sums[one.generation] = _add(before, one)
        writer.add_gc_events(events)
        writer.add_gc_summaries(sums.values())
        self._describe()

    def stop(self) -> None:
        # Somebody may have emptied the list meanwhile; then there is nothing left to undo.
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(self._collecting)

    def abandon(self) -> None:
        self.stop()

    def _describe(self) -> None:
        self.detail = (
            "full collections and pauses over 1 ms one by one, the others summed each tick;"
            f" {self._own} small ones in the workbench's own threads left out"
        )

    def _collecting(self, phase: str, info: dict[str, Any]) -> None:
        # Collections exclude each other in the whole process, so one start time is enough.
        now = self.session.now_ns()
        if phase == "start":
            self._start = now, self.session.live_bytes()
            return
        if self._start is None:
            self.dropped += 1  # the probe was started in the middle of this one
            return
        (start, heap_before), self._start = self._start, None
        generation, pause = info["generation"], now - start
        self._done.append(
            (
                start,
                pause,
                heap_before,
                self.session.live_bytes(),
                generation,
                info["collected"],
                info["uncollectable"],
                threading.get_ident(),
                self.session.current_unit() if _is_event(generation, pause) else 0,
            )
        )
        # Two readings of the thread's own CPU clock would cost more than all of the above.
        self.cost_ns += self.session.now_ns() - now


def _add(before: GcSummary, one: _Collection) -> GcSummary:
    return GcSummary(
        before.t_ns,
        before.generation,
        before.count + 1,
        before.pause_total_ns + one.pause_ns,
        max(before.pause_max_ns, one.pause_ns),
        before.collected + one.collected,
        before.uncollectable + one.uncollectable,
        None
        if one.heap_before is None or one.heap_after is None
        else (before.freed or 0) + one.heap_before - one.heap_after,
    )
