"""The loaders on real files: PDF libraries, sample documents, and everything that is wrong."""

import gc
import os
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import bad_documents
import pytest
from markdown_it import MarkdownIt
from reportlab.pdfgen import canvas

from diagnostics.errors import DocumentError, LoaderError, PasswordError
from diagnostics.loaders import LoadOptions, all_loaders, default_loader, find_loader
from diagnostics.loaders.markdown import plain_text

SAMPLES = Path(__file__).parents[2] / "sample_docs"
PDF_LOADERS = [name for name, loader in all_loaders().items() if ".pdf" in loader.formats]
PASSWORD = "correct horse"


def load(name, path, **options):
    with find_loader(name, path).open(path, LoadOptions(**options)) as document:
        return list(document.pages())


@pytest.fixture
def pdf(tmp_path):
    return bad_documents.pdf(tmp_path / "report.pdf")


@pytest.mark.parametrize("name", PDF_LOADERS)
def test_a_pdf_comes_page_by_page(name, pdf):
    with find_loader(name, pdf).open(pdf, LoadOptions()) as document:
        assert (document.unit_kind, document.unit_count) == ("page", 12)
        assert document.split == "pages of the PDF"
        pages = list(document.pages())

    assert [page.text.strip() for page in pages] == [
        f"Page {number} of the report" for number in range(1, 13)
    ]
    # A4 in points
    assert pages[0].metadata["width"] == pytest.approx(595.28, abs=0.01)
    assert pages[0].metadata["height"] == pytest.approx(841.89, abs=0.01)


@pytest.mark.parametrize("name", PDF_LOADERS)
@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_an_encrypted_pdf_needs_its_password(name, algorithm, tmp_path):
    path = bad_documents.encrypted_pdf(tmp_path / "secret.pdf", PASSWORD, algorithm)

    with pytest.raises(PasswordError, match=r"secret\.pdf is encrypted") as raised:
        load(name, path)
    assert "--password" in raised.value.next_step
    with pytest.raises(PasswordError, match=r"does not open secret\.pdf") as raised:
        load(name, path, password="battery staple")
    assert "battery" not in str(raised.value)
    pages = load(name, path, password=PASSWORD)
    assert len(pages) == 12
    assert pages[6].text.strip() == "Page 7 of the report"


@pytest.mark.parametrize("name", PDF_LOADERS)
def test_a_pdf_without_pages_is_told(name, tmp_path):
    # given that PDFium remembers the error of another file
    other = bad_documents.encrypted_pdf(tmp_path / "secret.pdf", PASSWORD)
    with pytest.raises(PasswordError):
        load(name, other)

    path = bad_documents.pdf_without_pages(tmp_path / "none.pdf")
    with pytest.raises(DocumentError, match=r"none\.pdf has no pages"):
        load(name, path)


@pytest.mark.parametrize("name", PDF_LOADERS)
def test_what_is_no_pdf_is_told(name, tmp_path):
    path = tmp_path / "letter.pdf"
    path.write_text("Dear all,\n" * 1000)
    with pytest.raises(DocumentError, match=r"letter\.pdf is not a PDF"):
        load(name, path)


@pytest.mark.parametrize("name", PDF_LOADERS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_pdf_is_told(name, share, pdf):
    with pytest.raises(DocumentError, match=r"report\.pdf") as raised:
        load(name, bad_documents.truncated(pdf, share))
    assert raised.value.__cause__ is not None
    assert raised.value.next_step


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        *((name, b"%EOF") for name in PDF_LOADERS),
        ("pdfplumber", b"startxref"),
        ("pypdfium2", b"startxref"),
    ],
)
def test_a_library_that_recovers_from_truncation_may_read(name, lost, pdf):
    assert len(load(name, bad_documents.cut_before(pdf, lost))) == 12


@pytest.mark.parametrize("name", ["pypdf", "pdfplumber", "pdfplumber-closed"])
def test_a_page_that_cannot_be_read_is_named(name, tmp_path):
    # PDFium is not here: it gives an empty text for such a page, and no error
    path = bad_documents.pdf_with_broken_page(tmp_path / "damaged.pdf", 5)
    read = []

    with (
        find_loader(name, path).open(path, LoadOptions()) as document,
        pytest.raises(DocumentError, match=r"^Page 5 of damaged\.pdf .*NoSuchFilter") as raised,
    ):
        read.extend(document.pages())

    assert len(read) == 4
    assert raised.value.__cause__ is not None
    assert "before page 5" in raised.value.next_step


@pytest.mark.parametrize("name", PDF_LOADERS)
def test_a_document_can_be_left_in_the_middle(name, pdf):
    with find_loader(name, pdf).open(pdf, LoadOptions()) as document:
        pages = document.pages()
        next(pages)
    if sys.platform == "linux":
        handles = [link for link in Path("/proc/self/fd").iterdir() if link.exists()]
        assert str(pdf) not in {str(link.readlink()) for link in handles}


@pytest.mark.parametrize("name", all_loaders())
def test_what_no_loader_can_open_is_told(name, tmp_path):
    suffix = all_loaders()[name].formats[0]
    empty = tmp_path / f"empty{suffix}"
    empty.touch()
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()

    with pytest.raises(DocumentError, match=r"There is no file .*missing") as raised:
        load(name, tmp_path / f"missing{suffix}")
    assert str(Path.cwd()) in raised.value.next_step
    with pytest.raises(DocumentError, match=r"is empty: 0 bytes"):
        load(name, empty)
    with pytest.raises(DocumentError, match=r"is a directory"):
        load(name, folder)
    with pytest.raises(DocumentError, match=r"cannot be opened"):
        load(name, tmp_path / f"zero\0byte{suffix}")


def test_a_pipe_is_no_document(tmp_path):
    path = tmp_path / "pipe.txt"
    os.mkfifo(path)
    with pytest.raises(DocumentError, match="a device or a pipe"):
        load("text", path)


@pytest.mark.parametrize("name", all_loaders())
@pytest.mark.skipif(sys.platform != "linux", reason="root gives up its rights in Linux's own way")
def test_no_permission_is_told(name, tmp_path):
    path = tmp_path / f"private{all_loaders()[name].formats[0]}"
    path.write_text("secret")
    with (
        bad_documents.without_permission(path),
        pytest.raises(DocumentError, match="No permission to read") as raised,
    ):
        load(name, path)
    assert "rights" in raised.value.next_step


@pytest.mark.parametrize(
    ("name", "module", "distribution"),
    [
        ("pypdf", "pypdf", "pypdf"),
        ("pdfplumber", "pdfplumber", "pdfplumber"),
        ("pdfplumber-closed", "pdfplumber", "pdfplumber"),
        ("pypdfium2", "pypdfium2", "pypdfium2"),
        ("docx", "docx", "python-docx"),
        ("markdown", "markdown_it", "markdown-it-py"),
        ("html", "lxml", "lxml"),
    ],
)
def test_a_missing_library_is_told_with_the_command(
    name, module, distribution, tmp_path, monkeypatch
):
    path = bad_documents.pdf(tmp_path / "any.pdf", 1)
    for loaded in [key for key in sys.modules if key.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)  # how Python itself marks: not importable
    with pytest.raises(LoaderError, match=f"needs {distribution}") as raised:
        load(name, path)
    assert raised.value.next_step == f"Install it: pip install {distribution}"


def test_importing_the_loaders_imports_no_document_library():
    code = """
        import sys
        import diagnostics.loaders
        diagnostics.loaders.all_loaders()
        libraries = {"pypdf", "pdfplumber", "pdfminer", "pypdfium2", "docx", "markdown_it", "lxml",
                     "charset_normalizer"}
        print(sorted(libraries & set(sys.modules)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def kept_per_page(name, path):
    """Bytes of the Python heap that stay for each page while the document is open."""
    with find_loader(name, path).open(path, LoadOptions()) as document:
        pages = document.pages()
        for _ in range(4):
            next(pages)
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(8):
                next(pages)
            gc.collect()
            return tracemalloc.get_traced_memory()[0] / 8
        finally:
            tracemalloc.stop()


def test_pdfplumber_keeps_pages_until_they_are_closed(tmp_path):
    # given pages with some text on them
    path = tmp_path / "dense.pdf"
    drawing = canvas.Canvas(str(path), invariant=1)
    for _ in range(12):
        for line in range(20):
            drawing.drawString(72, 780 - 12 * line, "thirty characters in this line")
        drawing.showPage()
    drawing.save()

    # 600 characters, each an object of pdfminer of well over 1 kB
    assert kept_per_page("pdfplumber", path) > 600 * 1000
    assert kept_per_page("pdfplumber-closed", path) < 60_000


def test_the_pdf_libraries_agree_on_the_sample():
    path = SAMPLES / "annual-report.pdf"
    counts, words = set(), {}
    for name in ("pypdf", "pdfplumber-closed", "pypdfium2"):
        with find_loader(name, path).open(path, LoadOptions()) as document:
            counts.add(document.unit_count)
            pages = document.pages()
            words[name] = [set(next(pages).text.split()) for _ in range(4)]
    assert len(counts) == 1
    assert counts.pop() >= 120
    for number in range(4):
        common = set.intersection(*(found[number] for found in words.values()))
        everything = set.union(*(found[number] for found in words.values()))
        assert len(common) > 0.7 * len(everything)


@pytest.mark.parametrize(
    ("document", "loader", "kind"),
    [
        ("annual-report.pdf", "pypdf", "page"),
        ("annual-report.docx", "docx", "section"),
        ("handbook.md", "markdown", "section"),
        ("minutes.html", "html", "section"),
        ("bilingual.txt", "text", "chunk"),
    ],
)
def test_the_sample_documents_load(document, loader, kind):
    path = SAMPLES / document
    found = default_loader(path)
    assert found.name == loader

    with found.open(path, LoadOptions()) as opened:
        assert opened.unit_kind == kind
        count = opened.unit_count
        pages = list(opened.pages())

    assert len(pages) > 5
    assert count is None or count == len(pages)
    assert sum(len(page.text) for page in pages) > 1000
    assert sum(not page.text.strip() for page in pages) == 0


def test_the_bilingual_sample_comes_whole():
    path = SAMPLES / "bilingual.txt"
    text = "".join(page.text for page in load("text", path, characters_per_unit=999))
    assert text == path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    assert any("一" <= character <= "鿿" for character in text)


def test_the_markdown_sample_comes_whole():
    path = SAMPLES / "handbook.md"
    whole = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(path.read_text())
    assert "".join(page.text for page in load("markdown", path)) == plain_text(whole)
