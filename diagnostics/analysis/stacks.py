"""The allocation stacks of a recording, and whose code is on them. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diagnostics.analysis.sites import library_of
from diagnostics.recording.model import Frame, Site

OWN_CODE = "own code"
"""What ``library_of`` says of files that are in no library."""

_IMPORTING = "<frozen importlib"
_NOBODY = frozenset({OWN_CODE, "standard library", "interpreter", "diagnostics"})


class Stacks:
    """The allocation stacks of a recording, by site."""

    def __init__(self, sites: Mapping[int, Site]) -> None:
        self.sites = sites
        self.files = {row.file for row in sites.values()}
        libraries = {file: library_of(file) for file in self.files}
        self._importing: dict[int | None, bool] = {None: False}
        self._own: dict[int | None, int] = {None: 0}
        self._through: dict[int | None, str] = {None: ""}
        for site, row, caller in self.callers_first():
            library = libraries[row.file]
            own = library == OWN_CODE
            self._through[site] = self._through[caller] or ("" if library in _NOBODY else library)
            self._own[site] = site if own else self._own[caller]
            self._importing[site] = (
                self._importing[caller]
                or row.file.startswith(_IMPORTING)
                or (row.function == "<module>" and not own)
            )

    def callers_first(self) -> Iterator[tuple[int, Site, int | None]]:
        """Every site with its row and its caller's site, callers before what they call."""
        for site in sorted(self.sites):
            row = self.sites[site]
            # A caller is always written before what it calls; anything else would be a circle.
            known = row.parent is not None and row.parent < site and row.parent in self.sites
            yield site, row, row.parent if known else None

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
