"""What the birth units tell: what units left behind, and what was there before the first one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from diagnostics.analysis.drops import freed_by
from diagnostics.analysis.heap_changes import site_changes
from diagnostics.analysis.kinds.evidence import Retained, Spike
from diagnostics.analysis.kinds.growth import UnitClock
from diagnostics.analysis.retention import Births, EndedUnit
from diagnostics.analysis.shape import Shape
from diagnostics.analysis.stacks import Stacks
from diagnostics.analysis.units import warm_up_of
from diagnostics.analysis.whole_run import WholeRun
from diagnostics.recording.model import OLDEST_GENERATION, UnitRow, unit_and_site
from diagnostics.recording.reader import RecordingReader

_MOST = 0.5  # of what is alive: the line that keeps it
_DENSE = 0.9  # of the newest units: so many are alive in a tail
_TELLING = 1_000_000  # bytes: with less, what a collection leaves may be chance


def retained(
    reader: RecordingReader, stacks: Stacks, clock: UnitClock, run: WholeRun
) -> Retained | None:
    """What the units left; None where the engine does not know birth units, or none has ended."""
    births, shape = run.births, run.shape
    if births.gap or not run.ended:
        return None
    # What a unit imported comes once and stays, and is nobody's trouble.
    imported = _imported(births, stacks)
    ended = [
        _without(unit, imported[unit.row.index]) if unit.row.index in imported else unit
        for unit in run.ended
    ]
    old = ended[:-1]
    settled = ended[warm_up_of(len(ended)) : -1] or ended
    failed = [unit.left for unit in old if unit.row.error_type is not None]
    each = round(median(unit.left for unit in settled))
    peak_each = round(median(unit.peak for unit in settled))
    return Retained(
        shape=shape,
        units=len(ended),
        alive_units=sum(unit.is_alive for unit in old),
        total=sum(unit.left for unit in old),
        each=each,
        peak_each=peak_each,
        later=sum(min(unit.now, unit.left) for unit in old),
        failed_units=len(failed),
        failed_total=sum(failed),
        failed=round(median(failed)) if failed else 0,
        finished=_median([unit.left for unit in old if unit.row.error_type is None]),
        first=ended[0].left,
        tail=_tail(ended),
        lag=_lag(births, len(ended)),
        refilled=_refilled(reader, stacks, clock, each),
        survived=_survived(reader, stacks, clock, births.units.rows),
        spike=_spike(shape, ended, peak_each),
    )


def outside_units(
    reader: RecordingReader, stacks: Stacks, clock: UnitClock, births: Births
) -> tuple[int | None, int | None]:
    """Python bytes that belong to no unit: what was there before the first unit and stayed until
    the last one ended, and what came to it while units went on. Imports are left out."""
    before = _outside(reader, stacks, clock.first_ns, births)
    after = _outside(reader, stacks, clock.last_ns, births)
    if before is None or after is None:
        return None, None
    stayed = sum(min(size, after[site]) for site, size in before.items())
    return stayed, sum(after.values()) - stayed


def _outside(
    reader: RecordingReader, stacks: Stacks, t_ns: int, births: Births
) -> Counter[int] | None:
    found: Counter[int] = Counter()
    # What the births have followed is not read and put together once more.
    alive: Mapping[int, int] | None = births.alive
    if not 0 <= births.last_ns <= t_ns:
        state = reader.state_at("alive", t_ns)
        alive = {pair: values[0] for pair, values in state.values.items()} if state else None
    if alive is not None:
        for pair, size in alive.items():
            unit, site = unit_and_site(pair)
            if unit == 0 and not stacks.is_import(site):
                found[site] += size
        return found
    # An engine without birth units: what stayed at a line is what was there before and is after.
    heap = reader.state_at("heap", t_ns)
    if heap is None:
        return None
    for site, values in heap.values.items():
        if not stacks.is_import(site):
            found[site] += values[0]
    return found


def _lag(births: Births, ended: int) -> tuple[int, ...]:
    """The most units that were alive at once after each quarter of those that ended."""
    after = [births.most_alive(after=ended * quarter // 4 - 1) for quarter in (1, 2, 3)]
    counts = [*(most[0] for most in after if most), *(after[-1][-1:])]
    return tuple(counts) if len(counts) == 4 else ()


def _spike(shape: Shape, ended: Sequence[EndedUnit], usual: int) -> Spike | None:
    spikes = [unit for unit in ended if unit.row.index == shape.spike_unit]
    if not spikes:
        return None
    unit = spikes[0]
    return Spike(unit.row.label, unit.peak, usual, unit.left, "live Python memory")


def _imported(births: Births, stacks: Stacks) -> Counter[int]:
    """What each unit had imported. It stays, so what is there in the end tells it, also where the
    frames are too far apart for the moment when the last unit ended."""
    found: Counter[int] = Counter()
    for pair, size in births.alive.items():
        unit, site = unit_and_site(pair)
        if stacks.is_import(site):
            found[unit] += size
    return found


def _without(unit: EndedUnit, imported: int) -> EndedUnit:
    return unit._replace(
        peak=max(0, unit.peak - imported),
        kept=max(0, unit.kept - imported),
        left=max(0, unit.left - imported),
        now=max(0, unit.now - imported),
    )


def _tail(ended: Sequence[EndedUnit]) -> int:
    """How many of the newest units are alive, where all older ones are gone."""
    alive = [unit.is_alive for unit in ended]
    oldest = alive.index(True) if True in alive else len(alive)
    width = len(alive) - oldest
    if oldest == 0 or sum(alive) < _DENSE * width:
        return 0
    return width


def _refilled(reader: RecordingReader, stacks: Stacks, clock: UnitClock, each: int) -> float:
    """The part of ``each`` that was made twice: by one line of one's own and freed, then by
    another one and kept, both times at the same place of a library."""
    if not each:
        return 0.0
    most: Counter[int] = Counter()
    known: dict[int, int] = {}
    for frame in reader.changes("heap", after_ns=-1):
        if frame.t_ns > clock.last_ns:
            break
        for site in site_changes(frame, known):
            most[site] = max(most[site], known.get(site, 0))
    kept_by: Counter[int] = Counter()
    for site, size in known.items():
        kept_by[stacks.own_line(site)] += size
    [(keeper, kept_there)] = kept_by.most_common(1) or [(0, 0)]
    if not keeper or kept_there < _MOST * sum(kept_by.values()):
        return 0.0
    freed: Counter[tuple[str, int]] = Counter()
    kept: Counter[tuple[str, int]] = Counter()
    for site, size in most.items():
        row, own = stacks.sites.get(site), stacks.own_line(site)
        if row is None or own in (0, site) or stacks.is_import(site):
            continue
        if own == keeper:
            kept[row.file, row.line] += known.get(site, 0)
        else:
            freed[row.file, row.line] += size - known.get(site, 0)
    total = sum(kept.values())
    # The lines make a unit at a time: what one has freed is compared with what a unit keeps.
    again = (min(size, each * kept[place] / total) for place, size in freed.items() if total)
    return sum(again) / each


def _survived(
    reader: RecordingReader, stacks: Stacks, clock: UnitClock, units: Mapping[int, UnitRow]
) -> float | None:
    """What a full collection left alive of what it came upon: what units that had ended held, and
    what it freed. Of the collection that came upon most."""
    full = [
        event
        for event in reader.gc_events()
        if event.generation == OLDEST_GENERATION and clock.first_ns <= event.t_ns <= clock.last_ns
    ]
    ends = {row.index: row.end_ns for row in units.values() if row.end_ns is not None}
    most, survived = _TELLING, None
    held: Counter[int] = Counter()
    known: dict[int, int] = {}
    for frame in reader.changes("alive", after_ns=-1) if full else ():
        for pair, change in site_changes(frame, known).items():
            unit, site = unit_and_site(pair)
            if not stacks.is_import(site):
                held[unit] += change
        while full and full[0].t_ns <= frame.t_ns:
            event = full.pop(0)
            freed = freed_by(event)
            if freed is None:
                continue
            left = sum(
                size for unit, size in held.items() if ends.get(unit, event.t_ns) < event.t_ns
            )
            met = left + freed
            if met >= most:
                most, survived = met, left / met
    return survived


def _median(values: Sequence[int]) -> int:
    return round(median(values)) if values else 0
