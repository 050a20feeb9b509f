"""What the birth-unit lens shows, in one word and one sentence.

Everything is decided on single units, never on merged rows, and on medians: a few odd pages do not
change the word. Unit 0 never counts, nor do the first units, which fill caches. Standard library
only: the command line uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from diagnostics.analysis.format import counted, format_bytes, sentence_case
from diagnostics.analysis.retention import FLOOR_BYTES, Births, EndedUnit
from diagnostics.analysis.units import STANDS_OUT, WORTH_NAMING_BYTES, warm_up_of
from diagnostics.recording.reader import RecordingReader

ShapeKind = Literal["diagonal", "triangle", "band", "spike", "other"]

_FEWEST = 4  # settled units: one for each quarter of the run
_LEAK_SHARE = 0.1  # of its peak: what a unit of a triangle leaves at least …
_LEAK_PEAKS = 10  # … or all of them together leave as much as this many units need
_UNTOUCHED = 0.9  # what is left of what a unit kept, if it was not freed since
_GIVEN_BACK = 0.5  # a spike ends below this part of its peak
_CRUMB = 0.01  # of a spike: less need not be told of what it kept
_RARE = 0.05  # of the units: so many may be exceptions
_STEADY = 0.25  # by how much the width of a band may vary
_DENSE = 0.8  # of the units in a band: so many hold their memory
_ALL_FREED = 0.1  # what may be left at the end of what was freed after the last unit


@dataclass(frozen=True, slots=True)
class Shape:
    """What the retention of a run looks like.

    ``bytes_per_unit`` is the median of what units still held when the last one ended; of a band,
    of those in the band; None where it is not known. ``width`` is the number of units in a band.
    ``spike_unit`` stands out from its neighbours with ``spike_bytes`` at its peak, whatever the
    kind. ``sentence`` says all of it.
    """

    kind: ShapeKind
    bytes_per_unit: int | None
    width: int | None
    spike_unit: int | None
    spike_bytes: int | None
    sentence: str


def shape_of(reader: RecordingReader) -> Shape:
    """The shape of a recording, finished or not; "other" with the reason where none is known."""
    births = Births.of(reader)
    return shape_of_births(births, births.ended())


def shape_of_births(births: Births, ended: Sequence[EndedUnit]) -> Shape:
    """The shape of what ``births`` has followed so far; ``ended`` are its ``births.ended()``."""
    warm_up = warm_up_of(len(ended))
    # The unit that ended last may still be in a variable of the loop: it is not settled yet.
    settled = ended[warm_up:-1]
    if births.gap:
        return _other(births.gap)
    if len(settled) < _FEWEST:
        kind = ended[0].row.kind if ended else "unit"
        return _other(f"{sentence_case(counted(len(ended), kind))} that ended: too few to compare.")
    base = _triangle(settled, ended[-1]) or _short_lived(births, ended, settled)
    return _with_spike(base, ended[warm_up:])


def _triangle(settled: Sequence[EndedUnit], newest: EndedUnit) -> Shape | None:
    """Units of all ages still hold memory: the oldest as well as the newest."""
    quarters = [settled[len(settled) * k // 4 : len(settled) * (k + 1) // 4] for k in range(4)]
    if any(median(unit.left for unit in quarter) < FLOOR_BYTES for quarter in quarters):
        return None
    each = median(unit.left for unit in settled)
    total = sum(unit.left for unit in settled)
    needed = median(unit.peak for unit in settled)
    if each < _LEAK_SHARE * needed and total < _LEAK_PEAKS * needed:
        return None
    kind = newest.row.kind
    sentence = f"Each {kind} leaves {format_bytes(each)} behind"
    freed = (n for n, unit in enumerate(settled) if unit.left < _UNTOUCHED * unit.kept)
    untouched = next(freed, len(settled))
    if sum(unit.now for unit in settled) < _ALL_FREED * total:
        sentence += f"; it was freed after the last {kind}"
    elif untouched >= len(settled) / 2:
        first_freed = [*settled, newest][untouched]
        sentence += f"; nothing left before {first_freed.row.label} has been freed"
    return _shape("triangle", sentence, each)


def _short_lived(births: Births, ended: Sequence[EndedUnit], settled: Sequence[EndedUnit]) -> Shape:
    """Units give their memory back: at once, after a while, or all but a few of them."""
    kind = ended[0].row.kind
    each = median(unit.left for unit in settled)
    newest, strays = _newest_and_strays(ended)
    compared = {unit.row.index for unit in settled}
    held = [unit for unit in strays if unit.row.index in compared]
    size = sum(unit.left for unit in held)
    if size < WORTH_NAMING_BYTES:
        held = []
    if len(held) > max(1, round(_RARE * len(settled))):
        return _other(
            f"{counted(len(held), kind)} of {len(ended)} still held {format_bytes(size)}"
            f" when the last one ended; {_what_the_others_did(settled)}",
            each,
        )
    widths = [most - len(strays) for most in births.most_alive(after=len(ended) * 3 // 4)]
    width = round(median(widths)) if widths else 0
    standing = sum(unit.left for unit in newest)
    if width <= 1 or standing < median(unit.peak for unit in settled):
        sentence = f"Memory of a {kind} is gone within one {kind}"
        if each >= FLOOR_BYTES:
            sentence += f", but for {format_bytes(each)}{_in_all(settled)}"
        for unit in held:
            sentence += f"; {unit.row.label} still holds {format_bytes(unit.left)}"
        return _shape("diagonal", sentence, each)
    slack = max(1, _STEADY * width)
    unsteady = median(abs(other - width) for other in widths)
    if unsteady <= slack and abs(len(newest) - width) <= slack:
        each = median(unit.left for unit in newest)
        return _shape("band", f"A band of {counted(width, kind)} stays alive", each, width)
    return _other(
        f"Memory of a {kind} stays for a while:"
        f" up to {counted(max(widths), kind)} were alive at one time",
        each,
    )


def _what_the_others_did(settled: Sequence[EndedUnit]) -> str:
    """What the units that do not count as alive gave back, or kept: a little of each adds up."""
    others = [unit.left for unit in settled if not unit.is_alive]
    if sum(others) < FLOOR_BYTES * len(others):
        return "the others gave theirs back"
    return (
        f"the others gave most of theirs back, and kept {format_bytes(median(others))} each,"
        f" {format_bytes(sum(others))} in all"
    )


def _in_all(settled: Sequence[EndedUnit]) -> str:
    total = sum(unit.left for unit in settled if not unit.is_alive)
    return f" each, {format_bytes(total)} in all" if total >= WORTH_NAMING_BYTES else ""


def _newest_and_strays(ended: Sequence[EndedUnit]) -> tuple[list[EndedUnit], list[EndedUnit]]:
    """The units that were alive when the last one ended: those that follow one another up to the
    newest, and those that were left over from earlier, or here and there by chance."""
    newest: list[EndedUnit] = []
    strays: list[EndedUnit] = []
    last_age = 0
    for age, unit in enumerate(reversed(ended), start=1):
        if not unit.is_alive:
            continue
        follows = not strays and age - last_age <= max(2, last_age * _STEADY)
        (newest if follows else strays).append(unit)
        last_age = age if follows else last_age
    if len(newest) < _DENSE * last_age:
        return [], [*newest, *strays]
    return newest, strays


def _with_spike(base: Shape, ended: Sequence[EndedUnit]) -> Shape:
    """The shape with the unit that needed far more than the others and gave it back, or most of
    it, if any."""
    usual = median(unit.peak for unit in ended)
    least = max(STANDS_OUT * usual, WORTH_NAMING_BYTES)
    spikes = [u for u in ended if u.peak >= least and u.left < _GIVEN_BACK * u.peak]
    if not spikes or len(spikes) > max(1, _RARE * len(ended)):
        return base
    highest = max(spikes, key=lambda unit: unit.peak)
    name, size = sentence_case(highest.row.label), format_bytes(highest.peak)
    alone = " alone" if len(spikes) == 1 else ""
    given = "gave it back"
    if highest.left >= max(FLOOR_BYTES, _CRUMB * highest.peak):
        given = f"gave back all but {format_bytes(highest.left)}"
    sentence = f"{name}{alone} took {size} and {given}"
    if len(spikes) > 1:
        sentence += f"; {counted(len(spikes) - 1, highest.row.kind)} more did the like"
    if base.kind != "diagonal":
        sentence = f"{base.sentence}. {sentence}"
    return Shape(
        kind="spike" if base.kind == "diagonal" else base.kind,
        bytes_per_unit=base.bytes_per_unit,
        width=base.width,
        spike_unit=highest.row.index,
        spike_bytes=highest.peak,
        sentence=sentence,
    )


def _shape(kind: ShapeKind, sentence: str, each: float, width: int | None = None) -> Shape:
    return Shape(kind, round(each), width, None, None, sentence)


def _other(sentence: str, each: float | None = None) -> Shape:
    return Shape("other", None if each is None else round(each), None, None, None, sentence)
