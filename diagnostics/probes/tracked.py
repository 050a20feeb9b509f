"""What the garbage collector tracks, without harm to what other threads are just making.

A tuple that a thread is building (``tuple(generator)``) must not be referred to by anybody else, or
its building fails with a ``SystemError``. ``gc.get_objects()`` refers to all there are, and the GIL
can pass on while its list lives. So the list is gone through in C, in one piece.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from typing import Any

try:
    from diagnostics.probes import _scan

    _IS_BUILT = True
except ImportError:  # no compiler
    _IS_BUILT = False


def tracked_objects() -> list[Any]:
    """All objects that the collector tracks, but for tuples and frozensets, the newest last.

    The oldest generation comes first, and within each the objects in about the order in which they
    came to be. Where the scan was not built, building a tuple in another thread can fail meanwhile.
    """
    if _IS_BUILT:
        return _scan.objects()
    # The youngest is asked first: what a collection moves up meanwhile comes twice, and not never;
    # one of these lists may be among it.
    young = gc.get_objects(generation=0)
    middle = gc.get_objects(generation=1)
    old = gc.get_objects(generation=2)
    return [
        item
        for part in (old, middle, young)
        for item in part
        if type(item) is not tuple
        and type(item) is not frozenset
        and item is not young
        and item is not middle
    ]


def count_by_type() -> list[tuple[type, int]]:
    """How many objects of each type the collector tracks.

    Pairs, since a type of the program may not be hashable, or hash itself in Python.
    """
    if _IS_BUILT:
        return _scan.count_types()
    # A list that grows costs no allocation for each object, where a number that is counted up
    # does, and so does an id; with tracemalloc running that makes 1 s of 40 ms.
    tally: defaultdict[type, list[None]] = defaultdict(list)
    of_metaclasses: defaultdict[int, list[type]] = defaultdict(list)
    for kind in map(type, gc.get_objects()):
        if type(kind) is type:
            tally[kind].append(None)
        else:
            of_metaclasses[id(kind)].append(kind)
    pairs = [(kind, len(marks)) for kind, marks in tally.items()]
    return pairs + [(kinds[0], len(kinds)) for kinds in of_metaclasses.values()]
