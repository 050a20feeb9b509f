"""The living objects behind suspects' blocks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from diagnostics.holders.heap import (
    Deadline,
    Edge,
    OutOfTimeError,
    buffer_owners,
    held_by,
    holders_by_id,
    meeting,
    objects_at,
)
from diagnostics.holders.held import HEADERS, Held, block_of
from diagnostics.holders.samples import Sample
from diagnostics.holders.suspects import Lead
from diagnostics.probes.safe import type_name

_ENOUGH = 0.5
"""When the objects behind this share of a suspect's bytes are known, nobody looks for more."""


_LEAST_BUFFER_BYTES = 512
"""Smaller buffers are passed over: they belong to small containers, which are objects enough."""
_LEAST_OBJECT_BYTES = object.__basicsize__
_FEW_UNITS = 2
"""With objects of one type from so many birth units, no others are looked at."""
_SOME = 0.005
"""An object with a kilobyte of values has 3 % of the bytes, and a few hundred samples are a draw
that can halve that; of what stands among the values by chance the draw has one or none."""
# By their ids, as all types are here: those of the program may hash themselves in Python.
_VALUES = frozenset(map(id, (int, float, complex, str, bytes)))
_CONTAINERS = frozenset(map(id, (dict, list, tuple, set, frozenset)))


@dataclass(slots=True)
class Target:
    """An object of a suspect, and its birth unit where that is known."""

    key: int
    unit: int | None


@dataclass(slots=True)
class Living:
    """The objects found, and for each suspect the few to ask about."""

    objects: Held = field(default_factory=Held)
    targets: list[list[Target]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    """For each suspect the type that tells most of it; empty where no object was found."""
    holders: Held = field(default_factory=Held)
    """Who refers to targets, as far as finding them has told already."""
    edges: list[Edge] = field(default_factory=list)
    buffers: set[int] = field(default_factory=set)
    """The objects of which only a buffer was found: how a container grew, not what it holds."""
    complete: bool = True


def find_living(leads: Sequence[Lead], deadline: Deadline, most: int) -> Living:
    """Find the objects of suspects by the addresses of their blocks, ``most`` for each.

    First those that the collector tracks; where they are too few, what those refer to; and where
    that is too little as well, whose buffers the blocks are.
    """
    living = Living()
    owner_of: dict[int, int] = {}
    holders = Held()
    try:
        living.objects.update(objects_at(_missing(leads, owner_of).keys(), deadline))
        owner_of.update((block_of(item), key) for key, item in living.objects.items())
        deadline.check()
        if missing := _missing(leads, owner_of):
            ids = _possible_ids(missing)
            holders = holders_by_id(ids, deadline)
            for key, item in held_by(holders, ids).items():
                if block_of(item) in missing:
                    living.objects[key] = item
                    owner_of[block_of(item)] = key
        if missing := _missing(leads, owner_of, least_bytes=_LEAST_BUFFER_BYTES):
            found, owners = buffer_owners(missing.keys(), deadline)
            living.objects.update(found)
            owner_of.update(owners)
            living.buffers.update(owners.values())
    except OutOfTimeError:
        living.complete = False
    for lead in leads:
        name, targets = _choose(lead, owner_of, living.objects, most)
        living.types.append(name)
        living.targets.append(targets)
    chosen = frozenset(target.key for targets in living.targets for target in targets)
    for key in living.objects.keys() - chosen:
        del living.objects[key]
    living.holders, living.edges = meeting(holders, chosen)
    return living


def _missing(
    leads: Sequence[Lead], owner_of: Mapping[int, int], least_bytes: int = 0
) -> dict[int, Sample]:
    """The samples, by address, of the suspects of which too little is known."""
    missing: dict[int, Sample] = {}
    for lead in leads:
        known = sum(s.weight for s in lead.samples if s.address in owner_of)
        if known < _ENOUGH * sum(s.weight for s in lead.samples):
            missing.update(
                (s.address, s)
                for s in lead.samples
                if s.address not in owner_of and s.size >= least_bytes
            )
    return missing


def _possible_ids(missing: Mapping[int, Sample]) -> frozenset[int]:
    """The ids that objects in these blocks can have."""
    # Beyond the end of a small block the id of its neighbour would follow.
    return frozenset(
        block + header
        for block, sample in missing.items()
        for header in (0, *HEADERS)
        if header == 0 or header + _LEAST_OBJECT_BYTES <= sample.size
    )


def _choose(
    lead: Lead, owner_of: Mapping[int, int], objects: Held, most: int
) -> tuple[str, list[Target]]:
    """The type that tells most of a suspect, and objects of it from different birth units."""
    bytes_of: Counter[int] = Counter()
    by_unit: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for sample in lead.samples:
        key = owner_of.get(sample.address)
        if key is not None:
            kind = id(type(objects[key]))
            bytes_of[kind] += sample.weight
            by_unit[sample.unit].setdefault(kind, key)
    if not bytes_of:
        return "", []
    kinds = _by_what_they_tell(bytes_of)
    units = [unit for unit in sorted(by_unit) if kinds[0] in by_unit[unit]]
    if len(units) < _FEW_UNITS:
        units = sorted(by_unit)
    targets = []
    for unit in _spread(units, most):
        kind = next(kind for kind in kinds if kind in by_unit[unit])
        targets.append(Target(by_unit[unit][kind], unit))
    example = next(by_unit[unit][kinds[0]] for unit in by_unit if kinds[0] in by_unit[unit])
    return type_name(type(objects[example])), targets


def _by_what_they_tell(bytes_of: Counter[int]) -> list[int]:
    """The types, heaviest first; but classes before containers, and single values last.

    The numbers in a record weigh more than the record, and its dict more than the object: yet the
    object is what somebody kept. One that has hardly any part in the bytes gets no such favour.
    """
    enough = _SOME * bytes_of.total()
    return sorted(
        bytes_of, key=lambda kind: (bytes_of[kind] < enough, _tells_little(kind), -bytes_of[kind])
    )


def _tells_little(kind: int) -> int:
    if kind in _VALUES:
        return 2
    return 1 if kind in _CONTAINERS else 0


def _spread(units: Sequence[int], most: int) -> list[int]:
    """At most so many of the units, evenly from the first to the last."""
    if len(units) <= most:
        return list(units)
    gaps = max(1, most - 1)
    return [units[round(place * (len(units) - 1) / gaps)] for place in range(most)]
