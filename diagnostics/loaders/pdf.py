"""What the PDF loaders share: the checks before and after a library opens the file."""

from __future__ import annotations

from pathlib import Path

from diagnostics.errors import DocumentError
from diagnostics.loaders.base import FileDocument, LoadOptions
from diagnostics.loaders.files import PDF_HEADER, PDF_HEADER_WITHIN, read_head


class PdfDocument(FileDocument):
    """A PDF whose units are its pages."""

    unit_kind = "page"
    split = "pages of the PDF"

    def __init__(self, path: Path, options: LoadOptions) -> None:
        super().__init__(path, options)
        if PDF_HEADER not in read_head(path, PDF_HEADER_WITHIN):
            raise DocumentError(
                f"{path.name} is not a PDF: it does not start with %PDF-.",
                "Name a loader that fits what it is (--loader on the command line).",
            )

    def require_pages(self, count: int) -> None:
        """Note how many pages there are; raises DocumentError, and closes, where there are none."""
        self.unit_count = count
        if count == 0:
            self.close()
            raise no_pages(self.path)


def no_pages(path: Path) -> DocumentError:
    """The error for a PDF that opens and holds nothing."""
    return DocumentError(
        f"{path.name} has no pages.",
        "The file is damaged or was cut off; open it in a PDF viewer to make sure.",
    )
