"""The suspects of a recording, each with its allocation stack and its holder chains, as rows for
pages, for the command line and for JSON. Standard library only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diagnostics.analysis.format import counted, format_count
from diagnostics.analysis.stacks import Stacks, is_own
from diagnostics.recording.model import (
    OUT_OF_TIME,
    Capture,
    ChainLink,
    Frame,
    HeldObject,
    RootKind,
)
from diagnostics.recording.reader import RecordingReader

_MOSTLY = 0.5  # of what a look at the end saw: its suspects are what is held, and no garbage
_GOOD_PART = 0.25  # of what was held at most: a crumb that is left does not hide a leak
_AS_MUCH = 0.9
_MANY = 4  # units: one variable does not hold the blocks of so many
_DIRECT = 2  # links: a root, and the object itself


@dataclass(frozen=True, slots=True)
class Link:
    """One object of a holder chain. ``label`` is how its holder refers to it, "" for the root."""

    type: str
    name: str
    label: str
    root: RootKind
    size: int
    file: str
    line: int
    likely_wrong: bool = False


Chain = tuple[Link, ...]
"""From the root down to the suspect's object."""


@dataclass(frozen=True, slots=True)
class Held:
    """A suspect of a capture: its figures, its stack (outermost first), its chains.

    ``first_unit`` to ``last_unit`` are the birth units of its blocks, ``units`` of them left some,
    ``steadiness`` is that as a part of the span. ``chains`` come with how many chains each stands
    for (they differ in indexes only), the most common first. ``imported`` blocks are code and
    classes that came with a module, and stay as long as it does.
    """

    rank: int
    type: str
    bytes: int
    blocks: int
    first_unit: int
    last_unit: int
    units: int
    steadiness: float
    stack: tuple[Frame, ...]
    chains: tuple[tuple[Chain, int], ...]
    imported: bool = False

    @property
    def chain(self) -> Chain:
        """The chain that stands for most others; empty where none was found, or where it explains
        one object only: a variable that holds the newest of many units' blocks."""
        if not self.chains:
            return ()
        chain, alike = self.chains[0]
        plural = alike > 1 or self.units < _MANY or len(chain) > _DIRECT
        return chain if plural else ()

    @property
    def own_frame(self) -> Frame | None:
        """The innermost line of people's own code, for that is what they can change; where there is
        none, the line that allocated. None without a stack."""
        own = [frame for frame in self.stack if is_own(frame.file)]
        return next(reversed(own or self.stack), None)


def best_capture(reader: RecordingReader) -> Capture | None:
    """The capture that shows most; None where nothing was captured.

    That is the one whose chains come from real roots for the most bytes: a capture after a document
    was let go sees garbage, and "no referrer", where an earlier one saw who held it. Without such
    chains it is the one with most bytes; among nearly equal ones the last that was not cut off.
    The one at the end of the run comes before one with more, where it knows the roots of most of
    what it saw and that is no small part: what the other saw besides did not stay.
    """
    sizes: list[tuple[int, int, Capture]] = []
    for capture in reader.captures():
        rooted = _rooted(reader, capture)
        suspects = reader.suspects(capture.id)
        held = sum(suspect.bytes for suspect in suspects if suspect.rank in rooted)
        sizes.append((held, sum(suspect.bytes for suspect in suspects), capture))
    by_roots = any(held for held, _, _ in sizes)
    known = [(held if by_roots else size, capture) for held, size, capture in sizes]
    most = max((size for size, _ in known), default=0)
    for held, size, capture in sizes:
        stayed = held >= _MOSTLY * size and held >= _GOOD_PART * most
        if by_roots and stayed and capture.reason == "end of the run" and not is_cut_off(capture):
            return capture
    enough = [capture for size, capture in known if size >= _AS_MUCH * most]
    return max(enough, key=lambda capture: (not is_cut_off(capture), capture.t_ns), default=None)


def is_cut_off(capture: Capture) -> bool:
    """Whether the time of a capture was up before all was looked at."""
    return not capture.complete and OUT_OF_TIME in capture.note


def cut_off(reader: RecordingReader) -> list[tuple[Capture, str]]:
    """The captures that ran out of their time, each with a sentence of how far it came. One after
    which another saw all is no loss, and not among them; none is where the one at the end did."""
    captures = reader.captures()
    if any(capture.complete and capture.reason == "end of the run" for capture in captures):
        return []
    whole_ns = max((capture.t_ns for capture in captures if capture.complete), default=-1)
    return [
        (capture, _how_far(reader, capture))
        for capture in captures
        if is_cut_off(capture) and capture.t_ns > whole_ns
    ]


def _how_far(reader: RecordingReader, capture: Capture) -> str:
    suspects = reader.suspects(capture.id)
    found = len(_rooted(reader, capture))
    return (
        f"The capture ({capture.reason}) was cut off after {capture.duration_ns / 1e9:.1f} s, in a"
        f" heap of {format_count(capture.objects)} objects: it found who holds {found} of"
        f" {counted(len(suspects), 'suspect')}. What it found counts; take capture() in the loop,"
        " while there are fewer objects, to see the others."
    )


def _rooted(reader: RecordingReader, capture: Capture) -> set[int]:
    """The ranks of the suspects that have a chain from a real root."""
    objects = reader.held_objects(capture.id)
    return {
        row.suspect
        for row in reader.chains(capture.id)
        if row.object in objects and objects[row.object].root not in ("", "unknown")
    }


def suspects_of(reader: RecordingReader, capture: Capture | None, stacks: Stacks) -> list[Held]:
    """The suspects of ``capture`` by rank; none without a capture."""
    if capture is None:
        return []
    chains = _chains(reader, capture)
    return [
        Held(
            rank=suspect.rank,
            type=suspect.type,
            bytes=suspect.bytes,
            blocks=suspect.blocks,
            first_unit=suspect.first_unit,
            last_unit=suspect.last_unit,
            units=suspect.units,
            steadiness=suspect.steadiness,
            stack=stacks.frames(suspect.site),
            imported=suspect.site is not None and stacks.is_import(suspect.site),
            chains=_ordered(chains[suspect.rank]),
        )
        for suspect in reader.suspects(capture.id)
    ]


def _ordered(chains: Iterable[tuple[Chain, int]]) -> tuple[tuple[Chain, int], ...]:
    """The most common first, then the short ones. Where no two are alike, the one of middle length
    comes first: the shortest is that of the object nearest to a root, and no other's."""
    ordered = sorted(chains, key=lambda found: (-found[1], len(found[0])))
    if ordered and ordered[0][1] == 1:
        ordered.insert(0, ordered.pop((len(ordered) - 1) // 2))
    return tuple(ordered)


def suspects_json(suspects: Iterable[Held]) -> list[dict[str, Any]]:
    """The suspects as ``--json`` prints them (docs/verdict.md)."""
    return [
        {
            "bytes": suspect.bytes,
            "blocks": suspect.blocks,
            "type": suspect.type,
            "birth_units": {
                "first": suspect.first_unit,
                "last": suspect.last_unit,
                "count": suspect.units,
            },
            "stack": [
                {"file": frame.file, "line": frame.line, "function": frame.function}
                for frame in suspect.stack
            ],
            "holders": [
                {
                    "role": _role(place, chain),
                    "type": link.type,
                    "name": link.name or link.label.lstrip("."),
                    "file": link.file,
                    "line": link.line or None,
                }
                for place, link in enumerate(chain)
            ],
        }
        for suspect in suspects
        for chain in [suspect.chains[0][0] if suspect.chains else ()]
    ]


def _role(place: int, chain: Sequence[Link]) -> str:
    """What a link is: the root's kind, "holder", or "object" for the suspect's own."""
    if place == 0:
        return chain[0].root or "unknown"
    return "object" if place == len(chain) - 1 else "holder"


def _chains(reader: RecordingReader, capture: Capture) -> defaultdict[int, list[tuple[Chain, int]]]:
    """By a suspect's rank its chains, each with how many it stands for."""
    objects = reader.held_objects(capture.id)
    labels = {(row.holder, row.held): row.label for row in reader.references(capture.id)}
    rows: defaultdict[tuple[int, int], list[ChainLink]] = defaultdict(list)
    for row in reader.chains(capture.id):
        rows[row.suspect, row.chain].append(row)
    found: defaultdict[int, list[tuple[Chain, int]]] = defaultdict(list)
    for (suspect, _), links in rows.items():
        chain = _chain(links, objects, labels)
        found[suspect].append((chain, max(row.count for row in links)))
    return found


def _chain(
    rows: Sequence[ChainLink],
    objects: Mapping[int, HeldObject],
    labels: Mapping[tuple[int, int], str],
) -> Chain:
    links: list[Link] = []
    holder: int | None = None
    for row in rows:
        found = objects[row.object]
        links.append(
            Link(
                type=found.type,
                name=found.name,
                label=labels.get((holder, row.object), "") if holder is not None else "",
                root=found.root,
                size=found.size,
                file=found.file,
                line=found.line,
                likely_wrong=row.likely_wrong,
            )
        )
        holder = row.object
    return tuple(links)
