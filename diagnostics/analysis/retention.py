"""What each unit left behind, and when it went. Standard library only: the command line uses it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, Self

from diagnostics.analysis.drops import freed_by
from diagnostics.analysis.heap_changes import unit_changes
from diagnostics.analysis.units import UnitRows
from diagnostics.recording.model import OLDEST_GENERATION, UnitHeap, UnitRow
from diagnostics.recording.reader import FrameChange, RecordingReader

FLOOR_BYTES = 16 * 1024
"""What counts as alive at all: less may be a crumb, an entry in somebody's cache."""

ALIVE_SHARE = 0.1
"""A unit counts as alive while it holds this part of its peak: what it built, not a crumb of it."""

_MOSTLY = 0.75  # of what was gone: the rest may be what nobody's collection freed


def why_no_births(reader: RecordingReader) -> str:
    """Why a recording does not tell in which unit memory was born, and what to do about it."""
    settings = reader.meta().get("settings")
    engine = settings.get("engine") if isinstance(settings, dict) else None
    if engine == "exact":
        return (
            "The exact engine does not know in which unit a block was born."
            " Record with the sampled engine to see it."
        )
    if engine == "sampled" and reader.outcome().state == "running":
        return "No memory was measured yet."
    return "This recording does not tell in which unit memory was born."


@dataclass(frozen=True, slots=True)
class UnitRetention:
    """What a unit allocated in all, what of it is alive in the end, and its most at one time.

    Estimates, in bytes. ``born_bytes`` is None where the engine did not count it.
    """

    index: int
    label: str
    born_bytes: int | None
    retained_bytes: int
    peak_bytes: int


class EndedUnit(NamedTuple):
    """A unit that has ended: bytes of it alive when the next unit had ended as well (``kept``),
    when the last unit ended (``left``), in the end (``now``), and its most at one time.

    A tuple, since there may be a hundred thousand of them."""

    row: UnitRow
    peak: int
    kept: int
    left: int
    now: int

    @property
    def is_alive(self) -> bool:
        """Whether it held on to its memory until the last unit ended."""
        return _counts(self.left, self.peak)


def _counts(held: int, peak: int) -> bool:
    """Whether a unit counts as alive with ``held`` bytes of what were ``peak`` at its most."""
    return held >= FLOOR_BYTES and held >= ALIVE_SHARE * peak


class Births:
    """Follows the bytes of every birth unit through a recording, reading only what is new.

    Its memory grows with the number of units and of what is alive, not with time. ``alive`` are the
    bytes by pair of unit and site as of the last frame; that was at ``last_ns``, -1 without any.
    """

    def __init__(self) -> None:
        self.gap = ""
        self.units = UnitRows()
        self._heaps: dict[int, UnitHeap] = {}
        self.alive: dict[int, int] = {}
        self._now: dict[int, int] = {}
        self._peaks: dict[int, int] = {}
        self._kept: dict[int, int] = {}
        self._ends: list[tuple[int, int]] = []  # (end_ns, index) of the units that have ended
        self._ended: set[int] = set()  # the same units
        self._seen = 0  # how many of them had ended by the last frame
        self._seen_units: set[int] = set()
        self._alive: set[int] = set()  # of those seen
        self._most_alive: dict[int, int] = {}  # by how many had ended, the most alive at once
        # What comes after the last unit's end is set aside: another unit may begin yet.
        self._seen_busy = 0
        self._left: dict[int, int] = {}  # where it changed since
        self._idle_alive: dict[int, int] = {}
        self._last_event_ns = -1
        self.last_ns = self._busy_ns = -1  # of all frames, and of those while units went on
        self._collected: list[tuple[int, int]] = []  # (end_ns, bytes) of full ones since then

    @classmethod
    def of(cls, reader: RecordingReader) -> Self:
        """All of a recording, followed at once."""
        births = cls()
        births.feed(reader)
        return births

    def feed(self, reader: RecordingReader) -> None:
        """Take in what the recording has gained since the last call."""
        since_ns = self.units.since_ns
        new = [
            (row.end_ns, row.index)
            for row in self.units.feed(reader)
            if row.end_ns is not None and row.index not in self._ended
        ]
        self._ended.update(index for _, index in new)
        self._ends[self._seen :] = sorted([*self._ends[self._seen :], *new])
        if self._is_busy(self.last_ns):
            self._go_on()
        # What another thread still allocates for a unit that ended long ago, the frames tell.
        self._heaps |= {heap.index: heap for heap in reader.unit_heaps(ended_after_ns=since_ns)}
        self._note_collections(reader)
        for frame in reader.changes("alive", after_ns=self.last_ns):
            self._take(frame)
            self.last_ns = frame.t_ns
        # What came before a frame while units went on is in that frame.
        self._collected = [found for found in self._collected if 0 <= self._busy_ns < found[0]]
        self.gap = why_no_births(reader) if self.last_ns < 0 else ""

    def retention(self) -> list[UnitRetention]:
        """All units in order, the one in progress included; empty where births are not known."""
        if self.last_ns < 0:
            return []
        born = {index: heap.born for index, heap in self._heaps.items()}
        now, peaks = self._now, self._highest()
        return [
            UnitRetention(
                row.index,
                row.label,
                born.get(row.index),
                now.get(row.index, 0),
                peaks.get(row.index, 0),
            )
            for row in self.units.in_order()
        ]

    def ended(self) -> list[EndedUnit]:
        """The units whose end a frame has seen while units went on, in the order of their ends.

        Where the frames were too far apart for most of them, or a full collection came after the
        last of those frames, what they left is what the last frame of all says.
        """
        by_the_end = self._is_told_by_the_end()
        ended = self._ends[: self._seen if by_the_end else self._seen_busy]
        left = self._now if by_the_end else {**self._now, **self._left}
        rows, peaks, kept, now = self.units.rows, self._highest(), self._kept, self._now
        return [
            EndedUnit(
                row=rows[index],
                peak=peaks.get(index, 0),
                kept=kept.get(index, left.get(index, 0)),
                left=left.get(index, 0),
                now=now.get(index, 0),
            )
            for _, index in ended
        ]

    def _is_told_by_the_end(self) -> bool:
        return self._seen_busy < self._seen / 2 or self._was_collected()

    def _was_collected(self) -> bool:
        """Whether most of what units held in the last frame while they went on, and no more in the
        one after, was gone before the last unit ended: full collections in between freed it."""
        last_ns = self._ends[-1][0] if self._ends else -1
        freed = sum(size for end_ns, size in self._collected if end_ns <= last_ns)
        ended = {index for _, index in self._ends[: self._seen_busy]}
        lost = sum(
            max(0, left - self._now.get(unit, 0))
            for unit, left in self._left.items()
            if unit in ended
        )
        return lost > 0 and freed >= _MOSTLY * lost

    def most_alive(self, after: int) -> list[int]:
        """How many ended units were alive at once, at most, each time another one had ended;
        counted from when more than ``after`` had ended."""
        counts = dict(self._most_alive)
        if self._is_told_by_the_end():
            for ended, alive in self._idle_alive.items():
                counts[ended] = max(counts.get(ended, 0), alive)
        return [most for ended, most in sorted(counts.items()) if ended > after]

    def peak(self, index: int) -> int:
        """The most bytes of a unit that were alive at one time, also between frames."""
        counted = self._heaps[index].peak if index in self._heaps else 0
        return max(counted, self._peaks.get(index, 0))

    def _highest(self) -> dict[int, int]:
        """The peaks of all units that have one."""
        highest = {index: heap.peak for index, heap in self._heaps.items()}
        for index, seen in self._peaks.items():
            highest[index] = max(seen, highest.get(index, 0))
        return highest

    def _take(self, frame: FrameChange) -> None:
        busy = self._is_busy(frame.t_ns)
        if busy:
            self._go_on()
        changes = unit_changes(frame, self.alive)
        for unit, change in changes.items():
            before = self._now.get(unit, 0)
            if not busy:
                self._left.setdefault(unit, before)
            self._now[unit] = before + change
            self._peaks[unit] = max(self._peaks.get(unit, 0), before + change)
        # Of units that no frame has named nothing can be alive.
        for unit in (self._newly_seen(frame.t_ns) & self._now.keys()) | changes.keys():
            self._note_alive(unit)
        counts = self._most_alive if busy else self._idle_alive
        counts[self._seen] = max(counts.get(self._seen, 0), len(self._alive))
        if busy:
            self._seen_busy, self._busy_ns = self._seen, frame.t_ns

    def _newly_seen(self, t_ns: int) -> set[int]:
        """The units that have ended since the frame before."""
        first = self._seen
        self._seen = bisect_right(self._ends, t_ns, lo=first, key=itemgetter(0))
        newly = {index for _, index in self._ends[first : self._seen]}
        if newly:
            followed = self._ends[max(0, first - 1) : self._seen - 1]
            self._kept |= {index: self._now.get(index, 0) for _, index in followed}
        self._seen_units |= newly
        return newly

    def _note_alive(self, unit: int) -> None:
        if unit in self._seen_units and _counts(self._now.get(unit, 0), self.peak(unit)):
            self._alive.add(unit)
        else:
            self._alive.discard(unit)

    def _go_on(self) -> None:
        """Units go on: what was set aside happened between two of them."""
        for seen, alive in self._idle_alive.items():
            self._most_alive[seen] = max(self._most_alive.get(seen, 0), alive)
        self._idle_alive.clear()
        self._left.clear()
        self._seen_busy, self._busy_ns = self._seen, self.last_ns

    def _note_collections(self, reader: RecordingReader) -> None:
        for event in reader.gc_events(after_ns=self._last_event_ns):
            self._last_event_ns = event.t_ns
            freed = freed_by(event)
            if event.generation == OLDEST_GENERATION and freed:
                self._collected.append((event.t_ns + event.pause_ns, freed))

    def _is_busy(self, t_ns: int) -> bool:
        """Whether a unit was going on at that moment, or began later."""
        return self.units.in_progress() is not None or (
            bool(self._ends) and t_ns <= self._ends[-1][0]
        )
