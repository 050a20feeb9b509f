"""A document as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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


def write_markdown(document: Document, path: Path) -> None:
    parts = [f"# {document.title}", document.subtitle]
    for block in document.blocks:
        parts.extend(_parts(block))
    path.write_bytes(("\n\n".join(parts) + "\n").encode())


def _parts(block: Block) -> Iterator[str]:
    match block:
        case Heading(level, text):
            yield f"{'#' * (level + 1)} {text}"
        case Paragraph(text):
            yield text
        case Note(text):
            yield f"> **Note.** {text}"
        case Steps(items):
            yield "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
        case Table():
            yield f"*{block.caption}*"
            yield _pipes(block)
        case Bars():
            yield f"*{block.in_words()}*"
        case NetworkMap() | NewPage():
            pass


def _pipes(table: Table) -> str:
    rule = ["---" if isinstance(cell, str) else "---:" for cell in table.rows[0]]
    rows = [table.head, rule, *([cell_text(cell) for cell in row] for row in table.rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
