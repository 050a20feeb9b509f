"""PDF through pypdfium2, the binding of PDFium."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from diagnostics.loaders.base import Loader, LoadOptions, Page, Units
from diagnostics.loaders.files import needs, open_errors, password_error
from diagnostics.loaders.pdf import PdfDocument, no_pages


class PdfiumDocument(PdfDocument):
    """Each page's handles are closed before its text is handed on."""

    def __init__(self, path: Path, options: LoadOptions) -> None:
        super().__init__(path, options)
        with needs("pypdfium2"):
            import pypdfium2
            from pypdfium2 import raw

        with open_errors(path, "a PDF"):
            try:
                self._pdf: Any = pypdfium2.PdfDocument(path, password=options.password)
            except pypdfium2.PdfiumError as error:
                if _opens(path, options.password):
                    raise no_pages(path) from error
                if error.err_code == raw.FPDF_ERR_PASSWORD:
                    raise password_error(path, options.password) from error
                raise
        self.require_pages(len(self._pdf))

    def read(self) -> Units:
        for number in range(len(self._pdf)):
            page = self._pdf[number]
            try:
                width, height = page.get_size()
                text_page = page.get_textpage()
                try:
                    text = text_page.get_text_bounded()
                finally:
                    text_page.close()
            finally:
                page.close()
            yield Page(text, {"width": width, "height": height})

    def close(self) -> None:
        self._pdf.close()


def _opens(path: Path, password: str | None) -> bool:
    """Whether PDFium itself opens the file.

    The binding raises the same error for a file that fails and for one without pages, and its
    error code is the one of an earlier file where this one opened.
    """
    from pypdfium2 import raw

    secret = None if password is None else password.encode() + b"\0"
    document = raw.FPDF_LoadDocument(os.fsencode(path) + b"\0", secret)
    if not document:
        return False
    raw.FPDF_CloseDocument(document)
    return True


PYPDFIUM2 = Loader(
    name="pypdfium2",
    title="PDFium (pypdfium2)",
    formats=(".pdf",),
    note="Works in C, outside the Python heap; handles are closed page by page.",
    open=PdfiumDocument,
    library="pypdfium2",
)
