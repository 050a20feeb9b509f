"""Suspects without the sampled engine: types of which there are more objects unit after unit."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from diagnostics.holders.held import Held, shallow_size
from diagnostics.holders.suspects import Lead
from diagnostics.probes.safe import type_name
from diagnostics.probes.tracked import count_by_type, tracked_objects

_LEAST_GROWTH = 100
"""So many objects more are the least that makes a type a suspect."""

# They come with everything that a program does, and say nothing about what it keeps.
_EVERYWHERE = frozenset(
    {"builtins.function", "builtins.frame", "builtins.cell", "builtins.type", "other"}
)


@dataclass(frozen=True, slots=True)
class TypeCount:
    """Live objects by type name (``module.qualname``) at the end of a unit."""

    unit: int
    counts: Mapping[str, int]


def find_growing(marks: Sequence[TypeCount], most: int) -> list[Lead]:
    """The types that grew most from the first count to the last, at most ``most``.

    A unit counts for a type when the next count after it was higher than the one before. ``bytes``
    is 0: counts know no sizes (see ``with_size``).
    """
    if len(marks) < 2:
        return []
    leads = []
    for name, last in marks[-1].counts.items():
        grown = last - marks[0].counts.get(name, 0)
        if grown < _LEAST_GROWTH or name in _EVERYWHERE:
            continue
        units = tuple(
            unit
            for before, after in itertools.pairwise(marks)
            if after.counts.get(name, 0) > before.counts.get(name, 0)
            for unit in range(before.unit + 1, after.unit + 1)
        )
        if units:
            leads.append(Lead(site=None, bytes=0, blocks=grown, units=units, type=name))
    return sorted(leads, key=lambda lead: -lead.blocks * lead.steadiness)[:most]


def find_growing_objects(leads: Sequence[Lead], most: int) -> list[Held]:
    """For each lead, ``most`` living objects of its type: evenly from among the newest.

    The newest come last in what the collector tracks, so that the last of a type are what it grew
    by.
    """
    names = {lead.type: place for place, lead in enumerate(leads)}
    found = [Held() for _lead in leads]
    objects = tracked_objects()
    try:
        total = Counter(map(id, map(type, objects)))
        wanted = {
            id(kind): names[type_name(kind)]
            for kind, _count in count_by_type()
            if type_name(kind) in names
        }
        seen: Counter[int] = Counter()
        for item in objects:
            kind = id(type(item))
            if kind in wanted:
                seen[kind] += 1
                place = wanted[kind]
                grown = leads[place].blocks
                newest = seen[kind] - (total[kind] - grown)
                if newest > 0 and newest * most // grown > (newest - 1) * most // grown:
                    found[place][id(item)] = item
    finally:
        del objects
    return found


def with_size(lead: Lead, objects: Held) -> Lead:
    """The lead with its bytes: as many objects as it grew by, of the mean size of these."""
    if not objects:
        return lead
    mean = sum(map(shallow_size, objects.values())) / len(objects)
    return replace(lead, bytes=round(lead.blocks * mean))
