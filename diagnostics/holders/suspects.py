"""Suspects: live blocks that were born in old units, grouped by the code that allocated them.

Blocks belong together when the same line of the user's own code, reached in the same way, led to
them: the innermost frame of their stack that lies neither in the standard library nor in an
installed package. What happens below that line is a library's affair, and thirty lines of its
constructors would otherwise make thirty suspects of one leak. For the same reason the line that
makes an object counts, not the lines of its constructor. A stack without such a frame stands for
itself.
"""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from diagnostics.holders.samples import Place, Sample
from diagnostics.probes.own import is_own_file, is_standard_library

WELL_BEHIND = 2
"""While a run goes on, blocks are old when at least this many units began after theirs."""

_LIBRARIES = re.compile(r"[/\\\\](?:site|dist)-packages[/\\\\]")
_OUR_LOADERS = str(Path(__file__).resolve().parent.parent / "loaders") + os.sep
_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})
_MOST_OF_IT = 0.8
_LEAST_SHARE = 0.01
_SAMPLES_A_UNIT = 128


@dataclass(frozen=True, slots=True)
class Lead:
    """A suspect before anybody looked at its objects.

    ``bytes`` and ``blocks`` are estimates, ``units`` the birth units in order; ``samples`` are some
    of its blocks, every birth unit among them. ``type`` is empty where only objects can tell.
    """

    site: int | None
    bytes: int
    blocks: int
    units: tuple[int, ...]
    samples: tuple[Sample, ...] = ()
    type: str = ""

    @property
    def steadiness(self) -> float:
        """The share of the units from the first to the last that left blocks behind."""
        return len(self.units) / (self.units[-1] - self.units[0] + 1) if self.units else 0.0

    @property
    def weight(self) -> float:
        """What suspects are ranked by: bytes, more so when steady and over many units.

        What every unit leaves behind will grow; the same bytes from a single unit may be all.
        """
        return self.bytes * self.steadiness * math.log2(1 + len(self.units))


def find_leads(
    samples: Iterable[Sample], places: Sequence[Place], *, unit: int, ended: bool, most: int
) -> list[Lead]:
    """The heaviest suspects, at most ``most``, heaviest first, each with 1 % of the old bytes.

    ``unit`` is the current unit (after the run, the last one). While the run goes on, blocks count
    from units ``WELL_BEHIND`` it and earlier; once it has ``ended``, from every unit. What was
    born outside any unit counts as no suspect.
    """
    newest = unit if ended else unit - WELL_BEHIND
    lines = _UserLines(places)
    groups: defaultdict[int, _Group] = defaultdict(_Group)
    for sample in samples:
        if 0 < sample.unit <= newest:
            groups[lines.above(sample.site)].add(sample)
    enough = _LEAST_SHARE * sum(group.bytes for group in groups.values())
    suspect = [group for group in groups.values() if group.bytes >= enough]
    heaviest = sorted(suspect, key=lambda group: -group.figures().weight)[:most]
    return [group.lead(_narrowest(group.by_site, places)) for group in heaviest]


@lru_cache(maxsize=4096)
def _is_users(file: str) -> bool:
    """Whether a file is the user's own code; a built-in loader stands in for it where it runs."""
    if file.startswith(_OUR_LOADERS):
        return True
    library = is_standard_library(file) or _LIBRARIES.search(file) is not None
    return not library and not is_own_file(file, hosted=False)


class _UserLines:
    """For each site, the site of the innermost line of the user's own code on its stack."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._above: dict[int, int] = {}

    def above(self, site: int) -> int:
        found = self._above.get(site)
        if found is None:
            found = self._above[site] = self._search(site)
        return found

    def _search(self, site: int) -> int:
        at = site
        while at:
            place = self._places[at]
            if _is_users(place.file) and place.function.rpartition(".")[2] not in _CONSTRUCTORS:
                return at
            at = place.parent
        return site


@dataclass(slots=True)
class _Group:
    bytes: int = 0
    blocks: float = 0.0
    by_site: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    by_unit: defaultdict[int, list[Sample]] = field(default_factory=lambda: defaultdict(list))

    def add(self, sample: Sample) -> None:
        self.bytes += sample.weight
        self.blocks += sample.weight / sample.size if sample.size else 0.0
        self.by_site[sample.site] += sample.weight
        kept = self.by_unit[sample.unit]
        if len(kept) < _SAMPLES_A_UNIT:
            kept.append(sample)

    def figures(self) -> Lead:
        """The lead without its site and its samples, which may be thousands."""
        units = tuple(sorted(self.by_unit))
        return Lead(site=None, bytes=self.bytes, blocks=round(self.blocks), units=units)

    def lead(self, site: int) -> Lead:
        figures = self.figures()
        samples = tuple(sample for unit in figures.units for sample in self.by_unit[unit])
        return replace(figures, site=site, samples=samples)


def _narrowest(by_site: dict[int, int], places: Sequence[Place]) -> int:
    """The deepest site that most of the bytes have on their stack."""
    enough = _MOST_OF_IT * sum(by_site.values())
    below: defaultdict[int, int] = defaultdict(int)
    depth: dict[int, int] = {}
    for site, size in by_site.items():
        path = []
        at = site
        while at:
            path.append(at)
            at = places[at].parent
        for place, node in enumerate(reversed(path)):
            below[node] += size
            depth[node] = place
    candidates = [node for node, size in below.items() if size >= enough]
    return max(candidates, key=lambda node: depth[node], default=0)
