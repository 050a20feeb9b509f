"""Looks through the heap: which objects refer to these, and which live at these addresses.

There are two ways through. ``gc.get_referrers`` compares every reference of every object with every
object asked for: the fastest way for a few. It does not see what is held by a dict or tuple that
the collector has stopped to track because it holds only strings and numbers. The other way takes
the referents of all objects in batches and looks them up: its time does not depend on how many are
asked for, and it looks into such dicts and tuples.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import struct
import time
import types
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from io import BytesIO, StringIO
from typing import Any

from diagnostics.holders.held import HEADERS, Held, block_of
from diagnostics.probes.tracked import tracked_objects

try:
    from diagnostics.probes import _scan

    _IS_BUILT = True
except ImportError:  # without a compiler there are no samples either: only holders are asked for
    _IS_BUILT = False

FINDS_ALL_AT_ONCE = _IS_BUILT
"""Whether ``holders`` leaves nothing to ``holders_by_id``: with the scan it is the same pass."""

_FEW = 256
_PORTION = 100_000
_WORD = "Q" if struct.calcsize("P") == 8 else "I"
_AT_ONCE = 64
_BATCH = 500
_LONGEST = 3.0  # seconds on the wall for each of CPU time
_DEEPEST = 4
_LONG = 100
# Types by their ids: a look into a set would have a program's type hashed by its metaclass.
_SEQUENCES = frozenset(map(id, (list, tuple, set, frozenset, deque)))
_BUFFERED = frozenset(map(id, (bytearray, array, list, dict, set, deque, BytesIO, StringIO)))
"""Types whose struct points to a block of their own."""
_NEVER_ASKED = types.ModuleType
"""A module written in C may tell of its free lists too: asking _asyncio in Python 3.12 makes a dead
object live and die once more, which breaks that list. What a module's names refer to is in its
dict, which is asked."""
_WORD_BYTES = struct.calcsize("P")
_MOST_WORDS = 8

Edge = tuple[int, int]
"""The ids of a holder and of what it holds."""


class OutOfTimeError(Exception):
    """The capture has used up its time; what it found until then counts."""


class Deadline:
    """Says when a capture's time is up: CPU time of the thread that makes this, and takes it.

    A machine that others keep busy makes a capture last longer, and does not make it see less. It
    may last ``_LONGEST`` times as long as it may compute, and no longer: the process waits.
    """

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.thread_time,
        wall: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock, self._wall = clock, wall
        self._end = clock() + seconds
        self._last = wall() + _LONGEST * seconds

    def check(self) -> None:
        """Raises ``OutOfTimeError`` when the time is up."""
        if self._clock() > self._end or self._wall() > self._last:
            raise OutOfTimeError


def objects_at(blocks: Collection[int], deadline: Deadline) -> Held:
    """The objects that lie in the blocks at these addresses and that the collector tracks.

    Raises ``OutOfTimeError``.
    """
    ids = _packed(block + header for block in blocks for header in HEADERS)
    found = Held()
    for objects in _portions(deadline):
        found.update(Held.of(_scan.at(objects, ids)))
    for key, item in list(found.items()):
        if block_of(item) not in blocks:
            del found[key]
    return found


def holders(wanted: Held, deadline: Deadline) -> tuple[Held, list[Edge]]:
    """Who refers to these objects, and who to which. Raises ``OutOfTimeError``."""
    ids = frozenset(wanted)
    tracked = all(map(gc.is_tracked, wanted.values()))
    few = len(wanted) <= _FEW and tracked
    # gc.get_referrers may hand out a tuple that another thread is building, see probes/tracked.py.
    if few and not _IS_BUILT:
        return meeting(_referrers(wanted, deadline), ids)
    return meeting(holders_by_id(ids, deadline, tracked=tracked), ids)


def meeting(holders: Held, ids: frozenset[int]) -> tuple[Held, list[Edge]]:
    """Those of the holders that refer to one of the ids, and who to which."""
    found, edges = Held(), []
    for key, item in holders.items():
        held = _meets(item, ids)
        if held:
            found[key] = item
            edges += [(key, one) for one in held]
    return found, edges


def holders_by_id(ids: frozenset[int], deadline: Deadline, *, tracked: bool = False) -> Held:
    """Who refers to an object with one of these ids. Raises ``OutOfTimeError``.

    It is several times faster where all of them are known to be ``tracked`` by the collector.
    """
    found = Held()
    if _IS_BUILT:
        packed = _packed(ids)
        tuples = _scan.tuples_with(packed) if tracked else None
        for objects in _portions(deadline):
            found.update(Held.of(_scan.holders(objects, packed, _NEVER_ASKED, tuples)))
        return Held.of(item for item in found.values() if type(item) is not Held)
    for objects, parts in _all_objects(deadline):
        if not ids.isdisjoint(map(id, parts)):
            for item in objects:
                if type(item) is not Held and _meets(item, ids):
                    found[id(item)] = item
    return found


def held_by(holders: Held, ids: frozenset[int]) -> Held:
    """The objects with one of these ids that ``holders`` refer to."""
    return Held.of(
        held for holder in holders.values() for held in referents(holder) if id(held) in ids
    )


def buffer_owners(blocks: Collection[int], deadline: Deadline) -> tuple[Held, dict[int, int]]:
    """Whose buffers lie in the blocks at these addresses: the owners, and the owner's id by block.

    A buffer is no object, so nothing refers to it: this reads the structs of the types that are
    known to have one. Raises ``OutOfTimeError``.
    """
    found, owners = Held(), {}
    addresses, packed, buffered = frozenset(blocks), _packed(blocks), _packed(_BUFFERED)
    for objects in _portions(deadline):
        for item in _scan.pointing_at(objects, packed, buffered, _NEVER_ASKED):
            for block in addresses.intersection(_words(item)):
                found[id(item)] = item
                owners[block] = id(item)
    return found, owners


def referents(item: Any) -> Iterable[Any]:
    """What an object refers to; of a module nothing.

    A list is its own answer: it may be too long to copy.
    """
    if type(item) is _NEVER_ASKED:
        return ()
    return item if type(item) is list else gc.get_referents(item)


def _referrers(wanted: Held, deadline: Deadline) -> Held:
    found = Held()
    ids = list(wanted)
    for start in range(0, len(ids), _AT_ONCE):
        deadline.check()
        asked = tuple([wanted[key] for key in ids[start : start + _AT_ONCE]])
        for item in gc.get_referrers(*asked):
            if type(item) is not Held and item is not asked:
                found[id(item)] = item
    return found


def _portions(deadline: Deadline) -> Iterator[list[Any]]:
    """All containers of the heap, a portion at a time, so that other threads get their turn."""
    objects = tracked_objects()
    try:
        for start in range(0, len(objects), _PORTION):
            deadline.check()
            yield objects[start : start + _PORTION]
    finally:
        del objects


def _packed(addresses: Iterable[int]) -> bytes:
    """Addresses as the scan takes them."""
    return array(_WORD, addresses).tobytes()


def _all_objects(deadline: Deadline) -> Iterator[tuple[list[Any], list[Any]]]:
    """All containers of the heap in batches, and with each batch all that it refers to.

    The untracked dicts and tuples follow the batch that refers to them.
    """
    objects = tracked_objects()
    long_ones: set[int] = set()
    try:
        for start in range(0, len(objects), _BATCH):
            deadline.check()
            batch = [o for o in objects[start : start + _BATCH] if type(o) is not _NEVER_ASKED]
            for _level in range(_DEEPEST):
                parts = gc.get_referents(*batch)
                yield batch, parts
                batch = _untracked(parts, long_ones)
                if not batch:
                    break
    finally:
        del objects


def _untracked(parts: list[Any], long_ones: set[int]) -> list[Any]:
    """The dicts and tuples among the parts that the collector does not track, each once.

    Many objects may share one of them. A long one, a font's table say, comes once in all.
    """
    is_tracked = gc.is_tracked
    found = {
        id(item): item
        for item in parts
        if (type(item) is dict or type(item) is tuple) and item and not is_tracked(item)
    }
    for key in long_ones.intersection(found):
        del found[key]
    long_ones.update(key for key, item in found.items() if len(item) > _LONG)
    return list(found.values())


def _meets(item: Any, ids: frozenset[int]) -> frozenset[int]:
    """Which of the ids an object refers to.

    One call of C from end to end, so that no other thread changes the container meanwhile.
    """
    kind = type(item)
    if id(kind) in _SEQUENCES:
        return ids.intersection(map(id, item))
    if kind is dict:
        return ids.intersection(map(id, itertools.chain(item.keys(), item.values())))
    return ids.intersection(map(id, referents(item)))


def _words(item: Any) -> tuple[int, ...]:
    """The beginning of an object's own struct, read as pointers.

    All the types in question have theirs there; further on a small set keeps hashes, which look
    like addresses if they are those of ids.
    """
    count = min(type(item).__basicsize__ // _WORD_BYTES, _MOST_WORDS)
    return tuple(memoryview(ctypes.string_at(id(item), count * _WORD_BYTES)).cast("P"))
