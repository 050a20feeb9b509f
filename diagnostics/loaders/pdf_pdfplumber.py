"""PDF through pdfplumber: the way people write it, and the way that lets each page go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diagnostics.loaders.base import Loader, LoadOptions, Page, Units
from diagnostics.loaders.files import needs, open_errors, password_error
from diagnostics.loaders.pdf import PdfDocument


class PdfplumberDocument(PdfDocument):
    """Pages are read and never closed: the document keeps the layout objects of each."""

    def __init__(self, path: Path, options: LoadOptions) -> None:
        super().__init__(path, options)
        with needs("pdfplumber"):
            import pdfplumber
            from pdfminer.pdfdocument import PDFPasswordIncorrect
            from pdfplumber.utils.exceptions import PdfminerException

        with open_errors(path, "a PDF"):
            try:
                self._pdf: Any = pdfplumber.open(path, password=options.password)
            except PdfminerException as error:
                if error.args and isinstance(error.args[0], PDFPasswordIncorrect):
                    raise password_error(path, options.password) from error
                raise
            try:
                page_count = len(self._pdf.pages)
            except BaseException:
                self._pdf.stream.close()  # close() would walk the very pages that failed
                raise
        self.require_pages(page_count)

    def read(self) -> Units:
        for page in self._pdf.pages:
            yield Page(
                page.extract_text(), {"width": float(page.width), "height": float(page.height)}
            )

    def close(self) -> None:
        self._pdf.close()


class ClosedPagesDocument(PdfplumberDocument):
    """Each page is closed before its text is handed on."""

    def read(self) -> Units:
        for page in self._pdf.pages:
            try:
                read = Page(
                    page.extract_text(), {"width": float(page.width), "height": float(page.height)}
                )
            finally:
                page.close()
            yield read
            del read


PDFPLUMBER = Loader(
    name="pdfplumber",
    title="pdfplumber, as people write it",
    formats=(".pdf",),
    note="Pages are never closed: megabytes stay for every page until the document closes.",
    open=PdfplumberDocument,
    library="pdfplumber",
)

PDFPLUMBER_CLOSED = Loader(
    name="pdfplumber-closed",
    title="pdfplumber, each page closed",
    formats=(".pdf",),
    note="Calls page.close() after each page, which gives back nearly all that the page took.",
    open=ClosedPagesDocument,
    library="pdfplumber",
)
