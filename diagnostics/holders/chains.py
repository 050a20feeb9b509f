"""Holder chains: paths of the web in the words of the code, the alike ones joined."""

from __future__ import annotations

import gc
import re
import types
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from diagnostics.holders.frames import frame_of, function_place, place_in
from diagnostics.holders.living import Target
from diagnostics.holders.naming import Namer
from diagnostics.holders.ours import RUN, is_open_document
from diagnostics.holders.roots import Root
from diagnostics.holders.search import Web
from diagnostics.probes.safe import type_name

CLOSURE = "closure "
"""How the label of a captured variable begins; its name follows."""

_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Link:
    """An object of a chain by its id, and how the one before refers to it.

    The key is 0 for a root that is no object of the graph, like a running function.
    """

    key: int
    label: str


@dataclass(frozen=True, slots=True)
class Chain:
    """One way from a root down to a target. ``unit`` is the target's birth unit, if known."""

    root: Root
    links: tuple[Link, ...]
    unit: int | None


@dataclass(frozen=True, slots=True)
class JoinedChain:
    """Chains that differ in indexes only; the first stands for all of them."""

    chains: tuple[Chain, ...]

    @property
    def first(self) -> Chain:
        return self.chains[0]


def joined_chains(web: Web, targets: Iterable[Target], namer: Namer) -> list[JoinedChain]:
    """The chains to a suspect's objects, the most frequent first.

    For each object the shortest, and another that does not come through what that one's root
    names, if the web has one: then both have to be cut.
    """
    chains = []
    for target in targets:
        path = web.path_up(target.key)
        if path:
            chains.append(chain_of(web, path, target.unit, namer))
            begin = 1 if web.roots[path[0]].label is None else 0
            named = frozenset(path[begin:-1][:1])
            other = web.path_up(target.key, without=named) if named else []
            if other and _tells_more(web.roots[path[0]], web.roots[other[0]]):
                chains.append(chain_of(web, other, target.unit, namer))
    return join(chains, {key: type_name(type(item)) for key, item in web.objects.items()})


def _tells_more(root: Root, other: Root) -> bool:
    """Whether a second root is worth a chain: not another local of the first one's function, nor
    what a function of ours has in hand."""
    in_hand = other.weak and other.kind != "unknown"
    same = root.kind == other.kind == "frame"
    return not in_hand and not (same and (root.name, root.file) == (other.name, other.file))


def chain_of(web: Web, path: Sequence[int], unit: int | None, namer: Namer) -> Chain:
    """The chain for a path of the web (see ``Web.path_up``).

    What stands between an object and its attributes, or a function and its closure, is left out.
    """
    objects = [web.objects[key] for key in path]
    at, root = _begin(objects, web.roots[path[0]], namer)
    links = [] if root.label is None else [Link(0, "")]
    links.append(Link(path[at], root.label or ""))
    while at + 1 < len(path):
        holder, rest = objects[at], objects[at + 1 :]
        top = at == 0 and root.kind == "module"
        label, step = _reference(holder, rest, namer, top)
        if label.startswith(CLOSURE) and _is_defined_once(links, root):
            root = Root("closure", type_name(type(holder)), *function_place(holder))
            links = [Link(path[at], "")]
        at += step
        links.append(Link(path[at], label))
    return Chain(root, tuple(links), unit)


def _begin(objects: Sequence[Any], root: Root, namer: Namer) -> tuple[int, Root]:
    """Where a chain begins for the user, and how: not with what the launcher keeps for itself.

    What a built-in loader has opened is the run's own; of a loader that waits between two pages it
    is the loader's function that has the names.
    """
    if root.name != RUN:
        return 0, root
    if len(objects) > 1 and is_open_document(type(objects[0])):
        attribute, at = _reference(objects[0], objects[1:], namer, False)
        return at, replace(root, label=attribute.lstrip("._") or root.label)
    for at, item in enumerate(objects):
        frame = frame_of(item)
        if frame is not None:
            return at, Root("frame", type_name(type(item)), *place_in(frame))
    return 0, root


def join(chains: Iterable[Chain], kinds: Mapping[int, str]) -> list[JoinedChain]:
    """The chains that differ in indexes only as one, the most frequent first.

    ``kinds`` are the names of the types by object.
    """
    alike: defaultdict[object, list[Chain]] = defaultdict(list)
    for chain in chains:
        steps = tuple(
            (kinds.get(link.key, ""), _INDEX.sub("[]", link.label)) for link in chain.links
        )
        alike[chain.root, steps].append(chain)
    joined = [JoinedChain(tuple(group)) for group in alike.values()]
    return sorted(joined, key=lambda one: -len(one.chains))


def wrong_links(joined: JoinedChain, births: Mapping[int, int]) -> range:
    """The positions of the references that are likely wrong.

    They lie between the last object that has a reason to live and the first that has none. A reason
    has the root, with what it names; and what chains to objects of several units share, for it
    outlives a unit. None has an object that was born in the same unit as the target, as far as
    ``births`` (units by object) tells, and in the end the target itself: that unit is over.
    """
    chains = joined.chains
    length = len(joined.first.links)
    last_alive = 1 if length > 2 else 0
    if len({chain.unit for chain in chains}) > 1:
        for position in range(length - 1):
            if len({chain.links[position].key for chain in chains}) == 1:
                last_alive = max(last_alive, position)
    for position in range(last_alive + 1, length - 1):
        known = [
            births[chain.links[position].key] == chain.unit
            for chain in chains
            if chain.links[position].key in births
        ]
        if known and all(known):
            return range(last_alive + 1, position + 1)
    return range(last_alive + 1, length)


def _reference(holder: Any, rest: Sequence[Any], namer: Namer, top: bool) -> tuple[str, int]:
    """How an object refers to the next one worth showing, and how many steps down that one is."""
    held = rest[0]
    if top and type(holder) is dict:
        return namer.attribute_in(holder, held), 1
    if len(rest) > 1 and namer.is_namespace(holder, held):
        return namer.attribute_in(held, rest[1]), 2
    if type(holder) is types.FunctionType and held is holder.__closure__ and len(rest) > 2:
        names = zip(holder.__code__.co_freevars, gc.get_referents(held), strict=True)
        return CLOSURE + next((name for name, cell in names if cell is rest[1]), ""), 3
    return namer.label(holder, held), 1


def _is_defined_once(links: Sequence[Link], root: Root) -> bool:
    """Whether the chain has come no further than a function of a module or class."""
    return len(links) == 2 and root.kind in ("module", "class")
