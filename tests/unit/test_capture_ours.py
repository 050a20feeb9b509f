"""What of a process is the workbench's own, and how a chain begins where it ran the loader."""

from pathlib import Path

import pytest
from looking import Leaf, the_leaf, words
from reportlab.pdfgen.canvas import Canvas

import diagnostics
from diagnostics import units
from diagnostics.holders import ours
from diagnostics.holders.roots import Roots
from diagnostics.loaders.base import FileDocument, LoadOptions, Page
from diagnostics.loaders.callables import CallableDocument
from diagnostics.loaders.pdf_pdfplumber import PdfplumberDocument

FOLDER = Path(diagnostics.__file__).parent
MODULES = sorted(path.relative_to(FOLDER) for path in FOLDER.rglob("*.py"))
HERE = "test_capture_ours.py"


def dotted(path):
    return ".".join(["diagnostics", *path.with_suffix("").parts]).removesuffix(".__init__")


@pytest.mark.parametrize("path", [path for path in MODULES if path.parts[0] != "loaders"], ids=str)
def test_all_of_the_package_observes(path):
    assert ours.is_our_file(str(FOLDER / path))
    assert ours.is_our_name(dotted(path))
    assert ours.is_launcher_file(str(FOLDER / path)) == (path.parts[0] == "launch")


def test_a_loader_stands_in_for_the_users_code():
    loaders = {path.name for path in MODULES if path.parts[0] == "loaders"}
    between = {name for name in loaders if ours.is_our_file(str(FOLDER / "loaders" / name))}
    assert between == {"base.py", "callables.py"}
    assert not ours.is_our_name("diagnostics.loaders.pdf_pdfplumber.PdfplumberDocument")


def test_what_only_looks_like_ours():
    assert not ours.is_our_name("diagnosticsx.holders")
    assert not ours.is_our_name("app.diagnostics.holders")
    assert not ours.is_our_file(f"{FOLDER}x/holders/taking.py")


@pytest.fixture
def pdf(tmp_path):
    path = tmp_path / "report.pdf"
    canvas = Canvas(str(path))
    for number in (1, 2, 3):
        canvas.drawString(72, 720, f"Page {number}")
        canvas.showPage()
    canvas.save()
    return path


def test_a_document_that_the_users_own_code_has_opened(pdf):
    with PdfplumberDocument(pdf, LoadOptions()) as document:
        pages = document.pages()
        next(pages), next(pages)
        (text,) = words(lambda: document._pdf.pages[0]._layout)
        pages.close()
    assert text.startswith(
        "`document` (local of test_a_document_that_the_users_own_code_has_opened"
    )
    assert text.endswith(
        " -> `PdfplumberDocument._pdf` PDF -> `PDF._pages` list -> `Page[0]`"
        " -> `Page._layout` LTPage"
    )


def counted(_path):
    class Pages:
        def __init__(self):
            self.kept = []

        def __iter__(self):
            return self

        def __next__(self):
            self.kept.append(Leaf())
            return "a page"

    return Pages()


def test_an_iterator_that_only_the_run_has(pdf):
    pages = CallableDocument("counted", counted, pdf, LoadOptions()).pages()
    next(pages)
    assert words(the_leaf) == ["`iterator` (local of page87 run) -> `Pages.kept` list -> `Leaf[0]`"]


class Listed(FileDocument):
    """Somebody's own loader, on the base of the built-in ones."""

    unit_kind, split = "page", "lines"

    def read(self):
        kept = []
        for _ in range(2):
            kept.append(Leaf())
            yield Page("")


def test_a_local_of_a_loader_that_waits_between_two_pages(pdf):
    pages = units(Listed(pdf, LoadOptions()).pages())
    next(pages)
    line = Listed.read.__code__.co_firstlineno + 4
    assert words(the_leaf) == [f"`kept` (local of Listed.read, {HERE}:{line}) -> `Leaf[0]`"]
    pages.close()


def test_a_list_that_only_the_loop_over_its_units_has():
    waiting = units([Leaf()])
    next(waiting)
    assert words(the_leaf) == ["`iterator` (local of units()) -> `list` -> `Leaf[0]`"]
    waiting.close()


def test_what_observes_is_no_holder():
    roots = Roots(lambda _thread: False)
    pages = units([1, 2])
    next(pages)
    assert roots.is_observer(pages)
    assert roots.is_observer(roots)
    assert roots.is_observer(ours)
    assert not roots.is_observer(number for number in (1, 2))
    pages.close()
