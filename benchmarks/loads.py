"""The work that is measured: documents read the way people read them, and a worst case.

Each function is a generator; every item is one unit. ``size`` scales the work.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

SAMPLES = Path(__file__).resolve().parents[1] / "sample_docs"


def pypdf(size: int) -> Iterator[object]:
    """Text of the report's first pages, several times, with pypdf."""
    from pypdf import PdfReader

    for _ in range(size):
        reader = PdfReader(io.BytesIO((SAMPLES / "annual-report.pdf").read_bytes()))
        for page in reader.pages[:80]:
            yield page.extract_text()


def pdfplumber(size: int) -> Iterator[object]:
    """Text of the report's first pages with pdfplumber, the pages never closed."""
    import pdfplumber as library

    with library.open(SAMPLES / "annual-report.pdf") as pdf:
        for page in pdf.pages[: 16 * size]:
            yield page.extract_text()


def minute_of_leak(size: int) -> Iterator[object]:
    """Pages of the report that are never closed, document after document, for ``size`` minutes."""
    import pdfplumber as library

    end = time.monotonic() + 60 * size
    kept = []
    while True:
        pdf = library.open(SAMPLES / "annual-report.pdf")
        kept.append(pdf)
        for page in pdf.pages:
            if time.monotonic() > end:
                return
            yield page.extract_text()


def python_docx(size: int) -> Iterator[object]:
    """Every paragraph and cell of the report, with python-docx."""
    import docx

    for _ in range(size):
        document = docx.Document(str(SAMPLES / "annual-report.docx"))
        yield [paragraph.text for paragraph in document.paragraphs]
        for table in document.tables:
            yield [cell.text for row in table.rows for cell in row.cells]


def markdown_it(size: int) -> Iterator[object]:
    """The handbook rendered to HTML with markdown-it-py."""
    from markdown_it import MarkdownIt

    text = (SAMPLES / "handbook.md").read_text()
    for _ in range(size * 6):
        yield MarkdownIt().render(text)


def json_parsing(size: int) -> Iterator[object]:
    """Rows of mixed values, parsed and kept ten at a time."""
    text = json.dumps(
        [{"id": n, "name": f"customer {n}", "values": [n / 7, None, True]} for n in range(4000)]
    )
    kept: list[object] = []
    for _ in range(size * 40):
        kept = [*kept[-9:], json.loads(text)]
        yield None


def allocation_only(size: int) -> Iterator[object]:
    """The worst case: nothing but small allocations."""
    for _ in range(size * 30):
        yield [[n] for n in range(100_000)]


class Load(NamedTuple):
    """A load and its two sizes: long enough (some 20 s) to show what stays of an overhead, and
    short enough for what makes it fifty times slower."""

    pages: Callable[[int], Iterator[object]]
    long: int
    short: int


LEAK = "a minute of pages never closed"

LOADS: dict[str, Load] = {
    "pypdf": Load(pypdf, 12, 1),
    "pdfplumber": Load(pdfplumber, 8, 1),
    "python-docx": Load(python_docx, 96, 2),
    "markdown-it-py": Load(markdown_it, 90, 2),
    "JSON parsing": Load(json_parsing, 50, 2),
    "allocation only": Load(allocation_only, 60, 1),
}
ALL_LOADS = {**LOADS, LEAK: Load(minute_of_leak, 1, 1)}
