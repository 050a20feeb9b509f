"""Plain text, cut every N characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from diagnostics.loaders.base import FileDocument, Loader, LoadOptions, Page, Units
from diagnostics.loaders.decoding import open_text


class TextDocument(FileDocument):
    """A text file that is read in blocks and never held as a whole."""

    unit_kind = "chunk"

    def __init__(self, path: Path, options: LoadOptions) -> None:
        super().__init__(path, options)
        self._text = open_text(path, options.encoding)
        self.split = f"cut every {options.characters_per_unit:,} characters"

    def read(self) -> Units:
        for chunk in cut(self._text.blocks(), self.options.characters_per_unit):
            yield Page(chunk)


def cut(blocks: Iterable[str], size: int) -> Iterator[str]:
    """The text of ``blocks`` in pieces of ``size`` characters; the last may be shorter."""
    waiting: list[str] = []
    length = 0
    for block in blocks:
        start = 0
        while length + len(block) - start >= size:
            end = start + size - length
            waiting.append(block[start:end])
            yield "".join(waiting)
            waiting, length, start = [], 0, end
        waiting.append(block[start:])
        length += len(block) - start
    if length:
        yield "".join(waiting)


TEXT = Loader(
    name="text",
    title="Plain text",
    formats=(".txt", ".text", ".log"),
    note="Reads blocks of 64 KiB and keeps one unit; the encoding is detected unless it is given.",
    open=TextDocument,
    library="charset-normalizer",
)
