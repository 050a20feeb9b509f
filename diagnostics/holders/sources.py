"""Where a capture gets its suspects from: the sampled engine, or counts of objects by type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from diagnostics.holders.growth import TypeCount, find_growing, find_growing_objects, with_size
from diagnostics.holders.heap import Deadline
from diagnostics.holders.held import Held, block_of
from diagnostics.holders.living import Living, Target, find_living
from diagnostics.holders.samples import SampledHeap
from diagnostics.holders.suspects import Lead, find_leads
from diagnostics.probes.own import is_hosted

Birth = tuple[int, int | None]
"""A birth unit, and the allocation site."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When the look is taken: the current unit (the last one, once the run has ``ended``)."""

    unit: int
    ended: bool


class SuspectSource(Protocol):
    """Finds suspects and their living objects, and knows what was born when."""

    def find(
        self, moment: Moment, deadline: Deadline, *, suspects: int, objects: int
    ) -> tuple[list[Lead], Living]:
        """At most so many suspects, heaviest first, and at most so many objects of each."""
        ...

    def births(self, objects: Held) -> dict[int, Birth]:
        """The births of objects by their ids, as far as they are known."""
        ...


class SampledSource:
    """Suspects from the samples of the sampled engine.

    ``samples`` and ``nodes`` are the functions of the engine's core with these names; each
    ``find`` looks at the samples of that moment.
    """

    def __init__(
        self,
        samples: Callable[[], bytes],
        nodes: Callable[[int], Sequence[tuple[int, str, str, int]]],
    ) -> None:
        self._samples = samples
        self._nodes = nodes
        self._heap: SampledHeap | None = None

    def find(
        self, moment: Moment, deadline: Deadline, *, suspects: int, objects: int
    ) -> tuple[list[Lead], Living]:
        heap = self._heap = SampledHeap(self._samples, self._nodes, hosted=is_hosted())
        leads = find_leads(heap, heap.places, unit=moment.unit, ended=moment.ended, most=suspects)
        return leads, find_living(leads, deadline, objects)

    def births(self, objects: Held) -> dict[int, Birth]:
        if self._heap is None:
            return {}
        blocks = {block_of(item): key for key, item in objects.items()}
        return {blocks[at]: birth for at, birth in self._heap.births(blocks).items()}


class GrowthSource:
    """Suspects from counts of objects by type at the ends of units; see ``probes.object_types``."""

    def __init__(self, marks: Sequence[TypeCount]) -> None:
        self._marks = marks

    def find(
        self, moment: Moment, deadline: Deadline, *, suspects: int, objects: int
    ) -> tuple[list[Lead], Living]:
        leads = find_growing(self._marks, suspects)
        found = find_growing_objects(leads, objects)
        living = Living(types=[lead.type for lead in leads])
        for held in found:
            living.objects.update(held)
            living.targets.append([Target(key, None) for key in held])
        sized = [with_size(lead, held) for lead, held in zip(leads, found, strict=True)]
        return sized, living

    def births(self, objects: Held) -> dict[int, Birth]:
        return {}
