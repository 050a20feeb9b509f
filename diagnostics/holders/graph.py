"""The graph of a capture as rows: the objects of the chains, and what stands around them."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Any

from diagnostics.holders.chains import CLOSURE, Chain, JoinedChain, wrong_links
from diagnostics.holders.frames import frame_of, function_place, place_in
from diagnostics.holders.heap import Deadline, OutOfTimeError, referents
from diagnostics.holders.held import Held, shallow_size
from diagnostics.holders.naming import Namer, alike
from diagnostics.holders.roots import Root
from diagnostics.holders.search import Web
from diagnostics.probes.safe import type_name
from diagnostics.recording.model import ChainLink, HeldObject, Reference

_MOST_NEIGHBOURS = 12
"""So many referrers and so many referents of an object are kept, the alike ones as one."""
_MOST_OBJECTS = 2_000
_PARTS_AT_ONCE = 1_000
"""Of what an object refers to, so many are looked at before the clock is asked again."""
_NAMING = frozenset({"module", "frame", "class", "closure"})
"""The roots that have a name for what they refer to."""

_SCENERY = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.CodeType,
    types.FrameType,
)
_PLAIN = (int, float, complex, bool, type(None), type(...), type(NotImplemented))

Birth = tuple[int, int | None]
"""A birth unit, and the allocation site if it is known."""


class Graph:
    """Collects the rows of one capture. Objects get small numbers; no address is kept."""

    def __init__(self, capture: int, web: Web, births: Mapping[int, Birth], namer: Namer) -> None:
        self._capture = capture
        self._web = web
        self._births = births
        self.namer = namer
        self._numbers: dict[object, int] = {}
        self._objects: list[HeldObject] = []
        self._references: dict[tuple[int, int, str], None] = {}
        self.links: list[ChainLink] = []

    @property
    def objects(self) -> list[HeldObject]:
        return self._objects

    @property
    def references(self) -> list[Reference]:
        return [Reference(self._capture, *reference) for reference in self._references]

    def add_chain(self, suspect: int, number: int, joined: JoinedChain) -> None:
        """Add a chain with its objects."""
        chain = joined.first
        wrong = wrong_links(joined, {key: unit for key, (unit, _site) in self._births.items()})
        rows = [self._chain_object(chain, position) for position in range(len(chain.links))]
        for holder, held, link in zip(rows, rows[1:], chain.links[1:], strict=False):
            self._references[holder, held, link.label] = None
        for position, row in enumerate(rows):
            self.links.append(
                ChainLink(
                    capture=self._capture,
                    suspect=suspect,
                    chain=number,
                    position=position,
                    object=row,
                    count=len(joined.chains),
                    likely_wrong=position in wrong,
                )
            )

    def add_surroundings(self, deadline: Deadline) -> bool:
        """Add the neighbours of all objects of the chains, as long as there is room.

        False where the time was up before: then some have none, or only their holders.
        """
        around = [key for key in self._web.objects if key in self._numbers]
        try:
            for key in around:
                deadline.check()
                self._add_holders(key)
                self._add_held(key, deadline)
        except OutOfTimeError:
            return False
        return True

    def _is_full(self) -> bool:
        return len(self._objects) >= _MOST_OBJECTS

    def _chain_object(self, chain: Chain, position: int) -> int:
        link, root = chain.links[position], chain.root
        if position == 0:
            where = link.key or root
            item = self._web.objects.get(link.key)
            return self._add(where, item, root=root, name=root.name)
        holder = self._web.objects.get(chain.links[position - 1].key)
        item = self._web.objects[link.key]
        named = position == 1 and root.kind in _NAMING
        name = link.label.removeprefix(CLOSURE).removeprefix(".") if named else ""
        return self._add(link.key, item, name=name, count=alike(holder, item))

    def _add(
        self, where: object, item: Any, *, name: str = "", count: int = 1, root: Root | None = None
    ) -> int:
        """The number of an object; ``where`` tells it from others, as its id does."""
        if where in self._numbers:
            return self._numbers[where]
        number = self._numbers[where] = len(self._numbers) + 1
        own_name, file, line = ("", "", 0) if root else _description(item)
        unit, site = self._births.get(where, (None, None)) if type(where) is int else (None, None)
        self._objects.append(
            HeldObject(
                capture=self._capture,
                id=number,
                type=root.type if root else type_name(type(item)),
                name=name or own_name,
                size=0 if item is None else shallow_size(item),
                count=count,
                root=root.kind if root else "",
                unit=unit,
                site=site,
                file=root.file if root else file,
                line=root.line if root else line,
            )
        )
        return number

    def _add_holders(self, key: int) -> None:
        item, number = self._web.objects[key], self._numbers[key]
        for holder in self._web.holders.get(key, ())[:_MOST_NEIGHBOURS]:
            if self._is_full():
                return
            if holder in self._numbers:
                continue  # a chain tells, or will, what is between them
            other = self._web.objects[holder]
            label = self.namer.label(other, item, thorough=False)
            self._references[self._add(holder, other), number, label] = None

    def _add_held(self, key: int, deadline: Deadline) -> None:
        """What an object refers to: one row for each type, with the number of such objects.

        Raises ``OutOfTimeError`` before it adds any: a number of a part of them would be wrong.
        """
        if self._is_full():
            return
        number = self._numbers[key]
        groups: dict[int, list[int]] = {}
        firsts = Held()
        parts = _parts(self._web.objects[key], self.namer)
        for place, part in enumerate(parts, start=1):
            if place % _PARTS_AT_ONCE == 0:
                deadline.check()
            kind = id(type(part))
            if id(part) in self._numbers or _explains_nothing(part):
                continue
            if kind in groups:
                groups[kind][1] += 1
            elif len(groups) < _MOST_NEIGHBOURS:
                groups[kind] = [id(part), 1]
                firsts[id(part)] = part
        for kind, (first, count) in groups.items():
            if self._is_full():
                return
            part = firsts[first]
            label = self.namer.label(self._web.objects[key], part, thorough=False)
            where = first if count == 1 else (key, kind)
            held = self._add(where, part, count=count)
            self._references[number, held, label if count == 1 else ""] = None


def _explains_nothing(part: Any) -> bool:
    kind = type(part)
    is_empty = (kind is dict or kind is tuple) and not part
    return is_empty or issubclass(kind, (*_SCENERY, *_PLAIN))


def _parts(item: Any, namer: Namer) -> Iterator[Any]:
    """What an object refers to; its attributes rather than the dict that they stand in."""
    for part in referents(item):
        if namer.is_namespace(item, part):
            yield from referents(part)
        else:
            yield part


def _description(item: Any) -> tuple[str, str, int]:
    """What code calls an object by itself, and where it stands: functions, frames and classes."""
    frame = item if type(item) is types.FrameType else frame_of(item)
    if frame is not None:
        return place_in(frame)
    if type(item) is types.FunctionType:
        return function_place(item)
    if issubclass(type(item), type):
        return type_name(item), "", 0
    return "", "", 0
