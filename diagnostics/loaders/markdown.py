"""Markdown through markdown-it-py, one section at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diagnostics.loaders.base import FileDocument, Loader, LoadOptions, Page, Units
from diagnostics.loaders.decoding import open_text
from diagnostics.loaders.files import needs
from diagnostics.loaders.outline import chunks, has_headings, sections

if TYPE_CHECKING:
    from markdown_it.token import Token

HEADING_WITHIN = 1_000_000
"""A file without a heading in its first million characters counts as one without headings."""

_TAG = re.compile(r"<!--.*?-->|<[^>]*>", re.DOTALL)


class MarkdownDocument(FileDocument):
    """A Markdown file whose sections are parsed by themselves, never the whole."""

    def __init__(self, path: Path, options: LoadOptions) -> None:
        super().__init__(path, options)
        with needs("markdown-it-py"):
            from markdown_it import MarkdownIt
        self._parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        self._text = open_text(path, options.encoding)
        self._has_headings = has_headings(self._text.lines(), HEADING_WITHIN)
        if self._has_headings:
            self.unit_kind = "section"
            self.split = "cut at headings"
        else:
            self.unit_kind = "chunk"
            self.split = f"cut every {options.characters_per_unit:,} characters, at line ends"

    def read(self) -> Units:
        lines = self._text.lines()
        size = self.options.characters_per_unit
        for source in sections(lines) if self._has_headings else chunks(lines, size):
            tokens = self._parser.parse(source)
            yield Page(plain_text(tokens), _heading(tokens))


def plain_text(tokens: Sequence[Token]) -> str:
    """The text that a reader sees: a line for each block, cells of a table with tabs between."""
    parts: list[str] = []
    for token in tokens:
        if token.type == "inline":
            parts.append(_inline_text(token))
        elif token.type in ("fence", "code_block"):
            parts.append(token.content)
        elif token.type == "html_block":
            parts.append(_TAG.sub("", token.content))
        elif token.type in ("th_close", "td_close"):
            parts.append("\t")
        elif token.type == "tr_close":
            parts[-1] = "\n"  # instead of the tab after the last cell
        elif token.type in ("paragraph_close", "heading_close"):
            parts.append("\n")
    return "".join(parts)


def _inline_text(token: Token) -> str:
    parts: list[str] = []
    for child in token.children or ():
        if child.type in ("text", "code_inline", "image"):  # an image's content is its alternative
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
    return "".join(parts)


def _heading(tokens: Sequence[Token]) -> dict[str, str | int | float]:
    if not tokens or tokens[0].type != "heading_open":
        return {}
    return {"heading": _inline_text(tokens[1]), "level": int(tokens[0].tag[1:])}


MARKDOWN = Loader(
    name="markdown",
    title="Markdown (markdown-it-py)",
    formats=(".md", ".markdown"),
    note="Holds one section at a time; links to references in another section stay as written.",
    open=MarkdownDocument,
    library="markdown-it-py",
)
