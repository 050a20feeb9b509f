"""The units of a recording in numbers: how long each took, its peak, and what it left behind."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from diagnostics.recording.model import PeakMethod, UnitPeak, UnitRow, UnitStatus
from diagnostics.recording.reader import RecordingReader

STANDS_OUT = 5.0  # times the median: far outside of what the pages of one document differ by
WORTH_NAMING_BYTES = 5_000_000  # below that a peak is no trouble, whatever its neighbours do
_MOST_WARM_UP = 2


@dataclass(frozen=True, slots=True)
class UnitFigures:
    """One unit. Sizes in bytes, None where no peak was recorded for it.

    ``peak_bytes`` is its highest resident set above the one it began with (``rss_peak -
    rss_start``), ``retained_bytes`` how much higher or lower it ended than it began
    (``rss_end - rss_start``). ``duration_ns`` of an open unit counts up to now.
    """

    index: int
    kind: str
    label: str
    start_ns: int
    end_ns: int | None
    duration_ns: int
    status: UnitStatus
    error: str | None
    peak_bytes: int | None
    retained_bytes: int | None
    rss_peak_bytes: int | None
    method: PeakMethod | None
    bytes: int
    characters: int


def warm_up_of(units: int) -> int:
    """How many of so many first units may be filling caches: two, fewer of fewer than eight."""
    return min(_MOST_WARM_UP, units // 4)


def unit_figures(
    units: Iterable[UnitRow], peaks: Mapping[int, UnitPeak], now_ns: int
) -> list[UnitFigures]:
    """The figures of ``units``, in their order; ``peaks`` by index."""
    return [_figures(unit, peaks.get(unit.index), now_ns) for unit in units]


def error_text(unit: UnitRow) -> str | None:
    """ "ValueError: no such font", None for a unit without an error."""
    if unit.error_type is None:
        return None
    return f"{unit.error_type}: {unit.error_message}" if unit.error_message else unit.error_type


def highest_unit(figures: Iterable[UnitFigures]) -> UnitFigures | None:
    """The unit with the highest peak above its start; None where no peak is known."""
    known = [unit for unit in figures if unit.peak_bytes is not None]
    return max(known, key=_peak, default=None)


def poisonous_unit(figures: Sequence[UnitFigures]) -> UnitFigures | None:
    """The unit with the highest peak, if it stands out from the others; else None.

    It stands out when its peak is at least five times the median peak and at least 5 MB.
    """
    highest = highest_unit(figures)
    if highest is None or _peak(highest) < WORTH_NAMING_BYTES:
        return None
    others = [_peak(u) for u in figures if u.peak_bytes is not None and u is not highest]
    if not others:
        return None
    return highest if _peak(highest) >= STANDS_OUT * statistics.median(others) else None


def highest_of_runs(figures: Sequence[UnitFigures], most: int) -> list[UnitFigures]:
    """At most ``most`` units: of each run of neighbours the one with the highest peak.

    All of them where they are few enough.
    """
    run = -(-len(figures) // most)
    if run <= 1:
        return list(figures)
    return [max(figures[at : at + run], key=_peak) for at in range(0, len(figures), run)]


class UnitRows:
    """The units of a recording as it has them, brought up to date by reading those that are open
    or new. ``rows`` holds them by index."""

    # A unit's end is committed at the tick after it, and units of several threads can be written
    # in another order than they ended in.
    _OVERLAP_NS = 5_000_000_000

    def __init__(self) -> None:
        self.rows: dict[int, UnitRow] = {}
        self._open: set[int] = set()
        self._last_end_ns = -1

    @property
    def since_ns(self) -> int:
        """Units that ended before are not read again by the next ``feed``."""
        return max(-1, self._last_end_ns - self._OVERLAP_NS)

    def feed(self, reader: RecordingReader) -> list[UnitRow]:
        """Take in what the recording has gained since the last call, and give what was read."""
        changed = reader.units(changed_after_ns=self.since_ns)
        if not self._open <= {row.index for row in changed}:  # one was taken back
            changed = reader.units()
            self.rows.clear()
        self.rows |= {row.index: row for row in changed}
        self._open = {row.index for row in changed if row.end_ns is None}
        ends = (row.end_ns for row in changed if row.end_ns is not None)
        self._last_end_ns = max(ends, default=self._last_end_ns)
        return changed

    def in_order(self) -> list[UnitRow]:
        """All units so far, by index."""
        return [self.rows[index] for index in sorted(self.rows)]

    def in_progress(self) -> UnitRow | None:
        """Of the units that have not ended the one that began last."""
        running = (self.rows[index] for index in self._open)
        return max(running, key=lambda row: (row.start_ns, row.index), default=None)


class LiveUnits:
    """The figures of a recording's units, brought up to date by reading what is open or new."""

    def __init__(self) -> None:
        self._rows = UnitRows()
        self._figures: dict[int, UnitFigures] = {}

    def feed(self, reader: RecordingReader) -> None:
        """Take in what the recording has gained since the last call."""
        now_ns = reader.last_ns()
        since_ns = self._rows.since_ns
        changed = self._rows.feed(reader)
        if len(changed) == len(self._rows.rows):
            since_ns = -1  # all of them were read
        peaks = {peak.index: peak for peak in reader.unit_peaks(ended_after_ns=since_ns)}
        for unit in unit_figures(changed, peaks, now_ns):
            self._figures[unit.index] = unit
        for index in self._figures.keys() - self._rows.rows.keys():  # taken back
            del self._figures[index]

    def figures(self) -> list[UnitFigures]:
        """All units so far, by index."""
        return [self._figures[index] for index in sorted(self._figures)]


def _figures(unit: UnitRow, peak: UnitPeak | None, now_ns: int) -> UnitFigures:
    end_ns = unit.end_ns if unit.end_ns is not None else max(now_ns, unit.start_ns)
    return UnitFigures(
        index=unit.index,
        kind=unit.kind,
        label=unit.label,
        start_ns=unit.start_ns,
        end_ns=unit.end_ns,
        duration_ns=end_ns - unit.start_ns,
        status=unit.status,
        error=error_text(unit),
        peak_bytes=peak.rss_peak - peak.rss_start if peak else None,
        retained_bytes=peak.rss_end - peak.rss_start if peak else None,
        rss_peak_bytes=peak.rss_peak if peak else None,
        method=peak.method if peak else None,
        bytes=unit.bytes,
        characters=unit.characters,
    )


def _peak(unit: UnitFigures) -> int:
    return unit.peak_bytes or 0
