"""Loaders as they should be: nothing here is a leak."""


def pypdf_reader_kept(path):
    import pypdf

    reader = pypdf.PdfReader(path)
    for page in reader.pages:
        yield page.extract_text()


def pymupdf_page_by_page(path):
    import pymupdf

    with pymupdf.open(path) as document:
        for page in document:
            yield page.get_text()


def pdfplumber_documents(path):
    import pdfplumber

    for _ in range(4):
        for page in pdfplumber.open(path).pages:
            yield page.extract_text()
