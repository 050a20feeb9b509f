"""Pages read with pdfplumber and never closed: the document keeps what was found on each."""

import pdfplumber


def load(path):
    with pdfplumber.open(path) as pdf:
        for page in pdf.pages:
            yield page.extract_text()


def load_and_close(path):
    with pdfplumber.open(path) as pdf:
        for page in pdf.pages:
            yield page.extract_text()
            page.close()


def load_and_close_too_early(path):
    with pdfplumber.open(path) as pdf:
        for page in pdf.pages:
            title = page.extract_text().partition("\n")[0]
            page.close()
            yield f"{title}: {len(page.chars)} characters"
