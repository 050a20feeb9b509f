"""Every drop of the heap, and what freed it: the collector or the reference count.

A drop is a stretch of ticks over which the live Python bytes fall. What the collector freed in it
is known where the heap was read at the start and the end of each collection; else it is estimated
from how many objects the collections freed and what an object of this program is worth. Standard
library only: the command line uses it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from diagnostics.recording.model import GcEvent, HeapTotal
from diagnostics.recording.reader import RecordingReader

Cause = Literal["collector", "reference count"]

FLOOR_BYTES = 256 * 1024
"""A smaller drop is noise of the estimate (or of no interest to anybody)."""

_USUAL_BYTES = 1_000  # of an object that a collection frees, with what it alone holds
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Drop:
    """Live Python bytes fell from ``before`` to ``after`` between two ticks.

    ``collected`` is the number of objects that collections freed in between, ``freed`` the bytes
    that went with them. Where those are estimated and may have had a part that the estimate does
    not tell, ``certain`` is false.
    """

    start_ns: int
    end_ns: int
    before: int
    after: int
    collected: int
    freed: int
    cause: Cause
    certain: bool

    @property
    def bytes(self) -> int:
        return self.before - self.after


class Collected(NamedTuple):
    """Collections that were over at ``t_ns``: objects freed, and bytes where they were counted."""

    t_ns: int
    objects: int
    freed: int | None


def heap_drops(reader: RecordingReader, floor: int = FLOOR_BYTES) -> list[Drop]:
    """The drops of at least ``floor`` bytes, in order of time; empty without a heap engine."""
    return label_drops(
        reader.heap_totals(), collections(reader), bytes_per_object(reader), floor=floor
    )


def collections(reader: RecordingReader) -> list[Collected]:
    """The collections of a run, in order of time.

    Those without a row of their own are known by their tick. Collections in the workbench's own
    threads count: they free the program's objects as well as any other.
    """
    found = [
        Collected(row.t_ns + row.pause_ns, row.collected, freed_by(row))
        for row in reader.gc_events()
    ]
    found += [Collected(row.t_ns, row.collected, row.freed) for row in reader.gc_summaries()]
    return sorted(found, key=lambda row: row.t_ns)


def freed_by(event: GcEvent) -> int | None:
    """The live Python bytes that a collection gave back; None where nobody counted them."""
    if event.heap_before is None or event.heap_after is None:
        return None
    return max(0, event.heap_before - event.heap_after)


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
    collected: Sequence[Collected],
    per_object: float | None,
    *,
    floor: int = FLOOR_BYTES,
) -> list[Drop]:
    """The drops in ``totals``; ``collected`` as ``collections`` gives it, ``per_object`` as
    ``bytes_per_object`` (None takes a usual value of 1 kB)."""
    times = [row.t_ns for row in collected]
    drops: list[Drop] = []
    for first, last in _falls(totals):
        if first.bytes - last.bytes < floor:
            continue
        # A summary is written with the tick that it adds up, so the end of the stretch counts.
        within = slice(bisect_right(times, first.t_ns), bisect_right(times, last.t_ns))
        drops.append(_drop(first, last, collected[within], per_object))
    return drops


def _drop(
    first: HeapTotal, last: HeapTotal, within: Sequence[Collected], per_object: float | None
) -> Drop:
    """The drop between two readings, with the collections that fell into it."""
    worth = _USUAL_BYTES if per_object is None else per_object
    size = first.bytes - last.bytes
    objects = sum(row.objects for row in within)
    counted = sum(row.freed for row in within if row.freed is not None)
    guessed = sum(row.objects for row in within if row.freed is None)
    freed = max(0, round(counted + guessed * worth))
    by_collector = freed > 0 and freed >= _HALF * size
    return Drop(
        start_ns=first.t_ns,
        end_ns=last.t_ns,
        before=first.bytes,
        after=last.bytes,
        collected=objects,
        freed=freed,
        cause="collector" if by_collector else "reference count",
        certain=not guessed or (by_collector and per_object is not None),
    )


def _falls(totals: Sequence[HeapTotal]) -> Iterator[tuple[HeapTotal, HeapTotal]]:
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
