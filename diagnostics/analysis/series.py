"""Long series thinned to what a screen can show, without losing their extremes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from diagnostics.recording.reader import RecordingReader

FIRST_WIDTH_NS = 100_000_000
"""The recorder's default tick: finer buckets would hold one sample each."""


class Point(NamedTuple):
    t_ns: int
    value: int


class Thinned:
    """A series reduced to the lowest and the highest point of each of at most ``buckets`` buckets.

    When the buckets run out they are joined in pairs and become twice as wide, so memory stays
    the same however long the series grows, and the points that are kept do not depend on the order
    or the portions in which they came. Of equal values the earliest point is kept.
    """

    def __init__(self, buckets: int = 1000, first_width_ns: int = FIRST_WIDTH_NS) -> None:
        if buckets < 1 or first_width_ns < 1:
            raise ValueError("buckets and first_width_ns are at least 1")
        self._most = buckets
        self.width_ns = first_width_ns
        self._buckets: dict[int, tuple[Point, Point]] = {}
        self._first: Point | None = None
        self._last: Point | None = None

    def add(self, t_ns: int, value: int) -> None:
        """Add a point; its time is 0 or later."""
        while t_ns // self.width_ns >= self._most:
            self._widen()
        point = Point(t_ns, value)
        if self._first is None or t_ns < self._first.t_ns:
            self._first = point
        if self._last is None or t_ns > self._last.t_ns:
            self._last = point
        _join(self._buckets, t_ns // self.width_ns, point, point)

    @property
    def last_ns(self) -> int:
        """The time of the last point, -1 before the first."""
        return -1 if self._last is None else self._last.t_ns

    def points(self) -> list[Point]:
        """What is kept, in order: each bucket's extremes, and the first and the last point."""
        kept = {point for extremes in self._buckets.values() for point in extremes}
        kept.update(point for point in (self._first, self._last) if point is not None)
        return sorted(kept)

    def peak(self) -> Point | None:
        """The highest point of all, None when there is none."""
        highest = (high for _, high in self._buckets.values())
        return max(highest, key=lambda point: (point.value, -point.t_ns), default=None)

    def _widen(self) -> None:
        self.width_ns *= 2
        joined: dict[int, tuple[Point, Point]] = {}
        for bucket, (low, high) in self._buckets.items():
            _join(joined, bucket // 2, low, high)
        self._buckets = joined


def _join(buckets: dict[int, tuple[Point, Point]], bucket: int, low: Point, high: Point) -> None:
    """Put extremes into a bucket; of equal ones the earlier stay."""
    old = buckets.get(bucket)
    if old is not None:
        old_low, old_high = old
        if (old_low.value, old_low.t_ns) <= (low.value, low.t_ns):
            low = old_low
        if (old_high.value, -old_high.t_ns) >= (high.value, -high.t_ns):
            high = old_high
    buckets[bucket] = (low, high)


def thin(
    points: Iterable[tuple[int, int]],
    buckets: int = 1000,
    first_width_ns: int = FIRST_WIDTH_NS,
) -> list[Point]:
    """At most ``2 * buckets + 2`` of the points (t_ns, value), with every bucket's extremes."""
    thinned = Thinned(buckets, first_width_ns)
    for t_ns, value in points:
        thinned.add(t_ns, value)
    return thinned.points()


class LiveSeries:
    """The memory curves of a recording, brought up to date by reading only what is new.

    ``rss``, ``uss``, ``pss`` (the process), ``heap`` (live Python bytes) and ``engine`` (the heap
    engine's own memory) are bytes over time.
    """

    def __init__(self, buckets: int = 1000) -> None:
        self.rss, self.uss, self.pss = Thinned(buckets), Thinned(buckets), Thinned(buckets)
        self.heap, self.engine = Thinned(buckets), Thinned(buckets)

    def feed(self, reader: RecordingReader) -> None:
        """Take in what the recording has gained since the last call."""
        for sample in reader.process(after_ns=self.rss.last_ns):
            self.rss.add(sample.t_ns, sample.rss)
            if sample.uss is not None:
                self.uss.add(sample.t_ns, sample.uss)
            if sample.pss is not None:
                self.pss.add(sample.t_ns, sample.pss)
        for total in reader.heap_totals(after_ns=self.heap.last_ns):
            self.heap.add(total.t_ns, total.bytes)
            self.engine.add(total.t_ns, total.engine_bytes)
