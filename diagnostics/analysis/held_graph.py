"""A capture's graph of references, for a screen: its chains step by step, and what stands around
them. From the rows of a recording alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from diagnostics.analysis.chains import chain_in_words
from diagnostics.analysis.format import counted, format_bytes, format_count
from diagnostics.recording.model import Capture, ChainLink, HeldObject, Reference, RootKind
from diagnostics.recording.reader import RecordingReader

Links = tuple[ChainLink, ...]
"""A holder chain from its root down."""

ROOT_NAMES: Mapping[RootKind, str] = {
    "module": "module",
    "frame": "running function",
    "thread": "thread",
    "class": "class",
    "closure": "closure",
    "task": "pending task",
    "exception": "exception being handled",
    "unknown": "no Python referrer",
    "": "object",
}
"""What a root is, as a reader calls it."""


@dataclass(frozen=True, slots=True)
class HeldGraph:
    """The objects of a capture by id, the references between them, and the chains of each suspect
    by its rank, the chain that stands for most others first."""

    capture: Capture
    objects: Mapping[int, HeldObject]
    references: Sequence[Reference]
    chains: Mapping[int, Sequence[Links]]

    def in_words(self, chain: Links) -> str:
        """The chain as a sentence, see ``chain_in_words``."""
        return chain_in_words(chain, self.objects.values(), self.references)

    def label(self, holder: int, held: int) -> str:
        """How one object refers to another: ".pages", "[12]"; empty where nobody knows."""
        found = (row.label for row in self.references if (row.holder, row.held) == (holder, held))
        return next(found, "")


@dataclass(frozen=True, slots=True)
class Step:
    """One link of a chain in words: "``.pages``", "list", "one of 40".

    ``how`` is how the holder above refers to it, empty for the root. ``likely_wrong`` marks that
    reference.
    """

    how: str
    what: str
    note: str
    likely_wrong: bool


def read_graph(reader: RecordingReader, capture: Capture) -> HeldGraph:
    """The graph of one capture, complete. Raises ``RecordingError`` on a damaged file."""
    rows: defaultdict[tuple[int, int], list[ChainLink]] = defaultdict(list)
    for link in reader.chains(capture.id):
        rows[link.suspect, link.chain].append(link)
    chains: defaultdict[int, list[Links]] = defaultdict(list)
    for (suspect, _), links in sorted(rows.items(), key=_most_alike_first):
        chains[suspect].append(tuple(links))
    return HeldGraph(
        capture, reader.held_objects(capture.id), reader.references(capture.id), dict(chains)
    )


def steps(graph: HeldGraph, chain: Links) -> list[Step]:
    """The chain link by link, from its root down."""
    found: list[Step] = []
    for place, link in enumerate(chain):
        item = graph.objects[link.object]
        if place == 0:
            found.append(Step("", name_of(item), place_of(item), link.likely_wrong))
            continue
        last = place == len(chain) - 1
        found.append(
            Step(
                how=graph.label(chain[place - 1].object, link.object),
                what=name_of(item),
                note=_alike(item, last=last),
                likely_wrong=link.likely_wrong,
            )
        )
    return found


def name_of(item: HeldObject) -> str:
    """What a reader calls an object: a root by its kind and name, code by its name, else its
    type's short name."""
    if item.root == "unknown":  # a cycle says so, and its links follow
        return item.name or ROOT_NAMES["unknown"]
    if item.root:
        return f"{ROOT_NAMES[item.root]} {short_name(item.name)}".rstrip()
    return short_name(item.name) if item.name and item.file else short_name(item.type)


def place_of(item: HeldObject) -> str:
    """Where a frame, function or module stands: "loader.py:41"; empty where nobody knows."""
    if not item.file:
        return ""
    name = PurePath(item.file).name
    return f"{name}:{item.line}" if item.line else name


def size_of(item: HeldObject) -> str:
    """Its own size, without what it refers to: "33 kB", "4,000 × 114 B"."""
    if item.count > 1:
        return f"{format_count(item.count)} × {format_bytes(item.size)}"
    return format_bytes(item.size) if item.size else ""


def _alike(item: HeldObject, *, last: bool) -> str:
    if item.count <= 1:
        return ""
    return f"{counted(item.count, 'object')} alike" if last else f"one of {item.count:,}"


def _most_alike_first(row: tuple[tuple[int, int], list[ChainLink]]) -> tuple[int, int, int, int]:
    (suspect, number), links = row
    return suspect, -max(link.count for link in links), len(links), number


def short_name(name: str) -> str:
    """The last part of a qualified name; what a function is defined in says less than itself."""
    return name.rpartition(".")[2]
