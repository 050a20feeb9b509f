"""Quantities over time, drawn from the rows of a recording: readings in, readings out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import inf

from diagnostics.analysis.kinds.evidence import Growth, Left, Settled
from diagnostics.analysis.kinds.growth import Reading, UnitClock, growth_of, upper_quartile
from diagnostics.analysis.kinds.own_tables import OwnTables
from diagnostics.analysis.ledger import empty_in_arenas
from diagnostics.analysis.settlement import freed_python, gave_back
from diagnostics.recording.model import (
    LedgerReading,
    ProcessSample,
    SettlementStep,
    UnitPeak,
    UnitRow,
)

_FIRST_UNITS = 2

Span = tuple[int, int]
"""From after a moment to another one, in nanoseconds."""


def rss_growth(
    samples: Iterable[ProcessSample],
    units: Iterable[UnitRow],
    peaks: Sequence[UnitPeak],
    ledger: Iterable[LedgerReading],
    clock: UnitClock,
    own: OwnTables,
) -> Growth | None:
    """The resident set at each tick and each unit's end; its highest also in between, and where
    only the ledger saw it. The engine's tables are set aside, in ``peaks`` already."""
    ends = {unit.index: unit.end_ns for unit in units if unit.end_ns is not None}
    readings = own.without((sample.t_ns, sample.rss) for sample in samples)
    readings += [(ends[peak.index], peak.rss_end) for peak in peaks if peak.index in ends]
    readings.sort()
    growth = growth_of(readings, clock)
    if growth is None:
        return None
    between = [peak.rss_peak for peak in peaks]
    between += [rss for _, rss in own.without((row.t_ns, row.rss) for row in ledger)]
    highest = max(between, default=0) - readings[0][1]
    return replace(growth, highest=max(growth.highest, highest))


def native_readings(ledger: Iterable[LedgerReading], own: OwnTables) -> list[Reading]:
    """Native memory in use: malloc's, without the large blocks that Python takes from it and
    without the engine's tables, and what is anonymous and neither malloc's nor pymalloc's. Empty
    where malloc cannot be asked, and where nobody counted Python's blocks, which are then in it."""
    return own.without(
        (row.t_ns, _native(row, row.native_used))
        for row in ledger
        if row.native_used is not None and row.python is not None
    )


def without_steps(readings: Sequence[Reading], spans: Sequence[Span]) -> list[Reading]:
    """``readings`` without what they rose by while one of ``spans`` went on. The spans come in
    order and apart; of a rise that took longer than a span, the span has its part of the time."""
    taken = 0
    level: list[Reading] = list(readings[:1])
    ends = [end for _, end in spans]
    for (before_ns, before), (t_ns, value) in pairwise(readings):
        place = bisect_right(ends, before_ns)  # the first span that is not over yet
        common_ns = 0
        while place < len(spans) and spans[place][0] < t_ns:
            common_ns += min(t_ns, spans[place][1]) - max(before_ns, spans[place][0])
            place += 1
        if common_ns:
            taken += max(0, value - before) * common_ns // (t_ns - before_ns)
        level.append((t_ns, value - taken))
    return level


def slack_readings(ledger: Iterable[LedgerReading]) -> list[Reading]:
    """What pymalloc's arenas hold beyond the live blocks in them."""
    found = ((row.t_ns, empty_in_arenas(row)) for row in ledger)
    return [(t_ns, empty) for t_ns, empty in found if empty is not None]


def column(ledger: Iterable[LedgerReading], name: str) -> list[Reading]:
    """One column of the ledger, where it was read."""
    return [(row.t_ns, getattr(row, name)) for row in ledger if getattr(row, name) is not None]


def before_settlement(
    ledger: Iterable[LedgerReading], steps: Sequence[SettlementStep]
) -> list[LedgerReading]:
    """The readings up to the first step of letting go."""
    return [row for row in ledger if not steps or row.t_ns <= steps[0].t_ns]


def usual_need(ledger: Sequence[LedgerReading], clock: UnitClock, own: OwnTables) -> int | None:
    """What is usually in use at a time while units go on, above the start; None without a ledger.

    Python's blocks and native ones; three quarters of the readings are not above it.
    """
    known = [row for row in ledger if row.python is not None and row.native_used is not None]
    if not known:
        return None
    used = own.without(
        (row.t_ns, (row.python or 0) + _native(row, row.native_used or 0)) for row in known
    )
    start = used[0][1]
    return upper_quartile(
        [value - start for t_ns, value in used if clock.first_ns <= t_ns <= clock.last_ns]
    )


def unit_need(
    peaks: Iterable[UnitPeak], units: Sequence[UnitRow], left: Mapping[int, int]
) -> int | None:
    """The most that one of the first two units took at a time and let go of again; None without
    units. ``left`` are the Python bytes that a unit left behind, by its index.

    Ledgers are read between units where C code holds the GIL all through them; the resident set's
    highest is known all the same. Later units may take what earlier ones have let go of, and the
    resident set does not tell. Units that went on at a time had their part of its rise each.
    """
    by_index = {peak.index: peak for peak in peaks}
    first = [unit for unit in units if unit.index in by_index][:_FIRST_UNITS]
    taken = [
        (by_index[unit.index].rss_peak - by_index[unit.index].rss_start)
        // _most_at_a_time(unit, units)
        - left.get(unit.index, 0)
        for unit in first
    ]
    return max([0, *taken]) if taken else None


def _most_at_a_time(unit: UnitRow, units: Iterable[UnitRow]) -> int:
    """The most units that went on at one moment of ``unit``, itself among them."""
    begins, ends = _span(unit)
    moments: list[tuple[float, int]] = []
    for start, end in map(_span, units):
        if start < ends and begins < end:
            moments += [(max(start, begins), 1), (end, -1)]
    return max([1, *accumulate(change for _, change in sorted(moments))])


def _span(unit: UnitRow) -> tuple[float, float]:
    return unit.start_ns, inf if unit.end_ns is None else unit.end_ns


def settled(
    steps: Sequence[SettlementStep],
    rss_start: int | None,
    python_start: int | None,
    own: OwnTables,
) -> Settled | None:
    """What letting go gave back, in the steps of one settlement; None where there was none. What
    was left is without the engine's tables."""
    if not steps:
        return None
    by_name = {step.step: step for step in steps}
    result, collection = by_name.get("result released"), by_name.get("collection")
    trim, end = by_name.get("malloc_trim"), steps[-1]
    return Settled(
        result_rss=_rss_given(result),
        result_python=_python_given(result),
        collection_rss=_rss_given(collection),
        collection_python=_python_given(collection),
        objects=collection.objects if collection else 0,
        uncollectable=collection.uncollectable if collection else 0,
        trim_rss=_rss_given(trim) if trim else None,
        left_rss=end.rss_after - own.at(end.t_ns) - rss_start if rss_start is not None else 0,
        left_python=None
        if end.python_after is None or python_start is None
        else end.python_after - python_start,
    )


def what_is_left(
    ledger: Sequence[LedgerReading], native: Sequence[Reading], steps: Sequence[SettlementStep]
) -> Left | None:
    """The last reading above the first one; None with fewer than two. ``native`` are those of
    native memory."""
    if len(ledger) < 2:
        return None
    rows = ledger[0], ledger[-1]
    slack = slack_readings(rows)
    return Left(
        after_settlement=bool(steps) and rows[1].t_ns >= steps[-1].t_ns,
        python=_rise(column(rows, "python")),
        slack=_rise(slack),
        native=_rise([native[0], native[-1]] if native else []),
        native_free=_rise(column(rows, "native_free")),
    )


def _native(row: LedgerReading, used: int) -> int:
    large = max(0, (row.python or 0) - (row.python_small or 0))
    unseen = row.anonymous - (row.arenas or 0) - used - (row.native_free or 0)
    # Free memory that was given back or never touched still counts as free: no less than nothing.
    return used - large + max(0, unseen)


def _rise(readings: Sequence[Reading]) -> int | None:
    return readings[1][1] - readings[0][1] if len(readings) == 2 else None


def _rss_given(step: SettlementStep | None) -> int:
    return max(0, gave_back(step)) if step else 0


def _python_given(step: SettlementStep | None) -> int:
    return max(0, freed_python(step) or 0) if step else 0
