"""Documents made on the spot: small good ones, and one for each thing that can be wrong."""

import ctypes
import os
from contextlib import contextmanager

from pypdf import PdfWriter
from pypdf.generic import NameObject
from reportlab.pdfgen import canvas

NOBODY = 65534


def pdf(path, pages=12):
    """A PDF whose page n says "Page n of the report"."""
    drawing = canvas.Canvas(str(path), invariant=1)
    for number in range(1, pages + 1):
        drawing.drawString(72, 720, f"Page {number} of the report")
        drawing.showPage()
    drawing.save()
    return path


def encrypted_pdf(path, password, algorithm="AES-256"):
    writer = PdfWriter(clone_from=str(pdf(path)))
    writer.encrypt(password, owner_password="the owner's", algorithm=algorithm)
    writer.write(str(path))
    return path


def pdf_with_broken_page(path, number):
    """A PDF in which page ``number`` is packed in a way that does not exist."""
    writer = PdfWriter(clone_from=str(pdf(path)))
    contents = writer.pages[number - 1]["/Contents"].get_object()
    contents[NameObject("/Filter")] = NameObject("/NoSuchFilter")
    writer.write(str(path))
    return path


def pdf_without_pages(path):
    PdfWriter().write(str(path))
    return path


def truncated(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    return path


def cut_before(path, mark):
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(mark)])
    return path


@contextmanager
def without_permission(path):
    """Nobody may read ``path`` inside the block, root included.

    Root reads whatever it likes, so there this thread goes to the file system as somebody else.
    """
    path.chmod(0)
    libc = ctypes.CDLL(None)
    as_root = os.geteuid() == 0
    if as_root:
        libc.setfsuid(NOBODY)
    try:
        yield
    finally:
        if as_root:
            libc.setfsuid(0)
        path.chmod(0o600)
