"""The loads of these tests: what runs, what is wrong with it, and how that is measured."""

from __future__ import annotations

from dataclasses import dataclass

from measures import (
    BAND,
    CHILDREN,
    COLLECTED,
    GROWTH,
    KEPT,
    OPENED,
    PEAK,
    RETENTION,
    TRIMMED,
    Measure,
)

HEALTHY = 0


@dataclass(frozen=True, slots=True)
class Load:
    """A loader, and its known answer.

    ``target`` is a script or ``module:function`` in ``loaders/``, ``document`` what it reads,
    ``words`` what follows it, ``environment`` one of ``requirements-*.txt``, or empty for the
    tests' own. ``kind`` is the row of the diagnosis table. ``culprit`` are words that must stand
    among the first suspects (in their types, stacks or holders), ``told`` words that the verdict
    must say. ``measure`` tells how many bytes a unit costs; None where nothing is wrong.
    """

    name: str
    target: str
    kind: int
    culprit: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    measure: Measure | None = None
    document: str = ""
    words: tuple[str, ...] = ()
    environment: str = ""


EXAMPLES = (
    Load(
        "pdfplumber, pages never closed",
        "pages_kept_open:load",
        kind=1,
        culprit=("pages_kept_open.py", "Page"),
        told=("close()",),
        measure=RETENTION,
        document="text.pdf",
    ),
    Load(
        "pdfplumber, pages closed",
        "pages_kept_open:load_and_close",
        kind=HEALTHY,
        document="text.pdf",
    ),
    Load(
        "BeautifulSoup, a string kept",
        "headings_from_html.py",
        kind=3,
        culprit=("headings", "NavigableString"),
        told=("str(",),
        measure=RETENTION,
        document="minutes.html",
        environment="current",
    ),
    Load(
        "camelot 1.0.9, tables kept",
        "tables_kept.py",
        kind=4,
        culprit=("Table",),
        measure=GROWTH,
        document="tables.pdf",
        environment="tables",
    ),
    Load(
        "pypdfium2 5.9.0, forms never closed",
        "forms_opened.py",
        kind=12,
        culprit=("forms_opened.py", "finalize"),
        told=("close()",),
        measure=GROWTH,
        document="form.pdf",
        environment="tables",
    ),
    Load(
        "pypdfium2 5.9.0, forms closed",
        "forms_opened.py",
        kind=HEALTHY,
        document="form.pdf",
        words=("close",),
        environment="tables",
    ),
    Load(
        "pypdfium2 of today, forms never closed",
        "forms_opened.py",
        kind=HEALTHY,
        document="form.pdf",
    ),
    Load(
        "openpyxl, whole workbook",
        "workbook_loaded:load",
        kind=15,
        culprit=("workbook_loaded.py",),
        told=("read_only",),
        measure=OPENED,
        document="lots.xlsx",
        environment="current",
    ),
    Load(
        "openpyxl, row by row",
        "workbook_loaded:stream",
        kind=HEALTHY,
        document="lots.xlsx",
        environment="current",
    ),
    Load(
        "openpyxl, a range that is only claimed",
        "cells_of_wide_rows.py",
        kind=16,
        culprit=("cells_of_wide_rows.py", "records"),
        told=("reset_dimensions",),
        measure=RETENTION,
        document="wide.xlsx",
        environment="current",
    ),
    Load(
        "openpyxl, the range that there is",
        "cells_of_wide_rows.py",
        kind=HEALTHY,
        document="wide.xlsx",
        words=("full",),
        environment="current",
    ),
    Load(
        "asyncio, finished tasks in a set",
        "tasks_in_a_set.py",
        kind=12,
        culprit=("tasks_in_a_set.py", "running", "Task"),
        measure=RETENTION,
    ),
    Load(
        "lru_cache on a method",
        "cached_method.py",
        kind=13,
        measure=BAND,
    ),
    Load(
        "tokenizers 0.19.1",
        "token_counts.py",
        kind=19,
        told=("tokenizers",),
        measure=GROWTH,
        environment="tokenizers",
    ),
    Load("tokenizers of today", "token_counts.py", kind=HEALTHY, environment="current"),
    Load(
        "python-docx in eight threads",
        "word_documents_in_threads.py",
        kind=8,
        told=("malloc_trim",),
        measure=TRIMMED,
        document="long.docx",
    ),
    Load(
        "healthy: pypdf, reader kept",
        "healthy_readers:pypdf_reader_kept",
        kind=HEALTHY,
        document="text.pdf",
    ),
    Load(
        "healthy: PyMuPDF, page by page",
        "healthy_readers:pymupdf_page_by_page",
        kind=HEALTHY,
        document="text.pdf",
        environment="current",
    ),
    Load(
        "healthy: pdfplumber, several documents",
        "healthy_readers:pdfplumber_documents",
        kind=HEALTHY,
        document="text.pdf",
    ),
)

MADE = (
    Load(
        "a page is closed before its last use",
        "pages_kept_open:load_and_close_too_early",
        kind=2,
        culprit=("pages_kept_open.py", "Page"),
        told=("close()",),
        measure=RETENTION,
        document="text.pdf",
    ),
    Load(
        "PyMuPDF's store of decoded pictures",
        "pictures_rendered:load",
        kind=5,
        told=("store_shrink",),
        measure=GROWTH,
        document="images.pdf",
        environment="current",
    ),
    Load(
        "an extension forgets Py_DECREF",
        "extension_keeps_references.py",
        kind=6,
        culprit=("extension_keeps_references.py",),
        measure=RETENTION,
    ),
    Load(
        "pages in cycles",
        "pages_in_cycles.py",
        kind=7,
        culprit=("pages_in_cycles.py",),
        measure=COLLECTED,
    ),
    Load(
        "pages in cycles, collector off",
        "pages_in_cycles.py",
        kind=7,
        culprit=("pages_in_cycles.py",),
        measure=COLLECTED,
        words=("off",),
    ),
    Load(
        "lines freed below one in use",
        "texts_freed.py",
        kind=8,
        told=("malloc_trim",),
        measure=TRIMMED,
    ),
    Load("lines freed between keys", "lines_between_keys.py", kind=9, measure=KEPT),
    Load("words freed between keys", "words_between_keys.py", kind=10, measure=KEPT),
    Load(
        "errors kept",
        "errors_kept.py",
        kind=11,
        culprit=("errors_kept.py", "failed", "traceback"),
        measure=RETENTION,
    ),
    Load(
        "a logger for each page",
        "loggers_per_page.py",
        kind=12,
        culprit=("loggers_per_page.py", "loggerDict"),
        measure=RETENTION,
    ),
    Load("one heavy page", "one_heavy_page.py", kind=14, told=("page 23",), measure=PEAK),
    Load("a helper process", "helper_process.py", kind=17, measure=CHILDREN),
    Load(
        "a queue without a bound",
        "queue_without_bound.py",
        kind=18,
        culprit=("queue_without_bound.py", "waiting"),
        measure=RETENTION,
    ),
)
