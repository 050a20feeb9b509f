"""DOCX through python-docx, cut at headings."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from diagnostics.errors import DocumentError
from diagnostics.loaders.base import FileDocument, Loader, LoadOptions, Page, Units
from diagnostics.loaders.files import needs, open_errors, read_head

if TYPE_CHECKING:
    from docx.document import Document
    from docx.table import Table
    from docx.text.paragraph import Paragraph

ZIP = b"PK\x03\x04"
# The container of Word 97 to 2003, and of every encrypted Office document.
_COMPOUND_FILE = bytes.fromhex("d0cf11e0a1b11ae1")
# Word's own names of its built-in styles; they are the same in every language.
_HEADING_STYLE = re.compile(r"Title$|Heading ([1-9])$")


class WordDocument(FileDocument):
    """A DOCX: python-docx parses the whole file when it opens; its text is taken unit by unit."""

    def __init__(self, path: Path, options: LoadOptions) -> None:
        super().__init__(path, options)
        with needs("python-docx"):
            import docx
        _require_zip(path)
        with open_errors(path, "a DOCX"):
            self._document = docx.Document(str(path))
            self._levels = _heading_levels(self._document)
            sections = self._count_sections()
        self._has_headings = sections is not None
        if self._has_headings:
            self.unit_kind = "section"
            self.unit_count = sections
            self.split = "cut at headings"
        else:
            self.unit_kind = "chunk"
            self.split = f"cut every {options.characters_per_unit:,} characters, at paragraph ends"

    def read(self) -> Units:
        section = _Section()
        for block in self._document.iter_inner_content():
            level = self._level(block)
            if section.has_text and (level or self._is_full(section)):
                yield section.page()
                section = _Section()
            section.add(block)
            if level:
                section.heading = {"heading": section.parts[-1].rstrip("\n"), "level": level}
        if section.parts:
            yield section.page()

    def close(self) -> None:
        del self._document

    def _count_sections(self) -> int | None:
        """How many sections the headings make; None without headings."""
        headings = 0
        preface = False
        for block in self._document.iter_inner_content():
            if self._level(block):
                headings += 1
            elif not headings and not preface:
                preface = not _text(block).isspace()
        return headings + preface if headings else None

    def _level(self, block: Paragraph | Table) -> int | None:
        """The level of a heading that says something; None for everything else."""
        # Not block.style.name: python-docx searches all styles each time, 0.8 ms a paragraph.
        from docx.text.paragraph import Paragraph

        if not isinstance(block, Paragraph):
            return None
        level = self._levels.get(block._p.style or "")
        return level if level and block.text.strip() else None

    def _is_full(self, section: _Section) -> bool:
        return not self._has_headings and section.characters >= self.options.characters_per_unit


class _Section:
    """The text of a section as it grows."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.characters = 0
        self.has_text = False
        self.heading: dict[str, str | int | float] = {}

    def add(self, block: Paragraph | Table) -> None:
        text = _text(block)
        self.parts.append(text)
        self.characters += len(text)
        self.has_text = self.has_text or not text.isspace()

    def page(self) -> Page:
        return Page("".join(self.parts), self.heading)


def _text(block: Paragraph | Table) -> str:
    """A paragraph as a line; a table as a line for each row, with tabs between the cells."""
    from docx.text.paragraph import Paragraph

    if isinstance(block, Paragraph):
        return block.text + "\n"
    rows = []
    for row in block.rows:
        # A merged cell comes once for each column that it spans, as the same object.
        cells = [next(same) for _, same in groupby(row.cells, key=id)]
        rows.append("\t".join(cell.text for cell in cells) + "\n")
    return "".join(rows)


def _heading_levels(document: Document) -> dict[str, int]:
    """The styles that make headings, by their id; a title counts as level 1."""
    levels = {}
    for style in document.styles:
        heading = _HEADING_STYLE.match(style.name or "")
        if heading is not None:
            levels[style.style_id] = int(heading[1] or 1)
    return levels


def _require_zip(path: Path) -> None:
    head = read_head(path, len(_COMPOUND_FILE))
    if head == _COMPOUND_FILE:
        raise DocumentError(
            f"{path.name} is encrypted, or in Word's format from before 2007.",
            "Save it from Word as .docx without a password.",
        )
    if not head.startswith(ZIP):
        raise DocumentError(
            f"{path.name} is not a DOCX: it is not a zip archive.",
            "Name a loader that fits what it is (--loader on the command line).",
        )


DOCX = Loader(
    name="docx",
    title="DOCX (python-docx)",
    formats=(".docx",),
    note="python-docx parses the whole file at once and keeps it until the document closes.",
    open=WordDocument,
    library="python-docx",
)
