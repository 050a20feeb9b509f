"""Pages are drawn with PyMuPDF and let go; its store keeps the decoded pictures up to a limit."""

import pymupdf


def load(path):
    with pymupdf.open(path) as document:
        for page in document:
            yield f"{page.get_pixmap(dpi=110).size} bytes"
