"""A document as HTML: one file, styled a little, nothing from outside."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from sample_docs.quillmere.blocks import (
    Bars,
    Block,
    Cell,
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

_STYLE = """
body { font: 16px/1.5 Georgia, serif; max-width: 46em; margin: 2em auto; padding: 0 1em; }
h1, h2, h3, th { font-family: system-ui, sans-serif; }
table { border-collapse: collapse; margin: 1em 0; }
caption { text-align: left; font-style: italic; }
th, td { border: 1px solid #9aa7b0; padding: 0.15em 0.6em; }
td.number { text-align: right; }
blockquote { border-left: 4px solid #1f5f8b; margin-left: 0; padding-left: 1em; }
"""


def write_html(document: Document, path: Path) -> None:
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f"<title>{escape(document.title)}</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        f"<h1>{escape(document.title)}</h1>",
        f"<p>{escape(document.subtitle)}</p>",
    ]
    for block in document.blocks:
        lines.extend(_lines(block))
    lines += ["</body>", "</html>"]
    path.write_bytes(("\n".join(lines) + "\n").encode())


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Heading(level, text):
            yield f"<h{level + 1}>{escape(text)}</h{level + 1}>"
        case Paragraph(text):
            yield f"<p>{escape(text)}</p>"
        case Note(text):
            yield f"<blockquote><p>{escape(text)}</p></blockquote>"
        case Steps(items):
            yield "<ol>"
            for item in items:
                yield f"<li>{escape(item)}</li>"
            yield "</ol>"
        case Table():
            yield from _table(block)
        case Bars():
            yield f"<p><em>{escape(block.in_words())}</em></p>"
        case NetworkMap() | NewPage():
            pass


def _table(table: Table) -> Iterator[str]:
    yield f"<table><caption>{escape(table.caption)}</caption>"
    yield f"<tr>{''.join(f'<th>{escape(text)}</th>' for text in table.head)}</tr>"
    for row in table.rows:
        yield f"<tr>{''.join(_cell(cell) for cell in row)}</tr>"
    yield "</table>"


def _cell(cell: Cell) -> str:
    kind = "" if isinstance(cell, str) else ' class="number"'
    return f"<td{kind}>{escape(cell_text(cell))}</td>"
