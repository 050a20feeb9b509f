"""Forms are opened one after the other; each document is closed if ``close`` is the second word."""

import sys

import pypdfium2

from diagnostics import units


def text_of_first_page(path, close):
    document = pypdfium2.PdfDocument(path)
    document.init_forms()
    page = document[0]
    text_page = page.get_textpage()
    text = text_page.get_text_range()
    text_page.close()
    page.close()
    if close:
        document.close()
    return text


for _ in units(range(300), "document"):
    text_of_first_page(sys.argv[1], "close" in sys.argv)
