"""A document as DOCX, the same bytes each time."""

from __future__ import annotations

from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import docx

from sample_docs.quillmere.blocks import (
    Bars,
    Block,
    Document,
    Heading,
    NetworkMap,
    NewPage,
    Note,
    Paragraph,
    Steps,
    Table,
    cell_text,
)

_WRITTEN = datetime(2025, 3, 1)
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_docx(document: Document, path: Path) -> None:
    word: Any = docx.Document()
    properties = word.core_properties
    properties.title = document.title
    properties.author = properties.last_modified_by = "Quillmere Water Board (fictional)"
    properties.comments = document.subtitle
    properties.created = properties.modified = _WRITTEN
    word.add_heading(document.title, level=0)
    word.add_paragraph(document.subtitle)
    for block in document.blocks:
        _add(word, block)
    saved = BytesIO()
    word.save(saved)
    _write_without_times(saved, path)


def _add(word: Any, block: Block) -> None:
    match block:
        case Heading(level, text):
            word.add_heading(text, level)
        case Paragraph(text):
            word.add_paragraph(text)
        case Note(text):
            word.add_paragraph(text, style="Intense Quote")
        case Steps(items):
            for item in items:
                word.add_paragraph(item, style="List Number")
        case Table():
            word.add_paragraph(block.caption, style="Caption")
            _add_table(word, block)
        case Bars():
            word.add_paragraph(block.in_words(), style="Caption")
        case NetworkMap() | NewPage():
            pass


def _add_table(word: Any, table: Table) -> None:
    grid = word.add_table(rows=1 + len(table.rows), cols=len(table.head), style="Table Grid")
    texts = [table.head, *([cell_text(cell) for cell in row] for row in table.rows)]
    for row, wanted in zip(grid.rows, texts, strict=True):
        for cell, text in zip(row.cells, wanted, strict=True):
            cell.text = text


def _write_without_times(saved: BytesIO, path: Path) -> None:
    """The same archive with one date for every member: the zip format keeps times."""
    with ZipFile(saved) as source, ZipFile(path, "w") as target:
        for member in source.infolist():
            info = ZipInfo(member.filename, _ZIP_EPOCH)
            info.compress_type = ZIP_DEFLATED
            info.create_system = 0
            target.writestr(info, source.read(member), compresslevel=9)
