"""DOCX: the body in its order, tables included, cut at headings."""

import io
import zipfile

import docx
import pytest

from diagnostics.errors import DocumentError
from diagnostics.loaders.base import LoadOptions
from diagnostics.loaders.word import DOCX


def save(document, tmp_path):
    path = tmp_path / "report.docx"
    document.save(str(path))
    return path


@pytest.fixture
def report(tmp_path):
    document = docx.Document()
    document.add_paragraph("")  # a blank line before all is no section
    document.add_heading("The report", level=0)
    document.add_paragraph("First words.")
    table = document.add_table(2, 3)
    for cell, text in zip(table.rows[0].cells, "abc", strict=True):
        cell.text = text
    table.cell(1, 0).merge(table.cell(1, 1)).text = "wide"
    table.cell(1, 2).text = "87"
    document.add_paragraph("After the table.")
    document.add_heading("", level=1)  # Word leaves such things behind
    document.add_heading("Details", level=2)
    document.add_paragraph("Last words.")
    return save(document, tmp_path)


def test_sections_have_paragraphs_and_tables_in_order(report):
    with DOCX.open(report, LoadOptions()) as document:
        assert (document.unit_kind, document.split) == ("section", "cut at headings")
        assert document.unit_count == 2
        pages = list(document.pages())

    assert [page.text for page in pages] == [
        "\nThe report\nFirst words.\na\tb\tc\nwide\t87\nAfter the table.\n\n",
        "Details\nLast words.\n",
    ]
    assert [dict(page.metadata) for page in pages] == [
        {"heading": "The report", "level": 1},
        {"heading": "Details", "level": 2},
    ]


def test_what_stands_before_the_first_heading_is_a_section(tmp_path):
    document = docx.Document()
    document.add_paragraph("Preface.")
    document.add_heading("One", level=1)
    document.add_heading("Two", level=1)
    with DOCX.open(save(document, tmp_path), LoadOptions()) as opened:
        assert opened.unit_count == 3
        assert [page.text for page in opened.pages()] == ["Preface.\n", "One\n", "Two\n"]


def test_without_headings_it_is_cut_at_paragraph_ends(tmp_path):
    document = docx.Document()
    for _ in range(5):
        document.add_paragraph("x" * 39)  # 40 with its line end
    with DOCX.open(save(document, tmp_path), LoadOptions(characters_per_unit=70)) as opened:
        assert (opened.unit_kind, opened.unit_count) == ("chunk", None)
        assert opened.split == "cut every 70 characters, at paragraph ends"
        assert [len(page.text) for page in opened.pages()] == [80, 80, 40]


def test_an_empty_document_is_one_unit_without_text(tmp_path):
    with DOCX.open(save(docx.Document(), tmp_path), LoadOptions()) as opened:
        assert [page.text for page in opened.pages()] == [""]


def other_zip():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("readme.txt", "not Word")
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Just text.", "not a DOCX: it is not a zip"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 504, "encrypted, or in Word's format"),
        (other_zip(), "cannot be opened as a DOCX"),
    ],
)
def test_what_is_no_docx_is_told(tmp_path, content, message):
    path = tmp_path / "broken.docx"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match=message) as raised:
        DOCX.open(path, LoadOptions())
    assert raised.value.next_step


def test_a_truncated_docx_is_told(report):
    content = report.read_bytes()
    report.write_bytes(content[: len(content) // 2])
    with pytest.raises(DocumentError, match=r"report\.docx cannot be opened as a DOCX") as raised:
        DOCX.open(report, LoadOptions())
    assert raised.value.__cause__ is not None
