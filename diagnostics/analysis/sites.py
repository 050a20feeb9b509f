"""Names for places in code: how sites are called, and how they are put into groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from diagnostics.recording.model import Site

Grouping = Literal["line", "function", "file", "library"]

_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\](?P<rest>.+)$")
_STANDARD = re.compile(r"[/\\]lib(?:64)?[/\\]python3[^/\\]*[/\\](?P<rest>.+)$", re.IGNORECASE)
_SEPARATOR = re.compile(r"[/\\]")


@dataclass(frozen=True, slots=True)
class Place:
    """One row of a code-site view: a line, a function, a file or a library.

    ``key`` stays the same in every recording of the same code; ``label`` is short, ``detail`` says
    all. ``file`` and ``line`` are empty and None where the group is wider than that.
    """

    key: str
    label: str
    detail: str
    file: str = ""
    line: int | None = None
    function: str = ""


OTHER = Place("other", "other", "Everything that has no row of its own.")


@lru_cache(maxsize=4096)
def short_path(file: str) -> str:
    """The part of a path that a reader recognises: "pdfplumber/page.py", "json/decoder.py"."""
    inside = _INSTALLED.search(file) or _STANDARD.search(file)
    parts = _SEPARATOR.split(inside["rest"] if inside else file)
    return "/".join(parts if inside and len(parts) <= 3 else parts[-2:]).lstrip("/")


@lru_cache(maxsize=4096)
def library_of(file: str) -> str:
    """Whose code a file is: a package's folder, "standard library", "interpreter" or "own code"."""
    if file.startswith("<"):
        return "interpreter"
    installed = _INSTALLED.search(file)
    if installed:
        return _SEPARATOR.split(installed["rest"])[0].removesuffix(".py")
    return "standard library" if _STANDARD.search(file) else "own code"


def site_label(file: str, line: int, function: str = "") -> str:
    """ "pdfplumber/page.py:412 in objects"."""
    where = f"{short_path(file)}:{line}"
    return f"{where} in {function}" if function else where


def _line(site: Site) -> Place:
    detail = f"{site.file}:{site.line}" + (f" in {site.function}" if site.function else "")
    label = site_label(site.file, site.line, site.function)
    return Place(f"{site.file}:{site.line}", label, detail, site.file, site.line, site.function)


def _function(site: Site) -> Place:
    if not site.function:  # the engine kept none: the file is the narrowest true group
        return _file(site)
    label = f"{site.function} in {short_path(site.file)}"
    detail = f"{site.function} in {site.file}"
    return Place(f"{site.file}:{site.function}", label, detail, site.file, None, site.function)


def _file(site: Site) -> Place:
    return Place(site.file, short_path(site.file), site.file, site.file)


def _library(site: Site) -> Place:
    library = library_of(site.file)
    return Place(library, library, f"All code of {library}")


GROUPINGS: Mapping[Grouping, Callable[[Site], Place]] = {
    "line": _line,
    "function": _function,
    "file": _file,
    "library": _library,
}
"""How a site finds its row, by the name that a person chooses."""
