"""The search for holders: from a suspect's objects upward, level by level, up to a root."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from diagnostics.holders.frames import frame_of
from diagnostics.holders.heap import (
    FINDS_ALL_AT_ONCE,
    Deadline,
    Edge,
    OutOfTimeError,
    holders,
    holders_by_id,
    meeting,
)
from diagnostics.holders.held import Held
from diagnostics.holders.living import Living
from diagnostics.holders.ours import is_our_frame
from diagnostics.holders.roots import UNKNOWN, Root, Roots
from diagnostics.recording.model import IN_A_CYCLE, OUT_OF_TIME

_DEEPEST = 30
_MOST_HOLDERS = 24
"""Of the holders of one object so many are followed; a thousand alike tell no more."""
_MOST_ALIKE = 4


@dataclass(slots=True)
class Web:
    """Objects and who refers to whom among them, as far as the search has come."""

    objects: Held = field(default_factory=Held)
    holders: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    roots: dict[int, Root] = field(default_factory=dict)
    looked_up: set[int] = field(default_factory=set)
    """The objects whose holders were looked for; nobody holds those of them without ``holders``."""
    complete: bool = True
    note: str = ""

    def path_up(self, target: int, without: frozenset[int] = frozenset()) -> list[int]:
        """A shortest path from a root down to the target; empty where none is known.

        A weak root is taken where there is no other, however near it is, and an unknown one last.
        The objects in ``without`` are not to be on the path.
        """
        if target not in self.objects:
            return []
        below: dict[int, int] = {target: 0}
        queue = deque([target])
        weak: dict[bool, int] = {}
        while queue:
            key = queue.popleft()
            root = self.roots.get(key)
            if root is not None:
                if not root.weak:
                    return _path(key, below)
                weak.setdefault(root.kind == "unknown", key)
            for holder in self.holders.get(key, ()):
                if holder not in below and holder not in without:
                    below[holder] = key
                    queue.append(holder)
        last = weak.get(False) or weak.get(True)
        return _path(last, below) if last else []

    def is_rooted(self, target: int) -> bool:
        """Whether a path from a root that is not weak leads to the target."""
        path = self.path_up(target)
        return bool(path) and not self.roots[path[0]].weak


def _path(top: int, below: Mapping[int, int]) -> list[int]:
    path = [top]
    while below[path[-1]]:
        path.append(below[path[-1]])
    return path


def search(living: Living, roots: Roots, deadline: Deadline) -> Web:
    """The web of references above the objects of suspects, up to the first root of each.

    What the program has let go of in the meantime is not in it: ``living`` loses it too.
    """
    web = Web()
    targets = living.objects
    _add(web, targets, roots)
    _take_in(web, living.holders, living.edges, roots)
    living.holders.clear()
    try:
        for _level in range(_DEEPEST):
            frontier = [key for key in _open(web, targets) if key not in web.looked_up]
            if not frontier:
                _end_cycles(web, targets)
                return web
            _climb(web, targets, frontier, roots, deadline)
        web.complete, web.note = False, f"no root within {_DEEPEST} references of some objects"
    except OutOfTimeError:
        web.complete, web.note = False, OUT_OF_TIME
    return web


def _forget_the_dead(web: Web, targets: Held, keys: Iterable[int], deadline: Deadline) -> None:
    """Drop what nobody refers to but the capture itself, and what only that had held.

    What has lost its last known holder so, and lives on, is to be looked up again. Raises
    ``OutOfTimeError``; what was dropped until then is dropped with all that belongs to it.
    """
    waiting = deque(keys)
    below: dict[int, list[int]] | None = None
    while waiting:
        deadline.check()
        key = waiting.popleft()
        if key not in web.objects or web.holders.get(key):
            continue
        ours = 1 + (key in targets)
        # One more is the argument of getrefcount.
        if sys.getrefcount(web.objects[key]) - 1 <= ours:
            if below is None:  # mostly nothing has died
                below = _below(web)
            del web.objects[key]
            web.roots.pop(key, None)
            web.holders.pop(key, None)
            targets.pop(key, None)
            for held in below.get(key, ()):
                above = web.holders.get(held, [])  # none where it has died before
                if key in above:
                    above.remove(key)
                    if not above:
                        web.looked_up.discard(held)
                        waiting.append(held)


def _below(web: Web) -> dict[int, list[int]]:
    """The objects that each holder holds."""
    below: defaultdict[int, list[int]] = defaultdict(list)
    for held, above in web.holders.items():
        for holder in above:
            below[holder].append(held)
    return below


def _end_cycles(web: Web, targets: Iterable[int]) -> None:
    """Give the targets without a root one: what refers to them refers to itself in the end."""
    for target in targets:
        if not web.path_up(target):
            above = _above(web, target)
            web.roots[above[-1]] = replace(UNKNOWN, name=IN_A_CYCLE)


def _climb(web: Web, targets: Held, frontier: list[int], roots: Roots, deadline: Deadline) -> None:
    """Look for the holders of all objects of the frontier at once."""
    _take_in(web, *holders(Held((key, web.objects[key]) for key in frontier), deadline), roots)
    _forget_the_dead(web, targets, frontier, deadline)
    # Some types written in C keep what they refer to from gc.get_referrers, finished tasks in 3.11
    # among them. So nobody is said to hold an object before the other way has been tried.
    alone = frozenset(
        key
        for key in frontier
        if key in web.objects
        and not web.holders.get(key)
        and not roots.is_in_hand(key)
        and frame_of(web.objects[key]) is None
    )
    if alone and not FINDS_ALL_AT_ONCE:
        _take_in(web, *meeting(holders_by_id(alone, deadline), alone), roots)
    for key in frontier:
        if key not in web.objects:
            continue
        web.looked_up.add(key)
        if not web.holders.get(key):
            web.roots[key] = roots.without_holder(web.objects[key])


def _take_in(web: Web, found: Held, edges: Iterable[Edge], roots: Roots) -> None:
    """Add holders, but not what observes the program, nor all where many are alike."""
    by_held: defaultdict[int, list[int]] = defaultdict(list)
    for holder, held in edges:
        if holder == held:
            continue
        if not roots.is_observer(found[holder]):
            by_held[held].append(holder)
        elif is_our_frame(found[holder]):
            roots.note_in_hand(found[holder], held)
    for held, keys in by_held.items():
        web.holders[held] = _a_few(keys, found, roots)
        web.looked_up.add(held)
    followed = {holder for held in by_held for holder in web.holders[held]}
    _add(web, {key: found[key] for key in followed}, roots)


def _add(web: Web, objects: dict[int, Any], roots: Roots) -> None:
    for key, item in objects.items():
        web.objects[key] = item
        root = roots.of(item)
        if root is not None:
            web.roots[key] = root


def _open(web: Web, targets: Iterable[int]) -> list[int]:
    """What is above those targets to which no path from a known root leads yet."""
    above: set[int] = set()
    for target in targets:
        if not web.is_rooted(target):
            above.update(_above(web, target))
    return list(above)


def _above(web: Web, target: int) -> list[int]:
    """The target and all that leads to it, the nearest first."""
    seen = {target: None}
    queue = deque([target])
    while queue:
        for holder in web.holders.get(queue.popleft(), ()):
            if holder not in seen:
                seen[holder] = None
                queue.append(holder)
    return list(seen)


def _a_few(keys: list[int], found: Held, roots: Roots) -> list[int]:
    """The holders to follow: roots first, and not many of the same type."""
    keys = sorted(keys, key=lambda key: roots.of(found[key]) is None)
    seen: Counter[int] = Counter()
    kept = []
    for key in keys:
        kind = id(type(found[key]))
        seen[kind] += 1
        if seen[kind] <= _MOST_ALIKE:
            kept.append(key)
    return kept[:_MOST_HOLDERS]
