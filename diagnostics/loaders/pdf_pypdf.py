"""PDF through pypdf."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from diagnostics.errors import LoaderError
from diagnostics.loaders.base import Loader, LoadOptions, Page, Units
from diagnostics.loaders.files import needs, open_errors, password_error
from diagnostics.loaders.pdf import PdfDocument


class PypdfDocument(PdfDocument):
    """A ``pypdf.PdfReader`` on the open file, kept over all pages."""

    def __init__(self, path: Path, options: LoadOptions) -> None:
        super().__init__(path, options)
        with needs("pypdf"):
            import pypdf
            from pypdf.errors import DependencyError

        with ExitStack() as on_error:
            # Given a path, pypdf would read the whole file into memory.
            self._stream = on_error.enter_context(path.open("rb"))
            with open_errors(path, "a PDF"):
                try:
                    self._reader = pypdf.PdfReader(self._stream)
                    if self._reader.is_encrypted and not self._reader.decrypt(
                        options.password or ""
                    ):
                        raise password_error(path, options.password)
                except DependencyError as error:  # AES without a cryptography library
                    raise LoaderError(
                        f"{path.name} is encrypted, and pypdf lacks the library for it: {error}.",
                        "Install it: pip install 'pypdf[crypto]'",
                    ) from error
                page_count = len(self._reader.pages)
            on_error.pop_all()
        self.require_pages(page_count)

    def read(self) -> Units:
        for page in self._reader.pages:
            yield Page(
                page.extract_text(),
                {"width": float(page.mediabox.width), "height": float(page.mediabox.height)},
            )

    def close(self) -> None:
        self._reader.close()
        self._stream.close()


PYPDF = Loader(
    name="pypdf",
    title="pypdf",
    formats=(".pdf",),
    note="Pure Python; keeps parsed objects of the pages it has read until the document closes.",
    open=PypdfDocument,
    library="pypdf",
)
