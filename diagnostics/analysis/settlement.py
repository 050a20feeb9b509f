"""The settlement in words and as a table: what each step of letting go gave back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diagnostics.analysis.format import counted, format_bytes
from diagnostics.recording.model import SettlementName, SettlementStep, UnitRow
from diagnostics.recording.reader import RecordingReader

if TYPE_CHECKING:
    import pandas as pd

_ORDER: tuple[SettlementName, ...] = ("result released", "collection", "malloc_trim")
_NOTHING_BYTES = 100_000
"""The kernel counts resident pages per thread and processor: less than this says nothing."""

_SAME_SHARE = 0.1
"""What differs by less is the same to a reader."""

_SUBJECTS: Mapping[SettlementName, str] = {
    "result released": "Releasing the result",
    "collection": "A collection",
    "malloc_trim": "malloc_trim",
}


@dataclass(frozen=True, slots=True)
class SettlementReport:
    """One settlement. ``start_rss`` is the resident set when the recording began, in bytes.

    ``left_over`` is what is resident beyond that at its end: imported modules, warm caches, memory
    that is held or cannot be given back. ``left_over_python`` are the Python blocks alive then.
    """

    steps: tuple[SettlementStep, ...]
    start_rss: int

    @property
    def left_over(self) -> int:
        return self.steps[-1].rss_after - self.start_rss

    @property
    def left_over_python(self) -> int | None:
        return self.steps[-1].python_after


def last_settlement(reader: RecordingReader) -> SettlementReport | None:
    """The last settlement of a recording, None where there was none."""
    settlements = split(reader.settlement())
    first = reader.process()[:1]
    if not settlements or not first:
        return None
    return SettlementReport(settlements[-1], first[0].rss)


def final_settlement(
    steps: Iterable[SettlementStep], units: Iterable[UnitRow]
) -> tuple[SettlementStep, ...]:
    """The settlement that the run ended with; empty where there was none, or where a unit began or
    ended after the last one: then a service has settled on its way."""
    settlements = split(steps)
    if not settlements:
        return ()
    went_on_ns = max((unit.end_ns or unit.start_ns for unit in units), default=0)
    return settlements[-1] if went_on_ns <= settlements[-1][0].t_ns else ()


def split(steps: Iterable[SettlementStep]) -> list[tuple[SettlementStep, ...]]:
    """The steps, one tuple for each settlement: a service may have settled several times."""
    found: list[list[SettlementStep]] = []
    for step in steps:
        if not found or _ORDER.index(step.step) <= _ORDER.index(found[-1][-1].step):
            found.append([])
        found[-1].append(step)
    return [tuple(one) for one in found]


def gave_back(step: SettlementStep) -> int:
    """Bytes by which the resident set shrank in this step; negative where it grew."""
    return step.rss_before - step.rss_after


def freed_python(step: SettlementStep) -> int | None:
    """Bytes of Python blocks freed in this step, None where nobody counted them.

    Freed is not given back: the allocators may keep the memory for the next request.
    """
    if step.python_before is None or step.python_after is None:
        return None
    return step.python_before - step.python_after


def sentences(report: SettlementReport) -> list[str]:
    """One sentence for each step, and one for what stays."""
    return [*map(sentence, report.steps), left_over_sentence(report)]


def sentence(step: SettlementStep) -> str:
    """What one step gave back: "Releasing the result gave back 41 MB."."""
    returned = _amount(gave_back(step))
    if step.step == "collection" and step.objects:
        found = counted(step.objects, "object")
        text = f"A collection gave back {found}" + (f" and {returned}" if returned else "")
    else:
        text = f"{_SUBJECTS[step.step]} gave back {returned or 'nothing'}"
    freed = freed_python(step) or 0
    if freed - max(0, gave_back(step)) > max(_NOTHING_BYTES, freed * _SAME_SHARE):
        text += f"; it freed {format_bytes(freed)} of Python blocks"
    if step.uncollectable:
        text += f"; {counted(step.uncollectable, 'object')} could not be collected"
    return text + "."


def left_over_sentence(report: SettlementReport) -> str:
    """What is resident at the end: "31 MB more than at the start stay …"."""
    over, python = report.left_over, report.left_over_python
    if over < -_NOTHING_BYTES:
        return f"{format_bytes(-over)} less than at the start stay."
    if over <= _NOTHING_BYTES:
        return "Nothing more than at the start stays."
    inside = "" if python is None else f", {format_bytes(python)} of them live Python blocks"
    return f"{format_bytes(over)} more than at the start stay{inside}."


def settlement_table(report: SettlementReport) -> pd.DataFrame:
    """One row a step: ``step``, ``rss_before``, ``rss_after``, ``gave_back``,
    ``freed_python`` (NA where not counted), ``objects``, ``uncollectable``, ``text``."""
    import pandas as pd  # here: the command line needs the rest, and must not wait for it

    rows = [
        (
            step.step,
            step.rss_before,
            step.rss_after,
            gave_back(step),
            freed_python(step),
            step.objects,
            step.uncollectable,
            sentence(step),
        )
        for step in report.steps
    ]
    columns = ["step", "rss_before", "rss_after", "gave_back", "freed_python"]
    columns += ["objects", "uncollectable", "text"]
    table = pd.DataFrame(rows, columns=columns)
    numbers = dict.fromkeys(columns[1:-1], "Int64")
    return table.astype({"step": "str", "text": "str", **numbers})


def _amount(size: int) -> str:
    """A size that says something, else ""."""
    return format_bytes(size) if size > _NOTHING_BYTES else ""
