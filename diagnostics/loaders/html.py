"""HTML through lxml, as a stream of parser events: no tree of the document is ever built."""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from diagnostics.loaders.base import FileDocument, Loader, LoadOptions, Page, Units
from diagnostics.loaders.decoding import TextFile, open_text
from diagnostics.loaders.files import needs, read_head
from diagnostics.loaders.text import cut

HEADING_WITHIN = 1_000_000
"""A file without h1 to h3 in its first million characters counts as one without headings."""

FEED_CHARACTERS = 1024
"""How much the parser gets at a time: little, so that it hardly runs ahead of the unit."""

# The standard lets a page declare its encoding within so many bytes, and reads these names as
# their supersets: https://encoding.spec.whatwg.org/#names-and-labels
_DECLARED_WITHIN = 1024
_DECLARED = re.compile(
    rb"""<(?:meta\s[^>]*?charset|\?xml\s[^>]*?encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE
)
_READ_AS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-8",  # a declaration that can be read as ASCII is not in UTF-16
}

_HEADINGS = frozenset({"h1", "h2", "h3"})
_HEADING_TAG = re.compile(r"<h[1-3][\s>]", re.IGNORECASE)
_UNSEEN = frozenset({"script", "style", "template", "title"})
_CELLS = frozenset({"td", "th"})
# fmt: off
_OWN_LINE = frozenset({
    "address", "article", "aside", "blockquote", "body", "br", "caption", "dd", "details", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
    "h6", "header", "hr", "li", "main", "nav", "ol", "option", "p", "pre", "section", "summary",
    "table", "tbody", "tfoot", "thead", "tr", "ul",
})
# fmt: on
_SPACE = re.compile(r"[ \t\n\r\f]+")


class HtmlDocument(FileDocument):
    """An HTML file that is parsed as far as the next section."""

    def __init__(self, path: Path, options: LoadOptions) -> None:
        super().__init__(path, options)
        with needs("lxml"):
            from lxml import etree
        self._new_parser = etree.HTMLParser
        self._text = open_text(path, options.encoding, declared_encoding(path))
        self._has_headings = _has_headings(self._text)
        if self._has_headings:
            self.unit_kind = "section"
            self.split = "cut at headings h1 to h3"
        else:
            self.unit_kind = "chunk"
            self.split = f"cut every {options.characters_per_unit:,} characters"

    def read(self) -> Units:
        if self._has_headings:
            return self._sections()
        return (Page(chunk) for chunk in cut(self._texts(), self.options.characters_per_unit))

    def _sections(self) -> Units:
        writer = _Writer(cut_at_headings=True)
        for _ in self._feed(writer):
            while writer.sections:
                yield writer.sections.popleft()

    def _texts(self) -> Iterator[str]:
        writer = _Writer(cut_at_headings=False)
        for _ in self._feed(writer):
            yield writer.take()

    def _feed(self, writer: _Writer) -> Iterator[None]:
        """Parse a little at a time, and stop each time to have the results taken."""
        parser = self._new_parser(target=writer, huge_tree=True)
        for block in self._text.blocks():
            for start in range(0, len(block), FEED_CHARACTERS):
                parser.feed(block[start : start + FEED_CHARACTERS])
                yield
        parser.close()
        yield


class _Writer:
    """A parser target: writes what a reader sees, white space as a browser would show it."""

    def __init__(self, cut_at_headings: bool) -> None:
        self.sections: deque[Page] = deque()
        self._cut_at_headings = cut_at_headings
        self._heading: dict[str, str | int | float] = {}
        self._parts: list[str] = []
        self._last = ""  # what was written last, in this section
        self._gap = ""  # what goes between that and what is written next
        self._unseen = 0
        self._verbatim = 0

    def take(self) -> str:
        """The text since the last call."""
        text = "".join(self._parts)
        self._parts.clear()
        return text

    def start(self, tag: str, _attributes: Mapping[str, str]) -> None:
        if tag in _HEADINGS and self._cut_at_headings and not self._unseen:
            self._finish_section()
        if tag in _OWN_LINE:
            self._gap = "\n"
        elif tag in _CELLS and self._gap != "\n":
            self._gap = "\t"
        self._unseen += tag in _UNSEEN
        self._verbatim += tag == "pre"

    def end(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN
        self._verbatim -= tag == "pre"
        if tag in _OWN_LINE:
            self._gap = "\n"
        if tag in _HEADINGS and self._cut_at_headings and not self._heading:
            self._heading = {"heading": "".join(self._parts), "level": int(tag[1])}

    def data(self, text: str) -> None:
        if self._unseen:
            return
        if self._verbatim:
            self._write(text)
            return
        text = _SPACE.sub(" ", text)
        if text.startswith(" "):
            self._gap = self._gap or " "
        if text != " ":
            self._write(text.strip(" "))
            self._gap = " " if text.endswith(" ") else ""

    def close(self) -> None:
        if self._cut_at_headings:
            self._finish_section()
        else:
            self._end_last_line()

    def _write(self, text: str) -> None:
        starts_line = not self._last or self._last.endswith("\n")
        if self._gap and not starts_line:
            self._parts.append(self._gap)
        self._parts.append(text)
        self._last = text
        self._gap = ""

    def _finish_section(self) -> None:
        if self._last:
            self._end_last_line()
            self.sections.append(Page(self.take(), self._heading))
        self._heading, self._last, self._gap = {}, "", ""

    def _end_last_line(self) -> None:
        if self._last and not self._last.endswith("\n"):
            self._parts.append("\n")


def declared_encoding(path: Path) -> str | None:
    """The encoding that the page names in its first bytes, if it names one."""
    declared = _DECLARED.search(read_head(path, _DECLARED_WITHIN))
    if declared is None:
        return None
    try:
        name = codecs.lookup(declared[1].decode("ascii")).name
    except LookupError:
        return None
    return _READ_AS.get(name, name)


def _has_headings(text: TextFile) -> bool:
    seen = 0
    for block in text.blocks():
        if _HEADING_TAG.search(block):
            return True
        seen += len(block)
        if seen >= HEADING_WITHIN:
            break
    return False


HTML = Loader(
    name="html",
    title="HTML (lxml)",
    formats=(".html", ".htm", ".xhtml"),
    note="Parses a stream and keeps the current section only; scripts and styles are left out.",
    open=HtmlDocument,
    library="lxml",
)
