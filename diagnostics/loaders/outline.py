"""Where a Markdown file can be cut: its headings, followed line by line without parsing the rest.

The rules are CommonMark's (https://spec.commonmark.org/0.31.2/, sections 4.1 to 4.8), as far as
they decide whether a line is a heading of the document or only looks like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

Line = Literal["heading", "underline", "paragraph", "other"]
"""A heading with #, the line under a heading, the first line of a paragraph, anything else."""

_HASH_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*$")
_THEMATIC_BREAK = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}\s*$")
_INDENTED_CODE = re.compile(r" {4}| {0,3}\t")
_CONTAINER = re.compile(r" {0,3}(?:>|(?:[-+*]|\d{1,9}[.)])(?:\s|$)|<)")
_FENCE = re.compile(
    r"(?P<before> {0,3}(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*)(?P<fence>`{3,}(?=[^`]*$)|~{3,})"
)
# HTML that ends at its own end mark, blank lines inside or not.
_HTML_BLOCKS = tuple(
    (re.compile(rf" {{0,3}}{start}", re.IGNORECASE), re.compile(end, re.IGNORECASE))
    for start, end in (
        (r"<(?:pre|script|style|textarea)(?:\s|>|$)", r"</(?:pre|script|style|textarea)>"),
        (r"<!--", r"-->"),
        (r"<\?", r"\?>"),
        (r"<!\[CDATA\[", r"\]\]>"),
    )
)


class Outline:
    """Tells of each line of a file, in order, what it means for the headings."""

    def __init__(self) -> None:
        self._closing_fence: re.Pattern[str] | None = None
        self._html_end: re.Pattern[str] | None = None
        self._open: Literal["paragraph", "container"] | None = None
        self._within_line = False

    @property
    def may_cut(self) -> bool:
        """Whether the text can be cut after the last line without changing what follows."""
        return self._closing_fence is None and self._html_end is None

    def see(self, line: str) -> Line:
        """What ``line`` is; a long line may come in pieces, of which only the first counts."""
        within, self._within_line = self._within_line, not line.endswith("\n")
        if within:
            return "other"
        if self._closing_fence is not None:
            if self._closing_fence.match(line):
                self._closing_fence = None
            return "other"
        if self._html_end is not None:
            if self._html_end.search(line):
                self._html_end = None
            return "other"
        return self._see_block(line)

    def _see_block(self, line: str) -> Line:
        before, self._open = self._open, None
        if not line.strip() or self._opens_verbatim(line):
            return "other"
        if _HASH_HEADING.match(line):
            return "heading"
        if before == "paragraph" and _UNDERLINE.match(line):
            return "underline"
        if _THEMATIC_BREAK.match(line):
            return "other"
        if _CONTAINER.match(line):
            self._open = "container"
            return "other"
        if before is not None:  # the paragraph goes on, also one inside a list or a quotation
            self._open = before
            return "other"
        if _INDENTED_CODE.match(line):
            return "other"
        self._open = "paragraph"
        return "paragraph"

    def _opens_verbatim(self, line: str) -> bool:
        fence = _FENCE.match(line)
        if fence is not None:
            mark = fence["fence"]
            indent = len(fence["before"]) + 3
            self._closing_fence = re.compile(rf" {{0,{indent}}}{mark[0]}{{{len(mark)},}}\s*$")
            return True
        for start, end in _HTML_BLOCKS:
            begun = start.match(line)
            if begun is not None:
                if not end.search(line, begun.end()):
                    self._html_end = end
                return True
        return False


def has_headings(lines: Iterable[str], within: int) -> bool:
    """Whether a heading stands in the first ``within`` characters."""
    outline = Outline()
    characters = 0
    for line in lines:
        if outline.see(line) in ("heading", "underline"):
            return True
        characters += len(line)
        if characters >= within:
            break
    return False


def sections(lines: Iterable[str]) -> Iterator[str]:
    """The text cut before each heading; what stands before the first is a section of its own."""
    outline = Outline()
    section: list[str] = []
    paragraph_at = 0
    for line in lines:
        seen = outline.see(line)
        if seen == "paragraph":
            paragraph_at = len(section)
        if seen in ("heading", "underline"):
            # An underline makes a heading of the whole paragraph above it.
            at = len(section) if seen == "heading" else paragraph_at
            before, section = section[:at], section[at:]
            if any(not text.isspace() for text in before):
                yield "".join(before)
            else:
                section = before + section
        section.append(line)
    if section:
        yield "".join(section)


def chunks(lines: Iterable[str], size: int) -> Iterator[str]:
    """The text cut at the first line end after every ``size`` characters, never inside a fence."""
    outline = Outline()
    chunk: list[str] = []
    characters = 0
    for line in lines:
        outline.see(line)
        chunk.append(line)
        characters += len(line)
        if characters >= size and outline.may_cut:
            yield "".join(chunk)
            chunk, characters = [], 0
    if chunk:
        yield "".join(chunk)
