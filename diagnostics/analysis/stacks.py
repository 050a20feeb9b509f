"""The allocation stacks of a recording, and whose code is on them. Standard library only.

A recording holds whole stacks. What every view shows begins where the workbench hands over: at the
loader, or at people's own script; and what it puts between people's own calls, such as ``units``,
is left out. ``shown_sites`` is the one place that cuts them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from diagnostics.analysis.sites import library_of
from diagnostics.recording.model import Frame, Site

OWN_CODE = "own code"
"""What ``library_of`` says of files that are in no library."""

_IMPORTING = "<frozen importlib"
_LAUNCH = re.compile(r"[/\\]diagnostics[/\\]launch[/\\]\w+\.py$")
_HANDING_OVER = re.compile(
    r"[/\\]diagnostics[/\\](?:launch[/\\]\w+|units|loaders[/\\](?:base|callables))\.py$"
)
_MARKING = re.compile(r"[/\\]diagnostics[/\\](?:units|recorder)\.py$")
_PASSING = frozenset(
    {"_marked", "_marked_async", "marked", "marked_coroutine", "recorded", "recorded_coroutine"}
)
"""Functions of ``units``, ``unit`` and ``record`` that only call on."""
_BUILT_IN_LOADER = re.compile(r"[/\\]diagnostics[/\\]loaders[/\\]\w+\.py$")
_NOBODY = frozenset({OWN_CODE, "standard library", "interpreter", "diagnostics"})


def is_own(file: str) -> bool:
    """Whether a file is people's own code; a built-in loader stands in for it where it runs."""
    return library_of(file) == OWN_CODE or _BUILT_IN_LOADER.search(file) is not None


def callers_first(sites: Mapping[int, Site]) -> Iterator[tuple[int, Site, int | None]]:
    """Every site with its row and its caller's site, callers before what they call."""
    for site in sorted(sites):
        row = sites[site]
        # A caller is always written before what it calls; anything else would be a circle.
        known = row.parent is not None and row.parent < site and row.parent in sites
        yield site, row, row.parent if known else None


def shown_sites(sites: Mapping[int, Site]) -> dict[int, Site]:
    """``sites`` without the workbench's own calls: those of a launch, of which what they called
    stands outermost, and those that stand between people's own, as ``units`` does.

    What the workbench itself allocated keeps its whole stack, for nothing else is on it.
    """
    shown: dict[int, Site] = {}
    launching: dict[int | None, bool] = {None: False}
    calling: dict[int | None, int | None] = {None: None}  # by site, whom its callees name as caller
    for site, row, caller in callers_first(sites):
        launching[site] = bool(
            _LAUNCH.search(row.file) or (launching[caller] and _HANDING_OVER.search(row.file))
        )
        outermost = launching[caller] and not launching[site]
        calling[site] = calling[caller] if _only_calls_on(row) else site
        parent = caller if _MARKING.search(row.file) else calling[caller]
        if outermost:
            parent = None
        shown[site] = replace(row, parent=parent) if parent != row.parent else row
    return shown


def _only_calls_on(row: Site) -> bool:
    return row.function.rpartition(".")[2] in _PASSING and bool(_MARKING.search(row.file))


class Stacks:
    """The allocation stacks of a recording as they are shown, by site."""

    def __init__(self, sites: Mapping[int, Site]) -> None:
        self.sites = shown_sites(sites)
        self.files = {row.file for row in self.sites.values()}
        libraries = {file: library_of(file) for file in self.files}
        self._importing: dict[int | None, bool] = {None: False}
        self._own: dict[int | None, int] = {None: 0}
        self._through: dict[int | None, str] = {None: ""}
        for site, row, caller in callers_first(self.sites):
            library = libraries[row.file]
            own = is_own(row.file)
            self._through[site] = self._through[caller] or ("" if library in _NOBODY else library)
            self._own[site] = site if own else self._own[caller]
            self._importing[site] = (
                self._importing[caller]
                or row.file.startswith(_IMPORTING)
                or (row.function == "<module>" and not own)
            )

    @property
    def has_imports(self) -> bool:
        """Whether any stack imports a module."""
        return any(self._importing.values())

    def frames(self, site: int | None) -> tuple[Frame, ...]:
        """The frames of a stack, outermost first; empty for a site that is not there."""
        found: list[Frame] = []
        row = self.sites.get(site) if site is not None else None
        while row is not None:
            found.append(Frame(row.file, row.line, row.function))
            caller = row.parent
            row = self.sites.get(caller) if caller is not None and caller < row.id else None
        return tuple(reversed(found))

    def is_import(self, site: int) -> bool:
        """Whether it was allocated by importing a module: code and classes, not documents."""
        return self._importing.get(site, False)

    def own_line(self, site: int) -> int:
        """The innermost site of people's own code on the stack; 0 where there is none."""
        return self._own.get(site, 0)

    def library(self, site: int) -> str:
        """The outermost installed library on the stack: the one that was called; else empty."""
        return self._through.get(site, "")
