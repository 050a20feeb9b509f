"""What the heap engine's own tables took: the observer's memory, which no kind may explain."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from diagnostics.analysis.kinds.growth import Reading, value_at
from diagnostics.recording.model import HeapTotal, UnitPeak, UnitRow


@dataclass(frozen=True, slots=True)
class OwnTables:
    """What the engine's tables had gained since its first reading, at each reading, in bytes."""

    readings: tuple[Reading, ...]

    @classmethod
    def of(cls, totals: Sequence[HeapTotal]) -> Self:
        """Of the totals in order of time."""
        first = totals[0].engine_bytes if totals else 0
        return cls(tuple((total.t_ns, total.engine_bytes - first) for total in totals))

    def at(self, t_ns: int) -> int:
        """Their growth at a moment; 0 without readings."""
        return value_at(self.readings, t_ns) if self.readings else 0

    def highest(self, start_ns: int, end_ns: int) -> int:
        """Their highest growth between two moments, those included."""
        first = bisect_left(self.readings, start_ns, key=lambda reading: reading[0])
        last = bisect_right(self.readings, end_ns, key=lambda reading: reading[0])
        between = [size for _, size in self.readings[first:last]]
        return max([self.at(start_ns), *between, self.at(end_ns)])

    @property
    def freed(self) -> int:
        """What they had at most and gave up again: it lies free in an allocator, or went back."""
        sizes = [size for _, size in self.readings]
        return max(sizes) - sizes[-1] if sizes else 0

    def without(self, readings: Iterable[Reading]) -> list[Reading]:
        """``readings`` of a quantity that counts the tables, without their growth."""
        return [(t_ns, value - self.at(t_ns)) for t_ns, value in readings]

    def without_in_peaks(
        self, peaks: Iterable[UnitPeak], units: Mapping[int, UnitRow]
    ) -> list[UnitPeak]:
        """``peaks`` without what the tables had at the start, at most, and at the end of each.

        Nobody reads the tables at the very moment of a peak; what they had at most in the unit
        stands for it, and a peak is no lower than what it lies between.
        """
        return [self._without(peak, units.get(peak.index)) for peak in peaks]

    def _without(self, peak: UnitPeak, unit: UnitRow | None) -> UnitPeak:
        if unit is None or unit.end_ns is None:
            return peak
        start = peak.rss_start - self.at(unit.start_ns)
        end = peak.rss_end - self.at(unit.end_ns)
        highest = peak.rss_peak - self.highest(unit.start_ns, unit.end_ns)
        return replace(peak, rss_start=start, rss_end=end, rss_peak=max(start, highest, end))
