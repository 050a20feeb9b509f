"""Every drop of the heap, and what freed it: the collector or the reference count.

A drop is a stretch of ticks over which the live Python bytes fall. What the collector freed in it
is estimated from how many objects its collections freed and what an object of this program is
worth. Standard library only: the command line uses it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from diagnostics.recording.model import HeapTotal
from diagnostics.recording.reader import RecordingReader

Cause = Literal["collector", "reference count"]

FLOOR_BYTES = 256 * 1024
"""A smaller drop is noise of the estimate (or of no interest to anybody)."""

_USUAL_BYTES = 1_000  # of an object that a collection frees, with what it alone holds
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Drop:
    """Live Python bytes fell from ``before`` to ``after`` between two ticks.

    ``collected`` is the number of objects that collections freed in between. ``certain`` is false
    where collections freed some, but cannot have freed all of it or may not have freed it at all.
    """

    start_ns: int
    end_ns: int
    before: int
    after: int
    collected: int
    cause: Cause
    certain: bool

    @property
    def bytes(self) -> int:
        return self.before - self.after


def heap_drops(reader: RecordingReader, floor: int = FLOOR_BYTES) -> list[Drop]:
    """The drops of at least ``floor`` bytes, in order of time; empty without a heap engine."""
    return label_drops(
        reader.heap_totals(), collections(reader), bytes_per_object(reader), floor=floor
    )


def collections(reader: RecordingReader) -> list[tuple[int, int]]:
    """(when it was over, objects freed) of the collections of a run, in order of time.

    Those without a row of their own are known by their tick. Collections in the workbench's own
    threads count: they free the program's objects as well as any other.
    """
    found = [(row.t_ns + row.pause_ns, row.collected) for row in reader.gc_events()]
    found += [(row.t_ns, row.collected) for row in reader.gc_summaries()]
    return sorted(found)


def bytes_per_object(reader: RecordingReader) -> float | None:
    """What an object that the collector frees is worth in this program: measured where the run was
    settled and its collection freed some, else None."""
    for step in reader.settlement():
        before, after = step.python_before, step.python_after
        if step.step == "collection" and step.objects and before is not None and after is not None:
            return max(0, before - after) / step.objects
    return None


def label_drops(
    totals: Sequence[HeapTotal],
    collected: Iterable[tuple[int, int]],
    per_object: float | None,
    *,
    floor: int = FLOOR_BYTES,
) -> list[Drop]:
    """The drops in ``totals``; ``collected`` as ``collections`` gives it, ``per_object`` as
    ``bytes_per_object`` (None takes a usual value of 1 kB)."""
    moments = list(collected)
    times = [t_ns for t_ns, _ in moments]
    sums = [0, *accumulate(count for _, count in moments)]
    worth = _USUAL_BYTES if per_object is None else per_object
    drops: list[Drop] = []
    for first, last in _falls(totals):
        size = first.bytes - last.bytes
        if size < floor:
            continue
        # A summary is written with the tick that it adds up, so the end of the stretch counts.
        objects = sums[bisect_right(times, last.t_ns)] - sums[bisect_left(times, first.t_ns + 1)]
        by_collector = objects > 0 and objects * worth >= _HALF * size
        cause: Cause = "collector" if by_collector else "reference count"
        certain = not objects or (by_collector and per_object is not None)
        drops.append(Drop(first.t_ns, last.t_ns, first.bytes, last.bytes, objects, cause, certain))
    return drops


def _falls(totals: Sequence[HeapTotal]) -> Iterable[tuple[HeapTotal, HeapTotal]]:
    """The stretches over which the total falls without rising in between."""
    first: HeapTotal | None = None
    for before, after in pairwise(totals):
        if after.bytes < before.bytes:
            first = first or before
        elif first is not None:
            yield first, before
            first = None
    if first is not None:
        yield first, totals[-1]
