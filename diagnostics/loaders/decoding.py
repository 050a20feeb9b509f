"""Text files as a stream of decoded blocks: finding the encoding, naming the byte that is wrong."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from diagnostics.errors import DocumentError, UsageError
from diagnostics.loaders.files import needs, read_head

BLOCK_BYTES = 64 * 1024
"""How much is read at a time, and how much of the file the detection looks at."""

LINE_CHARACTERS = BLOCK_BYTES
"""A longer line comes in pieces, so that a file without line ends does not become one string."""

# The longer marks first: the one of UTF-32-LE begins with the one of UTF-16-LE.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file whose encoding is settled. ``found_by`` says how: "given", "detected" ..."""

    path: Path
    encoding: str
    found_by: str
    mark_bytes: int = 0

    def blocks(self) -> Iterator[str]:
        """The decoded text in blocks, from the start, without the byte order mark.

        Line ends stay as they are. Raises DocumentError with the offset of the first byte that
        does not fit the encoding; the text before it has been handed out by then.
        """
        decoder = codecs.getincrementaldecoder(self.encoding)("strict")
        with self.path.open("rb") as stream:
            stream.seek(self.mark_bytes)
            while True:
                block_at = stream.tell()
                block = stream.read(BLOCK_BYTES)
                before = decoder.getstate()
                try:
                    text = decoder.decode(block, final=not block)
                except UnicodeDecodeError as error:
                    begun = len(before[0])  # bytes of a character that the last block cut in two
                    decoder.setstate(before)
                    yield decoder.decode(block[: max(0, error.start - begun)])
                    raise self._wrong_byte(error, block_at - begun + error.start) from error
                if text:
                    yield text
                if not block:
                    return

    def lines(self) -> Iterator[str]:
        """The text in lines with their ends; a very long line comes in pieces."""
        rest = ""
        for block in self.blocks():
            # Only "\n" ends a line: str.splitlines() would also cut at form feeds and the like.
            *whole, rest = (rest + block).split("\n")
            for line in whole:
                yield line + "\n"
            if len(rest) >= LINE_CHARACTERS:
                yield rest
                rest = ""
        if rest:
            yield rest

    def _wrong_byte(self, error: UnicodeDecodeError, offset: int) -> DocumentError:
        wrong = error.object[error.start]
        return DocumentError(
            f"{self.path.name} is not text in {self.encoding} ({self.found_by}): "
            f"byte {offset:,} (0x{wrong:02x}) does not fit.",
            "Pass the encoding that it was written in, for example cp1252, gb18030 or utf-16 "
            "(--encoding on the command line).",
        )


def open_text(path: Path, encoding: str | None, declared: str | None = None) -> TextFile:
    """The text file at ``path`` with its encoding: given, marked, ``declared`` inside, detected.

    Raises UsageError for a given encoding that does not exist, DocumentError where none is found.
    """
    sample = read_head(path, BLOCK_BYTES)
    marked, mark_bytes = _byte_order_mark(sample)
    if encoding is not None:
        name = _known(encoding)
        if name is None:
            raise UsageError(
                f"There is no text encoding {encoding!r}.",
                "Encodings have names like utf-8, cp1252, gb18030, utf-16.",
            )
        # With the general name of a family, the mark decides which member it is.
        if marked is not None and (name == marked or marked.startswith(name + "-")):
            return TextFile(path, marked, "given", mark_bytes)
        return TextFile(path, name, "given")
    if marked is not None:
        return TextFile(path, marked, "by its byte order mark", mark_bytes)
    if declared is not None and (name := _known(declared)) is not None:
        return TextFile(path, name, "declared in the file")
    return TextFile(path, _detect(path, sample), "detected")


def _known(name: str) -> str | None:
    """Python's name of a text encoding; None where there is no such thing."""
    try:
        "".encode(name)  # unlike codecs.lookup(), this refuses hex, base64 and their like
    except (LookupError, ValueError):
        return None
    return codecs.lookup(name).name


def _byte_order_mark(head: bytes) -> tuple[str | None, int]:
    for mark, name in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return name, len(mark)
    return None, 0


def _detect(path: Path, sample: bytes) -> str:
    if len(sample) == BLOCK_BYTES:
        # The sample may end inside a character; a line end or a space is no part of a longer one.
        sample = sample[: max(sample.rfind(b"\n"), sample.rfind(b" ")) + 1] or sample
    if b"\0" not in sample and _is_utf8(sample):
        return "utf-8"  # nothing else looks like it by chance
    with needs("charset-normalizer"):
        from charset_normalizer import from_bytes
    matches = from_bytes(sample)
    best = matches.best()
    if best is None:
        raise DocumentError(
            f"{path.name} is not text in any encoding that can be recognised.",
            "If it is text, pass its encoding (--encoding on the command line); if not, name a "
            "loader that fits it.",
        )
    equals = {m.encoding for m in matches if (m.chaos, m.coherence) == (best.chaos, best.coherence)}
    # Western text often reads as well in several of its neighbours: then the common one is meant.
    return "cp1252" if "cp1252" in equals else codecs.lookup(best.encoding).name


def _is_utf8(sample: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(sample)
    except UnicodeDecodeError:
        return False
    return True
