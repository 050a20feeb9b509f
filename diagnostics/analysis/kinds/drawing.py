"""Draws the evidence from a recording: the only place of the kinds that reads one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from diagnostics.analysis.drops import heap_drops
from diagnostics.analysis.format import format_bytes
from diagnostics.analysis.kinds.births import outside_units, retained
from diagnostics.analysis.kinds.code import import_spans, known_code, packages, release_calls
from diagnostics.analysis.kinds.evidence import Collector, Evidence, Follower, Growth, Spike
from diagnostics.analysis.kinds.growth import Reading, UnitClock, growth_of, has_levelled, theil_sen
from diagnostics.analysis.kinds.own_tables import OwnTables
from diagnostics.analysis.kinds.readings import (
    before_settlement,
    column,
    native_readings,
    rss_growth,
    settled,
    slack_readings,
    unit_need,
    usual_need,
    what_is_left,
    without_steps,
)
from diagnostics.analysis.stacks import Stacks
from diagnostics.analysis.suspects import best_capture, is_cut_off, suspects_of
from diagnostics.analysis.units import STANDS_OUT, WORTH_NAMING_BYTES
from diagnostics.analysis.whole_run import WholeRun
from diagnostics.recording.model import OLDEST_GENERATION, UnitPeak, UnitRow
from diagnostics.recording.reader import RecordingReader

_FEWEST_OBJECTS = 0.5  # more of a type a unit, for its count to follow the units
_RARE = 0.05  # of the units: so many may stand out and still be exceptions
_FEW_UNITS = 4  # with fewer nothing can be left out as warm-up


def draw_evidence(reader: RecordingReader, run: WholeRun | None = None) -> Evidence:
    """The evidence of a run, finished or not; ``run``, if given, has all of ``reader``.

    Raises ``RecordingError`` on a damaged file.
    """
    if run is None:
        run = WholeRun.of(reader)
    meta, outcome = reader.meta(), reader.outcome()
    totals, samples = reader.heap_totals(), reader.process()
    units, steps, by_index = run.units, run.steps, run.births.units.rows
    own = OwnTables.of(totals)
    peaks = own.without_in_peaks(run.peaks, by_index)
    clock = UnitClock.of(units, outcome.t_ns)
    stacks = Stacks(reader.sites())
    heap = [(total.t_ns, total.bytes) for total in totals]
    whole_ledger = reader.ledger()
    ledger = before_settlement(whole_ledger, steps)
    # What importing a library takes comes once: it is no growth with the units.
    spans = import_spans(reader, stacks, run.births)
    native = without_steps(native_readings(whole_ledger, own), spans)
    native_then = [reading for reading in native if not steps or reading[0] <= steps[0].t_ns]
    rss = rss_growth(samples, units, peaks, whole_ledger, clock, own)
    python = growth_of(heap, clock)
    children = growth_of(column(ledger, "children"), clock)
    capture = best_capture(reader)
    suspects = tuple(held for held in suspects_of(reader, capture, stacks) if not held.imported)
    opened, outside = outside_units(reader, stacks, clock, run.births)
    document = _mapping(meta, "document").get("bytes")
    return Evidence(
        kind=units[0].kind if units else "unit",
        units=len(clock.ends),
        state=outcome.state,
        engine=str(_mapping(meta, "settings").get("engine", "")),
        document_bytes=document if isinstance(document, int) else None,
        produced=sum(max(unit.bytes, unit.characters) for unit in units),
        base=_base(rss or python, children),
        need=usual_need(ledger, clock, own),
        unit_need=unit_need(peaks, units, {unit.row.index: unit.left for unit in run.ended}),
        rss=rss,
        python=python,
        native=growth_of(native_then, clock),
        slack=growth_of(slack_readings(ledger), clock),
        free=growth_of(column(ledger, "native_free"), clock),
        children=children,
        group=growth_of(column(ledger, "group_anonymous"), clock),
        group_cache=growth_of(column(ledger, "group_cache"), clock),
        retained=retained(reader, stacks, clock, run),
        opened=opened,
        outside=outside,
        settled=settled(
            steps, samples[0].rss if samples else None, heap[0][1] if heap else None, own
        ),
        left=what_is_left(whole_ledger, native, steps),
        suspects=suspects,
        capture_complete=capture.complete if capture else None,
        capture_cut_off=capture is not None and is_cut_off(capture),
        captured_at_end=capture is not None and capture.t_ns >= clock.last_ns,
        followers=_followers(reader, clock),
        collector=_collector(reader, heap, clock),
        spike=_spike(by_index, peaks, own),
        own_freed=own.freed,
        releases=tuple(release_calls(reader, (suspect.stack for suspect in suspects))),
        known=known_code(reader, stacks),
        packages=packages(reader, stacks),
    )


def _base(own: Growth | None, children: Growth | None) -> int:
    return max(0, own.highest if own else 0) + (children.over_units if children else 0)


def _followers(reader: RecordingReader, clock: UnitClock) -> tuple[Follower, ...]:
    """The types of which every unit leaves more, the most first."""
    counts: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for frame in reader.frames("types"):
        if frame.t_ns <= clock.last_ns:
            for type_id, (count, *_) in frame.values.items():
                counts[type_id].append((float(clock.ended(frame.t_ns)), float(count)))
    names = reader.types()
    found: list[Follower] = []
    for type_id, points in counts.items():
        slope = theil_sen(points)
        growth = round(points[-1][1] - points[0][1])
        if slope >= _FEWEST_OBJECTS and growth > 0:
            found.append(Follower(names.get(type_id, f"type {type_id}"), slope, growth))
    return tuple(sorted(found, key=lambda row: (-row.per_unit, row.name)))


def _collector(reader: RecordingReader, heap: Sequence[Reading], clock: UnitClock) -> Collector:
    drops = [
        drop
        for drop in heap_drops(reader)
        if clock.first_ns <= drop.start_ns and drop.end_ns <= clock.last_ns
    ]
    collected = [drop for drop in drops if drop.cause == "collector"]
    largest = max(collected, key=lambda drop: drop.bytes, default=None)
    half = clock.ends[len(clock.ends) // 2] if clock.ends else clock.first_ns
    return Collector(
        full=sum(
            event.generation == OLDEST_GENERATION and half <= event.t_ns <= clock.last_ns
            for event in reader.gc_events()
            if not event.own
        ),
        by_collector=sum(drop.bytes for drop in collected),
        by_count=sum(drop.bytes for drop in drops) - sum(drop.bytes for drop in collected),
        largest=largest.bytes if largest else 0,
        after_it=largest.after if largest else 0,
        plateau=has_levelled(heap, clock),
    )


def _spike(units: Mapping[int, UnitRow], peaks: Sequence[UnitPeak], own: OwnTables) -> Spike | None:
    """The unit with the highest peak of its own, if it is five times the median or more.

    The first unit is left out where there are enough others: it fills caches and imports.
    """
    compared = peaks[1:] if len(peaks) > _FEW_UNITS else peaks
    if len(compared) < _FEW_UNITS - 1:
        return None
    sizes = {peak.index: peak.rss_peak - peak.rss_start for peak in compared}
    usual = median(sizes.values())
    least = max(WORTH_NAMING_BYTES, STANDS_OUT * usual)
    standing_out = [peak for peak in compared if sizes[peak.index] >= least]
    if not standing_out or len(standing_out) > max(1, _RARE * len(compared)):
        return None
    highest = max(standing_out, key=lambda peak: sizes[peak.index])
    unit = units[highest.index]
    tables = 0
    if unit.end_ns is not None:
        tables = own.highest(unit.start_ns, unit.end_ns) - own.at(unit.start_ns)
    without = f", without {format_bytes(tables)} of the heap engine's own tables"
    return Spike(
        label=unit.label,
        bytes=sizes[highest.index],
        usual=round(usual),
        kept=highest.rss_end - highest.rss_start,
        method=highest.method + (without if tables >= WORTH_NAMING_BYTES else ""),
    )


def _mapping(meta: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A part of the meta data; empty where it is missing or of another shape."""
    value = meta.get(key)
    return value if isinstance(value, dict) else {}
