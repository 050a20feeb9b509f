"""What is alive at one moment, of some units or of all: by allocation stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import pandas as pd

from diagnostics.analysis.format import counted, format_bytes, format_count, format_share
from diagnostics.analysis.retention import why_no_births
from diagnostics.analysis.sites import GROUPINGS, OTHER, Grouping, Place
from diagnostics.recording.model import Site, unit_and_site
from diagnostics.recording.reader import RecordingReader


@dataclass(frozen=True, eq=False)
class Alive:
    """Live memory at ``t_ns``: ``sites`` maps an allocation site to bytes and blocks.

    Site 0 is what the engine did not trace to a line. Where nothing is known, ``gap`` says why.
    """

    t_ns: int
    sites: Mapping[int, tuple[int, int]]
    gap: str = ""

    @cached_property
    def bytes(self) -> int:
        return sum(size for size, _ in self.sites.values())

    @cached_property
    def blocks(self) -> int:
        return sum(blocks for _, blocks in self.sites.values())


def alive_at(reader: RecordingReader, t_ns: int, units: range | None = None) -> Alive:
    """What of ``units`` was alive at ``t_ns``; without ``units`` the whole heap.

    The whole heap is known from every engine; the units only from one that knows the birth unit.
    """
    if units is None:
        heap = reader.state_at("heap", t_ns)
        gap = "" if heap else "The heap was not measured at that moment."
        return _alive(t_ns, heap.values if heap else {}, gap)
    frame = reader.state_at("alive", t_ns)
    if frame is None:
        return Alive(t_ns, {}, why_no_births(reader))
    sites: dict[int, tuple[int, ...]] = {}
    for pair, (size, blocks) in frame.values.items():
        unit, site = unit_and_site(pair)
        if unit in units:
            before = sites.get(site, (0, 0))
            sites[site] = (before[0] + size, before[1] + blocks)
    return _alive(t_ns, sites)


@dataclass(frozen=True, slots=True)
class StackNode:
    """A rectangle of an icicle: a place in code, with all that was allocated below it.

    ``parent`` is the id of the caller's node, empty for the root. ``bytes`` and ``blocks`` are
    ``own_bytes`` (allocated in this very place) and those of its children.
    """

    id: str
    parent: str
    place: Place
    bytes: int
    own_bytes: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Stack:
    """An allocation stack, outermost place first, with what it holds and its part of the whole."""

    places: tuple[Place, ...]
    bytes: int
    blocks: int
    share: float


def stack_tree(
    alive: Alive,
    sites: Mapping[int, Site],
    group: Grouping = "line",
    *,
    label: str = "everything alive",
    most: int = 400,
) -> list[StackNode]:
    """At most ``most`` nodes, callers before what they call, the largest first among siblings.

    Neighbours of a stack that fall into the same group become one node. The calls that all stacks
    begin with are folded into the root, which is called ``label`` and lists them in its detail.
    Where not all branches find room, the smallest ones of a node become one child "other". Empty
    when nothing is alive.
    """
    trunk = _grow(alive, sites, group)
    if not trunk.bytes:
        return []
    folded: list[str] = []
    while not trunk.own_bytes and len(trunk.children) == 1:
        only = next(iter(trunk.children.values()))
        if only.own_bytes or not only.children:
            break
        trunk = only
        folded.append(trunk.place.label)
    detail = "All stacks begin with: " + ", ".join(folded) if folded else ""
    trunk.place = Place("", label, detail)
    return _rows(trunk, _largest(trunk, most))


def top_stacks(
    alive: Alive, sites: Mapping[int, Site], group: Grouping = "line", most: int = 20
) -> list[Stack]:
    """The ``most`` stacks that hold the most bytes, the largest first."""
    stacks: list[Stack] = []
    pending: list[tuple[_Node, tuple[Place, ...]]] = [(_grow(alive, sites, group), ())]
    while pending:
        node, path = pending.pop()
        if node.own_bytes:
            share = node.own_bytes / alive.bytes
            stacks.append(Stack(path, node.own_bytes, node.own_blocks, share))
        pending += [(child, (*path, child.place)) for child in node.children.values()]
    stacks.sort(key=lambda stack: (-stack.bytes, [place.key for place in stack.places]))
    return stacks[:most]


def stack_table(stacks: Iterable[Stack]) -> pd.DataFrame:
    """One row a stack: ``allocated in``, ``alive``, ``share``, ``blocks``, ``called from`` (the
    nearest caller first)."""
    return pd.DataFrame(
        [
            (
                stack.places[-1].label,
                format_bytes(stack.bytes),
                format_share(stack.share),
                format_count(stack.blocks),
                " ← ".join(place.label for place in reversed(stack.places[:-1])),
            )
            for stack in stacks
        ],
        columns=["allocated in", "alive", "share", "blocks", "called from"],
    )


class _Node:
    """A node of the tree of stacks while it grows."""

    __slots__ = ("blocks", "bytes", "children", "own_blocks", "own_bytes", "place")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.children: dict[str, _Node] = {}
        self.bytes = self.blocks = 0
        self.own_bytes = self.own_blocks = 0


def _grow(alive: Alive, sites: Mapping[int, Site], group: Grouping) -> _Node:
    place_of = GROUPINGS[group]
    root = _Node(OTHER)
    for site, (size, blocks) in alive.sites.items():
        node = root
        node.bytes += size
        node.blocks += blocks
        for place in _path(site, sites, place_of):
            if place.key != node.place.key or node is root:
                node = node.children.setdefault(place.key, _Node(place))
                node.bytes += size
                node.blocks += blocks
        node.own_bytes += size
        node.own_blocks += blocks
    return root


def _path(
    site: int, sites: Mapping[int, Site], place_of: Callable[[Site], Place]
) -> Iterator[Place]:
    """The places of a stack, outermost first; "other" for what has no site."""
    stack: list[Site] = []
    found = sites.get(site)
    while found is not None:
        stack.append(found)
        # A caller is always written before what it calls; anything else would be a circle.
        caller = found.parent
        found = sites.get(caller) if caller is not None and caller < found.id else None
    return map(place_of, reversed(stack)) if stack else iter([OTHER])


def _largest(root: _Node, most: int) -> set[_Node]:
    """The largest nodes that fit, together with an "other" for each that loses children."""
    ordered: list[tuple[int, int, str, _Node, _Node]] = []
    pending = [(root, 0)]
    while pending:
        node, depth = pending.pop()
        for child in node.children.values():
            ordered.append((-child.bytes, depth + 1, child.place.key, child, node))
            pending.append((child, depth + 1))
    ordered.sort(key=lambda entry: entry[:3])  # callers come before what they call
    kept = {root}
    missing = {root: len(root.children)}
    count = 1 + bool(root.children)
    for _, _, _, node, caller in ordered:
        count += 1 + bool(node.children) - (missing[caller] == 1)
        if count > most:
            break
        kept.add(node)
        missing[caller] -= 1
        missing[node] = len(node.children)
    return kept


def _rows(root: _Node, kept: set[_Node]) -> list[StackNode]:
    rows: list[StackNode] = []
    pending = [(root, "", _id("", ""))]
    while pending:
        node, parent, name = pending.pop()
        rows.append(StackNode(name, parent, node.place, node.bytes, node.own_bytes, node.blocks))
        ordered = sorted(node.children.values(), key=lambda child: (-child.bytes, child.place.key))
        rest = [child for child in ordered if child not in kept]
        if rest:
            size = sum(child.bytes for child in rest)
            blocks = sum(child.blocks for child in rest)
            place = Place(OTHER.key, OTHER.label, f"{counted(len(rest), 'smaller branch')}.")
            rows.append(StackNode(_id(name, "rest"), name, place, size, size, blocks))
        shown = [child for child in reversed(ordered) if child in kept]
        pending += [(child, name, _id(name, child.place.key)) for child in shown]
    return rows


def _id(parent: str, key: str) -> str:
    """Short, and the same in every picture of the same stacks: a live picture keeps its zoom."""
    return blake2b(f"{parent}\n{key}".encode(), digest_size=8).hexdigest()


def _alive(t_ns: int, values: Mapping[int, tuple[int, ...]], gap: str = "") -> Alive:
    return Alive(t_ns, {site: (size, blocks) for site, (size, blocks) in values.items()}, gap)
