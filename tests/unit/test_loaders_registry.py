"""Which loader a name or a document leads to, and people's own functions."""

import importlib
import io
import re
import sys
import textwrap
import zipfile

import pytest

from diagnostics.errors import DocumentError, LoaderError
from diagnostics.loaders import (
    LoadOptions,
    all_loaders,
    broken_loaders,
    default_loader,
    find_loader,
)


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "document.txt"
    path.write_text("text")
    return path


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """A current directory with modules of somebody's own."""
    place = tmp_path / "workshop"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)

    def write(name, code):
        (place / f"{name}.py").write_text(textwrap.dedent(code))
        importlib.invalidate_caches()

    yield write
    for name in set(sys.modules) - known:
        del sys.modules[name]


def pages(loader, path, **options):
    with loader.open(path, LoadOptions(**options)) as opened:
        return [page.text for page in opened.pages()]


def test_the_built_in_loaders_have_their_names():
    assert list(all_loaders()) == [
        "pypdf",
        "pdfplumber",
        "pdfplumber-closed",
        "pypdfium2",
        "docx",
        "markdown",
        "html",
        "text",
    ]
    for name, loader in all_loaders().items():
        assert loader.name == name
        assert loader.note.endswith(".")
        assert loader.library


@pytest.mark.parametrize(
    ("name", "loader"),
    [
        ("a.pdf", "pypdf"),
        ("A.PDF", "pypdf"),
        ("a.docx", "docx"),
        ("a.md", "markdown"),
        ("a.htm", "html"),
        ("a.txt", "text"),
    ],
)
def test_the_suffix_tells_the_default(tmp_path, name, loader):
    assert default_loader(tmp_path / name).name == loader


def word_zip():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("word/document.xml", "<w:document/>")
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "loader"),
    [
        (b"%PDF-1.7\n", "pypdf"),
        (b"\0" * 100 + b"%PDF-1.7\n", "pypdf"),
        (word_zip(), "docx"),
        (b"\xef\xbb\xbf \n<!DOCTYPE html><p>", "html"),
        (b"<HTML lang=en>", "html"),
    ],
)
def test_the_content_tells_where_the_suffix_does_not(tmp_path, content, loader):
    path = tmp_path / "upload.bin"
    path.write_bytes(content)
    assert default_loader(path).name == loader


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"PK\x03\x04 and no more", b"\x89PNG"])
def test_an_unknown_format_is_told_with_the_way_out(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match=r"table\.csv is in no format") as raised:
        default_loader(path)
    assert "`text`" in raised.value.next_step


def test_a_document_without_suffix_that_is_not_there_is_told(tmp_path):
    with pytest.raises(DocumentError, match="There is no file"):
        default_loader(tmp_path / "nothing")


def test_near_names_are_suggested(tmp_path):
    with pytest.raises(LoaderError, match="no loader 'pdfplumer'") as raised:
        find_loader("pdfplumer", tmp_path / "a.pdf")
    assert "Did you mean pdfplumber" in raised.value.next_step
    assert "Loaders for .pdf: pypdf, pdfplumber, pdfplumber-closed, pypdfium2." in (
        raised.value.next_step
    )


def test_a_name_like_no_other_gets_the_list(tmp_path):
    with pytest.raises(LoaderError) as raised:
        find_loader("zzz", tmp_path / "a.csv")
    assert "Did you mean" not in raised.value.next_step
    assert "pypdf, pdfplumber" in raised.value.next_step


def test_a_generator_function_is_a_loader(workshop, document):
    workshop(
        "ingest",
        """
        class Item:
            def __init__(self, text): self.text = text
        calls = []
        def load(path):
            calls.append(path)
            yield "one"
            yield Item("two")
            yield Item(3)
            yield {"any": "thing"}
        """,
    )
    loader = find_loader("ingest:load", document)
    assert (loader.name, loader.formats, loader.library) == ("ingest:load", (), None)

    with loader.open(document, LoadOptions()) as opened:
        assert (opened.unit_kind, opened.unit_count) == ("page", None)
        assert opened.split == "items of ingest:load"
        assert opened.marks_own_units is False
        units = opened.pages()
        assert sys.modules["ingest"].calls == []  # nothing before the first unit is asked for
        assert [page.text for page in units] == ["one", "two", "", ""]
    assert sys.modules["ingest"].calls == [str(document)]


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ("return ['a', 'b']", ["a", "b"]),
        ("return (part for part in 'ab')", ["a", "b"]),
        ("return 'the whole text'", ["the whole text"]),
        ("return b'bytes'", [""]),
        ("return 42", [""]),
        ("print(path)", []),
    ],
)
def test_any_result_of_a_function_becomes_items(workshop, document, body, texts):
    workshop("ingest", f"def load(path): {body}")
    loader = find_loader("ingest:load", document)
    assert pages(loader, document) == texts
    with loader.open(document, LoadOptions()) as opened:
        assert opened.marks_own_units is True


def test_the_password_goes_to_whoever_takes_it(workshop, document):
    workshop(
        "ingest",
        """
        def takes(path, *, password=None): return [f"{password}"]
        def takes_any(path, **options): return [repr(options)]
        def takes_none(path): return ["-"]
        def positional(path, password="own", /): return [password]
        class Reader:
            @staticmethod
            def load(path, password): return [password]
        """,
    )
    expected = {
        "takes": "pw",
        "takes_any": "{'password': 'pw'}",
        "takes_none": "-",
        "positional": "own",
        "Reader.load": "pw",
    }
    for name, text in expected.items():
        assert pages(find_loader(f"ingest:{name}", document), document, password="pw") == [text]
    assert pages(find_loader("ingest:takes", document), document) == ["None"]
    assert pages(find_loader("ingest:takes_any", document), document) == ["{}"]


def test_errors_of_the_function_go_on_untouched(workshop, document):
    workshop("ingest", "def load(path):\n    yield 'a'\n    raise KeyError('mine')")
    with (
        find_loader("ingest:load", document).open(document, LoadOptions()) as opened,
        pytest.raises(KeyError, match="mine"),
    ):
        list(opened.pages())


def test_a_missing_document_is_told_before_the_function_is_called(workshop, tmp_path):
    workshop("ingest", "def load(path): raise AssertionError")
    loader = find_loader("ingest:load", tmp_path / "gone.pdf")
    with pytest.raises(DocumentError, match="There is no file"):
        loader.open(tmp_path / "gone.pdf", LoadOptions())


@pytest.mark.parametrize(
    ("name", "message", "next_step", "cause"),
    [
        ("nowhere:load", "nowhere cannot be imported: ModuleNotFoundError", "Try: ", ImportError),
        ("needy:load", "No module named 'not_installed_87'", "Try: ", ImportError),
        ("faulty:load", "SyntaxError", "Try: ", SyntaxError),
        ("angry:load", "ValueError: at import", "Try: ", ValueError),
        ("ingest:laod_pdf", "ingest has no laod_pdf", "Did you mean load_pdf?", None),
        ("ingest:zzz", "ingest has no zzz", "Check the spelling", None),
        ("ingest:LIMIT", "not callable: it is int", "a function", None),
        ("ingest:later", "asynchronous", "asyncio.run", None),
        ("ingest:", "names no function", "module:function", None),
        (":load", "names no function", "module:function", None),
    ],
)
def test_what_cannot_be_imported_is_told(workshop, document, name, message, next_step, cause):
    workshop("needy", "import not_installed_87")
    workshop("faulty", "def load(:")
    workshop("angry", "raise ValueError('at import')")
    workshop("ingest", "LIMIT = 5\ndef load_pdf(path): yield 1\nasync def later(path): yield 1")
    with pytest.raises(LoaderError, match=re.escape(message)) as raised:
        find_loader(name, document)
    assert next_step in raised.value.next_step
    assert cause is None or isinstance(raised.value.__cause__, cause)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package of loaders, installed as far as importlib.metadata can tell."""
    site = tmp_path / "site"
    info = site / "acme_loaders-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-loaders\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        textwrap.dedent(
            """
            [page87.loaders]
            acme = acme_loaders:load
            acme-csv = acme_loaders:CSV
            acme-broken = acme_loaders:missing
            acme-number = acme_loaders:NUMBER
            text = acme_loaders:load
            """
        )
    )
    (site / "acme_loaders.py").write_text(
        textwrap.dedent(
            """
            from diagnostics.loaders import Loader
            from diagnostics.loaders.text import TextDocument
            NUMBER = 87
            CSV = Loader("csv", "CSV", (".csv",), "A note.", TextDocument)
            def load(path):
                yield "acme read " + path
            """
        )
    )
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    yield
    sys.modules.pop("acme_loaders", None)


@pytest.mark.usefixtures("installed")
def test_installed_loaders_join_the_built_in_ones(document, tmp_path):
    loader = find_loader("acme", document)
    assert (loader.name, loader.library) == ("acme", "acme-loaders")
    assert pages(loader, document) == [f"acme read {document}"]

    csv = tmp_path / "table.csv"
    csv.write_text("a,b")
    assert default_loader(csv).name == "acme-csv"
    assert pages(find_loader("acme-csv", csv), csv) == ["a,b"]


@pytest.mark.usefixtures("installed")
def test_broken_installed_loaders_are_reported_and_the_others_work(document, caplog):
    assert set(all_loaders()) >= {"acme", "acme-csv", "pypdf"}
    assert set(broken_loaders()) == {"acme-broken", "acme-number", "text"}
    assert "AttributeError" in broken_loaders()["acme-broken"].message
    assert "not callable" in broken_loaders()["acme-number"].message
    assert len(caplog.records) == 3  # logged once, however often it is asked

    with pytest.raises(LoaderError, match="acme-broken of acme-loaders cannot be used"):
        find_loader("acme-broken", document)
    assert find_loader("text", document).library == "charset-normalizer"  # the built-in one


def test_loaders_that_are_no_longer_installed_are_gone():
    assert set(broken_loaders()) == set()
    assert "acme" not in all_loaders()
