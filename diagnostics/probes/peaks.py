"""The peak of each unit, also of units that overlap in several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from diagnostics.probes.resident import PeakMeter, Resident
from diagnostics.recording.model import UnitPeak

_STILL_TRUE_NS = 100_000
"""A reading of a moment ago serves again: in a loop one unit's end is the next one's start."""


@dataclass(slots=True)
class _Open:
    start: int
    peak: int


class PeakBook:
    """Keeps the highest resident set of every open unit, from one meter that all of them share.

    The meter is reset at each unit's start; what it said until then is folded into all units that
    were open, so that each unit ends with the maximum over exactly its own time.
    """

    def __init__(self, meter: PeakMeter) -> None:
        self._meter = meter
        # The collector can close an abandoned iterator, and so end its unit, inside these methods:
        # the lock does not keep that out, so loops go over a copy of what is open.
        self._lock = threading.RLock()
        self._open: dict[int, _Open] = {}
        self._ended: list[UnitPeak] = []
        self._aside: Resident | None = None
        self._asides = 0  # several threads may take a capture, or a snapshot, at a time
        self._seen_at_end: tuple[int, Resident] | None = None

    def start(self, unit: int) -> None:
        with self._lock:
            seen = self._just_seen() or self._fold()
            self._meter.reset()
            self._open[unit] = _Open(seen.now, seen.now)

    def end(self, unit: int) -> None:
        with self._lock:
            seen = self._fold()
            ended = self._open.pop(unit, None)
            if ended is not None:
                self._ended.append(self._row(unit, ended, seen))
            # Units that go on want to know what the meter says before it is reset.
            self._seen_at_end = None if self._open else (time.monotonic_ns(), seen)

    def _just_seen(self) -> Resident | None:
        at_end, self._seen_at_end = self._seen_at_end, None
        if at_end is None or time.monotonic_ns() - at_end[0] > _STILL_TRUE_NS:
            return None
        return at_end[1]

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """What becomes resident inside ``with`` counts for no unit: the workbench took it.

        What of it stays resident afterwards (freed, but not given back to the system) is treated
        as if it had been there since before the units that are open.
        """
        with self._lock:
            # The same reading for all who are inside at a time: there it stands still.
            before = self._aside = self._fold()
            self._asides += 1
        try:
            yield
        finally:
            with self._lock:
                self._asides -= 1
                if not self._asides:
                    self._aside = None
                    self._meter.reset()
                    stays = max(0, self._meter.read().now - before.now)
                    for entry in list(self._open.values()):
                        entry.start += stays
                        entry.peak += stays

    def look(self) -> tuple[int, list[UnitPeak]]:
        """The resident set now in bytes, which is also the sample that a sampling meter lives from;
        the units that ended since the last call, then those still open, as far as they have come.

        A unit in which the process is killed never ends: its last row here is what is known.
        """
        with self._lock:
            seen = self._fold()
            ended, self._ended = self._ended, []
            open_ = [self._row(unit, entry, seen) for unit, entry in list(self._open.items())]
            return seen.now, ended + open_

    def _fold(self) -> Resident:
        if self._aside is not None:
            # Somebody looks while the workbench measures: what it takes just now is not to be seen.
            return Resident(self._aside.now, self._aside.now)
        seen = self._meter.read()
        for entry in list(self._open.values()):
            entry.peak = max(entry.peak, seen.peak)
        return seen

    def _row(self, unit: int, entry: _Open, seen: Resident) -> UnitPeak:
        return UnitPeak(unit, entry.start, seen.now, entry.peak, self._meter.method)
