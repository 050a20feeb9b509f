"""How a quantity grew over the units: robust slopes, and the levels that matter."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from diagnostics.analysis.kinds.evidence import Growth
from diagnostics.analysis.units import warm_up_of
from diagnostics.recording.model import UnitRow

Reading = tuple[int, int]
"""A moment in nanoseconds and a value."""

_MOST_POINTS = 60  # 1,770 pairs: exact enough, and a millisecond


@dataclass(frozen=True, slots=True)
class UnitClock:
    """Tells time in units: ``first_ns`` is when the first one began, ``ends`` when each ended.

    Without units everything happens before the first.
    """

    first_ns: int
    ends: tuple[int, ...]

    @classmethod
    def of(cls, units: Iterable[UnitRow], last_ns: int) -> UnitClock:
        """The clock of a run that has come to ``last_ns``."""
        rows = list(units)
        ends = sorted(row.end_ns for row in rows if row.end_ns is not None)
        return cls(min((row.start_ns for row in rows), default=last_ns), tuple(ends))

    @property
    def last_ns(self) -> int:
        """When the last unit ended."""
        return self.ends[-1] if self.ends else self.first_ns

    @property
    def warm_ns(self) -> int:
        """When the warm-up was over."""
        warm_up = warm_up_of(len(self.ends))
        return self.ends[warm_up - 1] if warm_up else self.first_ns

    @property
    def middle_ns(self) -> int:
        """When the first half of the units after the warm-up had ended."""
        warm_up = self.ended(self.warm_ns)
        later = len(self.ends) - warm_up
        return self.ends[warm_up + (later + 1) // 2 - 1] if later else self.warm_ns

    def ended(self, t_ns: int) -> int:
        """How many units had ended at that moment."""
        return bisect_right(self.ends, t_ns)


def theil_sen(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between all pairs of points (at most 60 of them, evenly taken);
    0 where fewer than two differ in x. Nearly a third of the points may be anything."""
    step = max(1, -(-len(points) // _MOST_POINTS))
    slopes = [
        (b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points[::step], 2) if a[0] != b[0]
    ]
    return median(slopes) if slopes else 0.0


def growth_of(readings: Sequence[Reading], clock: UnitClock) -> Growth | None:
    """The growth of a quantity read at ``readings``, in order of time; None without any."""
    if not readings:
        return None
    warm_ns, middle_ns, last_ns = clock.warm_ns, clock.middle_ns, clock.last_ns
    start, warm, end = readings[0][1], value_at(readings, warm_ns), _at_the_end(readings, clock)
    # Where readings are far apart, these three stand for those that nobody took.
    known = [*readings, (warm_ns, warm), (middle_ns, value_at(readings, middle_ns))]
    while_units = [(clock.ended(t_ns), value) for t_ns, value in known if warm_ns <= t_ns < last_ns]
    while_units = [*sorted(while_units), (len(clock.ends), end)]
    middle = clock.ended(middle_ns)
    return Growth(
        open=value_at(readings, clock.first_ns) - start,
        warm=warm - start,
        end=end - start,
        highest=max(value for _, value in readings) - start,
        per_unit=theil_sen(while_units),
        late=theil_sen([point for point in while_units if point[0] >= middle]),
    )


def has_levelled(readings: Sequence[Reading], clock: UnitClock, slack: float = 1.25) -> bool:
    """Whether the highest value in the last quarter of the units is at most ``slack`` times that
    in the second quarter."""
    quarters: dict[int, int] = {}
    for t_ns, value in readings:
        if clock.first_ns <= t_ns <= clock.last_ns and clock.ends:
            quarter = min(3, clock.ended(t_ns) * 4 // len(clock.ends))
            quarters[quarter] = max(quarters.get(quarter, value), value)
    return 1 in quarters and 3 in quarters and quarters[3] <= slack * quarters[1]


def upper_quartile(values: Sequence[int]) -> int | None:
    """The value that three quarters of ``values`` do not exceed; None without any."""
    return sorted(values)[len(values) * 3 // 4] if values else None


def value_at(readings: Sequence[Reading], t_ns: int) -> int:
    """The value at a moment: on the line between the readings around it. Before the first reading
    it is the first, after the last the last."""
    place = bisect_right(readings, t_ns, key=lambda reading: reading[0])
    if place == 0 or place == len(readings):
        return readings[max(0, place - 1)][1]
    (before_ns, before), (after_ns, after) = readings[place - 1 : place + 1]
    return before + round((after - before) * (t_ns - before_ns) / (after_ns - before_ns))


def _at_the_end(readings: Sequence[Reading], clock: UnitClock) -> int:
    """The value when the last unit ended. What was there before, and is gone at the next reading,
    went with the document."""
    place = bisect_right(readings, clock.last_ns, key=lambda reading: reading[0])
    return max(readings[max(0, place - 1)][1], value_at(readings, clock.last_ns))
