"""Which loaders there are: the built-in ones, installed ones, and a function named on the spot."""

from __future__ import annotations

import difflib
import logging
import re
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType

from diagnostics.errors import DocumentError, LoaderError
from diagnostics.loaders.base import Loader
from diagnostics.loaders.callables import import_loader, wrap
from diagnostics.loaders.files import (
    PDF_HEADER,
    PDF_HEADER_WITHIN,
    describe,
    read_head,
    require_document,
)
from diagnostics.loaders.html import HTML
from diagnostics.loaders.markdown import MARKDOWN
from diagnostics.loaders.pdf_pdfplumber import PDFPLUMBER, PDFPLUMBER_CLOSED
from diagnostics.loaders.pdf_pypdf import PYPDF
from diagnostics.loaders.pdf_pypdfium2 import PYPDFIUM2
from diagnostics.loaders.text import TEXT
from diagnostics.loaders.word import DOCX, ZIP

ENTRY_POINTS = "page87.loaders"
"""An entry point of this group is a Loader, or a function like those that module:function names."""

# The first that reads a format is its default.
_BUILT_IN = (PYPDF, PDFPLUMBER, PDFPLUMBER_CLOSED, PYPDFIUM2, DOCX, MARKDOWN, HTML, TEXT)

_HTML_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html[\s>])", re.IGNORECASE)

_log = logging.getLogger(__name__)


def all_loaders() -> dict[str, Loader]:
    """Every loader by name: the built-in ones first, then those of installed packages.

    An entry point that cannot be used is left out, logged once as a warning, and told by
    ``broken_loaders()``.
    """
    installed, _broken_ones = _installed(tuple(sys.path))
    return {**{loader.name: loader for loader in _BUILT_IN}, **installed}


def broken_loaders() -> dict[str, LoaderError]:
    """The installed loaders that cannot be used, by name, and why."""
    _usable, broken = _installed(tuple(sys.path))
    return dict(broken)


def default_loader(path: Path) -> Loader:
    """The loader for the document at ``path``: by its suffix, else by how the file begins.

    Raises DocumentError where the file cannot be read or nothing tells what it is.
    """
    suffix = path.suffix.lower()
    loaders = all_loaders()
    for loader in loaders.values():
        if suffix in loader.formats:
            return loader
    require_document(path)
    by_content = _by_content(path)
    if by_content is not None:
        return by_content
    known = sorted({suffix for loader in loaders.values() for suffix in loader.formats})
    raise DocumentError(
        f"{path.name} is in no format that is known here ({', '.join(known)}).",
        "Name a loader (--loader on the command line): `text` for plain text, or module:function "
        "for your own.",
    )


def find_loader(name: str, path: Path) -> Loader:
    """The loader called ``name``, or the function that ``module:function`` names.

    ``path`` is the document, whose format decides which names are suggested. Raises LoaderError.
    """
    loaders = all_loaders()
    if name in loaders:
        return loaders[name]
    broken = broken_loaders()
    if name in broken:
        # A new one each time: an exception that is raised again keeps every frame it went through.
        raise LoaderError(broken[name].message, broken[name].next_step)
    if ":" in name:
        return import_loader(name)
    suffix = path.suffix.lower()
    fitting = [known.name for known in loaders.values() if suffix in known.formats]
    near = difflib.get_close_matches(name, loaders, n=3, cutoff=0.5)
    steps = [f"Did you mean {' or '.join(near)}?"] if near else []
    if fitting:
        steps.append(f"Loaders for {suffix}: {', '.join(fitting)}.")
    else:
        steps.append(f"Loaders: {', '.join(loaders)}.")
    steps.append("Your own: module:function.")
    raise LoaderError(f"There is no loader {name!r}.", " ".join(steps))


def _by_content(path: Path) -> Loader | None:
    head = read_head(path, PDF_HEADER_WITHIN)
    if PDF_HEADER in head:
        return PYPDF
    if _HTML_START.match(head):
        return HTML
    if head.startswith(ZIP) and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if "word/document.xml" in archive.namelist():
                return DOCX
    return None


@lru_cache(maxsize=1)
def _installed(
    _search_path: tuple[str, ...],
) -> tuple[Mapping[str, Loader], Mapping[str, LoaderError]]:
    """The installed loaders, and those that are broken. Looked for again when sys.path changes."""
    loaders: dict[str, Loader] = {}
    broken: dict[str, LoaderError] = {}
    taken = {loader.name for loader in _BUILT_IN}
    for entry_point in entry_points(group=ENTRY_POINTS):
        try:
            if entry_point.name in taken:
                raise LoaderError(f"The name {entry_point.name} is taken.", "Rename it.")
            loaders[entry_point.name] = _from_entry_point(entry_point)
        except Exception as error:  # noqa: BLE001 - somebody else's package can raise anything
            broken[entry_point.name] = _broken(entry_point, error)
            _log.warning("%s", broken[entry_point.name])
        taken.add(entry_point.name)
    return MappingProxyType(loaders), MappingProxyType(broken)


def _from_entry_point(entry_point: EntryPoint) -> Loader:
    found = entry_point.load()
    if isinstance(found, Loader):
        return replace(found, name=entry_point.name)
    return wrap(entry_point.name, found, entry_point.dist.name if entry_point.dist else None)


def _broken(entry_point: EntryPoint, error: Exception) -> LoaderError:
    distribution = entry_point.dist.name if entry_point.dist else entry_point.value
    return LoaderError(
        f"The loader {entry_point.name} of {distribution} cannot be used: {describe(error)}.",
        f"Repair or uninstall {distribution}.",
    )
