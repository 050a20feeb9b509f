"""The collections of a run, added up."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count

from diagnostics.analysis.series import FIRST_WIDTH_NS, Thinned
from diagnostics.recording.model import GcEvent
from diagnostics.recording.reader import RecordingReader

GENERATIONS = (0, 1, 2)
_DENSITY_BINS = 2048


@dataclass(slots=True)
class GenerationTotals:
    """The collections of one generation: how many, their pauses, what they found."""

    count: int = 0
    pause_total_ns: int = 0
    pause_max_ns: int = 0
    collected: int = 0
    uncollectable: int = 0

    def add(self, count: int, total_ns: int, max_ns: int, collected: int, lost: int) -> None:
        self.count += count
        self.pause_total_ns += total_ns
        self.pause_max_ns = max(self.pause_max_ns, max_ns)
        self.collected += collected
        self.uncollectable += lost


class GcAccount:
    """Collections by generation, brought up to date by reading only what is new.

    ``generations`` counts those with a row of their own and the small ones that were added up;
    ``own`` counts those that the workbench's own threads triggered, which are in nothing else
    here. ``pauses`` is the longest pause over time (ns) for each generation.
    """

    def __init__(self, buckets: int = 1000, most_notable: int = 200) -> None:
        self.generations = {generation: GenerationTotals() for generation in GENERATIONS}
        self.own = GenerationTotals()
        self.pauses = {generation: Thinned(buckets) for generation in GENERATIONS}
        self._most_notable = most_notable
        # A heap, the shortest pause on top. The number is for collections alike in pause and time.
        self._notable: list[tuple[int, int, int, GcEvent]] = []
        self._numbers = count(0, -1)  # of these, too, the earlier one stays
        self._small: dict[int, int] = {}
        self._small_width_ns = FIRST_WIDTH_NS
        self._events_ns = self._summaries_ns = -1

    def feed(self, reader: RecordingReader) -> None:
        """Take in the collections that the recording has gained since the last call."""
        events = reader.gc_events(after_ns=self._events_ns)
        summaries = reader.gc_summaries(after_ns=self._summaries_ns)
        for event in events:
            self._take(event)
        for row in summaries:
            self._summaries_ns = row.t_ns
            self.generations[row.generation].add(
                row.count, row.pause_total_ns, row.pause_max_ns, row.collected, row.uncollectable
            )
            self._add_small(row.t_ns, row.count)
            self.pauses[row.generation].add(row.t_ns, row.pause_max_ns)

    @property
    def pause_total_ns(self) -> int:
        return sum(totals.pause_total_ns for totals in self.generations.values())

    @property
    def pause_max_ns(self) -> int:
        return max(totals.pause_max_ns for totals in self.generations.values())

    def share(self, duration_ns: int) -> float:
        """The part of ``duration_ns`` that was spent in collections, 0 to 1."""
        return self.pause_total_ns / duration_ns if duration_ns > 0 else 0.0

    def notable(self) -> list[GcEvent]:
        """Collections of generation 2 and long pauses, in order of time; the longest if many."""
        return sorted((event for *_, event in self._notable), key=lambda event: event.t_ns)

    def longest(self, count: int = 20) -> list[GcEvent]:
        """The longest pauses that have a row of their own, longest first."""
        return sorted(self.notable(), key=lambda event: -event.pause_ns)[:count]

    def small_counts(self) -> list[tuple[int, int]]:
        """Small collections over time: (middle of a bin in ns, how many), in order."""
        width = self._small_width_ns
        return [(bin_ * width + width // 2, n) for bin_, n in sorted(self._small.items())]

    def _take(self, event: GcEvent) -> None:
        self._events_ns = event.t_ns
        totals = self.own if event.own else self.generations[event.generation]
        totals.add(1, event.pause_ns, event.pause_ns, event.collected, event.uncollectable)
        if event.own:
            return
        self.pauses[event.generation].add(event.t_ns, event.pause_ns)
        entry = (event.pause_ns, -event.t_ns, next(self._numbers), event)
        if len(self._notable) < self._most_notable:
            heapq.heappush(self._notable, entry)
        else:
            heapq.heappushpop(self._notable, entry)

    def _add_small(self, t_ns: int, count: int) -> None:
        while t_ns // self._small_width_ns >= _DENSITY_BINS:
            self._small_width_ns *= 2
            joined: dict[int, int] = {}
            for bin_, number in self._small.items():
                joined[bin_ // 2] = joined.get(bin_ // 2, 0) + number
            self._small = joined
        bin_ = t_ns // self._small_width_ns
        self._small[bin_] = self._small.get(bin_, 0) + count
