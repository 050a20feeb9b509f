"""The graph of references around a holder chain, as the screen draws it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from diagnostics.analysis.format import counted, format_bytes
from diagnostics.analysis.held_graph import (
    ROOT_NAMES,
    HeldGraph,
    Links,
    name_of,
    place_of,
    short_name,
    size_of,
)
from diagnostics.analysis.sites import site_label
from diagnostics.analysis.stacks import Stacks
from diagnostics.recording.model import HeldObject

_FRAMES = 12


@dataclass(frozen=True, slots=True)
class HolderNode:
    """One object: what the box says, the facts beside it, and its birth stack (a key of
    ``HolderView.stacks``, None where it is not known). ``lead`` stands over the title of a root."""

    id: int
    lead: str
    title: str
    note: str
    root: bool
    facts: tuple[tuple[str, str], ...]
    stack: int | None


@dataclass(frozen=True, slots=True)
class HolderEdge:
    """``holder`` refers to ``held``; ``label`` says how, empty where nobody knows."""

    holder: int
    held: int
    label: str
    likely_wrong: bool


@dataclass(frozen=True, slots=True)
class HolderView:
    """Everything that the graph needs, the objects that are not shown at first among it.

    ``chain`` are the objects that are shown at first, root first. ``words`` says the same as the
    picture of them. ``stacks`` are birth stacks, innermost line first.
    """

    key: str
    title: str
    words: str
    chain: tuple[int, ...]
    nodes: tuple[HolderNode, ...]
    edges: tuple[HolderEdge, ...]
    stacks: Mapping[int, tuple[str, ...]]


def holder_view(
    graph: HeldGraph, chain: Links, stacks: Stacks, *, unit_kind: str = "page"
) -> HolderView:
    """The picture of one chain of ``graph``, and of what can be reached from it."""
    shown = tuple(link.object for link in chain)
    near = _reachable(graph, shown)
    wrong = {(above.object, link.object) for above, link in pairwise(chain) if link.likely_wrong}
    objects = [graph.objects[key] for key in sorted(near)]
    sites = {item.site for item in objects if item.site is not None}
    return HolderView(
        key=f"{graph.capture.id}-{chain[0].suspect}-{chain[0].chain}",
        title="Who holds it: from the root on the left to the object on the right",
        words=graph.in_words(chain),
        chain=shown,
        nodes=tuple(_node(item, unit_kind) for item in objects),
        edges=tuple(
            HolderEdge(row.holder, row.held, row.label, (row.holder, row.held) in wrong)
            for row in graph.references
            if row.holder in near and row.held in near
        ),
        stacks={site: _lines(stacks, site) for site in sites},
    )


def _reachable(graph: HeldGraph, start: Iterable[int]) -> set[int]:
    """The objects that can be reached over references in either direction."""
    neighbours: dict[int, list[int]] = {}
    for row in graph.references:
        neighbours.setdefault(row.holder, []).append(row.held)
        neighbours.setdefault(row.held, []).append(row.holder)
    found = set(start)
    todo = list(found)
    while todo:
        fresh = [key for key in neighbours.get(todo.pop(), ()) if key not in found]
        found.update(fresh)
        todo += fresh
    return found & graph.objects.keys()


def _node(item: HeldObject, unit_kind: str) -> HolderNode:
    facts = [("Type", item.type)]
    if item.root:
        facts.append(("Root", ROOT_NAMES[item.root]))
    if item.name:
        facts.append(("Name", item.name))
    if item.size:
        each = " each" if item.count > 1 else ""
        facts.append(("Own size", f"{format_bytes(item.size)}{each}"))
    if item.count > 1:
        facts.append(("Alike", counted(item.count, "object")))
    if item.unit is not None:
        facts.append(("Born in", f"{unit_kind} {item.unit}" if item.unit else "no unit"))
    if place_of(item):
        facts.append(("Stands at", place_of(item)))
    root = ROOT_NAMES[item.root] if item.root else ""
    return HolderNode(
        id=item.id,
        lead=root if item.name else "",
        title=short_name(item.name) if root and item.name else name_of(item),
        note=place_of(item) if item.root else size_of(item),
        root=bool(item.root),
        facts=tuple(facts),
        stack=item.site,
    )


def _lines(stacks: Stacks, site: int) -> tuple[str, ...]:
    innermost = reversed(stacks.frames(site)[-_FRAMES:])
    return tuple(site_label(frame.file, frame.line, frame.function) for frame in innermost)
