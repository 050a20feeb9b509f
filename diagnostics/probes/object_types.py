"""How many objects of which type live."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diagnostics.probes.base import BaseProbe, Budget
from diagnostics.probes.own import is_own_module
from diagnostics.probes.safe import module_of, type_name
from diagnostics.probes.tracked import count_by_type
from diagnostics.probes.turns import Turn
from diagnostics.recording.writer import RecordingWriter

if TYPE_CHECKING:
    from diagnostics.holders.sources import SuspectSource

_LEAST = 50
_MARKS = 8
OTHER = "other"
"""The name under which the types with fewer objects are added up."""


@dataclass(frozen=True, slots=True)
class _Count:
    t_ns: int
    unit: int
    counts: dict[str, int]


class TypeProbe(BaseProbe):
    """Objects per type at unit ends, as often as ``budget`` allows, and once at the end.

    Counted is what the garbage collector tracks: instances and containers, but no strings, bytes
    or numbers. Nothing is collected for it, and no reference outlives the count.
    """

    name = "types"

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget
        self._turn = Turn(budget)
        self._done: deque[_Count] = deque()
        self._first: list[tuple[int, Mapping[str, int]]] = []
        self._latest: deque[tuple[int, Mapping[str, int]]] = deque(maxlen=_MARKS)
        self.detail = (
            f"objects that the collector tracks, by type; types with fewer than {_LEAST}"
            f" together as {OTHER!r}, the workbench's own left out"
        )

    def unit_ended(self, unit: int) -> None:
        if self._turn.has_come():
            self._count(unit)

    def tick(self, writer: RecordingWriter, t_ns: int) -> None:
        while self._done:
            done = self._done.popleft()
            state = {writer.type_id(name): (count,) for name, count in done.counts.items()}
            writer.add_frame("types", done.t_ns, done.unit, state)

    def growth_source(self) -> SuspectSource:
        """Suspects for a capture: the types that grew from the first counts to the last ones."""
        from diagnostics.holders.growth import TypeCount
        from diagnostics.holders.sources import GrowthSource

        return GrowthSource([TypeCount(*mark) for mark in (*self._first, *self._latest)])

    def stop(self) -> None:
        self._count(self.session.current_unit())

    def _count(self, unit: int) -> None:
        with self.accounted(), self._budget.measured():
            counts = count_types(least=_LEAST)
            self._done.append(_Count(self.session.now_ns(), unit, counts))
            marks = self._first if len(self._first) < _MARKS else self._latest
            marks.append((unit, counts))
        self._turn.taken()


def count_types(least: int = 1) -> dict[str, int]:
    """Live objects per ``module.qualname``; types with fewer than ``least`` add up in "other".

    Objects of the workbench's own classes are left out: they come and go with its probes.
    """
    names: Counter[str] = Counter()
    for kind, count in count_by_type():
        if is_own_module(module_of(kind)):
            continue
        names[type_name(kind) if count >= least else OTHER] += count
    return dict(names)
